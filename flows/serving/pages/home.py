"""Home page of a lake, search, definitions, glossary and table declarations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.operations.overdue import held_against
from flows.partitions.attempts import Attempt, YearState
from flows.runs.summary import Summary
from flows.serving.index import Known
from flows.serving.pages.lists import badge, by_question, gravity, run_cell, run_state, table, time_cell, told
from flows.serving.site import Field, Page, Site, made, missing, path_of, run_path
from schemas.audit.limits import Expected
from schemas.table import Table
from tasks.reporting.text import Cell, Notice, Section, TableView

# --------------------------------------------------------------------------------------------------------------------
# The audits of the lake: where each stands, when the next run is due, and what waits for a person.


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


# --------------------------------------------------------------------------------------------------------------------
# Search by words: runs, groups, measures and notes, from summaries, the log and the report's own words.


MOST: Final = 50
"""Rows of each kind."""
_FEWEST = 2
"""Letters; one fits nearly everything."""


def search_routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/search")
    def search(q: str = "") -> Response:
        form = (Field("q", "Words of runs, groups, measures, notes", q),)
        return made(Page("Search", _search_section(site.known(), q), form=form, here="/search"))

    return router


def _search_section(known: Known, said: str) -> Section:
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


# --------------------------------------------------------------------------------------------------------------------
# Declarations of tables, as ``docs/tables.md`` has them: what a table holds, and its columns.


_HERE = "/tables"


def tables_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/tables")
    def tables() -> Response:
        return site.pages.page(("tables",), _list)

    @router.get("/tables/{name}")
    def declaration(name: str) -> Response:
        found = declared(name)
        if found is None:
            missing("No table is declared under that name.")
        return site.pages.page(("tables", name), lambda: _page(found))

    return router


def declared(name: str) -> Table | None:
    """The declaration of a table, if there is one."""
    return next((each for each in _all() if each.name == name), None)


def _all() -> tuple[Table, ...]:
    from flows.operations.dictionary import TABLES  # loads every declaration

    return TABLES


def _list() -> Page:
    rows = [(Cell(each.name, address=path_of("tables", each.name)), Cell(each.description)) for each in _all()]
    shown = table("Tables", ("Table", "What it holds"), rows)
    return Page("Tables", Section("Tables", "tables", tables=(shown,)), here=_HERE)


def _page(declaration: Table) -> Page:
    from flows.operations.dictionary import holds, notes

    header = ("Column", "Type", "Meaning", "Holds")
    rows = [
        (Cell(each.name), Cell(each.type), Cell(each.description), Cell("; ".join(holds(each)) or "–"))
        for each in declaration.columns
    ]
    words = (declaration.description, *notes(declaration))
    section = Section(declaration.name, "table", words, tables=(table("Columns", header, rows),))
    return Page(declaration.name, section, crumbs=((_HERE, "Tables"),))


# --------------------------------------------------------------------------------------------------------------------
# Definitions, glossary and declarations of tables: the same for every run of one version.


def texts_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()
    router.include_router(tables_routes(site))

    @router.get("/method")
    def method() -> Response:
        return site.pages.page(("method",), _definitions)

    @router.get("/glossary")
    def glossary() -> Response:
        return site.pages.page(("glossary",), _glossary)

    return router


def _definitions() -> Page:
    return Page("Definitions", Section("Definitions", "definitions", parts=_parts()), here="/method")


def _glossary() -> Page:
    [section] = [replace(part, parts=()) for part in _parts() if part.anchor == "glossary"]
    return Page("Glossary", replace(section, title="Glossary"), here="/glossary")


@cache
def _parts() -> tuple[Section, ...]:
    from tasks.reporting.pages import definitions  # loads what reports are made with

    return definitions()
