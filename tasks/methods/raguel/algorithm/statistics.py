"""Units, tallies and aggregates of RAGUEL, and the ratio of recourse costs."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from tasks.baselines.rankings import Listed, fair_star
from tasks.counterfactuals.algorithm.recourse import Actions, make_actions
from tasks.methods.raguel.algorithm import representation
from tasks.methods.raguel.algorithm.lists import LIST, TOO_MANY, Cell, Order, Ranked
from tasks.methods.raguel.algorithm.representation import Representation, fair_blocks, quality
from tasks.methods.raguel.algorithm.reranking import ranks
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Scale, encode_continuous
from tasks.numerics.results import Aggregate, Inference, Tally
from tasks.numerics.statistics.intervals import Parameters, alone, counted, estimate, mean, share

# --------------------------------------------------------------------------------------------------------------------
# The units of RAGUEL: a model's inputs in standard deviations, and offers in the user's units.
#
# Lists are ranked by distances, so every input is divided by its standard deviation over all rows. Offers are in the
# units of the application. A model that bins a number reacts only where the number enters another bin: there a bin is a
# step, and an offer goes to the nearest edge of the required bin. An input of one category cannot change by degrees; it
# stays as it is, like an immutable column.


INSIDE = 1e-9
"""Share of a bin by which an offer lies inside of it: on its very edge, rounding would decide."""

WHOLE = 1e-6
"""Of a step: what counts as a whole number of them."""


@dataclass(frozen=True)
class Attribute:
    """A model input that represents a whole column: numbers or ordered categories."""

    name: str
    categories: tuple[str, ...] = ()
    """Lowest first; none for numbers. Their values are their numbers."""
    scale: Scale | None = None
    """How numbers, or numbers of categories, are laid onto [0, 1]; None where the model takes them as they are."""
    weight: float = 1.0
    step: float | None = None
    """In the column's units, or in categories."""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    """Of an offer, in the column's units."""
    direction: int = 0
    """1 only up, -1 only down."""
    changeable: bool = True

    @property
    def bin_width(self) -> float:
        """In the column's units; 0 without bins."""
        if self.scale is None or self.scale.bins is None:
            return 0.0
        return (self.scale.high - self.scale.low) / self.scale.bins

    @property
    def input_step(self) -> float:
        """One step as the model takes it; 0 where any amount will do."""
        step = self.step or (1.0 if self.categories else 0.0)
        if self.scale is None:
            return step
        if self.scale.bins is None:
            return step / (self.scale.high - self.scale.low)
        # bins that one step may cross, so that a whole number of steps leads into every bin that is offered
        return max(1.0, float(np.ceil(step / self.bin_width - WHOLE))) / max(self.scale.bins - 1, 1)

    @property
    def input_bounds(self) -> tuple[float, float]:
        """What an offer may move the input to: a model sees nothing of what lies beyond its scale."""
        low, high = self.bounds
        if self.scale is None:
            ends = (0.0, len(self.categories) - 1.0) if self.categories else (-np.inf, np.inf)
            return max(low, ends[0]), min(high, ends[1])
        # an offer is rounded to whole steps of the user's, which may lead one step further into its bin
        spare = (self.step or 0.0) if self.scale.bins else 0.0
        edges = encode_continuous(np.nan_to_num([low + spare, high - spare]), self.scale)
        return float(edges[0]), max(float(edges[0]), float(edges[1]))

    def decoded(self, now: Floats, before: Floats, after: Floats) -> Floats:
        """The nearest values, in the column's units, that the model takes as what an offer moves its input to.

        Args:
            now: ``(r,)`` values in the column's units.
            before: ``(r,)`` the same as the model takes them.
            after: ``(r,)`` what they are moved to; between two steps, it is the further one that is meant.
        """
        way, goal, step = np.sign(after - before), after, self.input_step
        if step != 0.0:
            steps = np.ceil(np.abs(after - before) / step - WHOLE)
            goal = before + way * steps * step
            # a value beyond the bounds may stay where it is; none is moved there
            low, high = self.input_bounds
            goal = np.where(steps == 0, before, np.clip(goal, np.minimum(low, before), np.maximum(high, before)))
        if self.scale is None or self.categories:
            return self._plain(goal)
        if self.scale.bins is None:
            return np.where(way == 0, now, self._plain(goal))
        width, number = self.bin_width, np.rint(goal * max(self.scale.bins - 1, 1))
        edge = self.scale.low + np.where(way > 0, number + INSIDE, number + 1 - INSIDE) * width
        if self.step is not None:
            edge = now + way * self.step * np.ceil(np.abs(edge - now) / self.step - WHOLE)
            # a whole number of steps may end on an edge that belongs to the bin before: then one more is needed
            short = way * (goal - encode_continuous(edge, self.scale)) * (self.scale.bins - 1) > INSIDE
            edge = np.where(short, edge + way * self.step, edge)
        return np.where(way == 0, now, edge)

    def _plain(self, inputs: Floats) -> Floats:
        if self.scale is None:
            return np.rint(inputs) if self.categories else inputs
        values = self.scale.low + inputs * (self.scale.high - self.scale.low)
        return np.rint(values) if self.categories else values

    def said(self, value: float) -> str:
        """A value for people."""
        return self.categories[int(value)] if self.categories else f"{value:.10g}"

    def said_offer(self, value: float, falls: bool) -> str:
        """Target of an offer for people: without whole steps, the upper end of a bin is excluded."""
        if self.bin_width > 0 and self.step is None:
            return f"below {value:.7g}" if falls else f"{value:.7g}"
        return self.said(value)


