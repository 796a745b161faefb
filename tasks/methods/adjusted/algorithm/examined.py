"""The judged effect of every group of an attribute, with its parts and with every other reading of it.

Order of work: complete and decided files, the rule of the reference group, effect, limit and ratio of each group; then
what may mislead: files left out, applications without a decision, branches, bands, places; then parts and carriers.

Scope: which rows and columns each estimate takes. The estimates: ``expected``, ``parts``, ``readings``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tasks.methods.adjusted.algorithm.design import (
    RARE,
    Applications,
    Block,
    Control,
    Design,
    Rows,
    build_design,
    code_control,
    complete_rows,
    level_name,
)
from tasks.methods.adjusted.algorithm.expected import (
    Effect,
    Error,
    Judged,
    LimitRule,
    Rule,
    effect_on,
    error_of,
    judge,
    odds_of_membership,
    rule_of,
    targeted,
    with_logs,
    with_reference_terms,
    within_reference,
)
from tasks.methods.adjusted.algorithm.ladder import others, refusal
from tasks.methods.adjusted.algorithm.parts import Inside, Part, Split, parts_of, split_of_fifths
from tasks.methods.adjusted.algorithm.parts import Rules as PartRules
from tasks.methods.adjusted.algorithm.readings import (
    DEPENDS,
    Carrier,
    Carriers,
    Reading,
    Undecided,
    allowance,
    p_of_dependence,
    reading_of,
    undecided_effect,
    undecided_rates,
    undecided_rules,
    weights_of_complete,
    with_columns,
    without_columns,
    worst_of_missing,
    worst_of_undecided,
)
from tasks.numerics.arrays import Bools, Floats, Ints, Longs, some_columns_of
from tasks.numerics.statistics.regression import MANY

PLACE_LEVELS = 60
"""Levels of a place that have a column of their own, the commonest."""
FEWEST_OF_GROUP = 1
"""Denials, and approvals, of a group: the rule is fitted without it, and its error at the limit counts few denials."""
PLACE_ROWS = 200_000
"""Rows by which the effect with places is told; of more, every so many-th."""
LEAST_ALLOWANCE = 0.002
"""A smaller allowance for bands changes no interval."""


@dataclass(frozen=True)
class Files:
    """All applications of one decision maker and one protected attribute, those without a decision among them."""

    denied: Bools
    """``(n,)``."""
    undecided: Bools
    """``(n,)`` ended without a decision."""
    group: Ints
    """``(n,)`` index into ``groups``; -1 of none."""
    groups: tuple[str, ...]
    reference: int
    controls: tuple[Control, ...]
    """What similar applicants are similar in."""
    places: tuple[Control, ...] = ()
    through: frozenset[str] = frozenset()
    """Controls that say through whom an application went."""
    splits: tuple[Split, ...] = ()
    cluster: Ints | None = None
    """``(n,)`` from 0; a row that hangs together with none has a number of its own."""

    def taken(self, rows: Bools | Longs) -> "Files":
        """Some of the applications."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        return replace(
            self,
            denied=self.denied[rows],
            undecided=self.undecided[rows],
            group=self.group[rows],
            controls=tuple(replace(control, values=control.values[rows]) for control in self.controls),
            places=tuple(replace(control, values=control.values[rows]) for control in self.places),
            splits=tuple(replace(split, code=split.code[rows]) for split in self.splits),
            cluster=None if self.cluster is None else self.cluster[rows],
        )

    def applications(self) -> Applications:
        """The same as one block of controls; what has no decision counts as denied."""
        blocks = (Block("controls", self.controls),) if self.controls else ()
        denied = self.denied | self.undecided
        return Applications(denied, self.group, self.groups, self.reference, blocks, self.cluster)


@dataclass(frozen=True)
class Rules:
    """Settings of the examination."""

    limits: LimitRule
    parts: PartRules | None = field(default_factory=PartRules)
    """None: no parts are looked at."""
    undecided: bool = True
    """Whether applications without a decision are looked at."""
    fewest: int = 10
    """Denials, and approvals, of the reference group."""
    selected: bool = True
    """Whether terms may be added."""
    beside: bool = True
    """Whether what decides no state is estimated, too: places, the targeted estimate, carriers."""


