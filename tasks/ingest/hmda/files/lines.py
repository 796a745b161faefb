"""Lines of a recognised file as rows of text, and the numbers of those that do not split into its columns.

Everything is read as text: what a cell means is for those who select from ``raw``. No line is lost: rows and broken
lines are held against the number of lines in the file.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of the layouts

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataQualityError
from tasks.ingest.hmda.files.recognition import Recognised

if TYPE_CHECKING:
    import duckdb

_REJECTS = "broken_lines"


def open_raw(connection: "duckdb.DuckDBPyConnection", recognised: Recognised) -> None:
    """Make the view ``raw``: the file's columns as text, and ``source_row``, the place among the rows that it gives.

    Once it is read to its end, ``broken`` says which lines it left out, and ``source_rows`` where its rows stand.
    """
    fixed = _fixed_width(recognised) if recognised.layout.stops else _delimited(recognised)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw AS {fixed}")


def broken(connection: "duckdb.DuckDBPyConnection", recognised: Recognised, rows: int) -> list[int]:
    """Numbers, from 1, of the rows whose line does not split into the columns; ``rows`` is how many ``raw`` gave.

    Raises:
        DataQualityError: rows and broken lines together are not the lines of the file, as with a quote left open.
    """
    if recognised.layout.stops:
        numbers = connection.execute(
            f"SELECT place FROM ({_placed_lines(recognised)}) WHERE NOT ({_BLANK}) AND NOT {_fits(recognised)}"
        ).fetchall()
    else:
        numbers = connection.execute(f"SELECT DISTINCT line - {int(recognised.header)} FROM {_REJECTS}").fetchall()
    found = sorted(int(number) for (number,) in numbers)
    expected = recognised.lines - recognised.header
    if rows + len(found) != expected and rows + len(found) != expected - _blank_lines(connection, recognised):
        raise DataQualityError(
            f"{recognised.path.name} has {expected:,} lines below its header, and {rows + len(found):,} can be told "
            "apart: a quote is left open, or a cell goes over several lines; mend the file or fetch it again"
        )
    return found


def source_rows(places: NDArray[np.int64], broken_rows: list[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """``(n,)`` numbers of rows in the file, from 1, of those that stand at ``places`` among the readable ones."""
    before = np.asarray(broken_rows, np.int64) - np.arange(1, len(broken_rows) + 1)
    return places + np.searchsorted(before, places - 1, side="right")


def quoted(text: str) -> str:
    """Text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _read_csv(recognised: Recognised, **options: Any) -> str:
    said = {
        "auto_detect": "false",
        "header": str(recognised.header).lower(),
        "encoding": quoted(recognised.encoding),
        "compression": quoted(recognised.compression),
        "new_line": quoted(recognised.line_end.replace("\r", "\\r").replace("\n", "\\n")),
        "nullstr": "''",
        **options,
    }
    return f"read_csv({quoted(str(recognised.path))}, {', '.join(f'{k} = {v}' for k, v in said.items())})"


def _delimited(recognised: Recognised) -> str:
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in recognised.columns)
    table = _read_csv(
        recognised,
        delim=quoted(recognised.delimiter),
        quote="'\"'",
        escape="'\"'",
        columns="{" + columns + "}",
        store_rejects="true",
        rejects_table=quoted(_REJECTS),
        rejects_limit="0",
    )
    return f"SELECT *, row_number() OVER () AS source_row FROM {table}"


_BLANK = "line IS NULL OR trim(line) = ''"


def _fits(recognised: Recognised) -> str:
    """Whether a line is as long as a record, with the blanks of an empty last cell or without what is behind it."""
    stop = recognised.layout.stops[-1]
    return f"(length(line) = {stop} OR length(rtrim(line)) = {stop})"


def _placed_lines(recognised: Recognised) -> str:
    """Whole lines, with their numbers."""
    table = _read_csv(recognised, delim="'\\x01'", quote="''", escape="''", columns="{'line': 'VARCHAR'}")
    return f"SELECT line, row_number() OVER () AS place FROM {table}"


def _fixed_width(recognised: Recognised) -> str:
    stops = recognised.layout.stops
    cells = ", ".join(
        f"nullif(trim(substr(line, {start + 1}, {stop - start})), '') AS \"{name}\""
        for name, start, stop in zip(recognised.columns, (0, *stops[:-1]), stops, strict=True)
    )
    return (
        f"SELECT {cells}, row_number() OVER () AS source_row FROM ({_placed_lines(recognised)}) "
        f"WHERE NOT ({_BLANK}) AND {_fits(recognised)}"
    )


def _blank_lines(connection: "duckdb.DuckDBPyConnection", recognised: Recognised) -> int:
    counted = connection.execute(f"SELECT count(*) FROM ({_placed_lines(recognised)}) WHERE {_BLANK}").fetchone()
    return int(counted[0]) if counted else 0
