"""Array types of numerical code, and matrices of many rows kept as what their columns are made of."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

CONSTANT = 1e-10
"""A standard deviation this small relative to the largest value is rounding."""
AT_ONCE = 8_192
"""Rows of a packed matrix that are made at once."""
CACHED = 2_048
"""Rows of which cross products are added at once."""


@dataclass(frozen=True)
class Scale:
    """How values get mean 0 and standard deviation 1. Safe for values up to 1e308."""

    largest: float
    mean: float
    sd: float
    """Both as shares of the largest value; 0 where values do not vary."""

    @classmethod
    def of(cls, values: Floats) -> "Scale":
        """The scale of these values."""
        largest = float(np.abs(values).max(initial=0.0))
        if largest == 0:
            return cls(0.0, 0.0, 0.0)
        scaled = values / largest
        mean = scaled.mean()
        scaled -= mean
        sd = float(np.sqrt(np.mean(np.square(scaled, out=scaled))))
        return cls(largest, mean, 0.0 if sd <= CONSTANT else sd)

    def standardised(self, values: Floats) -> Floats:
        """Values on the scale; zeros where they do not vary."""
        if self.sd == 0:
            return np.zeros(len(values))
        scaled: Floats = values / self.largest
        scaled -= self.mean
        scaled /= self.sd
        return scaled


@dataclass(frozen=True, eq=False)
class Column:
    """What one column of a matrix is made of: values as they are, an indicator of a level, or a number on a scale."""

    source: NDArray[Any]
    """``(n,)``."""
    level: int | None = None
    """The column is 1 where the source has this level, 0 elsewhere."""
    ends: tuple[float, float] | None = None
    """At which a number is cut off."""
    scales: tuple[Scale, ...] = ()
    """Of a number, and where the column is its square, of the squares of the number on its scale."""

    def number(self, rows: slice | Longs) -> NDArray[Any]:
        """The source of some rows, cut off and on its scale."""
        values = self.source[rows]
        if self.ends is not None:
            values = np.clip(values, *self.ends)
        return self.scales[0].standardised(values) if self.scales else values


@dataclass(frozen=True, eq=False)
class Packed:
    """``(n, p)`` a matrix of many rows as numbers and levels: the indicators of a category take one code a row.

    Sums and cross products are taken by level, so that they take a fraction of the time of an array with indicators.
    Made rows are the same to the last bit as those of an array that holds all of them.
    """

    numbers: Floats
    """``(n, k)``; some columns may stand here that are none of the matrix, behind those that are."""
    codes: NDArray[np.uint32]
    """``(n, c)`` level of each row in each category, those of all categories numbered together; ``levels`` of none."""
    levels: int
    """Of all categories."""
    places: Longs
    """``(p,)`` of each column: a column of ``numbers``, or of an indicator -1 less its level."""
    category: Longs
    """``(levels,)`` the column of ``codes`` that each level stands in."""

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "Packed":
        """Columns by what they are made of; those of one source follow each other."""
        rows, width = len(columns[0].source), sum(column.level is None for column in columns)
        numbers, codes, places, counts = np.empty((rows, width)), list[Ints](), list[int](), list[int]()
        levels = filled = 0
        for _, group in itertools.groupby(columns, lambda column: id(column.source)):
            of_source = list(group)
            number = of_source[0].number(slice(None))
            indicators = [column for column in of_source if column.level is not None]
            for column in of_source:
                if column.level is None:
                    squared = len(column.scales) > 1
                    numbers[:, filled] = column.scales[1].standardised(number**2) if squared else number
                    places.append(filled)
                    filled += 1
            if indicators:
                code = np.full(rows, -1, np.int32)
                for place, column in enumerate(indicators):
                    code[number == column.level] = levels + place
                codes.append(code)
                places += range(-1 - levels, -1 - levels - len(indicators), -1)
                counts.append(len(indicators))
                levels += len(indicators)
        of_levels = np.empty((rows, len(codes)), np.uint32)
        for place, code in enumerate(codes):
            of_levels[:, place] = np.where(code < 0, levels, code)
        category = np.repeat(np.arange(len(codes)), counts)
        return cls(numbers, of_levels, levels, np.array(places, np.int64), category)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.numbers), len(self.places)

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.numbers)

    @cached_property
    def _used(self) -> int:
        """How many of the first columns of ``numbers`` are looked at."""
        return 1 + int(self.places.max(initial=-1))

    @cached_property
    def _inner(self) -> Longs:
        """``(p,)`` each column's place where numbers come first, then all levels, then a row of what has none."""
        return np.where(self.places >= 0, self.places, self._used - 1 - self.places)

    @overload
    def __getitem__(self, key: slice | Bools | Ints | Longs) -> Floats: ...
    @overload
    def __getitem__(self, key: tuple[slice, int]) -> Floats: ...
    def __getitem__(self, key: Any) -> Floats:
        """Some rows with all columns, or one column."""
        if isinstance(key, tuple):
            rows, place = key[0], int(self.places[key[1]])
            single: Floats = self.numbers[rows, place] if place >= 0 else (self.codes[rows] == -1 - place).any(axis=1)
            return single.astype(np.float64)
        numbers, codes = self.numbers[key], self.codes[key]
        block = np.zeros((len(numbers), self._used + self.levels + 1), order="F")
        block[:, : self._used] = numbers[:, : self._used]
        for code in codes.T:
            block[np.arange(len(code)), self._used + code] = 1.0
        return block[:, self._inner]

    def taken(self, rows: slice | Bools | Longs) -> "Packed":
        """Some of the rows, still packed."""
        numbers = np.ascontiguousarray(self.numbers[rows])
        return replace(self, numbers=numbers, codes=np.ascontiguousarray(self.codes[rows]))

    def having(self, which: Sequence[int] | Bools | Ints | Longs) -> "Packed":
        """Some of the columns, still packed."""
        places = self.places[np.arange(len(self.places))[which]]
        numbers, codes, category, is_number = self.numbers, self.codes, self.category, places >= 0
        remaining = places[is_number]
        if (remaining != np.arange(len(remaining))).any():  # else they are the first ones
            numbers, places = np.ascontiguousarray(numbers[:, remaining]), places.copy()
            places[is_number] = np.arange(len(remaining))
        levels = -1 - places[~is_number]
        if len(levels) < self.levels:
            number = np.full(self.levels + 1, len(levels), np.uint32)
            number[levels] = np.arange(len(levels))
            stays, category = np.unique(category[levels], return_inverse=True)
            codes = np.ascontiguousarray(number[codes[:, stays]])
            places = places.copy()
            places[~is_number] = -1 - np.arange(len(levels))
        return Packed(numbers, codes, len(levels), places, category)

    def beside(self, columns: Floats) -> "Packed":
        """The matrix with further columns ``(q, n)``."""
        used, q = self._used, len(columns)
        numbers = np.empty((len(self), used + q))
        numbers[:, :used] = self.numbers[:, :used]
        numbers[:, used:] = columns.T
        return replace(self, numbers=numbers, places=np.append(self.places, used + np.arange(q)))

    def dense(self) -> Floats:
        """All rows as an array."""
        full = np.empty(self.shape)
        for rows in self.blocks():
            full[rows] = self[rows]
        return full

    def blocks(self) -> Iterator[slice]:
        """Rows that are made at once."""
        yield from (slice(start, start + AT_ONCE) for start in range(0, len(self), AT_ONCE))

    def __matmul__(self, coefficients: Floats) -> Floats:
        """``(n,)`` or ``(n, k)`` sums of the columns times coefficients."""
        from tasks.numerics.levels import add_levels  # loads numba

        used = self._used
        table = np.zeros((used + self.levels + 1, *coefficients.shape[1:]))
        table[self._inner] = coefficients
        product: Floats = self.numbers[:, :used] @ table[:used]
        if self.codes.shape[1]:
            add_levels(product.reshape(len(self), -1), self.codes, table[used:].reshape(self.levels + 1, -1))
        return product

    def sums(self, values: Floats) -> Floats:
        """``(p,)`` or ``(p, k)`` sums over the rows of every column times values ``(n,)`` or ``(n, k)``."""
        from tasks.numerics.levels import sum_levels

        used = self._used
        total = np.zeros((used + self.levels + 1, *values.shape[1:]))
        total[:used] = self.numbers[:, :used].T @ values
        if self.codes.shape[1]:
            of_rows = np.ascontiguousarray(values).reshape(len(self), -1)
            sum_levels(total[used:].reshape(self.levels + 1, -1), self.codes, of_rows)
        return total[self._inner]

    def score(self, coefficients: Floats, y: Floats, weight: Floats | None = None) -> Floats:
        """``(p,)`` sums of every column times the residuals of a logit with weights ``(n,)``, in one pass."""
        from tasks.numerics.levels import add_scores

        used = self._used
        table, total = np.zeros((2, used + self.levels + 1))
        table[self._inner] = coefficients
        weight = np.zeros(0) if weight is None else weight
        add_scores(total, self.numbers, used, self.codes, table, y, weight)
        return total[self._inner]

    def sums_by(self, values: Floats, label: Ints | Longs, count: int) -> Floats:
        """``(count, p)`` sums of every column times values ``(n,)`` over the rows of each label ``(n,)`` from 0."""
        from tasks.numerics.levels import sum_by_label

        total = np.zeros((count, self._used + self.levels + 1))
        sum_by_label(total, self.numbers, self._used, self.codes, values, label)
        return total[:, self._inner]

    def lengths(self) -> Floats:
        """``(p,)`` sums of squares of all columns."""
        used = self._used
        total = np.zeros(used + self.levels + 1)
        total[:used] = np.einsum("ij,ij->j", self.numbers[:, :used], self.numbers[:, :used])
        for code in self.codes.T:
            total[used:] += np.bincount(code, minlength=self.levels + 1)
        return total[self._inner]

    def squares(self, weight: Floats | None = None) -> Floats:
        """``(p, p)`` cross products of all columns with weights ``(n,)`` of the rows, none below 0."""
        from tasks.numerics.levels import square_levels

        used, size = self._used, self._used + self.levels + 1
        total = np.zeros((size, size))
        beside, pairs = np.zeros((self.levels + 1, used)), np.zeros((self.levels + 1, self.levels + 1))
        of_rows = np.ones(len(self)) if weight is None else weight
        for start in range(0, len(self), CACHED):
            rows = slice(start, start + CACHED)
            some = self.numbers[rows, :used] * np.sqrt(of_rows[rows])[:, None]
            total[:used, :used] += some.T @ some
        square_levels(beside, pairs, self.numbers, self.codes, of_rows)
        total[used:, :used], total[:used, used:] = beside, beside.T
        total[used:, used:] = pairs + pairs.T - np.diag(np.diag(pairs))
        return total[np.ix_(self._inner, self._inner)]


