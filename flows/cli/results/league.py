"""The command that holds the partitions of a year beside each other: league."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_groups, complete_measures, complete_specs
from flows.cli.options import JsonOption, LakeOption, load_spec, year_of
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json

if TYPE_CHECKING:
    from flows.operations.league.standings import League
    from tasks.metrics.league.rows import Line

app = typer.Typer()
MOST = 30
"""Partitions that a terminal shows; the page has more, and --json all."""


@app.command(epilog="Example: evenhand league hmda.yaml --year 2022 --measure adjusted_effect --group Black")
def league(
    spec: Annotated[
        Path, typer.Argument(help="The audit spec, with `by`, of the partitions.", autocompletion=complete_specs)
    ],
    year: Annotated[
        int | None, typer.Option(parser=year_of, metavar="YEAR", help="Year of the decisions; the spec's if left out.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Only this measure; those that judge if left out.", autocompletion=complete_measures),
    ] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=complete_groups)] = None,
    lake: LakeOption = "data/lake",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the page there; else to the lake's reports.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the partitions of a year beside each other, and write the page: for screening, and no verdict."""
    from flows.operations.league.files import document, write_league
    from flows.operations.league.standings import make_league
    from tasks.lake.store import open_lake
    from tasks.metrics.league.asked import Asked

    read, opened = load_spec(spec, {}).spec, open_lake(lake)
    made = make_league(read, read.year if year is None else year, opened, Asked(measure, group))
    page = write_league(made, opened, html)
    if as_json:
        print_json({"page": page, **document(made)})
    else:
        _print(made, page)


def _print(made: "League", page: str) -> None:
    """What it is for, then a table for each measure and group."""
    from tasks.reporting.league import words

    noun = words.noun_of(made.column)
    console.print(words.first_statement(noun), markup=False, soft_wrap=True)
    console.print(f"{made.title}, by {made.column}: {made.census.words}", markup=False, soft_wrap=True)
    for subject, table in made.tables.items():
        console.print()
        print_rows(console, words.titled(subject), [_cells(line) for line in table.lines[:MOST]])
        more = [f"{len(table.lines) - MOST} more with --json, and on the page"] if len(table.lines) > MOST else []
        for sentence in (*more, words.expected(table, noun), words.NO_RANKING.format(noun=noun)):
            console.print(sentence, markup=False, soft_wrap=True)
    console.print()
    console.print(f"page  {page}", markup=False, soft_wrap=True)


def _cells(line: "Line") -> dict[str, Any]:
    """One partition as the terminal shows it; the page and --json have the other columns."""
    from schemas.tables.verdicts import STATES
    from schemas.terms import State
    from tasks.reporting.league.tables import called

    figure = line.figure
    state = STATES[State(figure.state)] + " (withheld)" * figure.withheld
    return {
        "partition": called(line.entrant),
        "rows": line.entrant.usable,
        "n": figure.n,
        "value": _interval(figure.value, figure.low, figure.high),
        "less all": _plain(line.difference),
        "pooled": _interval(line.pooled, line.pooled_low, line.pooled_high),
        "p": _chance(line.p),
        "q": _chance(line.q),
        "q (BY)": _chance(line.q_dependent),
        "screened": "yes" if line.screened else "no",
        "state": state,
        "robustness": _plain(figure.robustness),
        "detectable": _plain(figure.detectable),
    }


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return "" if value is None else f"{value:.3f}{ends}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _chance(p: float | None) -> str:
    return "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