@dataclass(frozen=True)
class Space:
    """The inputs of a model in standard deviations, and what may be done about them."""

    attributes: tuple[Attribute | None, ...]
    """``(d,)`` by input; None where it represents one category of several."""
    unit: Floats
    """``(d,)`` by which an input is divided."""
    actions: Actions
    """In these units."""

    def values(self, x: Floats) -> Floats:
        """``(n, d)`` inputs as records have them."""
        return x / self.unit

    def decoded(self, now: Floats, x: Floats, values: Floats, column: Ints) -> Floats:
        """Columns in the user's units after changes of records to ``values``.

        Args:
            now: ``(r, p)`` columns as they are; categories by their numbers.
            x: ``(r, d)`` inputs as they are.
            values: ``(r, d)`` where the records are moved to.
            column: ``(d,)`` number of the column that each input is of.
        """
        decoded_values, changed = now.copy(), values != self.values(x)
        for j, attribute in enumerate(self.attributes):
            rows = np.flatnonzero(changed[:, j])
            if attribute is not None and len(rows):
                to = attribute.decoded(now[rows, column[j]], x[rows, j], values[rows, j] * self.unit[j])
                decoded_values[rows, column[j]] = to
        return decoded_values


def space_of(x: Floats, attributes: tuple[Attribute | None, ...]) -> Space:
    """The space of the rows of an audit.

    Args:
        x: ``(n, d)`` inputs.
        attributes: ``(d,)``.

    Raises:
        SpecError: A weight, a step or bounds make no sense.
    """
    is_attribute = np.array([attribute is not None for attribute in attributes])
    spread = x.std(axis=0)
    unit = np.where(is_attribute & (spread > 0), spread, 1.0)
    known_attributes = [attribute or Attribute("", changeable=False) for attribute in attributes]
    free = is_attribute & (spread > 0) & np.array([attribute.changeable for attribute in known_attributes])
    low, high = np.array(
        [
            attribute.input_bounds if f else (-np.inf, np.inf)
            for attribute, f in zip(known_attributes, free, strict=True)
        ]
    ).T
    actions = make_actions(
        [attribute.weight for attribute in known_attributes],
        changeable=free,
        step=np.array([attribute.input_step if f else 0.0 for attribute, f in zip(known_attributes, free, strict=True)])
        / unit,
        direction=[attribute.direction for attribute in known_attributes],
        lower=low / unit,
        upper=high / unit,
    )
    return Space(attributes, unit, actions)


# --------------------------------------------------------------------------------------------------------------------
# Offers and counterfactual points in the user's units, checked against the model that decided.
#
# Results in standard deviations may not survive the conversion: values are rounded to whole steps, bins have edges, and
# the linear form may not match the model. So the model decides again on every applicant after the offer; offers that it
# does not confirm are counted.


ROUNDING = 1e-6
"""By how much a score may be off what was counted on."""

Answers = Callable[[Longs, Floats], tuple[Bools, Floats]]
"""From rows, and their columns as they would be, to the model's decisions and how far its scores lie above the cut."""


@dataclass(frozen=True)
class Offers:
    """What applicants of a list are to change, one entry for each applicant and column. Aligned arrays."""

    record: Longs
    attribute: Longs
    """Number of the column."""
    before: Floats
    """In the user's units; categories by their numbers."""
    after: Floats
    falls: Bools
    """Whether the column is to become less."""
    place: Longs
    """Number of the model's input."""


