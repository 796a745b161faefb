"""Computes the cells of the paper's figures of people, Tables 3 to 6, none of which is judged.

Scope: cells of our own method. Those of others: ``baselines``.
"""

import logging
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.spatial import cKDTree

from tasks.methods.raguel.algorithm.ranking.quality import quality
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, modified
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.algorithm.recourse.stepped import in_steps
from tasks.methods.raguel.reproduction import baselines, grid, lists
from tasks.methods.raguel.reproduction.lists import Judged, Ranked
from tasks.numerics.arrays import Longs
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

TOLERANCE: Final = 1 / 3
BLOCKS: Final = 20
"""Of the paper's Figure 3; Table 3 does not say how many."""

INITIAL, RAGUEL, BLOCKWISE = "initial", "RAGUEL", "RAGUEL-Block"
EVERYBODY = ", all listed"
"""Follows the name of a method where everybody is on the list, and not only who is refused."""


def cells(judged: Judged) -> dict[Cell, Value]:
    """Returns all cells of a data set."""
    refused, everybody = (lists.ranked(judged, who) for who in (lists.UNFAVOURABLE, lists.ALL))
    found: dict[Cell, Value] = dict(grid.unfair_blocks(everybody, lists.ALL)) | dict(counterfactuals(judged, refused))
    log.info("counterfactual points in whole steps: %d", len(refused.rows))
    found |= dict(rerankings(judged, refused, "")) | dict(rerankings(judged, everybody, EVERYBODY))
    found |= dict(baselines.cells(judged, refused)) | dict(qualities(refused))
    return found


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


def counterfactuals(judged: Judged, ranked: Ranked) -> Iterator[tuple[Cell, Value]]:
    """Yields distance to the nearest row, attributes changed and seconds of a counterfactual in steps (Table 4).

    Attributes are changed in whole steps, either way; distances are in the units of the file.
    """
    people, values = judged.people, judged.values[ranked.rows]
    allowed = lists.actions(judged, bounded=False)
    in_steps(values[:1], judged.boundary, allowed)  # compiles
    start = time.perf_counter()
    found = in_steps(values, judged.boundary, allowed)
    took = (time.perf_counter() - start) / found.cases
    moved = found.targets.point != values
    points = people.values[ranked.rows] + (found.targets.point - values) * judged.scale
    apart, _ = cKDTree(people.values).query(points)
    yield Cell("closeness", "RAGUEL-CF"), float(np.mean(apart))
    yield Cell("attributes_changed", "RAGUEL-CF"), float(moved.sum(axis=1).mean())
    yield Cell("seconds_each", "RAGUEL-CF"), took


def qualities(ranked: Ranked) -> Iterator[tuple[Cell, Value]]:
    """Yields rKL, rND and rRD of orders of those refused, for the protected group (Table 5)."""
    protected = ranked.records.group != ranked.reference
    ended = rerank(ranked.records, ranked.held(TOLERANCE), Reranking())
    orders = {
        INITIAL: ranked.records.ranked(),
        baselines.FA_IR: baselines.fair_order(ranked),
        RAGUEL: ended.order,
    }
    for name, order in orders.items():
        told = quality(protected[order])
        for metric in ("rkl", "rnd", "rrd"):
            yield Cell(metric, "protected", (name,)), float(getattr(told, metric))


def _changed(ranked: Ranked, ended: Reranked) -> Longs:
    """``(2,)`` records of each group that were modified."""
    return np.bincount(ranked.records.group[modified(ranked.records, ended)], minlength=2)
