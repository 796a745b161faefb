"""Records of a ranking, fair representation, recourse ratio and ranking quality."""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import rel_entr

from schemas.errors import SpecError
from tasks.counterfactuals.algorithm.recourse import Actions, Boundary, Targets, make_actions
from tasks.methods.raguel.algorithm import modification
from tasks.methods.raguel.algorithm.modification import Listed, Rules
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Ranking quality: how far the share of a protected group along a ranking departs from its share overall.
#
# Normalised discounted difference, KL divergence and ratio (rND, rKL, rRD; Yang and Stoyanovich 2017), of one group
# against all others, at the cut points 10, 20, ... with weights ``1 / log2(i)``. Each is divided by the largest value
# of any ranking with as many records and protected records. 0 is perfectly mixed, 1 as separate as possible.


CUT = 10
"""Records between two cut points."""
TOO_SHORT = "the ranking ends at its first cut point, or before it"
ONE_GROUP = "all records, or none, are of the protected group"
MAJORITY = "rRD is defined for a protected minority only"


@dataclass(frozen=True)
class Quality:
    """The metrics of a ranking; NaN where one is not defined, with the reason."""

    rnd: float
    rkl: float
    rrd: float
    reason: str
    """Why a metric has no value; empty if all have one."""


def quality(protected: Bools) -> Quality:
    """The metrics of a ranking.

    Args:
        protected: ``(n,)`` whether the record at each rank is of the protected group.
    """
    n, count = len(protected), int(protected.sum())
    if count in (0, n):
        return Quality(np.nan, np.nan, np.nan, ONE_GROUP)
    if n <= CUT:
        return Quality(np.nan, np.nan, np.nan, TOO_SHORT)
    sums, first, last = map(_sums, (protected, np.arange(n) < count, np.arange(n) >= n - count))
    rnd, rkl = sums[0] / max(first[0], last[0]), sums[1] / max(first[1], last[1])
    if 2 * count > n:
        return Quality(rnd, rkl, np.nan, MAJORITY)
    one_then_all = _sums((np.arange(n) > 0) & (np.arange(n) <= count))
    return Quality(rnd, rkl, sums[2] / max(first[2], last[2], one_then_all[2]), "")


def _sums(protected: Bools) -> tuple[float, float, float]:
    """Weighted sums over the cut points, before they are normalised: of differences, divergences and ratios."""
    n, count = len(protected), int(protected.sum())
    cuts = np.arange(CUT, n + 1, CUT)
    inside: Longs = np.cumsum(protected, dtype=np.int64)[cuts - 1]
    outside = cuts - inside
    difference = np.abs(inside / cuts - count / n)
    # KL((p_i, 1 - p_i) || (p, 1 - p)); rounding may bring it a little below 0 where it is 0
    divergence = np.maximum(rel_entr(inside / cuts, count / n) + rel_entr(1 - inside / cuts, 1 - count / n), 0.0)
    # protected to other records, 0 where there are none of either
    ratio = np.divide(inside, outside, out=np.zeros(len(cuts)), where=outside > 0)
    deviation = np.abs(ratio - count / (n - count))
    weight = np.log2(cuts)
    return float((difference / weight).sum()), float((divergence / weight).sum()), float((deviation / weight).sum())


# --------------------------------------------------------------------------------------------------------------------
# Records of a ranking: positions, targets, costs, and the rules of their modification.
#
# Scope: the list before it is re-ranked. The caller leaves out rows without a cost.


