"""Command ``evenhand findings``: counts of what was found, single applications, and their files for a reviewer."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.completion import complete_groups, complete_methods
from flows.cli.options import LakeOption, RunOption
from flows.cli.results.answers import FormatOption, JsonOption, RawOption, asking, show
from flows.cli.terminal import errors
from schemas.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

app = typer.Typer()

Column = Literal["method", "group", "verdict", "findings", "-findings", "statistic", "-statistic", "q"]
_ROWS = 50
"""Applications that are printed where nobody says how many."""
_OF_ROW = "SELECT * EXCLUDE (run) FROM findings WHERE run = $run AND row_id = $row ORDER BY ALL"
_HAS_FINDINGS = "FROM duckdb_views() WHERE view_name = 'findings' AND $run IS NOT NULL"
_ONLY = "($every OR method IN $only)"
_JUDGED = 'SELECT DISTINCT method FROM told_verdicts WHERE run = $run AND "limit" IS NOT NULL'
_WANTED = """
    run = $run AND ($method IS NULL OR method = $method) AND ($group IS NULL OR "group" = $group)
    AND ($state IS NULL OR verdict = $state)
"""


@app.command(epilog="Example: evenhand findings --file-pack 10 --attribute race, or: evenhand findings --json")
def findings(
    lake: LakeOption = "data/lake",
    run: RunOption = None,
    method: Annotated[str | None, typer.Option(help="Only this method.", autocompletion=complete_methods)] = None,
    state: Annotated[str | None, typer.Option(help="Only this verdict, such as detected.")] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=complete_groups)] = None,
    sort: Annotated[Column | None, typer.Option(help="Column to sort by; - before it: largest first.")] = None,
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
    attribute: Annotated[str | None, typer.Option(help="Only this protected attribute, with --file-pack.")] = None,
    maker: Annotated[
        str | None, typer.Option("--decision-maker", help="Only these decisions (model, lender), with --file-pack.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only denied applicants, with --file-pack.")] = False,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print what was found, counted by group and verdict, of methods with a limit; row by row on request.

    A count left empty is withheld.
    """
    if file_pack is not None:
        _pack(lake, run, file_pack, attribute, maker, group, denied=denied)
        return
    if rows or row is not None:
        sys.stderr.write("restricted: rows of persons\n")
    if row is not None:
        _tell(lake, run, row, partial(show, format_="json" if as_json else format_, raw=raw))
        return
    table = "findings" if rows else "published_findings"
    wanted = {"method": method, "group": group, "state": state}
    query = f"FROM {table} WHERE {_WANTED}"
    with asking(lake, run, ("findings", "published_findings", "verdicts", "published_verdicts")) as ask:
        judged = [] if every or rows or method else ask(_JUDGED, {})["method"].to_pylist()
        given = {**wanted, "only": judged, "every": not judged, "most": limit or (_ROWS if rows else None)}
        found = ask(f"SELECT * EXCLUDE (run) {query} AND {_ONLY} {_order(sort)} LIMIT $most", given)
        [fitting] = ask(f"SELECT count(*) AS rows {query}", wanted)["rows"].to_pylist()
    if not fitting and any(wanted.values()):
        asked = " ".join(f"--{name} {word}" for name, word in wanted.items() if word is not None)
        raise SpecError(f"{asked}: no row of the run fits; `evenhand findings --all` prints all counts")
    show(found, "json" if as_json else format_, raw=raw)
    if left := fitting - found.num_rows:
        errors.print(f"{left:,} other rows are not shown: --limit, --method NAME, or --all", markup=False)


def _tell(root: str, run: str | None, row: str, tell: "Callable[[pa.Table], None]") -> None:
    from flows.cli.results.row import why_refused  # with it come the libraries of the stages
    from flows.runs.naming import opened

    lake, found = opened(root, run)
    refused = why_refused(lake, found, row)
    if refused is not None:
        tell(refused)
        return
    errors.print(f"row {row} was refused by no stage; findings of it, if there are any:", markup=False)
    with asking(root, found, ("findings",)) as ask:
        if ask(_HAS_FINDINGS, {}).num_rows:  # a run without methods has no such table
            tell(ask(_OF_ROW, {"row": row}))


def _order(sort: str | None) -> str:
    if sort is None:
        return "ORDER BY ALL"
    return f'ORDER BY "{sort.lstrip("-")}" {"DESC" if sort.startswith("-") else "ASC"} NULLS LAST'


def _pack(
    root: str, run: str | None, n: int, attribute: str | None, maker: str | None, group: str | None, *, denied: bool
) -> None:
    from flows.runs.naming import opened
    from flows.runs.pack import WARNING, Wanted, write  # XlsxWriter is needed here only

    lake, found = opened(root, run)
    for path in write(lake, found, Wanted(n, attribute, maker, group, denied)):
        sys.stdout.write(f"{path}\n")
    sys.stderr.write(f"{WARNING}\n")
