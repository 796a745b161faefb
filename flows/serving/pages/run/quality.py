"""Data quality of a run: the page of its report, and every expectation that a table was held against."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import steps, table
from flows.serving.rendering import Page, run_path
from flows.serving.site import Site
from schemas.tables.validations import VALIDATIONS
from tasks.reporting.section import Cell, Notice, Section

PER_PAGE: Final = 100
_HEADER = ("Stage", "Table", "Expectation", "Column", "Rule", "Rows seen", "Rows failed", "State")


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/quality")
    def quality(run: str, page: int = 1) -> Response:
        number = max(page, 1)
        return site.pages.page((run, site.digest(run), "quality", number), lambda: _page(site, run, number))

    return router


def _page(site: Site, run: str, number: int) -> Page:
    section = site.report(run).sections["pages/quality.html"]
    told = site.table(run, VALIDATIONS.name)
    rows = told.to_pylist() if told is not None else []
    parts = tuple(part for part in section.parts if part.anchor != "checks")
    shown = replace(section, parts=(*parts, _checks(rows, number)))
    more = steps(run_path(run, "quality"), {}, number, len(rows), PER_PAGE)
    return site.page(run, section.title, ("quality",), section=shown, more=more)


def _checks(rows: Sequence[Mapping[str, Any]], page: int) -> Section:
    """Every expectation, those that failed or saw no row first, a part of them on each page."""
    unseen = sum(row["elements"] == 0 for row in rows)
    failed = sum(not row["success"] for row in rows)
    words = f"{len(rows):,} expectations, of which {failed:,} failed and {unseen:,} saw no row; those come first."
    notice = Notice("Expectations that saw no row", "They are no pass: nothing was held against them.")
    ordered = sorted(rows, key=lambda row: (row["success"], row["elements"] != 0))
    first = (page - 1) * PER_PAGE
    shown = table("Expectations", _HEADER, map(_row, ordered[first : first + PER_PAGE]))
    kept = (shown,) if shown.rows else ()
    return Section("Checks of every table", "checks", (words,), notices=(notice,) if unseen else (), tables=kept)


def _row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        *(Cell(str(row[name] or "–")) for name in ("stage", "table", "expectation", "column", "expected")),
        _count(row["elements"]),
        _count(row["unexpected"]),
        _state(row),
    )


def _count(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else Cell(f"{n:,}", "number")


def _state(row: Mapping[str, Any]) -> Cell:
    if not row["success"]:
        return Cell("set aside", "state", "quarantined") if row["quarantined"] else Cell("failed", "state", "failed")
    return Cell("no row seen", "state", "failed") if row["elements"] == 0 else Cell("held", "state", "held")
