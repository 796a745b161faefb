"""Whether any judged group has the people that a verdict needs, told from the applications alone.

The states of an audit come from ``stage``, after hours of generators where a spec asks for them. A group below the
minimum counts of ``verdicts`` is insufficient evidence whatever they find, and can only breach by its raw rates. Where
that holds for every group, the audit ends here. Scope: counts of decisions. Words of a row: ``algorithm.verdicts``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa

from schemas.audit.limits import GATE
from schemas.audit.spec import AuditSpec, Protected
from schemas.errors import TooLittleEvidenceError
from schemas.terms import DecisionMaker, Theory
from tasks.metrics.algorithm.verdicts.evidence import RatioOfShares
from tasks.metrics.algorithm.verdicts.judgement import Counts, Rules, too_few
from tasks.metrics.theories import OUTCOME

_NAMED = 2
"""Groups that a message names; it counts the others."""
_LONGEST = 18
"""Letters of a group's name in a message."""

Groups = Mapping[tuple[str, str], Counts]
"""(protected attribute, group) -> applications and denials, the reference group's beside them."""


def check(applications: pa.Table, memberships: pa.Table, spec: AuditSpec) -> None:
    """Refuse an audit in which no verdict can come out, before its costly stages run.

    Args:
        applications: as ``ingest`` writes them, with the lender's decisions.
        memberships: a row for each application and protected attribute.
        spec: of the audit.

    Raises:
        TooLittleEvidenceError: every judged group, or its reference group, is too small.
    """
    if spec.profile == "paper" or not _is_judged(spec):
        return
    counts = _counts(applications, memberships, spec.protected)
    rules = Rules(spec.verdicts.alpha, spec.verdicts.minimum_n, spec.verdicts.minimum_events)
    judged = list(_judged(spec, counts))
    if judged and all(_lacks(counts[key], rules, spec) for key in judged) and not _may_breach(spec, counts, rules):
        raise TooLittleEvidenceError(_message(spec, counts, rules))


def _is_judged(spec: AuditSpec) -> bool:
    """Whether a limit is set that decides the state."""
    limits = [getattr(spec.verdicts.limits, theory, None) for theory in spec.verdicts.gate or GATE]
    return bool(spec.thresholds) or any(limit is not None for limit in limits)


def _judged(spec: AuditSpec, counts: Groups) -> Iterator[tuple[str, str]]:
    """The groups that a verdict may be about; a limit of the spec's own is about the reference group, too."""
    by_name = {p.name: p for p in spec.protected}
    for name, group in counts:
        own = bool(spec.thresholds) and group == by_name[name].reference
        if own or by_name[name].judges(group):
            yield name, group


def _counts(applications: pa.Table, memberships: pa.Table, protected: tuple[Protected, ...]) -> Groups:
    decided = pa.table({"row_id": applications["row_id"], "favourable": applications["favourable"]})
    joined = memberships.select(["row_id", "protected_attribute", "group"]).join(decided, "row_id", join_type="inner")
    every: Counter[tuple[str, str]] = Counter()
    denied: Counter[tuple[str, str]] = Counter()
    for row in (
        joined.group_by(["protected_attribute", "group", "favourable"]).aggregate([([], "count_all")]).to_pylist()
    ):
        key = row["protected_attribute"], row["group"]
        every[key] += row["count_all"]
        denied[key] += 0 if row["favourable"] else row["count_all"]
    references = {p.name: (p.name, p.reference) for p in protected}
    return {
        key: Counts(every[key], denied[key], every[references[key[0]]], denied[references[key[0]]])
        for key in sorted(every)
    }


def _lacks(counts: Counts, rules: Rules, spec: AuditSpec) -> bool:
    """Whether a group or its reference group is too small; how many a model denies is not known yet."""
    if _of_lender_alone(spec):
        return bool(too_few(counts, rules))
    return min(counts.n, counts.n_reference) < rules.minimum_n


def _of_lender_alone(spec: AuditSpec) -> bool:
    """Whether every limit that decides the state is about the lender's decisions."""
    makers = spec.verdicts.decision_makers or (DecisionMaker.LENDER,)
    gate = spec.verdicts.gate or ()
    own = all(limit.decision_maker == "lender" for limit in spec.thresholds)
    return own and set(makers) == {DecisionMaker.LENDER} and not {Theory.RECOURSE, Theory.REASONS} & set(gate)


def _may_breach(spec: AuditSpec, counts: Groups, rules: Rules) -> bool:
    """Whether the raw rates of a small group alone could be a breach (0 of 30 against 77 of 100)."""
    limit = spec.verdicts.limits.outcome
    if any(OUTCOME.measure.startswith(each.measure.removesuffix("_ratio")) for each in spec.thresholds):
        limit = 1.0  # a limit of the spec's own may be stricter than that of the theory
    return limit is not None and any(
        _ratio(each).below(limit) <= rules.alpha
        for each in counts.values()
        if each.n and each.events_reference < each.n_reference
    )


def _ratio(counts: Counts) -> RatioOfShares:
    approved, reference = counts.n - counts.events, counts.n_reference - counts.events_reference
    return RatioOfShares(approved, counts.n, reference, counts.n_reference, few=True)


def _message(spec: AuditSpec, counts: Groups, rules: Rules) -> str:
    """What was found, what is needed and what to do; no count is told that publication would withhold."""
    compared = {*_judged(spec, counts), *((p.name, p.reference) for p in spec.protected)}
    small = [key[1] for key, each in counts.items() if key in compared and too_few(_alone(each), rules)]
    named = ", ".join(repr(group[:_LONGEST]) for group in small[:_NAMED])
    more = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
    return (
        f"insufficient evidence in {spec.year}: too few are {named}{more}; each group needs {rules.minimum_n} "
        f"applications, {rules.minimum_events} approved and {rules.minimum_events} denied. Add rows, or see figures "
        f"alone: --set verdicts.limits=null{' --set thresholds=[]' if spec.thresholds else ''}"
    )


def _alone(counts: Counts) -> Counts:
    """A group beside itself."""
    return Counts(counts.n, counts.events, counts.n, counts.events)
