"""Computes measures from tallies: estimates by group, comparisons with the reference, size-matched reference.

A tally is the distribution of a statistic over the units of a group; its mean is the measure. A headline tally of
another group is compared with the reference group's (difference, ratio). A tally that was redrawn on the reference
group at the group's size is printed beside that size-matched value (specs of FGCE, 'Epsilon and size'): a small group
has a thinner graph, which alone raises its infeasible share. A tally on permuted labels is printed as the value under
the null hypothesis. No method is known here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple
from zlib import crc32

import numpy as np

from schemas.terms import Note, State
from tasks.metrics.algorithm.estimates import Sample, Whole, estimates, estimates_given
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Inference
from tasks.numerics.statistics import compared_intervals
from tasks.numerics.statistics.intervals import (
    ENOUGH,
    Estimate,
    Interval,
    benjamini_hochberg,
    by_refits,
    fisher_p,
    percentile_intervals,
    resample,
    two_sided_p,
)

NOTHING: Floats = np.zeros(0)

SUFFIXES = ("_size_matched_difference", "_size_matched", "_null_difference", "_null", "_difference", "_ratio")
"""How comparisons are named, the longest first."""


@dataclass(frozen=True, order=True)
class Family:
    """Identity of a statistic, apart from its group."""

    method: str
    decision_maker: str
    protected_attribute: str
    measure: str
    parameters: str
    subgroup: int = 0


@dataclass(frozen=True)
class Statistic:
    """One tally: the values of a statistic over the units of a group, as distinct values and counts."""

    family: Family
    group: str
    values: Floats
    counts: Longs
    headline: bool
    """Whether its difference from the reference is tested."""
    compared: bool = True
    """Whether its difference and ratio to the reference are made."""
    share: bool = True
    """Whether no value can be below 0 or above 1."""


@dataclass(frozen=True)
class Given:
    """A measure that is no mean over units: its method gives the value, and the replicates or the interval."""

    family: Family
    group: str
    value: float
    n: int
    replicates: Floats
    headline: bool
    compared: bool
    note: str
    events: int | None = None
    """Units that the value counts, where it counts units."""
    ends: Interval | None = None
    """The interval by a formula of the method; None where the replicates make it."""
    inference: Inference | None = None
    """Of a measure that a theory of harm may be judged by."""


class Drawn(NamedTuple):
    """A statistic where nothing but size, or nothing at all, tells the group from the reference."""

    values: Floats
    note: str = ""
    """Why values among them are bounds."""
    reference: str = "size_matched"
    """What was drawn: subsamples of the reference group (``size_matched``) or permuted labels (``null``)."""


class Measure(NamedTuple):
    """One measure, as printed."""

    family: Family
    group: str
    reference_group: str | None
    value: float
    low: float
    high: float
    n: int | None
    events: int | None = None
    p: float = math.nan
    q: float = math.nan
    state: State = State.NOT_RUN
    reason: str = ""
    note: str = ""
    """What qualifies the value: a bound, or why there is none."""
    counted: bool = False
    """Whether what was drawn counts units, and so could tell the size of a group."""
    fewest: int = 0
    """Units with a value, the smaller number of the two groups compared: what a threshold's minimum n looks at."""


@dataclass(frozen=True)
class Plan:
    """Settings of measures: references, intervals and their seed."""

    references: Mapping[str, str]
    """Protected attribute -> its reference group."""
    draws: int
    level: float
    seed: int
    of_other_groups: frozenset[str] = frozenset()
    """Measures that say nothing of a reference group."""


def summarise(
    statistics: Sequence[Statistic],
    matched: Mapping[tuple[Family, str], Drawn],
    plan: Plan,
    given: Sequence[Given] = (),
    refitted: Mapping[tuple[Family, str], Floats] = MappingProxyType({}),
) -> list[Measure]:
    """All measures of a run.

    Args:
        statistics: the tallies.
        matched: (family, group) -> values of the statistic on what the group is set beside.
        plan: references and bootstrap.
        given: the aggregates.
        refitted: (family, group) -> ``(refits,)`` a share of the model's decisions, by the model fitted anew.
    """
    made = _estimates(statistics, given, plan)
    for key, shares in refitted.items():
        if key in made:
            made[key] = by_refits(made[key], shares, plan.level)
    notes = {(g.family, g.group): g.note for g in given}
    ratios = _ratios_of_shares(statistics, made, plan)
    ranges = dict(zip(matched, percentile_intervals([d.values for d in matched.values()], plan.level), strict=True))
    out: list[Measure] = []
    everything: list[Statistic | Given] = [*statistics, *given]
    for s in everything:
        key = s.family, s.group
        own, note = made[key], notes.get(key, "")
        out.append(_plain(*key, own, _joined(note, own.note)))
        reference = plan.references[s.family.protected_attribute]
        if s.group == reference or s.family.subgroup:
            continue
        if s.compared and (other := made.get((s.family, reference))) is not None:
            there = notes.get((s.family, reference))
            both = _joined(note, f"{reference}: {there}" * bool(there))
            compared = _compared(s, own, other, plan, ratios.get(key))
            out += [m._replace(note=_joined(both, m.note)) for m in compared]
        if key in matched:
            drawn = matched[key]
            said = (drawn.note, _joined(note, drawn.note))
            beside = _beside(s, own, (drawn, ranges[key]), reference, plan.level)
            out += [m._replace(note=_joined(qualified, m.note)) for m, qualified in zip(beside, said, strict=False)]
    return _with_q(out)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _ratios_of_shares(
    statistics: Sequence[Statistic], estimates: Mapping[tuple[Family, str], Estimate], plan: Plan
) -> dict[tuple[Family, str], Interval]:
    """Intervals of the ratios of all shares that are compared with the reference group's, found in one search."""
    pairs = {}
    for s in statistics:
        reference = plan.references[s.family.protected_attribute]
        own, other = estimates[s.family, s.group], estimates.get((s.family, reference))
        if s.compared and not s.family.subgroup and s.group != reference and other is not None:
            pairs[s.family, s.group] = own, other
    shares = {key: pair for key, pair in pairs.items() if compared_intervals.both_shares(*pair)}
    return dict(zip(shares, compared_intervals.ratios_of_shares(list(shares.values()), plan.level), strict=True))


