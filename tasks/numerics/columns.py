"""Raw applications as arrays: numbers in the user's units, categories as codes.

Generators of counterfactuals and distances between applicants use these. The encoding into [0, 1], for models and the
feasibility graph: ``encoding``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.terms import Kind


@dataclass(frozen=True)
class Columns:
    """The features of ``n`` applicants, before any encoding. No value is missing."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    categories: tuple[tuple[str, ...], ...]
    """For each column its categories, lowest first where they have an order; none for a continuous column."""
    values: NDArray[np.float64]
    """``(n, p)`` numbers in the user's units; of a column with categories, the number of the category."""
    logged: tuple[str, ...] = ()
    """Continuous columns that enter regressions as logarithms (``columns.NAME.scale: log``)."""

    def rows(self, chosen: NDArray[np.int64]) -> "Columns":
        """The same of some rows, ``(r,)``."""
        return Columns(self.names, self.kinds, self.categories, self.values[chosen], self.logged)


def one_hot(columns: Columns) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """An input for each category, and one for each column without categories.

    Returns:
        ``(n, d)`` inputs, numbers in the user's units; and ``(d,)`` the number of the column that each is of.
    """
    parts = [
        values[:, None] == np.arange(len(known)) if known else values[:, None]
        for known, values in zip(columns.categories, columns.values.T, strict=True)
    ]
    widths = np.array([part.shape[1] for part in parts], dtype=np.int64)
    column = np.repeat(np.arange(len(parts), dtype=np.int32), widths)
    return np.hstack([np.empty((len(columns.values), 0)), *parts]).astype(np.float64), column
