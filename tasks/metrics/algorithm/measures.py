"""Measures from tallies, comparisons, and thresholds of the spec."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple
from zlib import crc32

import numpy as np

from schemas.audit.partition import unsampled
from schemas.terms import Note, State, Theory
from tasks.metrics.algorithm.verdicts import DECIDING, Case, Counts, Ended, Evidence, Limit, Verdict
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.results import Inference
from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import (
    ENOUGH,
    Estimate,
    Interval,
    benjamini_hochberg,
    by_refits,
    fisher_p,
    mean_interval,
    percentile_intervals,
    quantile,
    resample,
    two_sided_p,
    wilsons,
    with_width,
)

# --------------------------------------------------------------------------------------------------------------------
# Estimates of all statistics of a run in arrays: each the one of ``intervals.estimate``, equal to the last bit.
#
# Shares are counted, and their intervals are by a formula: their resamples are drawn only where a comparison asks for
# them. Means are resampled one by one, each by a random stream of its own, so that no number depends on what else is
# measured; quantiles of their resamples are taken together.


class Sample(NamedTuple):
    """A statistic over the units of a group, and how it is resampled."""

    values: Floats
    """``(v,)`` distinct values; NaN of units that have none."""
    counts: Longs
    """``(v,)`` units that have them."""
    share: bool
    """Whether no value can be below 0 or above 1."""
    resamples: Callable[[], Floats]
    """Draws ``(draws,)`` means of resamples, always the same ones."""


class Whole(NamedTuple):
    """A measure of a group as a whole, which has no units without a value."""

    value: float
    n: int
    events: int | None
    """Units that the value counts, where it counts units."""
    replicates: Floats
    """``(draws,)`` the measure on resampled units, or none."""
    ends: Interval | None
    """Its interval by a formula; None where the replicates make it."""


def estimates(samples: Sequence[Sample], draws: int, level: float) -> list[Estimate]:
    """Mean and interval of every sample.

    Args:
        samples: any number of them.
        draws: resamples of each.
        level: of the intervals.
    """
    tally = _counted(samples)
    shares = np.flatnonzero(tally.is_share & (tally.defined > 0))
    out: list[Estimate | None] = [None] * len(samples)
    lows, highs = wilsons(tally.events[shares], tally.defined[shares], quantile((1 - level) / 2))
    values = tally.events[shares] / tally.defined[shares]
    for i, value, low, high in zip(*(a.tolist() for a in (shares, values, lows, highs)), strict=True):
        n, defined, events = tally.at(i)
        out[i] = Estimate(value, low, high, n, defined, events, samples[i].resamples)
    means = np.flatnonzero(~tally.is_share & (tally.defined > 0)).tolist()
    replicates = [samples[i].resamples() for i in means]
    for i, resampled, ends in zip(means, replicates, percentile_intervals(replicates, level), strict=True):
        n, defined, _ = tally.at(i)
        low, high, note = with_width(*ends)
        out[i] = Estimate(
            mean_interval(samples[i].values, samples[i].counts), low, high, n, defined, None, resampled, note
        )
    nan = np.nan  # of a sample in which no unit has a value
    return [estimate or Estimate(nan, nan, nan, *tally.at(i), np.full(draws, nan)) for i, estimate in enumerate(out)]


def estimates_given(wholes: Sequence[Whole], level: float) -> list[Estimate]:
    """Value and interval of every measure of a whole group.

    Resamples hold fewer distinct rows than the sample, which moves an extreme one way only; the interval then reaches
    to the value itself. An interval by a formula is taken as it is.
    """
    out = []
    for g, (low, high) in zip(wholes, percentile_intervals([g.replicates for g in wholes], level), strict=True):
        # a value of NaN stays: there is no interval
        ends = with_width(min(low, g.value), max(high, g.value)) if g.ends is None else with_width(*g.ends[:2])
        defined = g.n if math.isfinite(g.value) else 0
        out.append(Estimate(g.value, ends.low, ends.high, g.n, defined, g.events, g.replicates, ends.note))
    return out


class _Counted(NamedTuple):
    """Units of ``(s,)`` samples; whole numbers, which a double holds exactly."""

    n: Floats
    defined: Floats
    """Units with a value."""
    events: Floats
    """Units whose value is 1."""
    is_share: Bools
    """Whether every unit with a value is 0 or 1, and none could be anything else."""

    def at(self, i: int) -> tuple[int, int, int | None]:
        """Units, those with a value, and events where the sample is a share of at least one unit."""
        n, is_share = int(self.n[i]), bool(self.is_share[i])
        return n, int(self.defined[i]), int(self.events[i]) if is_share and n else None


def _counted(samples: Sequence[Sample]) -> _Counted:
    owner = np.repeat(np.arange(len(samples)), [len(s.values) for s in samples])
    values = np.concatenate([np.zeros(0), *(s.values for s in samples)])
    counts = np.concatenate([np.zeros(0), *(s.counts for s in samples)])
    is_defined, is_event = ~np.isnan(values), values == 1

    def units(which: Bools) -> Floats:
        sums: Floats = np.bincount(owner, np.where(which, counts, 0.0), len(samples))  # type: ignore[assignment]
        return sums

    other = np.bincount(owner, is_defined & ~is_event & (values != 0), len(samples)) > 0
    could_be = np.array([s.share for s in samples], dtype=bool)
    return _Counted(units(np.ones(len(owner), dtype=bool)), units(is_defined), units(is_event), could_be & ~other)


# --------------------------------------------------------------------------------------------------------------------
# Computes measures from tallies: estimates by group, comparisons with the reference, size-matched reference.
#
# A tally is the distribution of a statistic over the units of a group; its mean is the measure. A headline tally of
# another group is compared with the reference group's (difference, ratio). A tally that was redrawn on the reference
# group at the group's size is printed beside that size-matched value (specs of FGCE, 'Epsilon and size'): a small group
# has a thinner graph, which alone raises its infeasible share. A tally on permuted labels is printed as the value under
# the null hypothesis. No method is known here.


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
    """A statistic on draws that differ from the reference group in size alone, or not at all."""

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
    is_count: bool = False
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
    small: frozenset[tuple[str, str]] = frozenset()
    """(protected attribute, group) that are reported and not judged: they have no q, and cost others none."""


def summarise(
    statistics: Sequence[Statistic],
    matched: Mapping[tuple[Family, str], Drawn],
    plan: Plan,
    aggregates: Sequence[Given] = (),
    refitted: Mapping[tuple[Family, str], Floats] = MappingProxyType({}),
) -> list[Measure]:
    """All measures of a run.

    Args:
        statistics: the tallies.
        matched: (family, group) -> values of the statistic on what the group is set beside.
        plan: references and bootstrap.
        aggregates: the aggregates.
        refitted: (family, group) -> ``(refits,)`` a share of the model's decisions, by the model fitted anew.
    """
    samples = [Sample(s.values, s.counts, s.share, partial(_resamples, s, plan)) for s in statistics]
    wholes = [Whole(g.value, g.n, g.events, g.replicates, g.ends) for g in aggregates]
    everything: list[Statistic | Given] = [*statistics, *aggregates]
    every = [*estimates(samples, plan.draws, plan.level), *estimates_given(wholes, plan.level)]
    estimates_of = {(s.family, s.group): estimate for s, estimate in zip(everything, every, strict=True)}
    for key, shares in refitted.items():
        if key in estimates_of:
            estimates_of[key] = by_refits(estimates_of[key], shares, plan.level)
    notes = {(g.family, g.group): g.note for g in aggregates}
    ratios = _ratios_of_shares(statistics, estimates_of, plan)
    ranges = dict(zip(matched, percentile_intervals([d.values for d in matched.values()], plan.level), strict=True))
    out: list[Measure] = []
    for s in everything:
        key = s.family, s.group
        estimate, note = estimates_of[key], notes.get(key, "")
        own_note, sizes = _joined(note, estimate.note), (estimate.n, estimate.events)
        ends = estimate.value, estimate.low, estimate.high
        out.append(Measure(*key, None, *ends, *sizes, note=own_note, fewest=estimate.defined))
        reference = plan.references[s.family.protected_attribute]
        if s.group == reference or s.family.subgroup:
            continue
        if s.compared and (other := estimates_of.get((s.family, reference))) is not None:
            reference_note = notes.get((s.family, reference))
            joint_note = _joined(note, f"{reference}: {reference_note}" * bool(reference_note))
            compared = _compared(s, estimate, other, plan, ratios.get(key))
            out += [m._replace(note=_joined(joint_note, m.note)) for m in compared]
        if key in matched:
            draws = matched[key]
            draw_notes = (draws.note, _joined(note, draws.note))
            beside = _beside(s, estimate, (draws, ranges[key]), reference, plan.level)
            out += [
                m._replace(note=_joined(qualified, m.note)) for m, qualified in zip(beside, draw_notes, strict=False)
            ]
    return _with_q(out, plan.small)


def _with_q(measures: list[Measure], small: Collection[tuple[str, str]]) -> list[Measure]:
    """One q per hypothesis: a difference and its ratio share one p, and so one q; small groups have none."""
    tested = {}
    for place, m in enumerate(measures):
        if math.isfinite(m.p) and (m.family.protected_attribute, m.group) not in small:
            base = m.family.measure.removesuffix("_ratio").removesuffix("_difference")
            tested[place] = replace(m.family, measure=base), m.group
    p_of = {hypothesis: measures[place].p for place, hypothesis in tested.items()}
    q_of = dict(zip(p_of, benjamini_hochberg(np.array(list(p_of.values()))).tolist(), strict=True))
    for place, hypothesis in tested.items():
        measures[place] = measures[place]._replace(q=q_of[hypothesis])
    return measures


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _ratios_of_shares(
    statistics: Sequence[Statistic], estimates: Mapping[tuple[Family, str], Estimate], plan: Plan
) -> dict[tuple[Family, str], Interval]:
    """Intervals of the ratios of all shares that are compared with the reference group's, found in one search."""
    pairs = {}
    for s in statistics:
        reference = plan.references[s.family.protected_attribute]
        estimate, other = estimates[s.family, s.group], estimates.get((s.family, reference))
        if s.compared and not s.family.subgroup and s.group != reference and other is not None:
            pairs[s.family, s.group] = estimate, other
    shares = {key: pair for key, pair in pairs.items() if intervals.both_shares(*pair)}
    return dict(zip(shares, intervals.ratios_of_shares(list(shares.values()), plan.level), strict=True))


