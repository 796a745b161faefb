"""Home page of a lake, search, definitions, glossary and table declarations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.operations.overdue import held_against
from flows.partitions.attempts import YearState
from flows.runs.summary import Summary
from flows.serving.index import Known
from flows.serving.pages.lists import badge, by_question, gravity, run_cell, run_state, shareable, table, time_cell
from flows.serving.site import Field, Page, Site, made, missing, path_of, run_path
from schemas.audit.limits import Expected
from schemas.table import Table
from tasks.reporting.text import Cell, Link, Notice, Section, TableView

# --------------------------------------------------------------------------------------------------------------------
# The audits of the lake: the state of each, when the next run is due, and open remediations.


_HEADER = ("Audit", "Years", "Last run", "State", "By question", "Finished", "Next expected", "Unsigned", "Trend")
_FAILED = (YearState.FAILED, YearState.INTERRUPTED)


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/")
    def home() -> Response:
        section = _audits(site.known())
        if site.settings.start:
            section = replace(section, links=(Link("New audit", "/new"),))
        return made(Page("Audits", section, here="/"))

    return router


def _audits(index: Known) -> Section:
    if not index.audits and not index.unreadable and not index.tried:
        return Section("Audits", "audits", ("The lake holds no run yet; `evenhand audit` makes one.",))
    rows_by_audit = {audit: _row(index, audit, runs) for audit, runs in index.audits.items()}
    none = Cell("–", "none")
    for audit, attempts in index.tried.items():  # audits that were tried and have no run
        last = max(attempts, key=lambda attempt: attempt.began)
        gravest = next((attempt for attempt in attempts if attempt.state is YearState.FAILED), last)
        rows_by_audit[audit] = (
            Cell(audit, address=path_of("audits", audit, "years")),
            Cell(_span([attempt.year for attempt in attempts])),
            Cell("no run yet", "none"),
            badge(gravest.state.value, "failed" if gravest.state in _FAILED else "not_run"),
            Cell(shareable(gravest.message) or "–"),
            time_cell(last.began),
            *(none, none, none),
        )
    rows = tuple(rows_by_audit[audit] for audit in sorted(rows_by_audit))
    tables = (table("Audits", _HEADER, rows, "Unsigned: valid runs that nobody signed."),) if rows else ()
    notices = []
    if index.log.broken:
        notices.append(Notice("The log cannot be relied on", f"{index.log.broken}. `evenhand log verify` says more."))
    if index.unreadable:
        words = "These runs cannot be read, and are in no list; `evenhand verify --all` says why."
        notices.append(Notice("Runs that cannot be read", words, index.unreadable[:20]))
    remediations = [
        (
            *map(Cell, (entry.due, "overdue" if entry.overdue() else "open", entry.owner, entry.text)),
            Cell(entry.run, address=run_path(entry.run, "review") if entry.run in index.runs else ""),
        )
        for entry in sorted(index.open, key=lambda entry: entry.due)
    ]
    view = table("Remediations that are open", ("Due", "State", "Owner", "What", "Run"), remediations)
    parts = (Section("To be remedied", "remediations", tables=(view,)),) if remediations else ()
    return Section("Audits", "audits", notices=tuple(notices), tables=tables, parts=parts)


def _span(years: Sequence[int]) -> str:
    return str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"


def _row(index: Known, audit: str, runs: Sequence[Summary]) -> tuple[Cell, ...]:
    last = runs[0]
    unsigned = sum(run.run in index.valid and run.run not in index.signed for run in runs)
    state, questions = run_state(last.state), by_question(last)
    if any(run.partition for run in runs):
        # Of partitions, the gravest state of their last year: the newest of many lenders says nothing of the others.
        year = max(run.year for run in runs)
        counts = Counter(run.state for run in runs if run.year == year and run.run in index.valid)
        ordered = sorted(counts, key=gravity)
        state_counts = "; ".join(f"{run_state(name).text}: {counts[name]:,}" for name in ordered)
        state, questions = run_state(ordered[0]), Cell(f"{counts.total():,} partitions of {year}: {state_counts}")
    due = Cell("–", "none")
    if last.expected:
        with suppress(ValueError):  # the spec is of another version
            rule = Expected.model_validate(last.expected)
            expected = held_against(rule, audit, None, runs, datetime.now(UTC))
            due = Cell(f"overdue since {expected.expected_by}" if expected.overdue else str(expected.next_by))
    return (
        Cell(audit, address=path_of("runs", audit=audit)),
        Cell(_span(sorted({run.year for run in runs})), address=path_of("audits", audit, "years")),
        run_cell(last.run),
        *(state, questions, time_cell(last.finished), due),
        Cell(str(unsigned), "number"),
        Cell("trend", address=path_of("audits", audit, "trend")),
    )


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
        term = q.casefold().strip()
        tables: tuple[TableView, ...] = ()
        words = f"Give {_FEWEST} letters or more."
        if len(term) >= _FEWEST:
            tables = tuple(view for view in _tables(site.known(), term) if view.rows)
            words = f"At most {MOST} of each kind, the newest runs first." if tables else "Nothing has these letters."
        form = (Field("q", "Words of runs, groups, measures, notes", q),)
        return made(Page("Search", Section("Search", "search", (words,), tables=tables), form=form, here="/search"))

    return router


def _tables(index: Known, term: str) -> Iterator[TableView]:
    from tasks.reporting.declared import words  # reads what methods declare

    runs = [run for run in index.newest_first if term in f"{run.run} {run.title} {run.headline}".casefold()]
    rows = [(run_cell(run.run), Cell(run.title), run_state(run.state), time_cell(run.finished)) for run in runs[:MOST]]
    yield table("Runs", ("Run", "Title", "State", "Finished"), rows)
    groups: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for run in index.newest_first:
        for figure in run.figures:
            key = (run.audit, figure.attribute, figure.group)
            if figure.group and term in figure.group.casefold() and key not in groups:
                groups[key] = (Cell(figure.group), Cell(figure.attribute), run_cell(run.run))
        if len(groups) >= MOST:
            break
    yield table("Groups", ("Group", "Attribute", "Run"), list(groups.values())[:MOST])
    last = index.newest_first[0].run if index.newest_first else ""
    measures = [
        (name, wording.words) for name, wording in words().items() if term in f"{name} {wording.words}".casefold()
    ]
    measure_rows = [
        (Cell(name), Cell(meaning), Cell("measures", address=run_path(last, "measures", measure=name) if last else ""))
        for name, meaning in measures[:MOST]
    ]
    yield table("Measures", ("Measure", "In words", "Measures of the last run"), measure_rows)
    entries = [
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
        for entry in entries[:MOST]
    ]
    yield table("Entries of the log", ("Entry", "What", "By", "Text", "Run"), notes)


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
        section = Section("Definitions", "definitions", parts=_parts())
        return site.pages.page(("method",), lambda: Page("Definitions", section, here="/method"))

    @router.get("/glossary")
    def glossary() -> Response:
        [section] = [replace(part, parts=(), title="Glossary") for part in _parts() if part.anchor == "glossary"]
        return site.pages.page(("glossary",), lambda: Page("Glossary", section, here="/glossary"))

    return router


@cache
def _parts() -> tuple[Section, ...]:
    from tasks.reporting.pages import definitions  # loads what reports are made with

    return definitions()
