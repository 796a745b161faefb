"""Cells of typed columns as text: exact digits, ISO dates in the zone of their column, nothing for what is missing."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_EXACT: Final = 2.0**53
"""Below it a whole number of a double has exact digits."""


def is_nested(kind: pa.DataType) -> bool:
    """Whether a column holds lists or records, and so no plain value a row."""
    return bool(pa.types.is_nested(plain(kind)))


def plain(kind: pa.DataType) -> pa.DataType:
    """What is stored where a type only names it."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def as_text(column: pa.Array) -> pa.Array:
    """A column as text; a cell that is null or no number is empty.

    Raises:
        pyarrow.ArrowException: it has no text, or bytes that are not UTF-8.
    """
    column = column.storage if isinstance(column, pa.ExtensionArray) else column
    kind = column.type
    if pa.types.is_dictionary(kind):
        column.validate(full=True)  # an index beyond the dictionary would read elsewhere
        return as_text(column.dictionary_decode())
    if pa.types.is_null(kind):
        text = pa.array([""] * len(column), pa.string())
    elif pa.types.is_floating(kind):
        text = _of_floats(column)
    elif pa.types.is_timestamp(kind):
        text = _of_times(column)
    elif pa.types.is_duration(kind):
        text = pc.cast(pc.cast(column, pa.int64()), pa.string())
    elif pa.types.is_date64(kind):
        text = pc.cast(pc.cast(column, pa.date32()), pa.string())
    else:
        text = pc.cast(column, pa.string())
    text = pc.fill_null(text, "")
    text.validate(full=True)  # text that is not UTF-8 would fail far from here
    return text


def _of_floats(column: pa.Array) -> pa.Array:
    """The fewest digits that are this number and no other, without an exponent; whole numbers without a point."""
    if pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float32())
    numbers = pc.if_else(pc.is_nan(column), None, column)
    near = pc.less(pc.abs(numbers), _EXACT)
    is_whole = pc.and_(near, pc.equal(pc.floor(numbers), numbers))
    digits = pc.cast(pc.cast(pc.if_else(is_whole, numbers, None), pa.int64()), pa.string())
    text = pc.coalesce(digits, pc.cast(numbers, pa.string()))
    with_exponent = pc.fill_null(pc.match_substring(text, "e"), False)
    if pc.any(with_exponent).as_py():
        unfolded = [format(Decimal(cell), "f") for cell in pc.filter(text, with_exponent).to_pylist()]
        text = pc.replace_with_mask(text, with_exponent, pa.array(unfolded, pa.string()))
    return text


def _of_times(column: pa.Array) -> pa.Array:
    """ISO in the zone of the column: the day at midnight, else with the time, and with a fraction if there is one."""
    times = pc.local_timestamp(column) if column.type.tz is not None else column
    seconds = pc.cast(times, pa.timestamp("s"), safe=False)
    days = pc.cast(times, pa.date32(), safe=False)
    at_midnight = pc.equal(pc.cast(days, times.type), times)
    is_whole = pc.equal(pc.cast(seconds, times.type), times)
    moment = pc.if_else(is_whole, pc.strftime(seconds, "%Y-%m-%dT%H:%M:%S"), pc.strftime(times, "%Y-%m-%dT%H:%M:%S"))
    return pc.if_else(at_midnight, pc.cast(days, pa.string()), moment)


def cell(value: Any) -> str:
    """One cell as Python has it, in the same form."""
    import datetime as dates

    if value is None or value != value:  # not a number
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        text = repr(value)
        return format(Decimal(text), "f") if "e" in text else text
    if isinstance(value, dates.datetime):
        midnight = value.time() == dates.time() and value.tzinfo is None
        return value.date().isoformat() if midnight else value.replace(tzinfo=None).isoformat()
    if isinstance(value, dates.timedelta):
        return cell(value.total_seconds() / 86_400)  # days, as Excel stores them
    return value.isoformat() if isinstance(value, dates.date | dates.time) else str(value)


def text_array(values: Iterable[Any]) -> pa.Array:
    """Cells as Python has them as a column of text."""
    return pa.array([value if type(value) is str else cell(value) for value in values], pa.string())
