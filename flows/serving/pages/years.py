"""Years, partitions and trend of an audit."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.run_names import audit_and_year
from flows.runs.summary import Summary
from flows.serving.index import Known, value_of
from flows.serving.pages.lists import badge, run_cell, run_state, shareable, table, time_cell
from flows.serving.site import NOT_SHOWN, Field, Page, Site, made, missing, path_of, size_of
from schemas.audit.partition import ALL
from schemas.errors import IntegrityError, SpecError
from schemas.terms import State
from tasks.reporting.text import Cell, Link, Section, TableView

if TYPE_CHECKING:
    from flows.operations.status import Standing, YearOfPartitions
    from flows.partitions.trends import RunsOfYear
    from flows.runs.index import Run

__all__ = ["shareable", "years_routes"]


# --------------------------------------------------------------------------------------------------------------------
# Years of an audit by partitions, such as lenders: how many are in which state, and those that failed.
#
# A year that was back-filled is shown by its records, another by its runs. Rows of partitions are exact numbers and not
# shown: they only order the list.


MOST: Final = 50
"""Partitions that are listed."""
REFRESH_SECONDS: Final = 10
_FRESH_SECONDS: Final = 10
_SHARE: Final = 20
"""Records are read again after 10 seconds, or 20 times what it takes to read them."""
_VERDICTS = {"outside": State.OUTSIDE, "inconclusive": State.INCONCLUSIVE, "within": State.WITHIN}
"""States of records that are those of runs."""
_WORDS = {"too_few": "too few people", NOT_SHOWN: "not shown"}
_COLOURS = {"failed": "failed", "interrupted": "failed", "running": "quarantined"}
_ORDER = ("failed", "interrupted", "running", "not begun", *(state.value for state in State), "too_few", NOT_SHOWN)
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
    """Caches the records of the years of each audit by partitions for some seconds."""

    _cached: "dict[str, tuple[float, list[YearOfPartitions]]]" = field(default_factory=dict)

    def of(self, site: Site, audit: str) -> list[Year]:
        """The years of an audit by partitions, the newest first; none of an audit without."""
        from flows.operations.status import partition_status

        index = site.known()
        began, cached = time.monotonic(), self._cached.get(audit)
        if cached is None or began > cached[0]:
            records = partition_status(index.lake, audit)
            now = time.monotonic()
            cached = self._cached[audit] = (now + max(_FRESH_SECONDS, _SHARE * (now - began)), records)
        recorded = {}
        for year in cached[1]:
            hidden = {part.run for part in year.partitions if part.run in index.runs}
            hidden = {run for run in hidden if index.runs[run].state == NOT_SHOWN}
            parts = tuple(
                Part(part.value, NOT_SHOWN, part.run)
                if part.run in hidden
                else Part(part.value, _VERDICTS.get(part.state, part.state), part.run, shareable(part.message))
                for part in year.partitions
            )
            recorded[year.year] = Year(year.year, year.column, parts)
        years = _of_runs(index, audit, mixed=bool(recorded)) | recorded
        return [years[year] for year in sorted(years, reverse=True)]


def _of_runs(index: Known, audit: str, *, mixed: bool) -> dict[int, Year]:
    """The years by their runs alone; none where no run is of a partition and no year (``mixed``) has records.

    Of a year in which single partitions were audited, a run without a partition is of all rows.
    """
    runs_by_year: dict[int, list[Summary]] = {}
    for run in index.audits.get(audit, ()):
        mixed = mixed or bool(run.partition)
        if run.run in index.valid:
            runs_by_year.setdefault(run.year, []).append(run)
    years = {}
    for year, runs in runs_by_year.items() if mixed else ():
        parts = [Part(value_of(run), run.state, run.run) for run in runs]
        column = next((run.partition["column"] for run in runs if run.partition), "")
        ordered = sorted(parts, key=lambda part: (_place(part.state), part.value))
        years[year] = Year(year, column, tuple(ordered), "the gravest state first")
    return years


def page(site: Site, audit: str, years: Sequence[Year], chosen: str) -> Page:
    """The page: all years, and the partitions of one, either the chosen year or the newest with a failure."""
    failing = (year for year in years if any(state in year.states for state in _BAD))
    shown_year = next((year for year in years if str(year.year) == chosen), next(failing, years[0]))
    title = f"Years of {audit}"
    links = [Link("All of its runs", path_of("runs", audit=audit))]
    if audit in site.known().audits:
        links += [Link("Trend of its measures", path_of("audits", audit, "trend"))]
    by = shown_year.column
    words = f"A year is audited once for each value of {by}." if by else "All rows were audited."
    states = sorted({state for year in years for state in year.states}, key=_place)
    rows = []
    for year in years:
        cells = [
            Cell(str(year.year), "number", address=path_of("audits", audit, "years", year=year.year)),
            Cell(f"{year.done:,} of {len(year.parts):,}", "number"),
        ]
        for state in states:
            count, has_runs = year.states[state], state in set(State) and year.states[state]
            address = path_of("runs", audit=audit, year=year.year, state=state) if has_runs else ""
            cells.append(Cell(f"{count:,}", "number", address=address))
        rows.append(tuple(cells))
    header = ("Year", "Done", *map(_words, states))
    matrix = table("Partitions of each year by their state", header, rows, "Done: audited, or of too few people.")
    section = Section(title, "years", (words,), links=tuple(links), tables=(matrix, _listed(audit, shown_year)))
    form = (Field("year", "Partitions of", str(shown_year.year), tuple(str(year.year) for year in years), every=False),)
    running = any("running" in year.states for year in years)
    return Page(
        title,
        section,
        crumbs=(("/", "Audits"),),
        refresh=REFRESH_SECONDS * running,
        form=form if len(years) > 1 else (),
    )


def _listed(audit: str, year: Year) -> TableView:
    rows = []
    for part in year.parts[:MOST]:
        state = badge(_words(part.state), _COLOURS.get(part.state, "not_run"))
        rows.append(
            (
                Cell(part.value, address=path_of("runs", audit=audit, year=year.year, partition=part.value)),
                run_state(part.state) if part.state in set(State) else state,
                run_cell(part.run) if part.run else Cell("–", "none"),
                Cell(part.why or "–"),
            )
        )
    count = len(year.parts)
    note = f"The first {MOST} of {count:,}: {year.order}." if count > MOST else ""
    return table(f"Partitions of {year.year}", ("Partition", "State", "Run", "Why"), rows, note)


def _words(state: str) -> str:
    return run_state(state).text if state in set(State) else _WORDS.get(state, state)


def _place(state: str) -> tuple[int, str]:
    return (_ORDER.index(state) if state in _ORDER else len(_ORDER)), state


# --------------------------------------------------------------------------------------------------------------------
# The trend of an audit: what Decide is made of over the years, or one measure; of an audit by partitions, of one.
#
# The size of a page is limited. What does not fit becomes a table in place of a chart, or else a name with a page of
# that measure alone.


ROOM: Final = 138_000
"""Bytes of charts, tables and choices: with its frame a page has less than 150 kB."""
_OPTION: Final = 30
"""Bytes of a choice without its words."""
MOST_OPTIONS: Final = 200
"""Partitions to choose from; of more, one is written."""
_DAMAGED: Final = "its run cannot be read; `evenhand verify` says why"


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/audits/{audit}/trend")
    def trend(audit: str, measure: str = "", partition: str = "") -> Response:
        runs, index = site.audit(audit), site.known()
        values = index.values_of.get(audit, ())
        if not runs or not values:
            missing("The audit has no run yet, and so no trend.")
        value = partition or next((partition_value for partition_value in values if partition_value == ALL), values[0])
        if value not in values:
            missing("The audit has no run of such a partition.")
        partition_runs = [run for run in runs if value_of(run) == value]
        # two editions of a year, one of them released, could be subtracted
        partition_runs = [run for run in partition_runs if not site.door(run.run).apart]
        if not partition_runs:
            missing("No run of this partition was audited together with what was released of its rows.")
        key = ("trend", audit, measure, value, index.log.head.sha256, *(run.run for run in partition_runs))
        return site.pages.page(key, lambda: _page(index, audit, partition_runs, _Query(value, measure, values)))

    return router


@dataclass(frozen=True)
class _Query:
    """Which trend."""

    value: str
    measure: str
    values: Sequence[str]


def _page(index: Known, audit: str, runs: Sequence[Summary], query: _Query) -> Page:
    from flows.partitions.trends import trend_by  # loads what reports are made with

    years = [
        _trend_of_year(index, [run for run in runs if run.year == year]) for year in sorted({run.year for run in runs})
    ]
    try:
        trend = trend_by(audit, years, index.lake, query.value, query.measure)
    except SpecError:
        raise IntegrityError("no run of this audit can be read; `evenhand verify --all` gives the reasons") from None
    options = tuple(query.values) if len(query.values) <= MOST_OPTIONS else ()
    parts = Field("partition", "Partition", query.value, options, every=False)
    names = tuple(sorted({*trend.names, query.measure} - {""}))
    headline = {"": "of the first page"}
    measure_field = Field("measure", "Measure", query.measure, ("", *names), headline, every=False)
    section = fitted(trend.section, ROOM - sum(_OPTION + 2 * len(name.encode()) for name in (*options, *names)))
    form = (measure_field, parts) if len(query.values) > 1 else (measure_field,)
    return Page(section.title, section, crumbs=(("/", "Audits"),), form=form, kicker=f"Decisions, {trend.span}")


def _trend_of_year(index: Known, runs: Sequence[Summary]) -> "RunsOfYear":
    """The runs of a year, newest first, by their manifests; one that cannot be read takes no other year away."""
    from flows.partitions.trends import RunsOfYear
    from flows.runs.index import run_of

    last = runs[0]
    valid = next((run for run in runs if run.run in index.valid), last)
    before = next((run for run in runs if run.source_sha256 != last.source_sha256), None)
    manifests: list[Run | None] = []
    for summary in (valid, last, before):
        try:
            manifests.append(run_of(index.lake, summary.run) if summary else None)
        except (IntegrityError, SpecError, KeyError, ValueError):
            manifests.append(None)
    run, newest, former = manifests
    pair = (former, newest) if former and newest else None
    return RunsOfYear(last.year, run, pair, "" if run else _DAMAGED)


def fitted(section: Section, room: int = ROOM) -> Section:
    """A section with what there is room for, in its order: charts, else tables, else a name.

    Args:
        section: of chapters, whose parts are of one measure each.
        room: bytes.
    """
    omitted: list[str] = []
    chapters: list[Section] = []
    for chapter in section.parts:
        room -= size_of(replace(chapter, parts=()))
        parts: list[Section] = []
        for part in chapter.parts:
            fitting = next((form for form in _forms(part) if size_of(form) <= room), None)
            if fitting is None:
                omitted.append(part.title)
                continue
            room -= size_of(fitting)
            parts.append(fitting)
        chapters += [replace(chapter, parts=tuple(parts))] if parts or not chapter.parts else []
    words = f"There is no room here for {len(omitted)} more; ask for one measure alone:"
    omitted_section = (Section("Not shown", "not-shown", (words,), points=tuple(omitted)),) if omitted else ()
    return replace(section, parts=(*chapters, *omitted_section))


def _forms(part: Section) -> Iterator[Section]:
    """A part as it is, then with tables in place of its charts."""
    yield part
    tables = []
    for figure in part.figures:
        chart = figure.chart.table().without_empty()
        rows = tuple(tuple(map(Cell, row)) for row in chart.rows)
        tables.append(TableView(figure.chart.title, chart.header, rows, figure.caption, folded=True))
    if tables:
        yield replace(part, figures=(), tables=(*tables, *part.tables))


# --------------------------------------------------------------------------------------------------------------------
# Years of an audit: the verdict of each, whether it is valid for today's data and code, and every stage of it.
#
# Of an audit by partitions: ``partitions``. The trend of its measures: ``trend``.


CRUMBS: Final = (("/", "Audits"),)
_HEADER = ("Year", "Verdict", "Today", "Run", "Edition", "Ended", "Why")
_STAGES = {"ok": "held", "failed": "failed", "inconclusive": State.INCONCLUSIVE.value, "running": "quarantined"}
_TODAY = {"stands": "held", "stale": "quarantined", "running": "quarantined", "failed": "failed"}
"""A state -> colour and sign of its badge; others have none."""
_BARRED = "cannot be told from this server"
_ATTEMPTS = ("running", "failed", "interrupted", "inconclusive")
_CANNOT = "Its manifest is not the one that was written; `evenhand verify` says more."


@dataclass
class YearStates:
    """Recent result of a query to the lake: years of one audit."""

    years: "list[Standing]"
    damaged: list[str]
    """Runs whose manifest cannot be read."""
    until: float


@dataclass
class Years:
    """Caches the states of the years of each audit for some seconds."""

    _cached: dict[str, YearStates] = field(default_factory=dict)

    def of(self, site: Site, audit: str) -> YearStates:
        """The years of an audit."""
        from flows.operations.status import status  # loads what plans are made with

        began, cached = time.monotonic(), self._cached.get(audit)
        if cached is None or began > cached.until:
            damaged: list[str] = []
            year_states = status(site.known().lake, audit, damaged)
            now = time.monotonic()
            cached = self._cached[audit] = YearStates(
                year_states, damaged, now + max(_FRESH_SECONDS, _SHARE * (now - began))
            )
        return cached


def years_routes(site: Site) -> APIRouter:
    """Their routes."""
    router, cached_years = APIRouter(), Years()
    router.include_router(routes(site))
    by_partitions = Partitions()

    @router.get("/audits/{audit}/years")
    def years(audit: str, year: str = "") -> Response:
        site.audit(audit)
        parts = by_partitions.of(site, audit)
        if parts:
            return made(page(site, audit, parts, year))
        audit_years = cached_years.of(site, audit)
        running = any(year_state.state == "running" for year_state in audit_years.years)
        section = _section(site.known(), audit, audit_years)
        return made(Page(section.title, section, crumbs=CRUMBS, refresh=REFRESH_SECONDS * running))

    return router


def _section(index: Known, audit: str, audit_years: YearStates) -> Section:
    years = audit_years.years
    links = [Link("All of its runs", path_of("runs", audit=audit))]
    links += [Link("Trend of its measures", path_of("audits", audit, "trend"))] if audit in index.audits else []
    names = list(dict.fromkeys(stand.stage for year in years for stand in year.stages))
    rows = [(year.year, _row(index, year)) for year in years]
    for run in audit_years.damaged:
        _, year_text = audit_and_year(run)
        verdict = run_state(index.runs[run].state) if run in index.runs else Cell("–", "none")
        cells = (verdict, badge("cannot be read", "failed"), Cell(run), Cell("–"), time_cell(""), Cell(_CANNOT))
        rows.append((int(year_text), (Cell(year_text, "number"), *cells)))
    views = (
        table("Years", _HEADER, [row for _, row in sorted(rows, key=lambda pair: pair[0])]),
        table("Stages of each year", ("Year", *names), [_stages(year, names) for year in years]),
    )
    tables = tuple(view for view in views if view.rows)
    again = [str(year.year) for year in years if year.state in ("stale", "failed", "interrupted") and not year.barred]
    barred = [str(year.year) for year in years if year.barred]
    plan = [f"A back-fill would audit {', '.join(again)}: `evenhand plan` says what that costs."] if again else []
    if barred:
        plan.append(f"Of {', '.join(barred)} this server cannot tell: it does not have their data or spec.")
    words = " ".join(plan) or "A back-fill has nothing to do: every year stands by today's data, code and spec."
    return Section(f"Years of {audit}", "years", (words,), links=tuple(links), tables=tables)


def today(year_state: "Standing") -> str:
    """Whether a year is valid for today's data, code and spec, or how its last attempt ended without a run."""
    if year_state.state in _ATTEMPTS and not year_state.run:
        return year_state.state
    if year_state.barred:
        return _BARRED
    if year_state.state in ("running", "failed", "interrupted", "stale"):
        return year_state.state
    return "protected" if year_state.protected else "stands"


