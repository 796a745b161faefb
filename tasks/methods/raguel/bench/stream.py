"""Algorithm 2 as a stream: a block needs the next one and no more, so that lists of any length fit (section 4.6).

Chunks of a sorted list go in, finished blocks come out in their new order. What is kept in between is one block that
waits for its successor and whatever has not filled a block yet. The list in memory is a stream of one chunk.

Shares of the groups and the worst-off one are of the whole list: whoever streams has to know them beforehand.

Here belong chunks and what is carried from one to the next. The exchange itself is in ``swapping``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from tasks.methods.raguel.algorithm.ranking import swapping
from tasks.methods.raguel.algorithm.ranking.counting import Bounds
from tasks.methods.raguel.algorithm.ranking.swapping import Swaps
from tasks.methods.raguel.algorithm.recourse import moves
from tasks.methods.raguel.algorithm.recourse.moves import Rules
from tasks.numerics.arrays import Bools, Floats, Ints, Longs


@dataclass(frozen=True)
class Chunk:
    """Consecutive records of a list that is sorted by cost and then by number. Arrays are aligned."""

    number: Longs
    """``(n,)`` of the record; ascending where costs are equal."""
    cost: Floats
    group: Ints
    values: Floats
    """``(n, d)``."""
    target: Floats
    """``(n, d)`` counterfactual points."""
    rate: Floats
    """``(n,)`` cost per unit of distance, see ``Targets``."""


@dataclass(frozen=True)
class Stream:
    """What is the same for all of a list."""

    size: int
    """Records of a block; the last may have fewer."""
    rules: Rules
    bounds: Bounds
    swaps: Swaps


@dataclass(frozen=True)
class Blocks:
    """Records by block, cost and number. Arrays are aligned."""

    number: Longs
    group: Ints
    cost_before: Floats
    cost: Floats
    """``(n,)`` after modification."""
    values_before: Floats
    values: Floats
    """``(n, d)`` after modification."""
    target: Floats
    rate: Floats
    block_before: Longs
    """``(n,)`` blocks are numbered from 0 over the whole list."""
    block: Longs
    crossed: Bools
    """``(n,)`` records that are in another block than before."""


@dataclass(frozen=True)
class Finished:
    """Blocks that nothing will change any more."""

    blocks: Blocks
    left: Longs
    """Those that were left unfair because nothing helped; the last of a list is never looked at."""


def stream(chunks: Iterable[Chunk], settings: Stream) -> Iterator[Finished]:
    """Re-rank a sorted list in chunks of any length; the result does not depend on how it is cut.

    Args:
        chunks: The list. What is held at a time is a chunk and less than two blocks.
        settings: Blocks, bounds and rules.

    Raises:
        ValueError: If costs fall from one record to the next.
    """
    pool, edge, seen = None, np.nan, 0
    for chunk in chunks:
        fresh = _arrived(chunk, seen, settings.size)
        seen += len(chunk.cost)
        pool = fresh if pool is None else _join(pool, fresh)
        whole = seen // settings.size - (int(pool.block[0]) if len(pool.block) else 0)
        if whole > 1:
            done, pool, edge = _advance(pool, edge, whole, whole - 1, settings)
            yield done
    if pool is not None and len(pool.block):
        whole = int(pool.block[-1] - pool.block[0]) + 1
        yield _advance(pool, edge, whole, whole, settings)[0]


def _arrived(chunk: Chunk, seen: int, size: int) -> Blocks:
    """A chunk cut into blocks, ``seen`` records after the beginning of the list."""
    if (np.diff(chunk.cost) < 0).any():
        raise ValueError("costs fall from one record to the next; sort the list by cost before it is streamed")
    block = np.arange(seen, seen + len(chunk.cost)) // size
    nobody = np.zeros(len(block), np.bool_)
    cost, values = chunk.cost, chunk.values
    return Blocks(
        chunk.number, chunk.group, cost, cost.copy(), values, values.copy(), chunk.target, chunk.rate, block,
        block.copy(), nobody,
    )  # fmt: skip


def _advance(pool: Blocks, edge: float, whole: int, done: int, settings: Stream) -> tuple[Finished, Blocks, float]:
    """Exchange records among the first ``whole`` blocks, and finish the first ``done`` of them.

    Args:
        pool: Records by block, cost and number.
        edge: Cost of the last of the records that its first block had at first, if that has been looked at before.
        whole: Blocks that are complete.
        done: All of them, or all but the last, which waits for its successor.
        settings: Blocks, bounds and rules.

    Returns:
        What is finished, what waits, and the edge of the block that does.
    """
    first = int(pool.block[0])
    ends = np.searchsorted(pool.block, np.arange(first, first + whole + 1))
    edges = pool.cost_before[ends[1:] - 1]
    if not np.isnan(edge):
        edges[0] = edge
    here = slice(0, int(ends[-1]))
    records = moves.listed(pool.cost[here], pool.group[here], pool.values[here], pool.target[here], pool.rate[here])
    window = swapping.Window(ends, edges, pool.crossed[here], pool.block[here] - first, records)
    left = swapping.swap(window, settings.rules, settings.bounds, settings.swaps)
    pool.block[here] = window.block + first
    order = swapping.sorted_blocks(window.block, records.cost, pool.number[here], whole)
    finished = int((window.block < done).sum())
    waiting = np.concatenate([order[finished:], np.arange(ends[-1], len(pool.block))])
    return (
        Finished(_rows(pool, order[:finished]), np.flatnonzero(left[:done]) + first),
        _rows(pool, waiting),
        float(edges[-1]),
    )


def _join(blocks: Blocks, more: Blocks) -> Blocks:
    return Blocks(*(np.concatenate([getattr(blocks, f.name), getattr(more, f.name)]) for f in fields(Blocks)))


def _rows(blocks: Blocks, chosen: Longs) -> Blocks:
    return Blocks(*(getattr(blocks, f.name).take(chosen, axis=0) for f in fields(Blocks)))
