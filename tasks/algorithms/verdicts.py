"""Verdicts: each measure against its thresholds. Only a whole interval on the right side of a limit is a pass.

Too few units, no interval, a number that is not finite, a group in which there was nothing to measure: all of these are
too little evidence, and said so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from schemas.terms import State
from tasks.algorithms.measures import SUFFIXES, Family, Measure, base_name


@dataclass(frozen=True)
class Limit:
    """A threshold: which measures it holds for, and on which side they must lie."""

    measure: str
    method: str | None
    decision_maker: str | None
    minimum: float
    maximum: float


def judge(measures: Sequence[Measure], limits: Sequence[Limit], minimum_n: int) -> list[Measure]:
    """Give each measure its state: a verdict needs enough units and a whole interval on one side of the limit."""
    return [_judged(m, [limit for limit in limits if _applies(limit, m)], minimum_n) for m in measures]


def unknown(measures: Sequence[Measure], limits: Sequence[Limit]) -> list[tuple[int, list[str]]]:
    """Limits on measures that no method makes: the position of each, and the names that are known."""
    bases = {base_name(m.family.measure) for m in measures}
    known = sorted(bases | {base + suffix for base in bases for suffix in SUFFIXES})
    return [(i, known) for i, limit in enumerate(limits) if limit.measure not in known]


def unmeasured(measures: Sequence[Measure], limits: Sequence[Limit], references: Mapping[str, str]) -> list[Measure]:
    """One measure without a value for every group that a limit is about and in which there was nothing to measure.

    Without them, a group that no method could look at would silently count as kept.
    """
    whole = [m for m in measures if m.family.subgroup == 0]
    everyone = {(m.family.decision_maker, m.family.protected_attribute, m.group) for m in whole}
    out = []
    for limit in limits:
        base = base_name(limit.measure)
        method = limit.method or next((m.family.method for m in whole if m.family.measure == base), "")
        there = {(m.family.decision_maker, m.family.protected_attribute, m.group) for m in whole if _applies(limit, m)}
        for maker, attribute, group in sorted(everyone - there):
            compares = limit.measure != base
            wanted = limit.decision_maker in (None, maker) and not (compares and group == references[attribute])
            if wanted:
                family = Family(method, maker, attribute, limit.measure, "{}")
                out.append(_nothing(family, group, references[attribute] if compares else None))
    return out


def _nothing(family: Family, group: str, reference: str | None) -> Measure:
    nan = math.nan
    reason = "nothing to measure: no unit of the group, or of what it is compared with, has this measure"
    return Measure(family, group, reference, nan, nan, nan, 0, state=State.INSUFFICIENT_EVIDENCE, reason=reason)


def _applies(limit: Limit, m: Measure) -> bool:
    return (
        limit.measure == m.family.measure
        and limit.method in (None, m.family.method)
        and limit.decision_maker in (None, m.family.decision_maker)
        and m.family.subgroup == 0
    )


def _judged(m: Measure, limits: Sequence[Limit], minimum_n: int) -> Measure:
    if not limits:
        return replace(m, state=State.NOT_RUN, reason="no threshold set")
    if m.fewest < minimum_n:
        return replace(
            m, state=State.INSUFFICIENT_EVIDENCE, reason=f"{m.fewest} units, {minimum_n} are needed for a verdict"
        )
    if not all(math.isfinite(x) for x in (m.value, m.low, m.high)):
        return replace(m, state=State.INSUFFICIENT_EVIDENCE, reason="the measure or its interval is not defined")
    low, high = max(limit.minimum for limit in limits), min(limit.maximum for limit in limits)
    side = _limit_in_words(low, high)
    if m.high < low or m.low > high:
        return replace(m, state=State.BREACH, reason=f"the whole interval lies beyond the limit ({side})")
    if low <= m.low and m.high <= high:
        return replace(m, state=State.WITHIN, reason=f"the whole interval keeps the limit ({side})")
    return replace(
        m, state=State.INSUFFICIENT_EVIDENCE, reason=f"the interval lies on both sides of the limit ({side})"
    )


def _limit_in_words(low: float, high: float) -> str:
    sides = [f"at least {low:g}"] * math.isfinite(low) + [f"at most {high:g}"] * math.isfinite(high)
    return " and ".join(sides)
