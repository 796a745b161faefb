"""Blocks ``along``: a row for each setting of the parameters; columns are groups, or measures for each group."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tasks.reporting.declared import FORMS, Block, Declared, Form, Setting, Shown
from tasks.reporting.evidence import words
from tasks.reporting.evidence.budget import MOST_COLUMNS, Line, Whole, size
from tasks.reporting.evidence.cells import Noted, measured
from tasks.reporting.evidence.groups import resolved_among
from tasks.reporting.material import Measure, View
from tasks.reporting.numbers import DASH, n_cell
from tasks.reporting.section import Cell

Key = tuple[Any, ...]
"""Value of each parameter of ``along``; None where a row does not have it, as at the open end of a band."""


@dataclass(frozen=True)
class BySetting:
    """A measure along its parameters for one decision maker and protected attribute."""

    block: Block
    said: Declared
    view: View

    @cached_property
    def found(self) -> Mapping[tuple[Form, str, Key], Measure]:
        """Form, group and setting -> row."""
        return {(form, m.group, self._key(m)): m for form in self.block.forms for m in self._rows(form)}

    def _rows(self, form: Form) -> Iterator[Measure]:
        """Rows of the form at any setting; the measure without parameters is none."""
        name = Shown(measure=self.block.measure, form=form).name
        yield from (
            m for m in at_settings(self.view.all(name), self.block, self.block.at) if set(m.said) != set(self.block.at)
        )

    def _key(self, m: Measure) -> Key:
        return key_of(m, self.block)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The settings in order."""
        return ordered(key for _, _, key in self.found)

    @cached_property
    def columns(self) -> tuple[tuple[str, Form], ...]:
        """Groups with their forms, in the order of the report."""
        there = {(group, form) for form, group, _ in self.found}
        return tuple((g, form) for g in self.view.groups for form in self.block.forms if (g, form) in there)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups that have a column: the reference and those with the largest effects, in the order of the report."""
        every = tuple(dict.fromkeys(group for group, _ in self.columns))
        room = max(1, MOST_COLUMNS // len(self.block.forms))
        largest = sorted(every, key=lambda group: -self._effect(group))[:room]
        return tuple(group for group in every if group in largest)

    def _effect(self, group: str) -> float:
        if group == self.view.reference:
            return math.inf
        first = self.block.forms[0]
        values = (m.value for (form, whose, _), m in self.found.items() if whose == group and form == first)
        return max(map(size, values), default=-1.0)

    def table(self, title: str, run: str) -> Whole | None:
        """The table; None where the run has no row of it."""
        if not self.found:
            return None
        columns = [(group, form) for group, form in self.columns if group in self.groups]
        labels = [words.capital(self.said.parameters.get(name, name)) for name in self.block.along]
        header = (*labels, *(self._named(*column) for column in columns))
        largest: dict[Key, float] = {}
        for (_, _, key), m in self.found.items():
            largest[key] = max(size(m.value), largest.get(key, -1.0))
        lines = tuple(Line(key, tuple(self._cells(key, columns)), largest[key]) for key in self.keys)
        names = (Shown(measure=self.block.measure, form=form).name for form in self.block.forms)
        left = tuple(dict.fromkeys(group for group, _ in self.columns if group not in self.groups))
        where = words.measures_found(run, names)
        return Whole(title, header, lines, where, evenly=is_scale(self.keys), columns_left=left)

    def _named(self, group: str, form: Form) -> str:
        return self.view.named(group) + (f": {FORMS[form]}" if form else "")

    def _cells(self, key: Key, columns: list[tuple[str, Form]]) -> Iterator[Noted]:
        yield from _settings(key, self.block, self.said, self.view)
        unit = self.said.measures[self.block.measure].unit
        yield from (measured(self.found.get((form, group, key)), unit, form) for group, form in columns)

    def setting(self, value: Any) -> str:
        """Value of a parameter as it is printed."""
        return words.setting(value, self.said, self.view.labels)


@dataclass(frozen=True)
class BySettingOfGroup:
    """Measures of each group along their parameters for one decision maker and protected attribute."""

    block: Block
    said: Declared
    view: View

    @cached_property
    def found(self) -> Mapping[int, Mapping[tuple[str, Key], Measure]]:
        """Place of each column of which the run has any row -> group and setting -> row."""
        found = {
            i: {
                (m.group, key_of(m, self.block)): m
                for m in at_settings(self.view.all(shown.name), self.block, shown.at)
            }
            for i, shown in enumerate(self.block.columns)
        }
        return {i: rows for i, rows in found.items() if rows}

    def table(self, title: str, run: str) -> Whole | None:
        """The table; None where the run has no row of it."""
        if not self.found:
            return None
        there = dict.fromkeys(each for rows in self.found.values() for each in rows)
        keys = ordered(key for _, key in there)
        lines = tuple(
            Line((group, *key), tuple(self._cells(group, key)), self._effect(group, key))
            for group in self.view.groups
            for key in keys
            if (group, key) in there
        )
        shown = [self.block.columns[i] for i in self.found]
        labels = [words.capital(self.said.parameters.get(name, name)) for name in self.block.along]
        header = ("Group", *labels, "n", *(words.header(self.said, each) for each in shown))
        where = words.measures_found(run, (each.name for each in shown))
        return Whole(title, header, lines, where, evenly=is_scale(keys), grouped=True)

    def _cells(self, group: str, key: Key) -> Iterator[Noted]:
        yield Noted(Cell(self.view.named(group)))
        yield from _settings(key, self.block, self.said, self.view)
        yield Noted(n_cell(next(rows[group, key] for rows in self.found.values() if (group, key) in rows)))
        for i, rows in self.found.items():
            shown, m = self.block.columns[i], rows.get((group, key))
            yield measured(m, self.said.measures[shown.measure].unit, shown.form) if m else Noted(DASH)

    def _effect(self, group: str, key: Key) -> float:
        m = next(iter(self.found.values())).get((group, key))
        return size(m.value if m else None)


def at_settings(rows: Iterable[Measure], block: Block, at: Mapping[str, Setting]) -> Iterator[Measure]:
    """Rows that have the fixed parameters and, beside them, only those that the block runs along."""
    fixed, along = set(at), set(block.along)
    there = [m for m in rows if fixed <= set(m.said) <= fixed | along]
    found = resolved_among([m.said for m in there], at)
    yield from (m for m in there if found is not None and all(m.said[name] == value for name, value in found.items()))


def key_of(m: Measure, block: Block) -> Key:
    """The setting of a row."""
    return tuple(m.said.get(name) for name in block.along)


def ordered(keys: Iterable[Key]) -> tuple[Key, ...]:
    """Settings: numbers by size, names as the run has them; where a parameter is missing comes first."""
    there = list(dict.fromkeys(keys))
    places = [{value: i for i, value in reversed(list(enumerate(values)))} for values in zip(*there, strict=True)]
    return tuple(sorted(there, key=lambda key: tuple(_order(v, places[i][v]) for i, v in enumerate(key))))


def is_scale(keys: Iterable[Key]) -> bool:
    """Whether settings are numbers, so that a few of them at equal distances show the whole."""
    return not any(isinstance(value, str) for key in keys for value in key)


def _settings(key: Key, block: Block, said: Declared, view: View) -> Iterator[Noted]:
    """A cell for each parameter; of one that is missing the words that its name has, or a dash."""
    for name, value in zip(block.along, key, strict=True):
        text = said.values.get(name) if value is None else words.setting(value, said, view.labels)
        yield Noted(DASH if text is None else Cell(text))


def _order(value: Any, place: int) -> tuple[int, float]:
    if value is None:
        return 0, 0.0
    return (1, float(value)) if isinstance(value, int | float) else (2, float(place))
