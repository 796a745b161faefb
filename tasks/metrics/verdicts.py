"""Rows by which theories of harm are judged, the tables of verdicts, and whether groups are large enough."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.limits import GATE, Limits, Verdicts
from schemas.audit.partition import unsampled
from schemas.audit.spec import AuditSpec, Protected
from schemas.errors import TooLittleEvidenceError
from schemas.tables.verdicts import AGREEMENT, PRICES, REPORTED, VERDICTS
from schemas.terms import DecisionMaker, State, Theory
from tasks.metrics.algorithm import verdicts as algorithm
from tasks.metrics.algorithm.measures import Family, Given, Statistic, unjudged
from tasks.metrics.readings import NO_CHANCE, Facts, judged_case, seen_in_part, states_of_choices
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.intervals import Changes
from tasks.pipeline.method import Judged
from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD

# --------------------------------------------------------------------------------------------------------------------
# The rows by which each theory of harm is judged, gathered from aggregates and from counts of decisions.
#
# Methods declare which of their measures a theory is judged by (``Method.verdict_measures``): no method
# is known here.
# Scope: gathering. States: ``tasks.metrics.algorithm.verdicts``.


OUTCOME = Judged(Theory.APPROVAL_RATES, "approval_rate_ratio")
WATCH = 0.90
"""Ratio of approvals below which practitioners look closer (verdicts.md 2); a convention and no rule."""
JUDGED_MEASURE = "adjusted_effect"
"""The measure whose verdict rests on the tables of the judged effect."""
OF_NEIGHBOURS = ("st_effect", "cst_effect")
"""Measures whose errors are those of neighbours' decisions, which a lender without chance does not vary."""
OF_EFFECT = ("limit_used", "expected", "ratio", "ratio_low", "ratio_high", "cluster")
"""Columns of a verdict that the judged effect alone has."""
OF_CHOICES = ("choices", "choices_outside", "choices_within")
"""Columns on the effect made in other ways."""
NOT_DIRECT = "the model does not see the group; what it learnt of it through columns belongs to the causal model"
NOT_TAKEN = (
    "the given model does not take the group as an input; what it does by other columns belongs to the causal model"
)
NO_GRAPH = "no causal model was given"
SMALL_SHARE = 0.01
"""Share of all applications below which a group that is too small for a verdict is reported and not judged."""
DENIAL_RATIO, RARE_DENIALS = 1.5, 0.10
"""Ratio of denials that bars a pass of the ratio of approvals, where fewer of the reference group are denied."""
_DESCRIPTIVE = "for information: it has no interval that is known to cover as often as it says"
_NO_ERROR = "its error is zero, or the logarithm by which it is judged is not defined"
_HELD = "for information: its error takes the model as given, which was fitted to these rows"
_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")
_NO_STRENGTH = "what columns that the table lacks could do to it cannot be computed"


