"""Data quality of a run: the page of its report, and every expectation that a table was held against."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import badge, steps, table
from flows.serving.rendering import Page, path_of, run_path
from flows.serving.site import Site
from schemas.tables.applications import REFUSAL_COUNTS, REFUSALS
from schemas.tables.validations import VALIDATIONS
from schemas.terms import EVERYBODY
from tasks.reporting.section import Cell, Notice, Section

PER_PAGE: Final = 100
_HEADER = ("Stage", "Table", "Column", "Rule", "Rows seen", "Rows failed", "State", "Reasons")
_EMPTY_ALLOWED: Final = (REFUSALS.name, REFUSAL_COUNTS.name)
"""Tables that are empty where a stage refused nothing."""
_WATERFALL: Final = "waterfall"
_SHOWN: Final = 3
"""Reasons of an expectation."""
Check = Mapping[str, Any]


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/quality")
    def quality(run: str, page: int = 1) -> Response:
        number = max(page, 1)
        return site.pages.page((run, site.digest(run), "quality", number), lambda: _page(site, run, number))

    return router


def _page(site: Site, run: str, number: int) -> Page:
    section = site.quality(run)
    told, out = site.table(run, VALIDATIONS.name), site.table(run, _WATERFALL)
    rows = told.to_pylist() if told is not None else []
    refused = out.to_pylist() if out is not None else []
    parts = tuple(part for part in section.parts if part.anchor != "checks")
    shown = replace(section, parts=(*parts, _checks(rows, _reasons(refused), number)))
    more = steps(run_path(run, "quality"), {}, number, len(rows), PER_PAGE)
    return site.page(run, section.title, ("quality",), section=shown, more=more)


def _checks(rows: Sequence[Check], reasons: Mapping[tuple[str, str], str], page: int) -> Section:
    """Every expectation, a part of them on each page: failures, then those that saw no row, empty refusals last."""
    unseen = sum(_is_unseen(row) for row in rows)
    empty = sum(_is_nothing_refused(row) for row in rows)
    failed = sum(not row["success"] for row in rows)
    words = [f"{len(rows):,} expectations, of which {failed:,} failed and {unseen:,} saw no row; those come first."]
    words += [f"{empty:,} more are of empty tables of refusals: nothing was refused. They come last."] if empty else []
    notice = Notice("Expectations that saw no row", "They are no pass: nothing was held against them.")
    ordered = sorted(rows, key=lambda row: (row["success"], not _is_unseen(row), _is_nothing_refused(row)))
    first = (page - 1) * PER_PAGE
    shown = table("Expectations", _HEADER, (_row(row, reasons) for row in ordered[first : first + PER_PAGE]))
    kept = (shown,) if shown.rows else ()
    return Section("Checks of every table", "checks", tuple(words), notices=(notice,) if unseen else (), tables=kept)


def _is_nothing_refused(row: Check) -> bool:
    return bool(row["elements"] == 0 and row["success"] and row["table"] in _EMPTY_ALLOWED)


def _is_unseen(row: Check) -> bool:
    return bool(row["elements"] == 0) and not _is_nothing_refused(row)


def _reasons(refused: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Stage and column -> why rows of it were refused, and how many as published."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in refused:
        if row["kind"] == "refused" and row["group"] == EVERYBODY:
            n = "withheld" if row["n"] is None else f"{row['n']:,}"
            said = f"{str(row['reason']).replace('_', ' ')}: {n}"
            of = found.setdefault((row["stage"], row["column"]), [])
            of += [said] if said not in of else []
    return {key: "; ".join(of[:_SHOWN]) for key, of in found.items()}


def _row(row: Check, reasons: Mapping[tuple[str, str], str]) -> tuple[Cell, ...]:
    broken = not row["success"] or row["unexpected"] != 0
    return (
        Cell(row["stage"]),
        Cell(row["table"], address=path_of("tables", row["table"])),
        Cell(row["column"] or "–"),
        Cell(_rule(row)),
        _count(row["elements"]),
        _count(row["unexpected"]),
        _state(row),
        Cell((reasons.get((row["stage"], row["column"] or ""), "") if broken else "") or "–"),
    )


def _rule(row: Check) -> str:
    """An expectation as a sentence's part, with its arguments."""
    from tasks.reporting.chapters.checks import expected

    words = str(row["expectation"]).removeprefix("expect_").replace("_", " ")
    arguments = expected(row["expected"])
    return f"{words} ({arguments})" if arguments else words


def _count(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else Cell(f"{n:,}", "number")


def _state(row: Check) -> Cell:
    if not row["success"]:
        return badge("set aside", "quarantined") if row["quarantined"] else badge("failed", "failed")
    if _is_nothing_refused(row):
        return badge("nothing refused", "not_run")
    return badge("no row seen", "failed") if row["elements"] == 0 else badge("held", "held")
