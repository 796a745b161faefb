"""Trends and restatements from the runs of a lake."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flows.partitions.attempts import YearState, latest, place_of
from flows.runs.index import Run, last_run, runs_of
from flows.runs.record import HEADLINES
from flows.runs.released import door_of
from schemas.audit.partition import ALL, unsampled
from schemas.errors import SpecError
from schemas.tables.findings import MEASURES
from schemas.terms import EVERYBODY, State
from tasks.lake.store import Lake
from tasks.metrics.algorithm.monitoring import Conditions, MonitoringRule
from tasks.reporting import trend_pages as restating
from tasks.reporting import trends
from tasks.reporting import trends as trending
from tasks.reporting.material import Measure
from tasks.reporting.text import Section
from tasks.reporting.trend_pages import LIMITS, SOURCE, Edition, paged, span_of, trend_section, write_page
from tasks.reporting.trends import Followed, YearResult, YearVerdicts, chapter, era, follow, said_by_theory, to_announce

# --------------------------------------------------------------------------------------------------------------------
# Years of a lake against their limits: reads the verdicts of the runs that stand for them.
#
# A year is represented by its protected run, else by its last one, so that a restated year enters by its last edition.
# A run of an earlier version has no verdicts; its year is a gap.


VERDICTS = "verdicts"
"""Name of the table; what may be told of it is read."""


def followed(lake: Lake, runs: Mapping[int, Run | None], rule: MonitoringRule) -> Followed:
    """What the years say together; nothing where no run has verdicts."""
    return follow([_year(lake, year, run) for year, run in runs.items()], rule)


_MEANING: Final = ("read", "unit", "order", "missing", "codes", "at")
"""Keys of a column's recipe that say what its values mean."""


def rule_of(spec: Mapping[str, Any]) -> MonitoringRule:
    """How a resolved spec wants years held against the limit; the defaults where it does not say."""
    verdicts = spec.get("verdicts") or {}
    settings = verdicts.get("monitoring") or {}
    rule = settings.get("rule") or MonitoringRule.rule
    return MonitoringRule(rule, settings.get("years"), verdicts.get("alpha") or MonitoringRule.alpha)


def said_of_years(audit: str, years: Sequence[int], lake: Lake) -> list[str]:
    """One sentence a theory, for the end of a back-fill; none where no run has verdicts."""
    runs = {year: last_run(lake, audit, year) for year in years}
    known_runs = [run for run in runs.values() if run is not None]
    return said_by_theory(followed(lake, runs, rule_of(known_runs[-1].spec))) if known_runs else []


def changes_of(audit: str, lake: Lake) -> list[dict[str, str]]:
    """Names of the series that a schedule announces, over all years of an audit that the lake holds; no figure."""
    runs = {run.year: run for run in runs_of(lake, audit, value=ALL)}
    standing_runs = {year: last_run(lake, audit, year) for year in sorted(runs)}
    if len(runs) < 2:
        return []
    of_years = followed(lake, standing_runs, rule_of(runs[max(runs)].spec))
    names = ("theory", "decision_maker", "attribute", "group", "measure", "year")
    return [{name: str(getattr(monitored.of, name)) for name in names} for monitored in to_announce(of_years)]


def _year(lake: Lake, year: int, run: Run | None) -> YearVerdicts:
    if run is None:
        return YearVerdicts(year, why="no run of this year")
    verdicts = run.published(VERDICTS)
    if verdicts is None:
        return YearVerdicts(year, why="the run of this year has no verdicts")
    verdict_settings = run.spec.get("verdicts") or {}
    rows = tuple(door_of(lake, run.run).through(verdicts.table, lake.read(verdicts)).to_pylist())
    least = {
        name: verdict_settings[name]
        for name in ("minimum_n", "minimum_events")
        if verdict_settings.get(name) is not None
    }
    out = {}
    for attribute in run.spec["protected"]:
        groups, reference = attribute["groups"] or {}, attribute["reference"]
        for group in ("", *groups):
            definition = [attribute["columns"], groups.get(group), reference, groups.get(reference)]
            out[attribute["name"], group] = json.dumps(definition, sort_keys=True, default=str)
    source = run.spec["source"]
    conditions = Conditions(
        lacking=frozenset(name for name in source.get("lacking", ()) if ": " not in name),  # columns, and no groups
        version=run.code,
        columns_complete=verdict_settings.get("columns_complete") is True,
        edition=run.vintage.split(",")[0] if "," in run.vintage else "file",
        era=era(run.year, source["kind"] == "hmda"),
        recipe=_recipe(source.get("intake") or {}),
    )
    return YearVerdicts(year, rows, conditions, out, **least)