def _row(index: Known, year_state: "Standing") -> tuple[Cell, ...]:
    runs = index.audits.get(year_state.audit, ())
    valid = (run.run for run in runs if run.year == year_state.year and run.run in index.valid)
    run, word = year_state.run or next(valid, ""), today(year_state)  # a failed attempt does not remove a valid run
    return (
        Cell(str(year_state.year), "number", detail=year_state.partition),
        run_state(index.runs[run].state) if run in index.runs else Cell("–", "none"),
        badge(word, _TODAY.get(word, "not_run")),
        run_cell(run) if run else Cell("–", "none"),
        Cell(year_state.vintage or "–"),
        time_cell(year_state.ended),
        Cell("–" if year_state.barred else _why(year_state, year_state.message) or "–"),
    )


def _why(year_state: "Standing", reason: str) -> str:
    """A reason in publishable form; the year's run is already shown in the same row."""
    return shareable(reason.replace(year_state.run, "this run") if year_state.run else reason)


def _stages(year_state: "Standing", names: Sequence[str]) -> tuple[Cell, ...]:
    """A cell per stage: its state, the reason if it is not valid, and the end of the run's id."""
    stands = {stand.stage: stand for stand in year_state.stages}
    run = year_state.run.rpartition("-")[2]
    cells = []
    for name in names:
        stand = stands.get(name)
        if stand is None:
            cells.append(Cell("–", "none"))
            continue
        details = [_why(year_state, stand.reason), f"run {run}" if run else ""]
        colour = _STAGES.get(stand.state.value, "not_run")
        cells.append(badge(stand.state.value, colour, "; ".join(filter(None, details))))
    return (Cell(str(year_state.year), "number", detail=year_state.partition), *cells)
