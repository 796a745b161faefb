"""Measures of a run as published: filtered, sorted, 100 a page; the same as CSV and JSON at the same address."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import number, number_cell, run_state, steps, table
from flows.serving.rendering import Field, Page, made, run_path
from flows.serving.site import Site
from schemas.terms import State
from tasks.reporting.exports.formula_cells import guarded
from tasks.reporting.section import Cell, Link, Section

PER_PAGE: Final = 100
_TABLE: Final = "measures"
SORTS: Final = ("method", "group", "measure", "value", "n", "state")
_KEYS: Final = ("method", "group", "measure", "state")
_WHERE = """
    ($method = '' OR method = $method) AND ($group = '' OR "group" = $group)
    AND ($measure = '' OR measure = $measure) AND ($state = '' OR state = $state)
"""
_SHOWN = (
    *("method", "decision_maker", "protected_attribute", "group", "measure", "parameters"),
    *("value", "low", "high", "n", "state", "reason"),
)
_HEADER = (
    "Method",
    "Decisions of",
    "Attribute",
    "Group",
    "Measure",
    "Parameters",
    "Value",
    "95 % interval",
    "n",
    "State",
)
Asked = Mapping[str, str]


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/measures")
    def measures(
        run: str, method: str = "", group: str = "", measure: str = "", state: str = "", sort: str = "", page: int = 1
    ) -> Response:
        asked = {"method": method, "group": group, "measure": measure, "state": state, "sort": _sort(sort)}
        return made(_page(site, run, asked, max(page, 1)))

    @router.get("/runs/{run}/measures.csv")
    def as_csv(run: str, method: str = "", group: str = "", measure: str = "", state: str = "") -> Response:
        asked = {"method": method, "group": group, "measure": measure, "state": state, "sort": ""}
        return Response(_csv(_found(site, site.table(run, _TABLE), asked)), media_type="text/csv; charset=utf-8")

    @router.get("/runs/{run}/measures.json")
    def as_json(run: str, method: str = "", group: str = "", measure: str = "", state: str = "") -> Response:
        asked = {"method": method, "group": group, "measure": measure, "state": state, "sort": ""}
        rows = _found(site, site.table(run, _TABLE), asked).to_pylist()
        return Response(json.dumps({"run": run, "measures": rows}, allow_nan=False), media_type="application/json")

    return router


def _sort(said: str) -> str:
    """A column to sort by, - before it for the largest first; nothing where there is no such column."""
    return said if said.removeprefix("-") in SORTS else ""


def _found(site: Site, whole: pa.Table | None, asked: Asked) -> pa.Table:
    """The rows that fit, in order."""
    if whole is None:
        return pa.table({name: [] for name in _SHOWN})
    column, falling = asked["sort"].removeprefix("-"), asked["sort"].startswith("-")
    order = f' ORDER BY "{column}" {"DESC" if falling else "ASC"} NULLS LAST' if column else ""  # of SORTS alone
    names = ", ".join(f'"{name}"' for name in _SHOWN)
    query = f"SELECT {names} FROM measures WHERE {_WHERE}{order}"  # noqa: S608 words of ours; values are bound
    return site.tables.ask({"measures": whole}, query, {name: asked[name] for name in _KEYS})


def _page(site: Site, run: str, asked: Asked, number: int) -> Page:
    whole = site.table(run, _TABLE)
    options = {name: _words(whole, name) for name in ("method", "group", "measure")}
    fields = {**options, "state": tuple(state.value for state in State)}
    form = tuple(Field(name, name.capitalize(), asked[name], fields[name]) for name in _KEYS)
    found = _found(site, whole, asked)
    section = _section(run, asked, found, number)
    here = {name: word for name, word in asked.items() if word}
    more = steps(run_path(run, "measures"), here, number, found.num_rows, PER_PAGE)
    return site.page(run, "Measures", ("measures",), section=section, form=form, more=more)


def _section(run: str, asked: Asked, found: pa.Table, number: int) -> Section:
    kept = {name: asked[name] for name in _KEYS}
    sorts = [
        Link(f"Sort by {name}", run_path(run, "measures", **kept, sort=_turned(asked["sort"], name))) for name in SORTS
    ]
    files = [Link(f"As {kind.upper()}", run_path(run, f"measures.{kind}", **kept)) for kind in ("csv", "json")]
    words = f"{found.num_rows:,} measures fit, as published."
    rows = found.slice((number - 1) * PER_PAGE, PER_PAGE).to_pylist()
    shown = (table("Measures", _HEADER, map(_row, rows)),) if rows else ()
    return Section("Measures", "measures", (words,), links=(*sorts, *files), tables=shown)


def _turned(sort: str, name: str) -> str:
    """Numbers sort the largest first, and a second click turns the order."""
    first = f"-{name}" if name in ("value", "n") else name
    other = first[1:] if first.startswith("-") else f"-{first}"
    return other if sort == first else first


def _words(whole: pa.Table | None, name: str) -> tuple[str, ...]:
    return () if whole is None else tuple(sorted(word for word in whole[name].unique().to_pylist() if word))


def _row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    ends = "–" if row["low"] is None or row["high"] is None else f"[{number(row['low'])}, {number(row['high'])}]"
    parameters = row["parameters"] if row["parameters"] not in (None, "{}") else "–"
    return (
        *(Cell(row[name]) for name in ("method", "decision_maker", "protected_attribute", "group", "measure")),
        Cell(parameters),
        number_cell(row["value"], row["reason"]),
        Cell(ends),
        number_cell(row["n"], row["reason"]),
        run_state(row["state"]),
    )


def _csv(found: pa.Table) -> bytes:
    """Rows as CSV; text that a spreadsheet would take for a formula begins with an apostrophe."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(found.column_names)
    writer.writerows([guarded(value) for value in row.values()] for row in found.to_pylist())
    return sink.getvalue().encode()
