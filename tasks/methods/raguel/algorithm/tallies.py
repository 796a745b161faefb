"""Tallies of RAGUEL for one group, as means and shares: costs, places in blocks, offers, unconfirmed offers.

Scope: means over rows. Ratios, counts and sums of a whole list: ``aggregates``.
"""

from collections.abc import Iterator

import numpy as np

from tasks.methods.raguel.algorithm.lists import Order
from tasks.methods.raguel.algorithm.summary import ListSummary
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.results import Tally
from tasks.numerics.statistics.distributions import Parameters, alone, counted, mean, share


def tallies(summary: ListSummary, group: int) -> Iterator[Tally]:
    """Shares and means over the rows of a group, of whom there is one at least."""
    own = summary.of(group)
    yield mean("recourse_cost", {}, summary.ranked.records.cost[own], headline=True)
    yield from alone(_confirmation("recourse_not_confirmed_share", {}, summary.confirmed[own]))
    for other in summary.thresholded:
        stays = np.where(other.stays, summary.ranked.records.cost, np.nan)[own]
        yield from alone(mean("recourse_cost", {"order": other.name}, stays))
    yield from alone(counted("list_share", {}, int((~own).sum()), int(own.sum()), 0))
    yield from _blocks(summary, summary.initial, group, {})
    for order in summary.orders:
        at: Parameters = {"order": order.name}
        yield from alone(mean("recourse_cost", at, order.cost[own]))
        yield from _blocks(summary, order, group, at)
        yield from _offers(summary, order, group, at)


def unreached(refused: Bools) -> Iterator[Tally]:
    """Of the rows ``(w,)`` of a group that were to be ranked, those that have no way to a favourable decision."""
    yield from alone(share("unreached_share", {}, refused))


def _confirmation(measure: str, at: Parameters, confirmed: Floats) -> Tally:
    """The share that the model did not confirm."""
    known = ~np.isnan(confirmed)
    return share(measure, at, confirmed[known] == 0)


def _blocks(summary: ListSummary, order: Order, group: int, at: Parameters) -> Iterator[Tally]:
    inside = np.bincount(order.block[summary.of(group)], minlength=int(order.block.max()) + 1)
    size = np.bincount(order.block)
    for number, (own, everybody) in enumerate(zip(inside.tolist(), size.tolist(), strict=True), 1):
        yield from alone(counted("block_share", {**at, "block": number}, everybody - own, own, 0))


def _offers(summary: ListSummary, order: Order, group: int, at: Parameters) -> Iterator[Tally]:
    offered, offers = order.offered & summary.of(group), summary.offers[order.name]
    if not offered.any():
        return
    yield from alone(_confirmation("offer_not_confirmed_share", at, summary.offers_confirmed[order.name][offered]))
    of_group = offered[offers.record]
    change = (offers.after - offers.before)[of_group]
    for number in np.unique(offers.attribute[of_group]).tolist():
        named: Parameters = {**at, "attribute": summary.columns[number]}
        size = change[offers.attribute[of_group] == number]
        yield from alone(counted("offer_share", named, int(offered.sum()) - len(size), len(size), 0))
        yield from alone(mean("offer_size", named, size))
