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
        others = rng.binomial(REFERENCE, 1 - REFERENCE_RATE, repetitions)
        printed = [_is_printed(POLICIES[profile], base, n, int(count)) for count in denied]
        drawn = [(n, int(own), int(other)) for own, other in zip(denied[printed], others[printed], strict=True)]
        named = {"profile": profile, "base": base, "n": n, "rate": rate, "printed": len(drawn)}
        yield {**named, **_held(POLICIES[profile], base, rate, drawn, often=len(drawn) >= MOSTLY * repetitions)}


def _held(policy: Policy, base: int, rate: float, drawn: Sequence[tuple[int, int, int]], *, often: bool) -> Row:
    """Coverage of the draws that are printed: n, the denied, and the denied of the reference group."""
    blank = dict.fromkeys((*MEASURES, "by_exact_counts", "target", "met"))
    if not drawn:
        return blank
    truth = dict(zip(MEASURES, (rate, rate - REFERENCE_RATE, rate / REFERENCE_RATE), strict=True))
    rounded_to = [_covered(intervals(policy, base, (n, own), (REFERENCE, other)), truth) for n, own, other in drawn]
    exact = [_covered(_exact((n, own), (REFERENCE, other)), truth) for n, own, other in drawn]
    covered = dict(zip(MEASURES, np.mean(rounded_to, axis=0).tolist(), strict=True))
    least = lowest(len(drawn))
    found = {**blank, **covered, "by_exact_counts": float(np.mean(exact, axis=0).min())}
    return {**found, **against(f"at least {least:.3f}", min(covered.values()) >= least)} if often else found


def intervals(policy: Policy, base: int, own: tuple[int, int], reference: tuple[int, int]) -> Mapping[str, Interval]:
    """Published intervals of the rate of approvals and of its comparisons, from (n, denied) of both groups."""
    found = spreads([_pair(policy, base, "group", *own), _pair(policy, base, "reference", *reference)], _PLAN)
    return {f.measure: Interval(each.low, each.high) for (f, group), each in found.items() if group == "group"}


def _pair(policy: Policy, base: int, group: str, n: int, denied: int) -> Pair:
    spans = learned(policy, n, base), learned(policy, denied, base, policy.events_too)
    return of_decisions(_statistic(group, n, denied), *spans)


def _exact(own: tuple[int, int], reference: tuple[int, int]) -> Mapping[str, Interval]:
    found: list[Measure] = summarise([_statistic("group", *own), _statistic("reference", *reference)], {}, _PLAN)
    return {m.family.measure: Interval(m.low, m.high) for m in found if m.group == "group"}


def _statistic(group: str, n: int, denied: int) -> Statistic:
    counts = np.array([denied, n - denied], dtype=np.int64)
    return Statistic(_FAMILY, group, np.array([0.0, 1.0]), counts, headline=True)


def _is_printed(policy: Policy, base: int, n: int, denied: int) -> bool:
    """Whether a rate is printed: no few are told, and rounding leaves one that is neither nobody's nor everybody's."""
    printed, of_denied = rounded(policy, n, base), rounded(policy, denied, base)
    few = small(policy, n, denied) or is_coarse(policy, base, printed)
    return not few and 0 < of_denied < printed


def _covered(found: Mapping[str, Interval], truth: Mapping[str, float]) -> list[bool]:
    return [found[name].low <= value <= found[name].high for name, value in truth.items()]


BENCH = Bench("published", _lines, fewest=SIZES[0], why="the smallest group that is drawn", disk=0, repeats=True)
