"""Re-ranks a list at every tolerance and number of blocks of the paper's Table 6, by both algorithms.

The paper says of its lists only that RAGUEL makes them fairer. The requirement on our default is
weaker and can be checked: the overall ratio of a list never ends lower than it began.
"""

from collections.abc import Iterator
from typing import Final

from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules, block_size, rerank_blocks
from tasks.methods.raguel.algorithm.ranking.representation import Representation, fair_blocks
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.reproduction.lists import Ranked
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import ASKED

TOLERANCES: Final = (1 / 2, 1 / 3, 1 / 5, 1 / 8)
BLOCKS: Final = (5, 10, 15, 20, 25, 30, 35)

SHOWN: Final = 20
"""Blocks of the paper's Figure 3."""

ROUNDING: Final = 1e-9
"""By which a ratio may fall: a mean of the same costs in another order is not the same to the last bit."""


def never_lower(ranked: Ranked, who: str) -> Iterator[tuple[Figure, Value]]:
    """Yields the overall ratio after re-ranking, and that before as its lower limit."""
    before, records = _ratio(ranked), ranked.records
    for tolerance in TOLERANCES:
        held = ranked.held(tolerance)
        cell = Cell("overall_ratio", f"{who}, Algorithm 1", (tolerance,))
        yield _asked(cell, before), _ratio(ranked, rerank(records, held, Reranking()))
        for blocks in BLOCKS:
            cell = Cell("overall_ratio", f"{who}, blocks", (tolerance, float(blocks)))
            yield _asked(cell, before), _ratio(ranked, in_blocks(ranked, held, blocks))


def unfair_blocks(ranked: Ranked, who: str) -> Iterator[tuple[Cell, Value]]:
    """Yields counts of blocks that represent the groups unfairly, before and after (Table 6)."""
    for tolerance in TOLERANCES:
        held = ranked.held(tolerance)
        for blocks in BLOCKS:
            ended, at = in_blocks(ranked, held, blocks), (float(blocks), tolerance)
            before, after = _unfair(ranked, held, ended)
            yield Cell("blocks_made_fair", who, at), float(before - after)
            yield Cell("unfair_blocks", who, at), f"{before} -> {after}"


def unfair_counts(ranked: Ranked, who: str) -> Iterator[tuple[Cell, Value]]:
    """Yields counts of unfair blocks before and after of 20 blocks, at each tolerance (Figure 3)."""
    for tolerance in TOLERANCES:
        held = ranked.held(tolerance)
        before, after = _unfair(ranked, held, in_blocks(ranked, held, SHOWN))
        yield Cell("unfair_before", who, (float(SHOWN), tolerance)), float(before)
        yield Cell("unfair_after", who, (float(SHOWN), tolerance)), float(after)


def in_blocks(ranked: Ranked, held: Representation, blocks: int) -> Reranked:
    """Re-ranks the list by Algorithm 2, with our default."""
    return rerank_blocks(ranked.records, held, block_size(len(ranked.rows), blocks), BlockRules())


def _asked(cell: Cell, before: float) -> Figure:
    return Figure(ASKED, False, cell, before, ROUNDING, at_least=True)


def _ratio(ranked: Ranked, ended: Reranked | None = None) -> float:
    cost = ranked.records.cost if ended is None else ended.cost
    return ratios.overall(cost, ranked.records.group)


def _unfair(ranked: Ranked, held: Representation, ended: Reranked) -> tuple[int, int]:
    block, group = (ended.block_before, ended.block), ranked.records.group
    before, after = (int((~fair_blocks(held, group, each)).sum()) for each in block if each is not None)
    return before, after
