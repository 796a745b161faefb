"""Aggregates of RAGUEL for a list and a group: ratios of costs, unfair blocks, counts, sums and ranking quality.

A group is compared with the reference group, or with all others; the values of the reference group are of all groups
together. With two groups the ratios are the same. Intervals of ratios hold offers and ranks fixed. Scope: statistics
that are no means over the rows of a group.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tasks.baselines.algorithm.rankings.fair_star import fair_star
from tasks.baselines.algorithm.rankings.kind import Listed
from tasks.methods.raguel.algorithm.lists import LIST, TOO_MANY, Order
from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.algorithm.ranking.quality import quality
from tasks.methods.raguel.algorithm.ranking.representation import Representation, fair_blocks
from tasks.methods.raguel.algorithm.ranking.reranked import ranks
from tasks.methods.raguel.algorithm.summary import ListSummary, Thresholded
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.results import Aggregate
from tasks.numerics.statistics.distributions import Parameters
from tasks.numerics.statistics.intervals import estimate

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

ONE_GROUP: Final = "there is one group only, and nobody to compare it with"
FIXED: Final = "the interval holds offers and ranks fixed"
NO_EXIT: Final = "the list was never copied as it was"


def aggregates(
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
        held = summary.ranked.held(settings.tolerance)
        bounded = held.bounded if group == summary.ranked.reference else np.arange(len(held.shares)) == group
        self.held = Representation(held.shares, bounded, held.tolerance)

    def ratios(self, order: Order, at: Parameters) -> Iterator[Aggregate]:
        """Ratios of all and over blocks, blocks out of bounds, and quantiles of costs."""
        yield self._ratio(order.cost, self.both, at)
        yield from self._over_blocks("ratio_of_costs", order, at)
        fair = fair_blocks(self.held, self.summary.group, order.block)
        yield self._of_list("unfair_blocks", at, float((~fair).sum()))
        for quantile in QUANTILES:
            value = float(np.quantile(order.cost[self.own], quantile))
            yield self._of_group("recourse_cost_quantile", {**at, "quantile": quantile}, value)

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
        found = quality(protected)
        for name in ("rnd", "rkl", "rrd"):
            value = float(getattr(found, name))
            yield self._of_list(name, at, value, "" if np.isfinite(value) else found.reason, n=len(protected))

    def _ratio(self, cost: Floats, rows: Bools, at: Parameters) -> Aggregate:
        value, reason = self._value(cost, rows)
        if not np.isfinite(value):
            return self._of_list("ratio_of_costs", at, value, reason)
        replicates = self._replicates(cost, rows)
        notes = "; ".join(part for part in (self.summary.note, FIXED if at else "") if part)
        n = int(rows.sum())
        return Aggregate(
            self.group, 0, "ratio_of_costs", at, value, n, compared=False, reason=notes, replicates=replicates
        )

    def _value(self, cost: Floats, rows: Bools) -> tuple[float, str]:
        if len(np.unique(self.summary.group[rows])) < 2:
            return np.nan, ONE_GROUP
        return ratios.overall(cost[rows], self.summary.group[rows]), ""

    def _replicates(self, cost: Floats, rows: Bools) -> Floats:
        means = []
        for group in np.unique(self.summary.group[rows]).tolist():
            values, counts = np.unique(cost[rows & self.summary.of(group)], return_counts=True)
            drawn = estimate(values, counts.astype(np.int64), self.rng, self.resamples, 0.95, share=False)
            means.append(drawn.replicates)
        most, least = np.max(means, axis=0), np.min(means, axis=0)
        found: Floats = np.divide(least, most, out=np.ones(len(most)), where=most > 0)
        return found

    def _over_blocks(self, measure: str, order: Order, at: Parameters, least: bool = True) -> Iterator[Aggregate]:
        cost, group, block = order.cost[self.both], self.summary.group[self.both], order.block[self.both]
        if len(np.unique(group)) < 2:
            yield self._of_list(measure, {**at, "over": "mean_block"}, np.nan, ONE_GROUP)
            return
        numbers, place = np.unique(block, return_inverse=True)
        found = ratios.of_blocks(cost, group, place.astype(np.int64))
        single = sum(len(np.unique(group[place == i])) < 2 for i in range(len(numbers)))
        note = f"{single} of {len(numbers)} blocks hold one group only, and count as 1" if single else ""
        yield self._of_list(measure, {**at, "over": "mean_block"}, float(found.mean()), note)
        if least:
            yield self._of_list(measure, {**at, "over": "least_block"}, float(found.min()), note)

    def _of_list(self, measure: str, at: Parameters, value: float, reason: str = "", n: int | None = None) -> Aggregate:
        size = self.n if n is None else n
        return Aggregate(self.group, 0, measure, at, value, size, compared=False, reason=reason)

    def _of_group(self, measure: str, at: Parameters, value: float) -> Aggregate:
        return Aggregate(self.group, 0, measure, at, value, int(self.own.sum()), compared=False)

    def _count(self, measure: str, at: Parameters, counted: Bools) -> Aggregate:
        count, n = int(counted.sum()), int(self.own.sum())
        return Aggregate(self.group, 0, measure, at, float(count), n, compared=False, events=count)


_DECISIONS: Final = "applicants of the group, listed or not, about whom thresholds by group decide otherwise"
