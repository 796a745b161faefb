"""The place of the nearest accepted row that permitted changes lead to: a counterfactual without any search."""

from typing import Final

import numpy as np

from tasks.baselines.algorithm.sources.kind import ARRIVED, Points, SearchSpace, points, score
from tasks.counterfactuals.algorithm.recourse.permitted import NOBODY, nearest_favoured
from tasks.counterfactuals.algorithm.recourse.targets import given
from tasks.numerics.arrays import Bools, Floats, Longs

ASKED: Final = 20
"""Nearest rows that are tried: what an applicant cannot change may leave it below the boundary at another's place."""


def nearest(space: SearchSpace) -> Points:
    """The nearest place at which the applicant would be accepted; costs are weighted distances."""
    candidates = space.observed[score(space.observed, space.boundary) >= 0.0]

    def favours(_: Longs, places: Floats) -> Bools:
        return np.asarray(score(places, space.boundary) >= -ARRIVED)

    chosen = nearest_favoured(space.values, candidates, space.actions, ASKED, favours)
    there = space.values.copy()
    there[chosen != NOBODY] = candidates[chosen[chosen != NOBODY]]
    found, accepted = given(space.values, there, space.actions), space.gap == 0.0
    cost = np.where(accepted, 0.0, np.where(chosen != NOBODY, found.cost, np.nan))
    return points(space, np.where(accepted[:, None], space.values, found.point), cost)
