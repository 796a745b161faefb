"""Command ``reproduce``: figures against the papers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.proof.work import JsonOption, shown
from flows.cli.summary import print_rows
from flows.cli.terminal import console, show_progress
from schemas.errors import SpecError
from schemas.terms import ExitCode

app = typer.Typer()

JOBS = 2
"""Data sets at a time, unless said."""


@app.command(
    epilog="Examples: evenhand reproduce fgce --data shared --only german, or: evenhand reproduce all --data shared "
    "--quick --keep results --markdown reproduction.md"
)
def reproduce(
    paper: Annotated[str, typer.Argument(help="The method, by its paper's acronym, such as fgce; or all.")],
    data: Annotated[Path, typer.Option(help="Directory with data/ and golden/ in it.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="This data set only, such as german of fgce; may be given again."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At a size of about a minute a paper; all: five minutes on two cores.")
    ] = False,
    folds: Annotated[
        int | None, typer.Option(min=1, max=5, help="cec: folds to train on, of the paper's five; one if left out.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Of the systems that the paper compares itself with; all if left out; may be given again.",
        ),
    ] = None,
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="None of these systems.")] = False,
    networks: Annotated[
        int | None, typer.Option(min=1, help="gcfn: generators trained together; the paper's ten if left out.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="gcfn: passes over 10,000 rows; the paper's 300 if left out.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=5, help="gcfn: runs that means are taken over; five if left out.")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            min=2_500, help="raguel: records of the longest list that is drawn; the paper's 1,000,000 if left out."
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="all: folder that keeps each data set's result, from which a second call goes on."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="all: data sets at a time.")] = JOBS,
    markdown: Annotated[
        Path | None, typer.Option(help="all: file for the ledger, a row for every table and figure of the papers.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="File for a page (HTML) with what is drawn of the papers' figures.")
    ] = None,
    every_cell: Annotated[bool, typer.Option("--every-cell", help="Print the cells that agree, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a paper's experiment and compare with what it prints. Exit 1 if a figure differs beyond its tolerance."""
    from flows.reproduce.run import ALL_PAPERS, Asked

    baselines = () if no_baselines else tuple(baseline) if baseline else None
    size: dict[str, Any] = {"folds": folds, "baseline": baselines, "networks": networks, "epochs": epochs}
    size |= {"seeds": seeds, "records": records}
    of_one = {"only": only, "every-cell": every_cell, **size}
    of_all = {"keep": keep, "markdown": markdown, "jobs": jobs if jobs != JOBS else None}
    whole = paper == ALL_PAPERS
    _refuse(paper, of_one if whole else of_all, "a single paper" if whole else "`reproduce all`")
    if whole:
        differs = _all(data, keep, jobs, quick=quick, as_json=as_json, files={"markdown": markdown, "charts": charts})
    else:
        asked = Asked(paper, tuple(only or ()), quick, size)
        differs = _one(asked, data, charts, every_cell=every_cell, as_json=as_json)
    if differs:
        raise typer.Exit(ExitCode.BREACH)


def _refuse(paper: str, options: Mapping[str, Any], taken: str) -> None:
    """An option that is for others would be ignored in silence."""
    for option, value in options.items():
        if value not in (None, False):
            raise SpecError(f"reproduce {paper} takes no --{option}; {taken} does")


def _one(asked: Any, data: Path, charts: Path | None, *, every_cell: bool, as_json: bool) -> bool:
    """Run a paper, print its figures, and tell whether any differs."""
    from flows.reproduce.charts import charts_page
    from flows.reproduce.run import reproduce as run
    from flows.reproduce.show import as_json as plain
    from flows.reproduce.show import summary, tables
    from tasks.proof.lines import Verdict

    with shown(f"reproduce {asked.paper}"):
        found = run(asked, data)
    lines = [line for each in found.values() for line in each.lines]
    drawings = {name: [drawing.plain() for drawing in each.drawings] for name, each in found.items()}
    if as_json:
        console.print_json(json.dumps(plain(lines) | {"drawings": drawings}))
    else:
        for dataset, rows in tables(lines, every_cell=every_cell):
            print_rows(console, dataset, rows)
            console.print()
        console.print(summary(lines), markup=False)
    if charts:
        charts.write_text(charts_page({(asked.paper, name): several for name, several in drawings.items()}))
    return any(line.verdict is Verdict.DIFFERS for line in lines)


def _all(
    data: Path, keep: Path | None, jobs: int, *, quick: bool, as_json: bool, files: Mapping[str, Path | None]
) -> bool:
    """Run all papers, print the ledger, and tell whether any figure differs or is missing."""
    from flows.reproduce.charts import charts_page
    from flows.reproduce.page import COLUMNS, cells, page, totals
    from flows.reproduce.show import as_json as plain
    from flows.reproduce.whole import Whole, ledgers, reproduce_all
    from tasks.proof.ledger import Status
    from tasks.proof.lines import Verdict

    show_progress()
    found = reproduce_all(Whole(data, quick, keep, jobs))
    rows = ledgers(found)
    if as_json:
        said = [plain(each.lines) | {"paper": each.part.paper, "drawings": each.drawings} for each in found]
        shown_rows = {
            paper: [dict(zip(COLUMNS, cells(row), strict=True)) for row in each] for paper, each in rows.items()
        }
        console.print_json(json.dumps({"ledger": shown_rows, "data_sets": said}))
    else:
        for paper, each in rows.items():
            print_rows(console, paper, [dict(zip(COLUMNS, cells(row), strict=True)) for row in each])
            console.print()
        console.print(totals(rows), markup=False)
    if (markdown := files["markdown"]) is not None:
        markdown.write_text(page(rows, found))
    if (charts := files["charts"]) is not None:
        charts.write_text(charts_page({(each.part.paper, each.part.dataset): each.drawings for each in found}))
    differs = any(line.verdict is Verdict.DIFFERS for each in found for line in each.lines)
    return differs or any(Status.MISSING in row.status for each in rows.values() for row in each)
