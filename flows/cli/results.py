"""Commands that read results: measures, findings, adjusted, sql. DuckDB over the lake, one view per table."""

import csv
import io
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.options import LakeOption
from flows.cli.summary import print_rows
from flows.cli.terminal import print_json
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.terms import State, Theory

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.metrics.algorithm.disclosure import Policy

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
    FROM adjusted WHERE run = $run AND ($group IS NULL OR "group" = $group)
    ORDER BY decision_maker, protected_attribute, "group", rung,
             NOT (estimator = 'overlap' AND coalesce(support < $enough, false)), estimator <> 'logit', estimator,
             average_over DESC
"""
"""Where the support is poor, the overlap-weighted difference is read first."""
_UNSEEN = """
    SELECT a.decision_maker, a."group", a.n, a.events AS denied, a.rv, a.strongest,
           b.column_of_denial, b.column_of_group
    FROM adjusted AS a
    JOIN adjusted AS judged USING (run, rung, decision_maker, protected_attribute, "group")
    LEFT JOIN adjusted_benchmarks AS b
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

    query = "SELECT * EXCLUDE (run) FROM verdicts WHERE run = $run AND ($theory IS NULL OR theory = $theory)"
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


@app.command(epilog="Example: evenhand adjusted --group Black, or: evenhand adjusted boston1990-1990-0123456789 --json")
def adjusted(
    run: Annotated[str | None, typer.Argument(help="Run id; the latest run if left out.")] = None,
    lake: LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the denial ladder of a run: differences of denial among ever more similar applicants, with intervals."""
    from tasks.methods.adjusted.algorithm.detection import ENOUGH_SUPPORT

    ask = "SELECT 1 AS there FROM information_schema.tables WHERE table_name = 'adjusted' AND $run = $run"
    if not _ask(lake, run, ask, {}).num_rows:
        raise SpecError("this run has no denial ladder: its spec leaves it out (methods: {adjusted: null})")
    rows = _ask(lake, run, _LADDER, {"group": group, "enough": ENOUGH_SUPPORT}).to_pylist()
    if not rows:
        known = _ask(lake, run, 'SELECT DISTINCT "group" FROM adjusted WHERE run = $run', {}).to_pydict()["group"]
        raise SpecError(f"no such group; of {group!r}: {nearest(group or '', sorted(known))}")
    policy = _policy(lake, run)
    _print([_published(row, policy) for row in rows], list(rows[0]), "json" if as_json else "table")
    for row in () if as_json else _ask(lake, run, _UNSEEN, {"group": group}).to_pylist():
        sys.stdout.write(_sentence(_published(row, policy)))


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


def _published(row: dict[str, Any], policy: "Policy") -> dict[str, Any]:
    """A row of the ladder without what a small group would give away, and rounded as other published numbers are."""
    from tasks.metrics.algorithm.disclosure import rounded, small

    counts = ("n", "denied")
    if small(policy, row["n"], row["denied"]):
        numbers = {name for name, value in row.items() if isinstance(value, int | float) and name != "judged"}
        return {**row, **dict.fromkeys(numbers), "reason": "withheld: a small cell"}
    digits = 4 if policy.round_to == 1 else 2
    shown = {name: round(value, digits) if isinstance(value, float) else value for name, value in row.items()}
    return shown | {name: rounded(policy, row[name]) for name in counts}


def _sentence(row: dict[str, Any]) -> str:
    from tasks.methods.adjusted.report.words import sentence

    if row["rv"] is None:
        return ""
    text = sentence(row["rv"], row["strongest"] or "", row["column_of_denial"], row["column_of_group"])
    return f"\n{row['group']}, decisions of the {row['decision_maker']}: {text}\n"


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
