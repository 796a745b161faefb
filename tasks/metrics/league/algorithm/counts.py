"""What a reader knows of the counts of several partitions, as integer programmes over tables of people (HiGHS).

A table holds the people of one partition: a row for each group, and one for people of no group; denied and approved.
Tables of partitions add up to the table of everybody. Unknown are the tables; known are published sums of cells.

Scope: programmes. What is withheld because of them: ``across``. Within one run: ``tasks.metrics.publish.algorithm``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy

from tasks.metrics.publish.algorithm.populations import ALL
from tasks.numerics.arrays import Floats

DENIED: Final = "denied"
APPROVED: Final = "approved"
NODES: Final = 200
"""Limit of the search tree of a programme; not of seconds, so that every machine finds the same."""
_SLACK: Final = 1e-6


class Known(NamedTuple):
    """A published sum: people of some groups, all of them or those denied or approved, lie from ``low`` to ``high``."""

    groups: tuple[str, ...]
    """``(ALL,)`` is everybody."""
    event: str
    low: float
    high: float


@dataclass(frozen=True)
class Block:
    """A partition, and what is published of it."""

    name: str
    known: tuple[Known, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    """Group and event (empty: all of the group) of counts that are withheld, or a range."""

    @property
    def whole(self) -> "Block":
        """The same with everybody's counts alone, as if all groups were withheld."""
        return Block(self.name, tuple(each for each in self.known if each.groups == (ALL,)), self.hidden)

    def least(self, group: str) -> float:
        """The least that is published of the people of a group; 0 where nothing is."""
        return max((each.low for each in self.known if (each.groups, each.event) == ((group,), "")), default=0.0)


class Ends(NamedTuple):
    """Least and largest value of a count that fits what is published; NaN where the search was cut short."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far apart they are; 0 where the search was cut short, which is the safe side."""
        return 0.0 if np.isnan(self.high - self.low) else self.high - self.low


class Tables:
    """Tables of blocks that add up to a total; ``groups`` are those of one protected attribute."""

    def __init__(self, groups: Sequence[str], total: Block) -> None:
        self._groups = {group: number for number, group in enumerate(groups)}
        self.size = 2 * (len(groups) + 1)
        """Cells of a table, ``(groups + 1, 2)``: denied, then approved; the last row is people of no group."""
        self._total = total
        self._rows_of: dict[Block, _Rows] = {}

    def cells(self, groups: Sequence[str], event: str) -> Floats:
        """Which cells a sum counts, ``(cells,)`` of 0 and 1."""
        table = np.zeros((len(self._groups) + 1, 2))
        columns = {DENIED: [0], APPROVED: [1]}.get(event, [0, 1])
        rows = range(len(table)) if ALL in groups else [self._groups[group] for group in groups]
        table[np.ix_(list(rows), columns)] = 1
        return table.ravel()

    def alone(self, block: Block, group: str, event: str, most: Floats | float) -> Ends:
        """What a partition's own run tells of a count, where no cell has more than ``most`` people, ``(cells,)``."""
        aim = self.cells((group,), event)
        found = [_solved(sign * aim, self._own(block), most) for sign in (1, -1)]
        return Ends(*(np.nan if each is None else float(aim @ np.rint(each)) for each in found))

    def ends(self, blocks: Sequence[Block], rest: Floats, at: int | None, group: str, event: str) -> Ends:
        """What all runs tell of a count of one block, or (None) of everybody.

        Args:
            blocks: whose tables are sought.
            rest: ``(cells,)`` sum of the tables of all other blocks, which stay as they are.
            at: number of the block.
            group: of the count.
            event: of the count.
        """
        cells = self.cells((group,), event)
        aim = np.zeros((len(blocks), self.size))
        aim[slice(None) if at is None else at] = cells
        constant = float(cells @ rest) if at is None else 0.0
        rows = self._rows(blocks, rest)
        found = [_solved(sign * aim.ravel(), rows) for sign in (1, -1)]
        values = [np.nan if each is None else float(np.rint(aim.ravel() @ each)) + constant for each in found]
        return Ends(*values)

    def fitting(self, blocks: Sequence[Block]) -> Floats | None:
        """Tables of all blocks that fit what is published, ``(blocks, cells)``; None where there are none."""
        rows = self._rows(blocks, np.zeros(self.size))
        found = _solved(np.zeros(self.size * len(blocks)), rows)
        return None if found is None else np.rint(found).reshape(len(blocks), self.size)

    def _rows(self, blocks: Sequence[Block], rest: Floats) -> "_Rows":
        """Sums of each block, and those of everybody less the rest."""
        own = [self._own(block) for block in blocks]
        matrix = scipy.sparse.block_diag([each.matrix for each in own], format="csr")
        low, high = (np.concatenate([each[end] for each in own]) for end in (1, 2))
        total = self._own(self._total)
        there = np.asarray(total.matrix @ rest)
        repeated = scipy.sparse.hstack([total.matrix] * len(blocks), format="csr")
        stacked = scipy.sparse.vstack([matrix, repeated], format="csr")
        return _Rows(stacked, np.concatenate([low, total.low - there]), np.concatenate([high, total.high - there]))

    def _own(self, block: Block) -> "_Rows":
        """What is published of one block; of one without anything, that nobody is counted by no cell."""
        if block not in self._rows_of:
            sums = [self.cells(each.groups, each.event) for each in block.known] or [np.zeros(self.size)]
            low, high = ([each[end] for each in block.known] or [0.0] for end in (2, 3))
            self._rows_of[block] = _Rows(scipy.sparse.csr_array(np.array(sums)), np.array(low), np.array(high))
        return self._rows_of[block]


class _Rows(NamedTuple):
    matrix: "scipy.sparse.csr_array"
    low: Floats
    high: Floats


MOST: Final = 1e7
"""People in a cell at most: more than any year has."""


def _solved(aim: Floats, rows: _Rows, most: Floats | float = MOST) -> Floats | None:
    """Whole tables with the least value of ``aim``; None where there are none, or the search was cut short."""
    found = scipy.optimize.milp(
        aim,
        integrality=np.ones(aim.size, dtype=int),
        bounds=scipy.optimize.Bounds(0, most),
        constraints=scipy.optimize.LinearConstraint(rows.matrix, rows.low - _SLACK, rows.high + _SLACK),
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    return found.x if found.status == 0 else None
