"""Commands that read results: measures, findings, verdicts, adjusted, disclose, league, sql."""

import csv
import io
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli import options
from flows.cli.terminal import console, errors, print_json, print_rows, robustness_words, visible
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.questions import QUESTIONS, STATES
from schemas.terms import State, Theory

if TYPE_CHECKING:
    import pyarrow as pa

    from flows.operations.league import League


# --------------------------------------------------------------------------------------------------------------------
# Asks DuckDB over the lake, one view per table, and prints the answer as a table, CSV or JSON.


Format = Literal["table", "csv", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print: table, csv or json.")]
SqlJsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="With --format csv: text as it is, for machines. Without it, text that a spreadsheet would take for a "
        "formula gets an apostrophe, and controls of a terminal are escaped.",
    ),
]


Ask = Callable[[str, dict[str, Any]], "pa.Table"]


def ask(root: str, run: str | None, query: str, parameters: dict[str, Any]) -> "pa.Table":
    """The answer to one query about a run.

    Raises:
        SpecError: there is no such lake, run or table.
    """
    with asking(root, run) as answer:
        return answer(query, parameters)


@contextmanager
def asking(root: str, run: str | None, tables: Collection[str] | None = None) -> Iterator[Ask]:
    """Answers queries about a run, by the names of ``flows.runs.run_names``; ``$run`` in them is its id.

    ``told_NAME`` in a query is the publishable table; digests are checked of ``tables`` only, if some are given.

    Raises:
        SpecError: there is no such lake or run; a query that a run's tables have no answer to.
    """
    import duckdb

    from flows.runs.run_names import opened
    from tasks.lake.views import open_views

    lake, run_id = opened(root, run)
    with open_views(lake, run_id, tables=tables) as connection:

        def answer(query: str, parameters: dict[str, Any]) -> "pa.Table":
            try:
                if "told_" in query:
                    # A run of an early version has no publishable tables: its tables take their place.
                    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
                    has_published = any(name.startswith("published_") for (name,) in views)
                    query = query.replace("told_", "published_" if has_published else "")
                return connection.sql(query, params={"run": run_id, **parameters}).to_arrow_table()
            except duckdb.OutOfMemoryException as error:
                raise InfrastructureError(
                    f"the tables of run {run_id!r} need more memory than there is for a query; free some, or ask for "
                    "less of them with evenhand sql --memory"
                ) from error
            except duckdb.Error as error:
                raise SpecError(f"the tables of run {run_id!r} cannot answer that query: {error}") from error

        yield answer


def show(table: "pa.Table", format_: str, *, raw: bool = False) -> None:
    """Print a table in a format."""
    from tasks.lake.views import rows_of

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
        from tasks.reporting.text import guarded

        sink = io.StringIO()
        plain = csv.writer(sink, lineterminator="\n")
        quoted = csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for cells in [names, *(list(row.values()) for row in rows)]:
            line: list[Any] = cells
            if not raw:
                line = [visible(cell) if isinstance(cell, str) else cell for cell in map(guarded, cells)]
            ends_within = any("\r" in cell for cell in line if isinstance(cell, str))  # which the module does not quote
            (quoted if ends_within else plain).writerow(line)
        sys.stdout.write(sink.getvalue())
    else:
        # Of a wide table without the columns that are the same in every row of one run.
        shown_rows = []
        for row in rows:
            hidden = ("run", "dataset", "year") if len(row) > 12 else ()
            shown_rows.append({name: value for name, value in row.items() if name not in hidden})
        print_rows(console, "", shown_rows)


# --------------------------------------------------------------------------------------------------------------------
# Command ``evenhand sql``.


app = typer.Typer()


@app.command(epilog='Example: evenhand sql "SELECT run, count(*) FROM applications GROUP BY run"')
def sql(
    query: Annotated[str, typer.Argument(help="A query; every table of the lake is a view with the column run.")],
    lake: options.LakeOption = "data/lake",
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
    as_json: SqlJsonOption = False,
    raw: RawOption = False,
) -> None:
    """Query the lake with DuckDB. It has no files but the lake's tables, and writes none; `SHOW TABLES` lists them.

    Tables other than published_... hold rows of persons, and numbers that reports withhold.
    """
    from tasks.lake.query_process import answer_apart
    from tasks.lake.store import open_lake
    from tasks.lake.views import default_memory, size_of

    size = default_memory() if memory is None else size_of(memory)
    table, withheld = answer_apart(open_lake(lake), query, timeout, size)
    if withheld:
        sys.stderr.write(f"restricted: not for publication, since reports withhold some of it: {', '.join(withheld)}\n")
    show(table, "json" if as_json else format_, raw=raw)


