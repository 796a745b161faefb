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
from typing import NamedTuple

import numpy as np
import scipy

from tasks.metrics.publish.algorithm.audit.cells import Cells
from tasks.metrics.publish.algorithm.audit.programme import SLACK, Programme, is_whole
from tasks.metrics.publish.algorithm.populations import Count
from tasks.numerics.arrays import Bools, Floats, Longs


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


class _End(NamedTuple):
    """One end of what a programme allows for a count."""

    limit: float
    """Infinite where the search was cut short."""
    met: bool
    """Whether whole people meet it."""


class Witnesses:
    """Tables of whole people found so far, the true one first. A table that does not fit now may fit later."""

    def __init__(self, truth: Floats, rows: "scipy.sparse.csr_array") -> None:
        self._tables: list[Floats] = []
        self._values = np.empty((16, rows.shape[0]))
        self.keep(truth, rows)

    @property
    def values(self) -> Floats:
        """Rows of counts by table, ``(tables, rows)``."""
        return self._values[: len(self._tables)]

    def keep(self, table: Floats, rows: "scipy.sparse.csr_array") -> Floats:
        """Keep a table; its rows, ``(rows,)``."""
        if len(self._tables) == len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        values = np.asarray(rows @ table)
        self._values[len(self._tables)] = values
        self._tables.append(table)
        return values

    def renew(self, rows: "scipy.sparse.csr_array") -> None:
        """Compute the sums anew, after rows were added."""
        tables, self._tables = self._tables, []
        self._values = np.empty((max(len(tables), 16), rows.shape[0]))
        for table in tables:
            self.keep(table, rows)

    def tables(self, low: Floats, high: Floats) -> Floats:
        """The tables that fit the bounds, ``(tables, cells)``."""
        return np.array([self._tables[number] for number in np.flatnonzero(self.fitting(low, high))])

    def fitting(self, low: Floats, high: Floats) -> Bools:
        """Which tables fit the bounds, ``(tables,)``. ValueError where the true one does not."""
        values = self.values
        fitting = np.asarray(((values >= low) & (values <= high)).all(axis=1))
        if not fitting[0]:
            raise ValueError("what is published does not hold of the people themselves")
        return fitting


