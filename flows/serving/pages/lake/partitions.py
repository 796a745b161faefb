"""Years of an audit by partitions, such as lenders: how many stand in which state, and those that failed.

A year that was back-filled is told by its records, another by its runs. Rows of partitions are exact numbers, and are
not shown: they only order the list.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from flows.runs.summary import Summary
from flows.serving.index.known import Known, value_of
from flows.serving.pages.cells import badge, run_cell, run_state, table
from flows.serving.pages.lake.reasons import told
from flows.serving.rendering import Field, Page, path_of
from flows.serving.site import Site
from schemas.terms import State
from tasks.reporting.section import Cell, Link, Section, TableView

if TYPE_CHECKING:
    from flows.operations.partition_status import YearOfPartitions

MOST: Final = 50
"""Partitions that are listed."""
_FRESH_SECONDS: Final = 10
_SHARE: Final = 20
"""Records are read anew after 10 seconds, or 20 times what it takes to read them."""
_VERDICTS = {"breach": State.BREACH, "insufficient": State.INSUFFICIENT_EVIDENCE, "within": State.WITHIN}
"""States of records that are those of runs."""
_WORDS = {"too_few": "too few people"}
_COLOURS = {"failed": "failed", "interrupted": "failed", "running": "quarantined"}
_ORDER = ("failed", "interrupted", "running", "not begun", *(state.value for state in State), "too_few")
_BAD = ("failed", "interrupted")


@dataclass(frozen=True)
class Part:
    """A partition of a year."""

    value: str
    state: str
    """That of its run, or how it ended without one."""
    run: str = ""
    why: str = ""


@dataclass(frozen=True)
class Year:
    """A year of partitions: those that failed first, then the largest first."""

    year: int
    column: str
    parts: tuple[Part, ...]
    order: str = "those that failed, then the largest"

    @property
    def states(self) -> Counter[str]:
        """State -> partitions."""
        return Counter(part.state for part in self.parts)

    @property
    def done(self) -> int:
        """Partitions that need no audit any more."""
        return sum(n for state, n in self.states.items() if state not in ("running", "not begun", *_BAD))


@dataclass
class Partitions:
    """Keeps what records say, for some seconds."""

    _held: "dict[str, tuple[float, list[YearOfPartitions]]]" = field(default_factory=dict)

    def of(self, site: Site, audit: str) -> list[Year]:
        """The years of an audit by partitions, the newest first; none of an audit without."""
        known = site.known()
        recorded = {each.year: _recorded(each) for each in self._records(known, audit)}
        found = _of_runs(known, audit, mixed=bool(recorded)) | recorded
        return [found[year] for year in sorted(found, reverse=True)]

    def _records(self, known: Known, audit: str) -> "Sequence[YearOfPartitions]":
        from flows.operations.partition_status import partition_status

        began, held = time.monotonic(), self._held.get(audit)
        if held is None or began > held[0]:
            found = partition_status(known.lake, audit)
            now = time.monotonic()
            held = self._held[audit] = (now + max(_FRESH_SECONDS, _SHARE * (now - began)), found)
        return held[1]


def _recorded(year: "YearOfPartitions") -> Year:
    parts = tuple(
        Part(each.value, _VERDICTS.get(each.state, each.state), each.run, told(each.message))
        for each in year.partitions
    )
    return Year(year.year, year.column, parts)


def _of_runs(known: Known, audit: str, *, mixed: bool) -> dict[int, Year]:
    """The years by their runs alone; none where no run is of a partition and no year (``mixed``) has records."""
    years: dict[int, list[Summary]] = {}
    for run in known.audits.get(audit, ()):
        mixed = mixed or bool(run.partition)
        if run.run in known.valid:
            years.setdefault(run.year, []).append(run)
    return {year: _of_year(year, runs) for year, runs in years.items()} if mixed else {}


def _of_year(year: int, runs: Sequence[Summary]) -> Year:
    """A year in which single partitions were audited; a run without one is of all rows."""
    parts = [Part(value_of(run), run.state, run.run) for run in runs]
    column = next((run.partition["column"] for run in runs if run.partition), "")
    ordered = sorted(parts, key=lambda part: (_place(part.state), part.value))
    return Year(year, column, tuple(ordered), "the gravest state first")


def page(site: Site, audit: str, years: Sequence[Year], asked: str) -> Page:
    """The page: all years, and the partitions of one: of the one asked for, else the newest with a failure."""
    failing = (each for each in years if any(state in each.states for state in _BAD))
    shown = next((each for each in years if str(each.year) == asked), next(failing, years[0]))
    title = f"Years of {audit}"
    links = [Link("All of its runs", path_of("runs", audit=audit))]
    if audit in site.known().audits:
        links += [Link("Trend of its measures", path_of("audits", audit, "trend"))]
    words = f"A year is audited once for each value of {shown.column}." if shown.column else "All rows were audited."
    tables = (_matrix(audit, years), _listed(audit, shown))
    section = Section(title, "years", (words,), links=tuple(links), tables=tables)
    form = (Field("year", "Partitions of", str(shown.year), tuple(str(each.year) for each in years), every=False),)
    running = any("running" in each.states for each in years)
    return Page(title, section, crumbs=(("/", "Audits"),), refresh=running, form=form if len(years) > 1 else ())


def _matrix(audit: str, years: Sequence[Year]) -> TableView:
    states = sorted({state for each in years for state in each.states}, key=_place)
    rows = [_year_row(audit, each, states) for each in years]
    header = ("Year", "Done", *(_words(state) for state in states))
    return table("Partitions of each year by their state", header, rows, "Done: audited, or of too few people.")


def _year_row(audit: str, year: Year, states: Sequence[str]) -> tuple[Cell, ...]:
    counts: Mapping[str, int] = year.states
    cells = [
        Cell(
            f"{counts.get(state, 0):,}",
            "number",
            address=path_of("runs", audit=audit, year=year.year, state=state) if counts.get(state) else "",
        )
        if state in set(State)
        else Cell(f"{counts.get(state, 0):,}", "number")
        for state in states
    ]
    whole = path_of("audits", audit, "years", year=year.year)
    done = Cell(f"{year.done:,} of {len(year.parts):,}", "number")
    return (Cell(str(year.year), "number", address=whole), done, *cells)


def _listed(audit: str, year: Year) -> TableView:
    rows = [
        (
            Cell(part.value, address=path_of("runs", audit=audit, year=year.year, partition=part.value)),
            run_state(part.state) if part.state in set(State) else badge(_words(part.state), _colour(part.state)),
            run_cell(part.run) if part.run else Cell("–", "none"),
            Cell(part.why or "–"),
        )
        for part in year.parts[:MOST]
    ]
    whole = len(year.parts)
    note = f"The first {MOST} of {whole:,}: {year.order}." if whole > MOST else ""
    return table(f"Partitions of {year.year}", ("Partition", "State", "Run", "Why"), rows, note)


def _words(state: str) -> str:
    if state in set(State):
        return run_state(state).text
    return _WORDS.get(state, state)


def _colour(state: str) -> str:
    return _COLOURS.get(state, "not_run")


def _place(state: str) -> tuple[int, str]:
    return (_ORDER.index(state) if state in _ORDER else len(_ORDER)), state
