"""The process that reads a binary table apart from the audit: Excel, Feather, Stata, SAS, SPSS. ``python -m``.

It gets an order on its input, limits itself, reads the file, and answers with facts and text. ``reader_process`` is the
audit's side of it.
"""

import json
import os
import resource
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tasks.ingest.sources.containers import FREE_BYTES, MOST_RATIO
from tasks.ingest.sources.typed_cells import as_text, is_nested, text_array

_HEAD: Final = 8
_ADDRESSES: Final = 4 * 10**9
"""Bytes beside those of the libraries and twenty times the file's size."""
_SECONDS: Final = 60
_SECONDS_A_MB: Final = 10
"""Of the processor."""
_MOST_CELLS: Final = 60_000_000
"""Of a sheet, from its first cell to its last: a reader keeps them all at once."""
_MOST_COLUMNS: Final = 16_384
_ROWS: Final = 20_000
"""Rows of a sheet that become text at a time."""

_CARD: Final = 80
"""Bytes of a record of SAS's transport files, which do not say how many rows they have."""
_CALLED: Final = {"excel": "Excel", "feather": "Feather", "stata": "Stata", "sas": "SAS", "spss": "SPSS"}

Answer = tuple[dict[str, Any], pa.Table]


class _RefusedError(Exception):
    """What is wrong with a file, in our own words."""


class LibraryError(_RefusedError):
    """The library that reads a kind of file is not installed."""


