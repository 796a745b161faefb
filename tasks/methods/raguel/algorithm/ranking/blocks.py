"""Algorithm 2 of RAGUEL: cuts the sorted list into blocks, each of which is to represent the groups fairly.

In an unfair block, the lowest-ranked record of an over-represented group goes to the next block. The highest-ranked
record of an under-represented group there takes its place, modified at a cost that does not lower the block's recourse
ratio (Equation 3, with both its ends). Nobody crosses more than one border. Scope: settings, and the list in memory.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from schemas.errors import SpecError
from tasks.methods.raguel.algorithm.ranking import ratios, swapping
from tasks.methods.raguel.algorithm.ranking.records import Records
from tasks.methods.raguel.algorithm.ranking.representation import Representation
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, by_record, movable, ranks
from tasks.methods.raguel.algorithm.ranking.swapping import Swaps, Window
from tasks.numerics.arrays import Longs


@dataclass(frozen=True)
class BlockRules:
    """What the paper leaves open, and how it is decided."""

    rule: Literal["improve", "strict"] = "improve"
    """A swap never lets a block's ratio fall; under ``strict`` (the paper's) it has to end at 1 - delta or more too."""
    direction: Literal["worse_off", "both"] = "worse_off"
    """Modify only the group with the higher mean cost, or any (``both``, the paper's)."""
    delta: float = 0.1
    """Tolerance of the recourse ratio."""
    probes: int = 200
    """Records that are tried for one place where they may come from any depth; one border needs no limit."""

    def swaps(self, worst: int, groups: int) -> Swaps:
        """As the kernels read it, for a list whose worst-off group is ``worst``."""
        return Swaps(movable(worst, groups, self.direction), 1.0 - self.delta if self.rule == "strict" else 0.0)


def block_size(records: int, blocks: int) -> int:
    """Records of a block if a list is cut into so many, the last of them with what is left.

    Raises:
        SpecError: If there are more blocks than records, or fewer than one.
    """
    if not 1 <= blocks <= records:
        raise SpecError(f"{records} records cannot be cut into {blocks} blocks; ask for 1 to {records} blocks")
    return -(-records // blocks)


def rerank_blocks(records: Records, held: Representation, size: int | Longs, settings: BlockRules) -> Reranked:
    """Re-rank a list block by block (Algorithm 2).

    Args:
        records: All with a cost.
        held: The bounds that every block is to keep.
        size: Records of a block, or ``(b,)`` of each.
        settings: Direction and rule of acceptance.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    start = starts(len(records.cost), size)
    before, groups = records.ranked(), len(held.shares)
    listed = records.listed(before)
    block = np.repeat(np.arange(len(start) - 1), np.diff(start))
    crossed = np.zeros(len(before), np.bool_)
    window = Window(start, listed.cost[start[1:] - 1], crossed, block.copy(), listed)
    swaps = settings.swaps(ratios.worst_off(records.cost, records.group, groups), groups)
    left = swapping.swap(window, records.rules, held.bounds, swaps)
    order = before[swapping.sorted_blocks(window.block, listed.cost, before, len(left))]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(left),
        block_before=by_record(block, before),
        block=by_record(window.block, before),
    )


def starts(records: int, size: int | Longs) -> Longs:
    """Where each block of a list begins and the last one ends, ``(b + 1,)``.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    least = int(np.min(size, initial=records + 1))
    if least < 1:
        raise SpecError(f"a block of {least} records was asked for; give at least 1")
    if isinstance(size, int):
        return np.append(np.arange(0, records, size), records)
    if size.sum() != records:
        raise SpecError(f"blocks of {size.sum()} records in all were asked for, of a list of {records}")
    return np.append(0, np.cumsum(size))