@dataclass(frozen=True)
class Applied:
    """The applicants of a list, as they handed in and as their model takes it; aligned by record."""

    space: Space
    column: Ints
    """``(d,)`` number of the column that each input is of."""
    row: Longs
    """``(n,)`` numbers of their rows."""
    now: Floats
    """``(n, p)`` columns in the user's units."""
    x: Floats
    """``(n, d)`` inputs."""
    answers: Answers | None
    """None where the model cannot be queried."""

    def moved(self, values: Floats) -> Floats:
        """``(n, p)`` columns in the user's units after changes of records to ``(n, d)``."""
        return self.space.decoded(self.now, self.x, values, self.column)

    def confirmed(self, points: Floats, unfavourable: Bools) -> Floats:
        """``(n,)`` 1 where the model favours a point, else 0; NaN of favoured applicants, or if it cannot be queried.

        Args:
            points: ``(n, d)`` counterfactual points.
            unfavourable: ``(n,)`` decisions as they are.
        """
        if self.answers is None:
            return np.full(len(self.row), np.nan)
        return np.where(unfavourable, self.favoured(points), np.nan)

    def favoured(self, points: Floats) -> Bools:
        """``(n,)`` the model's decisions at points ``(n, d)``; all unfavourable where it cannot be queried."""
        return (
            np.zeros(len(self.row), np.bool_) if self.answers is None else self.answers(self.row, self.moved(points))[0]
        )

    def offers_confirmed(self, order: Order, gains: Floats, unfavourable: Bools) -> Floats:
        """Whether the model's score rises by at least ``gains`` ``(n,)`` with each offer: 1 or 0; NaN without one."""
        confirmed = np.full(len(self.row), np.nan)
        at = np.flatnonzero(order.offered & unfavourable)
        if self.answers is None or not len(at):
            return confirmed
        _, now = self.answers(self.row[at], self.now[at])
        _, then = self.answers(self.row[at], self.moved(order.values)[at])
        confirmed[at] = then - now >= gains[at] - ROUNDING * (1 + np.abs(now))
        return confirmed


def offers(applied: Applied, ranked: Ranked, order: Order) -> Offers:
    """What is on offer in an order, by record and input."""
    values, new_values = ranked.records.values, applied.moved(order.values)
    record, place = np.nonzero(order.values != values)
    attribute = applied.column[place].astype(np.int64)
    falls = order.values[record, place] < values[record, place]
    before, after = applied.now[record, attribute], new_values[record, attribute]
    return Offers(record.astype(np.int64), attribute, before, after, falls, place.astype(np.int64))


# --------------------------------------------------------------------------------------------------------------------
# Summary of a re-ranked list: the arrays that all statistics of it are made of.
#
# Scope: the arrays, and their rows of a group, or of a group and the reference group.


@dataclass(frozen=True)
class Thresholded:
    """The list that other decisions would have made: those of thresholds by group (demographic parity, ...)."""

    name: str
    stays: Bools
    """``(n,)`` applicants of the list who would be on it still."""
    changed: Longs
    """``(g,)`` applicants of each group, listed or not, with another decision; empty where there are none."""
    reason: str = ""
    """Why there are no such decisions."""


@dataclass(frozen=True)
class ListSummary:
    """A list, its orders and what was offered in them. ``n`` applicants, ``g`` groups."""

    ranked: Ranked
    initial: Order
    orders: tuple[Order, ...]
    offers: Mapping[str, Offers]
    """By order."""
    columns: tuple[str, ...]
    """Names of what offers change, by number."""
    confirmed: Floats
    """``(n,)`` whether the model favours the counterfactual point: 1 or 0; NaN where it was not queried."""
    offers_confirmed: Mapping[str, Floats]
    """By order ``(n,)``."""
    cells: tuple[Cell, ...] = ()
    thresholded: tuple[Thresholded, ...] = ()
    note: str = ""
    """What qualifies costs that are not those of a boundary."""

    @property
    def group(self) -> Ints:
        """``(n,)``."""
        return self.ranked.records.group

    def of(self, group: int) -> Bools:
        """``(n,)`` the rows of a group."""
        return np.equal(self.group, group)

    def compared(self, group: int) -> Bools:
        """``(n,)`` the rows of a group and of the reference group; of the reference group, all."""
        if group == self.ranked.reference:
            return np.ones(len(self.group), np.bool_)
        return self.of(group) | self.of(self.ranked.reference)


