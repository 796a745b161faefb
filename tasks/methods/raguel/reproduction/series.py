"""Re-ranks drawn lists of mortgage applications of growing length, in blocks of 100 (the paper's Figure 4).

The paper plots a "fairness ratio" of at least 0.95 after 0.83. It cannot be that of the whole list: exchanges with the
next block only change a group's mean by no more than the width of a block. The mean of the blocks' own ratios does what
is plotted, and is compared with it; the overall ratio stands beside it. Ours alone is the form that takes from any
depth, of which an overall ratio is asked.
"""

import logging
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

import numpy as np

from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.algorithm.ranking.any_depth import rerank_any
from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules, rerank_blocks
from tasks.methods.raguel.algorithm.ranking.quality import quality
from tasks.methods.raguel.algorithm.ranking.representation import fair_blocks, representation
from tasks.methods.raguel.algorithm.ranking.reranked import modified
from tasks.methods.raguel.reproduction import hmda_series
from tasks.numerics.arrays import Ints
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import ASKED

log = logging.getLogger("evenhand")

SIZE: Final = 100
"""Records of a block."""
REFERENCE, PROTECTED = 0, 1
BEFORE, ONE_BORDER, ANY_DEPTH = "initial", "one border, t = 1/3", "any depth, t = 0.02"
METRICS: Final = ("rkl_by_records", "rnd_by_records", "rrd_by_records")
TOLERANCE: Final = 1 / 3
CLOSE_TOLERANCE: Final = 0.02
"""Of the form that takes from any depth: what a block is off its share by is what the overall ratio is off by."""
LEAST: Final = 0.95
LEAST_RECORDS: Final = 10_000
"""From which length on it is asked to reach that: in shorter lists the last blocks weigh too much."""


def figures(most: int) -> Iterator[Figure]:
    """Yields the overall ratio that is required of lists from 10,000 to ``most`` records.

    The paper says of its ranking quality that it is high in the shortest lists and low in long ones (``falling``).
    """
    for records in lengths(most):
        if records >= LEAST_RECORDS:
            cell = Cell("overall_ratio_after", ANY_DEPTH, (float(records),))
            yield Figure(ASKED, False, cell, LEAST, 0.0, at_least=True)


def falling(found: Mapping[Cell, Value], most: int) -> Iterator[Figure]:
    """Yields the ranking quality of the shortest lists, re-ranked, as the limit of that of the longest."""
    first, last = lengths(most)[0], lengths(most)[-1]
    for name, metric in product((ONE_BORDER, ANY_DEPTH), METRICS) if last > first else ():
        limit = found[Cell(metric, name, (float(first),))]
        if isinstance(limit, float):
            yield Figure(ASKED, False, Cell(metric, name, (float(last),)), limit, 0.0, at_most=True)


def lengths(most: int) -> list[int]:
    """Returns the lengths of the paper, up to ``most``."""
    return [records for records in hmda_series.PUBLISHED_SIZES if records <= most]


def cells(most: int, trials: int) -> Iterator[tuple[Cell, Value]]:
    """Re-ranks lists of each length and yields means over so many draws."""
    for records in lengths(most):
        drawn = [_told(records, seed) for seed in range(trials)]
        at = (float(records),)
        log.info("%s records, %d lists drawn and re-ranked", f"{records:,}", trials)
        for quantity, group in drawn[0]:
            yield Cell(quantity, group, at), float(np.mean([each[quantity, group] for each in drawn]))


def _told(length: int, seed: int) -> dict[tuple[str, str], float]:
    records = hmda_series.draw(length, np.random.default_rng(seed))
    cost, group = records.cost, records.group
    held, close = (representation(group, 2, REFERENCE, t) for t in (TOLERANCE, CLOSE_TOLERANCE))
    bordered, anywhere = (
        rerank_blocks(records, held, SIZE, BlockRules()),
        rerank_any(records, close, SIZE, BlockRules()),
    )
    told = {("initial_ratio", "all"): ratios.overall(cost, group), **_quality(BEFORE, group[records.ranked()])}
    for name, ended, bounds in ((ONE_BORDER, bordered, held), (ANY_DEPTH, anywhere, close)):
        block = np.zeros(length, np.int64) if ended.block is None else ended.block
        told["mean_block_ratio", name] = float(ratios.of_blocks(ended.cost, group, block).mean())
        told["overall_ratio_after", name] = ratios.overall(ended.cost, group)
        told["unfair_blocks_percent", name] = 100 * float((~fair_blocks(bounds, group, block)).mean())
        told["protected_modified_percent", name] = 100 * float(modified(records, ended)[group == PROTECTED].mean())
        told |= _quality(name, group[ended.order])
    return told


def _quality(name: str, group: Ints) -> dict[tuple[str, str], float]:
    found = quality(group == PROTECTED)
    return {(metric, name): float(getattr(found, metric[:3])) for metric in METRICS}
