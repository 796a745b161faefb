"""Frames of a program as rows of an audit: text for the stages, and what leads back to the frame.

pandas, polars and pyarrow frames are read through narwhals; arrays of two dimensions are columns ``x0``, ``x1``, ...
Scope: the shape of what a user hands in, and faults in it. What the stages make of the rows: ``evenhand.runs``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.errors import InputError, InputTypeError
from schemas.terms import Kind
from tasks.ingest.sources.typed_cells import as_text, cell
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.encoding import Columns, category_codes

LEFTOVER: Final = "index"
"""Name that ``reset_index`` gives a former index, which is no property of a row."""
ROW: Final = "row"
"""Column with the number of a row, from 0, in results for frames without an index."""
SENSITIVE: Final = "sensitive_feature"
"""Name of sensitive features that have none."""
MOST_GROUPS: Final = 100
"""Of a sensitive feature: more are numbers, or names, that nobody compares one by one."""
MOST_CODES: Final = 30
"""Different texts of digits that a column of codes has; more are numbers that were read as text."""
_AMOUNT: Final = re.compile(r"[-+(]?\s*[$€£¥]?\s*\d[\d,.' ]*\s*[%)]?")


@dataclass(frozen=True)
class Column:
    """One column of a frame, and the values behind its texts."""

    name: str
    kind: Kind
    order: tuple[str, ...]
    """Categories with an order, lowest first."""
    values: Mapping[str, Any]
    """Text -> value in the frame, of columns with categories."""
    dtype: Any
    """In the frame."""
    number_as_text: str = ""
    """One of its values, if all of its many texts are numbers."""

    @property
    def spec(self) -> dict[str, Any]:
        """The column as an audit spec has it."""
        return {"type": str(self.kind), **({"order": list(self.order)} if self.order else {})}

    @property
    def categories(self) -> tuple[str, ...]:
        """Its categories, in their order or sorted; none of a continuous column."""
        return self.order or tuple(sorted(self.values))

    def value(self, text: str) -> Any:
        """The value behind a text; a number of a column that was read as numbers."""
        return self.values[text] if text in self.values else float(text)

    def is_plain(self, categories: Sequence[str]) -> bool:
        """Whether the number of a category is the number in the frame."""
        if self.kind is Kind.CONTINUOUS:
            return True
        return [self.values.get(category) for category in categories] == list(range(len(categories)))


@dataclass(frozen=True)
class Rows:
    """The ``n`` rows of a frame."""

    columns: tuple[Column, ...]
    text: pa.Table
    """Every column as text; an empty text is a missing value."""
    index: pd.Index
    """Of pandas, or the numbers of the rows from 0."""
    namespace: Any
    """``pandas``, ``polars``, ``pyarrow`` or ``numpy``: what the frame is of."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.text.num_rows)

    def label(self, at: int) -> Any:
        """The label of a row in the index, as Python has it."""
        return self.index[at : at + 1].tolist()[0]

    @property
    def complete(self) -> Bools:
        """``(n,)`` rows with a value in every column."""
        filled = [np.array([text != "" for text in column.to_pylist()]) for column in self.text.columns]
        complete: Bools = np.logical_and.reduce(filled)
        return complete

    def arrays(self, names: Sequence[str], categories: Mapping[str, Sequence[str]]) -> Columns:
        """Some columns as methods take them, with the categories that they were fitted with.

        Raises:
            InputError: A row has no value in one of them.
        """
        parts, chosen = [], [column for column in self.columns if column.name in names]
        for column in chosen:
            texts = self.text[column.name].to_pylist()
            if "" in texts:
                label = self.label(texts.index(""))
                raise InputError(
                    f"column {column.name!r} has no value (NaN) in row {label!r}; fill it in, or leave it out"
                )
            continuous = column.kind is Kind.CONTINUOUS
            parts.append(np.array(texts, float) if continuous else category_codes(texts, categories[column.name]))
        return Columns(
            tuple(column.name for column in chosen),
            tuple(column.kind for column in chosen),
            tuple(tuple(categories.get(column.name, ())) for column in chosen),
            np.column_stack([np.empty((len(self), 0)), *parts]).astype(np.float64),
        )

    def rows(self, chosen: Bools) -> "Rows":
        """Some of the rows."""
        text = self.text.filter(pa.array(chosen))
        return Rows(self.columns, text, self.index[chosen], self.namespace)

    def native(self, results: pd.DataFrame) -> Any:
        """Results by row as a frame of the same library; without an index, the column `row` has the numbers."""
        if self.namespace in ("pandas", "numpy"):
            return results
        cells = results.astype(object).where(results.notna(), None)
        plain = {ROW: results.index.to_list()} | {str(name): cells[name].to_list() for name in cells.columns}
        return nw.from_dict(plain, backend=self.namespace).to_native()

    def frame_of(self, values: Floats, categories: Sequence[Sequence[str]]) -> Any:
        """Rows ``(m, p)`` with numbers and numbers of categories, as a frame like the one that came in.

        Args:
            values: Numbers in the user's units; of a column with categories, the number of the category.
            categories: Of every column; none of a continuous one.
        """
        parts: dict[str, Any] = {}
        for at, column in enumerate(self.columns):
            part: Any = values[:, at]
            if categories[at]:
                places = np.clip(np.rint(part), 0, len(categories[at]) - 1).astype(np.int64)
                part = np.array([column.value(text) for text in categories[at]], dtype=object)[places]
            parts[column.name] = part
        if self.namespace == "numpy":
            return np.column_stack([np.asarray(part, dtype=np.float64) for part in parts.values()])
        if self.namespace != "pandas":
            return nw.from_dict(
                {name: list(part) for name, part in parts.items()},
                backend=self.namespace,
            ).to_native()
        frame = pd.DataFrame(parts)
        for column in self.columns:
            integers = pd.api.types.is_integer_dtype(column.dtype) and column.kind is Kind.CONTINUOUS
            if not integers or bool((frame[column.name] % 1 == 0).all()):
                frame[column.name] = frame[column.name].astype(column.dtype)
        return frame


