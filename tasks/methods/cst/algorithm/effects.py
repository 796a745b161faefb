"""Effects on groups (direct and total), intervals, and randomization tests."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from schemas.terms import Note, Refusal
from tasks.methods.cst.algorithm import neighbours
from tasks.methods.cst.algorithm.contrasts import (
    ADJUSTED,
    LARGEST_LEVERAGE,
    RAW,
    Contrast,
    DeepLists,
    ExcessShare,
    Lists,
    Side,
    Sides,
    contrast,
    designs_of,
    excess_share,
    inverse_of,
    sides_of,
)
from tasks.methods.cst.algorithm.neighbours import Space, index, nearest_rows
from tasks.methods.cst.algorithm.situations import CST, NOBODY, ST, Comparison, SearchSpace, strata_of
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Counterfactuals
from tasks.numerics.results import Aggregate, Inference
from tasks.numerics.statistics import regression
from tasks.numerics.statistics.regression import (
    DesignRows,
    is_poor,
    propensity,
    relabelled,
    sequential_p,
    strata,
)
from tasks.numerics.statistics.sampling import Asked

# --------------------------------------------------------------------------------------------------------------------
# Variance that the estimated causal model adds to CST: it is fitted again to resamples of rows.
#
# No search is repeated. The complainants are moved again, and the mean of z(x^CF)'b is taken with the coefficients b of
# the reference side held fixed. Leaving this out costs 2 to 4 points of coverage.


REFITS = 50
"""Resamples."""

MOST_ROWS = 4_000
"""Rows of a resample; of a larger file the variance is scaled by resampled over all rows (m out of n bootstrap)."""

MOST_COMPLAINANTS = 500
"""Complainants of a group who are moved again: the mean shift of more is no other."""

Again = Callable[[Longs, Longs], Counterfactuals]
"""Moves rows ``(r,)`` by a causal model that is fitted to a sample of rows."""


class Mover(NamedTuple):
    """Complainants of one group and the regression that values their counterfactual changes."""

    row: Longs
    """``(c,)`` complainants with a counterfactual, ascending."""
    counterfactuals: Floats
    """``(c, p)`` their counterfactuals by the model of the audit."""
    reference: Side
    worth: Floats
    """``(c,)`` z(x^CF)'b of each."""

    @classmethod
    def of(cls, row: Longs, counterfactuals: Floats, reference: Side) -> "Mover":
        """The complainants ``(c,)`` of a group, their counterfactuals ``(c, p)``, and the reference side."""
        return cls(row, counterfactuals, reference, reference.design.of(counterfactuals) @ reference.coefficients)

    def some(self, rng: np.random.Generator) -> "Mover":
        """At most ``MOST_COMPLAINANTS`` of them."""
        if len(self.row) <= MOST_COMPLAINANTS:
            return self
        chosen = np.sort(rng.choice(len(self.row), MOST_COMPLAINANTS, replace=False))
        return self._replace(
            row=self.row[chosen], counterfactuals=self.counterfactuals[chosen], worth=self.worth[chosen]
        )

    def shift(self, counterfactuals: Counterfactuals) -> float:
        """Mean change of z(x^CF)'b. A complainant without a counterfactual in this refit counts as unchanged."""
        positions = np.flatnonzero(np.isin(self.row, counterfactuals.row))
        again = counterfactuals.values[np.searchsorted(counterfactuals.row, self.row[positions])]
        change = self.reference.design.of(again) @ self.reference.coefficients - self.worth[positions]
        return float(change.sum()) / max(len(self.row), 1)


def structural_variances(
    again: Again, movers: Sequence[Mover], group: Ints, rng: np.random.Generator, learnt: int | None = None
) -> list[float]:
    """Variance of each group's effect that the causal model's estimation adds.

    Args:
        again: Moves rows by a model fitted to a sample.
        movers: One for each group.
        group: ``(n,)`` labels; each keeps its number of rows in a resample.
        rng: Draws resamples.
        learnt: Rows that the causal model of the audit is fitted to; None: these.
    """
    if not movers:
        return []
    looked = [mover.some(rng) for mover in movers]
    rows = np.unique(np.concatenate([mover.row for mover in looked]))
    size = min(len(group), MOST_ROWS)
    shifts: list[list[float]] = []
    for _ in range(REFITS):
        counterfactuals = again(rows, resample(group, size, rng))
        shifts.append([mover.shift(counterfactuals) for mover in looked])
    variances = np.var(np.array(shifts), axis=0, ddof=1) * size / (learnt or len(group))
    return [float(variance) for variance in variances]