def _recipe(intake: Mapping[str, Any]) -> frozenset[tuple[str, str, str]]:
    """What a recipe says of the meaning of cells; marks and formats say only how a year's file writes it."""
    meanings = [("values", "fold", intake.get("fold"))]
    for name, recipe in (intake.get("columns") or {}).items():
        meanings += [(name, key, recipe.get(key)) for key in _MEANING]
    return frozenset((name, key, json.dumps(value)) for name, key, value in meanings if value)


# --------------------------------------------------------------------------------------------------------------------
# Trends and restatements from the runs of a lake: selects the runs to compare, and writes the pages.
#
# A year is represented by its protected run, else by its last one. A restatement compares the last two runs on
# different data. Pages are written to the reports of the lake.


_HEADLINES = {measure for of in HEADLINES.values() for measure in of}
_CHECKED = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
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
    names: tuple[str, ...] = ()
    """Every measure that may be asked for."""


@dataclass(frozen=True)
class RunsOfYear:
    """The runs of a year that a trend is about."""

    year: int
    run: Run | None = None
    """The one that represents the year."""
    editions: tuple[Run, Run] | None = None
    """The last run and the last one before it on other data."""
    why: str = ""
    """Why there is no run, where that is known."""


def make_trend(audit: str, years: Sequence[int], lake: Lake, value: str = ALL) -> Made:
    """The trend of an audit over years, or of one partition of it, with its page; errors as of ``trend_of``."""
    trend = trend_of(audit, years, lake, value)
    extra = {"monitoring": trend.monitoring.to_pylist()}
    folder = f"trend-{audit}" if value == ALL else f"trend-{audit}-{place_of(value)}"
    result = _written(lake, folder, "trend", trend.table, paged(trend.section, trend.span), extra)
    return replace(result, followed=trend.followed, monitoring=trend.monitoring)


def trend_of(audit: str, years: Sequence[int], lake: Lake, value: str = ALL) -> Trend:
    """The trend of an audit over years, or of one partition of it, with the restatements of these years.

    Args:
        audit: its name.
        years: in order.
        lake: that holds the runs.
        value: of the partition.

    Raises:
        SpecError: no year has a run.
        IntegrityError: a manifest is not the one that was written.
    """
    runs_by_year = [RunsOfYear(y, last_run(lake, audit, y, value), editions(lake, audit, y, value)) for y in years]
    return trend_by(audit, runs_by_year, lake, value)


def trend_by(audit: str, years: Sequence[RunsOfYear], lake: Lake, value: str = ALL, measure: str = "") -> Trend:
    """The same of runs that were found already.

    Args:
        audit: its name.
        years: in order, each with its runs.
        lake: that holds the runs.
        value: of the partition.
        measure: alone to be shown, with what compares it; every one of the headline if empty.

    Raises:
        SpecError: no year has a run.
    """
    known_runs = [runs_of_year.run for runs_of_year in years if runs_of_year.run is not None]
    if not known_runs:
        subject = repr(audit) if value == ALL else f"{audit!r}, partition {value!r},"
        raise SpecError(
            f"the lake {lake.location} has no run of {subject} in these years; `evenhand backfill` makes them"
        )
    names: set[str] = set()
    results = [
        YearResult(of.year, state="unreadable", why=of.why)
        if of.why
        else _result(lake, audit, of.year, of.run, value, measure, names)
        for of in years
    ]
    table, rule = trending.trend(audit, results), rule_of(known_runs[-1].spec)
    monitored = [
        row
        for row in followed(lake, {runs_of_year.year: runs_of_year.run for runs_of_year in years}, rule)
        if row.of.measure.startswith(measure)
    ]
    pairs = [runs_of_year.editions for runs_of_year in years if runs_of_year.editions]
    last_spec = known_runs[-1].spec
    references = {p["name"]: p["reference"] for run in known_runs for p in run.spec["protected"]}
    hmda = any(run.spec["source"]["kind"] == "hmda" for run in known_runs)
    title = (last_spec["title"] or audit) + ("" if value == ALL else f": {value}")
    restated = [restating.section(_edition(lake, old), _edition(lake, new)) for old, new in pairs]
    content = trend_section(title, results, references, hmda, restated, chapter(monitored, rule))
    return Trend(
        table, content, span_of(results), monitored, trends.table(audit, monitored, rule), tuple(sorted(names))
    )


