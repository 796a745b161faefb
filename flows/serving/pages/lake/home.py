"""The audits of the lake: where each stands, when the next run is due, and what waits for a person."""

from collections.abc import Sequence
from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import Response

from flows.operations.overdue import held_against
from flows.runs.summary import Summary
from flows.serving.index.runs import Known
from flows.serving.pages.cells import by_question, run_cell, run_state, table, time_cell
from flows.serving.rendering import Page, made, path_of, run_path
from flows.serving.site import Site
from schemas.audit.limits import Expected
from tasks.reporting.section import Cell, Notice, Section

_HEADER = ("Audit", "Years", "Last run", "State", "By question", "Finished", "Next expected", "Unsigned", "Trend")


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/")
    def home() -> Response:
        return made(Page("Audits", _section(site.known()), here="/"))

    return router


def _section(known: Known) -> Section:
    audits = known.audits()
    if not audits and not known.unreadable:
        empty = "The lake holds no run yet; `evenhand audit` makes one."
        return Section("Audits", "audits", (empty,))
    rows = tuple(_row(known, audit, runs) for audit, runs in audits.items())
    shown = table("Audits", _HEADER, rows, "Unsigned: valid runs that nobody signed.") if rows else None
    return Section(
        "Audits", "audits", notices=tuple(_notices(known)), tables=(shown,) if shown else (), parts=_open(known)
    )


def _row(known: Known, audit: str, runs: Sequence[Summary]) -> tuple[Cell, ...]:
    last, years = runs[0], sorted({run.year for run in runs})
    unsigned = sum(run.run in known.valid and run.run not in known.signed for run in runs)
    span = str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"
    return (
        Cell(audit, address=path_of("runs", audit=audit)),
        Cell(span, address=path_of("audits", audit, "years")),
        run_cell(last.run),
        run_state(last.state),
        by_question(last),
        time_cell(last.finished),
        _due(audit, runs),
        Cell(str(unsigned), "number"),
        Cell("trend", address=path_of("audits", audit, "trend")),
    )


def _due(audit: str, runs: Sequence[Summary]) -> Cell:
    """When the next run is due, by the rule of the last run's spec."""
    if not runs[0].expected:
        return Cell("–", "none")
    try:
        due = held_against(Expected.model_validate(runs[0].expected), audit, None, runs, datetime.now(UTC))
    except ValueError:  # of another version
        return Cell("–", "none")
    return Cell(f"overdue since {due.expected_by}") if due.overdue else Cell(str(due.next_by))


def _notices(known: Known) -> list[Notice]:
    found = []
    if known.log.broken:
        found.append(Notice("The log cannot be relied on", f"{known.log.broken}. `evenhand log verify` says more."))
    if known.unreadable:
        words = "These runs cannot be read, and are in no list; `evenhand verify --all` says why."
        found.append(Notice("Runs that cannot be read", words, known.unreadable[:20]))
    return found


def _open(known: Known) -> tuple[Section, ...]:
    """What has to be remedied, and by when."""
    if not known.open:
        return ()
    rows = [
        (
            Cell(each.due),
            Cell("overdue" if each.overdue() else "open"),
            Cell(each.owner),
            Cell(each.text),
            Cell(each.run, address=run_path(each.run, "review")) if each.run in known.runs else Cell(each.run),
        )
        for each in sorted(known.open, key=lambda each: each.due)
    ]
    header = ("Due", "State", "Owner", "What", "Run")
    return (Section("To be remedied", "remediations", tables=(table("Remediations that are open", header, rows),)),)