def resample(group: Ints, size: int, rng: np.random.Generator) -> Longs:
    """``size`` rows with replacement, by label in the shares of the file, so that no label is lost; ascending."""
    order = np.argsort(group, kind="stable")
    labels, start, counts = np.unique(group[order], return_index=True, return_counts=True)
    stratum_sizes = np.maximum(1, np.round(counts * (size / len(group))).astype(np.int64))
    parts = [
        order[first + rng.integers(0, many, take)]
        for first, many, take in zip(start.tolist(), counts.tolist(), stratum_sizes.tolist(), strict=True)
    ]
    return np.sort(np.concatenate(parts)) if len(labels) else np.zeros(0, np.int64)


# --------------------------------------------------------------------------------------------------------------------
# Randomization test of situation testing: labels are permuted within strata, and the effect is computed again.
#
# The null: given the stratum, labels do not matter for the decisions. The statistic is the adjusted effect over its
# standard error (studentised), so that strata with more noise weigh no more under one label than under the other.
# Errors come from least squares residuals here, (y_j - z_j'b)^2 / (1 - h_j)^2: a logistic regression for every
# permutation would be most of the cost, and a permutation test is exact with any statistic.
#
# Labels are permuted until so many are at or above the observed one, and as often as the settings say where there are
# fewer (Besag and Clifford 1991): a p that is not small needs no more digits, and the test stays exact.


ENOUGH = 20
"""Permutations at or above the observed statistic with which no more are drawn."""

TOO_MANY_ROWS = "too_many_rows"
"""Reason of a refusal: the search and its permutations would take longer than the rest of the audit."""


class Ground(NamedTuple):
    """The rows of a group and of its reference, ``q`` of them."""

    lists: DeepLists
    z: Floats
    """``(q, d)`` design rows."""
    denied: Floats
    """``(q,)``."""


def randomization_p(ground: Ground, member: Bools, stratum: Longs, draws: int, rng: np.random.Generator) -> float:
    """One-sided p of "no higher than with labels permuted": (1 + #{null >= observed}) / (1 + draws).

    Where 20 are as high after fewer draws, it is 20 / draws.

    Args:
        ground: The rows.
        member: ``(q,)`` members of the group.
        stratum: ``(q,)`` labels are permuted within these.
        draws: Most permutations.
        rng: Permutes labels.

    Returns:
        NaN where the effect cannot be computed.
    """
    observed = studentised(ground, member)
    if not np.isfinite(observed):
        return float("nan")
    null = (studentised(ground, relabelled(member, stratum, rng)) for _ in range(draws))
    return sequential_p(observed, null, ENOUGH)


def studentised(ground: Ground, member: Bools) -> float:
    """The adjusted effect over its standard error under some labels ``(q,)``; NaN where there is none."""
    tested, control, test = ground.lists.shares(member)
    if not tested.any():
        return float("nan")
    target = ground.z[tested].mean(axis=0)
    value = variance = 0.0
    for rows, share, sign in ((member, control, 1.0), (~member, test, -1.0)):
        z, y = ground.z[rows], ground.denied[rows]
        inverse, _ = inverse_of(z)
        weights = share[rows] + z @ (inverse @ (target - z.T @ share[rows]))
        fitted = z @ (inverse @ (z.T @ y))
        leverage = np.minimum(((z @ inverse) * z).sum(axis=1), LARGEST_LEVERAGE)
        value += sign * float(weights @ y)
        variance += float(weights**2 @ ((y - fitted) / (1 - leverage)) ** 2)
    return value / variance**0.5 if variance > 0 else float("nan")


