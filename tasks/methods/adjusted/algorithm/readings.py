"""Other readings of one effect: files left out, applications without a decision, places, branches and bands.

The effect rests on files that are complete and decided, on controls as they are declared, and on bands in place of
figures. Each reading is the same estimate made otherwise; where the two may differ by more than chance, the state is
read from the hull of either_side intervals.

Scope: estimates and errors. Which rows and columns: ``examined``. States and sentences: ``tasks.metrics``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2, norm

from tasks.methods.adjusted.algorithm.expected import Effect, Error, Rule, effect_on, error_of, rule_of
from tasks.numerics.arrays import Bools, Floats, Ints, Matrix, Packed, some_columns_of
from tasks.numerics.statistics.regression import area_under_curve, fit_logit

DEPENDS = 0.10
"""Below this p, over both groups by Bonferroni, missing depends on the decision: the hull has the weighted files."""
LEAST_DECIDED = 0.5
"""Share of applications that the reference group's rule decides, at least, by which the effect over all is divided."""
CARRIER_ROWS = 20_000
"""Rows by which carriers are told; of more, every so many-th."""


@dataclass(frozen=True)
class Reading:
    """An estimate of the effect made otherwise, and how far it lies from the judged one."""

    value: float
    error: Error
    difference: float
    """Less the judged one."""
    of_difference: Error


def reading_of(judged: Effect, other: Effect, rule: Rule, cluster: Ints | None) -> Reading:
    """Another estimate on the same rows."""
    sides = judged.members, rule.reference, cluster
    return Reading(
        other.value,
        error_of(other.influence, *sides),
        other.value - judged.value,
        error_of(other.influence - judged.influence, *sides),
    )


# --------------------------------------------------------------------------------------------------------------------
# Files that lack a column: the complete ones as they are, and weighted to be all of their group and decision.


def p_of_dependence(complete: Bools, outcome: Ints, rows: Bools) -> float:
    """Chi-square p of being complete by the decision, over some rows; 1 where either does not vary."""
    width = int(outcome.max(initial=0)) + 1
    cells = complete[rows] * width + outcome[rows]
    table = np.bincount(cells, minlength=2 * width).reshape(2, width).astype(np.float64)
    table = table[:, table.sum(axis=0) > 0]
    if (table.sum(axis=1) == 0).any() or table.shape[1] < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1))


def weights_of_complete(complete: Bools, outcome: Ints, sides: Sequence[Bools]) -> Floats:
    """``(n,)`` one over the share of complete files of a row's side and decision; 1 where none is complete."""
    weight = np.ones(len(complete))
    for side in sides:
        for value in np.unique(outcome[side]):
            alike = side & (outcome == value)
            share = float(complete[alike].mean())
            weight[alike] = 1 / share if share > 0 else 1.0
    return weight


# --------------------------------------------------------------------------------------------------------------------
# Applications without a decision: how much oftener the group's end so, and the effect if the excess counts as denied.


@dataclass(frozen=True)
class Undecided:
    """Applications that ended without a decision, of one group."""

    excess: float
    """Share without a decision, less that of similar applicants of the reference group."""
    of_excess: Error
    as_denied: float
    """Effect over all applications, denied or undecided: the excess counts as denied.

    Per application that the reference group's rule would decide: what it leaves undecided as well dilutes the effect.
    """
    of_denied: Error
    as_approved: float
    """The same, denied alone: the excess counts as approved (Horowitz and Manski 2000: it may be either)."""
    of_approved: Error

    @property
    def differs(self) -> bool:
        """Whether the excess differs from 0 at 5 %."""
        return abs(self.excess) > self.of_excess.quantile(0.025) * self.of_excess.se


def undecided_rules(
    x: Matrix, denied: Bools, undecided: Bools, reference: Bools, weight: Floats | None
) -> tuple[Rule, ...]:
    """The reference group's rules of ending without a decision, of ending so or denied, and of ending denied.

    Args:
        x: ``(n, k)`` columns of all applications, intercept first.
        denied: ``(n,)``.
        undecided: ``(n,)``; neither approved nor denied.
        reference: ``(n,)`` of the reference group.
        weight: ``(n,)`` how many files each complete one stands for.
    """
    outcomes = undecided, denied | undecided, denied & ~undecided
    return tuple(rule_of(x, outcome.astype(np.float64), reference, weight) for outcome in outcomes)