def make_restatement(audit: str, year: int, lake: Lake) -> Made:
    """Changes of measures by the last edition of a year.

    Raises:
        SpecError: the year has no two runs on different data.
    """
    pair = editions(lake, audit, year)
    if pair is None:
        raise SpecError(
            f"{audit} {year} has no two runs on different data; audit the year again when another edition is available"
        )
    old, new = (_edition(lake, run) for run in pair)
    table = restating.restatement(audit, old, new)
    title, section = pair[1].spec["title"] or audit, restating.section(old, new)
    content = write_page(title, str(year), [section], limits=LIMITS[:1])
    rows = restating.restated_rows(old, new)
    extra = {"old": old.result.vintage, "new": new.result.vintage, "rows": rows, "changed": restating.changed(table)}
    return _written(lake, f"restatement-{audit}-{year}", "restatement", table, content, extra)


def editions(lake: Lake, audit: str, year: int, value: str = ALL) -> tuple[Run, Run] | None:
    """The last run of a year and the last one before it on other data; None where there are no two."""
    runs = runs_of(lake, audit, year, value)
    before = [run for run in runs if run.source_sha256 != runs[-1].source_sha256]
    return (before[-1], runs[-1]) if before else None


def _edition(lake: Lake, run: Run) -> Edition:
    return Edition(_result(lake, run.audit, run.year, run), _counts(lake, run))


def _counts(lake: Lake, run: Run) -> dict[str, int | None]:
    """Line of the waterfall in words -> its rows, of everybody; none of a run that published no waterfall."""
    table = run.published(_WATERFALL)
    rows = lake.read(table).to_pylist() if table else []
    counts = {}
    for row in rows:
        if row["group"] != EVERYBODY or row["kind"] == "left":
            continue
        line = SOURCE if row["kind"] == "source" else "used"
        if row["kind"] == "refused":
            line = f"refused, {row['stage']}: {str(row['reason']).replace('_', ' ')}"
            line += f" ({row['column']})" if row["column"] else ""
        counts[line] = row["n"]
    return counts


def _result(
    lake: Lake,
    audit: str,
    year: int,
    run: Run | None,
    value: str = ALL,
    measure: str = "",
    names: set[str] | None = None,
) -> YearResult:
    if run is None:
        year_attempt = latest(lake, audit, year) if value == ALL else None
        last_attempt = year_attempt or latest(lake, audit, year, value)
        # A year without a run. The page omits the reason of a failure, which may name paths of this machine.
        if last_attempt is None:
            return YearResult(year, why="never audited")
        if last_attempt.state in (YearState.INCONCLUSIVE, YearState.TOO_FEW):
            return YearResult(year, state=State.INCONCLUSIVE, why=last_attempt.message)
        return YearResult(year, state=last_attempt.state, why="could not be audited; `evenhand status` says why")
    rows = _whole_groups(lake, run)
    if names is not None:
        names.update(rows["measure"].unique().to_pylist())
    # A measure that is chosen with those that compare it; else those of the headline, and those with a limit.
    measures = [
        Measure(**row).in_approval
        for row in (rows.to_pylist() if rows.num_rows else ())
        if (row["measure"].startswith(measure) if measure else row["measure"] in _HEADLINES or row["state"] in _CHECKED)
    ]
    return YearResult(
        year=year,
        run=run.run,
        vintage=run.vintage,
        edition=run.vintage.split(",")[0] if "," in run.vintage else "file",
        state=run.state,
        rows=_counts(lake, run).get(SOURCE, run.rows),
        lacking=tuple(run.spec["source"].get("lacking", ())),
        minimum_n=run.spec["bootstrap"]["minimum_n"],
        measures=tuple(measures),
    )


def _whole_groups(lake: Lake, run: Run) -> pa.Table:
    """The rows of measures of whole groups that have no parameters."""
    measures = run.published(MEASURES.name)
    if measures is None:
        return pa.table({"measure": pa.array([], pa.string())})
    rows = door_of(lake, run.run).through(measures.table, lake.read(measures))
    plain = pa.array(
        [parameters for parameters in rows["parameters"].unique().to_pylist() if unsampled(parameters) == "{}"],
        pa.string(),
    )
    return rows.filter(pc.and_(pc.equal(rows["subgroup"], 0), pc.is_in(rows["parameters"], plain)))


def _written(lake: Lake, folder: str, name: str, table: pa.Table, content: bytes, extra: dict[str, Any]) -> Made:
    content_of_json = {**extra, "measures": table.to_pylist()}
    home = f"reports/{folder}"
    lake.write_file(f"{home}/{name}.json", json.dumps(content_of_json, allow_nan=False).encode())
    return Made(table, lake.write_file(f"{home}/{name}.html", content))