# --------------------------------------------------------------------------------------------------------------------
# Tallies of RAGUEL for one group, as means and shares: costs, places in blocks, offers, unconfirmed offers.
#
# Scope: means over rows. Ratios, counts and sums of a whole list: ``aggregates``.


def tallies(summary: ListSummary, group: int) -> Iterator[Tally]:
    """Shares and means over the rows of a group, which has at least one row."""
    members = summary.of(group)
    yield mean("recourse_cost", {}, summary.ranked.records.cost[members], headline=True)
    yield from alone(_confirmation("recourse_not_confirmed_share", {}, summary.confirmed[members]))
    for other in summary.thresholded:
        stays = np.where(other.stays, summary.ranked.records.cost, np.nan)[members]
        yield from alone(mean("recourse_cost", {"order": other.name}, stays))
    yield from alone(counted("list_share", {}, int((~members).sum()), int(members.sum()), 0))
    yield from _blocks(summary, summary.initial, group, {})
    for order in summary.orders:
        at: Parameters = {"order": order.name}
        yield from alone(mean("recourse_cost", at, order.cost[members]))
        yield from _blocks(summary, order, group, at)
        offered, offers = order.offered & members, summary.offers[order.name]
        if not offered.any():
            continue
        yield from alone(_confirmation("offer_not_confirmed_share", at, summary.offers_confirmed[order.name][offered]))
        of_group = offered[offers.record]
        change = (offers.after - offers.before)[of_group]
        for number in np.unique(offers.attribute[of_group]).tolist():
            parameters: Parameters = {**at, "attribute": summary.columns[number]}
            size = change[offers.attribute[of_group] == number]
            yield from alone(counted("offer_share", parameters, int(offered.sum()) - len(size), len(size), 0))
            yield from alone(mean("offer_size", parameters, size))


def unreached(refused: Bools) -> Iterator[Tally]:
    """Of the rows ``(w,)`` of a group that were to be ranked, those that have no way to a favourable decision."""
    yield from alone(share("unreached_share", {}, refused))


def _confirmation(measure: str, at: Parameters, confirmed: Floats) -> Tally:
    """The share that the model did not confirm."""
    mask = ~np.isnan(confirmed)
    return share(measure, at, confirmed[mask] == 0)


def _blocks(summary: ListSummary, order: Order, group: int, at: Parameters) -> Iterator[Tally]:
    inside = np.bincount(order.block[summary.of(group)], minlength=int(order.block.max()) + 1)
    size = np.bincount(order.block)
    for number, (group_count, everybody) in enumerate(zip(inside.tolist(), size.tolist(), strict=True), 1):
        yield from alone(counted("block_share", {**at, "block": number}, everybody - group_count, group_count, 0))


# --------------------------------------------------------------------------------------------------------------------
# The reference group's mean recourse cost over a group's, with an interval that counts the model among what is drawn.
#
# Below 1 the group has further to go. Costs follow from the model and its threshold, and these from the applicants:
# with the model held, a nominal 95 % interval covers less (specs of verdicts, section 4). So each resample of rows has
# a model of its own, and costs to its boundary. A rule is not fitted, and only its applicants are drawn.
#
# Scope: the ratio and its error. Resamples and boundaries: ``tasks.methods.raguel.rerank.lists``.


MEASURE: Final = "recourse_cost_reference_over_group"

FEWEST: Final = 10
"""Fewest denied applicants with a way in either group for a ratio: as verdicts have it."""

ENOUGH: Final = 0.9
"""Share of resamples that need a ratio, or there is no interval."""

REFUSED: Final = "some resamples leave a group without anybody who was denied and has a way"
NOT_COVERING: Final = "there is no interval that counts all that is left to chance: "


@dataclass(frozen=True)
class Costs:
    """Applicants who were denied and have a way to a favourable decision."""

    cost: Floats
    """``(r,)`` recourse cost."""
    group: Ints
    """``(r,)`` number of the group."""
    count: Floats
    """``(r,)`` how often each counts: 1 but in a resample."""

    @classmethod
    def of(cls, cost: Floats, group: Ints, weight: Bools | Floats) -> "Costs":
        """The rows with a positive weight and a cost that is no NaN."""
        at = np.flatnonzero((weight > 0) & np.isfinite(cost))
        return cls(cost[at], group[at], weight[at].astype(np.float64))

    def means(self, groups: int) -> Floats:
        """``(groups,)`` mean costs; NaN of a group without anybody."""
        total = np.bincount(self.group, self.cost * self.count, minlength=groups)
        count = np.bincount(self.group, self.count, minlength=groups)
        group_means: Floats = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
        return group_means


