"""Blocks ``columns``: a row for each group, or part of one, a column for each measure at fixed parameters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tasks.reporting.declared import Block, Declared, Setting, Shown
from tasks.reporting.evidence import words
from tasks.reporting.evidence.budget import Line, Whole, size
from tasks.reporting.evidence.cells import Noted, measured
from tasks.reporting.material import Measure, View, listed
from tasks.reporting.numbers import DASH, count, p_cell
from tasks.reporting.section import Cell

Key = tuple[str, int]
"""A group, and the number of its part; 0 is the whole group."""


_ENDS = ("min", "max")


def resolved_among(rows: Sequence[Mapping[str, Any]], at: Mapping[str, Setting]) -> dict[str, Setting] | None:
    """Parameters with ``min`` and ``max`` as rows have them that agree with the others; None where no row does."""
    found: dict[str, Setting] = {}
    for parameter, value in sorted(at.items(), key=lambda each: each[1] in _ENDS):
        there = [said[parameter] for said in rows if all(said[each] == found[each] for each in found)]
        if value in _ENDS:
            numbers = [each for each in there if isinstance(each, int | float)]
            if not numbers:
                return None
            value = min(numbers) if value == "min" else max(numbers)
        found[parameter] = value
    return found


@dataclass(frozen=True)
class ByGroup:
    """The measures of a block for one decision maker and protected attribute."""

    block: Block
    said: Declared
    view: View

    @cached_property
    def columns(self) -> tuple[tuple[Shown, dict[str, Setting]], ...]:
        """The columns of which the run has any row, with their parameters."""
        asked = ((shown, self._at(shown)) for shown in self.block.columns)
        return tuple((shown, at) for shown, at in asked if at is not None)

    def _at(self, shown: Shown) -> dict[str, Setting] | None:
        found = self.view.rows if self.block.parts else self.view.all(shown.name)  # sizes are of parts alone
        rows = [m.said for m in found if m.measure == shown.name and set(m.said) == set(shown.at)]
        at = resolved_among(rows, shown.at)
        return at if at in rows else None

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Groups with any row, each followed by its parts where they are asked for."""
        parts = ((group, part) for group in self.view.groups for part in (0, *self._parts(group)))
        return tuple(key for key in parts if any(self.get(key, *column) for column in self.columns))

    def _parts(self, group: str) -> tuple[int, ...]:
        return self.view.subgroups(group) if self.block.parts else ()

    def get(self, key: Key, shown: Shown, at: Mapping[str, Setting]) -> Measure | None:
        """The measure of a column for a group."""
        return self.view.get(key[0], shown.name, at, key[1])

    def table(self, title: str, run: str) -> Whole | None:
        """The table; None where the run has no row of it."""
        if not self.columns:
            return None
        lines = tuple(Line(key, tuple(self._cells(key)), self._effect(key)) for key in self.keys)
        absent = [group for group in self.view.groups if (group, 0) not in self.keys and group != self.view.reference]
        note = f"Not computed: {listed(absent)}." * bool(absent)
        names = (shown.name for shown, _ in self.columns)
        return Whole(title, tuple(self._header()), lines, words.measures_found(run, names), note=note)

    def _header(self) -> Iterator[str]:
        yield from ("Group", "n")
        for shown, _ in self.columns:
            yield words.header(self.said, shown)
            yield from ("p", "q") if shown.p else ()

    def _cells(self, key: Key) -> Iterator[Noted]:
        group, part = key
        yield Noted(Cell(f"{group}, part {part}" if part else self.view.named(group)))
        yield Noted(self._n(key))
        for shown, at in self.columns:
            m, unit = self.get(key, shown, at), self.said.measures[shown.measure].unit
            of_itself = m is None and (group == self.view.reference or (self.block.parts and not part))
            yield Noted(DASH) if of_itself else measured(m, unit, shown.form)
            if shown.p:
                yield from (Noted(p_cell(each)) for each in ((m.p, m.q) if m else (None, None)))

    def _n(self, key: Key) -> Cell:
        """The people or units behind the first measure that there is."""
        first = next((m for column in self.columns if (m := self.get(key, *column))), None)
        if first is None or first.n is None:
            return Cell("withheld" if first is not None and first.withheld else "–", "none")
        return Cell(count(first.n), "number")

    def _effect(self, key: Key) -> float:
        """The first measure decides; the reference group always stays."""
        m = self.get(key, *self.columns[0])
        return math.inf if key == (self.view.reference, 0) else size(m.value if m else None)
