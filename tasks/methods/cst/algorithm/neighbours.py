"""Exact nearest neighbours among applicants with numbers and categories."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from schemas.errors import DataQualityError, SpecError, nearest
from schemas.terms import Kind
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import CLIP, Columns

# --------------------------------------------------------------------------------------------------------------------
# Computes the distance of two applicants from the plain differences of coordinates made from their columns.
#
# The distance is the mean over attributes of their differences (CST, section 3.2, equation 6). Numbers and orders:
# |difference| over the range, or of z-scores. Categories: 0 if equal, else 1 (the paper's text prints the reverse). The
# paper names two more as future work. ``hvdm`` is the heterogeneous value difference of Wilson and Martinez (1997,
# section 4), averaged in the same manner: numbers over 4 standard deviations, categories by the difference of their
# decisions. ``propensity`` is the difference of two scores of belonging to the protected group.
#
# Fit and transformation of a scale are separate, because the paper fits one scale to the factual data and one to the
# counterfactual data. Search: ``search``.


NUMERIC = (Kind.CONTINUOUS, Kind.ORDINAL)
"""Kinds of which differences are taken; of the others it only counts whether they are equal."""


@dataclass(frozen=True)
class Space:
    """Applicants as coordinates.

    The distance is (nominal distances + |d1| + |d2| + ...) / ``divisor``, summed in that order and not rounded.
    """

    numeric: Floats
    """``(n, a)`` coordinates, scaled."""
    nominal: Floats
    """``(n, b)`` numbers of categories, or the positions of the categories if they are not 0 or 1 apart."""
    overlap: bool
    """Whether two nominal values are 0 or 1 apart, and not their difference."""
    divisor: float
    """Number of attributes. The authors' code counts the protected one as well; ``replace`` it for their figures."""

    @cached_property
    def combination(self) -> Longs:
        """``(n,)`` number of each row's combination of nominal values."""
        order, new = _by_combination(self.nominal)
        numbers = np.empty(len(order), np.min_scalar_type(int(new.sum())))  # of 16 bits at most they are sorted fastest
        numbers[order] = np.cumsum(new) - 1
        return numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of numeric and of nominal columns."""
        return self.numeric.shape[1], self.nominal.shape[1]

    def rows(self, chosen: Longs | slice) -> "Space":
        """The same of some rows."""
        return replace(self, numeric=self.numeric[chosen], nominal=self.nominal[chosen])


@dataclass(frozen=True)
class Scale:
    """What lays attributes out in a space. Arrays are by numeric attribute, in the order of the columns."""

    low: Floats
    high: Floats
    """``(a,)`` values are clipped to these first; infinite where they are not."""
    centre: Floats
    width: Floats
    """``(a,)`` then centred and divided; infinite for a constant attribute, which so adds no distance."""
    positions: tuple[Floats, ...] | None = None
    """For each nominal attribute where its categories lie, ``(categories,)``; None where they are 0 or 1 apart."""
    propensity: tuple[Floats, float] | None = None
    """Weights, ``(w,)``, and intercept of the score that replaces all attributes, if one does."""


def looked_at(columns: Columns, settings: CstSettings, protected: Sequence[str]) -> Columns:
    """The attributes of the distance: those of the settings, else all, but never the protected ones.

    Args:
        columns: All features.
        settings: ``attributes`` that are asked for.
        protected: Columns that the protected attribute is made of.

    Raises:
        SpecError: If an attribute is not a column or named twice, or none is left.
    """
    for i, name in enumerate(settings.attributes):
        location = ("methods", "cst", "attributes", i)
        if name not in columns.names:
            raise SpecError(f"attributes names {name!r}, which is no feature; {nearest(name, columns.names)}", location)
        if name in settings.attributes[:i]:
            raise SpecError(f"attributes names {name!r} twice; name it once", location)
    names = [name for name in settings.attributes or columns.names if name not in protected]
    if not names:
        message = f"no attribute is left for the distance besides {', '.join(protected)}; add features to the spec"
        raise SpecError(message, ("methods", "cst", "attributes"))
    at = [columns.names.index(name) for name in names]
    kinds, categories = tuple(columns.kinds[i] for i in at), tuple(columns.categories[i] for i in at)
    logged = tuple(name for name in columns.logged if name in names)
    return Columns(tuple(names), kinds, categories, columns.values[:, at], logged)


def fit(attributes: Columns, settings: CstSettings, favourable: Bools, protected: Bools) -> Scale:
    """Fit a scale to all ``n`` rows.

    Args:
        attributes: What the distance looks at (``looked_at``).
        settings: ``distance``, ``scaling`` (of ``overlap`` only) and ``clip`` (of continuous attributes only).
        favourable: ``(n,)`` decisions, which ``hvdm`` looks at.
        protected: ``(n,)`` members of the protected group, which ``propensity`` looks at.

    Raises:
        DataQualityError: If a value is missing or not finite, or ``propensity`` is fitted to one group alone.
    """
    _require_finite(attributes)
    numbers = attributes.values[:, _numeric(attributes)]
    low, high = _bounds(attributes, settings.clip)
    inside = np.clip(numbers, low, high)
    if settings.distance == "overlap" and settings.scaling == "range":
        return Scale(low, high, inside.min(axis=0), np.where(_varies(inside), np.ptp(inside, axis=0), np.inf))
    # Mean and population standard deviation of each column, `(a,)` each; infinite deviation for a constant.
    mean = np.array([math.fsum(column) for column in inside.T]) / len(inside)
    variance = np.array([math.fsum(column) for column in ((inside - mean) ** 2).T]) / len(inside)
    scale = Scale(low, high, mean, np.where(_varies(inside), np.sqrt(variance), np.inf))
    if settings.distance == "hvdm":
        # where the categories of each nominal attribute lie, so that differences are normalised value differences
        positions = []
        for column in np.flatnonzero(~_numeric(attributes)):
            codes, categories = attributes.values[:, column].astype(np.int64), len(attributes.categories[column])
            rows = np.bincount(codes, minlength=categories)
            share = np.bincount(codes, favourable, minlength=categories) / np.maximum(rows, 1)
            positions.append(np.sqrt(2) * np.where(rows > 0, share, favourable.mean()))
        return replace(scale, width=4 * scale.width, positions=tuple(positions))
    if settings.distance == "propensity":
        predictors = _predictors(attributes, scale)
        if protected.all() or not protected.any():
            raise DataQualityError(
                "a propensity score needs rows inside and outside the protected group; found one of both"
            )
        model = LogisticRegression(max_iter=1000).fit(predictors, protected)
        return replace(scale, propensity=(model.coef_[0], float(model.intercept_[0])))
    return scale


def beyond(attributes: Columns, settings: CstSettings) -> tuple[tuple[str, ...], Bools]:
    """Which values are clipped before a scale is fitted: the continuous attributes, and ``(n, c)`` for each of them."""
    chosen = np.array([settings.clip and kind == Kind.CONTINUOUS for kind in attributes.kinds], np.bool_)
    names = tuple(name for name, is_clipped in zip(attributes.names, chosen, strict=True) if is_clipped)
    low, high = (ends[chosen[_numeric(attributes)]] for ends in _bounds(attributes, settings.clip))
    numbers = attributes.values[:, chosen]
    return names, (numbers < low) | (numbers > high)


def fit_imagined(
    factual: Scale, imagined: Columns, settings: CstSettings, favourable: Bools, protected: Bools
) -> Scale:
    """The scale of counterfactual data: z-scores are refitted, as in the authors' code; all else keeps its scale.

    Args:
        factual: The scale of the factual data.
        imagined: The attributes of all rows, the protected ones replaced by their counterfactuals.
        settings: As for ``fit``.
        favourable: As for ``fit``.
        protected: As for ``fit``.
    """
    if settings.distance == "overlap" and settings.scaling == "z_scores":
        return fit(imagined, settings, favourable, protected)
    return factual


def place(attributes: Columns, scale: Scale) -> Space:
    """Lay ``n`` applicants out in the space of a scale.

    Raises:
        DataQualityError: If a value is missing or not finite.
    """
    _require_finite(attributes)
    if scale.propensity is not None:
        weights, intercept = scale.propensity
        score = expit(_predictors(attributes, scale) @ weights + intercept)
        return Space(score[:, None], np.zeros((len(score), 0)), True, 1.0)
    nominal = attributes.values[:, ~_numeric(attributes)]
    if scale.positions is not None:
        at = [position[codes.astype(np.int64)] for position, codes in zip(scale.positions, nominal.T, strict=True)]
        nominal = np.array(at).reshape(len(at), len(nominal)).T
    return Space(_scaled(attributes, scale), nominal, scale.positions is None, float(len(attributes.names)))


def _numeric(attributes: Columns) -> Bools:
    """Which attributes are numbers or orders, ``(p,)``."""
    return np.array([kind in NUMERIC for kind in attributes.kinds], np.bool_)


def _require_finite(attributes: Columns) -> None:
    """Refuse missing values: a distance that skips them would make applicants with unknown values similar."""
    for name, values in zip(attributes.names, attributes.values.T, strict=True):
        missing = int((~np.isfinite(values)).sum())
        if missing and missing == len(values):
            raise DataQualityError(f"{name!r} has no value in any row; leave it out of the attributes of the distance")
        if missing:
            message = f"{name!r} is missing or infinite in {missing} of {len(values)} rows; declare what such values"
            raise DataQualityError(f"{message} mean, refuse the rows, or leave it out of the attributes")


def _bounds(attributes: Columns, clip: bool) -> tuple[Floats, Floats]:
    """Values to which each numeric attribute is clipped, ``(a,)`` each; infinite for orders and without clipping."""
    chosen = _numeric(attributes)
    low, high = np.full(chosen.sum(), -np.inf), np.full(chosen.sum(), np.inf)
    for i, column in enumerate(np.flatnonzero(chosen)):
        if clip and attributes.kinds[column] == Kind.CONTINUOUS:
            low[i], high[i] = np.quantile(attributes.values[:, column], CLIP, method="inverted_cdf")
    return low, high


def _varies(numbers: Floats) -> Bools:
    """Which columns hold more than one value, ``(a,)``."""
    varies: Bools = numbers.max(axis=0) > numbers.min(axis=0)
    return varies


def _scaled(attributes: Columns, scale: Scale) -> Floats:
    """Coordinates of the numeric attributes, ``(n, a)``."""
    numbers = np.clip(attributes.values[:, _numeric(attributes)], scale.low, scale.high)
    return (numbers - scale.centre) / scale.width


def _predictors(attributes: Columns, scale: Scale) -> Floats:
    """What the propensity score is made of, ``(n, w)``: scaled numbers, and one column per category."""
    sets = [
        attributes.values[:, [column]] == np.arange(len(attributes.categories[column]))
        for column in np.flatnonzero(~_numeric(attributes))
    ]
    return np.column_stack([_scaled(attributes, scale), *sets]).astype(np.float64)


# --------------------------------------------------------------------------------------------------------------------
# The compiled search of nearest neighbours: one query at a time, block by block of rows that lie close together.
#
# A row's distance is summed in a fixed order: its nominal distance, then |d1|, |d2|, ... in the order of the numeric
# columns; the division comes last. Adding a non-negative number never decreases a rounded sum, so a part of that sum in
# the same order is a lower bound to the last bit. Rows are skipped by this bound, and the search stays exact, ties
# included.
#
# Scope: the loops. Inner loops take arrays and no tuples, because numba counts references to each array of a tuple at
# every call. Blocks and work units: ``search``.


BLOCK = 64
"""Most rows of a block: few enough for the first cache, enough for a loop over them to use wide registers."""

NOBODY = np.iinfo(np.int64).max
"""The worst of all keys: the placeholder where no row was found."""

BANDS = 64
"""Bands into which groups are sorted by nominal distance; up to 64 nominal columns each mismatch has its own."""

SPARE = 32
"""Rows kept beyond the k nearest, at least, before the furthest of them are dropped."""

SHORT = 12
"""So few rows are sorted by insertion."""

SLACK = 1e-15
"""Above the rounding of a multiplication and a division together (twice 2^-53, relatively)."""


class Blocks(NamedTuple):
    """The rows that may be neighbours: grouped by nominal values, each group cut into blocks. For numba, a tuple."""

    key: Longs
    """``(m,)`` id of each row, or its negative; of rows at equal distance the one with the smaller key is nearer."""
    numeric: Floats
    """``(a, m)`` coordinates, one column after the other, so that a block of a column is read in one go."""
    nominal: Floats
    """``(g, b)`` nominal values that the rows of a group share."""
    overlap: bool
    """Whether two nominal values are 0 or 1 apart, and not their difference."""
    divisor: float
    block_of_group: Longs
    """``(g + 1,)`` first block of each group."""
    row_of_block: Longs
    """``(blocks + 1,)`` first row of each block."""
    low: Floats
    """``(a, blocks)`` smallest coordinates in each block."""
    high: Floats
    """``(a, blocks)`` largest coordinates in each block."""


class Queries(NamedTuple):
    """Applicants for the neighbour search."""

    numeric: Floats
    """``(q, a)`` coordinates."""
    nominal: Floats
    """``(q, b)`` nominal values."""
    combination: Longs
    """``(q,)`` number of the combination of nominal values, from 0."""
    excluded: Longs
    """``(q,)`` key of the row that is not to be returned, or ``NOBODY``."""


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def search(blocks: Blocks, queries: Queries, order: Longs, distances: Floats, keys: Longs) -> None:
    """Find the nearest rows of some queries.

    Args:
        blocks: The rows that may be neighbours.
        queries: All queries.
        order: The queries to answer; those of one combination of nominal values stand together.
        distances: ``(q, k)``, filled in, nearest first; holds the largest distance that counts when handed in.
        keys: ``(q, k)``, filled in; holds ``NOBODY`` when handed in.
    """
    nominal, bound = np.empty(blocks.nominal.shape[0]), np.empty(blocks.row_of_block.shape[0] - 1)
    groups, combination, k = np.zeros(0, np.int64), -1, keys.shape[1]
    near, near_keys = np.empty(k + max(k // 2, SPARE)), np.empty(k + max(k // 2, SPARE), np.int64)
    for query in order:
        if queries.combination[query] != combination:
            combination = queries.combination[query]
            _nominal_distances(blocks.nominal, queries.nominal[query], blocks.overlap, nominal)
            groups = _nearly_ordered(nominal)
        values, excluded = queries.numeric[query], queries.excluded[query]
        furthest = distances[query, 0]
        many = min(k, _search_groups(blocks, groups, nominal, values, excluded, k, furthest, near, near_keys, bound))
        _sort(near, near_keys, many)
        distances[query, :many], keys[query, :many] = near[:many], near_keys[:many]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _search_groups(
    blocks: Blocks,
    groups: Longs,
    nominal: Floats,
    values: Floats,
    excluded: int,
    k: int,
    furthest: float,
    near: Floats,
    near_keys: Longs,
    bound: Floats,
) -> int:
    """Keep the rows nearest to ``values``, over all groups by their nominal distance, and return how many.

    The ``k`` best come first, or all where they are fewer; ``near`` has room for more, so that they are only told from
    the rest when it is full. ``bound`` is room to work in.
    """
    sums, count, worst, worst_key = np.empty(BLOCK), 0, furthest, NOBODY
    for group in groups:
        if nominal[group] > _limit(worst, blocks.divisor):
            continue
        first, last = blocks.block_of_group[group], blocks.block_of_group[group + 1]
        bound[first:last] = nominal[group]
        _add_gaps(blocks.low[:, first:last], blocks.high[:, first:last], values, bound[first:last])
        middle = first + np.argmin(bound[first:last])
        # outwards from the nearest block, because blocks that follow each other lie close together
        for step in range(2 * max(middle - first + 1, last - middle)):
            block = middle + (step + 1) // 2 if step % 2 else middle - step // 2
            if first <= block < last and bound[block] <= _limit(worst, blocks.divisor):
                start, stop = blocks.row_of_block[block], blocks.row_of_block[block + 1]
                sums[:] = nominal[group]
                _add_differences(blocks.numeric[:, start:stop], values, sums)
                limit = _limit(worst, blocks.divisor)
                for i in range(stop - start):
                    key = blocks.key[start + i]
                    if sums[i] <= limit and key != excluded:
                        distance = sums[i] / blocks.divisor
                        if not _before(distance, key, worst, worst_key):
                            continue
                        near[count], near_keys[count] = distance, key
                        count += 1
                        if count == near.shape[0] or (count == k and worst_key == NOBODY):
                            worst, worst_key = _select(near, near_keys, count, k)
                            count, limit = k, _limit(worst, blocks.divisor)
    if count > k:
        _select(near, near_keys, count, k)
    return min(count, k)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nominal_distances(groups: Floats, values: Floats, overlap: bool, out: Floats) -> None:
    """Sum over the nominal columns of the distance of each group, ``(g, b)``, from ``values``."""
    for group in range(groups.shape[0]):
        out[group] = 0.0
        for column in range(groups.shape[1]):
            difference = abs(groups[group, column] - values[column])
            out[group] += difference if not overlap else 1.0 if difference > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nearly_ordered(nominal: Floats) -> Longs:
    """The groups by their nominal distance, cut into ``BANDS``: near ones first is a matter of speed alone."""
    order, start = np.empty(nominal.shape[0], np.int64), np.zeros(BANDS + 2, np.int64)
    width = max(nominal.max(), 1.0) / BANDS if nominal.shape[0] else 1.0
    for distance in nominal:
        start[int(distance / width) + 1] += 1
    start = np.cumsum(start)
    for group in range(nominal.shape[0]):
        band = int(nominal[group] / width)
        order[start[band]] = group
        start[band] += 1
    return order


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_gaps(low: Floats, high: Floats, values: Floats, out: Floats) -> None:
    """Add the least that the numbers of a row in each box ``low .. high``, ``(a, blocks)``, differ from ``values``."""
    for column in range(values.shape[0]):
        least, most, value = low[column], high[column], values[column]
        for block in range(out.shape[0]):
            out[block] += max(least[block] - value, value - most[block], 0.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_differences(numeric: Floats, values: Floats, out: Floats) -> None:
    """Add how far each row of a block, ``(a, rows)``, is from ``values`` in numbers."""
    for column in range(values.shape[0]):
        row_values, value = numeric[column], values[column]
        for i in range(row_values.shape[0]):
            out[i] += abs(row_values[i] - value)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _limit(distance: float, divisor: float) -> float:
    """A number such that every sum above it is above ``distance`` after division, too."""
    return distance * divisor * (1 + SLACK) + np.finfo(np.float64).tiny


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _before(distance: float, key: int, other: float, other_key: int) -> bool:
    """Whether a row is nearer than another, or as near with a smaller key."""
    return distance < other or (distance == other and bool(key < other_key))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _split(near: Floats, keys: Longs, low: int, high: int) -> int:
    """Part ``low .. high`` so that no row up to the place returned is further than a row after it (Hoare)."""
    middle = (low + high) // 2
    distance, key = near[middle], keys[middle]
    i, j = low - 1, high + 1
    while True:
        i += 1
        while _before(near[i], keys[i], distance, key):
            i += 1
        j -= 1
        while _before(distance, key, near[j], keys[j]):
            j -= 1
        if i >= j:
            return j
        near[i], near[j] = near[j], near[i]
        keys[i], keys[j] = keys[j], keys[i]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _select(near: Floats, keys: Longs, size: int, k: int) -> tuple[float, int]:
    """Bring the ``k`` nearest of ``size`` rows to the front, and return the furthest of them."""
    low, high = 0, size - 1
    while low < high:
        end = _split(near, keys, low, high)
        if k - 1 <= end:
            high = end
        else:
            low = end + 1
    return near[k - 1], keys[k - 1]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sort(near: Floats, keys: Longs, size: int) -> None:
    """Sort the first ``size`` rows in place, nearest first."""
    pending, ends = [0], [size - 1]
    while pending:
        low, high = pending.pop(), ends.pop()
        while high - low > SHORT:
            end = _split(near, keys, low, high)
            pending.append(end + 1)
            ends.append(high)
            high = end
        for i in range(low + 1, high + 1):
            distance, key, place = near[i], keys[i], i
            while place > low and _before(distance, key, near[place - 1], keys[place - 1]):
                near[place], keys[place] = near[place - 1], keys[place - 1]
                place -= 1
            near[place], keys[place] = distance, key


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lay_close(numeric: Floats, rows: Longs, starts: Longs) -> None:
    """Order the rows of each group so that every ``BLOCK`` of them lie close: halved where they spread most.

    Args:
        numeric: ``(n, a)`` coordinates.
        rows: ``(m,)`` by group, ordered in place.
        starts: ``(g + 1,)`` where groups begin.
    """
    along, least, most = np.empty(rows.shape[0]), np.empty(numeric.shape[1]), np.empty(numeric.shape[1])
    for group in range(starts.shape[0] - 1):
        pending, ends = [starts[group]], [starts[group + 1]]
        while pending:
            low, high = pending.pop(), ends.pop()
            if high - low <= BLOCK:
                continue
            least[:], most[:] = np.inf, -np.inf
            for row in rows[low:high]:
                for column in range(numeric.shape[1]):
                    least[column] = min(least[column], numeric[row, column])
                    most[column] = max(most[column], numeric[row, column])
            widest = np.argmax(most - least)
            for i in range(low, high):
                along[i] = numeric[rows[i], widest]
            # whole blocks, so that only a group's last one is short
            middle = low + BLOCK * ((high - low + BLOCK) // (2 * BLOCK))
            _select(along[low:high], rows[low:high], high - low, middle - low)
            pending.append(low)
            ends.append(middle)
            pending.append(middle)
            ends.append(high)


# --------------------------------------------------------------------------------------------------------------------
# Exact nearest neighbours among applicants described by numbers and by categories (CST, section 3).
#
# Rows are grouped by their combination of nominal values, because one mismatch is far. Within a group they are cut into
# blocks of close rows, as in a k-d tree. A query visits the groups by nominal distance and skips every block that
# cannot hold one of the k nearest. There is no approximation and no matrix of distances.
#
# Scope: the index, the order of work and its memory. Loops: ``kernel``. Coordinates: ``distance``.


SHARES = 8
"""Pieces of work per thread, so that a thread with easy queries can take over from another."""

FEW_PAIRS = 2_000_000
"""Pairs of a query and a row that one thread looks at in some hundredths of a second at most."""

NEIGHBOUR_BYTES = 64
"""Memory of one neighbour: its id and its distance, and what counting among neighbours takes as well."""


class Neighbours(NamedTuple):
    """The rows nearest to each query, nearest first."""

    rows: Longs
    """``(q, k)`` row ids; -1 where fewer than ``k`` rows are within reach."""
    distances: Floats
    """``(q, k)`` unrounded distances; ``inf`` where there is no row."""


def index(space: Space, members: Longs) -> Blocks:
    """Lay out the rows among which neighbours are sought.

    Args:
        space: All ``n`` rows.
        members: ``(m,)`` distinct rows that may be neighbours, such as the protected ones; their numbers are row ids.
    """
    combination = space.combination[members]
    order = np.argsort(combination, kind="stable")
    rows = members[order].astype(np.int64)
    starts = np.append(np.flatnonzero(np.diff(combination[order].astype(np.int64), prepend=-1)), len(rows))
    if space.numeric.shape[1]:
        _lay_close(np.ascontiguousarray(space.numeric, np.float64), rows, starts)
    nominal = space.nominal[rows[starts[:-1]]]
    blocks = -(-np.diff(starts) // BLOCK)
    first = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
    within = np.arange(first[-1]) - np.repeat(first[:-1], blocks)
    row_of_block = np.append(np.repeat(starts[:-1], blocks) + BLOCK * within, len(rows)).astype(np.int64)
    numeric = np.ascontiguousarray(space.numeric[rows].T, dtype=np.float64)
    return Blocks(
        key=rows,
        numeric=numeric,
        nominal=np.ascontiguousarray(nominal, dtype=np.float64),
        overlap=space.overlap,
        divisor=float(space.divisor),
        block_of_group=first,
        row_of_block=row_of_block,
        low=np.minimum.reduceat(numeric, row_of_block[:-1], axis=1),
        high=np.maximum.reduceat(numeric, row_of_block[:-1], axis=1),
    )


def _by_combination(nominal: Floats, *, then: Floats | None = None) -> tuple[Longs, Bools]:
    """The rows by their nominal values (and then by ``then``, ``(n,)``), and which of them begin a new combination."""
    minor = np.zeros(len(nominal)) if then is None else then
    order = np.lexsort((minor, *nominal.T[::-1]))
    new = np.ones(len(nominal), np.bool_)
    new[1:] = (nominal[order[1:]] != nominal[order[:-1]]).any(axis=1)
    return order, new


def nearest_rows(
    blocks: Blocks, queries: Space, k: int, settings: CstSettings, exclude: Longs | None = None
) -> Neighbours:
    """The ``k`` rows nearest to each query, by distance and then by row id, according to ``settings.ties``.

    Args:
        blocks: The rows that may be neighbours.
        queries: ``q`` applicants, placed in the same space.
        k: Number of neighbours of each.
        settings: ``ties``, and ``maximum_distance``: a row exactly that far still counts.
        exclude: ``(q,)`` a row id that is never returned to the query, or -1.

    Raises:
        ValueError: If the queries' columns are not those of the rows, or ``k`` is not positive.
    """
    if queries.shape != (len(blocks.numeric), blocks.nominal.shape[1]):
        raise ValueError(f"queries have {queries.shape} numeric and nominal columns; expected those of the rows")
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    sign = 1 if settings.ties == "ascending" else -1
    keys = np.full((len(queries.numeric), k), NOBODY)
    distances = np.full(keys.shape, np.inf if settings.maximum_distance is None else settings.maximum_distance)
    # queries are answered in an order in which those after each other read the same blocks
    numeric = np.array(queries.numeric, np.float64, order="C")
    nominal = np.array(queries.nominal, np.float64, order="C")
    order, new = _by_combination(nominal, then=numeric[:, 0] if numeric.shape[1] else None)
    combination = np.empty(len(order), np.int64)
    combination[order] = np.cumsum(new) - 1
    excluded = np.full(len(keys), NOBODY) if exclude is None else np.where(exclude < 0, NOBODY, sign * exclude)
    signed, kernel_queries = blocks._replace(key=sign * blocks.key), Queries(numeric, nominal, combination, excluded)
    _run(signed, kernel_queries, order, distances, keys)
    missing = keys == NOBODY
    keys *= sign
    keys[missing], distances[missing] = -1, np.inf
    return Neighbours(keys, distances)


def _run(blocks: Blocks, queries: Queries, order: Longs, distances: Floats, keys: Longs) -> None:
    """Search on all cores; a small search in this thread, as threads would take longer to start.

    By threads of our own: numba's bear only one caller at a time, and stages of a flow may search at the same time.
    """
    if len(order) * blocks.numeric.shape[1] <= FEW_PAIRS:
        search(blocks, queries, order, distances, keys)
        return
    threads = numba.config.NUMBA_NUM_THREADS
    shares = np.array_split(order, SHARES * threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda share: search(blocks, queries, share, distances, keys), shares):
            pass


def in_batches(
    blocks: Blocks, queries: Space, k: int, settings: CstSettings, exclude: Longs | None = None
) -> Iterator[tuple[slice, Neighbours]]:
    """Same as ``nearest``, in batches of at most ``settings.memory_mb`` megabytes of neighbours.

    Yields:
        Which queries the batch holds, and their neighbours.
    """
    size = max(1, settings.memory_mb * 1_000_000 // (NEIGHBOUR_BYTES * k))
    for start in range(0, len(queries.numeric), size):
        batch = slice(start, start + size)
        yield batch, nearest_rows(blocks, queries.rows(batch), k, settings, None if exclude is None else exclude[batch])