def undecided_effect(rules: tuple[Rule, ...], members: Bools, cluster: Ints | None) -> Undecided:
    """All estimates of a group over all applications with complete columns.

    Args:
        rules: as ``undecided_rules`` gives them.
        members: ``(n,)`` of the group.
        cluster: ``(n,)`` from 0, or None.
    """
    excess, *effects = (effect_on(rule, members) for rule in rules)
    decided = max(1 - excess.expected, LEAST_DECIDED)
    values = [effect.value / decided for effect in effects]
    shifted = [effect.influence + value * excess.of_expected for effect, value in zip(effects, values, strict=True)]
    influences = excess.influence, *(of / decided for of in shifted)
    errors = [error_of(of, members, rules[0].reference, cluster) for of in influences]
    return Undecided(excess.value, errors[0], values[0], errors[1], values[1], errors[2])


def undecided_rates(counts: tuple[int, int], reference_counts: tuple[int, int], effect: Effect) -> Undecided:
    """The same by counts alone, ``(undecided, all)`` of both groups, where no undecided file has its columns."""
    share, of_reference = (undecided / n for undecided, n in (counts, reference_counts))
    variance = share * (1 - share) / counts[1] + of_reference * (1 - of_reference) / reference_counts[1]
    squares = float(effect.influence @ effect.influence)
    excess, decided = share - of_reference, max(1 - of_reference, LEAST_DECIDED)
    of_counted = Error(math.sqrt(squares + variance) / decided)
    as_denied, as_approved = (
        (effect.value * (1 - share) + shift) / decided for shift in (excess, -excess * effect.expected)
    )
    return Undecided(excess, Error(math.sqrt(variance)), as_denied, of_counted, as_approved, of_counted)


def worst_of_missing(effect: float, share: float, denied: float) -> tuple[float, float]:
    """Least and largest effect if the rule may give the ``share`` of files without a column any chance."""
    return (1 - share) * effect + share * (denied - 1), (1 - share) * effect + share * denied


def worst_of_undecided(effect: float, share: float, expected: float) -> tuple[float, float]:
    """Least and largest effect if any decision may come on the share without one."""
    return (1 - share) * effect - share * expected, (1 - share) * effect + share * (1 - expected)


# --------------------------------------------------------------------------------------------------------------------
# Columns left out or added: what goes through places, branches and every other column.


def without_columns(rule: Rule, columns: Ints) -> Rule:
    """The rule fitted without some columns."""
    mask = _others(rule, columns)
    return rule_of(some_columns_of(rule.x, mask), rule.y, rule.reference, rule.weight, rule.coefficients[mask])


def _others(rule: Rule, columns: Ints) -> Bools:
    """The columns of a rule but some."""
    mask = np.ones(rule.x.shape[1], np.bool_)
    mask[columns] = False
    return mask


def with_columns(rule: Rule, columns: Floats) -> Rule:
    """The rule fitted with further columns ``(n, q)``."""
    start = np.concatenate([rule.coefficients, np.zeros(columns.shape[1])])
    x = rule.x.beside(columns.T) if isinstance(rule.x, Packed) else np.hstack([rule.x, columns])
    return rule_of(x, rule.y, rule.reference, rule.weight, start)


@dataclass(frozen=True)
class Carrier:
    """What of the effect goes through one column, for information."""

    value: float
    """Effect without the column, less the effect with it."""
    low: float
    high: float
    auc: float
    """How well the column ranks the group's members before the reference group's."""


