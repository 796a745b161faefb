"""The judged effect by every defensible choice of form, columns, files and estimator.

Form (3): numbers as they are declared, with squares, with squares and the terms that tests choose. Estimator (4):
observed less expected, one odds ratio, the targeted estimate, overlap weights. And three choices of two: numbers cut
off at the 1st and 99th percentile or not, the columns that say through whom an application went in or out, complete
files as they are or weighted by their group and decision. These are 96 combinations; the 48 with an even number of the
second alternatives are made. Every alternative is in half of them, and every pair of them equally often.

Scope: estimates and errors. Their states, and which of them agree: ``adjust.stability``.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from tasks.methods.adjusted.algorithm import regressions
from tasks.methods.adjusted.algorithm.design import Design, Rows, build_design
from tasks.methods.adjusted.algorithm.examined import Files, Rules, decided_files
from tasks.methods.adjusted.algorithm.expected import (
    RIDGE,
    Effect,
    Error,
    Rule,
    effect_on,
    error_of,
    judge,
    odds_of_membership,
    rule_of,
    targeted,
    with_reference_terms,
    within_reference,
)
from tasks.methods.adjusted.algorithm.ladder import others, refusal
from tasks.methods.adjusted.algorithm.propensity import fit_propensity, overlap_effect, pair_rows
from tasks.methods.adjusted.algorithm.readings import weights_of_complete
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.regression import fit_logit

FormChoice = Literal["terms", "squares", "linear"]
EstimatorChoice = Literal["expected", "logit", "targeted", "overlap"]
FORMS: tuple[FormChoice, ...] = ("terms", "squares", "linear")
ESTIMATORS: tuple[EstimatorChoice, ...] = ("expected", "logit", "targeted", "overlap")


@dataclass(frozen=True)
class Choice:
    """One way to make the effect; that of an audit is the first one."""

    form: FormChoice = "terms"
    clipped: bool = True
    """Numbers are cut off at the 1st and 99th percentile."""
    through: bool = True
    """The columns that say through whom an application went are controls, where the spec makes them some."""
    weighted: bool = False
    """Complete files stand for all of their group and decision."""
    estimator: EstimatorChoice = "expected"

    @property
    def words(self) -> str:
        """The choice in words."""
        numbers = "cut off" if self.clipped else "whole"
        through = "with branches" if self.through else "without branches"
        files = "files weighted" if self.weighted else "complete files"
        return f"{self.estimator}, {self.form}, numbers {numbers}, {through}, {files}"


def choices() -> tuple[Choice, ...]:
    """The 48 choices, the audit's own first."""
    every = itertools.product(ESTIMATORS, FORMS, (True, False), (True, False), (False, True))
    return tuple(
        Choice(form, clipped, through, weighted, estimator)
        for estimator, form, clipped, through, weighted in every
        if (not clipped) + (not through) + weighted in (0, 2)
    )


@dataclass(frozen=True)
class Chosen:
    """The effect on one group by one choice."""

    choice: Choice
    group: int
    n: int
    value: float
    plain: Error
    """Of the effect."""
    at_limit: Error
    """Of the effect less its limit, where the limit moves with the expected denials."""
    limit: float


@dataclass(frozen=True)
class _Columns:
    """The columns of one choice, without the estimator."""

    design: Design
    weight: Floats | None
    rule: Rule

    @classmethod
    def of(cls, design: Design, weight: Floats | None) -> "_Columns":
        """With the rule of the reference group."""
        x = np.ascontiguousarray(design.x[:, np.r_[0, design.first_control : design.x.shape[1]]])
        return cls(design, weight, rule_of(x, design.y, design.group == design.reference, weight))