@dataclass(frozen=True)
class Gathered:
    """All that theories are judged by."""

    counts: Mapping[tuple[str, str, str], algorithm.Counts]
    """(decision maker, protected attribute, group) -> applications and denials, the reference group's beside them."""
    aggregates: Mapping[tuple[str, str, str, str, str], Given]
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
    facts: Mapping[tuple[str, str, str], Facts] = field(default_factory=dict)
    """(decision maker, protected attribute, group) -> what is known of the judged effect."""
    undecided: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(protected attribute, group) -> applications that ended without a decision."""
    has_graph: bool = True
    """Whether the spec gives a causal model."""
    contradicted: str = ""
    """How the data contradict the causal graph as a whole; empty where they do not."""

    @classmethod
    def of(
        cls,
        statistics: Sequence[Statistic],
        aggregates: Sequence[Given],
        protected: tuple[Protected, ...],
        running: tuple[str, ...],
        verdicts: Verdicts,
        refitted: Mapping[tuple[str, str], Floats],
        *,
        model_is_fitted: bool = True,
        inapplicable: Mapping[str, str] | None = None,
        lost: Collection[tuple[str, str]] = (),
        facts: Mapping[tuple[str, str, str], Facts] | None = None,
        undecided: Mapping[tuple[str, str], int] | None = None,
        has_graph: bool = True,
        contradicted: str = "",
    ) -> "Gathered":
        """From what is measured, before anything is rounded or withheld."""
        by_key = {
            (g.family.method, g.family.measure, g.family.decision_maker, g.family.protected_attribute, g.group): g
            for g in aggregates
            if unsampled(g.family.parameters) == "{}" and g.family.subgroup == 0
        }
        denied: dict[tuple[str, str, str], tuple[int, int]] = {}
        for s in statistics:
            f: Family = s.family
            if (f.method, f.measure) == (OUTCOMES_METHOD, "denial_rate"):
                key = f.decision_maker, f.protected_attribute, s.group
                denied[key] = int(s.counts.sum()), int(s.counts[s.values == 1].sum())
        references = {p.name: p.reference for p in protected}
        counts = {
            (maker, attribute, group): algorithm.Counts(
                *sizes, *denied.get((maker, attribute, references[attribute]), (0, 0))
            )
            for (maker, attribute, group), sizes in denied.items()
        }
        reasons = inapplicable or {}
        about = facts or {}, undecided or {}, has_graph, contradicted
        return cls(counts, by_key, protected, running, verdicts, refitted, model_is_fitted, reasons, lost, *about)

    def cases(self) -> Iterator[algorithm.Case]:
        """Every row of a judged group, by theory in the order of ``Theory``."""
        judgements = [
            (OUTCOMES_METHOD, OUTCOME),
            *((name, judgement) for name in self.running for judgement in METHODS[name].verdict_measures),
        ]
        if not self.has_graph:
            judgements = [pair for pair in judgements if pair[1].theory is not Theory.CAUSAL_MODEL]
        for name, judgement in sorted(judgements, key=lambda pair: list(Theory).index(pair[1].theory)):
            for maker in self._makers(name, judgement):
                for attribute, group in self.groups:
                    reported = REPORTED if (attribute.name, group) in self.small else ""
                    if judgement is OUTCOME:
                        # The case, and the same at the watch level of practitioners, which decides nothing.
                        case = replace(self._of_outcome(maker, attribute, group), reported=reported)
                        yield case
                        if case.limit is not None and case.limit.value < WATCH:
                            yield replace(case, role="watch", limit=algorithm.Limit(WATCH, "at_least"))
                    elif not judgement.optional or any(
                        key[:4] == (name, judgement.measure, maker, attribute.name) for key in self.aggregates
                    ):
                        case = self._of_method(name, judgement, maker, attribute, group)
                        yield replace(case, reported=reported)

    @cached_property
    def small(self) -> frozenset[tuple[str, str]]:
        """(attribute, group) that are reported and not judged: too few for a verdict, and less than 1 % of all.

        None where no other group of the attribute would be judged: the audit has too little evidence then.
        """
        small: set[tuple[str, str]] = set()
        for attribute in self.protected:
            sizes: dict[str, int] = {}
            for (_, name, group), counts in self.counts.items():
                if name == attribute.name:
                    sizes[group] = max(sizes.get(group, 0), counts.n)
            most = min(self.verdicts.minimum_n, SMALL_SHARE * sum(sizes.values()))
            judged_groups = {group for group in sizes if attribute.judges(group)}
            few = {group for group in judged_groups if sizes[group] < most}
            small |= {(attribute.name, group) for group in few if few < judged_groups}
        return frozenset(small)

    @cached_property
    def groups(self) -> list[tuple[Protected, str]]:
        """The judged groups that the data hold."""
        pairs = sorted({(attribute, group) for _, attribute, group in self.counts})
        by_name = {p.name: p for p in self.protected}
        return [(by_name[attribute], group) for attribute, group in pairs if by_name[attribute].judges(group)]

    def why_not(self, theory: Theory) -> str:
        """Why a theory has no row."""
        if not self.groups:
            return (
                "no group is judged: the data hold none beside the reference group, or only groups that are no people"
            )
        primary = [
            (name, judgement)
            for name, m in METHODS.items()
            for judgement in m.verdict_measures
            if judgement.theory is theory
        ]
        if theory is Theory.CAUSAL_MODEL and not self.has_graph:
            return NO_GRAPH
        names = [name for name, judgement in primary if judgement.role == "primary"]
        if names and not set(names) & set(self.running):
            reasons = [self.inapplicable[name] for name in names if name in self.inapplicable]
            return reasons[0] if reasons else f"the method {names[0]} is off"
        if theory is not Theory.SIMILAR_APPLICANTS:
            return "nothing was measured"
        return NOT_DIRECT if self.model_is_fitted else NOT_TAKEN

    def _makers(self, name: str, judgement: Judged) -> tuple[str, ...]:
        """Decision makers of a measure: those requested that have results, else the lender, else the model."""
        makers: set[str] = set()
        if judgement is OUTCOME:
            makers = {maker for maker, _, _ in self.counts}
        else:
            # One decision maker is chosen for all measures of a theory that are of one maker each.
            alike = (
                [(name, judgement)]
                if judgement.maker is None
                else [
                    (method, candidate)
                    for method in self.running
                    for candidate in METHODS[method].verdict_measures
                    if candidate.theory is judgement.theory and candidate.maker is not None
                ]
            )
            for method, candidate in alike:
                measured = {key[2] for key in self.aggregates if key[:2] == (method, candidate.measure)}
                makers |= {maker for maker in measured if self._answers(method, candidate, maker)} or measured
        required_makers: tuple[str, ...] = self.verdicts.decision_makers or ()
        either = (str(DecisionMaker.LENDER), str(DecisionMaker.MODEL))
        candidates = (
            tuple(maker for maker in required_makers if maker in makers)
            or tuple(maker for maker in either if maker in makers)[:1]
        )
        return tuple(maker for maker in candidates or either[:1] if judgement.maker in (None, maker))

    def _answers(self, name: str, judgement: Judged, maker: str) -> bool:
        """Whether the method can be sure of a decision maker: some are sure of a model's decisions alone.

        A method that refused all groups of the lender could have been sure, and no model stands in for its decisions.
        """
        aggregates = [
            aggregate for key, aggregate in self.aggregates.items() if key[:3] == (name, judgement.measure, maker)
        ]
        inferences = [aggregate.inference for aggregate in aggregates if math.isfinite(aggregate.value)]
        sure = any(
            inference is not None and (math.isfinite(inference.se) or math.isfinite(inference.p))
            for inference in inferences
        )
        return sure or not inferences

    def _of_outcome(self, maker: str, attribute: Protected, group: str) -> algorithm.Case:
        counts = self.counts.get((maker, attribute.name, group))
        case = self._case(OUTCOMES_METHOD, OUTCOME, maker, attribute, group)
        if counts is None or not counts.n_reference:
            return replace(case, problem="the group or the reference group has no decision")
        approved, reference = counts.n - counts.events, counts.n_reference - counts.events_reference
        if not reference:
            return replace(case, problem="nobody of the reference group was approved")
        ratio = (approved / counts.n) / (reference / counts.n_reference)
        settings = self.verdicts
        has_few = bool(
            algorithm.too_few(counts, algorithm.Rules(settings.alpha, settings.minimum_n, settings.minimum_events))
        )
        evidence: algorithm.Evidence = algorithm.RatioOfShares(
            approved, counts.n, reference, counts.n_reference, has_few
        )
        if maker == DecisionMaker.MODEL and self.model_is_fitted:
            if not approved:
                return replace(case, value=ratio, problem="the model approved nobody of the group")
            se = self._error_of_model(attribute, group)
            if se is None:
                return replace(case, value=ratio, problem=_HELD)
            evidence = algorithm.Estimated(ratio, se, logarithmic=True)
        if maker == DecisionMaker.LENDER:
            beside = [*self._clustered_ratio(attribute, group, ratio), *self._over_all(attribute, group, counts)]
            evidence = algorithm.Hull((evidence, *beside)) if beside else evidence
            case = replace(case, bars=self._rare_denials(counts))
        return replace(case, value=ratio, evidence=evidence)

    def _clustered_ratio(self, attribute: Protected, group: str, ratio: float) -> list[algorithm.Evidence]:
        """The ratio of approvals with its error by clusters; none where rows are independent."""
        facts = self.facts.get((str(DecisionMaker.LENDER), attribute.name, group))
        se = None if facts is None else facts.row["approval_se"]
        if facts is None or not se or not ratio > 0:
            return []
        df = facts.row["approval_df"]
        return [algorithm.Estimated(ratio, se, logarithmic=True, df=math.inf if df is None else df)]

    def _over_all(self, attribute: Protected, group: str, counts: algorithm.Counts) -> list[algorithm.Evidence]:
        """The ratio of approvals over all applications, those without a decision among them."""
        of_group, of_reference = (self.undecided.get((attribute.name, g), 0) for g in (group, attribute.reference))
        approved, reference = counts.n - counts.events, counts.n_reference - counts.events_reference
        if not (of_group or of_reference) or self.verdicts.undecided == "ignore":
            return []
        return [algorithm.RatioOfShares(approved, counts.n + of_group, reference, counts.n_reference + of_reference)]

    def _rare_denials(self, counts: algorithm.Counts) -> str:
        """Why a pass is barred where few are denied: the ratio of denials is not shown to be small; else empty."""
        if not counts.events_reference or counts.events_reference >= RARE_DENIALS * counts.n_reference:
            return ""
        denials = algorithm.RatioOfShares(counts.events, counts.n, counts.events_reference, counts.n_reference)
        if denials.below(DENIAL_RATIO) <= self.verdicts.alpha:
            return ""
        return f"the ratio of denials is not shown to be below {DENIAL_RATIO:g}"

    def _error_of_model(self, attribute: Protected, group: str) -> float | None:
        """Standard error of the logarithm of the model's ratio, from its refits; None where it is not refitted."""
        rates = [self.refitted.get((attribute.name, name)) for name in (group, attribute.reference)]
        if rates[0] is None or rates[1] is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(rates[0] / rates[1])
        spread = float(np.std(logs[np.isfinite(logs)], ddof=1)) if np.isfinite(logs).sum() > 1 else math.nan
        return spread if spread > 0 else None

    def _of_method(self, name: str, judgement: Judged, maker: str, attribute: Protected, group: str) -> algorithm.Case:
        case = self._case(name, judgement, maker, attribute, group)
        aggregate = self.aggregates.get((name, judgement.measure, maker, attribute.name, group))
        if aggregate is None:
            lost = next((name for name in (attribute.reference, group) if (attribute.name, name) in self.lost), None)
            why = (
                f"every application of {lost} lacks a feature"
                if lost
                else "the method has nothing to say of this group"
            )
            return replace(case, problem=f"not measured: {why}")
        if not math.isfinite(aggregate.value):
            why = aggregate.note or "undefined"
            why = why.replace("_", " ") if _CODE.fullmatch(why) else why  # a reason of refusal, by its key
            return replace(case, problem=f"not measured: {why}")
        case = replace(case, value=aggregate.value)
        inference = aggregate.inference
        if inference is None or not (math.isfinite(inference.se) or math.isfinite(inference.p)):
            return replace(case, problem=_DESCRIPTIVE)
        if judgement.role == "adds" and math.isfinite(inference.p):
            return replace(case, p=inference.p)
        facts = self.facts.get((maker, attribute.name, group))
        if facts is not None and facts.no_noise and judgement.measure in OF_NEIGHBOURS:
            return replace(case, information=NO_CHANCE)
        if (
            facts is not None
            and facts.measured
            and judgement.theory is Theory.SIMILAR_APPLICANTS
            and not judgement.limit
            and case.limit is not None
        ):
            case = replace(case, limit=algorithm.Limit(facts.row["limit"], case.limit.side))
        if not math.isfinite(inference.se) or judgement.measure not in METHODS[name].covering:
            return replace(case, problem=_DESCRIPTIVE)
        if maker == DecisionMaker.MODEL and self.model_is_fitted and not judgement.refitted:
            return replace(case, problem=_HELD)
        if not inference.se > 0 or (inference.scale == "log" and not aggregate.value > 0):
            return replace(case, problem=_NO_ERROR)
        bias = self._bias(judgement, maker, attribute, group)
        if not math.isfinite(bias):
            return replace(case, problem=_NO_STRENGTH)
        if inference.raised is not None and inference.lowered is not None:
            return replace(
                case, evidence=algorithm.PairedDifference(Changes(inference.raised, inference.lowered, aggregate.n))
            )
        if inference.counts is not None and case.counts is not None:
            used = algorithm.Counts(*inference.counts)
            # How much more of the group than of the reference group was denied with files that an effect leaves out.
            every = case.counts
            group_excess, reference = every.events - used.events, every.events_reference - used.events_reference
            left_out = (
                max(0.0, group_excess / every.n - reference / every.n_reference)
                if every.n and every.n_reference
                else 0.0
            )
            case = replace(case, counts=used, left_out=left_out)
        if facts is not None and facts.measured and judgement.measure == JUDGED_MEASURE:
            full_case = judged_case(case, facts, bias, inference.robustness, self.verdicts)
            return replace(full_case, problem=unjudged(aggregate.note))
        times, df = 1.0, inference.df
        if facts is not None and facts.measured and judgement.measure in OF_NEIGHBOURS:
            times, of_clusters = facts.of_clusters
            df = min(df, of_clusters)
        errors = (
            times * inference.se,
            inference.scale == "log",
            df,
            bias,
            inference.robustness,
            times * inference.se_above,
        )
        evidence: algorithm.Evidence = algorithm.Estimated(aggregate.value, *errors)
        return replace(case, evidence=evidence, problem=unjudged(aggregate.note))

    def _bias(self, judgement: Judged, maker: str, attribute: Protected, group: str) -> float:
        """Largest bias of a direct effect from columns that the table does not have; NaN where it is not known.

        The model sees its own columns only: nothing is unseen.
        """
        if judgement.theory is not Theory.SIMILAR_APPLICANTS or self.verdicts.complete or maker == DecisionMaker.MODEL:
            return 0.0
        for name in self.running:
            for candidate in METHODS[name].verdict_measures:
                of_scale = candidate is judgement if judgement.limit else candidate.role == "primary"
                if candidate.theory is Theory.SIMILAR_APPLICANTS and of_scale:
                    aggregate = self.aggregates.get((name, candidate.measure, maker, attribute.name, group))
                    if aggregate is not None and aggregate.inference is not None and aggregate.inference.unseen:
                        return aggregate.inference.unseen * self.verdicts.unseen.bias
        return math.nan

    def _case(self, name: str, judgement: Judged, maker: str, attribute: Protected, group: str) -> algorithm.Case:
        counts = self.counts.get((maker, attribute.name, group), algorithm.Counts(0, 0, 0, 0))
        limit = limit_of(judgement, self.verdicts.limits)
        whose = (attribute.name, group, attribute.reference, maker)
        own_counts = None if judgement.limit else counts  # the method says itself whether it has too few
        case = algorithm.Case(
            judgement.theory, name, judgement.measure, *whose, judgement.role, math.nan, None, limit, own_counts
        )
        contradicted = self.contradicted if judgement.theory is Theory.CAUSAL_MODEL else ""
        return replace(case, contradicted=contradicted, is_price=judgement.measure in PRICES)


