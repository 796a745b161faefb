"""Measures of a run as published: filtered, sorted, 100 a page; the same as CSV and JSON at the same address."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import STATE_WORDS, number, number_cell, run_state, steps, table
from flows.serving.pages.sorting import Column, in_order, sorted_by
from flows.serving.rendering import Field, Page, Sorted, made, run_path
from flows.serving.site import Site
from tasks.reporting.exports.formula_cells import guarded
from tasks.reporting.section import Cell, Link, Section

PER_PAGE: Final = 100
_TABLE: Final = "measures"
_KEYS: Final = ("method", "group", "measure", "state")
_WHERE = """
    ($method = '' OR method = $method) AND ($group = '' OR "group" = $group)
    AND ($measure = '' OR measure = $measure) AND ($state = '' OR state = $state)
"""
_SHOWN = (
    *("method", "decision_maker", "protected_attribute", "group", "measure", "parameters"),
    *("value", "low", "high", "n", "state", "reason"),
)
COLUMNS: Final = (
    *(Column("Method", "method"), Column("Decisions of", "decision_maker"), Column("Attribute", "protected_attribute")),
    *(Column("Group", "group"), Column("Measure", "measure"), Column("Parameters", "parameters")),
    *(Column("Value", "value", falls=True), Column("95 % interval"), Column("n", "n", falls=True)),
    Column("State", "state"),
)
Asked = Mapping[str, str]


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/measures")
    def measures(
        run: str, method: str = "", group: str = "", measure: str = "", state: str = "", sort: str = "", page: int = 1
    ) -> Response:
        asked = {"method": method, "group": group, "measure": measure, "state": state, "sort": in_order(sort, COLUMNS)}
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


def _found(site: Site, whole: pa.Table | None, asked: Asked) -> pa.Table:
    """The rows that fit, in order."""
    if whole is None:
        return pa.table({name: [] for name in _SHOWN})
    column, falling = asked["sort"].removeprefix("-"), asked["sort"].startswith("-")
    order = f' ORDER BY "{column}" {"DESC" if falling else "ASC"} NULLS LAST' if column else ""  # of COLUMNS alone
    names = ", ".join(f'"{name}"' for name in _SHOWN)
    query = f"SELECT {names} FROM measures WHERE {_WHERE}{order}"  # noqa: S608 words of ours; values are bound
    return site.tables.ask({"measures": whole}, query, {name: asked[name] for name in _KEYS})


def _page(site: Site, run: str, asked: Asked, number: int) -> Page:
    whole = site.table(run, _TABLE)
    options = {name: _words(whole, name) for name in ("method", "group", "measure")}
    fields = {**options, "state": tuple(STATE_WORDS)}
    words = {"state": STATE_WORDS}
    form = tuple(Field(name, name.capitalize(), asked[name], fields[name], words.get(name, {})) for name in _KEYS)
    found = _found(site, whole, asked)
    more_of = {"section": _section(run, asked, found), "sorted": _table(run, asked, found, number), "form": form}
    here = {name: word for name, word in asked.items() if word}
    more = steps(run_path(run, "measures"), here, number, found.num_rows, PER_PAGE)
    return site.page(run, "Measures", ("measures",), more=more, **more_of)


def _section(run: str, asked: Asked, found: pa.Table) -> Section:
    kept = {name: asked[name] for name in _KEYS}
    files = [Link(f"As {kind.upper()}", run_path(run, f"measures.{kind}", **kept)) for kind in ("csv", "json")]
    return Section("Measures", "measures", (f"{found.num_rows:,} measures fit, as published.",), links=tuple(files))


def _table(run: str, asked: Asked, found: pa.Table, number: int) -> Sorted | None:
    rows = found.slice((number - 1) * PER_PAGE, PER_PAGE).to_pylist()
    view = table("Measures", [column.words for column in COLUMNS], map(_row, rows))
    kept = {name: asked[name] for name in _KEYS}
    return sorted_by(view, COLUMNS, run_path(run, "measures"), kept, asked["sort"]) if rows else None


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