def _resamples(s: Statistic, plan: Plan) -> Floats:
    """The random stream follows from what is estimated, not from the group's name; the reference has its own."""
    is_reference = s.group == plan.references[s.family.protected_attribute]
    identity = "|".join((*map(str, vars(s.family).values()), str(is_reference), str(s.counts.tolist())))
    rng = np.random.default_rng([plan.seed, crc32(identity.encode())])
    return resample(s.values, s.counts, rng, plan.draws)


def _compared(
    s: Statistic | Given, estimate: Estimate, other: Estimate, plan: Plan, of_shares: Interval | None
) -> list[Measure]:
    """Difference and ratio to the reference group; ``of_shares`` is the interval of the ratio of two shares.

    Those of an aggregate have no interval: resampling shifts an extreme, by more in one group than in the other.
    """
    p = math.nan
    if s.headline and estimate.events is not None and other.events is not None:
        p = fisher_p((estimate.events, other.events), (estimate.defined, other.defined))
    between, over = Interval(), Interval()
    if isinstance(s, Statistic):
        between = intervals.difference(estimate, other, plan.level)
        over = of_shares or intervals.ratio(estimate, other, plan.level)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.float64(estimate.value) / other.value)
    reference, fewest = plan.references[s.family.protected_attribute], min(estimate.defined, other.defined)
    return [
        Measure(
            _named(s.family, name), s.group, reference, value, *ends[:2], estimate.n, p=p, note=ends.note, fewest=fewest
        )
        for name, value, ends in (
            ("difference", estimate.value - other.value, between),
            ("ratio", ratio if math.isfinite(ratio) else math.nan, over),
        )
    ]


