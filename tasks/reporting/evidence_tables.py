"""Tables of evidence pages."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from schemas.tables.verdicts import PREFIX, PUBLISHED_MEASURES, approval_of
from schemas.terms import Note
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.curves import is_curve, table_of
from tasks.reporting import material
from tasks.reporting.charts.values import MINUS
from tasks.reporting.declared import FORMS, Block, Declared, Entry, Form, Setting, Shown, Unit
from tasks.reporting.material import Material, Measure, View, listed
from tasks.reporting.text import (
    AS_COUNTS,
    DASH,
    NOTED,
    Cell,
    TableView,
    count,
    covers,
    interval,
    missing_words,
    n_cell,
    p_cell,
    share_cell,
    significant,
    whole,
    written,
)

# --------------------------------------------------------------------------------------------------------------------
# Words of evidence tables: headers of measures and forms, settings, and the location of a whole table.


_CODE = re.compile(r"^[a-z]+(?:_[a-z]+)+(?=: )")
"""Code at the head of a reason, such as ``too_few_events: ...``; a name alone stays as it is."""


def capital(text: str) -> str:
    """With a capital first letter; a symbol, such as p or k, stays as it is."""
    return text if len(text.split(maxsplit=1)[0]) == 1 else material.capital(text)


def words_header(declaration: Declared, column: Shown) -> str:
    """Header of a column of a measure."""
    if column.words:
        return capital(column.words)
    words = declaration.measures[column.measure].words
    return capital(f"{words}: {FORMS[column.form]}" if column.form else words)


def plain(note: str) -> str:
    """A note as a sentence; codes, such as ``too_few: ...``, without their underscores."""
    text = re.sub(r"(?:^|(?<=; ))[a-z]+(?:_[a-z]+)+(?=:|;|$)", lambda code: code[0].replace("_", " "), note)
    return f"{material.capital(text).rstrip('.')}."


def setting(value: Any, declaration: Declared, labels: Mapping[str, str]) -> str:
    """Value of a parameter, or a text of a side table, as it is printed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return whole(value) if float(value).is_integer() else f"{value:.3g}".replace("-", MINUS)
    text = str(value)
    return declaration.values.get(text) or labels.get(text) or _CODE.sub(lambda code: code[0].replace("_", " "), text)


_IN_FILES = "sheet Measures of measures.xlsx, measures.parquet, or"


_CURVES_IN_FILES = "sheet Curves of measures.xlsx, or"


def measures_found(run: str, names: Iterable[str], method: str = "") -> str:
    """The location of all rows of measures, or of the curves that have them as points."""
    names = tuple(dict.fromkeys(names))
    if method and names and all(map(is_curve, names)):
        bases = ", ".join(f"'{name}'" for name in dict.fromkeys(map(base_name, names)))
        where = f"run = '{_quoted(run)}' AND method = '{method}' AND curve IN ({bases})"
        query = f"SELECT * FROM {PREFIX}{table_of(method).name} WHERE {where}"  # noqa: S608 - printed and not run
        return f'{_CURVES_IN_FILES} `evenhand sql "{query}"`'
    listed = ", ".join(f"'{name}'" for name in dict.fromkeys(names))
    query = f"SELECT * FROM {PUBLISHED_MEASURES.name} WHERE run = '{_quoted(run)}' AND measure IN ({listed})"  # noqa: S608 - printed and not run
    return f'{_IN_FILES} `evenhand sql "{query}"`'


def method_found(run: str, method: str, rows: int) -> str:
    """How many rows of measures a method has, on its page or not, and the location of all of them."""
    where = f"run = '{_quoted(run)}' AND method = '{_quoted(method)}'"
    query = f"SELECT * FROM {PUBLISHED_MEASURES.name} WHERE {where}"  # noqa: S608 - printed and not run
    return f'All {count(rows)} rows of its measures: {_IN_FILES} `evenhand sql "{query}"`.'


def table_found(run: str, table: str) -> str:
    """The location of all rows of a side table."""
    query = f"SELECT * FROM {table} WHERE run = '{_quoted(run)}'"  # noqa: S608 - printed and not run
    return f'`evenhand sql "{query}"`'


def _quoted(text: str) -> str:
    return text.replace("'", "''").replace('"', "")


