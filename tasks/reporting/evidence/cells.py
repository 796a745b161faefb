"""Cells of evidence tables: three significant digits, no interval but those that cover, notes apart from the number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas.terms import Note
from tasks.reporting.declared import Entry, Form, Unit
from tasks.reporting.material import Measure
from tasks.reporting.numbers import DASH, covers, interval, missing_words, significant, written
from tasks.reporting.section import Cell

_OF_ENDS = frozenset((Note.RANGE, Note.NO_SPREAD, Note.NO_UPPER_END))
"""Notes that the form of the interval says."""


@dataclass(frozen=True)
class Noted:
    """A cell, and what qualifies its value; the note is printed once under the table."""

    cell: Cell
    note: str = ""


def measured(m: Measure | None, unit: Unit, form: Form = "") -> Noted:
    """A measure as a cell; what is not there says whether it was withheld, undefined or not computed."""
    if m is None or m.value is None:
        why = "" if m is None or m.withheld else m.bound or m.reason
        return Noted(Cell(missing_words(m), "none"), why)
    return Noted(Cell(written(m.value, unit, form), "number", detail=interval(m, unit, form)), _qualifies(m))


def _qualifies(m: Measure) -> str:
    """What a reader must know of the value; of its ends only where they are printed."""
    if not covers(m.measure):
        return m.bound
    return "; ".join(part for part in m.note.split("; ") if part and part not in _OF_ENDS)


def entry(value: Any, shown: Entry, withheld: bool, words: Callable[[str], str]) -> Noted:
    """A field of a side table as a cell.

    Args:
        value: of any type of a column; None where there is none.
        shown: how it is printed.
        withheld: whether a number that is not there was withheld.
        words: text of the table -> as it is printed.
    """
    if value is None or value == "":
        return Noted(Cell("withheld", "none") if withheld and shown.unit != "text" else DASH)
    if isinstance(value, bool):
        return Noted(Cell("yes" if value else "no"))
    if shown.unit == "text":
        return Noted(Cell(words(_short(value)) if isinstance(value, str) else significant(value)))
    return Noted(Cell(written(value, shown.unit), "number"))


def _short(text: str) -> str:
    """A number in a column of texts, such as 0.52381, with the digits of all others."""
    try:
        return significant(float(text)) if "." in text else text
    except ValueError:
        return text