def limit_of(judgement: Judged, limits: Limits) -> algorithm.Limit | None:
    """The limit of a measure; None where its theory has none."""
    if judgement.limit:
        value_of_scale: float | None = getattr(limits, judgement.limit)
        return None if value_of_scale is None else algorithm.Limit(value_of_scale)
    if judgement.theory is Theory.SIMILAR_APPLICANTS:
        return None if limits.similar_applicants is None else algorithm.Limit(limits.similar_applicants.points)
    if judgement.theory is Theory.PATH_TO_APPROVAL:
        recourse = limits.path_to_approval
        if judgement.role == "adds":
            return None if recourse is None or recourse.difference is None else algorithm.Limit(recourse.difference)
        return None if recourse is None or recourse.ratio is None else algorithm.Limit(recourse.ratio, "at_least")
    value: float | None = getattr(limits, judgement.theory)
    return (
        None
        if value is None
        else algorithm.Limit(value, "at_least" if judgement.theory is Theory.APPROVAL_RATES else "at_most")
    )


# --------------------------------------------------------------------------------------------------------------------
# Rows of the tables ``verdicts`` and ``agreement``: exact states and numbers.


_ASSUMED = {Theory.SIMILAR_APPLICANTS: "columns_complete", Theory.CAUSAL_MODEL: "graph"}