def rows_of(frame: Any, like: Rows | None = None, what: str = "X") -> Rows:
    """The rows of a frame.

    Args:
        frame: Of pandas, polars or pyarrow, or an array of two dimensions.
        like: Rows that the frame has to have the columns of, in any order.
        what: How messages call it.

    Raises:
        InputError: No frame, no rows, a column twice, a column without any value, of mixed types, or of dates; or a
            column or category that ``like`` does not have.
    """
    native, index, namespace = _native(frame, what)
    if not len(native):
        raise InputError(f"{what} has no rows")
    if LEFTOVER in native.columns:
        raise InputError(
            f"{what} has a column {LEFTOVER!r}, which reset_index() leaves and which counts rows: drop or rename it"
        )
    if like is None:
        columns = tuple(_column(native[name], name, what) for name in native.columns)
    else:
        if namespace == "numpy" and len(native.columns) != len(like.names):
            number = len(native.columns)
            raise InputError(
                f"{what} has {number} features, but evenhand is expecting {len(like.names)} features as input"
            )
        absent = [name for name in like.names if name not in native.columns]
        if absent:
            raise InputError(f"{what} has no column {absent[0]!r}, which the fitted frame had")
        columns = like.columns
    texts = {column.name: _text(native[column.name], column.name, what) for column in columns}
    if like is not None:
        for column in columns:
            _check_seen(texts[column.name], column, what)
    return Rows(columns, pa.table(texts), index, namespace)


def _native(frame: Any, what: str) -> tuple[Any, pd.Index, str]:
    """The frame for narwhals, its index and what it is of."""
    if hasattr(frame, "tocsr"):
        raise InputError(
            f"Sparse data was passed for {what}, but dense data is required. Use '.toarray()' to convert it."
        )
    plain = not hasattr(frame, "columns") and not hasattr(frame, "column_names") and hasattr(frame, "__array__")
    if plain or isinstance(frame, list | tuple):
        array = np.asarray(frame)
        if array.dtype.kind == "c":
            raise InputError(f"Complex data not supported: {what} holds complex numbers")
        if array.ndim != 2:
            raise InputError(f"{what} has {array.ndim} dimensions; give a frame, or a 2D array: Reshape your data")
        if not array.shape[1]:
            raise InputError(f"{what} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        names = [f"x{at}" for at in range(array.shape[1])]
        columns = pd.DataFrame(array, columns=names).infer_objects()
        return nw.from_native(columns, eager_only=True), pd.RangeIndex(len(array)), "numpy"
    if isinstance(frame, pd.DataFrame) and isinstance(frame.columns, pd.RangeIndex):
        _check_index(frame, what)
        columns = frame.set_axis([f"x{at}" for at in frame.columns], axis=1).infer_objects()
        return nw.from_native(columns, eager_only=True), frame.index, "numpy"
    if isinstance(frame, pd.DataFrame):
        _check_names(frame.columns, what)
        _check_index(frame, what)
        sparse = [name for name in frame.columns if isinstance(frame[name].dtype, pd.SparseDtype)]
        if sparse:
            raise InputError(f"column {sparse[0]!r} of {what} is sparse; {what}.sparse.to_dense() makes it dense")
        return nw.from_native(frame.infer_objects(), eager_only=True), frame.index, "pandas"
    if isinstance(frame, pa.Table):
        _check_names(frame.column_names, what)
    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(f"{what} is a {type(frame).__name__}; give a frame of pandas, polars or pyarrow") from error
    return native, pd.RangeIndex(len(native)), str(native.implementation.value)


def _check_index(frame: pd.DataFrame, what: str) -> None:
    if not frame.index.is_unique:
        label = frame.index[frame.index.duplicated()].tolist()[0]
        raise InputError(f"the index of {what} has {label!r} more than once; reset_index(drop=True) numbers rows")


def _check_names(names: Any, what: str) -> None:
    names_before: set[Any] = set()
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what} has a column {name!r}, with a name that is no text; rename it")
        if name in names_before:
            raise InputError(f"{what} has two columns {name!r}; every column needs its own name")
        names_before.add(name)


