"""Applications as arrays of what was handed in: numbers in the user's units, categories as codes.

Generators of counterfactuals and distances between applicants work on these; the encoding into [0, 1] that models and
the feasibility graph use is in ``encoding``.
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

    def rows(self, chosen: NDArray[np.int64]) -> "Columns":
        """The same of some rows, ``(r,)``."""
        return Columns(self.names, self.kinds, self.categories, self.values[chosen])