class Auditor:
    """Bounds of counts over one set of cells, given bounds of others.

    Rows are the distinct sums of cells among the counts; several counts may be the same sum. ``low`` and ``high`` are
    ``(rows,)`` bounds of these sums, infinite where nothing is published.
    """

    def __init__(self, cells: Cells, counts: Sequence[Count]) -> None:
        sums = [cells.indices(count).tobytes() for count in counts]
        distinct = {key: row for row, key in enumerate(dict.fromkeys(sums))}
        samples = dict(zip(reversed(sums), reversed(counts), strict=True))
        self.rows: dict[Count, int] = {count: distinct[key] for count, key in zip(counts, sums, strict=True)}
        self._cells = cells
        self._programme = Programme(cells, cells.sums([samples[key] for key in distinct]))
        self._witnesses = Witnesses(self._programme.truth, self._programme.matrix)

    @property
    def effort(self) -> float:
        """Work of all programmes solved so far: 40,000 are about a second."""
        return self._programme.effort

    def allow(self, effort: float) -> None:
        """From now on ``SpentError`` is raised in place of more work than this, all that was done counted in."""
        self._programme.limit = effort

    @property
    def truth(self) -> Longs:
        """True value of each row."""
        return np.asarray(self._witnesses.values[0], dtype=np.int64)

    def added(self, counts: Sequence[Count]) -> int:
        """A further row: the sum of counts that share no cell. Its index."""
        self._programme.add([self.rows[count] for count in counts])
        self._witnesses.renew(self._programme.matrix)
        return self.truth.size - 1

    def spread(self, row: int, low: Floats, high: Floats) -> tuple[float, float]:
        """Least and largest value of a row among the witnesses found so far."""
        values = self._witnesses.values[self._witnesses.fitting(low, high), row]
        return float(values.min()), float(values.max())

    def open(self, row: int, wanted: int, low: Floats, high: Floats) -> bool:
        """Whether a count is open by ``wanted``: witnesses that far apart are known, or are found now.

        They are sought first where only the count's own block of cells changes, and by integer programmes only where
        linear ones leave the width.
        """
        if self._width(row, low, high) >= wanted:
            return True
        for part in self._programme.parts(row):
            ends = [self._look(row, sign, low, high, part) for sign in (1, -1)]
            if self._width(row, low, high) >= wanted:
                return True
            if np.floor(ends[1].limit + SLACK) - np.ceil(ends[0].limit - SLACK) < wanted:
                continue
            for sign in [sign for sign, end in zip((1, -1), ends, strict=True) if not end.met]:
                self._look(row, sign, low, high, part, whole=True)
                if self._width(row, low, high) >= wanted:
                    return True
        return False

    def _width(self, row: int, low: Floats, high: Floats) -> float:
        least, largest = self.spread(row, low, high)
        return largest - least

    def interval(self, count: Count, low: Floats, high: Floats, exact: bool = True) -> Interval:
        """Least and largest value of a count that the bounds allow; by the witnesses so far where not ``exact``."""
        row, proven = self.rows[count], exact
        for sign in (1, -1) if exact else ():
            end = self._look(row, sign, low, high)
            end = end if end.met else self._look(row, sign, low, high, whole=True)
            proven &= end.met
        least, largest = self.spread(row, low, high)
        return Interval(count, int(least), int(largest), proven)

    def unsaid(self, count: Count, low: Floats, high: Floats) -> Interval:
        """What can be told of a count of an attribute that nothing is published of and that no cell tells apart.

        Of a cell with people of the group and others, any may be of the group. The attribute's groups are known.
        """
        inside, touched = self._cells.around(count)
        aim = np.zeros(self._cells.size)
        aim[touched] = -1.0
        for again in (True, False):
            tables = self._witnesses.tables(low, high)
            least, largest = tables[:, inside].sum(axis=1).min(), tables[:, touched].sum(axis=1).max()
            if again:
                self._kept(self._programme.solve(aim, low, high, whole=False)[1], low, high)
        size = int(self._cells.people.size(count))
        return Interval(count, max(int(least), min(size, 1)), int(largest), proven=False)

    def explore(self, rows: Longs, low: Floats, high: Floats) -> None:
        """Look for witnesses that move many rows at once, so that fewer need a programme of their own."""
        for signs in (np.ones(rows.size), np.where(np.arange(rows.size) % 2, -1.0, 1.0)):
            for direction in (1.0, -1.0):
                weights = np.zeros(self.truth.size)
                weights[rows] = direction * signs
                _, table = self._programme.solve(weights @ self._programme.matrix, low, high, whole=False)
                self._kept(table, low, high)

    def cheapest(self, row: int, wanted: int, low: Floats, high: Floats, costs: Floats) -> Longs | None:
        """Rows whose bounds have to give way, at least cost, before a count is open by ``wanted``.

        A further table may miss bounds, at the cost of the row for each person that it misses them by, ``(rows,)``,
        infinite where the bound stays. It is sought on either side of the witnesses, at the wanted width, then nearer.
        No row where a linear programme finds the count open, None where there is no such table.
        """
        least, largest = self.spread(row, low, high)
        found = False
        for step in range(wanted, int(largest - least), -1):
            sides = [(-np.inf, largest - step), (least + step, np.inf)]
            cost, rows = min(
                (self._programme.elastic(row, s, low, high, costs) for s in sides), key=lambda each: each[0]
            )
            if rows.size:
                return rows
            found |= bool(np.isfinite(cost))
        return np.empty(0, dtype=np.int64) if found else None

    def neighbours(self, row: int, low: Floats, high: Floats) -> Longs:
        """Rows with bounds that share a cell with a row."""
        matrix = self._programme.matrix
        shared = np.asarray((matrix @ matrix[[row]].T).toarray()).ravel() > 0
        return np.flatnonzero(shared & (np.isfinite(low) | np.isfinite(high)))

    def _look(self, row: int, sign: int, low: Floats, high: Floats, part: int = -1, whole: bool = False) -> _End:
        """The least (sign 1) or largest (-1) value of a row, by a linear programme or one in whole numbers."""
        aim = sign * self._programme.matrix[[row]].toarray()[0]
        limit, table = self._programme.solve(aim, low, high, whole, part)
        met = self._kept(table, low, high) and bool(np.isfinite(limit))
        return _End(sign * limit if np.isfinite(limit) else -sign * np.inf, met)

    def _kept(self, table: Floats | None, low: Floats, high: Floats) -> bool:
        """Keep a table as a witness if it is whole and fits; whether it does."""
        if table is None or not is_whole(table):
            return False
        table = np.rint(table)
        values = self._programme.matrix @ table
        fits = bool(((values >= low) & (values <= high)).all()) and not np.any(self._programme.agreements @ table)
        if fits and (table >= 0).all():
            self._witnesses.keep(table, self._programme.matrix)
        return fits
