"""Search by words: runs, groups, measures and notes, from summaries, the log and the report's own words."""

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.index.known import Known
from flows.serving.pages.cells import run_cell, run_state, table, time_cell
from flows.serving.rendering import Field, Page, made, run_path
from flows.serving.site import Site
from tasks.reporting.section import Cell, Section, TableView

MOST: Final = 50
"""Rows of each kind."""
_FEWEST = 2
"""Letters; one fits nearly everything."""


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/search")
    def search(q: str = "") -> Response:
        form = (Field("q", "Words of runs, groups, measures, notes", q),)
        return made(Page("Search", _section(site.known(), q), form=form, here="/search"))

    return router


def _section(known: Known, said: str) -> Section:
    wanted = said.casefold().strip()
    if len(wanted) < _FEWEST:
        words = f"Give {_FEWEST} letters or more."
        return Section("Search", "search", (words,))
    tables = tuple(found for found in _tables(known, wanted) if found.rows)
    words = "Nothing has these letters." if not tables else f"At most {MOST} of each kind, the newest runs first."
    return Section("Search", "search", (words,), tables=tables)


def _tables(known: Known, wanted: str) -> Iterator[TableView]:
    runs = [run for run in known.newest_first if wanted in f"{run.run} {run.title} {run.headline}".casefold()]
    rows = [(run_cell(run.run), Cell(run.title), run_state(run.state), time_cell(run.finished)) for run in runs[:MOST]]
    yield table("Runs", ("Run", "Title", "State", "Finished"), rows)
    yield table("Groups", ("Group", "Attribute", "Run"), _groups(known, wanted))
    yield table("Measures", ("Measure", "In words", "Measures of the last run"), _measures(known, wanted))
    said = [
        entry for entry in reversed(known.log.entries) if entry.by and wanted in f"{entry.text} {entry.by}".casefold()
    ]
    notes = [
        (
            Cell(str(entry.n), "number"),
            Cell(entry.role or entry.event),
            Cell(entry.by),
            Cell(entry.text),
            Cell(entry.run, address=run_path(entry.run, "review") if entry.run in known.runs else ""),
        )
        for entry in said[:MOST]
    ]
    yield table("Entries of the log", ("Entry", "What", "By", "Text", "Run"), notes)


def _groups(known: Known, wanted: str) -> list[tuple[Cell, ...]]:
    """Each group once, in the newest run that has it."""
    found: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for run in known.newest_first:
        for each in run.figures:
            key = (run.audit, each.attribute, each.group)
            if each.group and wanted in each.group.casefold() and key not in found:
                found[key] = (Cell(each.group), Cell(each.attribute), run_cell(run.run))
        if len(found) >= MOST:
            break
    return list(found.values())[:MOST]


def _measures(known: Known, wanted: str) -> list[tuple[Cell, ...]]:
    from tasks.reporting.declared import words  # reads what methods declare

    last = known.newest_first[0].run if known.newest_first else ""
    found = [(name, said.words) for name, said in words().items() if wanted in f"{name} {said.words}".casefold()]
    return [
        (Cell(name), Cell(said), Cell("measures", address=run_path(last, "measures", measure=name) if last else ""))
        for name, said in found[:MOST]
    ]