def cost_ratios(means: Floats, reference: int) -> Floats:
    """The reference group's mean over each group's, of ``(..., groups)`` means; NaN where either is missing or 0."""
    other = np.broadcast_to(means[..., [reference]], means.shape)
    positive = (means > 0) & (other > 0)
    group_ratios: Floats = np.divide(other, means, out=np.full(means.shape, np.nan), where=positive)
    return group_ratios


def aggregates(
    costs: Costs, groups: Iterable[int], reference: int, errors: Floats | str, level: float
) -> list[Aggregate]:
    """The ratio of each group; empty where no row has a cost.

    Args:
        costs: Of the audit's model on the audit's rows.
        groups: Groups with rows, the reference group perhaps among them.
        reference: The reference group.
        errors: ``(groups,)`` standard errors of its logarithm, NaN where there is none; or why they are unknown.
        level: Of the intervals.
    """
    numbers = [group for group in groups if group != reference and len(costs.cost)]
    size = max([*numbers, reference, int(costs.group.max(initial=0))]) + 1
    n, value = np.bincount(costs.group, minlength=size), cost_ratios(costs.means(size), reference)
    rows = []
    for number in numbers:
        few, ratio, count = min(n[number], n[reference]) < FEWEST, float(value[number]), int(n[number])
        if few or not np.isfinite(ratio):
            why = f"fewer than {FEWEST} applicants of one of the groups were denied and have a way" if few else NOTHING
            rows.append(Aggregate(number, 0, MEASURE, {}, math.nan, count, compared=False, reason=why))
            continue
        error = errors if isinstance(errors, str) else float(errors[number])
        if isinstance(error, str) or not math.isfinite(error):
            why = NOT_COVERING + error if isinstance(error, str) else REFUSED
            rows.append(Aggregate(number, 0, MEASURE, {}, ratio, count, compared=False, reason=why))
            continue
        reach = NormalDist().inv_cdf((1 + level) / 2) * error
        ends, inference = (ratio * math.exp(-reach), ratio * math.exp(reach)), Inference(error, "log")
        rows.append(Aggregate(number, 0, MEASURE, {}, ratio, count, compared=False, interval=ends, inference=inference))
    return rows


NOTHING: Final = "one of the groups has nothing to pay"


def errors_of_draws(means: Floats, reference: int) -> Floats:
    """Standard error of the log ratio of each group from ``(draws, groups)`` mean costs on resamples."""
    logs = np.log(cost_ratios(means, reference))
    finite = np.isfinite(logs)
    enough = finite.sum(axis=0) >= max(2.0, ENOUGH * len(means))
    deviations = np.full(means.shape[1], np.nan)
    for group in np.flatnonzero(enough):
        deviations[group] = np.std(logs[finite[:, group], group], ddof=1)
    return deviations


def errors_of_rows(costs: Costs, groups: int, reference: int) -> Floats:
    """The same where nothing but the applicants is drawn, by the delta method."""
    variances = np.full(groups, np.nan)
    for group in range(groups):
        group_costs = costs.cost[costs.group == group]
        if len(group_costs) > 1 and group_costs.mean() > 0:
            variances[group] = group_costs.var(ddof=1) / len(group_costs) / group_costs.mean() ** 2
    errors: Floats = np.sqrt(variances + variances[reference])
    return errors


# --------------------------------------------------------------------------------------------------------------------
# Aggregates of RAGUEL for a list and a group: ratios of costs, unfair blocks, counts, sums and ranking quality.
#
# A group is compared with the reference group, or with all others; the values of the reference group are of all groups
# together. With two groups the ratios are the same. Intervals of ratios hold offers and ranks fixed. Scope: statistics
# that are no means over the rows of a group.


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

ONE_GROUP: Final = "there is one group only, and nobody to compare it with"
FIXED: Final = "the interval holds offers and ranks fixed"
NO_EXIT: Final = "the list was never copied as it was"


