"""Trends and restatements from the runs of a lake: selects the runs to compare, and writes the pages.

A year is represented by its protected run, else by its last one. A restatement compares the last two runs on different
data. Pages are written to the reports of the lake.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from flows.partitions.attempts.reading import latest, place_of
from flows.partitions.attempts.record import Attempt, YearState
from flows.partitions.monitoring import followed, rule_of
from flows.runs.index import Run, last_run, runs_of
from flows.runs.record import HEADLINES
from schemas.audit.partition import ALL, unsampled
from schemas.errors import SpecError
from schemas.tables.measures import MEASURES
from schemas.terms import EVERYBODY, State
from tasks.lake.store import Lake
from tasks.reporting.material import Measure
from tasks.reporting.section import Section
from tasks.reporting.trends import monitoring
from tasks.reporting.trends import restatement as restating
from tasks.reporting.trends import trend as trending
from tasks.reporting.trends.monitoring import Followed
from tasks.reporting.trends.page import LIMITS, paged, span_of, trend_section, written
from tasks.reporting.trends.restatement import SOURCE, Edition
from tasks.reporting.trends.sequence import chapter
from tasks.reporting.trends.trend import YearResult

_HEADLINES = {measure for of in HEADLINES.values() for measure in of}
_CHECKED = (State.BREACH, State.WITHIN, State.INSUFFICIENT_EVIDENCE)
_WATERFALL = "waterfall"
"""Name of the table of rows in the source, refused and used, as published."""


@dataclass(frozen=True)
class Made:
    """A table over years and the page of it."""

    table: pa.Table
    page: str
    """Path or URI."""
    followed: Followed = ()
    """The years against their limits, and against the years before them."""
    monitoring: pa.Table | None = None
    """The same as a table."""


@dataclass(frozen=True)
class Trend:
    """An audit over years, before a page is made of it."""

    table: pa.Table
    section: Section
    span: str
    followed: Followed
    monitoring: pa.Table


def make_trend(audit: str, years: Sequence[int], lake: Lake, value: str = ALL) -> Made:
    """The trend of an audit over years, or of one partition of it, with its page; errors as of ``trend_of``."""
    found = trend_of(audit, years, lake, value)
    more = {"monitoring": found.monitoring.to_pylist()}
    made = _written(lake, _folder(audit, value), "trend", found.table, paged(found.section, found.span), more)
    return replace(made, followed=found.followed, monitoring=found.monitoring)


def trend_of(audit: str, years: Sequence[int], lake: Lake, value: str = ALL, measure: str = "") -> Trend:
    """The trend of an audit over years, or of one partition of it, with the restatements of these years.

    Args:
        audit: its name.
        years: in order.
        lake: that holds the runs.
        value: of the partition.
        measure: alone to be shown, with what compares it; every one of the headline if empty.

    Raises:
        SpecError: no year has a run.
    """
    runs = {year: last_run(lake, audit, year, value) for year in years}
    known = [run for run in runs.values() if run is not None]
    if not known:
        raise SpecError(
            f"the lake {lake.location} has no run of {_named(audit, value)} in these years; `evenhand backfill` makes "
            "them"
        )
    results = [_only(_result(lake, audit, year, run, value), measure) for year, run in runs.items()]
    table, rule = trending.trend(audit, results), rule_of(known[-1].spec)
    seen = followed(lake, runs, rule)
    sections = [_section(lake, *pair) for year in years if (pair := editions(lake, audit, year, value))]
    said = known[-1].spec
    references = {p["name"]: p["reference"] for run in known for p in run.spec["protected"]}
    hmda = any(run.spec["source"]["kind"] == "hmda" for run in known)
    title = _titled(said["title"] or audit, value)
    content = trend_section(title, results, references, hmda, sections, chapter(seen, rule))
    return Trend(table, content, span_of(results), seen, monitoring.table(audit, seen, rule))


def _only(year: YearResult, measure: str) -> YearResult:
    """A year with one measure alone, and with what compares it."""
    if not measure:
        return year
    return replace(year, measures=tuple(m for m in year.measures if m.measure.startswith(measure)))


def make_restatement(audit: str, year: int, lake: Lake) -> Made:
    """Changes of measures by the last edition of a year.

    Raises:
        SpecError: the year has no two runs on different data.
    """
    pair = editions(lake, audit, year)
    if pair is None:
        raise SpecError(
            f"{audit} {year} has no two runs on different data; audit the year again once another edition is there"
        )
    old, new = (_edition(lake, run) for run in pair)
    table = restating.restatement(audit, old, new)
    title, section = pair[1].spec["title"] or audit, restating.section(old, new)
    content = written(title, str(year), [section], limits=LIMITS[:1])
    rows = restating.restated_rows(old, new)
    more = {"old": old.result.vintage, "new": new.result.vintage, "rows": rows, "changed": restating.changed(table)}
    return _written(lake, f"restatement-{audit}-{year}", "restatement", table, content, more)


def editions(lake: Lake, audit: str, year: int, value: str = ALL) -> tuple[Run, Run] | None:
    """The last run of a year and the last one before it on other data; None where there are no two."""
    runs = runs_of(lake, audit, year, value)
    before = [run for run in runs if run.source_sha256 != runs[-1].source_sha256]
    return (before[-1], runs[-1]) if before else None


def _section(lake: Lake, old: Run, new: Run) -> Section:
    return restating.section(_edition(lake, old), _edition(lake, new))


def _edition(lake: Lake, run: Run) -> Edition:
    return Edition(_result(lake, run.audit, run.year, run), _counts(lake, run))


def _counts(lake: Lake, run: Run) -> dict[str, int | None]:
    """Line of the waterfall in words -> its rows, of everybody; none of a run that published no waterfall."""
    table = run.published(_WATERFALL)
    rows = lake.read(table).to_pylist() if table else []
    return {_line(row): row["n"] for row in rows if row["group"] == EVERYBODY and row["kind"] != "left"}


def _line(row: Mapping[str, Any]) -> str:
    if row["kind"] != "refused":
        return SOURCE if row["kind"] == "source" else "used"
    reason = str(row["reason"]).replace("_", " ")
    return f"refused, {row['stage']}: {reason}" + (f" ({row['column']})" if row["column"] else "")


def _result(lake: Lake, audit: str, year: int, run: Run | None, value: str = ALL) -> YearResult:
    if run is None:
        return _without_run(year, _last_attempt(lake, audit, year, value))
    return YearResult(
        year=year,
        run=run.run,
        vintage=run.vintage,
        edition=run.vintage.split(",")[0] if "," in run.vintage else "file",
        state=run.state,
        rows=_counts(lake, run).get(SOURCE, run.rows),
        lacking=tuple(run.spec["source"].get("lacking", ())),
        minimum_n=run.spec["bootstrap"]["minimum_n"],
        measures=_measures(lake, run),
    )


def _last_attempt(lake: Lake, audit: str, year: int, value: str) -> Attempt | None:
    whole = latest(lake, audit, year) if value == ALL else None
    return whole or latest(lake, audit, year, value)


def _named(audit: str, value: str) -> str:
    return repr(audit) if value == ALL else f"{audit!r}, partition {value!r},"


def _titled(title: str, value: str) -> str:
    return title if value == ALL else f"{title}: {value}"


def _folder(audit: str, value: str) -> str:
    return f"trend-{audit}" if value == ALL else f"trend-{audit}-{place_of(value)}"


def _without_run(year: int, last: Attempt | None) -> YearResult:
    """A year without a run. The page omits the reason of a failure, which may name paths of this machine."""
    if last is None:
        return YearResult(year, why="never audited")
    if last.state in (YearState.INSUFFICIENT, YearState.TOO_FEW):
        return YearResult(year, state=State.INSUFFICIENT_EVIDENCE, why=last.message)
    return YearResult(year, state=last.state, why="could not be audited; `evenhand status` says why")


def _measures(lake: Lake, run: Run) -> tuple[Measure, ...]:
    """The headline measures of whole groups, and what was checked."""
    measures = run.published(MEASURES.name)
    rows = lake.read(measures).to_pylist() if measures else []
    whole = [row for row in rows if row["subgroup"] == 0 and unsampled(row["parameters"]) == "{}"]
    return tuple(Measure(**row) for row in whole if row["measure"] in _HEADLINES or row["state"] in _CHECKED)


def _written(lake: Lake, folder: str, name: str, table: pa.Table, content: bytes, more: dict[str, Any]) -> Made:
    said = {**more, "measures": table.to_pylist()}
    home = f"reports/{folder}"
    lake.write_file(f"{home}/{name}.json", json.dumps(said, allow_nan=False).encode())
    return Made(table, lake.write_file(f"{home}/{name}.html", content))
