"""MACE: the nearest accepted point in a normalised distance (Karimi et al. 2020), as a baseline.

The paper (section 3) asks a satisfiability solver for points within ever smaller distances. For a linear boundary the
optimum that it approaches is a choice of one value for each attribute, which branch and bound finds and proves. Values
are those observed. The paper's own search leaves the range of the data.
"""

import numpy as np

from tasks.baselines.algorithm.sources.choice import cheapest
from tasks.baselines.algorithm.sources.grids import Grid
from tasks.baselines.algorithm.sources.kind import Points, SearchSpace, points


def mace(space: SearchSpace) -> Points:
    """The optimum of MACE's objective (L1): costs are sums of absolute changes, in standard deviations."""
    grid, point, cost = Grid(space), space.values.copy(), np.empty(len(space.values))
    proven = np.ones(len(space.values), np.bool_)
    for part, options in grid.chunks():
        distance = np.abs(options.to - space.values[part][..., None])
        pick, cost[part], proven[part] = cheapest(options.gain, distance, space.gap[part])
        point[part] = options.picked(space.values[part], pick)
    return points(space, point, cost, proven)