# --------------------------------------------------------------------------------------------------------------------
# Cells of evidence tables: three significant digits, no interval but those that cover, notes apart from the number.


_OF_ENDS = frozenset((Note.RANGE, Note.NO_SPREAD, Note.NO_UPPER_END))
"""Notes that the form of the interval says."""


@dataclass(frozen=True)
class Noted:
    """A cell, and what qualifies its value; the note is printed once under the table."""

    cell: Cell
    note: str = ""


def measured(m: Measure | None, unit: Unit, form: Form = "") -> Noted:
    """A measure as a cell; a missing one states whether it was withheld, undefined or not computed."""
    if m is None or m.value is None:
        why = "" if m is None or m.withheld or m.of_few else m.bound or m.reason
        return Noted(Cell(missing_words(m), "none"), why)
    # What a reader must know of the value; of its ends only where they are printed.
    parts = (part for part in m.note.split("; ") if part and part not in _OF_ENDS)
    note = "; ".join(parts) if covers(m.measure) else m.bound
    return Noted(Cell(written(m.value, unit, form), "number", detail=interval(m, unit, form)), note)


def entry(value: Any, column: Entry, withheld: bool, words: Callable[[str], str], people: int | None = None) -> Noted:
    """A field of a side table as a cell.

    Args:
        value: of any type of a column; None where there is none.
        column: how it is printed.
        withheld: whether a number that is not there was withheld.
        words: text of the table -> as it is printed.
        people: of a share of people, their number.
    """
    if value is None or value == "":
        return Noted(Cell("withheld", "none") if withheld and column.unit != "text" else DASH)
    if isinstance(value, bool):
        return Noted(Cell("yes" if value else "no"))
    if column.unit == "text":
        if not isinstance(value, str):
            return Noted(Cell(significant(value)))
        with suppress(ValueError):  # a number such as 0.52381 has the digits of all others
            value = significant(float(value)) if "." in value else value
        return Noted(Cell(words(value)))
    if people is not None and people < AS_COUNTS:
        return Noted(share_cell(value, people))
    return Noted(Cell(written(approval_of(value) if column.effect else value, column.unit), "number"))


