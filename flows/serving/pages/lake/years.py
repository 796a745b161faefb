"""Years of an audit: the verdict of each, whether it stands by today's data and code, and every stage of it.

Of an audit by partitions: ``partitions``. The trend of its measures: ``trend``.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.naming import audit_and_year
from flows.serving.index.known import Known
from flows.serving.pages.cells import badge, run_cell, run_state, table, time_cell
from flows.serving.pages.lake import partitions, trend
from flows.serving.pages.lake.reasons import told
from flows.serving.rendering import Page, made, path_of
from flows.serving.site import Site
from tasks.reporting.section import Cell, Link, Section

if TYPE_CHECKING:
    from flows.operations.status import Standing

__all__ = ["routes", "told"]

CRUMBS: Final = (("/", "Audits"),)
_FRESH_SECONDS: Final = 10
_SHARE: Final = 20
"""What today's data, code and libraries are is asked anew after 10 seconds, or 20 times what it takes to ask."""
_HEADER = ("Year", "Verdict", "Today", "Run", "Edition", "Ended", "Why")
_STAGES = {"ok": "held", "failed": "failed", "insufficient": "insufficient_evidence", "running": "quarantined"}
_TODAY = {"stands": "held", "stale": "quarantined", "running": "quarantined", "failed": "failed"}
"""A state -> colour and sign of its badge; others have none."""
_BARRED = "cannot be told from this server"
_ATTEMPTS = ("running", "failed", "interrupted", "insufficient")
_CANNOT = "Its manifest is not the one that was written; `evenhand verify` says more."


@dataclass
class Asked:
    """What was asked of a lake a moment ago: years of one audit."""

    found: "list[Standing]"
    damaged: list[str]
    """Runs whose manifest cannot be read."""
    until: float


@dataclass
class Years:
    """Keeps how the years of each audit stand, for some seconds."""

    _held: dict[str, Asked] = field(default_factory=dict)

    def of(self, site: Site, audit: str) -> Asked:
        """The years of an audit."""
        from flows.operations.status import status  # loads what plans are made with

        began, held = time.monotonic(), self._held.get(audit)
        if held is None or began > held.until:
            damaged: list[str] = []
            found = status(site.known().lake, audit, damaged)
            now = time.monotonic()
            held = self._held[audit] = Asked(found, damaged, now + max(_FRESH_SECONDS, _SHARE * (now - began)))
        return held


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router, held = APIRouter(), Years()
    router.include_router(trend.routes(site))
    by_partitions = partitions.Partitions()

    @router.get("/audits/{audit}/years")
    def years(audit: str, year: str = "") -> Response:
        site.audit(audit)
        parts = by_partitions.of(site, audit)
        if parts:
            return made(partitions.page(site, audit, parts, year))
        asked = held.of(site, audit)
        running = any(each.state == "running" for each in asked.found)
        section = _section(site.known(), audit, asked)
        return made(Page(section.title, section, crumbs=CRUMBS, refresh=running))

    return router


def _section(known: Known, audit: str, asked: Asked) -> Section:
    links = [Link("All of its runs", path_of("runs", audit=audit))]
    links += [Link("Trend of its measures", path_of("audits", audit, "trend"))] if audit in known.audits else []
    names = list(dict.fromkeys(stand.stage for each in asked.found for stand in each.stages))
    rows = [(each.year, _row(known, each)) for each in asked.found]
    rows += [(int(year), _damaged(known, run, year)) for run in asked.damaged for _, year in (audit_and_year(run),)]
    years = table("Years", _HEADER, [row for _, row in sorted(rows, key=lambda pair: pair[0])])
    matrix = table("Stages of each year", ("Year", *names), [_stages(each, names) for each in asked.found])
    tables = tuple(each for each in (years, matrix) if each.rows)
    return Section(f"Years of {audit}", "years", (_planned(asked.found),), links=tuple(links), tables=tables)


def _planned(found: "Sequence[Standing]") -> str:
    """What a back-fill would do, in a sentence."""
    barred = [str(each.year) for each in found if each.barred]
    again = [str(each.year) for each in found if each.state in ("stale", "failed", "interrupted") and not each.barred]
    said = [f"A back-fill would audit {', '.join(again)}: `evenhand plan` says what that costs."] if again else []
    said += [f"Of {', '.join(barred)} this server cannot tell: it does not have their data or spec."] if barred else []
    return " ".join(said) or "A back-fill has nothing to do: every year stands by today's data, code and spec."


def today(each: "Standing") -> str:
    """Whether a year stands by today's data, code and spec, or how its last attempt ended without a run."""
    if each.state in _ATTEMPTS and not each.run:
        return each.state
    if each.barred:
        return _BARRED
    if each.state in ("running", "failed", "interrupted", "stale"):
        return each.state
    return "protected" if each.protected else "stands"


def _row(known: Known, each: "Standing") -> tuple[Cell, ...]:
    run, word = _run(known, each), today(each)
    return (
        Cell(str(each.year), "number", detail=each.partition),
        run_state(known.runs[run].state) if run in known.runs else Cell("–", "none"),
        badge(word, _TODAY.get(word, "not_run")),
        run_cell(run) if run else Cell("–", "none"),
        Cell(each.vintage or "–"),
        time_cell(each.ended),
        Cell("–" if each.barred else _why(each, each.message) or "–"),
    )


def _why(each: "Standing", reason: str) -> str:
    """A reason as it may be shown; the run of the year stands beside it."""
    return told(reason.replace(each.run, "this run") if each.run else reason)


def _run(known: Known, each: "Standing") -> str:
    """The run that a year has: a failed attempt takes none away."""
    if each.run:
        return each.run
    runs = (run for run in known.audits.get(each.audit, ()) if run.year == each.year and run.run in known.valid)
    return next((run.run for run in runs), "")


def _damaged(known: Known, run: str, year: str) -> tuple[Cell, ...]:
    verdict = run_state(known.runs[run].state) if run in known.runs else Cell("–", "none")
    cannot = badge("cannot be read", "failed")
    return (Cell(year, "number"), verdict, cannot, Cell(run), Cell("–"), time_cell(""), Cell(_CANNOT))


def _stages(each: "Standing", names: Sequence[str]) -> tuple[Cell, ...]:
    """A cell a stage: its state, the reason where it does not stand, and the end of the run's id."""
    stands = {stand.stage: stand for stand in each.stages}
    run = each.run.rpartition("-")[2]
    cells = []
    for name in names:
        stand = stands.get(name)
        if stand is None:
            cells.append(Cell("–", "none"))
            continue
        said = [_why(each, stand.reason), f"run {run}" if run else ""]
        colour = _STAGES.get(stand.state.value, "not_run")
        cells.append(badge(stand.state.value, colour, "; ".join(filter(None, said))))
    return (Cell(str(each.year), "number", detail=each.partition), *cells)
