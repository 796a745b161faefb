"""Verdicts: each measure against its thresholds. Only a whole interval on the right side of a limit is a pass.

Too few units, no interval, a number that is not finite or an empty group is insufficient evidence, and reported so.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.terms import Note, State
from tasks.metrics.algorithm.measures import SUFFIXES, Family, Measure, Plan, base_name

_WHY = {
    Note.RANGE: "a range of draws is no interval",
    Note.NO_SPREAD: "no interval: values that do not differ say nothing of sampling error",
    Note.POOR_SUPPORT: "too few of the group are where applicants of both groups are found",
}
"""Why a measure with such a note is not judged."""


@dataclass(frozen=True)
class Limit:
    """A threshold: which measures it holds for, and on which side they must lie."""

    measure: str
    method: str | None
    decision_maker: str | None
    minimum: float
    maximum: float
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    """Holds for measures with these parameters; if none are given, for the one without any where there is one."""


def judge(measures: Sequence[Measure], limits: Sequence[Limit], minimum_n: int) -> list[Measure]:
    """Give each measure its state: a verdict needs enough units and a whole interval on one side of the limit."""
    headlines = _headlines(measures)
    applying = [[limit for limit in limits if _applies(limit, m, headlines)] for m in measures]
    states = [_verdict(m, own, minimum_n) for m, own in zip(measures, applying, strict=True)]
    return [replace(m, state=state, reason=reason) for m, (state, reason) in zip(measures, states, strict=True)]


def _headlines(measures: Iterable[Measure]) -> set[tuple[str, str]]:
    """Methods and measures of which there is one without parameters: what a limit is about if it names none."""
    return {(m.family.method, m.family.measure) for m in measures if m.family.parameters == "{}"}


def overall(states: Sequence[str]) -> State:
    """One state for many: a breach outweighs too little evidence, which outweighs a pass; of nothing, not run."""
    for state in (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.WITHIN):
        if state in states:
            return state
    return State.NOT_RUN


def known_names(bases: Sequence[str]) -> list[str]:
    """Every name that a limit can have, given the measures that methods make."""
    return sorted({*bases, *(base + suffix for base in bases for suffix in SUFFIXES)})


def unmeasured(
    measures: Sequence[Measure], limits: Sequence[Limit], groups: Collection[tuple[str, str, str]], plan: Plan
) -> list[Measure]:
    """One measure without a value for every group that a limit is about and in which there was nothing to measure.

    Without them, a group that no method could look at, or a limit that found nothing to check, would count as kept.

    Args:
        measures: those that were made.
        limits: the thresholds.
        groups: (decision maker, protected attribute, group) of everyone who should have been looked at.
        plan: tells the reference groups.
    """
    out: dict[tuple[Family, str], Measure] = {}
    makers, headlines = {maker for maker, _, _ in groups}, _headlines(measures)
    for limit in limits:
        there = {
            (m.family.decision_maker, m.family.protected_attribute, m.group)
            for m in measures
            if _applies(limit, m, headlines)
        }
        compares = limit.measure != base_name(limit.measure)
        outside = compares or base_name(limit.measure) in plan.of_other_groups
        asked = makers if limit.decision_maker is None else {limit.decision_maker}
        for attribute, group in sorted({(attribute, group) for _, attribute, group in groups}):
            reference = plan.references[attribute]
            for maker in sorted(asked):
                if (maker, attribute, group) not in there and not (outside and group == reference):
                    family = Family(_method(limit, measures), maker, attribute, limit.measure, "{}")
                    out[family, group] = _nothing(family, group, reference if compares else None)
    return list(out.values())


def _method(limit: Limit, measures: Sequence[Measure]) -> str:
    """The method that a limit is about, as far as the run tells."""
    base = base_name(limit.measure)
    return limit.method or next((m.family.method for m in measures if m.family.measure == base), "none")


def _nothing(family: Family, group: str, reference: str | None) -> Measure:
    nan = math.nan
    reason = "nothing to measure: no unit of the group, or of what it is compared with, has this measure"
    return Measure(family, group, reference, nan, nan, nan, 0, state=State.INSUFFICIENT_EVIDENCE, reason=reason)


def _applies(limit: Limit, m: Measure, headlines: Collection[tuple[str, str]]) -> bool:
    if not limit.parameters and m.family.parameters != "{}" and (m.family.method, m.family.measure) in headlines:
        return False
    return (
        limit.measure == m.family.measure
        and limit.method in (None, m.family.method)
        and limit.decision_maker in (None, m.family.decision_maker)
        and limit.parameters.items() <= json.loads(m.family.parameters).items()
        and m.family.subgroup == 0
    )


def _verdict(m: Measure, limits: Sequence[Limit], minimum_n: int) -> tuple[State, str]:
    """State of a measure and the reason for it."""
    if not limits:
        return State.NOT_RUN, "no threshold set"
    if math.isnan(m.value) and m.note and m.n is not None and m.n >= minimum_n:
        return State.INSUFFICIENT_EVIDENCE, f"not measured: {m.note}"
    if m.fewest < minimum_n:
        return State.INSUFFICIENT_EVIDENCE, f"fewer than the {minimum_n} units that a verdict needs"
    why = next((reason for note, reason in _WHY.items() if note in m.note.split("; ")), "")
    if why:
        return State.INSUFFICIENT_EVIDENCE, why
    if not all(math.isfinite(x) for x in (m.value, m.low, m.high)):
        return State.INSUFFICIENT_EVIDENCE, "the measure or its interval is not defined"
    if m.note:
        return State.INSUFFICIENT_EVIDENCE, "the value is no more than a bound"
    low, high = max(limit.minimum for limit in limits), min(limit.maximum for limit in limits)
    side = _limit_in_words(low, high)
    if m.high < low or m.low > high:
        return State.BREACH, f"the whole interval lies beyond the limit ({side})"
    if low <= m.low and m.high <= high:
        return State.WITHIN, f"the whole interval keeps the limit ({side})"
    return State.INSUFFICIENT_EVIDENCE, f"the interval lies on both sides of the limit ({side})"


def _limit_in_words(low: float, high: float) -> str:
    sides = [f"at least {low:g}"] * math.isfinite(low) + [f"at most {high:g}"] * math.isfinite(high)
    return " and ".join(sides)