# --------------------------------------------------------------------------------------------------------------------
# Budgets of an evidence page (specification of the report, section 2): rows of a table, cells and charts of a page.
#
# A line under the table counts what is beyond a budget, and names the file that has it.


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
class FullTable:
    """A table with all its rows.

    Raises:
        ValueError: a row of another length than the header.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    location: str
    """Where the reader finds all rows."""
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

    def printed(self, most: int) -> tuple[Line, ...]:
        """The rows that are printed, in their order."""
        if len(self.lines) <= most:
            return self.lines
        return tuple(self._largest_groups(most) if self.grouped else self._selection(self.lines, most))

    def _largest_groups(self, most: int) -> Iterator[Line]:
        """The first group and those with the largest effects, two at least, and of each as many settings as fit."""
        groups: dict[Any, list[Line]] = {}
        for line in self.lines:
            groups.setdefault(line.key[0], []).append(line)
        rows_per_group = max(1, min(max(map(len, groups.values())), most // min(2, len(groups))))
        first, *other_groups = groups
        other_groups.sort(key=lambda group: -max(line.effect for line in groups[group]))
        largest = {first, *other_groups[: most // rows_per_group - 1]}
        for lines in (lines for group, lines in groups.items() if group in largest):
            yield from self._selection(lines, min(rows_per_group, len(lines)))

    def _selection(self, lines: Sequence[Line], most: int) -> Iterator[Line]:
        """Rows at equal distances, or those with the largest effects, in their order."""
        order = sorted(range(len(lines)), key=lambda i: (-lines[i].effect, i))
        yield from (lines[i] for i in (evenly(len(lines), most) if self.evenly else sorted(order[:most])))

    def view(self, most: int) -> TableView:
        """The table as printed, with the notes of what it prints, and without empty columns."""
        visible_lines = self.printed(most)
        distinct = list(dict.fromkeys(noted.note for line in visible_lines for noted in line.cells if noted.note))
        marks = {note: NOTED + str(i) * (len(distinct) > 1) for i, note in enumerate(distinct, 1)}
        used = [
            i
            for i, _ in enumerate(self.header)
            if not visible_lines or any(line.cells[i].cell != DASH for line in visible_lines)
        ]
        header = tuple(self.header[i] for i in used)
        rows = []
        for line in visible_lines:
            noted = [line.cells[i] for i in used]
            rows.append(tuple(replace(n.cell, text=n.cell.text + marks[n.note]) if n.note else n.cell for n in noted))
        # Each note once; the last of many are left to the file.
        notes = [f"{mark} {plain(note)}" for note, mark in marks.items()]
        if len(notes) > _MOST_NOTES:
            notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES} more notes: {self.location}."]
        table_note = " ".join(part for part in (self.note, *notes) if part)
        number_left_out = len(self.lines) - len(visible_lines)
        groups = len(self.columns_left)
        parts = [
            f"{count(n)} more {what}{'s' * (n != 1)}" for n, what in ((number_left_out, "row"), (groups, "group")) if n
        ]
        rest = f"{' and '.join(parts)}: {self.location}." if parts else ""
        return TableView(
            self.title,
            header,
            tuple(rows),
            table_note,
            whole=len(self.lines) * (number_left_out > 0),
            rest=rest,
        )


def evenly(n: int, most: int) -> list[int]:
    """``most`` places out of ``n``, first and last among them, at equal distances as far as they can be."""
    return [round(i * (n - 1) / (most - 1)) for i in range(most)] if most > 1 else [0]


def rows_allowed(tables: Sequence[FullTable]) -> int:
    """How many rows a table of a page may have: fewer where the page has more cells than it may."""
    for most in (MOST_ROWS, *_FEWER):
        if sum(len(table.header) * min(len(table.lines), most) for table in tables) <= MOST_CELLS:
            return most
    return 1


def size(value: float | None) -> float:
    """The size of an effect; a missing value is below all others."""
    return -1.0 if value is None or math.isnan(value) else abs(value)


# --------------------------------------------------------------------------------------------------------------------
# Blocks ``columns``: a row for each group, or part of one, a column for each measure at fixed parameters.


Key = tuple[str, int]
"""A group, and the number of its part; 0 is the whole group."""


_ENDS = ("min", "max")


def resolved_among(rows: Sequence[Mapping[str, Any]], at: Mapping[str, Setting]) -> dict[str, Setting] | None:
    """Parameters with ``min`` and ``max`` as rows have them that agree with the others; None where no row does."""
    resolved: dict[str, Setting] = {}
    for parameter, value in sorted(at.items(), key=lambda numbered: numbered[1] in _ENDS):
        values = [
            parameters[parameter] for parameters in rows if all(parameters[name] == resolved[name] for name in resolved)
        ]
        if value in _ENDS:
            numbers = [value for value in values if isinstance(value, int | float)]
            if not numbers:
                return None
            value = min(numbers) if value == "min" else max(numbers)
        resolved[parameter] = value
    return resolved


@dataclass(frozen=True)
class ByGroup:
    """The measures of a block for one decision maker and protected attribute."""

    block: Block
    declaration: Declared
    view: View

    @cached_property
    def columns(self) -> tuple[tuple[Shown, dict[str, Setting]], ...]:
        """The columns with any row in the run, with their parameters."""
        columns = []
        for column in self.block.columns:
            measures = self.view.rows if self.block.parts else self.view.all(column.name)  # sizes are of parts alone
            rows = [m.said for m in measures if m.measure == column.name and set(m.said) == set(column.at)]
            at = resolved_among(rows, column.at)
            if at is not None and at in rows:
                columns.append((column, at))
        return tuple(columns)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Groups with any row, each followed by its parts if the block requests them."""
        parts = (
            (group, part)
            for group in self.view.groups
            for part in (0, *(self.view.subgroups(group) if self.block.parts else ()))
        )
        return tuple(key for key in parts if any(self.get(key, *column) for column in self.columns))

    def get(self, key: Key, shown: Shown, at: Mapping[str, Setting]) -> Measure | None:
        """The measure of a column for a group."""
        return self.view.get(key[0], shown.name, at, key[1])

    def table(self, title: str, run: str) -> FullTable | None:
        """The table; None where the run has no row of it."""
        if not self.columns:
            return None
        lines = tuple(Line(key, tuple(self._cells(key)), self._effect(key)) for key in self.keys)
        absent = [group for group in self.view.groups if (group, 0) not in self.keys and group != self.view.reference]
        note = f"Not computed: {listed(absent)}." * bool(absent)
        header = ["Group", "n"]
        for column, _ in self.columns:
            header += [words_header(self.declaration, column), *(("p", "q") if column.p else ())]
        names = (column.name for column, _ in self.columns)
        return FullTable(title, tuple(header), lines, measures_found(run, names, self.view.name), note=note)

    def _cells(self, key: Key) -> Iterator[Noted]:
        group, part = key
        yield Noted(Cell(f"{group}, part {part}" if part else self.view.named(group)))
        # The people or units behind the first measure that the group has.
        first = next((m for column in self.columns if (m := self.get(key, *column))), None)
        if first is None or first.n is None:
            yield Noted(Cell("withheld" if first is not None and first.withheld else "–", "none"))
        else:
            yield Noted(Cell(count(first.n), "number"))
        for column, at in self.columns:
            m, unit = self.get(key, column, at), self.declaration.measures[column.measure].unit
            of_itself = m is None and (group == self.view.reference or (self.block.parts and not part))
            yield Noted(DASH) if of_itself else measured(m, unit, column.form)
            if column.p:
                yield from (Noted(p_cell(probability)) for probability in ((m.p, m.q) if m else (None, None)))

    def _effect(self, key: Key) -> float:
        """The first measure decides; the reference group always stays."""
        m = self.get(key, *self.columns[0])
        return math.inf if key == (self.view.reference, 0) else size(m.value if m else None)


