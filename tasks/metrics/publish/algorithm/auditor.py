"""The auditor: what an attacker can tell of a count from everything that is published, by linear programming (HiGHS).

Unknowns are the people in each cell. Every published count bounds a sum of cells. The attacker knows that people are
whole, so that bounds by linear programming alone may be wider than the attacker's: they would call a count safe that is
not. Hence the auditor calls a count open only by witnesses: two tables of whole numbers that fit all that is published
and differ in the count by the width that is wanted. A witness is a vertex of the linear programme where that is whole,
else a solution of the integer programme within a limit of nodes. Where the limit ends the search, the count is called
closed. An error is thus always to the safe side. Source: rule 6 of the disclosure pass; decision 0034.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from tasks.metrics.publish.algorithm.cells import Cells
from tasks.metrics.publish.algorithm.populations import Count
from tasks.numerics.arrays import Bools, Floats, Longs

NODES = 2000
"""Limit of the integer programme's search tree; not of seconds, so that every machine finds the same."""
SLACK = 1e-6
"""What HiGHS may miss a bound by."""


@dataclass(frozen=True)
class Interval:
    """What can be told of a count: tables that fit what is published have it from ``least`` to ``largest``."""

    count: Count
    least: int
    largest: int
    proven: bool
    """Whether no table of whole numbers that fits has it lower or higher."""

    @property
    def width(self) -> int:
        """How far apart the ends are: 0 where the count is told exactly."""
        return self.largest - self.least


