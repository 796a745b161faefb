"""Exact nearest neighbours among applicants described by numbers and by categories (CST, section 3).

Rows are grouped by their combination of nominal values, because one mismatch is far. Within a group they are cut into
blocks of close rows, as in a k-d tree. A query visits the groups by nominal distance and skips every block that cannot
hold one of the k nearest. There is no approximation and no matrix of distances.

Scope: the index, the order of work and its memory. Loops: ``kernel``. Coordinates: ``distance``.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np

from tasks.methods.cst.algorithm.neighbours import kernel
from tasks.methods.cst.algorithm.neighbours.distance import Space
from tasks.methods.cst.algorithm.neighbours.kernel import BLOCK, NOBODY, Blocks, Queries
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs

__all__ = ["Blocks", "Neighbours", "in_batches", "index", "nearest"]

SHARES = 8
"""Pieces of work per thread, so that a thread whose queries were easy can take over from another."""

NEIGHBOUR_BYTES = 64
"""Memory of one neighbour: its id and its distance, and what counting among neighbours takes beside them."""


class Neighbours(NamedTuple):
    """The rows nearest to each query, nearest first."""

    rows: Longs
    """``(q, k)`` row ids; -1 where fewer than ``k`` rows are within reach."""
    distances: Floats
    """``(q, k)`` unrounded distances; ``inf`` where there is no row."""


def index(space: Space, members: Longs) -> Blocks:
    """Lay out the rows among which neighbours are sought.

    Args:
        space: All ``n`` rows.
        members: ``(m,)`` distinct rows that may be neighbours, such as the protected ones; their numbers are row ids.
    """
    nominal = space.nominal[members]
    order, new = _by_combination(nominal)
    starts = np.append(np.flatnonzero(new), len(members))
    numeric = space.numeric[members]
    for start, stop in pairwise(starts):
        _gather(numeric, order[start:stop])
    blocks = -(-np.diff(starts) // BLOCK)
    first = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
    within = np.arange(first[-1]) - np.repeat(first[:-1], blocks)
    row_of_block = np.append(np.repeat(starts[:-1], blocks) + BLOCK * within, len(members)).astype(np.int64)
    numeric = np.ascontiguousarray(numeric[order].T, dtype=np.float64)
    return Blocks(
        key=members[order].astype(np.int64),
        numeric=numeric,
        nominal=np.ascontiguousarray(nominal[order[starts[:-1]]], dtype=np.float64),
        overlap=space.overlap,
        divisor=float(space.divisor),
        block_of_group=first,
        row_of_block=row_of_block,
        low=np.minimum.reduceat(numeric, row_of_block[:-1], axis=1),
        high=np.maximum.reduceat(numeric, row_of_block[:-1], axis=1),
    )


def _by_combination(nominal: Floats, *, then: Floats | None = None) -> tuple[Longs, Bools]:
    """The rows by their nominal values (and then by ``then``, ``(n,)``), and which of them begin a new combination."""
    minor = np.zeros(len(nominal)) if then is None else then
    order = np.lexsort((minor, *nominal.T[::-1]))
    new = np.ones(len(nominal), np.bool_)
    new[1:] = (nominal[order[1:]] != nominal[order[:-1]]).any(axis=1)
    return order, new


def _gather(numeric: Floats, order: Longs) -> None:
    """Order rows so that every ``BLOCK`` of them lie close together: halved where they spread most, again and again."""
    pending = [order] if numeric.shape[1] else []
    while pending:
        rows = pending.pop()
        if len(rows) <= BLOCK:
            continue
        values = numeric[rows]
        widest = int(np.argmax(values.max(axis=0) - values.min(axis=0)))
        middle = BLOCK * ((len(rows) + BLOCK) // (2 * BLOCK))  # whole blocks, so that only a group's last one is short
        rows[:] = rows[np.argpartition(values[:, widest], middle)]
        pending += [rows[:middle], rows[middle:]]


def nearest(blocks: Blocks, queries: Space, k: int, settings: CstSettings, exclude: Longs | None = None) -> Neighbours:
    """The ``k`` rows nearest to each query, by distance and then by row id, as ``settings.ties`` says.

    Args:
        blocks: The rows that may be neighbours.
        queries: ``q`` applicants, placed in the same space.
        k: Number of neighbours of each.
        settings: ``ties``, and ``maximum_distance``: a row exactly that far still counts.
        exclude: ``(q,)`` a row id that is never returned to the query, or -1.

    Raises:
        ValueError: If the queries' columns are not those of the rows, or ``k`` is not positive.
    """
    if queries.shape != (len(blocks.numeric), blocks.nominal.shape[1]):
        raise ValueError(f"queries have {queries.shape} numeric and nominal columns; expected those of the rows")
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    sign = 1 if settings.ties == "ascending" else -1
    keys = np.full((len(queries.numeric), k), NOBODY)
    distances = np.full(keys.shape, np.inf if settings.maximum_distance is None else settings.maximum_distance)
    asked, order = _ask(queries, np.full(len(keys), -1) if exclude is None else exclude, sign)
    _run(blocks._replace(key=sign * blocks.key), asked, order, distances, keys)
    missing = keys == NOBODY
    keys *= sign
    keys[missing], distances[missing] = -1, np.inf
    return Neighbours(keys, distances)


def _ask(queries: Space, exclude: Longs, sign: int) -> tuple[Queries, Longs]:
    """The queries as the kernel reads them, and the order in which those after each other read the same blocks."""
    numeric = np.array(queries.numeric, np.float64, order="C")
    nominal = np.array(queries.nominal, np.float64, order="C")
    order, new = _by_combination(nominal, then=numeric[:, 0] if numeric.shape[1] else None)
    combination = np.empty(len(order), np.int64)
    combination[order] = np.cumsum(new) - 1
    excluded = np.where(exclude < 0, NOBODY, sign * exclude)
    return Queries(numeric, nominal, combination, excluded), order


def _run(blocks: Blocks, asked: Queries, order: Longs, distances: Floats, keys: Longs) -> None:
    """Search on all cores.

    By threads of our own: numba's bear only one caller at a time, and stages of a flow may search at the same time.
    """
    threads = numba.config.NUMBA_NUM_THREADS
    shares = np.array_split(order, SHARES * threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda share: kernel.search(blocks, asked, share, distances, keys), shares):
            pass


def in_batches(
    blocks: Blocks, queries: Space, k: int, settings: CstSettings, exclude: Longs | None = None
) -> Iterator[tuple[slice, Neighbours]]:
    """As ``nearest``, in batches whose neighbours take no more than ``settings.memory_mb`` megabytes.

    Yields:
        Which queries the batch holds, and their neighbours.
    """
    size = max(1, settings.memory_mb * 1_000_000 // (NEIGHBOUR_BYTES * k))
    for start in range(0, len(queries.numeric), size):
        batch = slice(start, start + size)
        yield batch, nearest(blocks, queries.rows(batch), k, settings, None if exclude is None else exclude[batch])
