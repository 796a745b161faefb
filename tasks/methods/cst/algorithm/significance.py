"""Significance tests for each complainant: difference of two shares, p-value, q-value.

A complainant is detected iff its control group was refused more often than its test group, by more than tau (Alvarez
and Ruggieri 2023, Def. 3.4). Under pure chance about half of the complainants are detected at tau = 0. A detection is
significant if its q-value over all complainants is below alpha.

Scope: tests of counts. Where the counts come from: ``situations``.
"""

from dataclasses import dataclass

import numpy as np

from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics.intervals import benjamini_hochberg
from tasks.numerics.statistics.proportions import Pair, bounds, p_values, quantile


@dataclass(frozen=True)
class Tests:
    """Tests of ``c`` complainants, for each number of neighbours; all ``(len(ks), c)``, NaN where not tested."""

    pair: Pair
    delta: Floats
    low: Floats
    high: Floats
    p: Floats
    q: Floats
    """p after Benjamini-Hochberg, over the complainants and for each number of neighbours apart."""

    def detected(self, tau: float) -> Floats:
        """1 where the difference is above ``tau``, else 0."""
        return flags(self.delta > tau, self.delta)

    def positive(self, tau: float) -> Floats:
        """1 where the control group was refused less often by more than ``tau`` (positive discrimination), else 0."""
        return flags(self.delta < -tau, self.delta)

    def significant(self, alpha: float) -> Floats:
        """1 where q is below ``alpha``, else 0."""
        return flags(self.q < alpha, self.delta)


def judge(pair: Pair, settings: CstSettings) -> Tests:
    """Test every complainant.

    Args:
        pair: ``(len(ks), c)`` refusals in both groups.
        settings: ``tau``, ``alpha``, ``interval`` and ``decimals``; published counts rest on differences, bounds and
            the normal quantile rounded to three digits. p and q are of what is not rounded.
    """
    low, high = bounds(pair, settings.interval, quantile(settings.alpha, settings.decimals))
    p = p_values(pair, settings.interval, settings.tau)
    q = np.stack([benjamini_hochberg(each) for each in p])
    delta, low, high = (_rounded(values, settings.decimals) for values in (pair.delta, low, high))
    return Tests(pair, delta, low, high, p, q)


def unfair(refused: Bools, imagined: Bools) -> Floats:
    """Counterfactual fairness (CF), ``(c,)``: 1 where refused but for the group, -1 the other way round, else 0.

    Args:
        refused: ``(c,)`` unfavourable decisions on the complainants.
        imagined: ``(c,)`` the same decision maker's on their counterfactuals.
    """
    return refused.astype(np.float64) - imagined


def flags(yes: Bools, known: Floats) -> Floats:
    """1 or 0, and NaN where ``known`` is NaN."""
    return np.where(np.isnan(known), np.nan, yes)


def _rounded(values: Floats, decimals: int | None) -> Floats:
    return values if decimals is None else np.round(values, decimals)
