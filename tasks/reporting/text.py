"""Text parts and number formats of a report."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from schemas.questions import STATES
from schemas.terms import Note, State
from tasks.metrics.algorithm import measures
from tasks.pipeline.registry import covering
from tasks.reporting.charts.layout import Chart
from tasks.reporting.charts.values import MINUS, number
from tasks.reporting.declared import Form, Unit, form_of
from tasks.reporting.material import Measure

# --------------------------------------------------------------------------------------------------------------------
# Parts of a section of the report: words, figures and tables, all plain text until the template escapes it.
#
# Scope: shapes. How numbers are written: ``numbers``. How charts are drawn: ``charts``. Files: ``pages``.


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    kind: Literal["text", "number", "state", "none", "time"] = "text"
    """``none`` is a number that is not there: withheld, undefined or not computed, as its text says."""
    state: str = ""
    """For a state: its code, which decides colour and shape; for a time: it in ISO 8601. Words are in ``text``."""
    detail: str = ""
    """The interval of a number, which may be on a separate line."""
    address: str = ""
    """Where the text leads to, from the page; empty where it leads nowhere."""

    @property
    def whole(self) -> str:
        """The cell as one line."""
        return f"{self.text} {self.detail}".strip()


K = TypeVar("K")
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class TableView:
    """A table as shown."""

    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    folded: bool = False
    """Whether it is closed at first."""
    whole: int = 0
    """Rows of the whole table where ``rows`` are the first of them by size of effect; 0: these are all."""
    rest: str = ""
    """Where the reader finds rows that are not printed; empty: in the files that have all measures."""

    @classmethod
    def of(
        cls,
        title: str,
        keys: Iterable[K],
        columns: Mapping[str, Callable[[K], Cell]],
        note: str = "",
        *,
        folded: bool = False,
    ) -> "TableView":
        """A table with a row for each key; ``columns`` give each header the function that makes its cell."""
        rows = tuple(tuple(cell(key) for cell in columns.values()) for key in keys)
        return cls(title, tuple(columns), rows, note, folded)


@dataclass(frozen=True)
class Figure:
    """A chart with a caption that describes only what it shows; its title is the chart's."""

    chart: Chart
    caption: str = ""


@dataclass(frozen=True)
class Notice:
    """A sentence that must not be overlooked, and the points that it is about."""

    title: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """Text that keeps its lines, such as a spec or a command."""

    title: str
    text: str
    folded: bool = True
    """Whether it is closed at first."""


@dataclass(frozen=True)
class Link:
    """Words, and the page or file of the run that they lead to."""

    words: str
    address: str
    """From the folder of the run, such as ``method.html#gap``."""