@dataclass(frozen=True, eq=False)
class Repeated:
    """``(n, p + k)`` the columns of a matrix, and some of them once more, which are 0 but on some rows."""

    x: "Matrix"
    """``(n, p)``."""
    rows: Longs
    """``(m,)`` on which they are not 0, ascending."""
    of: Longs
    """``(k,)`` columns."""

    @cached_property
    def inside(self) -> "Matrix":
        """``(m, p)`` the columns on these rows."""
        return some_rows_of(self.x, self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.x), self.x.shape[1] + len(self.of)

    @property
    def places(self) -> Longs:
        """``(p + k,)`` which column of the array each one is."""
        return np.append(np.arange(self.x.shape[1]), self.of)

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.x)

    def __getitem__(self, rows: slice | Bools) -> Floats:
        """Some rows as an array."""
        repeated = np.zeros((len(self), len(self.of)))
        repeated[self.rows] = self.inside[:][:, self.of]
        return np.hstack([self.x[rows], repeated[rows]])

    def taken(self, rows: slice | Bools | Longs) -> "Repeated":
        """Some rows."""
        numbers = np.arange(len(self))[rows]
        return Repeated(some_rows_of(self.x, rows), np.flatnonzero(np.isin(numbers, self.rows)), self.of)

    def __matmul__(self, coefficients: Floats) -> Floats:
        """``(n,)`` sums of the columns times coefficients."""
        width = self.x.shape[1]
        product: Floats = self.x @ coefficients[:width]
        of_inside = np.zeros(width)
        of_inside[self.of] = coefficients[width:]
        product[self.rows] += self.inside @ of_inside
        return product

    def sums(self, values: Floats) -> Floats:
        """``(p + k,)`` sums over the rows of every column times values ``(n,)``."""
        return np.append(sums_of(self.x, values), sums_of(self.inside, values[self.rows])[self.of])

    def squared(self, every: Floats, inside: Floats) -> Floats:
        """``(p + k, p + k)`` cross products by those of the array's columns, on all rows and on these."""
        width, at = self.x.shape[1], self.places
        products = inside[np.ix_(at, at)]
        products[:width, :width] = every
        return products


Matrix = Floats | Packed
AnyMatrix = Matrix | Repeated


@overload
def some_rows_of(x: Matrix, rows: Bools | Longs | slice) -> Matrix: ...
@overload
def some_rows_of(x: AnyMatrix, rows: Bools | Longs | slice) -> AnyMatrix: ...
def some_rows_of(x: AnyMatrix, rows: Bools | Longs | slice) -> AnyMatrix:
    """Some rows of a matrix, packed if it is."""
    return x[rows] if isinstance(x, np.ndarray) else x.taken(rows)


def some_columns_of(x: Matrix, which: Bools | Ints | Longs) -> Matrix:
    """Some columns of a matrix, packed if it is."""
    return x.having(which) if isinstance(x, Packed) else x[:, which]


def first_columns_of(x: Matrix, width: int) -> Matrix:
    """The first columns of a matrix: a view of an array."""
    return x.having(np.arange(width)) if isinstance(x, Packed) else x[:, :width]


def sums_of(x: AnyMatrix, values: Floats) -> Floats:
    """Sums over the rows of every column times values ``(n,)`` or ``(n, k)``."""
    return x.T @ values if isinstance(x, np.ndarray) else x.sums(values)
