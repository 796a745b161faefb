"""Witnesses: tables of whole people that agree among their blocks, with the sums that counts are of them."""

import numpy as np
from scipy import sparse

from tasks.numerics.arrays import Bools, Floats


class Witnesses:
    """Tables found so far, the true one first. A table stays: what is published later may fit it again."""

    def __init__(self, truth: Floats, rows: sparse.csr_array) -> None:
        self._tables: list[Floats] = []
        self._values = np.empty((16, rows.shape[0]))
        self.keep(truth, rows)

    @property
    def values(self) -> Floats:
        """Rows of counts by table, ``(tables, rows)``."""
        return self._values[: len(self._tables)]

    def keep(self, table: Floats, rows: sparse.csr_array) -> Floats:
        """Keep a table; its rows, ``(rows,)``."""
        if len(self._tables) == len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        values = np.asarray(rows @ table)
        self._values[len(self._tables)] = values
        self._tables.append(table)
        return values

    def renew(self, rows: sparse.csr_array) -> None:
        """Compute the sums anew, after rows were added."""
        tables, self._tables = self._tables, []
        self._values = np.empty((max(len(tables), 16), rows.shape[0]))
        for table in tables:
            self.keep(table, rows)

    def fitting(self, low: Floats, high: Floats) -> Bools:
        """Which tables fit the bounds, ``(tables,)``. ValueError where the true one does not."""
        values = self.values
        fitting = np.asarray(((values >= low) & (values <= high)).all(axis=1))
        if not fitting[0]:
            raise ValueError("what is published does not hold of the people themselves")
        return fitting
