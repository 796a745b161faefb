"""FACE as a yardstick: what every person would pay for a counterfactual of their own (Poyiadzi et al., AIES 2020).

FACE takes for each factual the cheapest feasible candidate; a group explanation takes k candidates for all. The ratio
of the two costs says what sharing them costs a person (FGCE, comparison with FACE). Any cost will do, the straight
distance or the cheapest path, as long as it is the same in both.

Here belong the optimum per person and the ratio to it. Costs of paths are in ``path_costs``.
"""

from dataclasses import dataclass

import numpy as np

from tasks.algorithms.detector import Floats, Longs


@dataclass(frozen=True)
class FaceRatio:
    """Cost of the cheapest of the first 1, 2, ... K selected candidates, over the cost of the cheapest of all."""

    ratio: Floats
    """``(f, K)``, at least 1 and never rising along a row; NaN where no ratio is defined."""
    mean: Floats
    """``(K,)`` mean over the factual rows with a ratio, NaN where there is none."""
    defined: Longs
    """``(K,)`` factual rows with a ratio."""
    left_out: Longs
    """``(K,)`` factual rows that are covered, but whose own optimum costs nothing while the assigned one does not."""


def optimum(cost: Floats) -> tuple[Floats, Longs]:
    """Cheapest feasible candidate of every factual, the first of several.

    Args:
        cost: ``(f, c)``, ``inf`` where the candidate is not feasible.

    Returns:
        ``(f,)`` costs, NaN where no candidate is feasible; ``(f,)`` places among the candidates, or -1.

    Raises:
        ValueError: If a cost is negative or NaN.
    """
    if not (cost >= 0).all():
        raise ValueError("a cost is negative or NaN; expected at least 0, and inf for a candidate that is not feasible")
    cheapest = cost.min(axis=1, initial=np.inf)
    feasible = np.isfinite(cheapest)
    choice = np.full(len(cost), -1, dtype=np.int64)
    if feasible.any():
        choice[feasible] = cost[feasible].argmin(axis=1)
    return np.where(feasible, cheapest, np.nan), choice


def face_ratio(cost: Floats, weight: Longs, picks: Longs) -> FaceRatio:
    """Ratio of what a group explanation costs each factual to what FACE costs it, for every k up to K.

    A factual is assigned the cheapest feasible one of the first k picks. The ratio is 1 where that costs nothing.

    Args:
        cost: ``(f, c)``, ``inf`` where the candidate is not feasible.
        weight: ``(f,)`` factual rows at each factual node.
        picks: ``(K,)`` places of the selected candidates among the ``c``, in the order of choice; -1 for none.

    Raises:
        ValueError: If a cost is negative or NaN.
    """
    best = optimum(cost)[0][:, None]
    offered = np.full((len(cost), len(picks)), np.inf)
    offered[:, picks >= 0] = cost[:, picks[picks >= 0]]
    assigned = np.minimum.accumulate(offered, axis=1)
    covered = np.isfinite(assigned)
    ratio = np.full(assigned.shape, np.nan)
    np.divide(assigned, best, out=ratio, where=covered & (best > 0))
    ratio[assigned == 0] = 1.0  # the optimum costs nothing either
    has = ~np.isnan(ratio)
    defined = weight @ has
    total = weight @ np.where(has, ratio, 0.0)
    mean = np.divide(total, defined, out=np.full(len(picks), np.nan), where=defined > 0)
    return FaceRatio(ratio, mean, defined, weight @ (covered & ~has))