def _beside(
    s: Statistic | Given, estimate: Estimate, ranged: tuple[Drawn, tuple[float, float]], reference: str, level: float
) -> list[Measure]:
    """What was drawn, with its range, and where it is wanted the disparity against it.

    Permuted labels leave nothing to compare a group with but themselves, so that a headline is always set against them.
    """
    draws, (low, high) = ranged
    finite = draws.values[np.isfinite(draws.values)]
    if len(finite) == 0:
        return []
    mean, n = float(finite.mean()), len(finite)
    named = _named(s.family, draws.reference)
    is_count = isinstance(s, Given) and s.events is not None
    note = Note.RANGE if math.isfinite(low) else ""
    out = [Measure(named, s.group, reference, mean, low, high, n, note=note, is_count=is_count, fewest=n)]
    if s.compared or (s.headline and draws.reference == "null"):
        # the group's own resamples against the draws in turn: its sampling error counts as well as theirs; resamples of
        # an aggregate are shifted, and the draws are not
        replicates = NOTHING if isinstance(s, Given) or n < len(draws.values) * ENOUGH else estimate.replicates
        against = replicates - np.resize(finite, len(replicates))
        ends = intervals.from_drawn(estimate, against, mean, level)
        named, value = _named(s.family, f"{draws.reference}_difference"), estimate.value - mean
        p = two_sided_p(against) if s.headline else math.nan
        difference = Measure(
            named, s.group, reference, value, *ends[:2], estimate.n, p=p, note=ends.note, fewest=estimate.defined
        )
        out.append(difference)
    return out


