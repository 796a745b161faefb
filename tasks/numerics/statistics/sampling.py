"""Samples of the rows of a large audit: who is drawn, with which weight, and the variance that the design adds.

A row is drawn by a hash of its id and a seed: the rows with the smallest hashes of a group, or of a cell. Neither the
order of rows nor their number tells whether a row comes before another; new rows move the threshold alone. Within a
group that is a simple random sample without replacement (Cochran 1977, chapter 2), so that means within it need no
weights; sums over groups weigh each row by N/m.

Scope: arrays in, rows and weights out. Which methods ask a sample: ``tasks.pipeline.method``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

Hashes = NDArray[np.uint64]

FLOOR = 2_000
"""Members of a group that are drawn at least, or all of a smaller one: a share is then known to 2.2 points."""

_ALL = np.iinfo(np.uint64).max


def hashes(ids: Iterable[str], seed: int, draw: int = 0) -> Hashes:
    """``(n,)`` a number of each row that follows from its id, the seed and the number of the draw alone."""
    start = f"{seed}:{draw}:".encode()
    return np.array(
        [int.from_bytes(blake2b(start + str(row_id).encode(), digest_size=8).digest(), "little") for row_id in ids],
        dtype=np.uint64,
    )


def allotted(counts: Longs, most: int, floor: int = FLOOR) -> Longs:
    """``(g,)`` how many of each group are drawn: in its share of ``most``, no fewer than ``floor`` or all of it.

    Everybody where all groups together are no more than ``most``. Floors may make it more than ``most`` in all.
    """
    total = int(counts.sum())
    if total <= most:
        return counts.copy()
    shares = np.floor(counts * (most / total) + 0.5).astype(np.int64)
    sizes: Longs = np.minimum(counts, np.maximum(shares, floor)).astype(np.int64)
    return sizes


def proportionally(counts: Longs, most: int) -> Longs:
    """``(c,)`` how many of each cell are drawn so that all cells lose the same share: ``most`` in all, or everybody.

    What is left over by rounding down goes to the cells that lost most by it, the larger one first where two did.
    """
    total = int(counts.sum())
    if total <= most:
        return counts.copy()
    exact = counts * (most / total)
    sizes: Longs = np.floor(exact).astype(np.int64)
    order = np.lexsort((-counts, sizes - exact))
    sizes[order[: most - int(sizes.sum())]] += 1
    return sizes


def thresholds(hashed: Hashes, cell: Longs | Ints, sizes: Longs) -> Hashes:
    """``(c,)`` the largest hash that is drawn of each cell, so that ``sizes`` of its rows are; 0 where none is.

    Args:
        hashed: ``(n,)`` of every row.
        cell: ``(n,)`` number of its cell.
        sizes: ``(c,)`` rows to draw of each, no more than it has.
    """
    limits = np.zeros(len(sizes), np.uint64)
    for number, size in enumerate(sizes.tolist()):
        cell_hashes = hashed[cell == number]
        if size >= len(cell_hashes):
            limits[number] = _ALL
        elif size:
            limits[number] = np.partition(cell_hashes, size - 1)[size - 1]
    return limits


@dataclass(frozen=True)
class Asked:
    """Which of ``n`` rows are sampled, by group, to be compared with all of these rows."""

    hashed: Hashes
    """``(n,)``"""
    group: Ints
    """``(n,)`` number of the group of each row."""
    threshold: Hashes
    """``(g,)`` the largest hash that is asked of each group."""
    members: Longs | None = None
    """``(g,)`` members of each group in the file, where the rows are a pool that was drawn of it; None: these rows."""

    @classmethod
    def of(cls, hashed: Hashes, group: Ints, sizes: Longs) -> "Asked":
        """``sizes`` rows ``(g,)`` of each group."""
        return cls(hashed, group, thresholds(hashed, group, sizes))

    @cached_property
    def drawn(self) -> Bools:
        """``(n,)`` the sampled rows."""
        is_sampled: Bools = self.hashed <= self.threshold[self.group]
        return is_sampled

    def below(self, group: int) -> Bools:
        """``(n,)`` rows of any group that would be sampled if they were in this one: for redrawn labels."""
        is_below: Bools = self.hashed <= self.threshold[group]
        return is_below

    @cached_property
    def sizes(self) -> tuple[Longs, Longs]:
        """``(g,)`` sampled members (m), and members (N)."""
        groups = len(self.threshold)
        of = np.bincount(self.group, minlength=groups) if self.members is None else self.members
        return np.bincount(self.group[self.drawn], minlength=groups), of

    @cached_property
    def weights(self) -> Floats:
        """``(n,)`` N/m of the row's group, so that the weights of sampled rows sum to N; 0 for other rows."""
        sampled_sizes, of = self.sizes
        group_weights = np.divide(of, sampled_sizes, out=np.zeros(len(of)), where=sampled_sizes > 0)
        row_weights: Floats = np.where(self.drawn, group_weights[self.group], 0.0)
        return row_weights

    @property
    def total(self) -> int:
        """Rows of the file."""
        return int(self.sizes[1].sum())

    def part(self, group: int) -> tuple[int, int]:
        """Number of sampled members of a group, and number of members."""
        sampled_sizes, of = self.sizes
        return int(sampled_sizes[group]), int(of[group])

    def pool(self, most: int) -> Bools | None:
        """``(n,)`` rows to compare with: ``most`` in all, in the shares of groups, with the whole sample.

        The rows of a group with the smallest hashes, as sampled ones are. A group has a tenth of ``most`` at least, or
        all of its members. None where that leaves nobody out.
        """
        asked_sizes, of = self.sizes
        sizes = np.maximum(allotted(of, most, most // 10), asked_sizes)
        if (sizes >= of).all():
            return None
        is_in_pool: Bools = self.hashed <= thresholds(self.hashed, self.group, sizes)[self.group]
        return is_in_pool

    def among(self, rows: Bools) -> "Asked":
        """The same sample among the rows of a pool ``(n,)``, which contains it."""
        return Asked(self.hashed[rows], self.group[rows], self.threshold, self.sizes[1])


def design_variance(influence: Floats, sample_size: int, of: int) -> float:
    """Variance of an estimate over samples: s^2/m (1 - m/N), exactly 0 where all members are in the sample.

    Args:
        influence: How far each unit moves the estimate, with sum 0; for a mean, (value - mean) / m. Zeros are units
            that it does not move.
        sample_size: m units, a simple random sample.
        of: N units in all.

    Source: Cochran (1977, theorem 2.2), for estimates that are means of the units' own values, or smooth in such.
    """
    if sample_size >= of or sample_size < 2:
        return 0.0
    return float(influence @ influence) * sample_size / (sample_size - 1) * (1 - sample_size / of)
