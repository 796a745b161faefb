"""What a national year costs, from partitions that were measured: each of its lenders at the rate of one as large."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.ingest.synthetic.twin.algorithm.nation import sizes
from tasks.numerics.arrays import Floats


@dataclass(frozen=True)
class Partition:
    """One audited partition."""

    value: str
    run: str
    rows: int
    cpu_s: float
    """Of all its stages."""
    seconds: float
    peak_mb: float
    ingest_mb: float
    stages: dict[str, float]
    """Stage -> CPU seconds, of all its steps together."""


@dataclass(frozen=True)
class Year:
    """The estimate for a year."""

    lenders: int
    """That have rows enough."""
    cpu_s: float
    """Of all of their audits."""
    beyond: float
    """Share of it that is for lenders larger than any that was measured."""


def year(rows: int, usable: float, minimum: int, measured: Sequence[Partition]) -> Year:
    """The estimate for a year of so many rows.

    Between two partitions that were measured the cost lies on the line between their logarithms; a larger lender costs
    in proportion to its rows, which is too much where a sample of it is asked; a smaller one costs as the smallest.

    Args:
        rows: of the year.
        usable: share of the rows that can be used.
        minimum: of usable rows, that a lender needs.
        measured: partitions, at least one.
    """
    size = sizes(rows).astype(np.float64)
    size = size[size * usable >= minimum]
    cost = of_rows(size, measured)
    largest = max(each.rows for each in measured)
    return Year(len(size), float(cost.sum()), float(cost[size > largest].sum() / cost.sum()) if len(size) else 0.0)


def of_rows(rows: Floats, measured: Sequence[Partition]) -> Floats:
    """``(n,)`` CPU seconds of lenders with so many rows ``(n,)``; of partitions of about equal rows the mean counts."""
    by_size: dict[int, list[Partition]] = {}
    for each in measured:
        by_size.setdefault(round(4 * np.log2(max(each.rows, 1))), []).append(each)
    classes = [by_size[key] for key in sorted(by_size)]
    at = np.array([np.mean([each.rows for each in of]) for of in classes])
    cost = np.array([np.mean([each.cpu_s for each in of]) for of in classes])
    found: Floats = np.exp(np.interp(np.log(rows), np.log(at), np.log(cost)))
    return np.where(rows > at[-1], cost[-1] * rows / at[-1], found)