@dataclass(frozen=True)
class Records:
    """``n`` records with ``d`` attributes. Among equal costs the record that comes first here is ranked first."""

    values: Floats
    """``(n, d)``."""
    target: Floats
    """``(n, d)`` counterfactual points."""
    cost: Floats
    """``(n,)`` recourse costs."""
    rate: Floats
    """``(n,)`` cost per unit of distance, see ``Targets``."""
    group: Ints
    """``(n,)``."""
    rules: Rules

    def rows(self, chosen: Longs) -> "Records":
        """The same of some records, ``(r,)``."""
        return Records(
            self.values.take(chosen, axis=0),
            self.target.take(chosen, axis=0),
            self.cost.take(chosen),
            self.rate.take(chosen),
            self.group.take(chosen),
            self.rules,
        )

    def listed(self, order: Longs) -> Listed:
        """Records by rank, ``(n,)``, as the kernels read them; these are copies and may be written over."""
        ranked = self.rows(order)
        return modification.listed(ranked.cost, ranked.group, ranked.values, ranked.target, ranked.rate)

    def ranked(self) -> Longs:
        """``(n,)`` records by rank: ascending cost, then as they come.

        Sorted without regard to ties, which are put in order afterwards: several times as fast as a stable sort.
        """
        order = np.argsort(self.cost)
        cost = self.cost[order]
        same = cost[1:] == cost[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        order[tied] = order[tied][np.lexsort((order[tied], cost[tied]))]
        return order


def make_records(
    values: Floats, targets: Targets, group: Ints, actions: Actions, boundary: Boundary | None = None, together: int = 3
) -> Records:
    """Records with their targets, and the rules by which they are modified.

    Args:
        values: ``(n, d)``.
        targets: Of the same records; all reached.
        group: ``(n,)``.
        actions: Weights and steps; bounds and directions are kept because no attribute passes its target.
        boundary: Where given, a modified record costs the cheapest way from where it is to the boundary, as
            ``to_boundary`` has it. Otherwise, as for targets in steps or from elsewhere, what is left to its target.
        together: Most attributes that one offer changes (the paper shows the order for up to three).

    Raises:
        ValueError: If a record has no cost, lengths differ or fewer than one attribute may be changed together.
    """
    if not (len(values) == len(targets.cost) == len(group)) or not targets.reached.all() or together < 1:
        raise ValueError(
            f"{len(values)} records, {len(targets.cost)} targets ({int(targets.reached.sum())} reached), "
            f"{len(group)} groups, {together} attributes together; leave refused records out first"
        )
    line = boundary or Boundary(np.zeros(len(actions.weight)), 0.0)
    order = np.argsort(actions.weight, kind="stable")
    rules = Rules(
        order[actions.changeable[order]].astype(np.int64),
        actions.step,
        actions.weight,
        line.under(actions),
        boundary is not None,
        boundary is None or actions.unbounded,
        float(np.sqrt(line.pull(actions) @ line.slope)),
        together,
    )
    return Records(
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(targets.point, np.float64),
        np.ascontiguousarray(targets.cost, np.float64),
        np.ascontiguousarray(targets.rate, np.float64),
        np.ascontiguousarray(group, np.int32),
        rules,
    )


def of_costs(cost: Floats, group: Ints) -> Records:
    """Records with known costs alone: each has its cost as its one attribute, which may fall by any amount to 0."""
    values = np.ascontiguousarray(cost, np.float64)[:, None]
    targets = Targets(np.zeros_like(values), values[:, 0], np.ones(len(values)))
    return make_records(values, targets, group, make_actions([1.0]))


# --------------------------------------------------------------------------------------------------------------------
# Counts and costs of the groups of a list during re-ranking: fair representation and recourse ratio.
#
# Scope: kernels that run at every record. Finished lists: ``representation`` and ``ratios``.


ROUNDING = 1e-9
"""By which a count may lie outside its bounds, and by what part of itself a ratio may fall or a cost exceed an edge."""


class Bounds(NamedTuple):
    """Shares of the groups and how far a list may depart from them. A tuple, because numba takes tuples."""

    shares: Floats
    """``(g,)`` of the whole database."""
    bounded: Bools
    """``(g,)`` groups with a bounded count: all but the reference group."""
    tolerance: float


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def within(bounds: Bounds, group: int, size: int) -> tuple[float, float]:
    """Least and largest count of a group in a fairly represented set of ``size`` records (Definition 3.1).

    The whole numbers within ``(p +- t p) size``; if there are none, those next to ``p size``.
    """
    middle = bounds.shares[group] * size
    low = np.ceil(middle * (1.0 - bounds.tolerance) - ROUNDING)
    high = np.floor(middle * (1.0 + bounds.tolerance) + ROUNDING)
    if low > high:
        return np.floor(middle), np.ceil(middle)
    return low, high


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def violation(bounds: Bounds, counts: Longs, size: int) -> float:
    """By how many records the groups of a set are out of their bounds together; a singleton never is."""
    total = 0.0
    if size < 2:
        return total
    for group in range(counts.shape[0]):
        if bounds.bounded[group]:
            low, high = within(bounds, group, size)
            total += max(0.0, low - counts[group], counts[group] - high)
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def violation_with(bounds: Bounds, counts: Longs, size: int, joins: int, leaves: int) -> float:
    """``violation`` after a record of one group has joined and one of another has left (-1: none), of ``size`` then."""
    counts[joins] += 1
    if leaves >= 0:
        counts[leaves] -= 1
    total = float(violation(bounds, counts, size))
    counts[joins] -= 1
    if leaves >= 0:
        counts[leaves] += 1
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def ratio(counts: Longs, sums: Floats) -> float:
    """``r = min_g C_g / max_g C_g`` over the groups that are present (Equations 1 and 4); 1 if all means are 0."""
    least, most = np.inf, 0.0
    for group in range(counts.shape[0]):
        if counts[group] > 0:
            mean = sums[group] / counts[group]
            least, most = min(least, mean), max(most, mean)
    return least / most if most > 0.0 else 1.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def ratio_with(counts: Longs, sums: Floats, joins: int, cost: float) -> float:
    """``ratio`` after a record of a group has joined."""
    counts[joins] += 1
    sums[joins] += cost
    new_ratio = float(ratio(counts, sums))
    counts[joins] -= 1
    sums[joins] -= cost
    return new_ratio


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def interval(
    counts: Longs, sums: Floats, joins: int, leaves: int, leaving_cost: float, least_ratio: float
) -> tuple[float, float]:
    """What a record may cost that joins one group while one of another leaves, so that the ratio does not fall.

    Equation 3 with both its ends, and for several groups. With ``m`` and ``M`` the least and the largest mean of the
    other groups after the swap, and ``n`` records of mean ``C`` in the group that is joined,
    ``(n + 1) r M - n C <= c <= (n + 1) m / r - n C``, ``r`` being the ratio before or ``least_ratio`` if that is more.
    Where the ratio before is 0 or not about this group, whatever it is then, only ``least_ratio`` binds.

    Args:
        counts: ``(g,)`` records of each group before the swap.
        sums: ``(g,)`` their costs.
        joins: Group of the record that comes.
        leaves: Group of the record that goes.
        leaving_cost: Cost of the record that goes.
        least_ratio: Ratio that is asked for in any case; 0 for none.

    Returns:
        Least and largest cost; nothing lies between them where the swap cannot be had.
    """
    least, most = np.inf, 0.0
    others_cost = False
    for group in range(counts.shape[0]):
        n, total = counts[group], sums[group]
        if group == joins:
            continue
        others_cost = others_cost or (n > 0 and total > 0.0)
        if group == leaves:
            n, total = n - 1, total - leaving_cost
        if n > 0:
            mean = max(total, 0.0) / n
            least, most = min(least, mean), max(most, mean)
    n, total = counts[joins], sums[joins]
    least_allowed = least_ratio
    if n > 0 and total > 0.0 and others_cost:
        least_allowed = max(least_allowed, ratio(counts, sums))
    if least_allowed == 0.0 or least == np.inf:
        return 0.0, np.inf
    if least < least_allowed * most * (1.0 - ROUNDING):
        return np.inf, -np.inf
    low, high = (n + 1) * least_allowed * most * (1.0 - ROUNDING), (n + 1) * least / least_allowed * (1.0 + ROUNDING)
    return max(0.0, low - total), high - total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def intervals(
    bounds: Bounds,
    counts: Longs,
    sums: Floats,
    unfair: float,
    may_join: Bools,
    leaves: int,
    leaving_cost: float,
    least_ratio: float,
    edge: float,
) -> tuple[Floats, Floats]:
    """Of each group what one of its records may cost that joins while another leaves, ``(g,)`` twice.

    Args:
        bounds: Of the counts.
        counts: ``(g,)`` records of each group before.
        sums: ``(g,)`` their costs.
        unfair: The violation before; it has to become less.
        may_join: ``(g,)`` groups that may join at all.
        leaves: Group of the record that goes.
        leaving_cost: Its cost.
        least_ratio: Ratio that is asked for in any case; 0 for none.
        edge: Largest cost in any case.

    Returns:
        Least and largest cost; the least is larger where no record of the group may come.
    """
    floors, limits = np.full(counts.shape[0], np.inf), np.full(counts.shape[0], -np.inf)
    size = counts.sum()
    for joins in range(counts.shape[0]):
        if may_join[joins] and violation_with(bounds, counts, size, joins, leaves) < unfair:
            floors[joins], limits[joins] = interval(counts, sums, joins, leaves, leaving_cost, least_ratio)
            limits[joins] = min(limits[joins], edge * (1.0 + ROUNDING))
    return floors, limits


# --------------------------------------------------------------------------------------------------------------------
# Fair representation: is the count of every group in a set within its bounds (Definitions 3.1 and 3.2)?
#
# A set of ``m`` records represents a protected group of share ``p`` fairly if its count lies within ``(p +- t p) m``. A
# ranking does if every prefix of two records or more does. Scope: bounds, and checks of finished lists.


@dataclass(frozen=True)
class Representation:
    """What a list is held against."""

    shares: Floats
    """``(g,)`` share of each group in the whole database."""
    bounded: Bools
    """``(g,)`` the groups with a bounded count: all but the reference group."""
    tolerance: float
    """``t``: the count of a group may depart by this share of what it should be."""

    @property
    def bounds(self) -> Bounds:
        """As the kernels read it."""
        return Bounds(self.shares, self.bounded, self.tolerance)


def representation(group: Ints, groups: int, reference: int, tolerance: float = 1 / 3) -> Representation:
    """Bounds from the shares of the groups.

    Args:
        group: ``(n,)`` group of each record.
        groups: Number of groups.
        reference: The group whose count is not bounded.
        tolerance: ``t`` in (0, 1].

    Raises:
        SpecError: If the tolerance is outside (0, 1].
    """
    if not 0 < tolerance <= 1:
        raise SpecError(f"the tolerance is {tolerance:g}; it has to be above 0 and at most 1, such as 1/3")
    shares = np.bincount(group, minlength=groups) / max(len(group), 1)
    return Representation(shares, np.arange(groups) != reference, float(tolerance))


def fair_blocks(representation: Representation, group: Ints, block: Longs) -> Bools:
    """Whether each block is fairly represented.

    Args:
        representation: The bounds.
        group: ``(n,)`` group of each record.
        block: ``(n,)`` block of each record, from 0.
    """
    groups = len(representation.shares)
    counts = np.bincount(block * groups + group, minlength=(int(block.max(initial=-1)) + 1) * groups)
    fair: Bools = _fair_counts(representation.bounds, counts.reshape(-1, groups).astype(np.int64))
    return fair


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fair_counts(bounds: Bounds, counts: Longs) -> Bools:
    fair = np.ones(counts.shape[0], np.bool_)
    for block in range(counts.shape[0]):
        fair[block] = violation(bounds, counts[block], counts[block].sum()) == 0.0
    return fair


# --------------------------------------------------------------------------------------------------------------------
# The recourse ratio: how equal the groups' mean recourse costs are (Definition 3.3, Equations 1 and 4).
#
# ``r = min_g C_g / max_g C_g``; 1 is equal. An absent group is left out. The ratio is 1 as well if all means are 0 or
# fewer than two groups are present. Scope: finished lists, their prefixes and their blocks.


def group_means(cost: Floats, group: Ints, groups: int) -> Floats:
    """``(g,)`` mean recourse cost of each group, NaN where it is absent."""
    counts = np.bincount(group, minlength=groups)
    means: Floats = np.divide(
        np.bincount(group, cost, minlength=groups), counts, out=np.full(groups, np.nan), where=counts > 0
    )
    return means


def worst_off(cost: Floats, group: Ints, groups: int) -> int:
    """The group with the largest mean recourse cost; the first of them if there are several."""
    return int(np.argmax(np.nan_to_num(group_means(cost, group, groups), nan=-np.inf)))


def overall(cost: Floats, group: Ints) -> float:
    """The ratio of all records: costs ``(n,)`` and groups ``(n,)``."""
    return float(of_blocks(cost, group, np.zeros(len(cost), np.int64))[0]) if len(cost) else 1.0


def of_blocks(cost: Floats, group: Ints, block: Longs) -> Floats:
    """The ratio within each block, from 0 to the last ``(b,)``."""
    groups = int(group.max(initial=0)) + 1
    cell, cells = block * groups + group, (int(block.max(initial=-1)) + 1) * groups
    means = group_means(cost, cell, cells).reshape(-1, groups)
    present = np.isfinite(means)
    most = np.where(present, means, -np.inf).max(axis=1, initial=-np.inf)
    least = np.where(present, means, np.inf).min(axis=1, initial=np.inf)
    ratios: Floats = np.divide(least, most, out=np.ones(len(most)), where=most > 0)
    return ratios


def of_prefixes(cost: Floats, group: Ints) -> Floats:
    """The ratio of each prefix: costs ``(n,)`` and groups ``(n,)`` by rank."""
    prefix_ratios: Floats = _of_prefixes(np.ascontiguousarray(cost), np.ascontiguousarray(group, np.int32))
    return prefix_ratios


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _of_prefixes(cost: Floats, group: Ints) -> Floats:
    groups = 0
    for place in range(group.shape[0]):
        groups = max(groups, group[place] + 1)
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
    prefix_ratios = np.empty(cost.shape[0])
    for place in range(cost.shape[0]):
        counts[group[place]] += 1
        sums[group[place]] += cost[place]
        prefix_ratios[place] = ratio(counts, sums)
    return prefix_ratios