@dataclass(frozen=True)
class Judgement:
    """The verdicts of an audit."""

    rows: tuple[algorithm.Verdict, ...]
    theories: Mapping[Theory, algorithm.Concluded]
    facts: Mapping[tuple[str, str, str], Facts] = field(default_factory=dict)
    """What is known of the judged effects."""
    settings: Verdicts = field(default_factory=Verdicts)


def judged(
    gathered: Gathered, own_cases: Sequence[algorithm.Case], settings: Verdicts, *, fewest: int = 0, ends: bool = True
) -> Judgement:
    """The states of all rows and theories.

    Args:
        gathered: what the five theories are judged by.
        own_cases: cases of the spec's thresholds.
        settings: alpha, and whether comparisons are counted within a theory or over all.
        fewest: people of a group below which it decides nothing.
        ends: whether intervals and forecasts are made as well as states.
    """
    cases = [*gathered.cases(), *own_cases]
    rules = replace(rules_of(settings), fewest=fewest, ends=ends)
    of = {theory: [case for case in cases if case.theory is theory] for theory in Theory}
    families = [cases] if settings.across == "theories" else list(of.values())
    rows = tuple(row for family in families for row in algorithm.judge(family, rules))
    at_odds = algorithm.disagreeing([row for row in rows if _answers(row)])
    theories = {
        theory: algorithm.conclude(
            [row for row in rows if row.case.theory is theory], at_odds.get(theory, ()), gathered.why_not(theory)
        )
        for theory in Theory
        if theory is not Theory.OWN_LIMITS or own_cases
    }
    return Judgement(rows, theories, gathered.facts, settings)


