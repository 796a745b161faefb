"""One list of applicants by recourse cost, and RAGUEL's re-rankings of it.

Scope: the list, its blocks, and which algorithms of ``ranking`` run on it. Statistics: ``tallies`` and ``aggregates``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import SpecError
from tasks.baselines.algorithm.rankings.fair_star import fair_star
from tasks.baselines.algorithm.rankings.kind import Listed
from tasks.baselines.algorithm.rankings.registry import RANKINGS
from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.algorithm.ranking.any_depth import rerank_any
from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules, block_size, rerank_blocks, starts
from tasks.methods.raguel.algorithm.ranking.records import Records
from tasks.methods.raguel.algorithm.ranking.representation import Representation, representation
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, distances, modified, ranks
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Longs

LIST, BLOCKS, ANY = "list", "blocks", "any"
"""Algorithm 1, Algorithm 2, and blocks that take from any depth."""

FAIR_STAR, FOEIR = "fair_star", "foeir"
"""Orders of other papers, which stand in the place of Algorithm 1 where they are asked for."""

STRICT, IMPROVE = "strict", "improve"

TOO_MANY: Final = "more blocks than applicants in the list"


@dataclass(frozen=True)
class Ranked:
    """A list before it is re-ranked: ``n`` applicants, all with a cost."""

    records: Records
    groups: int
    reference: int
    sizes: Longs | int
    """``(b,)`` applicants of each block, or of all but the last."""

    def held(self, tolerance: float) -> Representation:
        """What the list is held against."""
        return representation(self.records.group, self.groups, self.reference, tolerance)

    @cached_property
    def block(self) -> Longs:
        """``(n,)`` block, from 0, of each place in the list."""
        start = starts(len(self.records.cost), self.sizes)
        return np.repeat(np.arange(len(start) - 1), np.diff(start))


@dataclass(frozen=True)
class Order:
    """A list in some order. Arrays are aligned by record."""

    name: str
    rank: Longs
    """``(n,)`` from 1."""
    block: Longs
    """``(n,)`` from 0."""
    cost: Floats
    offered: Bools
    """``(n,)`` who has an offer."""
    paid: Floats
    """``(n,)`` weighted distance that each is moved by its offer."""
    values: Floats
    """``(n, d)`` where each stands with its offer."""
    reranked: Reranked | None = None
    """None of an order in which nobody has an offer."""

    @property
    def order(self) -> Longs:
        """``(n,)`` the record at each rank."""
        return np.argsort(self.rank)


def block_sizes(records: int, settings: RaguelSettings, bands: Longs | None) -> Longs | int:
    """Sizes of the blocks: equal ones, as many as there are applicants at most, or those of the bands of a column.

    Args:
        records: Applicants in the list.
        settings: ``blocks``.
        bands: ``(n,)`` number of each applicant's band, lowest first; None for equal blocks.
    """
    if bands is not None:
        return np.unique(bands, return_counts=True)[1].astype(np.int64)
    return block_size(records, min(settings.blocks, records)) if records else 1


def names(settings: RaguelSettings) -> tuple[str, ...]:
    """The lists: Algorithm 1 or what stands in its place, Algorithm 2 and, if set, the variant of any depth."""
    return (whole(settings), BLOCKS, ANY) if settings.reach == ANY else (whole(settings), BLOCKS)


def whole(settings: RaguelSettings) -> str:
    """The order of the whole list at once."""
    return LIST if settings.order == "raguel" else settings.order


def initial(ranked: Ranked) -> Order:
    """The list as it is."""
    return placed("", ranked, ranks(ranked.records.ranked()))


def placed(name: str, ranked: Ranked, rank: Longs) -> Order:
    """Another order of the same applicants, who have no offers."""
    n = len(rank)
    return Order(
        name,
        rank,
        ranked.block[rank - 1],
        ranked.records.cost,
        np.zeros(n, np.bool_),
        np.zeros(n),
        ranked.records.values,
    )


def orders(ranked: Ranked, settings: RaguelSettings, rng: np.random.Generator) -> list[Order]:
    """The lists by the names of ``names``, re-ranked; ``rng`` draws an order where a system gives a lottery."""
    held, rules = ranked.held(settings.tolerance), block_rules(settings)
    ours = Reranking(settings.rule, settings.direction, settings.failure, settings.delta, settings.probes)
    made: dict[str, Callable[[], Reranked]] = {
        LIST: partial(rerank, ranked.records, held, ours),
        BLOCKS: partial(rerank_blocks, ranked.records, held, ranked.sizes, rules),
        ANY: partial(rerank_any, ranked.records, held, ranked.sizes, rules),
    }
    others = () if whole(settings) == LIST else (_of_other_paper(ranked, settings, rng),)
    return [*others, *(_order(name, ranked, made[name]()) for name in names(settings) if name in made)]


def _of_other_paper(ranked: Ranked, settings: RaguelSettings, rng: np.random.Generator) -> Order:
    """An order that changes places and offers nothing; protected are all groups but the reference group."""
    listed = Listed.of(ranked.records.cost, ranked.records.group != ranked.reference)
    if settings.order == FAIR_STAR:
        found = fair_star(listed, settings.alpha, settings.top)
    else:
        found = RANKINGS[settings.order](listed)
    order = listed.by_cost if found.reason else found.drawn(rng)  # one group alone has nobody to change places with
    return placed(settings.order, ranked, ranks(order))


def block_rules(settings: RaguelSettings) -> BlockRules:
    """How blocks are exchanged."""
    return BlockRules(settings.rule, settings.direction, settings.delta, settings.probes)


def _order(name: str, ranked: Ranked, found: Reranked) -> Order:
    block = ranked.block[found.rank - 1] if found.block is None else found.block
    given = modified(ranked.records, found), distances(ranked.records, found)
    return Order(name, found.rank, block, found.cost, *given, found.values, found)


def attained(ranked: Ranked, order: Order, delta: float) -> NDArray[np.str_]:
    """By which rule each offer stands, ``(n,)``: empty without one.

    Under Algorithm 1 the ratio that counts is that of the list down to the applicant, else that of its block.
    """
    group, ratio = ranked.records.group, np.empty(len(order.rank))
    if order.name == LIST:
        ratio = ratios.of_prefixes(order.cost[order.order], group[order.order])[order.rank - 1]
    else:
        ratio = ratios.of_blocks(order.cost, group, order.block)[order.block]
    return np.where(order.offered, np.where(ratio >= 1.0 - delta, STRICT, IMPROVE), "")


@dataclass(frozen=True)
class Cell:
    """One number of blocks and one tolerance."""

    blocks: int
    tolerance: float | None
    """None of the list as it is."""
    order: Order | None
    """None where there are more blocks than applicants."""


def grid(ranked: Ranked, settings: RaguelSettings) -> Iterator[Cell]:
    """The list cut into several numbers of blocks, as it is and re-ranked under several tolerances."""
    again = rerank_any if settings.reach == ANY else rerank_blocks
    rules, name = block_rules(settings), ANY if settings.reach == ANY else BLOCKS
    for blocks in settings.block_counts:
        try:
            size = block_size(len(ranked.records.cost), blocks)
        except SpecError:
            yield from (Cell(blocks, tolerance, None) for tolerance in (None, *settings.tolerances))
            continue
        cut = replace(ranked, sizes=size)
        yield Cell(blocks, None, initial(cut))
        for tolerance in settings.tolerances:
            yield Cell(blocks, tolerance, _order(name, cut, again(cut.records, cut.held(tolerance), size, rules)))
