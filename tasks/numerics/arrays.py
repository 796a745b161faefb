"""Array types of numerical code, and matrices of many rows kept as what their columns are made of."""

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
    """``(n, p)`` a matrix that is made some rows at a time: of many rows a number is held once, levels as codes.

    Made rows are the same to the last bit as those of an array that holds all of them.
    """

    columns: tuple[Column, ...]
    at: Longs | None = None
    """``(n,)`` rows of the sources; None: all of them."""

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows = self.columns[0].source if self.at is None else self.at
        return len(rows), len(self.columns)

    def __len__(self) -> int:
        """How many rows it has."""
        return self.shape[0]

    @overload
    def __getitem__(self, key: slice | Bools | Ints | Longs) -> Floats: ...
    @overload
    def __getitem__(self, key: tuple[slice, int]) -> Floats: ...
    def __getitem__(self, key: Any) -> Floats:
        """Some rows with all columns, or one column."""
        if isinstance(key, tuple):
            single: Floats = self.having([key[1]]).dense()[key[0], 0]
            return single
        rows = self._places(key)
        count = len(range(*rows.indices(len(self)))) if isinstance(rows, slice) else len(rows)
        block = np.empty((count, len(self.columns)), order="F")
        number, last = np.zeros(0), None
        for place, column in enumerate(self.columns):
            if column.source is not last:  # a number and its square stand side by side, as do levels
                number, last = column.number(rows), column.source
            if column.level is not None:
                block[:, place] = number == column.level
            else:
                block[:, place] = column.scales[1].standardised(number**2) if len(column.scales) > 1 else number
        return block

    def _places(self, rows: slice | Bools | Ints | Longs) -> slice | Longs:
        """Rows of the sources."""
        if not isinstance(rows, slice) and rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return rows if self.at is None else self.at[rows]  # type: ignore[return-value]

    def taken(self, rows: slice | Bools | Longs) -> "Packed":
        """Some of the rows, still packed."""
        places = self._places(rows)
        return replace(self, at=np.arange(len(self))[places] if isinstance(places, slice) else places)

    def having(self, which: Sequence[int] | Bools | Ints | Longs) -> "Packed":
        """Some of the columns, still packed."""
        numbers = np.arange(len(self.columns))[which]
        return replace(self, columns=tuple(self.columns[number] for number in numbers))

    def beside(self, columns: Floats) -> "Packed":
        """The matrix with further columns ``(q, n)``."""
        return replace(self, columns=(*self.columns, *(Column(column) for column in columns)))

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
        product = np.empty((len(self), *coefficients.shape[1:]))
        for rows in self.blocks():
            product[rows] = self[rows] @ coefficients
        return product

    def sums(self, values: Floats) -> Floats:
        """``(p,)`` or ``(p, k)`` sums over the rows of every column times values ``(n,)`` or ``(n, k)``."""
        total = np.zeros((len(self.columns), *values.shape[1:]))
        for rows in self.blocks():
            total += self[rows].T @ values[rows]
        return total


@dataclass(frozen=True, eq=False)
class Repeated:
    """``(n, p + k)`` the columns of an array, and some of them once more, which are 0 but on some rows."""

    x: Floats
    """``(n, p)``."""
    rows: Longs
    """``(m,)`` on which they are not 0, ascending."""
    of: Longs
    """``(k,)`` columns."""

    @cached_property
    def inside(self) -> Floats:
        """``(m, p)`` the columns on these rows."""
        return self.x[self.rows]

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
        repeated[self.rows] = self.inside[:, self.of]
        return np.hstack([self.x[rows], repeated[rows]])

    def taken(self, rows: slice | Bools | Longs) -> "Repeated":
        """Some rows."""
        numbers = np.arange(len(self))[rows]
        return Repeated(self.x[rows], np.flatnonzero(np.isin(numbers, self.rows)), self.of)

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
        return np.append(self.x.T @ values, (self.inside.T @ values[self.rows])[self.of])

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


def sums_of(x: AnyMatrix, values: Floats) -> Floats:
    """Sums over the rows of every column times values ``(n,)`` or ``(n, k)``."""
    return x.T @ values if isinstance(x, np.ndarray) else x.sums(values)
