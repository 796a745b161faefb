"""Check of the direction of the decision: do columns with a known direction rank it as they should?

Each column with a direction (more is better, or less is better) gives every application a rank between 0 and 1. The sum
of the ranks is compared with the favourable decision by the area under the ROC curve (AUC). Swapped decisions turn an
AUC of 0.7 into one of 0.3. Rates of groups cannot show this: half of all honest lenders approve their reference group
least often of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from tasks.numerics.arrays import Bools, Floats

LEAST = 10
"""Decisions of either kind below which nothing is said."""


@dataclass(frozen=True)
class Direction:
    """How well directed columns rank the favourable decision."""

    auc: float
    error: float
    """Standard error of the AUC (DeLong, DeLong and Clarke-Pearson 1988)."""

    @property
    def high(self) -> float:
        """One-sided 95 % upper bound."""
        return min(1.0, self.auc + float(scipy.stats.norm.ppf(0.95)) * self.error)

    @property
    def reversed(self) -> bool:
        """Whether the AUC lies below 0.5 beyond chance."""
        return self.high < 0.5


def direction(values: Floats, signs: Sequence[int], favourable: Bools) -> Direction | None:
    """Hold the directed columns against the decision.

    Args:
        values: ``(n, c)`` columns as numbers, categories by their order; NaN where missing.
        signs: ``(c,)`` 1 where more is better for the applicant, -1 where less is.
        favourable: ``(n,)`` decisions.

    Returns:
        None where there is no column, or fewer than ``LEAST`` decisions of either kind.
    """
    if not len(signs) or min(np.count_nonzero(favourable), np.count_nonzero(~favourable)) < LEAST:
        return None
    return _auc(_score(values, signs), favourable)


def _score(values: Floats, signs: Sequence[int]) -> Floats:
    """``(n,)`` sum of signed ranks scaled to 0..1; a missing value counts as the middle."""
    score = np.zeros(len(values))
    for column, sign in zip(values.T, signs, strict=True):
        known = np.isfinite(column)
        scaled = np.full(len(column), 0.5)
        scaled[known] = (scipy.stats.rankdata(column[known]) - 0.5) / max(1, np.count_nonzero(known))
        score += sign * scaled
    return score


def _auc(score: Floats, favourable: Bools) -> Direction:
    """AUC with ties as halves, and its standard error from the placements of each application."""
    whole = scipy.stats.rankdata(score)
    good, bad = np.count_nonzero(favourable), np.count_nonzero(~favourable)
    above = (whole[favourable] - scipy.stats.rankdata(score[favourable])) / bad
    below = 1 - (whole[~favourable] - scipy.stats.rankdata(score[~favourable])) / good
    error = np.sqrt(above.var(ddof=1) / good + below.var(ddof=1) / bad)
    return Direction(float(above.mean()), float(error))
