"""Years of an audit: each stage of each year with its state and run, and the trend of its measures."""

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.outcome.words.plain import without_cells
from flows.runs.summary import Summary
from flows.serving.pages.cells import run_cell, table, time_cell
from flows.serving.rendering import Field, Page, made, path_of
from flows.serving.site import Site
from schemas.audit.partition import ALL
from schemas.terms import State
from tasks.reporting.numbers import state_cell
from tasks.reporting.section import Cell, Link, Section

if TYPE_CHECKING:
    from flows.operations.status import Standing

_CRUMBS = (("/", "Audits"),)
_FRESH_SECONDS: Final = 10
"""What today's data, code and libraries are is asked anew after so long: it reads files of the source."""
_VERDICTS = {"within": State.WITHIN, "breach": State.BREACH, "insufficient": State.INSUFFICIENT_EVIDENCE}
_HEADER = ("Year", "State", "Run", "Edition", "Ended", "Why")
_STAGES = {"ok": "held", "failed": "failed", "insufficient": "insufficient_evidence", "running": "quarantined"}
"""State of a stage -> colour and sign of its badge."""
_COUNT = re.compile(r"\b(?!(?:19|20)\d\d\b)\d[\d,.]*\d|\b\d\b")
"""A number that is no year."""
_ROWS = re.compile(r"; rows .*")
"""Ids of rows, which a failed check names at its end."""


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()
    held: dict[str, tuple[float, list[Standing]]] = {}

    @router.get("/audits/{audit}/years")
    def years(audit: str) -> Response:
        site.audit(audit)
        found = _standing(site, audit, held)
        running = any(each.state == "running" for each in found)
        return made(Page(f"Years of {audit}", _section(audit, found), crumbs=_CRUMBS, refresh=running))

    @router.get("/audits/{audit}/trend")
    def trend(audit: str, measure: str = "") -> Response:
        runs = site.audit(audit)
        key = ("trend", audit, measure, site.known().log.head.sha256, *(run.run for run in runs))
        return site.pages.page(key, lambda: _trend(site, audit, runs, measure))

    return router


def _trend(site: Site, audit: str, runs: Sequence[Summary], measure: str) -> Page:
    from flows.partitions.trends import trend_of  # loads what reports are made with

    parts = [run.partition for run in runs]
    value = parts[0]["value"] if parts[0] and None not in parts else ALL
    found = trend_of(audit, sorted({run.year for run in runs}), site.known().lake, value, measure)
    names = tuple(sorted(set(found.table["measure"].to_pylist()) | ({measure} - {""})))
    form = (Field("measure", "Measure", measure, names),)
    return Page(found.section.title, found.section, crumbs=_CRUMBS, form=form, kicker=f"Decisions, {found.span}")


def _standing(site: Site, audit: str, held: "dict[str, tuple[float, list[Standing]]]") -> "list[Standing]":
    from flows.operations.status import status  # loads what plans are made with

    now = time.monotonic()
    if audit not in held or now - held[audit][0] > _FRESH_SECONDS:
        held[audit] = (now, status(site.known().lake, audit))
    return held[audit][1]


def _section(audit: str, found: "Sequence[Standing]") -> Section:
    link = Link("Trend of its measures", path_of("audits", audit, "trend"))
    runs = Link("All of its runs", path_of("runs", audit=audit))
    if not found:
        return Section(
            f"Years of {audit}",
            "years",
            ("The years of this audit are of partitions: see its runs.",),
            links=(runs, link),
        )
    from flows.operations.status import BARRED

    plan = _planned(found, BARRED)
    names = list(dict.fromkeys(stand.stage for each in found for stand in each.stages))
    matrix = table("Stages of each year", ("Year", *names), [_stages(each, names) for each in found])
    years = table("Years", _HEADER, map(_row, found))
    return Section(f"Years of {audit}", "years", (plan,), links=(runs, link), tables=(years, matrix))


def _planned(found: "Sequence[Standing]", barred_words: str) -> str:
    """What a back-fill would do, in a sentence."""
    barred = [str(each.year) for each in found if each.message.startswith(barred_words)]
    again = [str(each.year) for each in found if each.state in ("stale", "failed", "interrupted")]
    again = [year for year in again if year not in barred]
    said = [f"A back-fill would audit {', '.join(again)}: `evenhand plan` says what that costs."] if again else []
    said += [f"{', '.join(barred)}: not to be audited again as things are, as told from this server."] if barred else []
    return " ".join(said) or "A back-fill has nothing to do: every year stands by today's data, code and spec."


def told(text: str) -> str:
    """A reason as it may be shown: what it quotes, its counts and the rows that it names are left out; years stay."""
    return _COUNT.sub("\N{HORIZONTAL ELLIPSIS}", _ROWS.sub("", without_cells(text, ())))


def _row(each: "Standing") -> tuple[Cell, ...]:
    state = _VERDICTS.get(each.state)
    protected = Cell(each.state + (", protected" if each.protected else ""), "state", "not_run")
    return (
        Cell(str(each.year), "number"),
        state_cell(state) if state else protected,
        run_cell(each.run) if each.run else Cell("–", "none"),
        Cell(each.vintage or "–"),
        time_cell(each.ended),
        Cell(told(each.message) or "–"),
    )


def _stages(each: "Standing", names: Sequence[str]) -> tuple[Cell, ...]:
    """A cell a stage: its state, and the reason where it does not stand."""
    stands = {stand.stage: stand for stand in each.stages}
    cells = []
    for name in names:
        stand = stands.get(name)
        if stand is None:
            cells.append(Cell("–", "none"))
        else:
            cells.append(
                Cell(stand.state.value, "state", _STAGES.get(stand.state.value, "not_run"), told(stand.reason))
            )
    return (Cell(str(each.year), "number"), *cells)