# --------------------------------------------------------------------------------------------------------------------
# Command ``evenhand measures``: the figures of a run, by default those with a limit or in a headline.


measures_app = typer.Typer()

Column = Literal["method", "group", "measure", "value", "n", "state", "-value", "-n"]
_TABLES = ("measures", "published_measures", "verdicts", "published_verdicts")
_SILENT = ("subgroup", "parameters", "reference_group", "events", "p", "q", "note")
_CHECKED = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
_WANTED = r"""
    ($measure IS NULL OR measure = $measure) AND ($method IS NULL OR method = $method)
    AND ($group IS NULL OR "group" = $group) AND ($state IS NULL OR state = $state)
    AND ($parts OR (subgroup = 0 AND regexp_full_match(parameters, '\{("sampled": "[^"]*")?\}')))
    AND ($every OR state IN $checked OR measure IN $headline)
"""


@measures_app.command(
    epilog="Example: evenhand measures --measure approval_rate --format csv, or: evenhand measures --sort -n"
)
def measures(
    lake: options.LakeOption = "data/lake",
    run: options.RunOption = None,
    measure: Annotated[
        str | None, typer.Option(help="Only this measure.", autocompletion=options.complete_measures)
    ] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    method: Annotated[
        str | None, typer.Option(help="Only this method; outcomes: rates.", autocompletion=options.complete_methods)
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only this state.")] = None,
    sort: Annotated[Column | None, typer.Option(help="Column to sort by; - before it: largest first.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every measure, with parts of groups and curves.")] = False,
    format_: FormatOption = "table",
    as_json: SqlJsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print the measures of a run, each with its n, interval and state: those with a limit or in a headline.

    With --measure all rows of that measure, with --method or --state all rows of whole groups that fit, with --all
    every row.
    """
    filters = {"measure": measure, "method": method, "group": group, "state": state}
    from schemas.tables.verdicts import PUBLISHED_CURVES, columns_in_approval, points_query

    order, curves = _order(sort) if sort else "", [table.name for table in PUBLISHED_CURVES]
    turned = ", ".join(columns_in_approval().values())
    with asking(lake, run, (*_TABLES, *curves)) as ask:
        headline = []
        if not any((every, measure, method, state)):
            with suppress(SpecError):  # an early run has no verdicts
                # The measures of the first page: approval rates, and those that verdicts are about.
                judged = ask("SELECT DISTINCT measure FROM told_verdicts WHERE run = $run AND measure <> ''", {})
                headline = ["approval_rate", *judged["measure"].to_pylist()]
        tables = ["SELECT * FROM told_measures"]
        if not headline:
            views = ask("SELECT view_name FROM duckdb_views() WHERE $run = $run", {})["view_name"].to_pylist()
            tables += [points_query(name) for name in curves if name in views]
        rows = " UNION ALL BY NAME ".join(tables)
        query = f"SELECT * REPLACE ({turned}) FROM ({rows}) WHERE run = $run AND {_WANTED} {order}"  # noqa: S608 ours
        chosen = {"every": not headline, "headline": headline, "checked": list(_CHECKED)}
        table = ask(query, {**filters, **chosen, "parts": every or measure is not None})
        if not table.num_rows:
            raise SpecError(_nothing(ask, filters))
        parameters = {"run": table["run"][0].as_py()}
        method_counts = ask("SELECT method, count(*) AS rows FROM told_measures WHERE run = $run GROUP BY ALL", {})
    shown_rows = table.slice(0, limit)
    silent = []
    if not as_json and format_ == "table":
        # Without the columns that are empty in all rows: whole groups, no parameters, no p-values, no notes.
        silent = [name for name in _SILENT if set(shown_rows[name].unique().to_pylist()) <= {None, "", "{}", 0}]
    show(shown_rows.drop_columns(silent), "json" if as_json else format_, raw=raw)
    run_id = parameters["run"]
    shown_counts = Counter(shown_rows["method"].to_pylist())
    hidden = {row["method"]: row["rows"] - shown_counts[row["method"]] for row in method_counts.to_pylist()}
    hidden = {method: n for method, n in sorted(hidden.items()) if n > 0}
    if hidden:
        of = ", ".join(f"{method} {n:,}" for method, n in hidden.items())
        text = f"{sum(hidden.values()):,} other rows of {run_id} are not shown ({of}): --method NAME, or --all"
        errors.print(text, markup=False)


def _order(sort: str) -> str:
    return f'ORDER BY "{sort.lstrip("-")}" {"DESC" if sort.startswith("-") else "ASC"} NULLS LAST'


def _nothing(ask: Ask, filters: Mapping[str, str | None]) -> str:
    """Why no row fits: a word that no row has, with the nearest one, or words that no row has together."""
    for name, word in filters.items():
        if word is not None:
            distinct_words = ask(f'SELECT DISTINCT "{name}" AS word FROM told_measures WHERE run = $run', {})  # noqa: S608
            words: list[Any] = sorted(distinct_words["word"].to_pylist())
            if word not in words:
                return f"--{name} {word}: no such row of the run; {nearest(word, words)}"
    option_words = " ".join(f"--{name} {word}" for name, word in filters.items() if word is not None)
    return f"{option_words or 'measures'}: no row of the run fits; leave one of them out, or see all with --all"


# --------------------------------------------------------------------------------------------------------------------
# Command ``evenhand findings``: counts of what was found, single applications, and their files for a reviewer.


findings_app = typer.Typer()

FindingsColumn = Literal["method", "group", "verdict", "findings", "-findings", "statistic", "-statistic", "q"]
_ROWS = 50
"""Applications that are printed where nobody says how many."""
_OF_ROW = "SELECT * EXCLUDE (run) FROM findings WHERE run = $run AND row_id = $row ORDER BY ALL"
_HAS_FINDINGS = "FROM duckdb_views() WHERE view_name = 'findings' AND $run IS NOT NULL"
_HAS_COMPARATORS = "FROM duckdb_views() WHERE view_name = 'comparators' AND $run IS NOT NULL"
_COMPARED = """
    SELECT protected_attribute, "group" AS denied, to_group AS approved, n, events AS with_comparator, matched AS share,
           pairs, member_denied, other_denied, p, gamma
    FROM published_compared_files WHERE run = $run AND protected_attribute = coalesce($attribute, protected_attribute)
"""
_COMPARATORS = """
    WITH pairs AS (
        SELECT protected_attribute, "group", row_id AS of, unnest([0, rank]) AS rank, distance, to_group,
               unnest([row_id, other_row_id]) AS row_id
        FROM comparators WHERE run = $run AND rank <= $most AND "group" <> to_group
          AND protected_attribute = coalesce($attribute, protected_attribute) AND "group" = coalesce($group, "group")
          AND ($group IS NOT NULL OR "group" NOT IN (
              SELECT "group" FROM published_compared_files WHERE run = $run AND "group" = to_group))
    )
    SELECT DISTINCT protected_attribute, of AS denied_row, rank, if(rank = 0, NULL, distance) AS distance,
           if(rank = 0, "group", to_group) AS "group", a.* EXCLUDE (run)
    FROM pairs JOIN applications AS a USING (row_id) WHERE a.run = $run
    ORDER BY protected_attribute, denied_row, rank
"""
"""Each denied member, and below it the comparators of the reference group."""
_ONLY = "($every OR method IN $only)"
_JUDGED = 'SELECT DISTINCT method FROM told_verdicts WHERE run = $run AND "limit" IS NOT NULL'
_FINDINGS_WANTED = """
    run = $run AND ($method IS NULL OR method = $method) AND ($group IS NULL OR "group" = $group)
    AND ($state IS NULL OR verdict = $state)
"""


@findings_app.command(epilog="Example: evenhand findings --file-pack 10 --attribute race, or: evenhand findings --json")
def findings(
    lake: options.LakeOption = "data/lake",
    run: options.RunOption = None,
    method: Annotated[
        str | None, typer.Option(help="Only this method.", autocompletion=options.complete_methods)
    ] = None,
    state: Annotated[str | None, typer.Option(help="Only this verdict, such as detected.")] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    sort: Annotated[FindingsColumn | None, typer.Option(help="Column to sort by; - before it: largest first.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most; with --rows 50 if left out.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Methods without a limit, too.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="One line per application. Restricted: personal rows.")] = False,
    row: Annotated[
        str | None,
        typer.Option(
            "--row",
            metavar="ID",
            help="What became of one row of the source: why it was refused, or its findings. Restricted.",
        ),
    ] = None,
    file_pack: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write the whole files of this many complainants (CST), the strongest findings first, as XLSX and CSV "
            "into the restricted part of the lake. Restricted: personal rows.",
        ),
    ] = None,
    comparators: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="For each denied member so many approved reference applicants who are no better in any directed "
            "column, the nearest first; and how many denied reference applicants have one. Restricted: personal rows.",
        ),
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(help="Only this protected attribute, with --file-pack or --comparators.")
    ] = None,
    maker: Annotated[
        str | None, typer.Option("--decision-maker", help="Only these decisions (model, lender), with --file-pack.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only denied applicants, with --file-pack.")] = False,
    format_: FormatOption = "table",
    as_json: SqlJsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print what was found, counted by group and verdict, of methods with a limit; row by row on request.

    A count left empty is withheld.
    """
    if file_pack is not None:
        from flows.runs.pack import WARNING, Wanted, write  # XlsxWriter is needed here only
        from flows.runs.run_names import opened

        opened_lake, run_id = opened(lake, run)
        for path in write(opened_lake, run_id, Wanted(file_pack, attribute, maker, group, denied)):
            sys.stdout.write(f"{path}\n")
        sys.stderr.write(f"{WARNING}\n")
        return
    if rows or row is not None or comparators is not None:
        sys.stderr.write("restricted: rows of persons\n")
    if comparators is not None:
        with asking(lake, run) as ask:
            if not ask(_HAS_COMPARATORS, {}).num_rows:
                raise SpecError("the run has no comparator files: its spec leaves them out, or is of an early version")
            chosen = {"attribute": attribute, "group": group, "most": comparators}
            shares, pairs = ask(_COMPARED, {"attribute": attribute}), ask(_COMPARATORS, chosen)
        print_rows(errors, "Denied applicants with an approved comparator", shares.to_pylist())
        show(pairs.slice(0, limit), "json" if as_json else format_, raw=raw)
        return
    if row is not None:
        _tell(lake, run, row, partial(show, format_="json" if as_json else format_, raw=raw))
        return
    table = "findings" if rows else "published_findings"
    filters = {"method": method, "group": group, "state": state}
    query = f"FROM {table} WHERE {_FINDINGS_WANTED}"
    with asking(lake, run, ("findings", "published_findings", "verdicts", "published_verdicts")) as ask:
        judged_methods = [] if every or rows or method else ask(_JUDGED, {})["method"].to_pylist()
        parameters = {
            **filters,
            "only": judged_methods,
            "every": not judged_methods,
            "most": limit or (_ROWS if rows else None),
        }
        order = _order(sort) if sort else "ORDER BY ALL"
        result = ask(f"SELECT * EXCLUDE (run) {query} AND {_ONLY} {order} LIMIT $most", parameters)
        [fitting] = ask(f"SELECT count(*) AS rows {query}", filters)["rows"].to_pylist()
    if not fitting and any(filters.values()):
        option_words = " ".join(f"--{name} {word}" for name, word in filters.items() if word is not None)
        raise SpecError(f"{option_words}: no row of the run fits; `evenhand findings --all` prints all counts")
    show(result, "json" if as_json else format_, raw=raw)
    if hidden_rows := fitting - result.num_rows:
        errors.print(f"{hidden_rows:,} other rows are not shown: --limit, --method NAME, or --all", markup=False)


def _tell(root: str, run: str | None, row: str, tell: "Callable[[pa.Table], None]") -> None:
    from flows.cli.row import why_refused  # with it come the libraries of the stages
    from flows.runs.run_names import opened

    lake, run_id = opened(root, run)
    refused = why_refused(lake, run_id, row)
    if refused is not None:
        tell(refused)
        return
    errors.print(f"row {row} was refused by no stage; findings of it, if there are any:", markup=False)
    with asking(root, run_id, ("findings",)) as ask:
        if ask(_HAS_FINDINGS, {}).num_rows:  # a run without methods has no such table
            tell(ask(_OF_ROW, {"row": row}))


# --------------------------------------------------------------------------------------------------------------------
# Commands that read verdicts: verdicts, adjusted, disclose.


verdicts_app = typer.Typer()

_NAMED = 3
"""Groups that a sentence names; it counts more of them."""
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


@verdicts_app.command(epilog="Example: evenhand verdicts --theory similar_applicants")
def verdicts(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    theory: Annotated[Theory | None, typer.Option(help="Only this question.")] = None,
    format_: FormatOption = "table",
    as_json: SqlJsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print the state of every question, and of each judged group, with effect, verdict interval and limit.

    Rows of the role primary decide, and those of adds may add a breach. Rows of other roles decide nothing. A verdict
    interval lies beyond the limit, or inside it, where the state does; pages show the 95 % interval.
    """
    from flows.runs.index import run_of
    from flows.runs.run_names import opened
    from schemas.questions import rephrase_of, rephrase_rows
    from schemas.sentences import command
    from schemas.tables.verdicts import effect_words, limit_words, published_findings  # loads pyarrow
    from schemas.tables.verdicts import published_verdicts as published

    query = "SELECT * FROM told_verdicts WHERE run = $run AND ($theory IS NULL OR theory = $theory)"
    rows = ask(lake, run, query, {"theory": theory}).to_pylist()
    if not rows:
        raise SpecError(f"the run has no row of {theory or 'verdicts'}; audit again to make it, or leave --theory out")
    rephrase = rephrase_of(run_of(*opened(lake, rows[0]["run"])).spec)
    rows = rephrase_rows(rows, rephrase)
    document = published(rows)
    findings: list[dict[str, Any]] = []
    if theory in (None, Theory.SIMILAR_APPLICANTS):
        with suppress(SpecError):  # an early run has no findings
            query = "SELECT * FROM published_verdict_findings WHERE run = $run"
            findings = rephrase_rows(ask(lake, run, query, {}).to_pylist(), rephrase)
    if as_json or format_ == "json":
        print_json(document | {"findings": published_findings(findings)})
    elif format_ == "csv":
        listed = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
        print_answer(listed, document["columns"], format_, raw=raw)
    else:
        shown_rows = []
        for row in rows:
            of_group = f"{row['protected_attribute']}: {row['group']}" if row["group"] else "(all)"
            shown = {
                "question": QUESTIONS[Theory(row["theory"])].short,
                "group": of_group,
                "decisions_of": row["decision_maker"],
                "measure": row["measure"],
                "role": row["role"] if row["group"] else "",
                "result [verdict interval]": effect_words(row),
                "limit": limit_words(row),
                "state": STATES[State(row["state"])].words + " (withheld)" * row["withheld"],
                "why": row["reason"],
            }
            shown_rows.append(shown)
        print_answer(shown_rows, [], format_)
        for finding in findings:
            console.print(f"{finding['sentence']} {finding['next']}", markup=False)
            if line := command(finding, finding["run"]):
                console.print(f"  {line}", markup=False, soft_wrap=True)
        for sentence in way_on(rows):
            errors.print(sentence, markup=False)


def way_on(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Advice for groups with withheld rows; empty without any."""
    groups = dict.fromkeys(row["group"] for row in rows if row["withheld"])
    if not groups:
        return []
    named = ", ".join(groups) if len(groups) <= _NAMED else f"{len(groups)} groups"
    return [f"{named}: withheld, as few people stand behind them. For your own eyes: --set disclosure.profile=internal"]


@verdicts_app.command(
    epilog="Example: evenhand adjusted --group Black, or: evenhand adjusted boston1990-1990-0123456789 --json"
)
def adjusted(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    as_json: SqlJsonOption = False,
) -> None:
    """Print the ladder of a run: differences of approval among more and more similar applicants, with intervals."""
    from schemas.tables.verdicts import approval_of  # loads pyarrow
    from tasks.methods.adjusted.algorithm.detection import ENOUGH_SUPPORT

    table_query = (
        "SELECT 1 AS there FROM information_schema.tables WHERE table_name = 'published_adjusted' AND $run = $run"
    )
    if not ask(lake, run, table_query, {}).num_rows:
        raise SpecError("this run has no denial ladder: its spec leaves it out (methods: {adjusted: null})")
    rows = ask(lake, run, _LADDER, {"group": group, "enough": ENOUGH_SUPPORT}).to_pylist()
    if not rows:
        groups = 'SELECT DISTINCT "group" FROM published_adjusted WHERE run = $run'
        group_names = ask(lake, run, groups, {}).to_pydict()["group"]
        raise SpecError(f"no such group; of {group!r}: {nearest(group or '', sorted(group_names))}")
    for row in rows:
        row["difference"] = approval_of(row["difference"])
        row["low"], row["high"] = approval_of(row["high"]), approval_of(row["low"])
    print_answer(rows, list(rows[0]), "json" if as_json else "table")
    for row in () if as_json else ask(lake, run, _UNSEEN, {"group": group}).to_pylist():
        if row["rv"] is not None:
            denial, of_group = row["column_of_denial"], row["column_of_group"]
            text = robustness_words(row["rv"], row["strongest"] or "", denial, of_group)
            sys.stdout.write(visible(f"\n{row['group']}, decisions of the {row['decision_maker']}: {text}\n"))


@verdicts_app.command(epilog="Example: evenhand disclose boston1990-1990-0123456789")
def disclose(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    as_json: SqlJsonOption = False,
) -> None:
    """Print each withheld population: why, and the bounds of its number that can be derived. Restricted.

    The earlier published runs that were taken into account are named before it.
    """
    from flows.runs.disclosure import RESTRICTED, taken, withheld
    from flows.runs.index import run_of
    from flows.runs.run_names import opened

    opened_lake, name = opened(lake, run)
    partitions = run_of(opened_lake, name).partitions
    rows = withheld(opened_lake, partitions)
    earlier = [earlier_run["run"] for earlier_run in taken(opened_lake, partitions)]
    sys.stderr.write(f"{RESTRICTED}\n")
    sys.stderr.write(f"audited together with earlier published runs: {', '.join(earlier) or 'none'}\n")
    print_answer(rows, list(rows[0]) if rows else [], "json" if as_json else "table")


# --------------------------------------------------------------------------------------------------------------------
# The command that holds the partitions of a year beside each other: league.


league_app = typer.Typer()
MOST = 30
"""Partitions that a terminal shows; the page has more, and --json all."""


@league_app.command(epilog="Example: evenhand league hmda.yaml --year 2022 --measure adjusted_effect --group Black")
def league(
    spec: Annotated[
        Path,
        typer.Argument(help="The audit spec, with `by`, of the partitions.", autocompletion=options.complete_specs),
    ],
    year: Annotated[
        int | None,
        typer.Option(parser=options.year_of, metavar="YEAR", help="Year of the decisions; the spec's if left out."),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Only this measure; those that judge if left out.", autocompletion=options.complete_measures),
    ] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    lake: options.LakeOption = "data/lake",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the page there; else to the lake's reports.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print the partitions of a year side by side, and write the page: for screening, and no verdict."""
    from flows.operations.league import document, make_league, write_league
    from tasks.lake.store import open_lake
    from tasks.metrics.league.rows import Asked

    audit_spec, opened = options.load_spec(spec, {}).spec, open_lake(lake)
    league_of_year = make_league(audit_spec, audit_spec.year if year is None else year, opened, Asked(measure, group))
    page = write_league(league_of_year, opened, html)
    if as_json:
        print_json({"page": page, **document(league_of_year)})
    else:
        _print(league_of_year, page)


def _print(league_of_year: "League", page: str) -> None:
    """What it is for, then a table for each measure and group."""
    from tasks.reporting import league

    noun = league.noun_of(league_of_year.column)
    console.print(league.first_statement(noun), markup=False, soft_wrap=True)
    console.print(
        f"{league_of_year.title}, by {league_of_year.column}: {league_of_year.census.words}",
        markup=False,
        soft_wrap=True,
    )
    for subject, table in league_of_year.tables.items():
        console.print()
        rows = []
        for line in table.lines[:MOST]:  # the page and --json have the other columns
            figure = line.figure
            row = {
                "partition": league.called(line.entrant),
                "rows": line.entrant.usable,
                "n": figure.n,
                "value": figure.counts or _interval(figure.value, figure.low, figure.high),
                "less all": _plain(line.difference),
                "pooled": _interval(line.pooled, line.pooled_low, line.pooled_high),
                "p": _chance(line.p),
                "q": _chance(line.q),
                "q (BY)": _chance(line.q_dependent),
                "screened": "yes" if line.screened else "no",
                "state": STATES[State(figure.state)].words + " (withheld)" * figure.withheld,
                "robustness": _plain(figure.robustness),
                "detectable": _plain(figure.detectable),
            }
            rows.append(row)
        print_rows(console, league.titled(subject), rows)
        notes = [f"{len(table.lines) - MOST} more with --json, and on the page"] if len(table.lines) > MOST else []
        for sentence in (*notes, league.expected(table, noun), league.order_words(noun)):
            console.print(sentence, markup=False, soft_wrap=True)
    console.print()
    console.print(f"page  {page}", markup=False, soft_wrap=True)


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" [{low:z.3f}, {high:z.3f}]"
    return "" if value is None else f"{value:z.3f}{ends}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:z.3f}"


def _chance(p: float | None) -> str:
    return "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
