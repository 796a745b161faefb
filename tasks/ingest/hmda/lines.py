"""Lines of a recognised file as rows of text, and the numbers of those that do not split into its columns.

Everything is read as text: what a cell means is for those who select from ``raw``. No line is lost: rows and broken
lines are held against the number of lines in the file. DuckDB numbers rows only where it reads with one thread, so each
piece is numbered by itself, and its rows go on from the lines before it.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of the layouts

import gzip
from collections.abc import Sequence
from itertools import pairwise

import duckdb
import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataQualityError
from tasks.ingest.hmda.canonical.cells import literal
from tasks.ingest.hmda.files.recognition import Recognised
from tasks.ingest.hmda.pieces import Piece, cut, serve

_BLANK = "line IS NULL OR trim(line) = ''"


def open_raw(connection: duckdb.DuckDBPyConnection, recognised: Recognised, most: int = 1) -> list[Piece]:
    """Make the view ``raw`` of the file in at most so many pieces: its columns as text, blank as null, ``source_row``.

    ``source_row`` counts the rows that can be read; ``source_rows`` makes of it the place in the file.
    """
    pieces = cut(recognised, most)
    names = serve(connection, recognised.path, pieces)
    if recognised.layout.stops:
        (name,) = names
        connection.execute(f"CREATE OR REPLACE TEMP VIEW placed_lines AS {_placed_lines(recognised, name)}")
        parts = [_fixed_width(recognised)]
    else:
        parts = [
            _delimited(recognised, piece, name, i) for i, (piece, name) in enumerate(zip(pieces, names, strict=True))
        ]
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw AS {' UNION ALL '.join(parts)}")
    return pieces


def broken_rows(
    connection: duckdb.DuckDBPyConnection, recognised: Recognised, pieces: Sequence[Piece], rows: int
) -> NDArray[np.int64]:
    """Numbers of the rows, from 1, whose line does not split into the columns; ``rows`` is how many ``raw`` gave.

    ``raw`` has to have been read to its end.

    Raises:
        DataQualityError: rows and broken lines together are not the lines of the file, as with a quote left open.
    """
    if recognised.layout.stops:
        queries = [f"SELECT place AS broken FROM placed_lines WHERE NOT ({_BLANK}) AND NOT {_fits(recognised)}"]
    else:
        queries = [
            f"SELECT DISTINCT line + {piece.before - piece.header} AS broken FROM {_rejects(i)}"
            for i, piece in enumerate(pieces)
        ]
    found = np.concatenate([connection.execute(query).fetchnumpy()["broken"].astype(np.int64) for query in queries])
    expected = recognised.lines - recognised.header
    if rows + len(found) not in (expected, expected - _blank_lines(recognised)):
        raise DataQualityError(
            f"{recognised.path.name} has {expected:,} lines below its header, and {rows + len(found):,} can be told "
            "apart: a quote is left open, or a cell goes over several lines; mend the file or fetch it again"
        )
    return np.sort(found)


def source_rows(places: NDArray[np.int64], pieces: Sequence[Piece], broken: NDArray[np.int64]) -> NDArray[np.int64]:
    """``(n,)`` places in the file, from 1, of rows by their number in ``raw``: broken lines take up places, too."""
    out = places.copy()
    bounds = [*(piece.before for piece in pieces), np.iinfo(np.int64).max]
    for low, high in pairwise(bounds):
        mine, missing = (places > low) & (places <= high), broken[(broken > low) & (broken <= high)]
        readable_before = missing - np.arange(1, len(missing) + 1)
        out[mine] += np.searchsorted(readable_before, places[mine] - 1, side="right")
    return out


def _blank_lines(recognised: Recognised) -> int:
    with gzip.open(recognised.path) if recognised.compression == "gzip" else recognised.path.open("rb") as file:
        return sum(not line.strip() for line in file)


def _rejects(index: int) -> str:
    return f"broken_lines_{index}"


def _read_csv(recognised: Recognised, name: str, **options: str) -> str:
    settings = {
        "auto_detect": "false",
        "encoding": literal(recognised.encoding),
        "compression": literal(recognised.compression),
        "new_line": literal(recognised.line_end.replace("\r", "\\r").replace("\n", "\\n")),
        "nullstr": "''",
        **options,
    }
    return f"read_csv({literal(name)}, {', '.join(f'{key} = {value}' for key, value in settings.items())})"


def _delimited(recognised: Recognised, piece: Piece, name: str, index: int) -> str:
    columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in recognised.columns)
    table = _read_csv(
        recognised,
        name,
        header=str(piece.header).lower(),
        delim=literal(recognised.delimiter),
        quote="'\"'",
        escape="'\"'",
        columns="{" + columns + "}",
        store_rejects="true",
        rejects_table=literal(_rejects(index)),
        rejects_scan=literal(f"{_rejects(index)}_scan"),
        rejects_limit="0",
    )
    return f"SELECT *, row_number() OVER () + {piece.before} AS source_row FROM {table}"


def _placed_lines(recognised: Recognised, name: str) -> str:
    """Whole lines, with their numbers."""
    options = {"header": "false", "delim": "'\\x01'", "quote": "''", "escape": "''", "columns": "{'line': 'VARCHAR'}"}
    return f"SELECT line, row_number() OVER () AS place FROM {_read_csv(recognised, name, **options)}"


def _fits(recognised: Recognised) -> str:
    """Whether a line is as long as a record, with the blanks of an empty last cell or without what is behind it."""
    stop = recognised.layout.stops[-1]
    return f"(length(line) = {stop} OR length(rtrim(line)) = {stop})"


def _fixed_width(recognised: Recognised) -> str:
    stops = recognised.layout.stops
    cells = ", ".join(
        f"nullif(trim(substr(line, {start + 1}, {stop - start})), '') AS \"{name}\""
        for name, start, stop in zip(recognised.columns, (0, *stops[:-1]), stops, strict=True)
    )
    whole = f"NOT ({_BLANK}) AND {_fits(recognised)}"
    return f"SELECT {cells}, row_number() OVER () AS source_row FROM placed_lines WHERE {whole}"