class Auditor:
    """Bounds of counts over one set of cells, given bounds of others.

    Rows are the distinct sums of cells among the counts; several counts may be the same sum. ``low`` and ``high`` are
    ``(rows,)`` bounds of these sums, infinite where nothing is published.
    """

    def __init__(self, cells: Cells, counts: Sequence[Count]) -> None:
        sums = [cells.indices(count) for count in counts]
        keys = {each.tobytes(): number for number, each in enumerate(sums)}
        distinct = {key: row for row, key in enumerate(sorted(keys, key=lambda key: keys[key]))}
        self.rows: dict[Count, int] = {count: distinct[s.tobytes()] for count, s in zip(counts, sums, strict=True)}
        self._matrix = cells.sums([counts[keys[key]] for key in distinct])
        self._equal = cells.agreements
        self._both = sparse.csr_array(sparse.vstack([self._matrix, self._equal]))
        self._most = float(2 * cells.truth.sum() + 100)
        self._tables: list[Floats] = []
        self._values = np.empty((0, len(distinct)))
        self.truth: Longs = np.asarray(self._matrix @ cells.truth).astype(np.int64)
        self._keep(cells.truth.astype(np.float64))

    def added(self, counts: Sequence[Count]) -> int:
        """A further row: the sum of counts that share no cell. Its index."""
        row = sparse.csr_array(self._matrix[[self.rows[count] for count in counts]].sum(axis=0)[None, :])
        self._matrix = sparse.csr_array(sparse.vstack([self._matrix, row]))
        self._both = sparse.csr_array(sparse.vstack([self._matrix, self._equal]))
        self._values = np.array([self._matrix @ table for table in self._tables])
        self.truth = self._values[0].astype(np.int64)
        return self.truth.size - 1

    def spread(self, row: int, low: Floats, high: Floats) -> tuple[float, float]:
        """Least and largest value of a row among the witnesses found so far."""
        values = self._values[self._fitting(low, high), row]
        return float(values.min()), float(values.max())

    def open(self, row: int, wanted: int, low: Floats, high: Floats) -> bool:
        """Whether a count is open by ``wanted``: witnesses that far apart are known, or are found now."""
        least, largest = self.spread(row, low, high)
        for sign in (1, -1):
            if largest - least >= wanted:
                return True
            self._look(row, sign, low, high)
            least, largest = self.spread(row, low, high)
        return largest - least >= wanted

    def interval(self, count: Count, low: Floats, high: Floats) -> Interval:
        """Least and largest value of a count that the bounds allow."""
        row = self.rows[count]
        limits = [self._look(row, sign, low, high) for sign in (1, -1)]
        least, largest = self.spread(row, low, high)
        return Interval(count, int(least), int(largest), limits == [least, largest])

    def explore(self, rows: Longs, low: Floats, high: Floats) -> None:
        """Look for witnesses that move many rows at once, so that fewer need a programme of their own."""
        for signs in (np.ones(rows.size), np.where(np.arange(rows.size) % 2, -1.0, 1.0)):
            for direction in (1.0, -1.0):
                weights = np.zeros(self.truth.size)
                weights[rows] = direction * signs
                _, table = self._solved(weights @ self._matrix, low, high, whole=False)
                if table is not None and _whole(table):
                    self._keep(np.rint(table))

    def cheapest(self, row: int, wanted: int, low: Floats, high: Floats, costs: Floats) -> Longs:
        """Rows whose bounds have to give way, at least cost, before a count is open by ``wanted``; none if it is.

        An elastic programme: a further table may miss bounds, at the cost of the row for each person that it misses
        them by, ``(rows,)``, infinite where the bound stays. It is sought on either side of the witnesses.
        """
        least, largest = self.spread(row, low, high)
        sides = [(row, largest - wanted, -1.0), (row, least + wanted, 1.0)]
        tried = [self._elastic(*side, low, high, costs) for side in sides]
        return min(tried, key=lambda each: each[0])[1]

    def _elastic(
        self, row: int, value: float, sign: float, low: Floats, high: Floats, costs: Floats
    ) -> tuple[float, Longs]:
        """Least cost of a table with a row at ``value`` or beyond it, and the rows whose bounds it misses."""
        rows, cells = self._matrix.shape
        can_miss = np.where(np.isfinite(costs), np.inf, 0.0)
        slack = sparse.eye_array(rows)
        zeros = np.zeros(self._equal.shape[0])
        none = sparse.csr_array((self._equal.shape[0], 2 * rows))
        misses = sparse.vstack([sparse.hstack([self._matrix, slack, -slack]), sparse.hstack([self._equal, none])])
        aim = sparse.hstack([self._matrix[[row]], sparse.csr_array((1, 2 * rows))])
        beyond = (value, np.inf) if sign > 0 else (-np.inf, value)
        prices = np.where(np.isfinite(costs), costs, 0.0)
        found = milp(
            np.concatenate([np.zeros(cells), prices, prices]),
            bounds=Bounds(0, np.concatenate([np.full(cells, self._most), can_miss, can_miss])),
            constraints=[
                LinearConstraint(misses, np.concatenate([low, zeros]), np.concatenate([high, zeros])),
                LinearConstraint(aim, *beyond),
            ],
        )
        if found.status != 0:
            return np.inf, np.empty(0, dtype=np.int64)
        missed = found.x[cells : cells + rows] + found.x[cells + rows :]
        return found.fun, np.flatnonzero(missed > SLACK)

    def neighbours(self, row: int, low: Floats, high: Floats) -> Longs:
        """Rows with bounds that share a cell with a row."""
        shared = np.asarray((self._matrix @ self._matrix[[row]].T).toarray()).ravel() > 0
        return np.flatnonzero(shared & (np.isfinite(low) | np.isfinite(high)))

    def _look(self, row: int, sign: int, low: Floats, high: Floats) -> float:
        """The least (sign 1) or largest (-1) value of a row; keeps a witness. NaN where the search was cut short."""
        aim = sign * self._matrix[[row]].toarray()[0]
        limit, table = self._solved(aim, low, high, whole=False)
        if table is None or not _whole(table):
            limit, table = self._solved(aim, low, high, whole=True)
        if table is None or not self._keep(np.rint(table), low, high):
            return np.nan
        return sign * float(np.rint(limit))

    def _solved(self, aim: Floats, low: Floats, high: Floats, whole: bool) -> tuple[float, Floats | None]:
        """Least value of ``aim`` and a table that has it; NaN for the value where the search was cut short."""
        zeros = np.zeros(self._equal.shape[0])
        found = milp(
            aim,
            integrality=np.full(aim.size, int(whole)),
            bounds=Bounds(0, self._most),
            constraints=LinearConstraint(self._both, np.concatenate([low, zeros]), np.concatenate([high, zeros])),
            options={"node_limit": NODES, "mip_rel_gap": 0.0} if whole else {},
        )
        return (found.fun if found.status == 0 else np.nan), found.x

    def _keep(self, table: Floats, low: Floats | None = None, high: Floats | None = None) -> bool:
        """Keep a table of whole numbers as a witness, if it fits."""
        values = np.asarray(self._matrix @ table)
        agree = not np.any(self._equal @ table) and bool((table >= 0).all())
        if not agree or (low is not None and high is not None and not _within(values[None], low, high)[0]):
            return False
        self._values = np.vstack([self._values, values])
        self._tables.append(table)
        return True

    def _fitting(self, low: Floats, high: Floats) -> Bools:
        """Which witnesses fit the bounds. The true table always does."""
        fitting = _within(self._values, low, high)
        if not fitting[0]:
            raise ValueError("what is published does not hold of the people themselves")
        return fitting


def _within(values: Floats, low: Floats, high: Floats) -> Bools:
    return np.asarray(((values >= low) & (values <= high)).all(axis=1))


def _whole(table: Floats) -> bool:
    return bool((np.abs(table - np.rint(table)) < SLACK).all())