def _named(f: Family, suffix: str) -> Family:
    name = f"{f.measure}_{suffix}"
    return Family(f.method, f.decision_maker, f.protected_attribute, name, f.parameters, f.subgroup)


def base_name(measure: str) -> str:
    """The measure that a comparison compares: its name without the suffix."""
    for suffix in SUFFIXES:
        measure = measure.removesuffix(suffix)
    return measure


# --------------------------------------------------------------------------------------------------------------------
# The limits that a spec sets on measures of its choice: the theory ``own``, and the states of all measures.


UNJUDGED = {
    Note.RANGE: "a range of draws is no interval",
    Note.NO_SPREAD: "no interval: values that do not differ say nothing of sampling error",
    Note.POOR_SUPPORT: "too few of the group are where applicants of both groups are found",
    Note.TELLS_DECISION: "the categories of a control tell the decision, so that nothing is left to compare",
    Note.FEW_CLUSTERS: "fewer than 20 clusters, of which a standard error is too small",
    Note.ROWS_INDEPENDENT: "its interval is a penalised fit's, which leaves out the clusters",
}
"""Why a measure with such a note is not judged."""
DESCRIPTIVE = "for information: its interval is not known to cover as often as it says"


@dataclass(frozen=True)
class Threshold:
    """A limit of the spec: which measures it holds for, and on which side they must lie."""

    measure: str
    method: str | None
    decision_maker: str | None
    minimum: float
    maximum: float
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    """Holds for measures with these parameters; if none are given, for the one without any where there is one."""

    def limits(self) -> Iterator[Limit]:
        """Its sides."""
        if math.isfinite(self.minimum):
            yield Limit(self.minimum, "at_least")
        if math.isfinite(self.maximum):
            yield Limit(self.maximum, "at_most")