def _column(series: Any, name: str, what: str) -> Column:
    """The kind of a column by its type and values."""
    dtype = series.dtype
    present = series.drop_nulls()
    if not len(present) or (dtype.is_float() and bool(np.isnan(present.to_numpy()).all())):
        raise InputError(f"column {name!r} of {what} has no value in any row; leave it out")
    native_dtype = series.to_native().dtype if hasattr(series.to_native(), "dtype") else dtype
    if dtype.is_temporal():
        raise InputError(f"column {name!r} of {what} holds {dtype}; give a number, such as days or years")
    if dtype.is_nested():
        raise InputError(f"column {name!r} of {what} holds {dtype}; give one plain value a row")
    try:
        values = list(present.unique().to_list())
    except TypeError as error:
        raise InputTypeError(f"column {name!r} of {what}: argument must be a string or a number ({error})") from error
    if dtype.is_numeric() and not _is_flag(values):
        if any(np.isinf(v) for v in values if isinstance(v, float)):
            raise InputError(f"column {name!r} of {what} holds an infinite number; leave that row out, or give NaN")
        return Column(name, Kind.CONTINUOUS, (), {}, native_dtype)
    kinds = {_family(value) for value in values if value == value}
    if len(kinds) > 1:
        raise InputError(f"column {name!r} of {what} mixes {' and '.join(sorted(kinds))}; give values of one type")
    texts = {cell(value): value for value in values if value == value}
    order = _order_of(series, values)
    if dtype.is_numeric() or dtype == nw.Boolean or (len(texts) == 2 and not order):
        order = tuple(sorted(texts)) if len(texts) == 2 else ()
        return Column(name, Kind.BINARY, order, texts, native_dtype)
    are_amounts = dtype == nw.String and len(texts) > MOST_CODES and all(map(_AMOUNT.fullmatch, texts))
    example = next(iter(texts)) if are_amounts else ""
    return Column(name, Kind.ORDINAL if order else Kind.NOMINAL, order, texts, native_dtype, example)


def _is_flag(values: Sequence[Any]) -> bool:
    return {float(value) for value in values if value == value} <= {0.0, 1.0}


def _family(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "flags"
    return "numbers" if isinstance(value, int | float | np.number) else type(value).__name__


def _order_of(series: Any, values: Sequence[Any]) -> tuple[str, ...]:
    """Categories of an ordered categorical of pandas, or of an enumeration, that occur, lowest first."""
    native = series.to_native()
    if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype) and native.dtype.ordered:
        categories = [value for value in native.dtype.categories if value in set(values)]
    elif isinstance(series.dtype, nw.Enum):
        categories = [value for value in series.dtype.categories if value in set(values)]
    else:
        return ()
    return tuple(cell(value) for value in categories) if len(categories) > 1 else ()


