"""Measures how often intervals of published rates cover, where counts are rounded before they are printed.

Approvals of a group and of its reference group are drawn from rates that are known, their counts are rounded as each
profile rounds them, and the intervals of the rate, the difference and the ratio are held against the truth. Draws whose
rate would not be printed are left out. The same intervals by exact counts stand beside them.

Scope: groups whose decisions are printed. Which are: ``tasks.metrics.publish``.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from benches.verdicts import NOMINAL, lowest

from research.benchmark import Bench, Room, Row, against
from tasks.metrics.algorithm.measures import Family, Measure, Plan, Statistic, summarise
from tasks.metrics.publish.algorithm.populations import Pair, of_decisions, spreads
from tasks.metrics.publish.algorithm.profiles import POLICIES, Policy, is_coarse, learned, rounded, small
from tasks.numerics.statistics.intervals import Interval

REPETITIONS = 400
SEED = 35
PROFILES = (("public", 10), ("public", 20), ("strict", 5), ("strict", 20), ("official", 10))
"""Profiles with the base that counts are rounded to: their own, or a coarser one of secondary control."""
SIZES, RATES = (67, 120, 197, 500), (0.65, 0.85, 0.95)
REFERENCE, REFERENCE_RATE = 1_681, 0.908
MOSTLY = 0.5
"""Where fewer of the draws are printed they are not like all, and intervals of exact counts miss the truth, too."""
MEASURES = ("approval_rate", "approval_rate_difference", "approval_rate_ratio")
_FAMILY = Family("outcomes", "lender", "race", "approval_rate", "{}")
_PLAN = Plan({"race": "reference"}, draws=1, level=NOMINAL, seed=1)


def _lines(room: Room) -> Iterator[Row]:
    yield from measured(room.reps or REPETITIONS, tuple(n for n in SIZES if n <= room.limit))


def measured(repetitions: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """A line for each profile, base, size and rate: how often the three intervals hold the truth."""
    rng = np.random.default_rng(SEED)
    for (profile, base), n, rate in itertools.product(PROFILES, sizes, RATES):
        denied = rng.binomial(n, 1 - rate, repetitions)
        reference_denied = rng.binomial(REFERENCE, 1 - REFERENCE_RATE, repetitions)
        printed = [_is_printed(POLICIES[profile], base, n, int(count)) for count in denied]
        samples = [
            (n, int(own_denied), int(other))
            for own_denied, other in zip(denied[printed], reference_denied[printed], strict=True)
        ]
        named = {"profile": profile, "base": base, "n": n, "rate": rate, "printed": len(samples)}
        yield {**named, **_held(POLICIES[profile], base, rate, samples, often=len(samples) >= MOSTLY * repetitions)}


def _held(policy: Policy, base: int, rate: float, samples: Sequence[tuple[int, int, int]], *, often: bool) -> Row:
    """Coverage of the draws that are printed: n, the denied, and the denied of the reference group."""
    blank = dict.fromkeys((*MEASURES, "by_exact_counts", "target", "met"))
    if not samples:
        return blank
    truth = dict(zip(MEASURES, (rate, rate - REFERENCE_RATE, rate / REFERENCE_RATE), strict=True))
    rounded_to = [
        _covered(intervals(policy, base, (n, own_denied), (REFERENCE, other)), truth)
        for n, own_denied, other in samples
    ]
    exact = [_covered(_exact((n, own_denied), (REFERENCE, other)), truth) for n, own_denied, other in samples]
    covered = dict(zip(MEASURES, np.mean(rounded_to, axis=0).tolist(), strict=True))
    least = lowest(len(samples))
    figures = {**blank, **covered, "by_exact_counts": float(np.mean(exact, axis=0).min())}
    return {**figures, **against(f"at least {least:.3f}", min(covered.values()) >= least)} if often else figures


def intervals(
    policy: Policy, base: int, own_counts: tuple[int, int], reference: tuple[int, int]
) -> Mapping[str, Interval]:
    """Published intervals of the rate of approvals and of its comparisons, from (n, denied) of both groups."""
    interval_by_family = spreads(
        [_pair(policy, base, "group", *own_counts), _pair(policy, base, "reference", *reference)], _PLAN
    )
    return {
        f.measure: Interval(interval.low, interval.high)
        for (f, group), interval in interval_by_family.items()
        if group == "group"
    }


def _pair(policy: Policy, base: int, group: str, n: int, denied: int) -> Pair:
    spans = learned(policy, n, base), learned(policy, denied, base, policy.events_too)
    return of_decisions(_statistic(group, n, denied), *spans)


def _exact(own_counts: tuple[int, int], reference: tuple[int, int]) -> Mapping[str, Interval]:
    group_measures: list[Measure] = summarise(
        [_statistic("group", *own_counts), _statistic("reference", *reference)], {}, _PLAN
    )
    return {m.family.measure: Interval(m.low, m.high) for m in group_measures if m.group == "group"}


def _statistic(group: str, n: int, denied: int) -> Statistic:
    counts = np.array([denied, n - denied], dtype=np.int64)
    return Statistic(_FAMILY, group, np.array([0.0, 1.0]), counts, headline=True)


def _is_printed(policy: Policy, base: int, n: int, denied: int) -> bool:
    """Whether a rate is printed: the counts are not small, and the rounded rate is neither 0 nor 1."""
    printed, of_denied = rounded(policy, n, base), rounded(policy, denied, base)
    few = small(policy, n, denied) or is_coarse(policy, base, printed)
    return not few and 0 < of_denied < printed


def _covered(measured_intervals: Mapping[str, Interval], truth: Mapping[str, float]) -> list[bool]:
    return [measured_intervals[name].low <= value <= measured_intervals[name].high for name, value in truth.items()]


BENCH = Bench("published", _lines, fewest=SIZES[0], why="the smallest group that is drawn", disk=0, repeats=True)