# --------------------------------------------------------------------------------------------------------------------
# Blocks ``along``: a row for each setting of the parameters; columns are groups, or measures for each group.


SettingsKey = tuple[Any, ...]
"""Value of each parameter of ``along``; None where a row does not have it, as at the open end of a band."""


@dataclass(frozen=True)
class BySetting:
    """A measure along its parameters for one decision maker and protected attribute."""

    block: Block
    declaration: Declared
    view: View

    @cached_property
    def found(self) -> Mapping[tuple[Form, str, SettingsKey], Measure]:
        """Form, group and setting -> row."""
        found, fixed = {}, set(self.block.at)
        for form in self.block.forms:
            name = Shown(measure=self.block.measure, form=form).name
            for m in at_settings(self.view.all(name), self.block, self.block.at):
                if set(m.said) != fixed:  # the measure without parameters is none of them
                    found[form, m.group, key_of(m, self.block)] = m
        return found

    @cached_property
    def keys(self) -> tuple[SettingsKey, ...]:
        """The settings in order."""
        return ordered(key for _, _, key in self.found)

    @cached_property
    def columns(self) -> tuple[tuple[str, Form], ...]:
        """Groups with their forms, in the order of the report."""
        present = {(group, form) for form, group, _ in self.found}
        return tuple((g, form) for g in self.view.groups for form in self.block.forms if (g, form) in present)

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
        values = (m.value for (form, name, _), m in self.found.items() if name == group and form == first)
        return max(map(size, values), default=-1.0)

    def table(self, title: str, run: str) -> FullTable | None:
        """The table; None where the run has no row of it."""
        if not self.found:
            return None
        columns = [(group, form) for group, form in self.columns if group in self.groups]
        labels = [capital(self.declaration.parameters.get(name, name)) for name in self.block.along]
        heads = (self.view.named(group) + (f": {FORMS[form]}" if form else "") for group, form in columns)
        header = (*labels, *heads)
        largest: dict[SettingsKey, float] = {}
        for (_, _, key), m in self.found.items():
            largest[key] = max(size(m.value), largest.get(key, -1.0))
        lines = tuple(Line(key, tuple(self._cells(key, columns)), largest[key]) for key in self.keys)
        names = (Shown(measure=self.block.measure, form=form).name for form in self.block.forms)
        missing_groups = tuple(dict.fromkeys(group for group, _ in self.columns if group not in self.groups))
        where = measures_found(run, names, self.view.name)
        return FullTable(title, header, lines, where, evenly=is_scale(self.keys), columns_left=missing_groups)

    def _cells(self, key: SettingsKey, columns: list[tuple[str, Form]]) -> Iterator[Noted]:
        yield from _settings(key, self.block, self.declaration, self.view)
        unit = self.declaration.measures[self.block.measure].unit
        yield from (measured(self.found.get((form, group, key)), unit, form) for group, form in columns)

    def setting(self, value: Any) -> str:
        """Value of a parameter as it is printed."""
        return setting(value, self.declaration, self.view.labels)


