"""The list of runs, newest first, 50 a page; every filter stands in the address."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.summary import Summary
from flows.serving.index.runs import Known
from flows.serving.pages.cells import by_question, run_cell, run_state, steps, table, time_cell
from flows.serving.rendering import Field, Page, made
from flows.serving.site import Site
from schemas.terms import State
from tasks.reporting.section import Cell, Section

PER_PAGE: Final = 50
_SIGNED: Final = ("unsigned", "prepared", "reviewed", "approved", "rejected", "withdrawn")
_HEADER = ("Run", "Audit", "Year", "State", "By question", "Finished", "Signed")


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/runs")
    def runs(audit: str = "", year: str = "", state: str = "", signed: str = "", page: int = 1) -> Response:
        known = site.known()
        asked = {"audit": audit, "year": year, "state": state, "signed": signed}
        found = [run for run in known.newest_first if _fits(known, run, asked)]
        shown = found[(max(page, 1) - 1) * PER_PAGE :][:PER_PAGE]
        section = _section(known, shown, len(found))
        return made(
            Page(
                "Runs",
                section,
                form=_form(known, asked),
                more=steps("/runs", asked, page, len(found), PER_PAGE),
                here="/runs",
            )
        )

    return router


def _fits(known: Known, run: Summary, asked: dict[str, str]) -> bool:
    own = {
        "audit": run.audit,
        "year": str(run.year),
        "state": run.state,
        "signed": known.signed.get(run.run, "unsigned"),
    }
    return all(wanted in ("", own[name]) for name, wanted in asked.items())


def _form(known: Known, asked: dict[str, str]) -> tuple[Field, ...]:
    options = {
        "audit": tuple(known.audits()),
        "year": tuple(map(str, sorted({run.year for run in known.newest_first}, reverse=True))),
        "state": tuple(state.value for state in State),
        "signed": _SIGNED,
    }
    return tuple(Field(name, name.capitalize(), asked[name], options[name]) for name in asked)


def _section(known: Known, shown: Sequence[Summary], found: int) -> Section:
    words = f"{found:,} of {len(known.newest_first):,} runs fit, newest first."
    if not shown:
        return Section("Runs", "runs", (words,))
    parted = any(run.partition for run in shown)
    rows = [_row(known, run, parted=parted) for run in shown]
    header = (*_HEADER[:3], *(("Partition",) if parted else ()), *_HEADER[3:])
    return Section("Runs", "runs", (words,), tables=(table("Runs", header, rows),))


def _row(known: Known, run: Summary, *, parted: bool) -> tuple[Cell, ...]:
    protected = ", protected" if run.run in known.protected else ""
    return (
        run_cell(run.run),
        Cell(run.audit),
        Cell(str(run.year), "number"),
        *((Cell(" ".join((run.partition or {}).values())),) if parted else ()),
        run_state(run.state),
        by_question(run),
        time_cell(run.finished),
        Cell(known.signed.get(run.run, "unsigned") + protected),
    )