def _estimates(
    statistics: Sequence[Statistic], given: Sequence[Given], plan: Plan
) -> dict[tuple[Family, str], Estimate]:
    """Of every statistic and aggregate."""
    samples = [Sample(s.values, s.counts, s.share, partial(_resamples, s, plan)) for s in statistics]
    wholes = [Whole(g.value, g.n, g.events, g.replicates, g.ends) for g in given]
    every = [*estimates(samples, plan.draws, plan.level), *estimates_given(wholes, plan.level)]
    keys = [*((s.family, s.group) for s in statistics), *((g.family, g.group) for g in given)]
    return dict(zip(keys, every, strict=True))


def _resamples(s: Statistic, plan: Plan) -> Floats:
    """The random stream follows from what is estimated, not from the group's name; the reference has its own."""
    is_reference = s.group == plan.references[s.family.protected_attribute]
    identity = "|".join((*map(str, vars(s.family).values()), str(is_reference), str(s.counts.tolist())))
    rng = np.random.default_rng([plan.seed, crc32(identity.encode())])
    return resample(s.values, s.counts, rng, plan.draws)


def _plain(family: Family, group: str, own: Estimate, note: str) -> Measure:
    return Measure(family, group, None, own.value, own.low, own.high, own.n, own.events, note=note, fewest=own.defined)


def _compared(
    s: Statistic | Given, own: Estimate, other: Estimate, plan: Plan, of_shares: Interval | None
) -> list[Measure]:
    """Difference and ratio to the reference group; ``of_shares`` is the interval of the ratio of two shares.

    Those of an aggregate have no interval: resampling shifts an extreme, by more in one group than in the other.
    """
    p = math.nan
    if s.headline and own.events is not None and other.events is not None:
        p = fisher_p((own.events, other.events), (own.defined, other.defined))
    between, over = Interval(), Interval()
    if isinstance(s, Statistic):
        between = compared_intervals.difference(own, other, plan.level)
        over = of_shares or compared_intervals.ratio(own, other, plan.level)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.float64(own.value) / other.value)
    reference, fewest = plan.references[s.family.protected_attribute], min(own.defined, other.defined)
    return [
        Measure(_named(s.family, name), s.group, reference, value, *ends[:2], own.n, p=p, note=ends.note, fewest=fewest)
        for name, value, ends in (
            ("difference", own.value - other.value, between),
            ("ratio", ratio if math.isfinite(ratio) else math.nan, over),
        )
    ]


def _beside(
    s: Statistic | Given, own: Estimate, ranged: tuple[Drawn, tuple[float, float]], reference: str, level: float
) -> list[Measure]:
    """What was drawn, with its range, and where it is wanted the disparity against it.

    Permuted labels leave nothing to compare a group with but themselves, so that a headline is always set against them.
    """
    drawn, (low, high) = ranged
    finite = drawn.values[np.isfinite(drawn.values)]
    if len(finite) == 0:
        return []
    mean, n = float(finite.mean()), len(finite)
    named = _named(s.family, drawn.reference)
    counted = isinstance(s, Given) and s.events is not None
    note = Note.RANGE if math.isfinite(low) else ""
    out = [Measure(named, s.group, reference, mean, low, high, n, note=note, counted=counted, fewest=n)]
    if s.compared or (s.headline and drawn.reference == "null"):
        # the group's own resamples against the draws in turn: its sampling error counts as well as theirs; resamples of
        # an aggregate are shifted, and the draws are not
        replicates = NOTHING if isinstance(s, Given) or n < len(drawn.values) * ENOUGH else own.replicates
        against = replicates - np.resize(finite, len(replicates))
        ends = compared_intervals.from_drawn(own, against, mean, level)
        named, value = _named(s.family, f"{drawn.reference}_difference"), own.value - mean
        p = two_sided_p(against) if s.headline else math.nan
        made = Measure(named, s.group, reference, value, *ends[:2], own.n, p=p, note=ends.note, fewest=own.defined)
        out.append(made)
    return out


def _named(f: Family, suffix: str) -> Family:
    name = f"{f.measure}_{suffix}"
    return Family(f.method, f.decision_maker, f.protected_attribute, name, f.parameters, f.subgroup)


def _with_q(measures: list[Measure]) -> list[Measure]:
    """One q per hypothesis: a difference and its ratio share one p, and so one q."""
    tested = [(place, _named_alike(m)) for place, m in enumerate(measures) if math.isfinite(m.p)]
    p_of = {key: measures[place].p for place, key in tested}
    q_of = dict(zip(p_of, benjamini_hochberg(np.array(list(p_of.values()))).tolist(), strict=True))
    for place, key in tested:
        measures[place] = measures[place]._replace(q=q_of[key])
    return measures


def _named_alike(m: Measure) -> tuple[str | int, ...]:
    """What the measures of one hypothesis have in common."""
    f, base = m.family, m.family.measure.removesuffix("_ratio").removesuffix("_difference")
    return f.method, f.decision_maker, f.protected_attribute, base, f.parameters, f.subgroup, m.group


def base_name(measure: str) -> str:
    """The measure that a comparison compares: its name without the suffix."""
    for suffix in SUFFIXES:
        measure = measure.removesuffix(suffix)
    return measure
