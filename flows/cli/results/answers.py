"""Asks DuckDB over the lake, one view per table, and prints the answer as a table, CSV or JSON."""

import csv
import io
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json, visible
from schemas.errors import InfrastructureError, SpecError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Format = Literal["table", "csv", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print: table, csv or json.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="With --format csv: text as it is, for machines. Without it, text that a spreadsheet would take for a "
        "formula gets an apostrophe, and controls of a terminal are escaped.",
    ),
]


Ask = Callable[[str, dict[str, Any]], "pa.Table"]


def ask(root: str, run: str | None, query: str, given: dict[str, Any]) -> "pa.Table":
    """The answer to one query about a run.

    Raises:
        SpecError: there is no such lake, run or table.
    """
    with asking(root, run) as asked:
        return asked(query, given)


@contextmanager
def asking(root: str, run: str | None, tables: Collection[str] | None = None) -> Iterator[Ask]:
    """Answers queries about a run, named as ``flows.runs.naming`` says; ``$run`` in them is its id.

    ``told_NAME`` in a query is what may be told of a table. Digests are checked of ``tables`` only, if some are given.

    Raises:
        SpecError: there is no such lake or run; a query that a run's tables have no answer to.
    """
    import duckdb

    from flows.runs.naming import opened
    from tasks.lake.views import open_views

    lake, found = opened(root, run)
    with open_views(lake, found, tables=tables) as connection:

        def answer(query: str, given: dict[str, Any]) -> "pa.Table":
            try:
                query = query.replace("told_", _prefix(connection)) if "told_" in query else query
                return connection.sql(query, params={"run": found, **given}).to_arrow_table()
            except duckdb.OutOfMemoryException as error:
                raise InfrastructureError(
                    f"the tables of run {found!r} need more memory than there is for a query; free some, or ask for "
                    "less of them with evenhand sql --memory"
                ) from error
            except duckdb.Error as error:
                raise SpecError(f"the tables of run {found!r} cannot be asked for that: {error}") from error

        yield answer


def _prefix(connection: "duckdb.DuckDBPyConnection") -> str:
    """Names of what may be told begin with it; empty in a run of a version that had no tables of their own for that."""
    known = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return "published_" if ("published_measures",) in known else ""


def show(table: "pa.Table", format_: str, *, raw: bool = False) -> None:
    """Print a table in a format."""
    from tasks.lake.query import rows_of

    print_answer(rows_of(table), table.column_names, format_, raw=raw)


def print_answer(rows: list[dict[str, Any]], names: list[str], format_: str, *, raw: bool = False) -> None:
    """Print rows in a format.

    Args:
        rows: by the names of their columns.
        names: of the columns, where there is no row.
        format_: table, csv or json.
        raw: whether text goes into CSV as it is.
    """
    if format_ == "json":
        print_json(rows)
    elif format_ == "csv":
        sys.stdout.write(_csv([names, *(list(row.values()) for row in rows)], raw=raw))
    else:
        print_rows(console, "", [_short(row) for row in rows])


def _csv(lines: Sequence[Sequence[object]], *, raw: bool) -> str:
    from tasks.reporting.exports.formula_cells import guarded

    sink = io.StringIO()
    plain = csv.writer(sink, lineterminator="\n")
    quoted = csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for line in lines:
        told = line if raw else [_told(guarded(cell)) for cell in line]
        ends_within = any("\r" in cell for cell in told if isinstance(cell, str))  # which the module does not quote
        (quoted if ends_within else plain).writerow(told)
    return sink.getvalue()


def _told(cell: object) -> object:
    return visible(cell) if isinstance(cell, str) else cell


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A wide row without the columns that are the same in every row of one run."""
    hidden = ("run", "dataset", "year") if len(row) > 12 else ()
    return {k: v for k, v in row.items() if k not in hidden}
