"""Interval of CEC above the own group: rows resampled, the model fitted again, pairs matched and scored anew.

A copy of a row stays in the fold of the row, so that no row is matched with itself. The t interval has refits - 1
degrees of freedom and the value of the audit in its middle.

Scope: resampled values, and the interval.
"""

from collections.abc import Callable, Collection

import numpy as np
from scipy import stats

from schemas.errors import DataQualityError
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.explanation import ModelView
from tasks.numerics.problem import Refit

LEVEL = 0.95
FEWEST = 0.8
"""Share of the refits that must have a value: the others had a group, a label or a feature with nothing to compare."""

SMALLEST = 1e-12
"""A spread that is smaller is that of rounding."""

Values = Callable[[ModelView, Longs], dict[int, float]]
"""From models and the resampled rows ``(n,)`` to the statistic by group."""


def resampled(
    explained: ModelView,
    group: Ints,
    groups: Collection[int],
    refit: Refit,
    count: int,
    values: Values,
    rng: np.random.Generator,
) -> dict[int, Floats]:
    """By group the statistic on resampled rows, ``(count,)``; NaN where it has none.

    Args:
        explained: The models of the audit.
        group: ``(n,)``.
        groups: Those wanted.
        refit: Fits the models again.
        count: Resamples.
        values: The statistic.
        rng: Draws the rows.
    """
    n, out = len(group), {number: np.full(count, np.nan) for number in groups}
    for draw in range(count):
        rows = rng.integers(0, n, n)
        view = refit(explained, rows)
        if view is None:
            continue
        try:
            found = values(view, rows)
        except DataQualityError:  # a feature that is constant among resampled rows
            continue
        for number in out:
            out[number][draw] = found.get(number, np.nan)
    return out


def interval(value: float, drawn: Floats) -> tuple[float, float, tuple[float, float] | None]:
    """Standard error, degrees of freedom and t interval of a value, which lies in [-1, 1].

    NaN, NaN and None where fewer than ``FEWEST`` of the refits have a value, or they do not differ.

    Args:
        value: Of the audit.
        drawn: ``(refits,)``.
    """
    known = drawn[np.isfinite(drawn)]
    se = float(known.std(ddof=1)) if len(known) >= max(2, FEWEST * len(drawn)) else np.nan
    if not (np.isfinite(value) and se > SMALLEST):
        return np.nan, np.nan, None
    df = len(known) - 1
    half = float(stats.t.ppf((1 + LEVEL) / 2, df)) * se
    return se, float(df), (max(-1.0, value - half), min(1.0, value + half))
