"""Budgets of an evidence page (specification of the report, section 2): rows of a table, cells and charts of a page.

What is beyond a budget is counted under the table, with the place where it stands.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.reporting.evidence.cells import Noted
from tasks.reporting.evidence.words import plain
from tasks.reporting.numbers import DASH, NOTED, count
from tasks.reporting.section import Cell, TableView

MOST_ROWS, MOST_COLUMNS, MOST_CHARTS = 25, 12, 3
"""Rows and columns of numbers of a table, and charts of a page: 12 are allowed, but a run has at most 40 in all."""
MOST_CELLS = 14_000
"""Of a page: below 1.5 MB with all its charts."""
_MOST_NOTES = 6
_FEWER = (18, 12, 8, 5, 3, 2, 1)
"""Rows of a table where the page has too many cells."""


@dataclass(frozen=True)
class Line:
    """A row before the budget."""

    key: tuple[Any, ...]
    """A group and its part, or the settings."""
    cells: tuple[Noted, ...]
    effect: float = 0.0
    """By its size the first rows are chosen; infinite: always among them."""


@dataclass(frozen=True)
class Whole:
    """A table with all its rows.

    Raises:
        ValueError: a row of another length than the header.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    found: str
    """Where all of it stands."""
    evenly: bool = False
    """Whether rows have an order that means something: they are thinned evenly, first and last kept."""
    grouped: bool = False
    """Whether each group, the first of the key, has a row for each setting."""
    columns_left: tuple[str, ...] = field(default=())
    """Groups that have no column."""
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(line.cells) != len(self.header) for line in self.lines):
            raise ValueError(f"rows of another length than the header: {self.title}")

    def kept(self, most: int) -> tuple[Line, ...]:
        """The rows that are printed, in their order."""
        if len(self.lines) <= most:
            return self.lines
        return tuple(self._of_groups(most) if self.grouped else self._some(self.lines, most))

    def _of_groups(self, most: int) -> Iterator[Line]:
        """The first group and those with the largest effects, two at least, and of each as many settings as fit."""
        groups: dict[Any, list[Line]] = {}
        for line in self.lines:
            groups.setdefault(line.key[0], []).append(line)
        each = max(1, min(max(map(len, groups.values())), most // min(2, len(groups))))
        first, *others = groups
        others.sort(key=lambda group: -max(line.effect for line in groups[group]))
        largest = {first, *others[: most // each - 1]}
        for lines in (lines for group, lines in groups.items() if group in largest):
            yield from self._some(lines, min(each, len(lines)))

    def _some(self, lines: Sequence[Line], most: int) -> Iterator[Line]:
        """Rows at equal distances, or those with the largest effects, in their order."""
        order = sorted(range(len(lines)), key=lambda i: (-lines[i].effect, i))
        yield from (lines[i] for i in (evenly(len(lines), most) if self.evenly else sorted(order[:most])))

    def view(self, most: int) -> TableView:
        """The table as printed, with the notes of what it prints, and without columns in which nothing stands."""
        kept = self.kept(most)
        marks = _marks(each.note for line in kept for each in line.cells if each.note)
        used = [i for i, _ in enumerate(self.header) if not kept or any(line.cells[i].cell != DASH for line in kept)]
        header = tuple(self.header[i] for i in used)
        rows = tuple(tuple(_marked(line.cells[i], marks) for i in used) for line in kept)
        note = " ".join(part for part in (self.note, *_told(marks, self.found)) if part)
        left = len(self.lines) - len(kept)
        return TableView(self.title, header, rows, note, whole=len(self.lines) * (left > 0), rest=self._rest(left))

    def _rest(self, rows: int) -> str:
        groups = len(self.columns_left)
        parts = [f"{count(n)} more {what}{'s' * (n != 1)}" for n, what in ((rows, "row"), (groups, "group")) if n]
        return f"{' and '.join(parts)}: {self.found}." if parts else ""


def evenly(n: int, most: int) -> list[int]:
    """``most`` places out of ``n``, first and last among them, at equal distances as far as they can be."""
    return [round(i * (n - 1) / (most - 1)) for i in range(most)] if most > 1 else [0]


def rows_allowed(tables: Sequence[Whole]) -> int:
    """How many rows a table of a page may have: fewer where the page has more cells than it may."""
    for most in (MOST_ROWS, *_FEWER):
        if sum(len(table.header) * min(len(table.lines), most) for table in tables) <= MOST_CELLS:
            return most
    return 1


def size(value: float | None) -> float:
    """The size of an effect; that of a value that is not there is below all others."""
    return -1.0 if value is None or math.isnan(value) else abs(value)


def _marks(notes: Iterable[str]) -> dict[str, str]:
    """Each note that is printed -> its mark."""
    distinct = list(dict.fromkeys(notes))
    return {note: NOTED + str(i) * (len(distinct) > 1) for i, note in enumerate(distinct, 1)}


def _told(marks: dict[str, str], found: str) -> list[str]:
    """The notes, each once; the last of many are left to the file."""
    told = [f"{mark} {plain(note)}" for note, mark in marks.items()]
    more = len(told) - _MOST_NOTES
    return [*told[:_MOST_NOTES], f"{more} more notes: {found}."] if more > 0 else told


def _marked(each: Noted, marks: dict[str, str]) -> Cell:
    return replace(each.cell, text=each.cell.text + marks[each.note]) if each.note else each.cell
