"""Coding of a control: one column of the table becomes columns of the design matrix.

Numbers are standardised, which changes no effect and keeps coefficients comparable: separation is found by their size.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Control
from tasks.numerics.arrays import Bools, Floats

RARE = 30
"""Categories with fewer rows are pooled."""
POOLED = "(rare)"
CLIPPED = (0.01, 0.99)
"""Quantiles at which the form ``squared`` clips a number."""
CONSTANT = 1e-10
"""A standard deviation so small beside the largest value is rounding."""

Form = Literal["squared", "linear"]


@dataclass(frozen=True)
class Coded:
    """Columns of one control."""

    columns: Floats
    """``(n, k)``; none for a category that does not vary, zeros for a number that does not."""
    names: tuple[str, ...]
    merged: tuple[str, ...] = ()
    """Levels without an indicator, each with the reason: they count as the base."""


def code_control(control: Control, denied: Bools, used: Bools, form: Form) -> Coded:
    """Code a control on the rows in use.

    A number enters standardised, in the form ``squared`` clipped at the 1st and 99th percentile and with its square. A
    number with two values has no square and is not clipped; nor is one clipped that would be constant then. A category
    enters as indicators against its most frequent level, the base, and levels of fewer than 30 rows share one. They
    have none if they are fewer than 30 rows together, all of one decision: it would separate the whole rung. A
    category whose levels are all so rare has no columns.

    Args:
        control: Values of all rows.
        denied: ``(n,)`` decisions on all rows.
        used: ``(n,)`` rows in use; their values are finite, and above 0 on a log scale.
        form: ``squared`` or ``linear`` (textbooks).
    """
    values = control.values[used]
    if control.kind == "category":
        return _code_category(control, values, denied[used])
    if control.scale == "log":
        values = np.log(values)
    curved = form == "squared" and len(np.unique(values)) > 2
    if curved:
        clipped = np.clip(values, *np.quantile(values, CLIPPED))
        values = clipped if clipped.min() < clipped.max() else values
    z = standardised(values)
    if not curved or not z.any():
        return Coded(z[:, None], (control.name,))
    return Coded(np.column_stack([z, standardised(z**2)]), (control.name, f"{control.name} squared"))


def standardised(values: Floats) -> Floats:
    """Values with mean 0 and standard deviation 1; zeros where they do not vary. Safe for values up to 1e308."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(values))
    scaled = values / largest
    centred = scaled - scaled.mean()
    sd = float(np.sqrt(np.mean(centred**2)))
    return np.zeros(len(values)) if sd <= CONSTANT else centred / sd


def own_levels(control: Control, used: Bools, names: tuple[str, ...]) -> Floats:
    """Levels of a category that a design tells apart, ascending: the base, and those with an indicator in ``names``."""
    levels, counts = np.unique(control.values[used], return_counts=True)
    own = np.array([level_name(control, level) in names for level in levels], np.bool_)
    own[counts.argmax()] = True
    return np.asarray(levels[own])


def level_name(control: Control, level: float) -> str:
    """Name of a level's indicator."""
    return f"{control.name}: {_level(control, level)}"


def _code_category(control: Control, values: Floats, denied: Bools) -> Coded:
    """Indicators of all levels but the most frequent one."""
    levels, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    names = np.array([level_name(control, level) for level in levels], object)
    rare = counts < RARE
    if rare.all():
        return Coded(_stacked([], len(values)), (), (f"{control.name}: {POOLED} (no level has {RARE} rows)",))
    base = int(np.argmax(counts))
    common = [each for each in range(len(counts)) if each != base and not rare[each]]
    columns = [at == each for each in common]
    pooled = rare & (np.arange(len(counts)) != base)
    if counts[pooled].sum() < RARE and len(np.unique(denied[pooled[at]])) < 2:
        merged = tuple(f"{name} (fewer than {RARE} rows, one decision)" for name in names[pooled])
        return Coded(_stacked(columns, len(values)), tuple(names[common]), merged)
    return Coded(_stacked([*columns, pooled[at]], len(values)), (*names[common], f"{control.name}: {POOLED}"))


def _stacked(columns: list[Bools], n: int) -> Floats:
    return np.column_stack(columns).astype(np.float64) if columns else np.zeros((n, 0))


def _level(control: Control, level: float) -> str:
    """Name of a level, or its number where it has none."""
    place = int(level)
    return control.categories[place] if 0 <= place < len(control.categories) and place == level else f"{level:g}"
