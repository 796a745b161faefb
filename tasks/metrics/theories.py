"""The rows by which each theory of harm is judged, gathered from aggregates and from counts of decisions.

Methods declare which of their measures a theory is judged by (``Method.judged``), so that no method is known here.
Scope: gathering. States: ``tasks.metrics.algorithm.verdicts``.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from schemas.audit.limits import Limits, Verdicts
from schemas.audit.partition import unsampled
from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker, Theory
from tasks.metrics.algorithm.measures import Family, Given, Statistic
from tasks.metrics.algorithm.verdicts.evidence import Estimated, Evidence, PairedDifference, RatioOfShares
from tasks.metrics.algorithm.verdicts.judgement import Case, Counts, Limit, Rules, too_few
from tasks.metrics.algorithm.verdicts.thresholds import unjudged
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.paired_difference import Changes
from tasks.pipeline.method import Judged
from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD

OUTCOME = Judged(Theory.OUTCOME, "approval_rate_ratio")
WATCH = 0.90
"""Ratio of approvals below which practitioners look closer (verdicts.md 2); a convention and no rule."""
NOT_DIRECT = "the model does not see the group; what it learnt of it through columns is the theory total"
NOT_TAKEN = "the given model does not take the group as an input; what it does by other columns is the theory total"
_DESCRIPTIVE = "descriptive: it has no interval that is known to cover as often as it says"
_NO_ERROR = "its error is zero, or the logarithm by which it is judged is not defined"
_HELD = "descriptive: its error takes the model as given, which was fitted to these rows"
_NO_STRENGTH = "what columns that the table lacks could do to it cannot be computed"


@dataclass(frozen=True)
class Gathered:
    """All that theories are judged by."""

    counts: Mapping[tuple[str, str, str], Counts]
    """(decision maker, protected attribute, group) -> applications and denials, the reference group's beside them."""
    given: Mapping[tuple[str, str, str, str, str], Given]
    """(method, measure, decision maker, protected attribute, group) -> the aggregate without parameters."""
    protected: tuple[Protected, ...]
    running: tuple[str, ...]
    """Methods that run."""
    verdicts: Verdicts
    refitted: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    """(protected attribute, group) -> ``(refits,)`` approval rates of the model fitted anew to resamples of rows."""
    model_is_fitted: bool = True
    """Whether the model, if there is one, was fitted to the rows of this audit."""
    inapplicable: Mapping[str, str] = field(default_factory=dict)
    """Methods that the spec asks for and that cannot run, each with the reason."""
    lost: Collection[tuple[str, str]] = ()
    """(protected attribute, group) of applications none of which has every feature."""

    @classmethod
    def of(
        cls,
        statistics: Sequence[Statistic],
        given: Sequence[Given],
        protected: tuple[Protected, ...],
        running: tuple[str, ...],
        verdicts: Verdicts,
        refitted: Mapping[tuple[str, str], Floats],
        *,
        model_is_fitted: bool = True,
        inapplicable: Mapping[str, str] | None = None,
        lost: Collection[tuple[str, str]] = (),
    ) -> "Gathered":
        """From what is measured, before anything is rounded or withheld."""
        own = {
            (g.family.method, g.family.measure, g.family.decision_maker, g.family.protected_attribute, g.group): g
            for g in given
            if unsampled(g.family.parameters) == "{}" and g.family.subgroup == 0
        }
        counts, cannot = _counts(statistics, protected), inapplicable or {}
        return cls(counts, own, protected, running, verdicts, refitted, model_is_fitted, cannot, lost)

    def cases(self) -> Iterator[Case]:
        """Every row of a judged group, by theory in the order of ``Theory``."""
        asked = [(OUTCOMES_METHOD, OUTCOME), *((name, each) for name in self.running for each in METHODS[name].judged)]
        for name, judged in sorted(asked, key=lambda pair: list(Theory).index(pair[1].theory)):
            for maker in self._makers(name, judged):
                for attribute, group in self.groups:
                    if judged is OUTCOME:
                        yield from self._watched(self._of_outcome(maker, attribute, group))
                    elif self._asks(name, judged, maker, attribute):
                        yield self._of_method(name, judged, maker, attribute, group)

    def _watched(self, case: Case) -> Iterator[Case]:
        """The case, and the same at the watch level of practitioners, which decides nothing."""
        yield case
        if case.limit is not None and case.limit.value < WATCH:
            yield replace(case, role="watch", limit=Limit(WATCH, "at_least"))

    @cached_property
    def groups(self) -> list[tuple[Protected, str]]:
        """The judged groups that the data hold."""
        there = sorted({(attribute, group) for _, attribute, group in self.counts})
        by_name = {p.name: p for p in self.protected}
        return [(by_name[attribute], group) for attribute, group in there if by_name[attribute].judges(group)]

    def why_not(self, theory: Theory) -> str:
        """Why a theory has no row."""
        if not self.groups:
            return (
                "no group is judged: the data hold none beside the reference group, or only groups that are no people"
            )
        primary = [(name, each) for name, m in METHODS.items() for each in m.judged if each.theory is theory]
        names = [name for name, each in primary if each.role == "primary"]
        if names and not set(names) & set(self.running):
            reasons = [self.inapplicable[name] for name in names if name in self.inapplicable]
            return reasons[0] if reasons else f"the method {names[0]} is off"
        if theory is not Theory.DIRECT:
            return "nothing was measured"
        return NOT_DIRECT if self.model_is_fitted else NOT_TAKEN

    def _makers(self, name: str, judged: Judged) -> tuple[str, ...]:
        """Whose decisions: those that are asked for and there, else the lender's, else the model's."""
        if judged is OUTCOME:
            there = {maker for maker, _, _ in self.counts}
        else:
            there = set().union(*(self._sure(*each) for each in self._together(name, judged)))
        asked: tuple[str, ...] = self.verdicts.decision_makers or ()
        either = (str(DecisionMaker.LENDER), str(DecisionMaker.MODEL))
        found = (
            tuple(maker for maker in asked if maker in there) or tuple(maker for maker in either if maker in there)[:1]
        )
        return tuple(maker for maker in found or either[:1] if judged.maker in (None, maker))

    def _together(self, name: str, judged: Judged) -> list[tuple[str, Judged]]:
        """The measures of which one decision maker is chosen: those of the theory that are each of one maker."""
        if judged.maker is None:
            return [(name, judged)]
        every = ((other, each) for other in self.running for each in METHODS[other].judged)
        return [(other, each) for other, each in every if each.theory is judged.theory and each.maker is not None]

    def _sure(self, name: str, judged: Judged) -> set[str]:
        """Decision makers of whom the method makes the measure: those that it is sure of, or else all."""
        of = {key[2] for key in self.given if key[:2] == (name, judged.measure)}
        return {maker for maker in of if self._answers(name, judged, maker)} or of

    def _asks(self, name: str, judged: Judged, maker: str, attribute: Protected) -> bool:
        """Whether a row is due: of a measure of the model alone, where the model takes the attribute."""
        known = (name, judged.measure, maker, attribute.name)
        return judged.maker != DecisionMaker.MODEL or any(key[:4] == known for key in self.given)

    def _answers(self, name: str, judged: Judged, maker: str) -> bool:
        """Whether the method can be sure of a decision maker: some are sure of a model's decisions alone.

        A method that refused all groups of the lender could have been sure, and no model stands in for its decisions.
        """
        known = [given for key, given in self.given.items() if key[:3] == (name, judged.measure, maker)]
        told = [given.inference for given in known if math.isfinite(given.value)]
        sure = any(each is not None and (math.isfinite(each.se) or math.isfinite(each.p)) for each in told)
        return sure or not told

    def _of_outcome(self, maker: str, attribute: Protected, group: str) -> Case:
        counts = self.counts.get((maker, attribute.name, group))
        made = self._case(OUTCOMES_METHOD, OUTCOME, maker, attribute, group)
        if counts is None or not counts.n_reference:
            return replace(made, problem="the group or the reference group has no decision")
        approved, reference = counts.n - counts.events, counts.n_reference - counts.events_reference
        if not reference:
            return replace(made, problem="nobody of the reference group was approved")
        ratio = (approved / counts.n) / (reference / counts.n_reference)
        known: Evidence = RatioOfShares(approved, counts.n, reference, counts.n_reference, self._has_few(counts))
        if maker == DecisionMaker.MODEL and self.model_is_fitted:
            if not approved:
                return replace(made, value=ratio, problem="the model approved nobody of the group")
            se = self._error_of_model(attribute, group)
            if se is None:
                return replace(made, value=ratio, problem=_HELD)
            known = Estimated(ratio, se, logarithmic=True)
        return replace(made, value=ratio, evidence=known)

    def _has_few(self, counts: Counts) -> bool:
        settings = self.verdicts
        return bool(too_few(counts, Rules(settings.alpha, settings.minimum_n, settings.minimum_events)))

    def _error_of_model(self, attribute: Protected, group: str) -> float | None:
        """Standard error of the logarithm of the model's ratio, from its refits; None where it is not refitted."""
        rates = [self.refitted.get((attribute.name, each)) for each in (group, attribute.reference)]
        if rates[0] is None or rates[1] is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(rates[0] / rates[1])
        spread = float(np.std(logs[np.isfinite(logs)], ddof=1)) if np.isfinite(logs).sum() > 1 else math.nan
        return spread if spread > 0 else None

    def _of_method(self, name: str, judged: Judged, maker: str, attribute: Protected, group: str) -> Case:
        made = self._case(name, judged, maker, attribute, group)
        given = self.given.get((name, judged.measure, maker, attribute.name, group))
        if given is None:
            lost = next((each for each in (attribute.reference, group) if (attribute.name, each) in self.lost), None)
            why = (
                f"every application of {lost} lacks a feature"
                if lost
                else "the method has nothing to say of this group"
            )
            return replace(made, problem=f"not measured: {why}")
        if not math.isfinite(given.value):
            return replace(made, problem=f"not measured: {given.note or 'undefined'}")
        made = replace(made, value=given.value)
        said = given.inference
        if said is None or not (math.isfinite(said.se) or math.isfinite(said.p)):
            return replace(made, problem=_DESCRIPTIVE)
        if judged.role == "adds" and math.isfinite(said.p):
            return replace(made, p=said.p)
        if not math.isfinite(said.se) or judged.measure not in METHODS[name].covering:
            return replace(made, problem=_DESCRIPTIVE)
        if maker == DecisionMaker.MODEL and self.model_is_fitted and not judged.refitted:
            return replace(made, problem=_HELD)
        if not said.se > 0 or (said.scale == "log" and not given.value > 0):
            return replace(made, problem=_NO_ERROR)
        bias = self._bias(judged, maker, attribute, group)
        if not math.isfinite(bias):
            return replace(made, problem=_NO_STRENGTH)
        if said.raised is not None and said.lowered is not None:
            return replace(made, evidence=PairedDifference(Changes(said.raised, said.lowered, given.n)))
        if said.counted is not None and made.counts is not None:
            used = Counts(*said.counted)
            made = replace(made, counts=used, left_out=_left_out(made.counts, used))
        errors = said.se, said.scale == "log", said.df, bias, said.robustness, said.se_above
        evidence: Evidence = Estimated(given.value, *errors)
        return replace(made, evidence=evidence, problem=unjudged(given.note))

    def _bias(self, judged: Judged, maker: str, attribute: Protected, group: str) -> float:
        """How far columns that the table lacks may have moved a direct effect; NaN where it is not known.

        The model sees its own columns only: nothing is unseen.
        """
        if judged.theory is not Theory.DIRECT or self.verdicts.complete or maker == DecisionMaker.MODEL:
            return 0.0
        for name in self.running:
            for each in METHODS[name].judged:
                if each.theory is Theory.DIRECT and each.role == "primary":
                    given = self.given.get((name, each.measure, maker, attribute.name, group))
                    if given is not None and given.inference is not None and given.inference.unseen:
                        return given.inference.unseen * self.verdicts.unseen.bias
        return math.nan

    def _case(self, name: str, judged: Judged, maker: str, attribute: Protected, group: str) -> Case:
        counts = self.counts.get((maker, attribute.name, group), Counts(0, 0, 0, 0))
        limit = limit_of(judged, self.verdicts.limits)
        whose = (attribute.name, group, attribute.reference, maker)
        return Case(judged.theory, name, judged.measure, *whose, judged.role, math.nan, None, limit, counts)