def theories_of(rows: Sequence[Mapping[str, Any]]) -> dict[Theory, State]:
    """The state of each question, from the rows of verdicts; without a causal model that question counts in none."""
    return {
        Theory(row["theory"]): State(row["state"])
        for row in rows
        if row["role"] == "theory" and row["reason"] != NO_GRAPH
    }


def state_of(states: Mapping[Theory, State], settings: Verdicts) -> State:
    """The state that decides the exit code, from those of the theories."""
    gate = settings.gate or (*GATE, *((Theory.OWN_LIMITS,) if Theory.OWN_LIMITS in states else ()))
    gate = tuple(theory for theory in gate if theory in states)
    return algorithm.overall(states, gate, named=settings.gate is not None)


def tables(judgement: Judgement) -> dict[str, pa.Table]:
    """Both tables, with exact numbers."""
    facts, settings = judgement.facts, judgement.settings
    rows = [_row(verdict, facts.get(algorithm.whose(verdict.case)), settings) for verdict in judgement.rows]
    by_choice = states_of_choices(rows, {whose: of.choices for whose, of in facts.items()}, rules_of(settings))
    for row in rows:
        whose = row["decision_maker"], row["protected_attribute"], row["group"]
        if row["role"] == "primary" and row["theory"] is Theory.SIMILAR_APPLICANTS and (chosen := by_choice.get(whose)):
            counts = Counter(state for _, state in chosen)
            row |= {"choices": len(chosen), "choices_outside": counts[State.OUTSIDE]}
            row |= {"choices_within": counts[State.WITHIN]}
    blank: dict[str, Any] = dict.fromkeys(column.name for column in VERDICTS.columns)
    blank |= dict.fromkeys(("protected_attribute", "group", "decision_maker", "method", "measure"), "")
    ordered = []
    for theory, conclusion in judgement.theories.items():
        theory_rows = [row for row in rows if row["theory"] == theory]
        # A theory assumes nothing where none of its rows does: then its state holds without the assumption.
        needs_nothing = {row["assumption"] for row in theory_rows} == {"none"}
        values = {
            **{"theory": theory, "role": "theory", "state": conclusion.state, "reason": conclusion.reason},
            **{"assumption": "none" if needs_nothing else _ASSUMED.get(theory, "none"), "withheld": False},
        }
        ordered += [{**blank, **values}, *theory_rows]
    names = ("theory", "decision_maker", "protected_attribute", "group", "method", "measure", "reference_group")
    answers = [(verdict, row) for verdict, row in zip(judgement.rows, rows, strict=True) if _answers(verdict)]
    statements = algorithm.compared([verdict for verdict, _ in answers])
    agreement_rows = [
        {
            **{name: getattr(statement.case, name) for name in names},
            **{"sign": statement.sign, "state": statement.state},
            **dict.fromkeys(("explains", "null_low", "null_high")),
            **{"value": row["value"], "low": row["plain_low"], "high": row["plain_high"], "n": row["n"]},
            "p": statement.case.p if math.isfinite(statement.case.p) else None,
        }
        for statement, (_, row) in zip(statements, answers, strict=True)
    ]
    return {VERDICTS.name: _table(VERDICTS, ordered), AGREEMENT.name: _table(AGREEMENT, agreement_rows)}


