"""Disclosure across partitions: what of the league is withheld so that no withheld count of few people can be told.

The counts of everybody less the published ones of partitions tell what a partition withholds, or what all those that
publish nothing have together. A count is told where all tables that fit what is published have it within less than the
profile's width, and with few people. Then the groups of a further partition are withheld, the smallest first; where
that does not help, those of everybody, from which everything else was subtracted. Partitions are looked at in the
order of their names, so that the outcome does not depend on which ended first.

What a partition's own run tells of itself is not mended here: ``tasks.metrics.publish.algorithm`` decides that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tasks.metrics.league.algorithm.counts import MOST, Block, Tables
from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import Policy
from tasks.numerics.arrays import Floats

TRIED: Final = 3
"""Further partitions that are withheld for one count, before everybody is."""
BESIDE: Final = 40
"""Partitions whose tables are sought together: with more, a count may be called told that is not."""
REST: Final = "\0rest"
"""The block of all who are in no published partition; no value of a column."""


class Hidden(NamedTuple):
    """What is withheld beyond what the runs withhold."""

    partitions: frozenset[str] = frozenset()
    """All groups of the attribute of these partitions."""
    everybody: bool = False
    """All that is printed of everybody, from which the rest was subtracted."""
    unequal: bool = False
    """Whether the published counts of partitions do not add up to those of everybody."""


class _Target(NamedTuple):
    block: str
    """``ALL``: everybody."""
    group: str
    event: str
    wanted: float


@dataclass(frozen=True)
class Published:
    """What all runs have published of the groups of one protected attribute."""

    groups: tuple[str, ...]
    partitions: tuple[Block, ...]
    everybody: Block
    others: bool
    """Whether there may be rows of partitions that publish nothing."""
    policy: Policy


def hidden_across(told: Published) -> Hidden:
    """What must be withheld so that nothing follows from all runs together."""
    if not told.policy.protects or not told.everybody.known:
        return Hidden()
    blocks = sorted(told.partitions, key=lambda block: block.name) + ([Block(REST)] if told.others else [])
    tables = Tables(told.groups, told.everybody)
    fitted = tables.fitting(blocks)
    if fitted is None:
        return Hidden(everybody=True, unequal=True)
    state = _State(told, tables, blocks, fitted)
    for target in list(state.targets()):
        if not state.opened(target):
            return Hidden(everybody=True)
    return Hidden(frozenset(state.given_up))


class _State:
    """The blocks as they are published so far, with one set of tables that fits."""

    def __init__(self, told: Published, tables: Tables, blocks: Sequence[Block], fitted: Floats) -> None:
        self._told, self._tables = told, tables
        self._blocks, self._fitted = list(blocks), fitted
        self._sum = fitted.sum(axis=0)
        self.given_up: list[str] = []

    def targets(self) -> Iterator[_Target]:
        """Every count to protect that is not open at once, with the least width that it is to have."""
        wanted = self._told.policy.wanted
        for block in [*self._blocks, self._told.everybody]:
            for group, event in block.hidden:
                if self._is_taken_up(block, group, event):
                    continue
                own = self._tables.alone(block, group, event, MOST).width
                if own > 0:
                    yield _Target(block.name, group, event, min(own, wanted))
        if self._told.others:
            yield from (_Target(REST, group, "", wanted) for group in self._told.groups)

    def opened(self, target: _Target) -> bool:
        """Whether a count is open, after further partitions were withheld where it takes that."""
        for _ in range(TRIED):
            if self._is_open(target):
                return True
            further = self._smallest(target)
            if further is None:
                return False
            self._blocks[further] = self._blocks[further].whole
            self.given_up.append(self._blocks[further].name)
        return self._is_open(target)

    def _smallest(self, target: _Target) -> int | None:
        """The published partition with fewest people of the group; None where none has any."""
        sizes = {number: each.least(target.group) for number, each in enumerate(self._blocks)}
        shown = [number for number, size in sizes.items() if size > 0 and not self._is_given_up(number)]
        shown = [number for number in shown if self._blocks[number].name != target.block]
        return min(shown, key=lambda number: (sizes[number], self._blocks[number].name), default=None)

    def _is_given_up(self, number: int) -> bool:
        return self._blocks[number].name in self.given_up

    def _is_open(self, target: _Target) -> bool:
        """Tried with few tables first: any that fit are witnesses."""
        names = [block.name for block in self._blocks]
        own = [] if target.block == ALL else [names.index(target.block)]
        loose = [n for n, block in enumerate(self._blocks) if n not in own and self._is_loose(n, block)]
        free = [n for n in loose if names[n] == REST or self._is_given_up(n)]
        scopes = [[*own, *free], [*own, *loose[:BESIDE]]]
        for scope in scopes:
            if not scope:
                continue
            rest = self._sum - self._fitted[scope].sum(axis=0)
            chosen = [self._blocks[n] for n in scope]
            ends = self._tables.ends(chosen, rest, 0 if own else None, target.group, target.event)
            if ends.width >= target.wanted:
                return True
        whole = len(loose) <= BESIDE and bool(scopes[-1])
        return whole and bool(np.isfinite(ends.low)) and not (ends.low < self._told.policy.smallest and ends.high > 0)

    def _is_taken_up(self, block: Block, group: str, event: str) -> bool:
        """Whether a count is open since those who publish nothing can take up whatever it changes by."""
        if not self._told.others or block.name in (ALL, REST):
            return False
        numbers = [number for number, each in enumerate(self._blocks) if each.name in (block.name, REST)]
        together = self._fitted[numbers].sum(axis=0)
        return self._tables.alone(block, group, event, together).width >= self._told.policy.wanted

    def _is_loose(self, number: int, block: Block) -> bool:
        """Whether what is published leaves more than one table of a block, as far as is seen at a glance."""
        exact = all(each.low == each.high for each in block.known if each.event != "approved")
        return bool(block.hidden) or not exact or block.name == REST or self._is_given_up(number)