def aggregates_values(
    summary: ListSummary, group: int, settings: RaguelSettings, resamples: int, rng: np.random.Generator
) -> Iterator[Aggregate]:
    """All aggregates of a list for one group.

    Args:
        summary: The list, with at least one row of the group.
        group: Its number.
        settings: ``tolerance``, ``alpha`` and ``top``.
        resamples: Times that rows are drawn anew for the interval of a ratio.
        rng: Draws them.
    """
    about = _About(summary, group, settings, resamples, rng)
    yield from about.ratios(summary.initial, {})
    for order in summary.orders:
        at: Parameters = {"order": order.name}
        yield from about.ratios(order, at)
        yield from about.offered(order, at)
    yield from about.cells()
    if group == summary.ranked.reference:
        yield from about.whole()
    else:
        yield from about.places()
    for other in summary.thresholded:
        yield from about.thresholded(other)


class _About:
    """One list and one group of it."""

    def __init__(
        self, summary: ListSummary, group: int, settings: RaguelSettings, resamples: int, rng: np.random.Generator
    ) -> None:
        self.summary, self.group, self.settings = summary, group, settings
        self.resamples, self.rng = resamples, rng
        self.n = len(summary.group)
        self.own, self.both = summary.of(group), summary.compared(group)
        representation = summary.ranked.held(settings.tolerance)
        bounded = (
            representation.bounded
            if group == summary.ranked.reference
            else np.arange(len(representation.shares)) == group
        )
        self.held = Representation(representation.shares, bounded, representation.tolerance)

    def ratios(self, order: Order, at: Parameters) -> Iterator[Aggregate]:
        """Ratios of all and over blocks, blocks out of bounds, and quantiles of costs."""
        yield self._ratio(order.cost, self.both, at)
        yield from self._over_blocks("ratio_of_costs", order, at)
        fair = fair_blocks(self.held, self.summary.group, order.block)
        yield self._of_list("unfair_blocks", at, float((~fair).sum()))
        n = int(self.own.sum())
        for quantile in QUANTILES:
            value = float(np.quantile(order.cost[self.own], quantile))
            parameters: Parameters = {**at, "quantile": quantile}
            yield Aggregate(self.group, 0, "recourse_cost_quantile", parameters, value, n, compared=False)

    def offered(self, order: Order, at: Parameters) -> Iterator[Aggregate]:
        """Numbers of offers and changed ranks, and the cost of the offers."""
        offered = order.offered & self.own
        yield self._count("points_changed", at, offered)
        yield self._count("ranks_changed", at, (order.rank != self.summary.initial.rank) & self.own)
        total, count = float(order.paid[offered].sum()), int(offered.sum())
        # n counts the offers, so that the sum over a few of them is a small cell
        yield Aggregate(self.group, 0, "total_cost", at, total, count, compared=False)
        if count:
            yield Aggregate(self.group, 0, "mean_offer_cost", at, total / count, count, compared=False)

    def cells(self) -> Iterator[Aggregate]:
        """The ratio by number of blocks and tolerance."""
        for cell in self.summary.cells:
            at: Parameters = {"blocks": cell.blocks}
            if cell.tolerance is not None:
                at = {**at, "tolerance": cell.tolerance}
            if cell.order is None:
                yield self._of_list("ratio_of_costs_at", {**at, "over": "mean_block"}, np.nan, TOO_MANY)
                continue
            yield from self._over_blocks("ratio_of_costs_at", cell.order, at, least=False)
            if cell.tolerance is not None:
                value, reason = self._value(cell.order.cost, self.both)
                yield self._of_list("ratio_of_costs_at", {**at, "over": "overall"}, value, reason)

    def whole(self) -> Iterator[Aggregate]:
        """Aggregates of the whole list."""
        for order in self.summary.orders:
            if order.reranked is None:
                continue
            below = order.reranked.below_predecessor / max(self.n - 1, 1)
            yield self._of_list("below_predecessor_share", {"order": order.name}, below)
            if order.name == LIST:
                exit_rank = order.reranked.exit_rank
                value, reason = (np.nan, NO_EXIT) if exit_rank is None else (float(exit_rank), "")
                yield self._of_list("exit_rank", {"order": order.name}, value, reason)

    def places(self) -> Iterator[Aggregate]:
        """The band that blocks are held against, and how well the group is mixed with all others, FA*IR's list too."""
        p, t = float(self.held.shares[self.group]), self.settings.tolerance
        for bound, value in (("low", (1 - t) * p), ("high", (1 + t) * p)):
            yield self._of_list("block_band", {"bound": bound}, value)
        yield from self._quality(self.own[self.summary.initial.order], {})
        for order in self.summary.orders:
            yield from self._quality(self.own[order.order], {"order": order.name})
        if 0 < p < 1:
            listed = Listed(self.summary.ranked.records.cost, self.own, p)
            fair = fair_star(listed, self.settings.alpha, self.settings.top).order[0]
            at: Parameters = {"order": "fa_ir"}
            yield from self._quality(self.own[fair], at)
            yield self._count("ranks_changed", at, (ranks(fair) != self.summary.initial.rank) & self.own)

    def thresholded(self, other: Thresholded) -> Iterator[Aggregate]:
        """The list that other thresholds leave: its ratio and, of a group, who is decided on otherwise."""
        at: Parameters = {"order": other.name}
        if other.reason:
            yield self._of_list("ratio_of_costs", at, np.nan, other.reason)
            return
        yield self._ratio(self.summary.ranked.records.cost, self.both & other.stays, at)
        changed = int(other.changed[self.group])
        yield Aggregate(
            self.group, 0, "points_changed", at, changed, int(self.own.sum()), compared=False, reason=_DECISIONS
        )
        if self.group != self.summary.ranked.reference:
            order = self.summary.initial.order
            yield from self._quality(self.own[order][other.stays[order]], at)

    def _quality(self, protected: Bools, at: Parameters) -> Iterator[Aggregate]:
        scores = quality(protected)
        for name in ("rnd", "rkl", "rrd"):
            value = float(getattr(scores, name))
            yield self._of_list(name, at, value, "" if np.isfinite(value) else scores.reason, n=len(protected))

    def _ratio(self, cost: Floats, rows: Bools, at: Parameters) -> Aggregate:
        value, reason = self._value(cost, rows)
        if not np.isfinite(value):
            return self._of_list("ratio_of_costs", at, value, reason)
        means = []
        for group in np.unique(self.summary.group[rows]).tolist():
            values, counts = np.unique(cost[rows & self.summary.of(group)], return_counts=True)
            resampled_mean = estimate(values, counts.astype(np.int64), self.rng, self.resamples, 0.95, share=False)
            means.append(resampled_mean.replicates)
        most, least = np.max(means, axis=0), np.min(means, axis=0)
        replicates: Floats = np.divide(least, most, out=np.ones(len(most)), where=most > 0)
        notes = "; ".join(part for part in (self.summary.note, FIXED if at else "") if part)
        n = int(rows.sum())
        return Aggregate(
            self.group, 0, "ratio_of_costs", at, value, n, compared=False, reason=notes, replicates=replicates
        )

    def _value(self, cost: Floats, rows: Bools) -> tuple[float, str]:
        if len(np.unique(self.summary.group[rows])) < 2:
            return np.nan, ONE_GROUP
        return representation.overall(cost[rows], self.summary.group[rows]), ""

    def _over_blocks(self, measure: str, order: Order, at: Parameters, least: bool = True) -> Iterator[Aggregate]:
        cost, group, block = order.cost[self.both], self.summary.group[self.both], order.block[self.both]
        if len(np.unique(group)) < 2:
            yield self._of_list(measure, {**at, "over": "mean_block"}, np.nan, ONE_GROUP)
            return
        numbers, place = np.unique(block, return_inverse=True)
        block_ratios = representation.of_blocks(cost, group, place.astype(np.int64))
        single = sum(len(np.unique(group[place == i])) < 2 for i in range(len(numbers)))
        note = f"{single} of {len(numbers)} blocks hold one group only, and count as 1" if single else ""
        yield self._of_list(measure, {**at, "over": "mean_block"}, float(block_ratios.mean()), note)
        if least:
            yield self._of_list(measure, {**at, "over": "least_block"}, float(block_ratios.min()), note)

    def _of_list(self, measure: str, at: Parameters, value: float, reason: str = "", n: int | None = None) -> Aggregate:
        size = self.n if n is None else n
        return Aggregate(self.group, 0, measure, at, value, size, compared=False, reason=reason)

    def _count(self, measure: str, at: Parameters, mask: Bools) -> Aggregate:
        count, n = int(mask.sum()), int(self.own.sum())
        return Aggregate(self.group, 0, measure, at, float(count), n, compared=False, events=count)


_DECISIONS: Final = "applicants of the group, listed or not, about whom thresholds by group decide otherwise"
