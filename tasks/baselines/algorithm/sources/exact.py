"""RAGUEL-CF: the exact point of least weighted distance (Haldar et al. 2022, section 3.5.1), beside other sources."""

import numpy as np

from tasks.baselines.algorithm.sources.kind import Points, SearchSpace, points
from tasks.counterfactuals.algorithm.recourse.stepped import in_steps
from tasks.counterfactuals.algorithm.recourse.targets import to_boundary
from tasks.numerics.arrays import Bools, Floats


def exact(space: SearchSpace) -> Points:
    """The cheapest permitted point, in whole steps where attributes have steps; costs are weighted distances."""
    proven: Bools = np.ones(len(space.values), np.bool_)
    if (space.actions.step[space.actions.changeable] > 0).any():
        stepped = in_steps(space.values, space.boundary, space.actions)
        found, proven = stepped.targets, stepped.proven
    else:
        found = to_boundary(space.values, space.boundary, space.actions)
    accepted = space.gap == 0.0  # these two go to the boundary from either side
    cost: Floats = np.where(accepted, 0.0, found.cost)
    return points(space, np.where(accepted[:, None], space.values, found.point), cost, proven)