# --------------------------------------------------------------------------------------------------------------------
# Effects of one group from arrays: situation testing (direct) and CST (total), each with its standard error.
#
# Scope: applicants, labels, decisions and counterfactuals in, two effects out; no problem, no settings of an audit
# except those of the search. Aggregates of an audit: ``aggregates``.


TOO_FEW_FOR_ADJUSTMENT = "too_few_for_adjustment"
"""Reason of a refusal: fewer than 10 rows for each column of the regression, on either side."""

TOO_FEW_COMPLAINANTS = str(Refusal.TOO_FEW_NEIGHBOURS)
"""Reason of a refusal: fewer than 2 k complainants, who are each other's only neighbours."""


class EffectOf(NamedTuple):
    """An effect in shares of decisions: 0.05 is five more denials per 100 applicants."""

    value: float
    se: float
    complainants: int
    contrast: Contrast | None
    """The weights; None where the effect is refused."""
    reason: str = ""

    @classmethod
    def refused(cls, complainants: int, reason: str) -> "EffectOf":
        """No effect, and why."""
        return cls(np.nan, np.nan, complainants, None, reason)

    @classmethod
    def of(cls, effect_contrast: Contrast, denied: Floats, variance: Floats) -> "EffectOf":
        """The effect of a contrast on decisions ``(n,)`` with noise ``(n,)``."""
        return cls(
            effect_contrast.value(denied), effect_contrast.se(variance), effect_contrast.complainants, effect_contrast
        )


