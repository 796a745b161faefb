"""The audits of the lake: where each stands, when the next run is due, and what waits for a person."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import Response

from flows.operations.overdue import held_against
from flows.partitions.attempts.record import Attempt, YearState
from flows.runs.summary import Summary
from flows.serving.index.known import Known
from flows.serving.pages.cells import badge, by_question, gravity, run_cell, run_state, table, time_cell
from flows.serving.pages.lake.reasons import told
from flows.serving.rendering import Page, made, path_of, run_path
from flows.serving.site import Site
from schemas.audit.limits import Expected
from tasks.reporting.section import Cell, Notice, Section

_HEADER = ("Audit", "Years", "Last run", "State", "By question", "Finished", "Next expected", "Unsigned", "Trend")
_FAILED = (YearState.FAILED, YearState.INTERRUPTED)


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/")
    def home() -> Response:
        return made(Page("Audits", _section(site.known()), here="/"))

    return router


def _section(known: Known) -> Section:
    audits = known.audits
    if not audits and not known.unreadable and not known.tried:
        empty = "The lake holds no run yet; `evenhand audit` makes one."
        return Section("Audits", "audits", (empty,))
    found = {audit: _row(known, audit, runs) for audit, runs in audits.items()}
    found |= {audit: _tried(audit, attempts) for audit, attempts in known.tried.items()}
    rows = tuple(found[audit] for audit in sorted(found))
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
        *_states(known, runs),
        time_cell(last.finished),
        _due(audit, runs),
        Cell(str(unsigned), "number"),
        Cell("trend", address=path_of("audits", audit, "trend")),
    )


def _states(known: Known, runs: Sequence[Summary]) -> tuple[Cell, Cell]:
    """State and questions of the last run; of partitions, the gravest state of their last year, and how many have it.

    The newest of many lenders says nothing of the others.
    """
    last = runs[0]
    if not any(run.partition for run in runs):
        return run_state(last.state), by_question(last)
    year = max(run.year for run in runs)
    counts = Counter(run.state for run in runs if run.year == year and run.run in known.valid)
    ordered = sorted(counts, key=gravity)
    said = "; ".join(f"{run_state(state).text}: {counts[state]:,}" for state in ordered)
    return run_state(ordered[0]), Cell(f"{counts.total():,} partitions of {year}: {said}")


def _tried(audit: str, attempts: Sequence[Attempt]) -> tuple[Cell, ...]:
    """An audit that was tried and has no run."""
    years, last = [each.year for each in attempts], max(attempts, key=lambda each: each.began)
    gravest = next((each for each in attempts if each.state is YearState.FAILED), last)
    none = Cell("–", "none")
    return (
        Cell(audit, address=path_of("audits", audit, "years")),
        Cell(str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"),
        Cell("no run yet", "none"),
        badge(gravest.state.value, "failed" if gravest.state in _FAILED else "not_run"),
        Cell(told(gravest.message) or "–"),
        time_cell(last.began),
        *(none, none, none),
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