def _text(series: Any, name: str, what: str) -> pa.Array:
    """A column as text."""
    try:
        column = series.to_arrow()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return as_text(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        message = f"column {name!r} of {what} cannot be read: {error}; give numbers or texts"
        raise InputError(message) from error


def _check_seen(text: pa.Array, column: Column, what: str) -> None:
    present = text.unique().to_pylist()
    if column.kind is Kind.CONTINUOUS:
        for value in present:
            try:
                number = float(value or 0)
            except ValueError as error:
                message = f"column {column.name!r} of {what} holds {value!r}, and the fitted frame had numbers"
                raise InputError(message) from error
            if math.isinf(number):
                raise InputError(f"column {column.name!r} of {what} holds an infinite number")
        return
    unseen = [value for value in present if value and value not in column.values]
    if unseen:
        listing = ", ".join(repr(value) for value in list(column.values)[:6])
        raise InputError(f"column {column.name!r} of {what} holds {unseen[0]!r}, which fit has not seen ({listing})")


# --------------------------------------------------------------------------------------------------------------------
# Sensitive features and decisions, aligned with the rows of a frame.


def sensitive_of(features: Any, rows: Rows, several: bool = True) -> dict[str, pa.Array]:
    """Name -> groups of the rows as text, of every sensitive feature; a missing value is an empty text.

    Args:
        features: A series, an array of one or two dimensions, or a frame.
        rows: Of the frame that they belong to.
        several: Whether there have to be two groups at least.

    Raises:
        InputError: None were given, other lengths or another index than the frame, or one group only.
    """
    if features is None:
        raise InputError("sensitive_features are not given: a series, an array or a frame with the groups of the rows")
    parts = _series(features, rows, "sensitive_features", SENSITIVE)
    for name, text in parts.items():
        groups = sorted({value for value in text.unique().to_pylist() if value})
        if several and len(groups) < 2:
            group = repr(groups[0]) if groups else "no value"
            raise InputError(f"sensitive feature {name!r} has one group only ({group}): no group to compare it with")
        check_groups(len(groups), f"sensitive feature {name!r}")
    return parts


def check_groups(number: int, what: str) -> None:
    """Hold the number of groups against the most that are compared.

    Raises:
        InputError: There are more.
    """
    if number > MOST_GROUPS:
        raise InputError(
            f"{what} has {number:,} groups, and at most {MOST_GROUPS} are compared; put numbers into bands (pandas.cut)"
        )


def decided(y: Any, favourable: Any, rows: Rows) -> tuple[str, Bools]:
    """Name of the decisions, and whether each favours the applicant.

    Args:
        y: A series, an array or a list.
        favourable: The value, or values, that favour; None where 1 or true does.
        rows: Of the frame that they belong to.

    Raises:
        InputError: A missing value, one class only, or texts without ``favourable``.
    """
    if y is None:
        raise InputError("y is not given: the decisions, 1 or true where they favour the applicant")
    ((name, text),) = _series(y, rows, "y", "decision", columns=1).items()
    values = text.to_pylist()
    if "" in values:
        missing = sum(value == "" for value in values)
        label = rows.label(values.index(""))
        raise InputError(f"y has no value in {missing:,} rows (the first is {label!r}); leave these rows out")
    if favourable is None:
        wrong = sorted(set(values) - {"0", "1", "true", "false"})
        if wrong:
            raise InputError(f"y holds {wrong[0]!r}: say which value favours the applicant, favourable=...")
        favours = {"1", "true"}
    else:
        listed = list(favourable) if isinstance(favourable, list | tuple | set | frozenset) else [favourable]
        favours = {cell(value) for value in listed}
        if not favours & set(values):
            listing = ", ".join(repr(value) for value in sorted(set(values))[:6])
            raise InputError(f"no row of y holds the favourable value {listed[0]!r}; y holds {listing}")
    decisions = np.array([value in favours for value in values], dtype=np.bool_)
    if decisions.all() or not decisions.any():
        side = "favourable" if decisions.all() else "unfavourable"
        raise InputError(f"y has one class only: all {len(decisions):,} decisions are {side}")
    return name, decisions


def _series(values: Any, rows: Rows, what: str, default: str, columns: int | None = None) -> dict[str, pa.Array]:
    """Columns of text out of a series, an array or a frame, as long as the rows."""
    indexed = isinstance(values, pd.Series | pd.DataFrame) and rows.namespace == "pandas"
    if indexed and len(values) == len(rows) and not values.index.equals(rows.index):
        raise InputError(f"{what} has another index than X; take both from one frame")
    if isinstance(values, pd.api.extensions.ExtensionArray | pd.Index):  # what `.values` gives of texts
        values = pd.Series(np.asarray(values, dtype=object)).infer_objects()
    if isinstance(values, pd.Series):
        frame = values.to_frame(default if values.name is None else str(values.name))
    elif isinstance(values, pd.DataFrame):
        frame = values
    elif isinstance(values, np.ndarray | list | tuple | pa.Array | pa.ChunkedArray):
        array = values if isinstance(values, list | tuple | np.ndarray) else values.to_pylist()
        cells = np.asarray(array, dtype=None if isinstance(array, np.ndarray) else object)
        if cells.ndim not in (1, 2):
            raise InputError(f"{what} has {cells.ndim} dimensions; give one value a row")
        several = cells.reshape(len(cells), -1)
        names = [default] if several.shape[1] == 1 else [f"{default}_{at}" for at in range(several.shape[1])]
        frame = pd.DataFrame(several, columns=names).infer_objects()
    else:
        try:
            native = nw.from_native(values, eager_only=True, allow_series=True)
        except TypeError as error:
            raise InputError(f"{what} is a {type(values).__name__}; give a series, an array or a frame") from error
        frame = native.to_frame() if isinstance(native, nw.Series) else native
        frame = frame.to_pandas()
        frame = frame.rename(columns={"": default})
    if columns is not None and frame.shape[1] != columns:
        raise InputError(f"{what} has {frame.shape[1]} columns; give one")
    if len(frame) != len(rows):
        raise InputError(f"{what} has {len(frame):,} rows, and X has {len(rows):,}")
    _check_names(frame.columns, what)
    native = nw.from_native(frame, eager_only=True)
    return {name: _text(native[name], name, what) for name in native.columns}