@dataclass(frozen=True)
class Section:
    """A section; its parts are one heading level below it."""

    title: str
    anchor: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    """Sentences as a list: readings of the figures, one a group."""
    notices: tuple[Notice, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[TableView, ...] = ()
    listings: tuple[Listing, ...] = ()
    links: tuple[Link, ...] = ()
    """Where to read on, below the words."""
    parts: tuple["Section", ...] = ()


# --------------------------------------------------------------------------------------------------------------------
# How numbers are written, once for the whole report.
#
# Measures with three significant digits, shares of the data page as percent with one decimal, no zeros behind them;
# counts with thousands separators. What is not there says why: withheld, undefined and not computed are three things.


SPACE = "\N{NO-BREAK SPACE}"
DASH = Cell("–", "none")
"""Nothing belongs here: a measure that does not apply."""
_ROUNDING, _TINY = 1e-9, 0.0001
"""Shares between them, of whatever sign, are printed as less than 0.01 percent."""
NOTED = "\N{DAGGER}"
"""Behind a number that a note qualifies: a bound is never printed as if it were the optimum."""


def count(n: int | float) -> str:
    """A whole number with thousands separators."""
    return number(n)


def whole(value: float) -> str:
    """A count as one; a mean or a difference of counts need not be a whole number."""
    return count(value) if float(value).is_integer() else significant(value)


def significant(value: float) -> str:
    """Three significant digits at most: no zeros behind what was published, as 0.27 may be a rounded number.

    Never in exponents of ten unless tiny; what is left of rounding is zero.
    """
    if abs(value) < _ROUNDING:
        return "0"
    value = float(f"{value:.2e}") if abs(value) < 1000 else value
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", MINUS)
    if abs(value) < 0.0005:
        return f"{value:.1e}".replace("-", MINUS)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return _shorter(f"{value:.{digits}f}")


def _shorter(text: str) -> str:
    """Without zeros at the end of decimals."""
    return (text.rstrip("0").removesuffix(".") if "." in text else text).replace("-", MINUS)


def percent(value: float) -> str:
    """A share as percent with one decimal at most; a sign only where it is not zero as printed."""
    return _shorter(f"{100 * value:.1f}".removeprefix("-" * (abs(value) < 0.0005))) + f"{SPACE}%"


AS_COUNTS = 10
"""A share of fewer people than this is printed as its counts."""


def share_cell(share: float, n: int | None) -> Cell:
    """A share of people as percent; of few people as their counts, such as ``3 of 7``."""
    if n is None or n >= AS_COUNTS:
        return number_cell(percent(share))
    return Cell(f"{round(share * n)} of {n}")


def written(value: float, unit: Unit, form: Form = "") -> str:
    """A number with three significant digits and its unit; a difference has its sign."""
    text, suffix = _parts(value, unit, form)
    return text + suffix


def _parts(value: float, unit: Unit, form: Form) -> tuple[str, str]:
    if form == "ratio":
        return significant(value), ""
    if unit == "p" and not form.endswith("difference"):
        return p_text(value), ""
    signed = unit == "points" or form.endswith("difference")
    share = unit in ("rate", "points")
    text = (whole if unit == "count" else significant)(100 * value if share else value)
    suffix = f"{SPACE}pp" if signed else f"{SPACE}%"
    if share and _ROUNDING < abs(value) < _TINY:
        text, signed = f"<{SPACE}{100 * _TINY}", False
    return "+" * (signed and value > 0 and text != "0") + text, suffix * share


def missing_words(m: Measure | None) -> str:
    """Why the value is missing."""
    if m is None:
        return "not computed"
    if m.of_few:
        return m.reason
    return "withheld" if m.withheld else "undefined"


def covers(measure: str) -> bool:
    """Whether intervals of a measure cover as often as they say: no other is printed."""
    return measures.covers(measure, covering())


def ends(low: float, high: float, unit: Unit, form: Form = "") -> str:
    """Both ends of an interval in brackets; the value before them has their unit."""
    return f"[{_parts(low, unit, form)[0]}, {_parts(high, unit, form)[0]}]"


def interval(m: Measure, unit: Unit, form: Form = "") -> str:
    """A range of draws in round brackets, an interval that covers in square ones; no other."""
    if not m.of_draws and not covers(m.measure):
        return ""
    if m.low is None:
        return f"({Note.NO_SPREAD})" if Note.NO_SPREAD in m.note else ""
    if m.high is None:
        return f"[{_parts(m.low, unit, form)[0]}, \N{INFINITY})" if Note.NO_UPPER_END in m.note else ""
    text = ends(m.low, m.high, unit, form)
    return f"({text[1:-1].replace(', ', ' to ')})" if m.of_draws else text


def value_cell(m: Measure | None, unit: Unit) -> Cell:
    """A measure as a cell, with its interval."""
    if m is None or m.value is None:
        return Cell(missing_words(m), "none")
    form = form_of(m.measure)
    return Cell(written(m.value, unit, form) + NOTED * bool(m.bound), "number", detail=interval(m, unit, form))


def n_cell(m: Measure | None) -> Cell:
    """The units behind a measure as a cell."""
    if m is None or m.n is None:
        return Cell(missing_words(m) if m is None else "withheld", "none")
    return Cell(count(m.n), "number")


def p_text(p: float) -> str:
    """A p or q with at most three decimals, two at least; published ones below 0.001 are printed as 0.001."""
    return f"≤{SPACE}0.001" if p <= 0.001 else f"{p:.3f}".removesuffix("0")


def p_cell(p: float | None) -> Cell:
    """A p or q as a cell."""
    return DASH if p is None else Cell(p_text(p), "number")


def number_cell(text: str) -> Cell:
    """A number already written."""
    return Cell(text, "number")


def state_cell(state: str) -> Cell:
    """A state as a badge with words."""
    return Cell(STATES[State(state)].words, "state", state)


# --------------------------------------------------------------------------------------------------------------------
# Guards cells of CSV against spreadsheets, which run text that begins as a formula does.


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *map(chr, (0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)))
"""What a spreadsheet may take for the beginning of a formula."""


def guarded(value: object) -> object:
    """Text like a formula with an apostrophe before it; numbers and all other text as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