def _answers(row: algorithm.Verdict) -> bool:
    """Whether it is what a method answers to one of the five questions."""
    return row.case.theory is not Theory.OWN_LIMITS and row.case.role != "watch" and not row.case.is_price


def rules_of(settings: Verdicts) -> algorithm.Rules:
    """The settings of states."""
    return algorithm.Rules(settings.alpha, settings.minimum_n, settings.minimum_events)


def _row(verdict: algorithm.Verdict, facts: Facts | None, settings: Verdicts) -> dict[str, Any]:
    case, evidence = verdict.case, verdict.case.evidence
    named = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "method", "measure", "role")
    row = {name: getattr(case, name) for name in named}
    row |= {
        "limit": case.limit.value if case.limit else None,
        "side": case.limit.side if case.limit else None,
        "assumption": "none" if isinstance(evidence, algorithm.PairedDifference) else _ASSUMED.get(case.theory, "none"),
        "withheld": False,
    }
    bias, robustness, without_bias = 0.0, math.nan, algorithm.first_reading(evidence)
    df, hull = math.inf, [math.nan, math.nan]
    if isinstance(without_bias, algorithm.Estimated):
        bias, robustness, df = without_bias.bias, without_bias.robustness, without_bias.df
        without_bias = replace(without_bias, bias=0.0)
        if without_bias.plain is not None:
            without_bias = replace(without_bias, se=without_bias.plain[0], df=without_bias.plain[1])
    if isinstance(evidence, algorithm.Hull):
        hull = [evidence.bound(settings.alpha, upper=upper) for upper in (False, True)]
    # the two-sided 95 % interval without any widening
    plain = [math.nan if without_bias is None else without_bias.bound(0.025, upper=upper) for upper in (False, True)]
    names = ("low", "high", "p_breach", "p_breach_holm", "p_within", "detectable", "needed")
    numbers = {
        **{name: getattr(verdict, name) for name in names},
        **{"value": case.value, "se": math.nan if without_bias is None else without_bias.error, "bias": bias},
        **{"hull_low": hull[0], "hull_high": hull[1], "df": df},
        **{"plain_low": plain[0], "plain_high": plain[1], "robustness": robustness},
    }
    counts: dict[str, int | None] = dict.fromkeys(("n", "events", "n_reference", "events_reference"))
    if case.counts is not None:
        counts = case.counts._asdict()
    scale = None if evidence is None else "log" if evidence.logarithmic else "linear"
    finite_numbers = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    of_effect = dict.fromkeys((*OF_EFFECT, *OF_CHOICES, "part_n", "part_detectable"))
    if facts is not None and case.measure == JUDGED_MEASURE and facts.measured:
        of_effect |= {name: facts.row.get(name) for name in OF_EFFECT} | {"limit_used": row["limit"]}
        if in_part := seen_in_part(facts, settings):
            of_effect |= {"part_n": in_part.n, "part_detectable": in_part.points}
    words = {"scale": scale, "state": verdict.state, "reason": verdict.reason}
    return {**row, **of_effect, **finite_numbers, **counts, **words}


