"""Commands that read results: measures, findings, sql. DuckDB over the lake, one view per table."""

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import InfrastructureError, SpecError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.metrics.algorithm.disclosure import Policy

app = typer.Typer()

LakeOption = Annotated[str, typer.Option("--lake", envvar="EVENHAND_LAKE", help="Directory of the lake, or its URI.")]
RunOption = Annotated[str | None, typer.Option("--run", help="Run id; the latest run if left out.")]
FormatOption = Annotated[
    Literal["table", "csv", "json"], typer.Option("--format", help="How to print: table, csv or json.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


@app.command(epilog="Example: evenhand measures --measure approval_rate --format csv")
def measures(
    lake: LakeOption = "data/lake",
    run: RunOption = None,
    measure: Annotated[str | None, typer.Option(help="Only this measure.")] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Parts of groups and curves too.")] = False,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Print the measures of a run, each with its n, interval and state."""
    query = """
        SELECT * FROM measures
        WHERE run = $run AND ($measure IS NULL OR measure = $measure) AND ($group IS NULL OR "group" = $group)
          AND ($every OR (subgroup = 0 AND parameters = '{}'))
    """
    given = {"measure": measure, "group": group, "every": every or measure is not None}
    table = _ask(lake, run, query, given)
    if table.num_rows == 0:
        known = _ask(lake, run, 'SELECT DISTINCT measure, "group" FROM measures WHERE run = $run', {}).to_pydict()
        name, names = (measure, known["measure"]) if measure else (group or "", known["group"])
        raise SpecError(f"no such row; of {name!r}: {nearest(name, sorted(set(names)))}")
    _show(table, "json" if as_json else format_)


@app.command(epilog="Example: evenhand findings --file-pack 10 --attribute race, or: evenhand findings --json")
def findings(
    lake: LakeOption = "data/lake",
    run: RunOption = None,
    rows: Annotated[bool, typer.Option("--rows", help="One line per application. Restricted: personal rows.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Lines at most, with --rows.")] = 50,
    file_pack: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write the whole files of this many complainants (CST), the strongest findings first, as XLSX and CSV "
            "into the restricted part of the lake. Restricted: personal rows.",
        ),
    ] = None,
    attribute: Annotated[str | None, typer.Option(help="Only this protected attribute, with --file-pack.")] = None,
    maker: Annotated[
        str | None, typer.Option("--decision-maker", help="Only these decisions (model, lender), with --file-pack.")
    ] = None,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Print what was found, counted by group and verdict; a count left empty is withheld. Row by row on request."""
    if file_pack is not None:
        _pack(lake, run, file_pack, attribute, maker)
        return
    # a group with one small count is withheld whole: its n is printed elsewhere, and would give the small one away
    counted = """
        WITH cells AS (
            SELECT method, decision_maker, protected_attribute, "group", verdict, coalesce(refusal, '') AS refusal,
                   count(*) AS n, avg(statistic) AS mean
            FROM findings WHERE run = $run GROUP BY ALL
        ), smallest AS (
            SELECT *, min(n) OVER (PARTITION BY method, decision_maker, protected_attribute, "group") AS fewest
            FROM cells
        )
        SELECT * EXCLUDE (n, mean, fewest),
               CASE WHEN fewest >= $smallest THEN (round(n / $step) * $step)::BIGINT END AS findings,
               CASE WHEN fewest >= $smallest THEN mean END AS mean_statistic
        FROM smallest ORDER BY ALL
    """
    single = "SELECT * EXCLUDE (run) FROM findings WHERE run = $run ORDER BY ALL LIMIT $limit"
    if rows:
        _show(_ask(lake, run, single, {"limit": limit}), "json" if as_json else format_)
        return
    policy = _policy(lake, run)
    table = _ask(lake, run, counted, {"smallest": policy.smallest, "step": policy.round_to})
    _show(table, "json" if as_json else format_)


@app.command(epilog='Example: evenhand sql "SELECT run, count(*) FROM applications GROUP BY run"')
def sql(
    query: Annotated[str, typer.Argument(help="A query; every table of the lake is a view with the column run.")],
    lake: LakeOption = "data/lake",
    timeout: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="SECONDS", help="Stop the query after so long.")
    ] = 600,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What the query may use, such as 2GB; more is kept on disk meanwhile. A quarter of the machine's "
            "memory, at most 8GB, if left out.",
        ),
    ] = None,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Query the lake with DuckDB. It has no files but the lake's tables, and writes none; `SHOW TABLES` lists them."""
    from tasks.lake.query import answer, size_of
    from tasks.lake.store import open_lake
    from tasks.lake.views import default_memory, open_views

    size = default_memory() if memory is None else size_of(memory)
    with open_views(open_lake(lake), memory=size) as connection:
        table = answer(connection, query, timeout, size)
    _show(table, "json" if as_json else format_)


def _ask(root: str, run: str | None, query: str, given: dict[str, Any]) -> "pa.Table":
    import duckdb

    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run, open_views

    lake = open_lake(root)
    run = run or latest_run(lake)
    with open_views(lake, run) as connection:
        try:
            return connection.sql(query, params={"run": run, **given}).to_arrow_table()
        except duckdb.OutOfMemoryException as error:
            raise InfrastructureError(
                f"the tables of run {run!r} need more memory than there is for a query; free some, or ask for less of "
                "them with evenhand sql --memory"
            ) from error
        except duckdb.Error as error:
            raise SpecError(f"the tables of run {run!r} cannot be asked for that: {error}") from error


def _pack(root: str, run: str | None, n: int, attribute: str | None, maker: str | None) -> None:
    from flows.runs.pack import WARNING, write  # openpyxl is needed here only
    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run

    lake = open_lake(root)
    for path in write(lake, run or latest_run(lake), n, attribute, maker):
        sys.stdout.write(f"{path}\n")
    sys.stderr.write(f"{WARNING}\n")


def _policy(root: str, run: str | None) -> "Policy":
    """What the spec of a run withholds."""
    from flows.runs.record import read_manifest
    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run
    from tasks.metrics.algorithm.disclosure import POLICIES

    lake = open_lake(root)
    return POLICIES[read_manifest(lake, run or latest_run(lake))["spec"]["disclosure"]["profile"]]


def _show(table: "pa.Table", format_: str) -> None:
    from rich.console import Console

    from flows.cli.summary import print_rows
    from tasks.lake.query import rows_of

    rows = rows_of(table)
    if format_ == "json":
        sys.stdout.write(json.dumps(rows, indent=1, default=str) + "\n")
    elif format_ == "csv":
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows(row.values() for row in rows)
        sys.stdout.write(sink.getvalue())
    else:
        print_rows(
            Console(highlight=False, width=None if sys.stdout.isatty() else 200), "", [_short(row) for row in rows]
        )


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A wide row without the columns that are the same in every row of one run."""
    hidden = ("run", "dataset", "year") if len(row) > 12 else ()
    return {k: v for k, v in row.items() if k not in hidden}
