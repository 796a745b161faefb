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


def _section(index: Known) -> Section:
    audits = index.audits
    if not audits and not index.unreadable and not index.tried:
        empty = "The lake holds no run yet; `evenhand audit` makes one."
        return Section("Audits", "audits", (empty,))
    rows_by_audit = {audit: _row(index, audit, runs) for audit, runs in audits.items()}
    rows_by_audit |= {audit: _tried(audit, attempts) for audit, attempts in index.tried.items()}
    rows = tuple(rows_by_audit[audit] for audit in sorted(rows_by_audit))
    audit_table = table("Audits", _HEADER, rows, "Unsigned: valid runs that nobody signed.") if rows else None
    notices = []
    if index.log.broken:
        notices.append(Notice("The log cannot be relied on", f"{index.log.broken}. `evenhand log verify` says more."))
    if index.unreadable:
        words = "These runs cannot be read, and are in no list; `evenhand verify --all` says why."
        notices.append(Notice("Runs that cannot be read", words, index.unreadable[:20]))
    return Section(
        "Audits",
        "audits",
        notices=tuple(notices),
        tables=(audit_table,) if audit_table else (),
        parts=_open(index),
    )


def _row(index: Known, audit: str, runs: Sequence[Summary]) -> tuple[Cell, ...]:
    last, years = runs[0], sorted({run.year for run in runs})
    unsigned = sum(run.run in index.valid and run.run not in index.signed for run in runs)
    span = str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"
    return (
        Cell(audit, address=path_of("runs", audit=audit)),
        Cell(span, address=path_of("audits", audit, "years")),
        run_cell(last.run),
        *_states(index, runs),
        time_cell(last.finished),
        _due(audit, runs),
        Cell(str(unsigned), "number"),
        Cell("trend", address=path_of("audits", audit, "trend")),
    )


def _states(index: Known, runs: Sequence[Summary]) -> tuple[Cell, Cell]:
    """State and questions of the last run; of partitions, the gravest state of their last year, and how many have it.

    The newest of many lenders says nothing of the others.
    """
    last = runs[0]
    if not any(run.partition for run in runs):
        return run_state(last.state), by_question(last)
    year = max(run.year for run in runs)
    counts = Counter(run.state for run in runs if run.year == year and run.run in index.valid)
    ordered = sorted(counts, key=gravity)
    counted_states = "; ".join(f"{run_state(state).text}: {counts[state]:,}" for state in ordered)
    return run_state(ordered[0]), Cell(f"{counts.total():,} partitions of {year}: {counted_states}")


def _tried(audit: str, attempts: Sequence[Attempt]) -> tuple[Cell, ...]:
    """An audit that was tried and has no run."""
    years, last = [attempt.year for attempt in attempts], max(attempts, key=lambda attempt: attempt.began)
    gravest = next((attempt for attempt in attempts if attempt.state is YearState.FAILED), last)
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


def _open(index: Known) -> tuple[Section, ...]:
    """What has to be remedied, and by when."""
    if not index.open:
        return ()
    rows = [
        (
            Cell(remediation.due),
            Cell("overdue" if remediation.overdue() else "open"),
            Cell(remediation.owner),
            Cell(remediation.text),
            Cell(remediation.run, address=run_path(remediation.run, "review"))
            if remediation.run in index.runs
            else Cell(remediation.run),
        )
        for remediation in sorted(index.open, key=lambda remediation: remediation.due)
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


def _search_section(index: Known, search_text: str) -> Section:
    term = search_text.casefold().strip()
    if len(term) < _FEWEST:
        words = f"Give {_FEWEST} letters or more."
        return Section("Search", "search", (words,))
    tables = tuple(result_table for result_table in _tables(index, term) if result_table.rows)
    words = "Nothing has these letters." if not tables else f"At most {MOST} of each kind, the newest runs first."
    return Section("Search", "search", (words,), tables=tables)


def _tables(index: Known, term: str) -> Iterator[TableView]:
    runs = [run for run in index.newest_first if term in f"{run.run} {run.title} {run.headline}".casefold()]
    rows = [(run_cell(run.run), Cell(run.title), run_state(run.state), time_cell(run.finished)) for run in runs[:MOST]]
    yield table("Runs", ("Run", "Title", "State", "Finished"), rows)
    cells_by_group: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for run in index.newest_first:
        for figure in run.figures:
            key = (run.audit, figure.attribute, figure.group)
            if figure.group and term in figure.group.casefold() and key not in cells_by_group:
                cells_by_group[key] = (Cell(figure.group), Cell(figure.attribute), run_cell(run.run))
        if len(cells_by_group) >= MOST:
            break
    groups = list(cells_by_group.values())[:MOST]
    yield table("Groups", ("Group", "Attribute", "Run"), groups)
    yield table("Measures", ("Measure", "In words", "Measures of the last run"), _measures(index, term))
    log_entries = [
        entry for entry in reversed(index.log.entries) if entry.by and term in f"{entry.text} {entry.by}".casefold()
    ]
    notes = [
        (
            Cell(str(entry.n), "number"),
            Cell(entry.role or entry.event),
            Cell(entry.by),
            Cell(entry.text),
            Cell(entry.run, address=run_path(entry.run, "review") if entry.run in index.runs else ""),
        )
        for entry in log_entries[:MOST]
    ]
    yield table("Entries of the log", ("Entry", "What", "By", "Text", "Run"), notes)


def _measures(index: Known, term: str) -> list[tuple[Cell, ...]]:
    from tasks.reporting.declared import words  # reads what methods declare

    last = index.newest_first[0].run if index.newest_first else ""
    measures = [
        (name, wording.words) for name, wording in words().items() if term in f"{name} {wording.words}".casefold()
    ]
    return [
        (Cell(name), Cell(meaning), Cell("measures", address=run_path(last, "measures", measure=name) if last else ""))
        for name, meaning in measures[:MOST]
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
        table_declaration = declared(name)
        if table_declaration is None:
            missing("No table is declared under that name.")
        return site.pages.page(("tables", name), lambda: _page(table_declaration))

    return router


def declared(name: str) -> Table | None:
    """The declaration of a table, if there is one."""
    return next((declaration for declaration in _all() if declaration.name == name), None)


def _all() -> tuple[Table, ...]:
    from flows.operations.dictionary import TABLES  # loads every declaration

    return TABLES


def _list() -> Page:
    rows = [
        (Cell(declaration.name, address=path_of("tables", declaration.name)), Cell(declaration.description))
        for declaration in _all()
    ]
    table_view = table("Tables", ("Table", "What it holds"), rows)
    return Page("Tables", Section("Tables", "tables", tables=(table_view,)), here=_HERE)


def _page(declaration: Table) -> Page:
    from flows.operations.dictionary import holds, notes

    header = ("Column", "Type", "Meaning", "Holds")
    rows = [
        (Cell(column.name), Cell(column.type), Cell(column.description), Cell("; ".join(holds(column)) or "–"))
        for column in declaration.columns
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