def cases(
    measures: Sequence[Measure],
    thresholds: Sequence[Threshold],
    exact: Mapping[tuple[Family, str], Evidence],
    counts: Mapping[tuple[str, str, str], Counts],
    covering: Collection[str],
    plan: Plan,
    minimum_n: int,
) -> list[tuple[Measure, Case]]:
    """A case for each measure and each side of a threshold that is about it.

    Args:
        measures: all that were made, with those of ``unmeasured``.
        thresholds: of the spec.
        exact: evidence of measures by a test of their own; that of the others is their interval.
        counts: (decision maker, protected attribute, group) -> applications and denials.
        covering: measures whose intervals cover as often as they say; the others are not judged.
        plan: references and the level of the intervals.
        minimum_n: fewest units for a verdict.
    """
    headlines = _headlines(measures)
    by_limit: dict[tuple[Family, str, Limit], tuple[Measure, Case]] = {}  # a limit that is set twice is one
    for threshold in thresholds:
        for m in (measure for measure in measures if _applies(threshold, measure, headlines)):
            f, why = m.family, _problem(m, covering, minimum_n)
            evidence: Evidence | None = None
            if not why:  # a limit cannot name how many were sampled
                evidence = exact.get((replace(f, parameters=unsampled(f.parameters)), m.group)) or Ended(
                    m.value, m.low, m.high, plan.level, logarithmic=f.measure.endswith("_ratio") and m.low > 0
                )
            reference = m.reference_group or plan.references[f.protected_attribute]
            about = f.protected_attribute, m.group, reference, f.decision_maker
            sizes = counts.get((f.decision_maker, f.protected_attribute, m.group))
            for limit in threshold.limits():
                case = Case(
                    Theory.OWN_LIMITS,
                    f.method,
                    _thresholds_named(f),
                    *about,
                    "primary",
                    m.value,
                    evidence,
                    limit,
                    sizes,
                    why,
                )
                by_limit[f, m.group, limit] = m, case
    return list(by_limit.values())


def unjudged(note: str) -> str:
    """Why a measure with this note is not judged; empty where the note is no reason."""
    return next((reason for flag, reason in UNJUDGED.items() if flag in note.split("; ")), "")


def doubted(case: Case, problem: str) -> Case:
    """A case that cannot be judged either where the theory of its measure cannot judge it; its own problem first."""
    return replace(case, evidence=None, problem=problem) if problem and not case.problem else case


def _thresholds_named(f: Family) -> str:
    """A measure with its parameters, as a row of a verdict names it."""
    parameters = unsampled(f.parameters)
    return f.measure if parameters == "{}" else f"{f.measure} {parameters}"


def _problem(m: Measure, covering: Collection[str], minimum_n: int) -> str:
    """Why a measure cannot be judged; empty where it can."""
    if m.state is State.INCONCLUSIVE:
        return m.reason  # not measured at all
    if math.isnan(m.value) and m.note and m.n is not None and m.n >= minimum_n:
        return f"not measured: {m.note}"
    if m.fewest < minimum_n:
        return f"fewer than the {minimum_n} units that a verdict needs"
    if why := unjudged(m.note):
        return why
    if not all(math.isfinite(x) for x in (m.value, m.low, m.high)):
        return "the measure or its interval is not defined"
    if m.note:
        return "the value is no more than a bound"
    return "" if covers(m.family.measure, covering) else DESCRIPTIVE


def _headlines(measures: Iterable[Measure]) -> set[tuple[str, str]]:
    """Methods and measures that have a measure without parameters: a limit that names none applies to it."""
    return {(m.family.method, m.family.measure) for m in measures if unsampled(m.family.parameters) == "{}"}


def known_names(bases: Sequence[str]) -> list[str]:
    """Every name that a limit can have, given the measures that methods make."""
    return sorted({*bases, *(base + suffix for base in bases for suffix in SUFFIXES)})


def covers(measure: str, covering: Collection[str]) -> bool:
    """Whether the intervals of a measure, or of its difference or ratio, cover as often as they say.

    Args:
        measure: what it is called.
        covering: names of measures of which that is known; of what was drawn beside them it is not.
    """
    return any(measure.removesuffix(suffix) in covering for suffix in ("", "_difference", "_ratio"))


