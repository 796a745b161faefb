"""Declarations of tables, as ``docs/tables.md`` has them: what a table holds, and its columns."""

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import table
from flows.serving.rendering import Page, path_of
from flows.serving.site import Site, missing
from schemas.table import Table
from tasks.reporting.section import Cell, Section

_HERE = "/tables"


def routes(site: Site) -> APIRouter:
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