@dataclass(frozen=True)
class BySettingOfGroup:
    """Measures of each group along their parameters for one decision maker and protected attribute."""

    block: Block
    declaration: Declared
    view: View

    @cached_property
    def found(self) -> Mapping[int, Mapping[tuple[str, SettingsKey], Measure]]:
        """Place of each column with any row in the run -> group and setting -> row."""
        rows_by_column = {
            i: {
                (m.group, key_of(m, self.block)): m
                for m in at_settings(self.view.all(column.name), self.block, column.at)
            }
            for i, column in enumerate(self.block.columns)
        }
        return {i: rows for i, rows in rows_by_column.items() if rows}

    def table(self, title: str, run: str) -> FullTable | None:
        """The table; None where the run has no row of it."""
        if not self.found:
            return None
        present = dict.fromkeys(place for rows in self.found.values() for place in rows)
        keys = ordered(key for _, key in present)
        lines = tuple(
            Line((group, *key), tuple(self._cells(group, key)), self._effect(group, key))
            for group in self.view.groups
            for key in keys
            if (group, key) in present
        )
        columns = [self.block.columns[i] for i in self.found]
        labels = [capital(self.declaration.parameters.get(name, name)) for name in self.block.along]
        header = ("Group", *labels, "n", *(words_header(self.declaration, column) for column in columns))
        where = measures_found(run, (column.name for column in columns), self.view.name)
        return FullTable(title, header, lines, where, evenly=is_scale(keys), grouped=True)

    def _cells(self, group: str, key: SettingsKey) -> Iterator[Noted]:
        yield Noted(Cell(self.view.named(group)))
        yield from _settings(key, self.block, self.declaration, self.view)
        yield Noted(n_cell(next(rows[group, key] for rows in self.found.values() if (group, key) in rows)))
        for i, rows in self.found.items():
            column, m = self.block.columns[i], rows.get((group, key))
            yield measured(m, self.declaration.measures[column.measure].unit, column.form) if m else Noted(DASH)

    def _effect(self, group: str, key: SettingsKey) -> float:
        m = next(iter(self.found.values())).get((group, key))
        return size(m.value if m else None)


def at_settings(rows: Iterable[Measure], block: Block, at: Mapping[str, Setting]) -> Iterator[Measure]:
    """Rows with the fixed parameters and, in addition, only those that the block runs along."""
    fixed, along = set(at), set(block.along)
    matches = [m for m in rows if fixed <= set(m.said) <= fixed | along]
    resolved = resolved_among([m.said for m in matches], at)
    yield from (
        m for m in matches if resolved is not None and all(m.said[name] == value for name, value in resolved.items())
    )


def key_of(m: Measure, block: Block) -> SettingsKey:
    """The setting of a row."""
    return tuple(m.said.get(name) for name in block.along)


def ordered(keys: Iterable[SettingsKey]) -> tuple[SettingsKey, ...]:
    """Settings: numbers by size, names as the run has them; where a parameter is missing comes first."""
    distinct_keys = list(dict.fromkeys(keys))
    places = [
        {value: i for i, value in reversed(list(enumerate(values)))} for values in zip(*distinct_keys, strict=True)
    ]
    return tuple(sorted(distinct_keys, key=lambda key: tuple(_order(v, places[i][v]) for i, v in enumerate(key))))


def is_scale(keys: Iterable[SettingsKey]) -> bool:
    """Whether settings are numbers, so that a few of them at equal distances show the whole."""
    return not any(isinstance(value, str) for key in keys for value in key)


def _settings(key: SettingsKey, block: Block, declaration: Declared, view: View) -> Iterator[Noted]:
    """A cell for each parameter; of one that is missing the words that its name has, or a dash."""
    for name, value in zip(block.along, key, strict=True):
        text = declaration.values.get(name) if value is None else setting(value, declaration, view.labels)
        yield Noted(DASH if text is None else Cell(text))