def unlimited(m: Measure, covering: Collection[str]) -> tuple[State, str]:
    """The state of a measure that no limit is about."""
    if not math.isfinite(m.value):
        return State.NOT_RUN, m.note or "not measured"
    if base_name(m.family.measure) not in covering or not (math.isfinite(m.low) or math.isfinite(m.high)):
        return State.INFORMATION, "no interval that is known to cover as often as it says"
    if Note.RANGE in m.note.split("; "):
        return State.INFORMATION, UNJUDGED[Note.RANGE]
    return State.NO_LIMIT, "no limit is set"


def stated(measures: Sequence[Measure], verdicts: Iterable[Verdict], covering: Collection[str]) -> list[Measure]:
    """The measures with their states: the worst of their limits, or why they have none.

    Args:
        measures: as printed.
        verdicts: rows of all theories; those of ``own`` come from thresholds.
        covering: measures whose intervals cover as often as they say.
    """
    order = (State.OUTSIDE, State.INCONCLUSIVE, State.WITHIN)
    of: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        case = verdict.case
        if case.role in DECIDING and verdict.state in order:
            whose = (case.method, case.decision_maker, case.protected_attribute, case.group, case.measure)
            of.setdefault(whose, []).append(verdict)
    out = []
    for m in measures:
        f = m.family
        named = _thresholds_named(f)
        rows = of.get((f.method, f.decision_maker, f.protected_attribute, m.group, named), []) if not f.subgroup else []
        own_limits = [row for row in rows if row.case.theory is Theory.OWN_LIMITS] or rows
        worst = min(own_limits, key=lambda row: order.index(row.state), default=None)
        state, reason = (worst.state, worst.reason) if worst else unlimited(m, covering)
        out.append(m._replace(state=state, reason=reason))
    return out


def unmeasured(
    measures: Sequence[Measure],
    thresholds: Sequence[Threshold],
    groups: Collection[tuple[str, str, str]],
    plan: Plan,
) -> list[Measure]:
    """One measure without a value for every group that a limit is about and in which there was nothing to measure.

    Without them, a group that no method could look at, or a limit that found nothing to check, would count as kept.

    Args:
        measures: those that were made.
        thresholds: of the spec.
        groups: (decision maker, protected attribute, group) of everyone who should have been looked at.
        plan: tells the reference groups.
    """
    out: dict[tuple[Family, str], Measure] = {}
    reason = "nothing to measure: no unit of the group, or of what it is compared with, has this measure"
    nothing, state = (math.nan, math.nan, math.nan, 0), State.INCONCLUSIVE
    makers, headlines = {maker for maker, _, _ in groups}, _headlines(measures)
    for limit in thresholds:
        measured = {
            (m.family.decision_maker, m.family.protected_attribute, m.group)
            for m in measures
            if _applies(limit, m, headlines)
        }
        base = base_name(limit.measure)
        compares = limit.measure != base
        outside = compares or base in plan.of_other_groups
        # the method of the limit, as far as the run identifies it
        method = limit.method or next((m.family.method for m in measures if m.family.measure == base), "none")
        required_makers = makers if limit.decision_maker is None else {limit.decision_maker}
        for attribute, group in sorted({(attribute, group) for _, attribute, group in groups}):
            reference = plan.references[attribute]
            for maker in sorted(required_makers):
                if (maker, attribute, group) not in measured and not (outside and group == reference):
                    family, compared = (
                        Family(method, maker, attribute, limit.measure, "{}"),
                        reference if compares else None,
                    )
                    out[family, group] = Measure(family, group, compared, *nothing, state=state, reason=reason)
    return list(out.values())


def _applies(limit: Threshold, m: Measure, headlines: Collection[tuple[str, str]]) -> bool:
    if (
        not limit.parameters
        and unsampled(m.family.parameters) != "{}"
        and (m.family.method, m.family.measure) in headlines
    ):
        return False
    return (
        limit.measure == m.family.measure
        and limit.method in (None, m.family.method)
        and limit.decision_maker in (None, m.family.decision_maker)
        and limit.parameters.items() <= json.loads(m.family.parameters).items()
        and m.family.subgroup == 0
    )
