"""JSON lines, an object a row, or one array of objects: their values as text, with numbers in the digits of the file.

The array may lie in an object, such as `{"data": [...]}`. A line that is no object is a malformed row. A key that holds
a list or an object anywhere is no column.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.delimited_text import MOST_COLUMNS, Dialect, KeptLines, Records
from tasks.ingest.sources.layout import usable_names
from tasks.ingest.sources.reader_process import Facts

LARGEST_ARRAY: Final = 256_000_000
"""Bytes of an array, which is read at once."""
_ROWS: Final = 50_000
"""Objects that become text at a time."""

Row = dict[str, Any] | None
"""An object, or None for a line that is none."""


def names(source: Source, path: Path) -> list[str]:
    """Names of the columns in the order in which they come, without nested ones.

    Raises:
        DataQualityError: the file has no object, or too many keys.
    """
    return list(facts(source, path).names)


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers, from 1, of the lines that are no objects.

    Raises:
        DataQualityError: as ``names``.
    """
    keys, _, _ = _survey(source, path)
    by_name = dict(zip(usable_names(keys), keys, strict=True))
    schema = pa.schema([(name, pa.string()) for name in columns])
    parts, malformed, rows = [], list[int](), list[dict[str, Any]]()
    for number, row in enumerate(_rows(source, path), start=1):
        if row is None:
            malformed.append(number)
            continue
        rows.append(row)
        if len(rows) == _ROWS:
            parts.append(_texts(rows, columns, by_name, schema))
            rows = []
    return pa.concat_tables([*parts, _texts(rows, columns, by_name, schema)]), malformed


def facts(source: Source, path: Path) -> Facts:
    """Names, rows, labels and nested columns of the file.

    Raises:
        DataQualityError: as ``names``.
    """
    keys, nested, rows = _survey(source, path)
    column_names = usable_names(keys)
    labels = {name: key for name, key in zip(column_names, keys, strict=True) if name != key}
    return Facts(tuple(column_names), rows, labels, nested)


def _survey(source: Source, path: Path) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    state = path.stat()
    return _surveyed(str(source.path), source.member, source.maximum_bytes, (state.st_mtime_ns, state.st_size))


@lru_cache(8)
def _surveyed(
    path: str,
    member: str | None,
    most: int,
    state: tuple[int, int],  # noqa: ARG001 another content has another state
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Keys of plain values, keys of nested ones, and rows."""
    source = Source(kind="jsonl", path=path, member=member, maximum_bytes=most)
    keys: dict[str, bool] = {}
    rows = objects = 0
    for row in _rows(source, Path(path)):
        rows += 1
        if row is None:
            continue
        objects += 1
        for key, value in row.items():
            keys[key] = keys.get(key, False) or isinstance(value, dict | list)
        if len(keys) > MOST_COLUMNS:
            raise DataQualityError(f"{Path(path).name} has more than {MOST_COLUMNS:,} keys; is it a table?")
    nested = tuple(key for key, is_nested in keys.items() if is_nested)
    if not objects or len(keys) == len(nested):
        raise DataQualityError(f"{Path(path).name} has no object with plain values; give an object for each row")
    return tuple(key for key, is_nested in keys.items() if not is_nested), nested, rows


def _rows(source: Source, path: Path) -> Iterator[Row]:
    """The objects in order."""
    lines = KeptLines(source, path)
    records = Records(path.name, Dialect(b",", quoting=False))
    start = True
    for chunk in lines:
        if start and _goes_on(chunk) and (elements := _elements(source, path)) is not None:
            yield from (element if isinstance(element, dict) else None for element in elements)
            return
        start = False
        records.add(chunk)
        for line in chunk.split(b"\n"):
            if line.strip(b"\r"):
                try:
                    row = _DECODER.decode(line.decode().strip())
                except (ValueError, RecursionError):
                    row = None
                yield row if isinstance(row, dict) else None
    records.finish()


def _goes_on(start: bytes) -> bool:
    """Whether a file is one array or one object: its first line is no whole object, or it is the only line."""
    first, _, rest = start.strip().partition(b"\n")
    return first.startswith(b"[") or first.rstrip().endswith((b"{", b"[", b",", b":")) or not rest


def _elements(source: Source, path: Path) -> list[Any] | None:
    """The elements of one array, or of the only array of objects in one object; None of an object without any."""
    content = bytearray()
    for chunk in KeptLines(source, path):
        content += chunk
        if len(content) > LARGEST_ARRAY:
            raise DataQualityError(
                f"{path.name} is one value of more than {LARGEST_ARRAY // 10**6} MB; save it as JSON lines, or as CSV"
            )
    try:
        value = _DECODER.decode(content.decode().strip())
    except (ValueError, RecursionError) as error:
        raise DataQualityError(f"{path.name} could not be read as JSON: {error}; save it again") from error
    if not isinstance(value, dict):
        return value if isinstance(value, list) else None
    tables = _arrays(value)
    for name, inner in value.items() if not tables else ():
        if isinstance(inner, dict):
            tables |= {f"{name}.{key}": rows for key, rows in _arrays(inner).items()}
    if len(tables) > 1:
        raise DataQualityError(
            f"{path.name} is one object with {len(tables)} arrays of objects ({', '.join(tables)}); expected one: save "
            "that of the applications by itself"
        )
    return next(iter(tables.values()), None)


def _arrays(values: dict[str, Any]) -> dict[str, list[Any]]:
    """The arrays of an object with objects as most of their elements."""
    arrays = {key: value for key, value in values.items() if isinstance(value, list)}
    return {key: rows for key, rows in arrays.items() if 2 * sum(isinstance(row, dict) for row in rows) > len(rows)}


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("two keys of one name")
    return row


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_each_key_once,
    parse_float=str,
    parse_int=str,
    parse_constant=lambda word: None if word == "NaN" else word,
)
"""Numbers stay the digits that they are written in."""
_WORDS: Final = {None: "", True: "true", False: "false"}


def _texts(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], by_name: dict[str, str], schema: pa.Schema
) -> pa.Table:
    keys = [by_name[name] for name in columns]
    values = [[row.get(key) for row in rows] for key in keys]
    cells = [[value if type(value) is str else _WORDS[value] for value in column] for column in values]
    return pa.table([pa.array(column, pa.string()) for column in cells], schema=schema)
