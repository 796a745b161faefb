"""Blocks ``table``: the rows of a side table, split by decision maker and protected attribute where it has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.tables.publication import PREFIX
from tasks.reporting.declared import Block, Declared
from tasks.reporting.evidence import words
from tasks.reporting.evidence.budget import Line, Whole, size
from tasks.reporting.evidence.cells import Noted, entry
from tasks.reporting.material import Material
from tasks.reporting.numbers import DASH, missing_words
from tasks.reporting.section import Cell

MISSING = Cell(missing_words(None), "none")
_EFFECTS = ("rate", "number", "points")
_SCOPE = ("decision_maker", "protected_attribute")

Rows = list[Mapping[str, Any]]


def rows_of(block: Block, material: Material) -> tuple[str, Rows]:
    """Name of the table as the run has it, and the rows that the block shows."""
    name = next((each for each in (PREFIX + block.table, block.table) if each in material.tables), block.table)
    rows = material.tables.get(name, ())
    return name, [row for row in rows if all(row.get(field) == value for field, value in block.where.items())]


def scopes(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Rows]:
    """Decision maker and attribute, empty where the table has none -> their rows."""
    found: dict[tuple[str, str], Rows] = {}
    for row in rows:
        maker, attribute = (str(row.get(field) or "") for field in _SCOPE)
        found.setdefault((maker, attribute), []).append(row)
    return found


def table(block: Block, said: Declared, material: Material, title: str, rows: Rows, name: str) -> Whole | None:
    """The rows as a table, without columns and rows that say nothing; None where nothing is left."""
    kept = [row for row in rows if _says(row, block)]
    fields = [field for field in block.fields if any(row.get(field) not in (None, "") for row in kept)]
    numbers = block.numbers
    if numbers and not set(numbers) & set(fields):  # rows of keys alone: withheld, or nothing was computed
        fields = [field for field in block.fields if field in fields or field in numbers]
        fields = fields if any(map(_withheld, kept)) else []
    if not fields:
        return None
    notes = [field for field in fields if block.fields[field].note]
    fields = [field for field in fields if field not in notes]
    printed = _Printed(block, said, {each: c.label for each, c in material.settings.columns.items() if c.label})
    lines = tuple(Line((i,), printed.line(row, fields, notes), printed.effect(row)) for i, row in enumerate(kept))
    header = tuple(words.capital(block.fields[field].words) for field in fields)
    left = len(rows) - len(kept)
    note = f"{left} row{'s' * (left != 1)} without a value." * bool(left)
    return Whole(title, header, lines, words.table_found(material.settings.run, name), note=note)


def _withheld(row: Mapping[str, Any]) -> bool:
    return bool(row.get("withheld", row.get("n", 0) is None))


def _says(row: Mapping[str, Any], block: Block) -> bool:
    """Whether a row has any number, or says why it has none."""
    there = any(row.get(field) is not None for field in block.numbers) or not block.numbers
    return there or bool(row.get("reason")) or _withheld(row)


@dataclass(frozen=True)
class _Printed:
    """How fields of a block are printed."""

    block: Block
    said: Declared
    labels: Mapping[str, str]

    def line(self, row: Mapping[str, Any], fields: Sequence[str], notes: Sequence[str]) -> tuple[Noted, ...]:
        """The cells of a row, and on its first number what remarks say of it."""
        cells = [self.cell(row, field) for field in fields]
        said = "; ".join(words.setting(row[field], self.said, self.labels) for field in notes if row.get(field))
        first = next((i for i, field in enumerate(fields) if field in self.block.numbers), 0)
        if said:
            cell = cells[first].cell
            cells[first] = Noted(MISSING if cell == DASH else cell, said)
        return tuple(cells)

    def cell(self, row: Mapping[str, Any], field: str) -> Noted:
        labels = {} if field == "group" else self.labels
        return entry(
            row.get(field),
            self.block.fields[field],
            _withheld(row),
            lambda text: words.setting(text, self.said, labels),
        )

    def effect(self, row: Mapping[str, Any]) -> float:
        """Size of the field that is declared, else of the first value that is no count."""
        fields = self.block.fields.items()
        decides = self.block.by or next((each for each, shown in fields if shown.unit in _EFFECTS), None)
        return 0.0 if decides is None else size(row.get(decides))