def grid(files: Files, rules: Rules) -> list[Chosen]:
    """The effect on every group that is judged, by every choice; on the same complete files.

    Args:
        files: of one decision maker and protected attribute.
        rules: limits and fewest events.
    """
    decided, rows = decided_files(files)
    groups = [g for g in others(decided.applications()) if not refusal(decided.applications(), rows, g, rules.fewest)]
    if not groups:
        return []
    weight = None
    if not rows.used.all():
        sides = [decided.group == g for g in range(len(decided.groups))]
        weight = weights_of_complete(rows.used, decided.denied.astype(np.int32), sides)[rows.used]
    has_through = any(control.name in decided.through for control in decided.controls)

    # choices that differ by what these files do not have are made once
    @cache
    def design(form: FormChoice, clipped: bool, through: bool) -> Design:
        return design_by(decided, rows, Choice(form, clipped, through), rules)

    @cache
    def columns(form: FormChoice, clipped: bool, through: bool, weighted: bool) -> _Columns:
        return _Columns.of(design(form, clipped, through), weight if weighted else None)

    @cache
    def estimated(choice: Choice, group: int) -> Chosen:
        key = choice.form, choice.clipped, choice.through, choice.weighted
        return estimated_by(choice, columns(*key), group, rules)

    return [
        replace(estimated(_made_as(choice, has_through, weight is not None), group), choice=choice)
        for choice in choices()
        for group in groups
    ]


def _made_as(choice: Choice, has_through: bool, has_weight: bool) -> Choice:
    """The first choice with the same result: without a control of the channel, or where all files are complete."""
    return replace(choice, through=choice.through or not has_through, weighted=choice.weighted and has_weight)


def design_by(decided: Files, rows: Rows, choice: Choice, rules: Rules) -> Design:
    """The design of a choice of form and controls."""
    controls = tuple(c for c in decided.controls if choice.through or c.name not in decided.through)
    if choice.clipped:
        of_reference = rows.used & (decided.group == decided.reference)
        controls = tuple(within_reference(control, of_reference) for control in controls)
    applications = replace(decided, controls=controls).applications()
    form: Literal["linear", "squared", "unclipped"] = "squared" if choice.clipped else "unclipped"
    design = build_design(applications, rows, "linear" if choice.form == "linear" else form)
    if choice.form == "terms" and rules.selected:
        design = with_reference_terms(design, applications, rows.used)
    return design


def estimated_by(choice: Choice, columns: _Columns, group: int, rules: Rules) -> Chosen:
    """The effect on a group. The limit is that of the expected denials by the same columns."""
    design, rule = columns.design, columns.rule
    members = design.group == group
    effect = effect_on(rule, members)
    errors = judge(rule, effect, rules.limits, design.cluster)
    chosen = Chosen(choice, group, effect.n, effect.value, errors.plain, errors.at_limit, errors.limit)
    if choice.estimator == "expected":
        return chosen
    if choice.estimator == "overlap":
        value, error = by_overlap(columns, group)
    else:
        value, error = (by_logit if choice.estimator == "logit" else by_targeting)(columns, effect)
    return replace(chosen, value=value, plain=error, at_limit=error)


def by_targeting(columns: _Columns, effect: Effect) -> tuple[float, Error]:
    """The targeted estimate on members."""
    rule = columns.rule
    odds = odds_of_membership(rule.x, effect.members, rule.reference, rule.weight)
    value, influence = targeted(rule, effect, odds)
    return value, error_of(influence, effect.members, rule.reference, columns.design.cluster)


def by_logit(columns: _Columns, effect: Effect) -> tuple[float, Error]:
    """The average effect on members by one odds ratio of the group and the reference group."""
    rule, either = columns.rule, effect.members | columns.rule.reference
    member, y = effect.members[either], rule.y[either]
    x = np.insert(rule.x[either], 1, member, axis=1)
    weight = None if columns.weight is None else columns.weight[either]
    fit = fit_logit(x, y, ridge=RIDGE, weight=weight)
    changed = regressions.change(
        fit.coefficients, x[member], 1, slice(1, 2), None if weight is None else weight[member]
    )
    influence = (x @ (fit.inverse @ changed.gradient)) * (y - fit.fitted) * (1.0 if weight is None else weight)
    cluster = None if columns.design.cluster is None else columns.design.cluster[either]
    return changed.effect, error_of(influence, member, ~member, cluster)


def by_overlap(columns: _Columns, group: int) -> tuple[float, Error]:
    """The difference where both groups are."""
    pair = pair_rows(columns.design, group, len(columns.design.widths) - 1)
    if columns.weight is not None:
        pair = replace(pair, weight=columns.weight[pair.rows])
    estimate = overlap_effect(fit_propensity(pair), 0.95)
    clusters = None if pair.cluster is None else len(np.unique(pair.cluster))
    return estimate.value, Error(estimate.se) if clusters is None else Error(estimate.se, float(max(clusters - 1, 1)))
