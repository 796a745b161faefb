"""From verdicts of years to the table of what they say together.

Computed from verdicts as they are published: what a year withholds is a gap here, and nothing can be had from this
table that could not be had from the verdicts of the years.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from schemas.tables.trends import MONITORING
from schemas.terms import ChangeState, State
from tasks.metrics.algorithm.monitoring.monitor import monitor
from tasks.metrics.algorithm.monitoring.monitored import Monitored
from tasks.metrics.algorithm.monitoring.years import Conditions, MonitoringRule, YearEstimate
from tasks.reporting.trends.trend import HMDA_BREAK

Followed = Sequence[Monitored]
ALIKE = Conditions()
"""Of a year of which nothing is known that another might not share."""


@dataclass(frozen=True)
class YearVerdicts:
    """The verdicts of one year; without a run, why there are none."""

    year: int
    rows: tuple[Mapping[str, Any], ...] = ()
    """As the table of verdicts has them, the theory as a whole included."""
    conditions: Conditions = ALIKE
    """Without the definition of groups, which differs by attribute and group."""
    groups: Mapping[tuple[str, str], str] | None = None
    """Protected attribute and group -> their definition and that of the reference group; of groups that nobody listed
    under the empty name."""
    minimum_n: int = 30
    minimum_events: int = 10
    why: str = ""


def era(year: int, hmda: bool) -> str:
    """The rules by which the data of a year were collected."""
    return HMDA_BREAK[1] if hmda and year >= HMDA_BREAK[0] else ""


def follow(years: Sequence[YearVerdicts], rule: MonitoringRule) -> Followed:
    """What the years say together, in the order of series and years.

    Args:
        years: of one audit; a year that comes twice counts as it came last.
        rule: how years are held against the limit.
    """
    read = [one for year in years for one in year_estimates(year)]
    return monitor([*read, *_missing(years, read)], rule)


def year_estimates(year: YearVerdicts) -> list[YearEstimate]:
    """The estimates of the judged groups of one year: of what decides, and not of what stands beside it."""
    return [_estimate(year, row) for row in year.rows if row["role"] == "primary"]


def table(audit: str, followed: Followed, rule: MonitoringRule) -> pa.Table:
    """One row for each series and year, in the shape of ``MONITORING``."""
    rows = [_row(audit, one, rule) for one in followed]
    return MONITORING.build(**{column.name: [row[column.name] for row in rows] for column in MONITORING.columns})


def _estimate(year: YearVerdicts, row: Mapping[str, Any]) -> YearEstimate:
    place, defined = (row["protected_attribute"], row["group"]), year.groups or {}
    return YearEstimate(
        year=year.year,
        theory=row["theory"],
        attribute=place[0],
        group=place[1],
        decision_maker=row["decision_maker"],
        measure=row["measure"],
        value=_number(row["value"]),
        se=_number(row["se"]),
        scale="log" if row["scale"] == "log" else "linear",
        bias=row["bias"] or 0.0,
        limit=_number(row["limit"]),
        side="at_least" if row["side"] == "at_least" else "at_most",
        conditions=replace(year.conditions, groups=defined.get(place, defined.get((place[0], ""), ""))),
        reference=row["reference_group"] or "",
        low=_number(row["low"]),
        high=_number(row["high"]),
        gap=_gap(year, row),
    )


def _gap(year: YearVerdicts, row: Mapping[str, Any]) -> str:
    """Why a row has no estimate that could be pooled; empty where it has one."""
    if row["value"] is None:
        return row["reason"] or "withheld or not measured"
    for n, events in (("n", "events"), ("n_reference", "events_reference")):
        if row[n] is not None and row[n] < year.minimum_n:
            return f"fewer than {year.minimum_n} applicants in the group or the reference group"
        if row[n] is not None and row[events] is not None:
            rarer = min(row[events], row[n] - row[events])
            if rarer < year.minimum_events:
                return f"fewer than {year.minimum_events} of either decision in the group or the reference group"
    return ""


def _missing(years: Iterable[YearVerdicts], read: Sequence[YearEstimate]) -> list[YearEstimate]:
    """A gap for every series in every year that does not judge it."""
    known = {(one.series, one.year) for one in read}
    last = {one.series: one for one in sorted(read, key=lambda one: one.year)}
    return [_absent(one, year) for year in years for series, one in last.items() if (series, year.year) not in known]


def _absent(one: YearEstimate, year: YearVerdicts) -> YearEstimate:
    why = year.why or "the run of this year does not judge it"
    nan = math.nan
    return replace(one, year=year.year, value=nan, se=nan, low=nan, high=nan, bias=0.0, gap=why, ran=False)


def _row(audit: str, one: Monitored, rule: MonitoringRule) -> dict[str, object]:
    of, change = one.of, one.change
    return {
        "audit": audit,
        "year": of.year,
        "theory": of.theory,
        "decision_maker": of.decision_maker,
        "protected_attribute": of.attribute,
        "group": of.group,
        "reference_group": of.reference,
        "measure": of.measure,
        "scale": of.scale,
        "value": _known(of.value),
        "low": _known(of.low),
        "high": _known(of.high),
        "limit": _known(of.limit),
        "side": of.side,
        "rule": rule.rule,
        "pooled": _known(one.pooled),
        "pooled_low": _known(one.pooled_low),
        "pooled_high": _known(one.pooled_high),
        "state": one.state,
        "change": _known(change.change),
        "change_low": _known(change.low),
        "change_high": _known(change.high),
        "change_state": change.state,
        "tau2": _known(change.tau2),
        "years_used": change.years_used,
        "predicted_low": _known(change.predicted_low),
        "predicted_high": _known(change.predicted_high),
        "minimal_change": _known(change.minimal),
        "slope": _known(change.slope),
        "slope_low": _known(change.slope_low),
        "slope_high": _known(change.slope_high),
        "since_year": change.since_year,
        "since_p": _known(change.since_p),
        "q": _known(change.q),
        "reason": one.said,
    }


def breaches(followed: Followed) -> dict[tuple[str, str], int]:
    """Theory and group -> first year in which their present sequence lay beyond the limit."""
    last = {one.of.series: one for one in followed if one.of.usable}
    found: dict[tuple[str, str], int] = {}
    for one in last.values():
        if one.first_breach is not None:
            place = one.of.theory, one.of.group
            found[place] = min(one.first_breach, found.get(place, one.first_breach))
    return found


def changed(followed: Followed) -> list[Monitored]:
    """The series whose last year with an estimate has changed."""
    last = {one.of.series: one for one in followed if one.of.usable}
    return [one for one in last.values() if one.change.state is ChangeState.CHANGED]


def said_by_theory(followed: Followed) -> list[str]:
    """One sentence a theory: whether its sequence has breached, and since when for whom."""
    gone = breaches(followed)
    out = []
    for theory in dict.fromkeys(one.of.theory for one in followed):
        mine = [f"{group} since {year}" for (of, group), year in gone.items() if of == theory]
        if mine:
            out.append(f"{theory}: the years together are beyond the limit ({', '.join(mine)})")
        elif all(one.state in (State.NO_LIMIT, State.NOT_RUN) for one in followed if one.of.theory == theory):
            out.append(f"{theory}: no limit, or nothing judged in any year")
        else:
            out.append(f"{theory}: the years together are not beyond the limit")
    return out


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
