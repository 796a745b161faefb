"""The limits that a spec sets on measures of its choice: the theory ``own``, and the states of all measures."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.audit.partition import unsampled
from schemas.terms import Note, State, Theory
from tasks.metrics.algorithm.measures import SUFFIXES, Family, Measure, Plan, base_name
from tasks.metrics.algorithm.verdicts.evidence import Ended, Evidence
from tasks.metrics.algorithm.verdicts.judgement import DECIDING, Case, Counts, Limit, Verdict

UNJUDGED = {
    Note.RANGE: "a range of draws is no interval",
    Note.NO_SPREAD: "no interval: values that do not differ say nothing of sampling error",
    Note.POOR_SUPPORT: "too few of the group are where applicants of both groups are found",
    Note.TELLS_DECISION: "the categories of a control tell the decision, so that nothing is left to compare",
    Note.FEW_CLUSTERS: "fewer than 20 clusters, of which a standard error is too small",
    Note.ROWS_INDEPENDENT: "its interval is a penalised fit's, which leaves out the clusters",
}
"""Why a measure with such a note is not judged."""
DESCRIPTIVE = "descriptive: its interval is not known to cover as often as it says"


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
    found: dict[tuple[Family, str, Limit], tuple[Measure, Case]] = {}  # a limit that is set twice is one
    for threshold in thresholds:
        for m in (each for each in measures if _applies(threshold, each, headlines)):
            why = _problem(m, covering, minimum_n)
            evidence = None if why else exact.get((_looked_up(m.family), m.group)) or _ended(m, plan.level)
            whose = m.family.decision_maker, m.family.protected_attribute, m.group
            for limit in threshold.limits():
                found[m.family, m.group, limit] = m, _case(m, limit, evidence, why, plan, counts.get(whose))
    return list(found.values())


def unjudged(note: str) -> str:
    """Why a measure with this note is not judged; empty where the note is no reason."""
    return next((reason for each, reason in UNJUDGED.items() if each in note.split("; ")), "")


def doubted(case: Case, problem: str) -> Case:
    """A case that cannot be judged either where the theory of its measure cannot judge it; its own problem first."""
    return replace(case, evidence=None, problem=problem) if problem and not case.problem else case


def _case(m: Measure, limit: Limit, evidence: Evidence | None, why: str, plan: Plan, counts: Counts | None) -> Case:
    f = m.family
    reference = m.reference_group or plan.references[f.protected_attribute]
    return Case(
        Theory.OWN,
        f.method,
        _named(f),
        f.protected_attribute,
        m.group,
        reference,
        f.decision_maker,
        "primary",
        m.value,
        evidence,
        limit,
        counts,
        why,
    )


def _looked_up(f: Family) -> Family:
    """The family by the parameters that a limit can name: not by how many were asked."""
    return replace(f, parameters=unsampled(f.parameters))


def _named(f: Family) -> str:
    """A measure with its parameters, as a row of a verdict names it."""
    parameters = unsampled(f.parameters)
    return f.measure if parameters == "{}" else f"{f.measure} {parameters}"


def _ended(m: Measure, level: float) -> Ended:
    return Ended(m.value, m.low, m.high, level, logarithmic=m.family.measure.endswith("_ratio") and m.low > 0)


def _problem(m: Measure, covering: Collection[str], minimum_n: int) -> str:
    """Why a measure cannot be judged; empty where it can."""
    if m.state is State.INSUFFICIENT_EVIDENCE:
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
    """Methods and measures of which there is one without parameters: what a limit is about if it names none."""
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
        return State.DESCRIPTIVE, "no interval that is known to cover as often as it says"
    if Note.RANGE in m.note.split("; "):
        return State.DESCRIPTIVE, UNJUDGED[Note.RANGE]
    return State.NO_LIMIT, "no limit is set"


def stated(measures: Sequence[Measure], verdicts: Iterable[Verdict], covering: Collection[str]) -> list[Measure]:
    """The measures with their states: the worst of their limits, or why they have none.

    Args:
        measures: as printed.
        verdicts: rows of all theories; those of ``own`` come from thresholds.
        covering: measures whose intervals cover as often as they say.
    """
    order = (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.WITHIN)
    of: dict[tuple[str, ...], list[Verdict]] = {}
    for each in verdicts:
        case = each.case
        if case.role in DECIDING and each.state in order:
            whose = (case.method, case.decision_maker, case.protected_attribute, case.group, case.measure)
            of.setdefault(whose, []).append(each)
    out = []
    for m in measures:
        f = m.family
        named = _named(f)
        rows = of.get((f.method, f.decision_maker, f.protected_attribute, m.group, named), []) if not f.subgroup else []
        own = [row for row in rows if row.case.theory is Theory.OWN] or rows
        worst = min(own, key=lambda row: order.index(row.state), default=None)
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
    makers, headlines = {maker for maker, _, _ in groups}, _headlines(measures)
    for limit in thresholds:
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


def _method(limit: Threshold, measures: Sequence[Measure]) -> str:
    """The method that a limit is about, as far as the run tells."""
    base = base_name(limit.measure)
    return limit.method or next((m.family.method for m in measures if m.family.measure == base), "none")


def _nothing(family: Family, group: str, reference: str | None) -> Measure:
    nan = math.nan
    reason = "nothing to measure: no unit of the group, or of what it is compared with, has this measure"
    return Measure(family, group, reference, nan, nan, nan, 0, state=State.INSUFFICIENT_EVIDENCE, reason=reason)


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
