"""The trend of an audit: what Decide is made of over the years, or one measure; of an audit by partitions, of one.

A page has room for so much. What does not fit is a table in place of a chart, or else is named, and is asked for alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.summary import Summary
from flows.serving.index.known import Known, value_of
from flows.serving.rendering import Field, Page, size_of
from flows.serving.site import Site, missing
from schemas.audit.partition import ALL
from schemas.errors import IntegrityError, SpecError
from tasks.reporting.section import Cell, Figure, Section, TableView

if TYPE_CHECKING:
    from flows.partitions.trends import RunsOfYear
    from flows.runs.index import Run

ROOM: Final = 138_000
"""Bytes of charts, tables and choices: with what stands around them a page has less than 150 kB."""
_OPTION: Final = 30
"""Bytes of a choice beside its words."""
MOST_OPTIONS: Final = 200
"""Partitions to choose from; of more, one is written."""
_DAMAGED: Final = "its run cannot be read; `evenhand verify` says why"


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/audits/{audit}/trend")
    def trend(audit: str, measure: str = "", partition: str = "") -> Response:
        runs, known = site.audit(audit), site.known()
        values = known.values_of.get(audit, ())
        if not runs or not values:
            missing("The audit has no run yet, and so no trend.")
        value = partition or next((each for each in values if each == ALL), values[0])
        if value not in values:
            missing("The audit has no run of such a partition.")
        mine = [run for run in runs if value_of(run) == value]
        key = ("trend", audit, measure, value, known.log.head.sha256, *(run.run for run in mine))
        return site.pages.page(key, lambda: _page(known, audit, mine, _Asked(value, measure, values)))

    return router


@dataclass(frozen=True)
class _Asked:
    """Which trend."""

    value: str
    measure: str
    values: Sequence[str]


def _page(known: Known, audit: str, mine: Sequence[Summary], asked: _Asked) -> Page:
    from flows.partitions.trends import trend_by  # loads what reports are made with

    years = [_of_year(known, [run for run in mine if run.year == year]) for year in sorted({run.year for run in mine})]
    try:
        found = trend_by(audit, years, known.lake, asked.value, asked.measure)
    except SpecError:
        raise IntegrityError("no run of this audit can be read; `evenhand verify --all` says why") from None
    options = tuple(asked.values) if len(asked.values) <= MOST_OPTIONS else ()
    parts = Field("partition", "Partition", asked.value, options, every=False)
    names = tuple(sorted({*found.names, asked.measure} - {""}))
    headline = {"": "of the first page"}
    one = Field("measure", "Measure", asked.measure, ("", *names), headline, every=False)
    section = fitted(found.section, ROOM - sum(_OPTION + 2 * len(each.encode()) for each in (*options, *names)))
    form = (one, parts) if len(asked.values) > 1 else (one,)
    return Page(section.title, section, crumbs=(("/", "Audits"),), form=form, kicker=f"Decisions, {found.span}")


def _of_year(known: Known, runs: Sequence[Summary]) -> "RunsOfYear":
    """The runs of a year, newest first, by their manifests; one that cannot be read takes no other year away."""
    from flows.partitions.trends import RunsOfYear

    last = runs[0]
    valid = next(run for run in runs if run.run in known.valid)
    before = next((run for run in runs if run.source_sha256 != last.source_sha256), None)
    run, newest, former = (_read(known, each) for each in (valid, last, before))
    pair = (former, newest) if former and newest else None
    return RunsOfYear(last.year, run, pair, "" if run else _DAMAGED)


def _read(known: Known, run: Summary | None) -> "Run | None":
    from flows.runs.index import run_of

    try:
        return run_of(known.lake, run.run) if run else None
    except (IntegrityError, SpecError, KeyError, ValueError):
        return None


def fitted(section: Section, room: int = ROOM) -> Section:
    """A section with what there is room for, in its order: charts, else tables, else a name.

    Args:
        section: of chapters, whose parts are of one measure each.
        room: bytes.
    """
    left: list[str] = []
    chapters: list[Section] = []
    for chapter in section.parts:
        room -= size_of(replace(chapter, parts=()))
        parts: list[Section] = []
        for part in chapter.parts:
            fitting = next((each for each in _forms(part) if size_of(each) <= room), None)
            if fitting is None:
                left.append(part.title)
                continue
            room -= size_of(fitting)
            parts.append(fitting)
        chapters += [replace(chapter, parts=tuple(parts))] if parts or not chapter.parts else []
    words = f"There is no room here for {len(left)} more; ask for one measure alone:"
    more = (Section("Not shown", "not-shown", (words,), points=tuple(left)),) if left else ()
    return replace(section, parts=(*chapters, *more))


def _forms(part: Section) -> Iterator[Section]:
    """A part as it is, then with tables in place of its charts."""
    yield part
    if part.figures:
        yield replace(part, figures=(), tables=(*map(_as_table, part.figures), *part.tables))


def _as_table(figure: Figure) -> TableView:
    found = figure.chart.table().without_empty()
    rows = tuple(tuple(map(Cell, row)) for row in found.rows)
    return TableView(figure.chart.title, found.header, rows, figure.caption, folded=True)