def _table(table: Any, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return table.build(**{column.name: [row[column.name] for row in rows] for column in table.columns})


# --------------------------------------------------------------------------------------------------------------------
# Checks from the applications alone whether any judged group has the people that a verdict needs.
#
# The states of an audit come from ``stage``, after hours of generators where a spec asks for them. A group below the
# minimum counts of ``verdicts`` is insufficient evidence whatever they find, and can only breach by its raw rates.
# Where that holds for every group, the audit ends here. Scope: counts of decisions. Words of a row:
# ``algorithm.verdicts``.


_NAMED = 2
"""Groups that a message names; it counts the others."""
_LONGEST = 18
"""Letters of a group's name in a message."""

Groups = Mapping[tuple[str, str], algorithm.Counts]
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
    settings = spec.verdicts
    limits = [getattr(settings.limits, theory, None) for theory in settings.gate or GATE]
    if spec.profile == "paper" or not (spec.thresholds or any(limit is not None for limit in limits)):
        return  # no limit decides the state
    counts = _group_counts(applications, memberships, spec.protected)
    rules = algorithm.Rules(settings.alpha, settings.minimum_n, settings.minimum_events)
    of_lender_alone = (
        all(limit.decision_maker == "lender" for limit in spec.thresholds)
        and set(settings.decision_makers or (DecisionMaker.LENDER,)) == {DecisionMaker.LENDER}
        and not {Theory.PATH_TO_APPROVAL, Theory.MODEL_REASONS} & set(settings.gate or ())
    )
    # How many a model denies is not known yet: where it decides, only the numbers of applications count.
    are_small = [
        bool(algorithm.too_few(counts[key], rules))
        if of_lender_alone
        else min(counts[key].n, counts[key].n_reference) < rules.minimum_n
        for key in _judged(spec, counts)
    ]
    if are_small and all(are_small) and not _may_breach(spec, counts, rules):
        raise TooLittleEvidenceError(_message(spec, counts, rules))


def _judged(spec: AuditSpec, counts: Groups) -> Iterator[tuple[str, str]]:
    """The groups that a verdict may be about; a limit of the spec's own is about the reference group, too."""
    by_name = {p.name: p for p in spec.protected}
    for name, group in counts:
        is_limited_reference = bool(spec.thresholds) and group == by_name[name].reference
        if is_limited_reference or by_name[name].judges(group):
            yield name, group


def _group_counts(applications: pa.Table, memberships: pa.Table, protected: tuple[Protected, ...]) -> Groups:
    # by codes, as a join by Arrow loads pandas, and the command counts them, too
    places = pc.index_in(memberships["row_id"], value_set=applications["row_id"].combine_chunks())
    is_application = places.is_valid().combine_chunks()
    attributes, groups = (
        memberships[name].combine_chunks().dictionary_encode().filter(is_application)
        for name in ("protected_attribute", "group")
    )
    favourable = applications["favourable"].take(places.drop_null()).to_numpy()
    of_row = (attributes.indices.to_numpy() * len(groups.dictionary) + groups.indices.to_numpy()) * 2 + favourable
    every: Counter[tuple[str, str]] = Counter()
    denied: Counter[tuple[str, str]] = Counter()
    for code, number in zip(*np.unique(of_row, return_counts=True), strict=True):
        attribute, group = divmod(int(code) // 2, len(groups.dictionary))
        key = attributes.dictionary[attribute].as_py(), groups.dictionary[group].as_py()
        every[key] += int(number)
        denied[key] += 0 if code % 2 else int(number)
    references = {p.name: (p.name, p.reference) for p in protected}
    return {
        key: algorithm.Counts(every[key], denied[key], every[references[key[0]]], denied[references[key[0]]])
        for key in sorted(every)
    }


def _may_breach(spec: AuditSpec, counts: Groups, rules: algorithm.Rules) -> bool:
    """Whether the raw rates of a small group alone could be a breach (0 of 30 against 77 of 100)."""
    limit = spec.verdicts.limits.approval_rates
    if any(OUTCOME.measure.startswith(threshold.measure.removesuffix("_ratio")) for threshold in spec.thresholds):
        limit = 1.0  # a limit of the spec's own may be stricter than that of the theory
    return limit is not None and any(
        algorithm.RatioOfShares(c.n - c.events, c.n, c.n_reference - c.events_reference, c.n_reference, few=True).below(
            limit
        )
        <= rules.alpha
        for c in counts.values()
        if c.n >= max(1, spec.disclosure.smallest) and c.events_reference < c.n_reference
    )


def _message(spec: AuditSpec, counts: Groups, rules: algorithm.Rules) -> str:
    """The groups that are too small, what a verdict needs and what to do; without counts, which could be withheld."""
    relevant = {*_judged(spec, counts), *((p.name, p.reference) for p in spec.protected)}
    small = [
        group
        for (attribute, group), c in counts.items()
        if (attribute, group) in relevant
        and algorithm.too_few(algorithm.Counts(c.n, c.events, c.n, c.events), rules)  # by itself alone
    ]
    named = ", ".join(repr(group[:_LONGEST]) for group in small[:_NAMED])
    rest = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
    return (
        f"inconclusive in {spec.year}: too few are {named}{rest}; each group needs {rules.minimum_n} "
        f"applications, {rules.minimum_events} approved and {rules.minimum_events} denied. Add rows, or see figures "
        f"alone: --set verdicts.limits=null{' --set thresholds=[]' if spec.thresholds else ''}"
    )
