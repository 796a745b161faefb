"""How far an interval and a p-value reach where counts are rounded: over all counts that are printed alike.

A share of rounded counts is off by more than its sampling error may be. Its interval is the smallest one that holds the
intervals at both ends of what a reader can tell of the counts; its p is the larger of both, and 1 where no difference
at all lies between the ends. How often they cover: ``evenhand bench published``. Source: decision 0035.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tasks.metrics.algorithm.measures import Measure, Plan, Statistic, summarise
from tasks.metrics.publish.algorithm.families import Cell
from tasks.metrics.publish.algorithm.profiles import Policy, Span, learned
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.intervals import is_share

Pair = tuple[Statistic, Statistic]
"""A share at its lowest and at its highest."""


class Spread(NamedTuple):
    """Lower and upper end of an interval and a p-value, NaN where there is none."""

    low: float
    high: float
    p: float


def of_decisions(share: Statistic, n: Span, denied: Span) -> Pair:
    """Approvals or denials at their lowest and highest, by what is known of ``n`` and of the denied."""
    fewest, most = _decided(share, n.high, denied.low), _decided(share, n.low, denied.high)
    return (fewest, most) if _of_denied(share) else (most, fewest)


def _decided(share: Statistic, n: int, denied: int) -> Statistic:
    denied = min(denied, n)
    events = denied if _of_denied(share) else n - denied
    return replace(share, values=np.array([0.0, 1.0]), counts=np.array([n - events, events], dtype=np.int64))


def _of_denied(share: Statistic) -> bool:
    return share.family.measure == "denial_rate"


def of_counts(statistic: Statistic, policy: Policy, base: int) -> Pair:
    """A share at its lowest and highest, where each of its counts is rounded to ``base``; others as they are."""
    if base == 1 or not is_share(statistic.values):
        return statistic, statistic
    spans = [learned(policy, int(count), base, never_small=False) for count in statistic.counts]
    low, high = np.array(spans, dtype=np.int64).T
    event = statistic.values == 1
    lowest, highest = np.where(event, low, high), np.where(event, high, low)
    return replace(statistic, counts=lowest), replace(statistic, counts=highest)


def spreads(
    pairs: Sequence[Pair], plan: Plan, refitted: Mapping[Cell, Floats] = MappingProxyType({})
) -> dict[Cell, Spread]:
    """The spread of shares and of their comparisons: every group is taken against the other end of its reference group.

    A measure that has no interval at one of the ends has none.

    Args:
        pairs: the shares at their lowest and highest.
        plan: references and level of the intervals.
        refitted: (family, group) -> ``(refits,)`` a share of the model's decisions, by the model fitted anew.
    """
    others = [low.group != plan.references[low.family.protected_attribute] for low, _ in pairs]
    lowest = [low if other else high for other, (low, high) in zip(others, pairs, strict=True)]
    highest = [high if other else low for other, (low, high) in zip(others, pairs, strict=True)]
    against = {(m.family, m.group): m for m in summarise(highest, {}, plan, (), refitted)}
    found = {(m.family, m.group): m for m in summarise(lowest, {}, plan, (), refitted)}
    return {cell: _spread(m, against[cell]) for cell, m in found.items() if cell in against}


def _spread(a: Measure, b: Measure) -> Spread:
    ends = (a.low, b.low, a.high, b.high)
    low, high = (math.nan, math.nan) if any(map(math.isnan, ends)) else (min(ends), max(ends))
    return Spread(low, high, _p(a, b))


def _p(a: Measure, b: Measure) -> float:
    if math.isnan(a.p) or math.isnan(b.p):
        return math.nan
    nothing = 1.0 if a.family.measure.endswith("_ratio") else 0.0
    return max(a.p, b.p) if (a.value - nothing) * (b.value - nothing) > 0 else 1.0