def effects(
    columns: Columns,
    group_member: Bools,
    denied: Bools,
    counterfactual_values: Floats | None,
    settings: CstSettings,
    again: Callable[[Longs], Floats] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[EffectOf, EffectOf | None]:
    """The effect of situation testing and that of CST on one group against everybody else.

    Args:
        columns: ``n`` applicants, with the columns that equals are alike in; the protected one is not among them.
        group_member: ``(n,)`` members of the group; all others are its reference.
        denied: ``(n,)`` unfavourable decisions.
        counterfactual_values: ``(m, p)`` the members as members of the reference group, by ascending row; None for
            situation testing alone.
        settings: ``k``, the distance and its scaling.
        again: The same ``(m, p)`` by a causal model that is fitted to a sample of rows ``(r,)``; None if the model is
            known, or there is none.
        rng: Draws the samples for ``again``.

    Returns:
        ``st`` and ``cst``; the latter None without counterfactuals.
    """
    row, other_rows = np.flatnonzero(group_member), np.flatnonzero(~group_member)
    has_counterfactuals = counterfactual_values is not None
    if len(row) < 2 * settings.k or len(other_rows) < settings.k:
        refused = EffectOf.refused(len(row), TOO_FEW_COMPLAINANTS)
        return refused, refused if has_counterfactuals else None
    y = denied.astype(np.float64)
    sides = sides_of(designs_of(columns), columns.values, (row, other_rows), y)
    if sides is None:
        refused = EffectOf.refused(len(row), TOO_FEW_FOR_ADJUSTMENT)
        return refused, refused if has_counterfactuals else None
    scale = neighbours.fit(columns, settings, ~denied, group_member)
    space = neighbours.place(columns, scale)
    variance = sides.variance(len(y))
    control = nearest_rows(index(space, row), space.rows(row), settings.k, settings, exclude=row).rows
    st = _contrast(sides, columns.values, Lists(row, control, _around(space, other_rows, space.rows(row), settings)))
    if counterfactual_values is None:
        return EffectOf.of(st, y, variance), None
    counterfactual_space = neighbours.place(
        Columns(columns.names, columns.kinds, columns.categories, counterfactual_values), scale
    )
    lists = Lists(row, control, _around(space, other_rows, counterfactual_space, settings), counterfactual_values)
    cst = _contrast(sides, columns.values, lists)
    if again is not None:
        mover = Mover.of(row, counterfactual_values, sides.other)
        cst = _with_refits(cst, mover, again, group_member, rng or np.random.default_rng(0))
    return EffectOf.of(st, y, variance), EffectOf.of(cst, y, variance)


def _around(space: Space, other_rows: Longs, centres: Space, settings: CstSettings) -> Longs:
    return nearest_rows(index(space, other_rows), centres, settings.k, settings).rows


def _contrast(sides: Sides, values: Floats, lists: Lists) -> Contrast:
    """The contrast of the complainants who have ``k`` neighbours on both sides."""
    full = (lists.control >= 0).all(axis=1) & (lists.test >= 0).all(axis=1)
    counterfactual_rows = None if lists.counterfactuals is None else lists.counterfactuals[full]
    return contrast(sides, values, Lists(lists.row[full], lists.control[full], lists.test[full], counterfactual_rows))


def _with_refits(
    cst: Contrast, mover: Mover, again: Callable[[Longs], Floats], member: Bools, rng: np.random.Generator
) -> Contrast:
    def made(rows: Longs, sample: Longs) -> Counterfactuals:
        chosen = np.searchsorted(mover.row, rows)
        return Counterfactuals(rows, again(sample)[chosen], None)

    (structural,) = structural_variances(made, [mover], member.astype(np.int32), rng)
    return cst.estimated(structural)


# --------------------------------------------------------------------------------------------------------------------
# Effects on every group of an audit, from the searches that it made already.
#
# Scope: contrasts of each group and the variance of the causal model. Aggregates: ``aggregates``.


MATCHED = 0.5
"""Share of a group that must have neighbours on both sides (ours)."""


@dataclass(frozen=True)
class Frame:
    """The rows of an audit as the effects of all its groups see them."""

    ground: SearchSpace
    sample: Asked | None = None
    """The complainants of a sample; None: all."""

    @property
    def settings(self) -> CstSettings:
        """Settings of the method."""
        return self.ground.settings

    @cached_property
    def columns(self) -> Columns:
        """What equals are alike in: the columns of the distance."""
        applicants = self.ground.applicants
        return neighbours.looked_at(applicants.columns, self.settings, applicants.attribute_columns)

    @cached_property
    def imagined(self) -> Counterfactuals | None:
        """Counterfactuals with these columns alone."""
        counterfactuals = self.ground.applicants.counterfactuals
        return None if counterfactuals is None else self.of_columns(counterfactuals)

    @cached_property
    def designs(self) -> tuple[DesignRows, DesignRows]:
        """Design rows with squares and without."""
        return designs_of(self.columns)

    @cached_property
    def denied(self) -> Floats:
        """``(n,)`` 1 for an unfavourable decision."""
        return self.ground.refused.astype(np.float64)

    def of_columns(self, counterfactuals: Counterfactuals) -> Counterfactuals:
        """Counterfactuals with the columns of the distance alone."""
        applicants = self.ground.applicants
        columns = replace(applicants.columns, values=counterfactuals.values)
        values = neighbours.looked_at(columns, self.settings, applicants.attribute_columns).values
        return replace(counterfactuals, values=values)

    def rows(self, group: int) -> tuple[Longs, Longs]:
        """The rows of a group and of its comparison group."""
        labels, crossed = self.ground.group, self.ground.applicants.crossed
        other = labels != group if crossed else labels == self.ground.reference
        return np.flatnonzero(labels == group), np.flatnonzero(other)


@dataclass(frozen=True)
class GroupEffects:
    """The effects on one group."""

    group: int
    rows: tuple[Longs, Longs]
    """Of the group, and of its comparison group."""
    variants: tuple[str, ...]
    """``st``, and ``cst`` where complainants were imagined."""
    reason: str = ""
    """Why there are none; empty where there are."""
    sides: Sides | None = None
    contrasts: tuple[Contrast, ...] = ()
    """By variant."""
    mover: Mover | None = None
    """Of CST."""
    queried: int | None = None
    """Queried members; None: all."""

    @property
    def complainants(self) -> int:
        """Queried members of the group."""
        return len(self.rows[0]) if self.queried is None else self.queried


def with_refits(frame: Frame, effects: Sequence[GroupEffects], rng: np.random.Generator) -> list[GroupEffects]:
    """The effects on every group, with the variance of the causal model in those of CST.

    Args:
        frame: The rows.
        effects: The groups.
        rng: Draws resamples.
    """
    structural = [effect for effect in effects if effect.mover is not None]
    imagine, group = frame.ground.applicants.imagine, frame.ground.group
    if imagine is None or frame.settings.generator != "scm" or not structural:
        return list(effects)
    ask = imagine

    def again(rows: Longs, sample: Longs) -> Counterfactuals:
        return frame.of_columns(ask(rows, group, None, sample))

    movers = [effect.mover for effect in structural if effect.mover]
    variances = structural_variances(again, movers, group, rng, frame.sample.total if frame.sample else None)
    by_group = {effect.group: variance for effect, variance in zip(structural, variances, strict=True)}
    estimated = []
    for effect in effects:
        if effect.mover is not None:
            cst = effect.contrasts[-1].estimated(by_group.get(effect.group, 0.0))
            effect = replace(effect, contrasts=(*effect.contrasts[:-1], cst))
        estimated.append(effect)
    return estimated


def of_group(frame: Frame, group: int, compared: Comparison, earlier_effects: Sequence[GroupEffects]) -> GroupEffects:
    """The effects on one group.

    Args:
        frame: The rows.
        group: The group.
        compared: Its searches, with its neighbours.
        earlier_effects: The groups before it, where searches start.
    """
    near = None
    if not frame.ground.applicants.crossed:
        near = next((e.sides for e in reversed(earlier_effects) if e.sides), None)
    rows = frame.rows(group)
    variants = (ST, CST) if frame.imagined is not None else (ST,)
    none = GroupEffects(group, rows, variants, queried=len(compared.row))
    lists = [_lists(frame, compared, variant) for variant in variants]
    least = max(2 * frame.settings.k, math.ceil(MATCHED * len(compared.row)))
    if any(len(neighbour_list.row) < least for neighbour_list in lists):
        return replace(none, reason=TOO_FEW_COMPLAINANTS)
    sides = sides_of(frame.designs, frame.columns.values, rows, frame.denied, near)
    if sides is None:
        return replace(none, reason=TOO_FEW_FOR_ADJUSTMENT)
    part = None if frame.sample is None else frame.sample.part(group)
    contrasts = tuple(contrast(sides, frame.columns.values, neighbour_list, part) for neighbour_list in lists)
    last, sides = lists[-1], sides.lean()
    mover = None if last.counterfactuals is None else Mover.of(last.row, last.counterfactuals, sides.other)
    return replace(none, sides=sides, contrasts=contrasts, mover=mover)


def _lists(frame: Frame, compared: Comparison, variant: str) -> Lists:
    """The members of both groups at ``settings.k``, of the complainants who have both."""
    alone = variant == ST
    place = np.arange(len(compared.row)) if alone else compared.tested
    control, test = compared.control.members.rows[place], (compared.factual if alone else compared.test).members.rows
    full = (control[:, 0] != NOBODY) & (test[:, 0] != NOBODY)
    row = compared.row[place][full]
    counterfactual_values = None
    if not alone and frame.imagined is not None:
        counterfactual_values = frame.imagined.values[np.searchsorted(frame.imagined.row, row)]
    return Lists(row, control[full], test[full], counterfactual_values)


# --------------------------------------------------------------------------------------------------------------------
# Aggregates of the effects on every group: values, intervals at 95 %, and what verdicts rest on.


LEVEL = 0.95

SUPPORT = "support"
"""Share of complainants with comparable applicants in the comparison group."""

FEW = 300
"""Complainants below which an excess share whose interval holds 0 says nothing (spread between twins 0.05 to 0.1)."""

LEFT_OUT = {
    "nearest": "its interval leaves out how matches were chosen, by the decision among others",
    "gan": "no interval: the generator is not fitted again",
    "quantile": "no interval: the generator is not fitted again",
}
"""By generator, what the error of CST leaves out; it has no entry where nothing is left out."""


def aggregates(
    frame: Frame,
    effects: Sequence[GroupEffects],
    rng: np.random.Generator,
    saturated: tuple[Frame, Sequence[GroupEffects]] | None = None,
) -> list[Aggregate]:
    """All effects of an audit: of every group, without parameters, at ``settings.k``.

    Args:
        frame: Rows, labels and counterfactuals.
        effects: The groups.
        rng: Draws resamples and permutes labels.
        saturated: The same rows and groups with counterfactuals under the saturated graph.
    """
    refits, permutations, of_saturated = rng.spawn(3)
    out: list[Aggregate] = []
    estimated = with_refits(frame, effects, refits)
    if saturated is not None:
        again = with_refits(*saturated, of_saturated)
        for group_effects, other in zip(estimated, again, strict=True):
            out += _saturated(frame, group_effects, other)
    for group_effects in estimated:
        out += _effects(frame, group_effects)
        out += _excess(frame, group_effects)
        out += _randomized(frame, group_effects, permutations.spawn(1)[0])
    return out


def _effects(frame: Frame, group_effects: GroupEffects) -> Iterator[Aggregate]:
    """The effect of each variant, and their difference: what goes through the mediators of the graph."""
    if group_effects.sides is None:
        names = [f"{variant}_effect" for variant in group_effects.variants]
        for name in (*names, *["mediated_effect"] * (CST in group_effects.variants)):
            yield _aggregate(
                frame, group_effects, name, EffectOf.refused(group_effects.complainants, group_effects.reason)
            )
        yield from (_support(group_effects, variant, math.nan) for variant in group_effects.variants)
        return
    variance = group_effects.sides.variance(len(frame.denied))
    shares = dict(zip(group_effects.variants, supports(frame, group_effects), strict=False))
    for variant, estimate in zip(group_effects.variants, group_effects.contrasts, strict=True):
        effect = _aggregate(frame, group_effects, f"{variant}_effect", EffectOf.of(estimate, frame.denied, variance))
        yield _with_support(effect, shares[variant])
        yield _support(group_effects, variant, shares[variant])
    if CST in group_effects.variants:
        st, cst = group_effects.contrasts
        between = _aggregate(frame, group_effects, "mediated_effect", EffectOf.of(cst.less(st), frame.denied, variance))
        yield _with_support(between, min(shares.values()))


def supports(frame: Frame, group_effects: GroupEffects) -> list[float]:
    """Share of a group with comparable applicants, by variant: as they are (ST), and as counterfactuals (CST).

    By the columns of the distance; with squares where there are rows enough.
    """
    rows = np.sort(np.concatenate(group_effects.rows))
    member = frame.ground.group[rows] == group_effects.group
    counterfactuals = None if group_effects.mover is None else group_effects.mover.counterfactuals
    content = hashlib.sha256(SUPPORT.encode() + frame.columns.values.tobytes())
    for array in (rows, member, np.zeros(0) if counterfactuals is None else counterfactuals):
        content.update(np.asarray(array).tobytes())
    if (shares_before := frame.ground.waiting.take(content.digest())) is not None:
        shares: list[float] = shares_before.tolist()
        return shares
    shares = [math.nan]
    for design in frame.designs:
        z = design.of(frame.columns.values[rows])
        shares = regression.supports(z, member, None if counterfactuals is None else design.of(counterfactuals))
        if np.isfinite(shares).all():
            break
    frame.ground.waiting.keep(content.digest(), np.array(shares))
    return shares


def _support(group_effects: GroupEffects, variant: str, share: float) -> Aggregate:
    n, reason = group_effects.complainants, group_effects.reason if math.isnan(share) else ""
    return Aggregate(group_effects.group, 0, SUPPORT, {"variant": variant}, share, n, compared=False, reason=reason)


def _with_support(effect: Aggregate, share: float) -> Aggregate:
    """The effect with a note where too few complainants have comparable applicants."""
    reason = "; ".join(filter(None, (effect.reason, Note.POOR_SUPPORT * is_poor(share))))
    return replace(effect, reason=reason)


def _saturated(frame: Frame, group_effects: GroupEffects, other: GroupEffects) -> Iterator[Aggregate]:
    """The total effect under the saturated graph, and how far it lies above that under the graph of the spec.

    The error of the difference adds those of both causal models, as if they were fitted to different rows.
    """
    names = ("saturated_effect", "saturated_shift")
    if group_effects.sides is None or other.sides is None:
        refused = EffectOf.refused(other.complainants, group_effects.reason or other.reason)
        yield from (_aggregate(frame, other, name, refused) for name in names)
        return
    variance = other.sides.variance(len(frame.denied))
    assumed, saturated = group_effects.contrasts[-1], other.contrasts[-1]
    difference = saturated.estimated(saturated.structural + assumed.structural).less(assumed)
    for name, estimate in zip(names, (saturated, difference), strict=True):
        yield _aggregate(frame, other, name, EffectOf.of(estimate, frame.denied, variance))


def _excess(frame: Frame, group_effects: GroupEffects) -> Iterator[Aggregate]:
    """Excess shares, without a verdict. A note marks few complainants with an interval that contains 0."""
    n = group_effects.complainants
    for place, variant in enumerate(group_effects.variants):
        for numerator in (RAW, ADJUSTED):
            share = ExcessShare(reason=group_effects.reason)
            if group_effects.sides is not None:
                estimate, rows = group_effects.contrasts[place], group_effects.rows[0]
                variance = group_effects.sides.variance(len(frame.denied))
                share = excess_share(estimate, rows, frame.denied, variance, numerator, LEVEL)
            left_out = LEFT_OUT.get(frame.settings.generator, "") if variant == CST and np.isfinite(share.value) else ""
            interval = None if left_out.startswith("no interval") else share.interval
            few = interval is not None and interval[0] < 0 < interval[1] and n < FEW
            notes = (share.reason, left_out, f"fewer than {FEW} complainants" * few)
            yield Aggregate(
                group=group_effects.group,
                subgroup=0,
                measure="excess_share_of_denials",
                parameters={"numerator": numerator, "variant": variant},
                value=share.value,
                n=n,
                compared=False,
                reason="; ".join(note for note in notes if note),
                interval=interval,
            )


def _aggregate(frame: Frame, group_effects: GroupEffects, measure: str, effect: EffectOf) -> Aggregate:
    """An effect with its interval; without one where its error is not known, and then no verdict rests on it."""
    left_out = LEFT_OUT.get(frame.settings.generator, "") if measure in ("cst_effect", "mediated_effect") else ""
    half = float(norm.ppf((1 + LEVEL) / 2)) * effect.se
    has_interval = effect.se > 0 and not left_out.startswith("no interval")
    notes = (effect.reason, left_out if np.isfinite(effect.value) else "")
    inference = None
    if has_interval and not left_out:
        (n, denials), (other_n, other_denials) = (
            (len(rows), int(frame.denied[rows].sum())) for rows in group_effects.rows
        )
        inference = Inference(se=effect.se, counts=(n, denials, other_n, other_denials))
    return Aggregate(
        group=group_effects.group,
        subgroup=0,
        measure=measure,
        parameters={},
        value=effect.value,
        n=effect.complainants,
        compared=False,
        reason="; ".join(note for note in notes if note),
        interval=(effect.value - half, effect.value + half) if has_interval else None,
        inference=inference,
    )


def _randomized(frame: Frame, group_effects: GroupEffects, rng: np.random.Generator) -> Iterator[Aggregate]:
    """The p of situation testing with labels permuted; every decision maker sees the same permutations."""
    settings, rows = frame.settings, np.sort(np.concatenate(group_effects.rows))
    if not settings.null_draws:
        return
    p, reason = float("nan"), group_effects.reason
    if not reason and len(rows) > settings.null_rows:
        reason = TOO_MANY_ROWS
    sides = group_effects.sides
    if not reason and sides is not None and not sides.unchanging:
        member = frame.ground.group[rows] == group_effects.group
        z = sides.group.design.of(frame.columns.values[rows])
        stratum = strata(propensity(z, member))
        if settings.null == "labels":
            stratum = strata_of(frame.columns, frame.ground.applicants.reached)[rows]
        lists = DeepLists.of(frame.ground.space.rows(rows), int(member.sum()), settings, frame.ground.waiting)
        ground = Ground(lists, z, frame.denied[rows])
        p = randomization_p(ground, member, stratum, settings.null_draws, rng)
    n = group_effects.complainants
    yield Aggregate(group_effects.group, 0, "st_effect_p", {}, p, n, compared=False, reason=reason)
