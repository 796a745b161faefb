"""Commands that read results: measures, findings, adjusted, sql. DuckDB over the lake, one view per table."""

import csv
import io
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.options import LakeOption
from flows.cli.summary import print_rows, robustness_words
from flows.cli.terminal import print_json
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.terms import State, Theory

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


app = typer.Typer()

RunOption = Annotated[str | None, typer.Option("--run", help="Run id; the latest run if left out.")]
FormatOption = Annotated[
    Literal["table", "csv", "json"], typer.Option("--format", help="How to print: table, csv or json.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


_LADDER = """
    SELECT decision_maker, protected_attribute, "group", if(blocks = '', 'none', blocks) AS adjusted_for,
           estimator, average_over, "primary" AS judged, value AS difference, low, high, odds_ratio,
           n, events AS denied, support, rv AS robustness_value, e_value, e_value_near, reason
    FROM published_adjusted WHERE run = $run AND ($group IS NULL OR "group" = $group)
    ORDER BY decision_maker, protected_attribute, "group", rung,
             NOT (estimator = 'overlap' AND coalesce(support < $enough, false)), estimator <> 'logit', estimator,
             average_over DESC
"""
"""Where the support is poor, the overlap-weighted difference is read first."""
_UNSEEN = """
    SELECT a.decision_maker, a."group", a.n, a.events AS denied, a.rv, a.strongest,
           b.column_of_denial, b.column_of_group
    FROM published_adjusted AS a
    JOIN published_adjusted AS judged USING (run, rung, decision_maker, protected_attribute, "group")
    LEFT JOIN published_adjusted_benchmarks AS b
      ON b.run = a.run AND b.decision_maker = a.decision_maker AND b.protected_attribute = a.protected_attribute
     AND b."group" = a."group" AND b."column" = a.strongest AND b.times = 1
    WHERE a.run = $run AND ($group IS NULL OR a."group" = $group)
      AND judged."primary" AND a.estimator = 'lpm' AND a.rv IS NOT NULL
    ORDER BY ALL
"""
"""Of the judged rung: what an unseen column has to explain, and what the strongest control explains."""


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
        SELECT * FROM told_measures
        WHERE run = $run AND ($measure IS NULL OR measure = $measure) AND ($group IS NULL OR "group" = $group)
          AND ($every OR (subgroup = 0 AND parameters = '{}'))
    """
    given = {"measure": measure, "group": group, "every": every or measure is not None}
    table = _ask(lake, run, query, given)
    if table.num_rows == 0:
        known = _ask(lake, run, 'SELECT DISTINCT measure, "group" FROM told_measures WHERE run = $run', {}).to_pydict()
        name, names = (measure, known["measure"]) if measure else (group or "", known["group"])
        raise SpecError(f"no such row; of {name!r}: {nearest(name, sorted(set(names)))}")
    _show(table, "json" if as_json else format_)


@app.command(epilog="Example: evenhand verdicts --theory direct")
def verdicts(
    run: Annotated[str | None, typer.Argument(help="Run id; the latest run if left out.")] = None,
    lake: LakeOption = "data/lake",
    theory: Annotated[Theory | None, typer.Option(help="Only this kind of harm.")] = None,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Print the state of every theory of harm, and of each judged group, with effect, verdict interval and limit."""
    from schemas.tables.verdicts import published  # loads pyarrow

    query = "SELECT * EXCLUDE (run) FROM told_verdicts WHERE run = $run AND ($theory IS NULL OR theory = $theory)"
    rows = _ask(lake, run, query, {"theory": theory}).to_pylist()
    if not rows:
        raise SpecError(f"the run has no row of {theory or 'verdicts'}; audit again to make it, or leave --theory out")
    said = published(rows)
    if as_json or format_ == "json":
        print_json(said)
    elif format_ == "csv":
        _print([dict(zip(said["columns"], row, strict=True)) for row in said["rows"]], said["columns"], format_)
    else:
        _print([_in_words(row) for row in rows], [], format_)


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    from schemas.tables.verdicts import STATES, effect_words, limit_words

    group = f"{row['protected_attribute']}: {row['group']}" if row["group"] else "(all)"
    named = {"theory": row["theory"], "group": group, "decisions_of": row["decision_maker"], "measure": row["measure"]}
    state = STATES[State(row["state"])] + " (withheld)" * row["withheld"]
    return {**named, "effect": effect_words(row), "limit": limit_words(row), "state": state, "why": row["reason"]}


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
    group: Annotated[str | None, typer.Option(help="Only this group, with --file-pack.")] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only denied applicants, with --file-pack.")] = False,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Print what was found, counted by group and verdict; a count left empty is withheld. Row by row on request."""
    if file_pack is not None:
        _pack(lake, run, file_pack, attribute, maker, group, denied=denied)
        return
    counted = "SELECT * EXCLUDE (run) FROM published_findings WHERE run = $run ORDER BY ALL"
    single = "SELECT * EXCLUDE (run) FROM findings WHERE run = $run ORDER BY ALL LIMIT $limit"
    if rows:
        sys.stderr.write("restricted: rows of persons\n")
        _show(_ask(lake, run, single, {"limit": limit}), "json" if as_json else format_)
        return
    _show(_ask(lake, run, counted, {}), "json" if as_json else format_)


@app.command(epilog="Example: evenhand adjusted --group Black, or: evenhand adjusted boston1990-1990-0123456789 --json")
def adjusted(
    run: Annotated[str | None, typer.Argument(help="Run id; the latest run if left out.")] = None,
    lake: LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the denial ladder of a run: differences of denial among ever more similar applicants, with intervals."""
    from tasks.methods.adjusted.algorithm.detection import ENOUGH_SUPPORT

    ask = "SELECT 1 AS there FROM information_schema.tables WHERE table_name = 'published_adjusted' AND $run = $run"
    if not _ask(lake, run, ask, {}).num_rows:
        raise SpecError("this run has no denial ladder: its spec leaves it out (methods: {adjusted: null})")
    rows = _ask(lake, run, _LADDER, {"group": group, "enough": ENOUGH_SUPPORT}).to_pylist()
    if not rows:
        groups = 'SELECT DISTINCT "group" FROM published_adjusted WHERE run = $run'
        known = _ask(lake, run, groups, {}).to_pydict()["group"]
        raise SpecError(f"no such group; of {group!r}: {nearest(group or '', sorted(known))}")
    _print(rows, list(rows[0]), "json" if as_json else "table")
    for row in () if as_json else _ask(lake, run, _UNSEEN, {"group": group}).to_pylist():
        sys.stdout.write(_sentence(row))


@app.command(epilog="Example: evenhand disclose boston1990-1990-0123456789")
def disclose(
    run: Annotated[str | None, typer.Argument(help="Run id; the latest run if left out.")] = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Print each withheld population: why, and the least and largest number that can be told of it. Restricted."""
    from flows.runs.disclosure import RESTRICTED, withheld
    from flows.runs.index import run_of
    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run

    opened = open_lake(lake)
    rows = withheld(opened, run_of(opened, run or latest_run(opened)).partitions)
    sys.stderr.write(f"{RESTRICTED}\n")
    _print(rows, list(rows[0]) if rows else [], "json" if as_json else "table")


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
    """Query the lake with DuckDB. It has no files but the lake's tables, and writes none; `SHOW TABLES` lists them.

    Tables other than published_... hold rows of persons, and numbers that reports withhold.
    """
    from tasks.lake.query import answer, size_of, untold
    from tasks.lake.store import open_lake
    from tasks.lake.views import default_memory, open_views

    size = default_memory() if memory is None else size_of(memory)
    with open_views(open_lake(lake), memory=size) as connection:
        table, raw = answer(connection, query, timeout, size), untold(connection, query)
    if raw:
        sys.stderr.write(f"restricted: not for publication, since reports withhold some of it: {', '.join(raw)}\n")
    _show(table, "json" if as_json else format_)


def _sentence(row: dict[str, Any]) -> str:
    if row["rv"] is None:
        return ""
    text = robustness_words(row["rv"], row["strongest"] or "", row["column_of_denial"], row["column_of_group"])
    return f"\n{row['group']}, decisions of the {row['decision_maker']}: {text}\n"


def _ask(root: str, run: str | None, query: str, given: dict[str, Any]) -> "pa.Table":
    import duckdb

    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run, open_views

    lake = open_lake(root)
    run = run or latest_run(lake)
    with open_views(lake, run) as connection:
        try:
            query = query.replace("told_", _prefix(connection)) if "told_" in query else query
            return connection.sql(query, params={"run": run, **given}).to_arrow_table()
        except duckdb.OutOfMemoryException as error:
            raise InfrastructureError(
                f"the tables of run {run!r} need more memory than there is for a query; free some, or ask for less of "
                "them with evenhand sql --memory"
            ) from error
        except duckdb.Error as error:
            raise SpecError(f"the tables of run {run!r} cannot be asked for that: {error}") from error


def _prefix(connection: "duckdb.DuckDBPyConnection") -> str:
    """Names of what may be told begin with it; empty in a run of a version that had no tables of their own for that."""
    known = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return "published_" if ("published_measures",) in known else ""


def _pack(
    root: str, run: str | None, n: int, attribute: str | None, maker: str | None, group: str | None, *, denied: bool
) -> None:
    from flows.runs.pack import WARNING, Wanted, write  # XlsxWriter is needed here only
    from tasks.lake.store import open_lake
    from tasks.lake.views import latest_run

    lake = open_lake(root)
    for path in write(lake, run or latest_run(lake), Wanted(n, attribute, maker, group, denied)):
        sys.stdout.write(f"{path}\n")
    sys.stderr.write(f"{WARNING}\n")


def _show(table: "pa.Table", format_: str) -> None:
    from tasks.lake.query import rows_of

    _print(rows_of(table), table.column_names, format_)


def _print(rows: list[dict[str, Any]], names: list[str], format_: str) -> None:
    from rich.console import Console

    if format_ == "json":
        print_json(rows)
    elif format_ == "csv":
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(names)
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