def _left_out(every: Counts, used: Counts) -> float:
    """How much more of the group than of the reference group was denied with files that an effect leaves out.

    As a share of all applications, never below 0: what is left out is no reason for a pass.
    """
    own, reference = every.events - used.events, every.events_reference - used.events_reference
    return max(0.0, own / every.n - reference / every.n_reference) if every.n and every.n_reference else 0.0


def limit_of(judged: Judged, limits: Limits) -> Limit | None:
    """The limit of a measure; None where its theory has none."""
    if judged.theory is Theory.RECOURSE:
        own = limits.recourse
        if judged.role == "adds":
            return None if own is None or own.difference is None else Limit(own.difference)
        return None if own is None or own.ratio is None else Limit(own.ratio, "at_least")
    value: float | None = getattr(limits, judged.theory)
    return None if value is None else Limit(value, "at_least" if judged.theory is Theory.OUTCOME else "at_most")


def _counts(statistics: Sequence[Statistic], protected: Sequence[Protected]) -> dict[tuple[str, str, str], Counts]:
    references = {p.name: p.reference for p in protected}
    denied: dict[tuple[str, str, str], tuple[int, int]] = {}
    for s in statistics:
        f: Family = s.family
        if (f.method, f.measure) == (OUTCOMES_METHOD, "denial_rate"):
            key = f.decision_maker, f.protected_attribute, s.group
            denied[key] = int(s.counts.sum()), int(s.counts[s.values == 1].sum())
    return {
        (maker, attribute, group): Counts(*own, *denied.get((maker, attribute, references[attribute]), (0, 0)))
        for (maker, attribute, group), own in denied.items()
    }
