"""Randomization test of situation testing: labels are permuted within strata, and the effect is computed again.

The null: given the stratum, labels do not matter for the decisions. The statistic is the adjusted effect over its
standard error (studentised), so that strata with more noise weigh no more under one label than under the other.
Errors come from least squares residuals here, (y_j - z_j'b)^2 / (1 - h_j)^2: a logistic regression for every
permutation would be most of the cost, and a permutation test is exact with any statistic.
"""

from typing import NamedTuple

import numpy as np

from tasks.methods.cst.algorithm.effect.deep_lists import DeepLists
from tasks.methods.cst.algorithm.effect.side import LARGEST_LEVERAGE, inverse_of
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.propensity import p_of, relabelled

TOO_MANY_ROWS = "too_many_rows"
"""Reason of a refusal: the search and its permutations would take longer than the rest of the audit."""


class Ground(NamedTuple):
    """The rows of a group and of its reference, ``q`` of them."""

    lists: DeepLists
    z: Floats
    """``(q, d)`` design rows."""
    denied: Floats
    """``(q,)``."""


def randomization_p(ground: Ground, member: Bools, stratum: Longs, draws: int, rng: np.random.Generator) -> float:
    """One-sided p of "no higher than with labels permuted": (1 + #{null >= observed}) / (1 + draws).

    Args:
        ground: The rows.
        member: ``(q,)`` members of the group.
        stratum: ``(q,)`` labels are permuted within these.
        draws: Permutations.
        rng: Permutes labels.

    Returns:
        NaN where the effect cannot be computed.
    """
    observed = studentised(ground, member)
    if not np.isfinite(observed):
        return float("nan")
    null = np.array([studentised(ground, relabelled(member, stratum, rng)) for _ in range(draws)])
    return p_of(observed, null)


def studentised(ground: Ground, member: Bools) -> float:
    """The adjusted effect over its standard error under some labels ``(q,)``; NaN where there is none."""
    tested, control, test = ground.lists.shares(member)
    if not tested.any():
        return float("nan")
    target = ground.z[tested].mean(axis=0)
    value = variance = 0.0
    for rows, share, sign in ((member, control, 1.0), (~member, test, -1.0)):
        z, y = ground.z[rows], ground.denied[rows]
        inverse, _ = inverse_of(z)
        weights = share[rows] + z @ (inverse @ (target - z.T @ share[rows]))
        fitted = z @ (inverse @ (z.T @ y))
        leverage = np.minimum(((z @ inverse) * z).sum(axis=1), LARGEST_LEVERAGE)
        value += sign * float(weights @ y)
        variance += float(weights**2 @ ((y - fitted) / (1 - leverage)) ** 2)
    return value / variance**0.5 if variance > 0 else float("nan")
