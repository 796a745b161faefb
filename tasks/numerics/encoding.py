"""Raw columns as arrays, encoding into [0, 1] and back, and distinct rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy  # its part `spatial` is loaded on first use: a spec is read without it
from numpy.typing import NDArray

from schemas.terms import Kind
from tasks.numerics.arrays import Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Raw applications as arrays: numbers in the user's units, categories as codes.
#
# Generators of counterfactuals and distances between applicants use these. The encoding into [0, 1], for models and the
# feasibility graph: ``encoding``.


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


def some(columns: Columns, places: Sequence[int]) -> Columns:
    """Some of the columns, by their places."""
    return Columns(
        tuple(columns.names[at] for at in places),
        tuple(columns.kinds[at] for at in places),
        tuple(columns.categories[at] for at in places),
        columns.values[:, list(places)],
    )


def one_hot(columns: Columns) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """An input for each category, and one for each column without categories.

    Returns:
        ``(n, d)`` inputs, numbers in the user's units; and ``(d,)`` the number of the column that each is of.
    """
    parts = [
        values[:, None] == np.arange(len(categories)) if categories else values[:, None]
        for categories, values in zip(columns.categories, columns.values.T, strict=True)
    ]
    widths = np.array([part.shape[1] for part in parts], dtype=np.int64)
    column = np.repeat(np.arange(len(parts), dtype=np.int32), widths)
    return np.hstack([np.empty((len(columns.values), 0)), *parts]).astype(np.float64), column


# --------------------------------------------------------------------------------------------------------------------
# Distinct places: equal rows are searched for once, and ties are found regardless of rounding.
#
# Public data hold thousands of applicants with the very same values. So a k-d tree over the distinct places is small.


WORKERS = 2
"""Threads of a search."""
LOOKED_AT: Final = 16_384
"""Rows whose values are looked at first; fewer are sorted as they are."""
FEW: Final = 1_024
"""Values of a coordinate that are numbered."""
MOST: Final = 2**62
"""Combinations of values that have a number each."""


@dataclass(frozen=True)
class Places:
    """``n`` rows gathered by their place; ``m`` distinct places."""

    at: Floats
    """``(m, f)`` coordinates."""
    order: Longs
    """``(n,)`` rows by place, and ascending within each."""
    start: Longs
    """``(m,)`` where a place begins in ``order``."""

    @property
    def first(self) -> Longs:
        """``(m,)`` the lowest row at each place."""
        return self.order[self.start]

    @property
    def count(self) -> Longs:
        """``(m,)`` rows at each place."""
        return np.diff(self.start, append=len(self.order))

    @cached_property
    def place(self) -> Longs:
        """``(n,)`` the place of each row."""
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.repeat(np.arange(len(self.start)), self.count)
        return places

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """``(m, k)`` sums over the rows of each place of values ``(n, k)``, which lie as ``order`` has them."""
        n, ends = len(values), np.append(self.start, len(values)).astype(np.int32)
        ones = np.ones(n, values.dtype), np.arange(n, dtype=np.int32), ends
        totals: NDArray[Any] = scipy.sparse.csr_array(ones, (len(self.start), n)) @ values
        return totals


def gather(coordinates: Floats) -> Places:
    """The distinct places of rows ``(n, f)``."""
    key = _lexical(coordinates) if len(coordinates) > LOOKED_AT else None
    if key is None:
        order = np.lexsort(coordinates.T[::-1])
        ordered = coordinates[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    else:
        order = np.argsort(key, kind="stable")
        new = np.diff(key[order], prepend=-1) > 0
    start = np.flatnonzero(new)
    return Places(coordinates[order[start]], order, start)


def _lexical(coordinates: Floats) -> Longs | None:
    """``(n,)`` numbers that sort as the rows do; None where a coordinate has many values, or one that is no number.

    Of codes and bins, which are most of an audit's, numbers sort in a fraction of the time of rows.
    """
    key, size = np.zeros(len(coordinates), np.int64), 1
    for column in map(np.ascontiguousarray, coordinates.T):
        levels = np.unique(column[:: -(-len(column) // LOOKED_AT)])
        if len(levels) > FEW:
            return None
        at = np.searchsorted(levels, column).clip(max=len(levels) - 1)
        if (levels[at] != column).any():
            levels, at = np.unique(column, return_inverse=True)
        size *= len(levels)
        if len(levels) > FEW or not np.isfinite(levels).all() or size > MOST:
            return None
        key = key * len(levels) + at
    return key


def nearest(tree: "scipy.spatial.cKDTree", rank: Longs, queries: Floats) -> tuple[Longs, Floats]:
    """The place nearest to each query, and of several equally near the one of the lowest rank.

    Distances are equal if they are so in single precision: one unit above and one unit below are equally far, whatever
    the last bits of the doubles say. A search does not promise any order among equals, so it is widened for as long as
    its last neighbour is as near as its first.

    Args:
        tree: ``m`` distinct places.
        rank: ``(m,)`` for example the lowest row at each.
        queries: ``(q, f)``.

    Returns:
        Places, ``(q,)``, and their distances, ``(q,)``.
    """
    place, distance = np.empty(len(queries), np.int64), np.empty(len(queries))
    # queries that lie close together read the same part of the tree: a third faster from 100,000 places
    pending = scipy.spatial.cKDTree(queries, balanced_tree=False).indices
    k = min(2, tree.n)
    while len(pending):
        away, neighbours = tree.query(queries[pending], k=np.arange(1, k + 1), workers=WORKERS)
        tied = away.astype(np.float32) == away[:, :1].astype(np.float32)
        best = np.where(tied, rank[neighbours], np.iinfo(np.int64).max).argmin(axis=1)
        at = np.arange(len(pending))
        place[pending], distance[pending] = neighbours[at, best], away[at, best]
        pending = pending[tied[:, -1]] if k < tree.n else pending[:0]
        k = min(4 * k, tree.n)
    return place, distance


# --------------------------------------------------------------------------------------------------------------------
# Encoding of columns into [0, 1], and back (FGCE, appendix; clipping is ours, see docs/methods/index.md).
#
# A continuous column is clipped at its 1st and 99th percentile, cut into log2(unique) + 1 or a given number of bins of
# equal width, and scaled so that the first bin is 0 and the last is 1. Ordered categories are spread evenly over [0,
# 1]; other categories become one column each. Missing values are not accepted.


Codes = Ints

CLIP = (0.01, 0.99)
"""Quantiles at which a continuous column is clipped: public HMDA holds loan-to-value ratios of 9,999."""


@dataclass(frozen=True)
class Scale:
    """How a continuous column is laid onto [0, 1]."""

    low: float
    high: float
    bins: int | None
    """Number of equal-width bins, None for no bins."""

    @property
    def constant(self) -> bool:
        """Whether all values of the column became one, or lie closer than a double can divide by."""
        return bool(self.high - self.low < np.finfo(np.float64).tiny)


def fit_scale(values: Floats, *, clip: bool, bins: bool | int) -> Scale:
    """The scale of a column from its finite values ``(n,)``; ``bins`` may be a number, or whether there are any."""
    low, high = np.quantile(values, CLIP, method="inverted_cdf") if clip else (values.min(), values.max())
    if bins is True:
        inside = values[(values >= low) & (values <= high)]
        bins = max(1, int(np.log2(len(np.unique(inside)))) + 1)
    return Scale(float(low), float(high), bins or None)


def encode_continuous(values: Floats, scale: Scale) -> Floats:
    """``(n,)`` in [0, 1]; 0 throughout for a constant column."""
    if scale.constant:
        return np.zeros(len(values))
    inside = np.clip(values, scale.low, scale.high)
    if scale.bins is None:
        return _unit(inside, scale.low, scale.high)
    index = np.floor((inside - scale.low) / (scale.high - scale.low) * scale.bins)
    return _unit(np.minimum(index, scale.bins - 1), 0, max(scale.bins - 1, 1))


def _unit(values: Floats | Codes, low: float, high: float) -> Floats:
    """Values between ``low`` and ``high`` laid onto [0, 1], rounded as scikit-learn's ``MinMaxScaler`` rounds.

    The paper's matrices were made with it, and whether a distance is below epsilon can hang on the last bit.
    """
    factor = 1 / (high - low)
    return np.clip(values * factor - low * factor, 0.0, 1.0)


def encode_ordered(codes: Codes, categories: int) -> Floats:
    """Category numbers ``(n,)`` from 0 spread over [0, 1]."""
    return _unit(codes, 0, max(categories - 1, 1))


def decode_ordered(encoded: Floats, categories: int) -> Codes:
    """The category numbers behind ``encode_ordered``."""
    return np.rint(encoded * max(categories - 1, 1)).astype(np.int32)


def encode_one_hot(codes: Codes, categories: int) -> Floats:
    """``(n, categories)`` of 0 and 1."""
    out: Floats = (codes[:, None] == np.arange(categories)).astype(np.float64)
    return out


def decode_one_hot(encoded: Floats) -> Codes:
    """The category numbers behind ``encode_one_hot``."""
    out: Codes = encoded.argmax(axis=1).astype(np.int32)
    return out


def category_codes(values: Sequence[str], categories: Sequence[str]) -> Codes:
    """Number of each value among the categories, -1 where it is none of them."""
    number = {category: i for i, category in enumerate(categories)}
    return np.fromiter((number.get(value, -1) for value in values), np.int32, len(values))
