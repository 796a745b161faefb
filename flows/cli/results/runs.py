"""Commands ``runs`` and ``show``: which runs the lake has, and the first page of one."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_audits, complete_years
from flows.cli.options import JsonOption, LakeOption, LatestArgument, year_of
from flows.cli.summary import print_rows
from flows.cli.terminal import console, errors, print_json, visible
from schemas.errors import SpecError
from schemas.terms import State

if TYPE_CHECKING:
    from flows.operations.listing import Listed

app = typer.Typer()

_SHORT = {
    State.BREACH: "outside",
    State.INSUFFICIENT_EVIDENCE: "too little",
    State.WITHIN: "inside",
    State.NO_LIMIT: "no limit",
    State.NOT_RUN: "not run",
    State.DESCRIPTIVE: "described",
}
"""Words of a state in the list, in the order in which they are told."""


@app.command(epilog="Example: evenhand runs --audit boston1990 --state breach")
def runs(
    lake: LakeOption = "data/lake",
    audit: Annotated[str | None, typer.Option(help="Only runs of this audit.", autocompletion=complete_audits)] = None,
    year: Annotated[
        int | None,
        typer.Option(parser=year_of, metavar="YEAR", help="Only runs of this year.", autocompletion=complete_years),
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only runs that ended so.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Runs at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the runs of the lake, newest first, each with the state of every question."""
    from flows.operations.listing import listed
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    found = listed(opened, audit, year, state)
    if not found:
        raise SpecError(_nothing(lake, sorted({run.audit for run in listed(opened)})))
    shown = found[:limit]
    if as_json:
        print_json([vars(run) for run in shown])
        return
    parted = any(run.partition for run in shown)
    print_rows(console, "", [_row(run, parted=parted) for run in shown])
    if len(found) > limit:
        errors.print(f"{len(found) - limit} older runs are not shown: --limit {len(found)}", markup=False)


@app.command(epilog="Example: evenhand show, or: evenhand show boston1990@1990")
def show(run: LatestArgument = None, lake: LakeOption = "data/lake", as_json: JsonOption = False) -> None:
    """Print the first page of a run: what was found by question, what to do next, what it cannot tell."""
    from flows.runs.first_page.content import first_page, left_out, remarks
    from flows.runs.first_page.lines import summary
    from flows.runs.naming import opened

    there, name = opened(lake, run)
    page, place = first_page(there, name)
    if as_json:
        print_json(page)
        return
    for line in summary(page, place, left_out=left_out(there, name), more=remarks(there, name)):
        sys.stdout.write(f"{visible(line)}\n")
    for warning in page["warnings"]:
        errors.print(f"warning: {warning}", markup=False)


def _nothing(lake: str, audits: list[str]) -> str:
    if not audits:
        return f"the lake {lake} holds no run yet; `evenhand audit` makes one"
    return f"no run of the lake {lake} fits these; it has runs of {', '.join(audits)}"


def _row(run: "Listed", *, parted: bool) -> dict[str, Any]:
    finished = run.finished.replace("T", " ")[:16]
    states = _by_state(run.theories) or State(run.state).value.replace("_", " ")
    return {
        "run": run.run,
        "audit": run.audit,
        "year": run.year,
        **({"partition": " ".join(run.partition.values()) if run.partition else ""} if parted else {}),
        "finished": finished,
        "state by question": "; ".join([states, *["protected"] * run.protected]),
    }


def _by_state(theories: Any) -> str:
    """The questions of each state, the gravest first."""
    told = {words: [t for t, state in theories.items() if state == name] for name, words in _SHORT.items()}
    return "; ".join(f"{words}: {', '.join(of)}" for words, of in told.items() if of)