@dataclass(frozen=True)
class LeftOut:
    """Files without a column, or applications without a decision, of one group."""

    what: str
    """The column; empty for applications without a decision."""
    n: int
    n_reference: int
    denied: int
    """Denials among the group's."""
    share: float
    """Of the group's applications."""
    share_reference: float
    p: float
    """Of being left out by decision, over both groups; of the excess of undecided applications."""
    estimate: float
    low: float
    high: float
    worst_low: float
    worst_high: float
    share_denied: float = math.nan
    """Of the group's denied applications, the share that lacks the column."""
    share_approved: float = math.nan
    share_denied_reference: float = math.nan
    share_approved_reference: float = math.nan


@dataclass(frozen=True)
class Examined:
    """What was found of one group."""

    group: int
    n: int
    events: int
    n_reference: int
    events_reference: int
    reason: str = ""
    """Why there is no estimate."""
    effect: Effect | None = None
    judged: Judged | None = None
    explained: float = math.nan
    """Share of deviance that the rule explains in the reference group."""
    no_noise: bool = False
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By name: weighted, undecided (as denied, and as approved), through, time, office and bands may widen the state;
    place and targeted."""
    excess: Undecided | None = None
    left_out: tuple[LeftOut, ...] = ()
    depends: bool = False
    """Whether missing depends on the decision, so that the state is read from the hull."""
    terms: tuple[str, ...] = ()
    """Hinges and products of the rule."""
    odds: Floats | None = None
    """``(n,)`` odds of membership of the complete files."""
    parts: tuple[Part, ...] = ()
    carriers: Mapping[str, Carrier] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fitted:
    """Complete and decided files with the rule of the reference group."""

    files: Files
    design: Design
    rule: Rule
    columns: Mapping[str, Ints]
    """Control -> its columns of the rule, products with it among them."""
    weighted: Rule | None
    """The same rule with each file weighted by those of its group and decision; None where all are complete."""
    through: Rule | None
    """Without the columns that say through whom an application went."""
    time: Rule | None
    """With the quarters of the applications."""
    office: Rule | None
    """With branches and officers who are too few for errors by cluster."""
    inside: Rule
    """With both, where there are some: parts rest on it."""
    place: "_WithPlaces | None"
    carriers: Carriers
    ended: Mapping[int, Undecided] | None
    """Group -> its applications without a decision."""


@dataclass(frozen=True)
class _WithPlaces:
    """The rule with places and the rule without them, on the same rows."""

    rows: slice
    base: Rule
    rule: Rule

    def reading(self, effect: Effect, cluster: Ints | None) -> Reading:
        """The effect with places; the difference from the judged one is that of these rows."""
        members, of_rows = effect.members[self.rows], None if cluster is None else cluster[self.rows]
        base = effect if len(self.base.y) == len(effect.members) else effect_on(self.base, members)
        reading = reading_of(base, effect_on(self.rule, members), self.rule, of_rows)
        return replace(reading, value=effect.value + reading.difference) if base is not effect else reading


def examine(files: Files, rules: Rules, rng: np.random.Generator) -> list[Examined]:
    """The judged effect of every group other than the reference group, and all that it may hide.

    Args:
        files: of one decision maker and protected attribute.
        rules: limits, parts and fewest events.
        rng: draws the critical value of the parts.
    """
    decided, rows = decided_files(files)
    out, groups = [], []
    fitted: _Fitted | None = None
    for group in others(decided.applications()):
        reason = refusal(decided.applications(), rows, group, rules.fewest, FEWEST_OF_GROUP)
        if reason:
            out.append(Examined(group, *_counts(rows, group), *_counts(rows, files.reference), reason))
            continue
        fitted = fitted or _fit(files, decided, rows, rules)
        groups.append(_examined(files, decided, rows, fitted, group, rules))
    if fitted is not None and rules.parts is not None:
        groups = _with_parts(fitted, groups, rules.parts, rng)
    return sorted([*out, *groups], key=lambda examined: examined.group)


def decided_files(files: Files) -> tuple[Files, Rows]:
    """The applications with a decision, skew numbers as logarithms, and which of them are complete."""
    decided = files.taken(~files.undecided)
    used = complete_rows(decided.applications()).used
    decided = replace(decided, controls=tuple(with_logs(control, used) for control in decided.controls))
    return decided, complete_rows(decided.applications())


def _counts(rows: Rows, group: int) -> tuple[int, int]:
    """Complete files of a group, and denials among them."""
    return int(rows.counts[group]), int(rows.events[group])


def _fit(files: Files, decided: Files, rows: Rows, rules: Rules) -> _Fitted:
    bands = tuple(control for control in decided.controls if control.ordered)
    used = replace(decided, controls=bands).taken(rows.used)  # of many rows no number is held a third time
    ended = _ended(files, decided) if rules.undecided and files.undecided.any() else None
    applications = replace(used, controls=_cut_off(decided, rows.used)).applications()
    every = replace(rows, used=np.ones(len(used.denied), np.bool_))
    design = build_design(applications, every, "squared", packed=len(used.denied) > MANY)
    if rules.selected:
        design = with_reference_terms(design, applications, every.used)
    del applications
    kept = np.r_[0, design.first_control : len(design.names)]
    place_of = {int(column): place for place, column in enumerate(kept)}
    columns: dict[str, list[int]] = {control.name: [] for control in decided.controls}
    names = list(columns)
    for column in kept[1:]:
        for control in {design.control[column], design.partners.get(int(column), -1)} - {-1}:
            columns[names[control]].append(place_of[int(column)])
    x = np.ascontiguousarray(design.x[:, kept]) if design.packed is None else design.packed.having(kept)
    design = replace(design, x=design.x[:0], packed=None)  # the rule holds its columns
    reference = design.group == decided.reference
    rule = rule_of(x, design.y, reference)
    weighted = None
    if not rows.used.all():
        sides = [decided.group == g for g in range(len(decided.groups))]
        weight = weights_of_complete(rows.used, decided.denied.astype(np.int32), sides)[rows.used]
        weighted = rule_of(x, design.y, reference, weight)
    by_name = {name: np.array(places, np.int32) for name, places in columns.items()}
    through = np.concatenate([np.zeros(0, np.int32), *(by_name[name] for name in by_name if name in files.through)])
    quarters = _indicators(used, [split for split in used.splits if split.time], columns)
    offices = _indicators(used, [split for split in used.splits if split.office], columns)
    time = with_columns(rule, quarters) if quarters.shape[1] else None
    office = with_columns(rule, offices) if offices.shape[1] else None
    return _Fitted(
        used,
        design,
        rule,
        by_name,
        weighted,
        without_columns(rule, through) if len(through) else None,
        time,
        office,
        (with_columns(time, offices) if time and office else None) or time or office or rule,
        _with_places(used, rule) if rules.beside else None,
        Carriers.of(rule, by_name if rules.beside else {}, design.cluster),
        ended,
    )


def _examined(files: Files, decided: Files, rows: Rows, fitted: _Fitted, group: int, rules: Rules) -> Examined:
    """One group without its parts."""
    rule, cluster = fitted.rule, fitted.design.cluster
    members = fitted.design.group == group
    effect = effect_on(rule, members)
    judged = judge(rule, effect, rules.limits, cluster)
    results: dict[str, Reading] = {}
    left_out: list[LeftOut] = []
    depends, excess = False, None
    if fitted.weighted is not None:
        results["weighted"] = reading_of(effect, effect_on(fitted.weighted, members), rule, cluster)
        p = _dependence(decided, rows.used, group)
        depends = p < DEPENDS
        left_out += _lacking(decided, effect, group, results["weighted"])
    if rules.undecided and files.undecided.any():
        excess = _undecided(files, fitted, effect, group)
        if excess is not None:
            as_either = (excess.as_denied, excess.of_denied), (excess.as_approved, excess.of_approved)
            for name, (value, error) in zip(("undecided", "undecided_approved"), as_either, strict=True):
                results[name] = Reading(value, error, value - effect.value, error)
            left_out.append(_without_decision(files, effect, excess, group))
    if in_bands := _in_bands(fitted, members):
        results["bands"] = Reading(effect.value - in_bands, judged.plain, -in_bands, Error(0.0))
    for name, other in (("through", fitted.through), ("time", fitted.time), ("office", fitted.office)):
        if other is not None:
            results[name] = reading_of(effect, effect_on(other, members), rule, cluster)
    if fitted.place is not None and effect.members[fitted.place.rows].any():
        results["place"] = fitted.place.reading(effect, cluster)
    odds = odds_of_membership(rule.x, members, rule.reference) if rules.beside or rules.parts else None
    if rules.beside and odds is not None:
        value, influence = targeted(rule, effect, odds)
        results["targeted"] = Reading(
            value,
            error_of(influence, members, rule.reference, cluster),
            value - effect.value,
            error_of(influence - effect.influence, members, rule.reference, cluster),
        )
    return Examined(
        group,
        *_counts(rows, group),
        *_counts(rows, files.reference),
        effect=effect,
        judged=judged,
        explained=rule.explained,
        no_noise=rule.no_noise,
        readings=results,
        excess=excess,
        left_out=tuple(left_out),
        depends=depends,
        terms=fitted.design.terms,
        odds=odds,
        carriers=fitted.carriers.on(members),
    )


def _with_parts(
    fitted: _Fitted, groups: Sequence[Examined], rules: PartRules, rng: np.random.Generator
) -> list[Examined]:
    """The groups with their parts, which share one critical value.

    Parts rest on the rule with the quarters, and with few branches: a lender that gets stricter over the year is strict
    with whoever applies late, in every part.
    """
    rule = fitted.inside
    inside = [
        Inside(g.group, g.effect if rule is fitted.rule else effect_on(rule, g.effect.members), g.odds, g.judged.limit)
        for g in groups
        if g.effect is not None and g.judged is not None and g.odds is not None
    ]
    splits = (*fitted.files.splits, split_of_fifths(rule.p0))
    parts = parts_of(rule, inside, {g.group: splits for g in groups}, fitted.design.cluster, rules, rng)
    return [replace(g, parts=tuple(part for part in parts if part.group == g.group)) for g in groups]


def approval_error(files: Files, group: int) -> Error:
    """The error of the logarithm of the ratio of approval rates, with clusters; NaN where a rate is 0."""
    approved = (~files.denied & ~files.undecided).astype(np.float64)
    sides = [(files.group == g) & ~files.undecided for g in (group, files.reference)]
    influence = np.zeros(len(approved))
    for side, sign in zip(sides, (1, -1), strict=True):
        rate = float(approved[side].mean()) if side.any() else 0.0
        if rate == 0:
            return Error(math.nan)
        influence[side] = sign * (approved[side] - rate) / (rate * int(side.sum()))
    rows = sides[0] | sides[1]
    cluster = None if files.cluster is None else files.cluster[rows]
    return error_of(influence[rows], sides[0][rows], sides[1][rows], cluster)


# --------------------------------------------------------------------------------------------------------------------
# Files that lack a column, and applications without a decision.


def _dependence(decided: Files, complete: Bools, group: int) -> float:
    """The p-value of being complete by the decision in either group, by Bonferroni over both."""
    outcome = decided.denied.astype(np.int32)
    sides = [decided.group == g for g in (group, decided.reference)]
    return min(1.0, 2 * min(p_of_dependence(complete, outcome, side) for side in sides))


def _lacking(decided: Files, effect: Effect, group: int, weighted: Reading) -> Iterator[LeftOut]:
    """Every column that some files of either group do not have."""
    sides = [decided.group == g for g in (group, decided.reference)]
    half = weighted.error.quantile(0.025) * weighted.error.se
    for control in decided.controls:
        lacks = ~np.isfinite(control.values)
        counts = [int((lacks & side).sum()) for side in sides]
        if not any(counts):
            continue
        shares = [
            float(lacks[rows].mean()) if (rows := side & (decided.denied == denied)).any() else 0.0
            for side in sides
            for denied in (True, False)
        ]
        share = counts[0] / int(sides[0].sum())
        of_lacking = decided.denied[lacks & sides[0]]
        worst = worst_of_missing(effect.value, share, float(of_lacking.mean()) if counts[0] else 0.0)
        yield LeftOut(
            what=control.name,
            n=counts[0],
            n_reference=counts[1],
            denied=int(of_lacking.sum()),
            share=share,
            share_reference=counts[1] / int(sides[1].sum()),
            share_denied=shares[0],
            share_approved=shares[1],
            share_denied_reference=shares[2],
            share_approved_reference=shares[3],
            p=_dependence(decided, ~lacks, group),
            estimate=weighted.value,
            low=weighted.value - half,
            high=weighted.value + half,
            worst_low=worst[0],
            worst_high=worst[1],
        )


def _cut_off(files: Files, used: Bools) -> tuple[Control, ...]:
    """The controls of the rows in use, numbers within those of the reference group."""
    reference, rows = files.group[used] == files.reference, slice(None) if used.all() else used
    return tuple(within_reference(replace(c, values=c.values[rows]), reference) for c in files.controls)


def _ended(files: Files, decided: Files) -> dict[int, Undecided] | None:
    """How applications of each group end; None where hardly any without a decision has its columns."""
    controls = tuple(replace(c, scale=of.scale) for c, of in zip(files.controls, decided.controls, strict=True))
    every = replace(files, controls=controls)
    rows = complete_rows(every.applications())
    complete = int((every.undecided & rows.used).sum())
    if complete < every.undecided.sum() / 10 or not (rows.used & (files.group == files.reference)).any():
        return None
    complete_files = replace(every, controls=(), places=(), splits=()).taken(rows.used)
    applications = replace(complete_files, controls=_cut_off(every, rows.used)).applications()
    in_use = np.ones(len(complete_files.denied), np.bool_)
    design = build_design(applications, replace(rows, used=in_use), "squared", packed=len(in_use) > MANY)
    x = some_columns_of(design.matrix, np.r_[0, design.first_control : len(design.names)])
    weight = None
    if not rows.used.all():
        outcome = every.denied.astype(np.int32) + 2 * every.undecided
        sides = [every.group == g for g in range(len(every.groups))]
        weight = weights_of_complete(rows.used, outcome, sides)[rows.used]
    reference = design.group == files.reference
    rules = undecided_rules(x, complete_files.denied, complete_files.undecided, reference, weight)
    members = {group: design.group == group for group in others(every.applications())}
    return {
        group: undecided_effect(rules, of_group, design.cluster)
        for group, of_group in members.items()
        if of_group.any()
    }


def _undecided(files: Files, fitted: _Fitted, effect: Effect, group: int) -> Undecided | None:
    """The excess of applications without a decision; None where neither group has one."""
    sides = [files.group == g for g in (group, files.reference)]
    ended = [int((files.undecided & side).sum()) for side in sides]
    if not any(ended):
        return None
    if fitted.ended is None or group not in fitted.ended:
        counts = [(n, int(side.sum())) for n, side in zip(ended, sides, strict=True)]
        return undecided_rates(counts[0], counts[1], effect)
    return fitted.ended[group]


def _without_decision(files: Files, effect: Effect, excess: Undecided, group: int) -> LeftOut:
    sides = [files.group == g for g in (group, files.reference)]
    counts = [int((files.undecided & side).sum()) for side in sides]
    shares = [n / int(side.sum()) for n, side in zip(counts, sides, strict=True)]
    half = excess.of_denied.quantile(0.025) * excess.of_denied.se
    worst = worst_of_undecided(effect.value, shares[0], effect.expected)
    return LeftOut(
        what="",
        n=counts[0],
        n_reference=counts[1],
        denied=0,
        share=shares[0],
        share_reference=shares[1],
        p=2 * excess.of_excess.tail(abs(excess.excess)),
        estimate=excess.as_denied,
        low=excess.as_denied - half,
        high=excess.as_denied + half,
        worst_low=worst[0],
        worst_high=worst[1],
    )


# --------------------------------------------------------------------------------------------------------------------
# Places as columns beside the rule, and bands.


def _with_places(used: Files, rule: Rule) -> _WithPlaces | None:
    """The rule with places, on some of the rows where they are many; None without places."""
    rows = slice(None, None, 1 + len(rule.y) // PLACE_ROWS)
    of_rows = tuple(replace(place, values=place.values[rows]) for place in used.places)
    columns = _place_columns(of_rows, rule.y[rows])
    if not columns.shape[1]:
        return None
    base = rule
    if rows.step > 1:
        base = rule_of(rule.x[rows], rule.y[rows], rule.reference[rows], start=rule.coefficients)
    return _WithPlaces(rows, base, with_columns(base, columns))


def _place_columns(places: Sequence[Control], y: Floats) -> Floats:
    """``(n, q)`` the places, coded as controls are; the commonest levels have a column each."""
    rows = np.ones(len(y), np.bool_)
    coded = []
    for place in places:
        values = place.values
        if place.kind == "number" and not are_codes(values):
            gone = ~np.isfinite(values)
            filled = np.where(gone, np.nanmean(values) if (~gone).any() else 0.0, values)
            coded += [code_control(replace(place, values=filled), y > 0, rows, "squared").columns]
            coded += [gone[:, None].astype(np.float64)] if gone.any() else []
            continue
        levels, code, counts = np.unique(np.nan_to_num(values, nan=-1.0), return_inverse=True, return_counts=True)
        common = np.argsort(-counts, kind="stable")[: PLACE_LEVELS + 1]
        pooled = np.where(np.isin(code, common), code, len(levels)).astype(np.float64)
        pooled_place = replace(place, kind="category", values=pooled, categories=())
        coded.append(code_control(pooled_place, y > 0, rows, "squared").columns)
    columns = np.hstack(coded) if coded else np.zeros((len(rows), 0))
    return columns[:, columns.any(axis=0)]


def _indicators(used: Files, splits: Sequence[Split], names: Iterable[str]) -> Floats:
    """``(n, q)`` an indicator of every level of some splits but the commonest; none of a control, by ``names``."""
    coded = [np.zeros((len(used.denied), 0))]
    for split in splits:
        if not any(split.column == name or split.column.startswith(f"{name} (") for name in names):
            counts = np.bincount(split.code[split.code >= 0], minlength=len(split.levels))
            common = [level for level in np.argsort(-counts, kind="stable")[1:] if counts[level] >= RARE]
            coded.append((split.code[:, None] == np.array(common, np.int32)).astype(np.float64))
    return np.hstack(coded)


def are_codes(values: Floats) -> bool:
    """Whether a number of places is their code, as a postcode is: whole numbers above 1, on 30 rows each or more."""
    finite = values[np.isfinite(values)]
    if not len(finite) or (finite != np.round(finite)).any() or finite.min() <= 1:
        return False
    return len(np.unique(finite)) * RARE <= len(finite)


def _in_bands(fitted: _Fitted, members: Bools) -> float:
    """What differences inside the bands of all ordered columns may account for; 0 where it is small."""
    rule, design = fitted.rule, fitted.design
    names = [design.names[j] for j in np.r_[0, design.first_control : len(design.names)]]
    total = 0.0
    for control in fitted.files.controls:
        if not control.ordered:
            continue
        code = control.values.astype(np.int32)
        slopes = np.zeros(len(control.categories))
        for band in range(len(slopes)):
            name = level_name(control, float(band))
            slopes[band] = rule.coefficients[names.index(name)] if name in names else 0.0
        total += allowance(code, rule, members, slopes)
    return total if abs(total) > LEAST_ALLOWANCE else 0.0
