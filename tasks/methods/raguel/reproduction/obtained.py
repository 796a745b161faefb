"""Computes the cells of the paper's figures of people: Tables 3 to 6, and the counts of Figure 3.

Scope: cells of our own method, and which others are run. Others: ``baselines``, ``sources`` and ``rankings``.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, modified
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.reproduction import baselines, grid, lists, rankings, sources
from tasks.methods.raguel.reproduction.lists import Judged, Ranked
from tasks.numerics.arrays import Longs
from tasks.proof.lines import Cell, Figure, Value

log = logging.getLogger("evenhand")

TOLERANCE: Final = 1 / 3
BLOCKS: Final = 20
"""Of the paper's Figure 3; Table 3 does not say how many."""

INITIAL, RAGUEL, BLOCKWISE = rankings.INITIAL, rankings.RAGUEL, "RAGUEL-Block"
EVERYBODY = ", all listed"
"""Follows the name of a method where everybody is on the list, and not only who is refused."""


@dataclass(frozen=True)
class Others:
    """Which baselines are run, and on how many samples."""

    names: frozenset[str]
    trials: int


def cells(judged: Judged, others: Others) -> dict[Cell, Value]:
    """Returns all cells of a data set."""
    refused, everybody = (lists.ranked(judged, who) for who in (lists.UNFAVOURABLE, lists.ALL))
    found: dict[Cell, Value] = dict(grid.unfair_blocks(everybody, lists.ALL))
    found |= dict(grid.unfair_counts(refused, lists.UNFAVOURABLE)) | dict(grid.unfair_counts(everybody, lists.ALL))
    found |= dict(rerankings(judged, refused, "")) | dict(rerankings(judged, everybody, EVERYBODY))
    found |= dict(baselines.cells(judged, refused, others.names, others.trials))
    for name in sources.known(others.names):
        found |= dict(sources.counterfactuals(judged, name))
        log.info("points by %s, and orders of their list", name)
        found |= dict(rankings.qualities(sources.ranked(judged, name), name, others.trials, others.names))
    return found


def laws(found: dict[Cell, Value], others: Others, dataset: str) -> Iterator[Figure]:
    """Yields what is asked of the cells of a data set."""
    for name in sources.known(others.names):
        yield from rankings.laws(found, name)
    if dataset == "german":
        yield from sources.closer(found)


def rerankings(judged: Judged, ranked: Ranked, suffix: str) -> Iterator[tuple[Cell, Value]]:
    """Yields points changed, costs and ratio of the initial order and of both algorithms (Table 3)."""
    records, held = ranked.records, ranked.held(TOLERANCE)
    nobody = np.zeros(2, np.int64)
    yield from baselines.rows(judged, INITIAL + suffix, nobody, records.cost, records.group)
    yield Cell("listed", "both", (INITIAL + suffix,)), float(len(ranked.rows))
    for name, ended in (
        (RAGUEL, rerank(records, held, Reranking())),
        (BLOCKWISE, grid.in_blocks(ranked, held, BLOCKS)),
    ):
        yield from baselines.rows(judged, name + suffix, _changed(ranked, ended), ended.cost, records.group)


def _changed(ranked: Ranked, ended: Reranked) -> Longs:
    """``(2,)`` records of each group that were modified."""
    return np.bincount(ranked.records.group[modified(ranked.records, ended)], minlength=2)
