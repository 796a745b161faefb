"""Design rows z(x) of applicants: what regressions of matching estimators and of propensities look at.

One row: 1, every numeric column (its logarithm where the spec says so; standardised), its square, and an indicator of
every category but the first. Indicators have no squares. Columns that are linear in others are left out.
"""

from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.columns import Columns

SMALLEST = 1e-9
"""A column whose remainder beside those before it is smaller (of a standardised column) is linear in them."""


@dataclass(frozen=True)
class DesignRows:
    """How values become design rows: fitted once, applied to real and to imagined applicants alike."""

    columns: Columns
    """Names, kinds and categories; values are those that it was fitted to."""
    logged: Bools
    """``(p,)`` columns that enter as logarithms."""
    least: Floats
    """``(p,)`` smallest value of each column, below which no logarithm is taken."""
    mean: Floats
    sd: Floats
    """``(p,)`` of the numbers that enter."""
    squared: bool
    kept: Bools
    """``(q,)`` which of all columns of the design are not linear in those before them."""

    def of(self, values: Floats) -> Floats:
        """``(r, d)`` rows of applicants with ``(r, p)`` values, laid out as ``Columns.values``."""
        return self._all(values)[:, self.kept]

    def _all(self, values: Floats) -> Floats:
        return _rows(self.columns, values, _standardised(values, self), self.squared)


def fitted(columns: Columns, squared: bool = True) -> DesignRows:
    """The design of these applicants.

    Args:
        columns: ``n`` applicants with ``p`` columns; ``logged`` names those that enter as logarithms.
        squared: Whether numbers enter with their squares.
    """
    logged = np.array([name in columns.logged for name in columns.names], dtype=bool)
    values = columns.values
    least = values.min(axis=0, initial=np.inf, where=(values > 0) | ~logged)
    numbers = _entering(values, logged, least)
    sd = numbers.std(axis=0)
    every = np.zeros(0, dtype=bool)
    made = DesignRows(columns, logged, least, numbers.mean(axis=0), np.where(sd > 0, sd, 1.0), squared, every)
    kept = _independent(_rows(columns, values, _standardised(values, made), squared))
    return DesignRows(made.columns, logged, least, made.mean, made.sd, squared, kept)


def _entering(values: Floats, logged: Bools, least: Floats) -> Floats:
    """Numbers as they enter; a logarithm is of the smallest positive value at least."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(values, least))
    return np.where(logged & np.isfinite(least), logs, values)


def _standardised(values: Floats, design: DesignRows) -> Floats:
    return (_entering(values, design.logged, design.least) - design.mean) / design.sd


def _rows(columns: Columns, values: Floats, numbers: Floats, squared: bool) -> Floats:
    parts = [np.ones((len(values), 1))]
    for position, known in enumerate(columns.categories):
        if known:
            parts.append((values[:, [position]] == np.arange(1, len(known))).astype(np.float64))
        else:
            own = numbers[:, [position]]
            parts += [own, own**2] if squared else [own]
    return np.hstack(parts)


def _independent(x: Floats) -> Bools:
    """``(q,)`` columns that are not linear in those before them."""
    kept = np.zeros(x.shape[1], dtype=bool)
    basis: list[Floats] = []
    for position, column in enumerate(x.T):
        rest = column / max(float(np.linalg.norm(column)), 1e-300)
        for known in (*basis, *basis):  # twice, for what rounding leaves
            rest = rest - known * float(known @ rest)
        size = float(np.linalg.norm(rest))
        if size > SMALLEST:
            kept[position] = True
            basis.append(rest / size)
    return kept