def main() -> None:
    """Answer the order on the input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    order = json.loads(sys.stdin.buffer.read())
    path = Path(order["path"])
    table = pa.table({})
    try:
        reader = {"excel": _workbook, "feather": _feather}.get(order["kind"], _statistics)
        loaded = libraries(order["kind"])
        _confine(path.stat().st_size)
        facts, table = reader(loaded, order, path)
    except LibraryError as error:
        facts = {"error": "library", "message": str(error)}
    except _RefusedError as error:
        facts = {"error": "file", "message": f"{path.name} {error}"}
    except MemoryError:
        facts = {"error": "file", "message": f"{path.name} needs more memory than a table of its size; save it as CSV"}
    except BaseException as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        kind = _CALLED[order["kind"]]
        message = f"{path.name} could not be read as {kind}: {reason}; save the table again, or as CSV"
        facts = {"error": "file", "message": message}
    header = json.dumps(facts).encode()
    answers.write(len(header).to_bytes(_HEAD, "little") + header)
    with pa.ipc.new_stream(answers, table.schema) as stream:
        stream.write_table(table)
    answers.flush()
    os._exit(0)  # a library that was fed a damaged file is not asked to clean up


def libraries(kind: str) -> Any:
    """What reads a kind of file, loaded before the limits count."""
    if kind == "excel":
        import python_calamine

        return python_calamine
    if kind == "feather":
        import pyarrow.feather

        return pyarrow.feather
    try:
        import pyreadstat
    except ImportError as error:
        raise LibraryError("Stata, SAS and SPSS files need pyreadstat: pip install 'evenhand[stats]'") from error
    return pyreadstat


def _confine(size: int) -> None:
    """Write no file, dump no memory, and take no more memory and time than a file of that size needs."""
    reserved = 0
    with suppress(OSError):
        reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    seconds = _SECONDS + _SECONDS_A_MB * size // 10**6
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CPU, seconds))
    for kind, most in (*limits, (resource.RLIMIT_AS, reserved + _ADDRESSES + 20 * size)):
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(kind)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (least, least))


# --------------------------------------------------------------------------------------------------------------------
# Excel.


def _workbook(calamine: Any, order: dict[str, Any], path: Path) -> Answer:
    """The cells of a sheet as text from its first row on; a cell with an error is empty."""
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except calamine.PasswordError as error:
        raise _RefusedError("is locked with a password; save it without one") from error
    plain, visible = calamine.SheetTypeEnum.WorkSheet, calamine.SheetVisibleEnum.Visible
    visible_sheets = [s.name for s in book.sheets_metadata if s.typ == plain and s.visible == visible]
    if order["sheet"] is None and len(visible_sheets) > 1:
        visible_sheets = [name for name in visible_sheets if _extent(book.get_sheet_by_name(name))]
    name = order["sheet"] if order["sheet"] is not None else next(iter(visible_sheets), None)
    if name is None:
        raise _RefusedError("has no sheet with cells that is not hidden; show it in Excel, and save it")
    if name not in book.sheet_names:
        raise _RefusedError(
            f"has no sheet {name!r}; it has {', '.join(map(repr, visible_sheets[:10])) or 'none to read'}"
        )
    sheet = book.get_sheet_by_name(name)
    extent = _extent(sheet)
    if extent is None:
        raise _RefusedError(f"has no cells in its sheet {name!r}")
    height, width = extent
    if width > _MOST_COLUMNS or height * width > _MOST_CELLS:
        raise _RefusedError(
            f"spreads the sheet {name!r} over {height:,} rows and {width:,} columns, and at most {_MOST_CELLS:,} cells "
            "are read; save the table as CSV"
        )
    names, rows, parts = [str(i) for i in range(width)], sheet.iter_rows(), list[pa.Table]()
    while part := list(islice(rows, _ROWS)):
        parts.append(pa.table([text_array(column) for column in zip(*part, strict=True)], names))
    return {"rows": height, "sheets": visible_sheets}, pa.concat_tables(parts)


def _extent(sheet: Any) -> tuple[int, int] | None:
    """Rows from the first of the sheet to the last with a cell, and columns with cells; None where it has none."""
    if sheet.start is None or sheet.end is None:
        return None
    return sheet.end[0] + 1, sheet.end[1] - sheet.start[1] + 1


# --------------------------------------------------------------------------------------------------------------------
# Feather.


def _feather(feather: Any, order: dict[str, Any], path: Path) -> Answer:
    """The columns of a Feather file as text."""
    content = feather.read_table(str(path), columns=order["columns"] or None, memory_map=False)
    content.validate(full=True)
    size = path.stat().st_size
    if content.nbytes > max(FREE_BYTES, MOST_RATIO * size):
        raise _RefusedError(f"unpacks to more than {MOST_RATIO} times its size, which no table does; give it as CSV")
    nested = [field.name for field in content.schema if is_nested(field.type)]
    names = [name for name in content.column_names if name not in nested]
    columns = names if order["columns"] is None else order["columns"]
    facts = {"names": names, "rows": content.num_rows, "nested": nested}
    texts = [pa.chunked_array([as_text(chunk) for chunk in content[name].chunks], pa.string()) for name in columns]
    return facts, pa.table(texts, names=list(columns))


# --------------------------------------------------------------------------------------------------------------------
# Stata, SAS and SPSS.


def _statistics(pyreadstat: Any, order: dict[str, Any], path: Path) -> Answer:
    """The columns of a file of a statistics package: labels in the place of codes, declared missing values empty."""
    with path.open("rb") as file:
        head = file.read(8)
    if order["kind"] == "stata":
        reader = pyreadstat.read_dta
    elif order["kind"] == "sas":
        reader = pyreadstat.read_xport if head.startswith(b"HEADER") else pyreadstat.read_sas7bdat
    else:
        reader = pyreadstat.read_sav
    if reader is pyreadstat.read_xport and path.stat().st_size % _CARD:
        raise _RefusedError("was cut short: a transport file has whole records of 80 bytes; fetch it again")
    columns = order["columns"]
    options = {"usecols": columns} if columns else {"metadataonly": True} if columns is not None else {}
    content, meta = reader(str(path), output_format="dict", **options)
    all_names = list(meta.column_names)
    if not all(isinstance(name, str) and name for name in all_names) or len(set(all_names)) < len(all_names):
        raise _RefusedError("names a column twice or not at all; it is damaged: save the table again, or as CSV")
    if meta.number_rows is None and not columns:  # a transport file of SAS does not say it
        content, _ = reader(str(path), output_format="dict", usecols=all_names[:1])
    rows = len(content[all_names[0]]) if meta.number_rows is None and all_names else int(meta.number_rows or 0)
    names = columns or all_names
    labels = {name: text for name, text in meta.column_names_to_labels.items() if text}
    facts = {"names": names, "rows": rows, "labels": labels}
    if columns is not None and not columns:
        return facts, pa.table({})
    texts = {name: _statistic(content[name], name, meta) for name in names}
    return facts, pa.table(texts) if texts else pa.table({})


def _statistic(values: Any, name: str, meta: Any) -> pa.Array:
    """A column as text: the label of a code where it has one, and the digits that were stored."""
    labels = meta.variable_value_labels.get(name, {})
    if labels:
        return text_array(labels.get(value, value) if value == value else None for value in values)
    if meta.readstat_variable_types.get(name) == "float":  # of four bytes: their digits, not those of eight
        single = pa.array([None if value is None else float(value) for value in values], pa.float32(), from_pandas=True)
        return as_text(single)
    return text_array(values)


if __name__ == "__main__":
    main()
