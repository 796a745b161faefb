"""Decides whether k candidates cover everything, by branching on the factual with the fewest candidates.

For small k this takes milliseconds where an integer programme takes seconds, because the relaxation of a set cover is
weak. Its limit counts nodes, not seconds, so that the result is the same on every machine.
"""

import numba
import numpy as np

from tasks.feasibility_graph.algorithm.reachability import Words
from tasks.methods.fgce.algorithm.covering.dominance import packed
from tasks.numerics.arrays import Bools, Longs

NODES = 300_000
"""Nodes after which the search gives up, some tenths of a second."""

FOUND, NONE, GAVE_UP = 1, 0, -1


def cover_of(cover: Bools, k: int) -> tuple[int, tuple[int, ...]]:
    """Look for ``k`` columns of ``(f, c)`` that hold a True in every row.

    Returns:
        ``FOUND`` and the columns; ``NONE`` if there are no such columns; ``GAVE_UP`` after ``NODES`` nodes.
    """
    ordered = cover[np.argsort(cover.sum(axis=1), kind="stable")]
    outcome, picks = _search(np.ascontiguousarray(ordered), packed(ordered.T), k, NODES)
    return outcome, tuple(picks.tolist()) if outcome == FOUND else ()


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search(cover: Bools, bits: Words, k: int, nodes: int) -> tuple[int, Longs]:
    """Depth first; a column tried at a node is not tried again below the node's later branches."""
    rows, columns = cover.shape
    open_ = np.zeros((k + 1, bits.shape[1]), dtype=np.uint64)
    for row in range(rows):
        open_[0, row // 64] |= np.uint64(1) << np.uint64(row % 64)
    barred = np.full(columns, k + 1, dtype=np.int64)
    branch, column, picks = np.full(k + 1, -1), np.zeros(k + 1, np.int64), np.full(k, -1)
    depth = 0
    while depth >= 0 and nodes > 0:
        if branch[depth] < 0:  # a new node
            nodes -= 1
            left, most = _gains(open_[depth], bits, barred, k)
            if left == 0:
                return FOUND, picks[:depth]
            # a row to branch on, or none where even the largest gains cannot cover what is left
            branch[depth] = _first(open_[depth]) if left <= most * (k - depth) else rows
            column[depth] = 0
        row, place = branch[depth], column[depth]
        while row < rows and place < columns and not (cover[row, place] and barred[place] > k):
            place += 1
        if row == rows or place == columns:
            for other in range(columns):
                if barred[other] == depth:
                    barred[other] = k + 1
            branch[depth] = -1
            depth -= 1
            continue
        column[depth], picks[depth], barred[place] = place + 1, place, depth
        for word in range(bits.shape[1]):
            open_[depth + 1, word] = open_[depth, word] & ~bits[place, word]
        depth += 1
    return (NONE if depth < 0 else GAVE_UP), picks[:0]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _gains(open_: Words, bits: Words, barred: Longs, k: int) -> tuple[int, int]:
    """Rows left open, and how many of them the best column that is not barred covers."""
    left, most = 0, 0
    for word in range(open_.shape[0]):
        left += _ones(open_[word])
    for column in range(bits.shape[0]):
        if barred[column] > k:
            gain = 0
            for word in range(open_.shape[0]):
                gain += _ones(open_[word] & bits[column, word])
            most = max(most, gain)
    return left, most


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _first(open_: Words) -> int:
    """The first open row."""
    word = 0
    while open_[word] == 0:
        word += 1
    low = open_[word] & (~open_[word] + np.uint64(1))
    return 64 * word + _ones(low - np.uint64(1))  # type: ignore[no-any-return]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _ones(word: np.uint64) -> int:
    """Number of bits that are set, counted in pairs, nibbles and bytes at once."""
    one = np.uint64(1)
    word = word - ((word >> one) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]