def _order(value: Any, place: int) -> tuple[int, float]:
    if value is None:
        return 0, 0.0
    return (1, float(value)) if isinstance(value, int | float) else (2, float(place))


# --------------------------------------------------------------------------------------------------------------------
# Blocks ``table``: the rows of a side table, split by decision maker and protected attribute where it has them.


MISSING = Cell(missing_words(None), "none")
_EFFECTS = ("rate", "number", "points")
_SCOPE = ("decision_maker", "protected_attribute")

Rows = list[Mapping[str, Any]]


def rows_of(block: Block, material: Material) -> tuple[str, Rows]:
    """Name of the table as the run has it, and the rows that the block shows."""
    name = next((name for name in (PREFIX + block.table, block.table) if name in material.tables), block.table)
    rows = material.tables.get(name, ())
    return name, [row for row in rows if all(row.get(field) == value for field, value in block.where.items())]


def scopes(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Rows]:
    """Decision maker and attribute, empty where the table has none -> their rows."""
    rows_by_scope: dict[tuple[str, str], Rows] = {}
    for row in rows:
        maker, attribute = (str(row.get(field) or "") for field in _SCOPE)
        rows_by_scope.setdefault((maker, attribute), []).append(row)
    return rows_by_scope


def table(
    block: Block, declaration: Declared, material: Material, title: str, rows: Rows, name: str
) -> FullTable | None:
    """The rows as a table, without columns and rows that say nothing; None where nothing is left."""
    # Rows with any number, or a reason why they have none.
    visible_rows = [
        row
        for row in rows
        if not block.numbers
        or any(row.get(field) is not None for field in block.numbers)
        or row.get("reason")
        or _withheld(row)
    ]
    fields = [field for field in block.fields if any(row.get(field) not in (None, "") for row in visible_rows)]
    numbers = block.numbers
    if numbers and not set(numbers) & set(fields):  # rows of keys alone: withheld, or nothing was computed
        fields = [field for field in block.fields if field in fields or field in numbers]
        fields = fields if any(map(_withheld, visible_rows)) else []
    if not fields:
        return None
    notes = [field for field in fields if block.fields[field].note]
    fields = [field for field in fields if field not in notes]
    printed = _Printed(block, declaration, {name: c.label for name, c in material.settings.columns.items() if c.label})
    lines = tuple(
        Line((i,), printed.line(row, fields, notes), printed.effect(row)) for i, row in enumerate(visible_rows)
    )
    header = tuple(capital(block.fields[field].words) for field in fields)
    number_left_out = len(rows) - len(visible_rows)
    note = f"{number_left_out} row{'s' * (number_left_out != 1)} without a value." * bool(number_left_out)
    return FullTable(title, header, lines, table_found(material.settings.run, name), note=note)


def _withheld(row: Mapping[str, Any]) -> bool:
    return bool(row.get("withheld", any(name in row and row[name] is None for name in ("n", "rows"))))


@dataclass(frozen=True)
class _Printed:
    """How fields of a block are printed."""

    block: Block
    declaration: Declared
    labels: Mapping[str, str]

    def line(self, row: Mapping[str, Any], fields: Sequence[str], notes: Sequence[str]) -> tuple[Noted, ...]:
        """The cells of a row, and on its first number what remarks say of it."""
        cells = [self.cell(row, field) for field in fields]
        note = "; ".join(setting(row[field], self.declaration, self.labels) for field in notes if row.get(field))
        first = next((i for i, field in enumerate(fields) if field in self.block.numbers), 0)
        if note:
            cell = cells[first].cell
            cells[first] = Noted(MISSING if cell == DASH else cell, note)
        return tuple(cells)

    def cell(self, row: Mapping[str, Any], field: str) -> Noted:
        labels = {} if field == "group" else self.labels
        return entry(
            row.get(field),
            self.block.fields[field],
            _withheld(row),
            lambda text: setting(text, self.declaration, labels),
            row.get(self.block.fields[field].of),
        )

    def effect(self, row: Mapping[str, Any]) -> float:
        """Size of the field that is declared, else of the first value that is no count."""
        fields = self.block.fields.items()
        decides = self.block.by or next((field for field, column in fields if column.unit in _EFFECTS), None)
        return 0.0 if decides is None else size(row.get(decides))
