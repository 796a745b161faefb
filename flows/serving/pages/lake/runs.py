"""The list of runs, newest first or as asked for, 50 a page; every filter and the order stand in the address."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.summary import Summary
from flows.serving.index.known import Known
from flows.serving.pages.cells import STATE_WORDS, by_question, gravity, run_cell, run_state, steps, table, time_cell
from flows.serving.pages.sorting import Column, in_order, sorted_by
from flows.serving.rendering import Field, Page, Sorted, made
from flows.serving.site import Site
from tasks.reporting.section import Cell, Section

PER_PAGE: Final = 50
_SIGNED: Final = ("unsigned", "prepared", "reviewed", "approved", "rejected", "withdrawn")
_FILTERS: Final = ("audit", "year", "partition", "state", "signed")


@dataclass(frozen=True)
class _Asked:
    """Filters and order of a list."""

    filters: dict[str, str]
    sort: str
    page: int


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/runs")
    def runs(
        audit: str = "",
        year: str = "",
        partition: str = "",
        state: str = "",
        signed: str = "",
        sort: str = "",
        page: int = 1,
    ) -> Response:
        filters = dict(zip(_FILTERS, (audit, year, partition, state, signed), strict=True))
        return made(_page(site.known(), _Asked(filters, in_order(sort, COLUMNS), max(page, 1))))

    return router


def _page(known: Known, asked: _Asked) -> Page:
    found = _ordered(known, [run for run in known.newest_first if _fits(known, run, asked.filters)], asked.sort)
    shown = found[(asked.page - 1) * PER_PAGE :][:PER_PAGE]
    order = "newest first" if not asked.sort else "in the order of the column that is marked"
    words = f"{len(found):,} of {len(known.newest_first):,} runs fit, {order}."
    here = {**asked.filters, "sort": asked.sort}
    return Page(
        "Runs",
        Section("Runs", "runs", (words,)),
        sorted=_table(known, shown, asked) if shown else None,
        form=_form(known, asked.filters),
        more=steps("/runs", here, asked.page, len(found), PER_PAGE),
        here="/runs",
    )


def _value(run: Summary) -> str:
    return " ".join((run.partition or {}).values())


def _fits(known: Known, run: Summary, asked: dict[str, str]) -> bool:
    own = {
        "audit": run.audit,
        "year": str(run.year),
        "partition": (run.partition or {}).get("value", ""),
        "state": run.state,
        "signed": known.signed.get(run.run, "unsigned"),
    }
    return all(wanted in ("", own[name]) for name, wanted in asked.items())


def _form(known: Known, asked: dict[str, str]) -> tuple[Field, ...]:
    options: dict[str, tuple[str, ...]] = {
        "audit": tuple(known.audits),
        "year": tuple(map(str, sorted({run.year for run in known.newest_first}, reverse=True))),
        "partition": (),
        "state": tuple(STATE_WORDS),
        "signed": _SIGNED,
    }
    words = {"state": STATE_WORDS}
    names = [name for name in _FILTERS if name != "partition" or known.has_partitions]
    return tuple(Field(name, name.capitalize(), asked[name], options[name], words.get(name, {})) for name in names)


_KEYS: dict[str, Callable[[Known, Summary], Any]] = {
    "run": lambda _, run: run.run,
    "audit": lambda _, run: run.audit,
    "year": lambda _, run: run.year,
    "partition": lambda _, run: _value(run),
    "state": lambda _, run: gravity(run.state),
    "finished": lambda _, run: run.finished,
    "signed": lambda known, run: known.signed.get(run.run, "unsigned"),
}
COLUMNS: Final = (
    *(Column("Run", "run"), Column("Audit", "audit"), Column("Year", "year", falls=True)),
    *(Column("Partition", "partition"), Column("State", "state"), Column("By question")),
    *(Column("Finished", "finished", falls=True), Column("Signed", "signed")),
)


def _ordered(known: Known, found: Sequence[Summary], sort: str) -> Sequence[Summary]:
    key = _KEYS.get(sort.removeprefix("-"))
    return sorted(found, key=lambda run: key(known, run), reverse=sort.startswith("-")) if key else found


def _table(known: Known, shown: Sequence[Summary], asked: _Asked) -> Sorted:
    kept = [column for column in COLUMNS if column.name != "partition" or any(run.partition for run in shown)]
    rows = [tuple(_cells(known, run)[column.words] for column in kept) for run in shown]
    view = table("Runs", [column.words for column in kept], rows)
    return sorted_by(view, kept, "/runs", asked.filters, asked.sort)


def _cells(known: Known, run: Summary) -> dict[str, Cell]:
    protected = ", protected" if run.run in known.protected else ""
    return {
        "Run": run_cell(run.run),
        "Audit": Cell(run.audit),
        "Year": Cell(str(run.year), "number"),
        "Partition": Cell(_value(run) or "–"),
        "State": run_state(run.state),
        "By question": by_question(run),
        "Finished": time_cell(run.finished),
        "Signed": Cell(known.signed.get(run.run, "unsigned") + protected),
    }