@dataclass(frozen=True)
class Carriers:
    """Rules without each column in turn, on some of the rows where they are many."""

    rows: slice
    base: Rule
    without: Mapping[str, tuple[Rule, Ints]]
    """Column -> the rule without it, and its columns of the whole rule."""
    cluster: Ints | None

    @classmethod
    def of(cls, rule: Rule, columns: Mapping[str, Ints], cluster: Ints | None) -> "Carriers":
        """The rules, each fitted once for all groups."""
        if not columns:
            return cls(slice(None), rule, {}, cluster)
        rows = slice(None, None, 1 + len(rule.y) // CARRIER_ROWS)
        base = rule_of(rule.x[rows], rule.y[rows], rule.reference[rows], start=rule.coefficients)
        without = {
            name: (replace(without_columns(base, places), x=base.x[:0]), places)  # its columns are those of the base
            for name, places in columns.items()
            if len(places)
        }
        return cls(rows, base, without, None if cluster is None else cluster[rows])

    def on(self, members: Bools) -> dict[str, Carrier]:
        """What of the effect on a group goes through each column."""
        of_group = members[self.rows]
        if not self.without or not of_group.any():
            return {}
        effect, either_side = effect_on(self.base, of_group), of_group | self.base.reference
        out = {}
        for name, (without, places) in self.without.items():
            rule = replace(without, x=some_columns_of(self.base.x, _others(self.base, places)))
            other = reading_of(effect, effect_on(rule, of_group), rule, self.cluster)
            half = float(norm.isf(0.025)) * other.of_difference.se
            of_column = np.ascontiguousarray(self.base.x[either_side][:, places])
            x = np.column_stack([np.ones(len(of_column)), of_column])
            member = of_group[either_side]
            area = area_under_curve(fit_logit(x, member.astype(np.float64), ridge=1e-3).fitted, member)
            out[name] = Carrier(other.difference, other.difference - half, other.difference + half, max(area, 1 - area))
        return out


# --------------------------------------------------------------------------------------------------------------------
# Bands: what a difference of the groups inside the bands of an ordered column may account for.


def allowance(code: Ints, rule: Rule, members: Bools, slopes_of: Floats) -> float:
    """Part of the effect that the members' place inside bands may explain.

    The bands lie on a normal scale by the reference group's shares; the members' shares give their mean and spread
    there, and so the difference of means inside each band. That times the slope of the log odds from band to band, and
    p0 (1 - p0), summed over the members.

    Args:
        code: ``(n,)`` number of the band, from 0.
        rule: of the reference group.
        members: ``(n,)``.
        slopes_of: ``(bands,)`` log odds of denial in each band, all else equal.
    """
    bands = len(slopes_of)
    counts = [np.bincount(code[side], minlength=bands) for side in (rule.reference, members)]
    kept = counts[0] > 0
    if kept.sum() < 3 or not counts[1][kept].sum():
        return 0.0
    share, own = (count[kept] / count[kept].sum() for count in counts)
    cuts = norm.ppf(np.cumsum(share)[:-1])
    half = 0.5 / counts[1][kept].sum()
    members_at = norm.ppf(np.clip(np.cumsum(own)[:-1], half, 1 - half))
    weight = norm.pdf(members_at)
    slope = np.polyfit(cuts, members_at, 1, w=weight) if len(cuts) > 1 else np.array([1.0, members_at[0] - cuts[0]])
    if not slope[0] > 0:
        return 0.0
    spread, mean = 1 / slope[0], -slope[1] / slope[0]
    centre, of_members = _means(cuts, 0.0, 1.0), _means(cuts, mean, spread)
    steep = np.gradient(slopes_of[kept], centre)
    place = np.full(bands, -1)
    place[kept] = np.arange(int(kept.sum()))
    at = place[code[members]]
    p0 = rule.p0[members]
    shift = (steep * (of_members - centre))[at] * p0 * (1 - p0)
    return float(np.where(at >= 0, shift, 0.0).mean())


def _means(cuts: Floats, mean: float, spread: float) -> Floats:
    """Mean of a normal variable between neighbouring cuts."""
    z = (np.concatenate([[-np.inf], cuts, [np.inf]]) - mean) / spread
    chance = np.maximum(np.diff(norm.cdf(z)), 1e-12)
    inside: Floats = mean + spread * -np.diff(norm.pdf(z)) / chance
    low, high = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    return np.clip(inside, low, high)
