"""Linear and integer programmes over tables of cells that fit what is published, solved by HiGHS.

Scope: programmes. What they say about a count is in ``auditor``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from tasks.metrics.publish.algorithm.audit.cells import Cells
from tasks.numerics.arrays import Floats, Longs

NODES = 2000
"""Limit of the integer programme's search tree; not of seconds, so that every machine finds the same."""
SLACK = 1e-6
"""What HiGHS may miss a bound by."""


class SpentError(Exception):
    """A programme would take more than the work that is allowed."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Cells that may change while all others stay as they truly are, and the constraints on them."""

    cells: Longs
    rows: Longs
    """Rows, of counts and of agreements after them, that have some of the cells."""
    matrix: "scipy.sparse.csr_array"
    rest: Floats
    """What the other cells add to these rows."""


class Programme:
    """Tables of cells that fit bounds of some sums of them. ``low`` and ``high`` are ``(rows,)``, infinite for none."""

    def __init__(self, cells: Cells, rows: "scipy.sparse.csr_array") -> None:
        self.truth: Floats = cells.truth.astype(np.float64)
        self.matrix, self.agreements = rows, cells.agreements
        self._parts = [np.arange(first, last, dtype=np.int64) for first, last in cells.spans]
        self._most = 2 * self.truth.sum() + 100
        self._scopes: dict[int, Scope] = {}
        self.effort = 0.0
        """Work of all programmes solved so far: 40,000 are about a second."""
        self.limit = np.inf
        """Work that is allowed."""

    def add(self, rows: Sequence[int]) -> None:
        """A further row: the sum of rows that share no cell."""
        row = scipy.sparse.csr_array(self.matrix[list(rows)].sum(axis=0)[None, :])
        self.matrix = scipy.sparse.csr_array(scipy.sparse.vstack([self.matrix, row]))
        self._scopes = {}

    def parts(self, row: int) -> list[int]:
        """Scopes in which a row can change, the smaller first: its own block of cells, then all cells (-1)."""
        first = self.matrix[[row]].indices[0] if self.matrix[[row]].nnz else 0
        block = next(number for number, part in enumerate(self._parts) if part[0] <= first <= part[-1])
        return [block, -1] if len(self._parts) > 1 else [-1]

    def solve(self, aim: Floats, low: Floats, high: Floats, whole: bool, part: int = -1) -> tuple[float, Floats | None]:
        """The least value of ``aim``, ``(cells,)``, and a table that has it; NaN where the search was cut short.

        Raises:
            SpentError: it would take more than the work that is allowed.
        """
        scope = self._scope(part)
        self._spend(scope.cells.size, whole)
        zeros = np.zeros(self.agreements.shape[0])
        least = np.concatenate([low, zeros])[scope.rows] - scope.rest
        most = np.concatenate([high, zeros])[scope.rows] - scope.rest
        found = scipy.optimize.milp(
            aim[scope.cells],
            integrality=np.full(scope.cells.size, int(whole)),
            bounds=scipy.optimize.Bounds(0, self._most),
            constraints=scipy.optimize.LinearConstraint(scope.matrix, least, most),
            options={"node_limit": NODES, "mip_rel_gap": 0.0} if whole else {},
        )
        if found.x is None:
            return np.nan, None
        table = self.truth.copy()
        table[scope.cells] = found.x
        return (float(aim @ table) if found.status == 0 else np.nan), table

    def elastic(
        self, row: int, beyond: tuple[float, float], low: Floats, high: Floats, costs: Floats
    ) -> tuple[float, Longs]:
        """Least cost of a table that has a row within ``beyond``, and the rows whose bounds it misses.

        A table may miss the bounds of a row at its cost for each person, ``(rows,)``; infinite where it may not. The
        cost returned is infinite where there is no such table. ``SpentError`` as in ``solve``.
        """
        rows, cells = self.matrix.shape
        self._spend(cells)
        slack, none = scipy.sparse.eye_array(rows), scipy.sparse.csr_array((self.agreements.shape[0], 2 * rows))
        matrix = scipy.sparse.vstack(
            [scipy.sparse.hstack([self.matrix, slack, -slack]), scipy.sparse.hstack([self.agreements, none])]
        )
        aim = scipy.sparse.hstack([self.matrix[[row]], scipy.sparse.csr_array((1, 2 * rows))])
        zeros = np.zeros(self.agreements.shape[0])
        fits = scipy.optimize.LinearConstraint(matrix, np.concatenate([low, zeros]), np.concatenate([high, zeros]))
        can_miss, prices = np.where(np.isfinite(costs), np.inf, 0.0), np.where(np.isfinite(costs), costs, 0.0)
        found = scipy.optimize.milp(
            np.concatenate([np.zeros(cells), prices, prices]),
            bounds=scipy.optimize.Bounds(0, np.concatenate([np.full(cells, self._most), can_miss, can_miss])),
            constraints=[fits, scipy.optimize.LinearConstraint(aim, *beyond)],
        )
        if found.status != 0:
            return np.inf, np.empty(0, dtype=np.int64)
        missed = found.x[cells : cells + rows] + found.x[cells + rows :]
        return float(found.fun), np.flatnonzero(missed > SLACK)

    def _spend(self, cells: int, whole: bool = False) -> None:
        """Measured: a linear programme over 4,900 cells takes 0.6 s, one in whole numbers 10 to 25 s."""
        work = cells * (1 + cells / 1000) * (3 + cells / 300 if whole else 1)
        if self.effort + work > self.limit:
            raise SpentError
        self.effort += work

    def _scope(self, part: int) -> Scope:
        """All cells (-1) or those of one block."""
        if part not in self._scopes:
            matrix = scipy.sparse.csr_array(scipy.sparse.vstack([self.matrix, self.agreements]))
            cells = np.arange(self.truth.size, dtype=np.int64) if part < 0 else self._parts[part]
            inside = scipy.sparse.csr_array(matrix[:, cells])
            rows = np.flatnonzero(np.diff(inside.indptr)).astype(np.int64)
            rest = np.asarray(matrix @ self.truth - inside @ self.truth[cells])[rows]
            self._scopes[part] = Scope(cells, rows, scipy.sparse.csr_array(inside[rows]), rest)
        return self._scopes[part]


def is_whole(table: Floats) -> bool:
    """Whether a table has whole numbers, but for what HiGHS may miss."""
    return bool((np.abs(table - np.rint(table)) < SLACK).all())
