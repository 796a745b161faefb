"""Years of a lake against their limits: reads the verdicts of the runs that stand for them.

A year is represented by its protected run, else by its last one, so that a restated year enters by its last edition. A
run of an earlier version has no verdicts; its year is a gap.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flows.runs.index import Run, last_run
from tasks.lake.store import Lake
from tasks.metrics.algorithm.monitoring.years import Conditions, MonitoringRule
from tasks.reporting.trends.monitoring import Followed, YearVerdicts, era, follow, said_by_theory

VERDICTS = "verdicts"
"""Name of the table; what may be told of it is read."""


def followed(lake: Lake, runs: Mapping[int, Run | None], rule: MonitoringRule) -> Followed:
    """What the years say together; nothing where no run has verdicts."""
    return follow([_year(lake, year, run) for year, run in runs.items()], rule)


def rule_of(spec: Mapping[str, Any]) -> MonitoringRule:
    """How a resolved spec wants years held against the limit; the defaults where it does not say."""
    verdicts = spec.get("verdicts") or {}
    said = verdicts.get("monitoring") or {}
    rule = said.get("rule") or MonitoringRule.rule
    return MonitoringRule(rule, said.get("years"), verdicts.get("alpha") or MonitoringRule.alpha)


def said_of_years(audit: str, years: Sequence[int], lake: Lake) -> list[str]:
    """One sentence a theory, for the end of a back-fill; none where no run has verdicts."""
    runs = {year: last_run(lake, audit, year) for year in years}
    known = [run for run in runs.values() if run is not None]
    return said_by_theory(followed(lake, runs, rule_of(known[-1].spec))) if known else []


def _year(lake: Lake, year: int, run: Run | None) -> YearVerdicts:
    if run is None:
        return YearVerdicts(year, why="no run of this year")
    verdicts = run.published(VERDICTS)
    if verdicts is None:
        return YearVerdicts(year, why="the run of this year has no verdicts")
    said = run.spec.get("verdicts") or {}
    rows = tuple(lake.read(verdicts).to_pylist())
    least = {name: said[name] for name in ("minimum_n", "minimum_events") if said.get(name) is not None}
    return YearVerdicts(year, rows, _conditions(run, said), _groups(run), **least)


def _conditions(run: Run, said: Mapping[str, Any]) -> Conditions:
    source = run.spec["source"]
    return Conditions(
        lacking=frozenset(name for name in source.get("lacking", ()) if ": " not in name),  # no group, whose rows tell
        version=run.code,
        columns_complete=said.get("columns_complete") is True,
        edition=run.vintage.split(",")[0] if "," in run.vintage else "file",
        era=era(run.year, source["kind"] == "hmda"),
    )


def _groups(run: Run) -> dict[tuple[str, str], str]:
    """Protected attribute and group -> the codes of the group and of the reference group, and where they stand.

    A group that nobody listed, whose name is its value, stands under the empty name.
    """
    out = {}
    for attribute in run.spec["protected"]:
        groups, reference = attribute["groups"] or {}, attribute["reference"]
        for group in ("", *groups):
            said = [attribute["columns"], groups.get(group), reference, groups.get(reference)]
            out[attribute["name"], group] = json.dumps(said, sort_keys=True, default=str)
    return out
