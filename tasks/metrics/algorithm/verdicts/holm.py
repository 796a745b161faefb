"""Holm's step-down procedure (1979): how many comparisons a theory makes, and what that costs each of them."""

from typing import NamedTuple

import numpy as np

from tasks.numerics.arrays import Bools, Floats


class Stepped(NamedTuple):
    """Of ``m`` tests in their given order."""

    adjusted: Floats
    """``(m,)`` p times the number of tests that are left, never falling from one rank to the next."""
    level: Floats
    """``(m,)`` one-sided level of each row: alpha / (m - j + 1) for rank j while all before it were rejected; every
    later row keeps the level of the first that was not."""
    rejected: Bools
    """``(m,)``."""


def step_down(p: Floats, alpha: float) -> Stepped:
    """Holm's procedure at familywise level ``alpha``; a p that is NaN counts as 1: its test was made."""
    m = len(p)
    order = np.argsort(np.where(np.isnan(p), 1.0, p), kind="stable")
    ranked = np.where(np.isnan(p), 1.0, p)[order]
    left = m - np.arange(m)
    within = ranked <= alpha / left
    first = int(np.argmin(within)) if not within.all() else m
    levels = alpha / np.maximum(left, left[min(first, m - 1)] if m else 1)
    adjusted = np.minimum(np.maximum.accumulate(ranked * left), 1.0)
    back = np.empty(m, dtype=np.int64)
    back[order] = np.arange(m)
    return Stepped(adjusted[back], levels[back], (np.arange(m) < first)[back])
