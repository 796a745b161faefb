"""How numbers are written, once for the whole report.

Rates as percent with one decimal, other numbers with three significant digits, counts with thousands separators. What
is not there says why: withheld, undefined or not computed are three different things.
"""

import math

from schemas.tables.verdicts import STATES
from schemas.terms import Note, State
from tasks.reporting.material import Measure, Unit
from tasks.reporting.section import Cell

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
DASH = Cell("–", "none")
"""Nothing belongs here: a measure that does not apply."""
NOTED = "\N{DAGGER}"
"""Behind a number that a note qualifies: a bound is never printed as if it were the optimum."""


def count(n: int | float) -> str:
    """A whole number with thousands separators."""
    return f"{int(n):,}".replace("-", MINUS)


def whole(value: float) -> str:
    """A count as one; a mean or a difference of counts need not be a whole number."""
    return count(value) if float(value).is_integer() else significant(value)


def significant(value: float) -> str:
    """Three significant digits, never in exponents of ten unless tiny."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", MINUS)
    if abs(value) < 0.0005:
        return f"{value:.1e}".replace("-", MINUS)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}".replace("-", MINUS)


def percent(value: float) -> str:
    """A share as percent with one decimal; a sign only where it is not zero as printed."""
    text = f"{100 * value:.1f}"
    return ("0.0" if text == "-0.0" else text.replace("-", MINUS)) + f"{SPACE}%"


def points(value: float) -> str:
    """A difference of shares in percentage points, always signed."""
    text = f"{100 * value:+.1f}"
    return ("0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)) + f"{SPACE}pp"


def written(value: float, unit: Unit, measure: str = "") -> str:
    """A value in the unit of its measure, which may be a difference or a ratio of it."""
    if measure.endswith("_ratio"):  # of whatever unit; FACE's too is a plain number
        return significant(value)
    if measure.endswith("_difference"):
        sign = "+" if value > 0 else ""
        return (
            points(value) if unit in ("rate", "points") else sign + (whole if unit == "count" else significant)(value)
        )
    return {"rate": percent, "number": significant, "count": whole, "points": points}[unit](value)


def missing_words(m: Measure | None) -> str:
    """Why there is no value."""
    if m is None:
        return "not computed"
    return "withheld" if m.withheld else "undefined"


def value(m: Measure | None, unit: Unit, interval: bool = True) -> str:
    """A measure with its interval, or why there is none."""
    if m is None or m.value is None:
        return missing_words(m)
    text = written(m.value, unit, m.measure)
    ends = interval_text(m, unit) if interval else ""
    return f"{text} {ends}" if ends else text


def interval_of(low: float | None, high: float | None) -> str:
    """The interval of a difference of shares in brackets, in percentage points; empty where there is none."""
    if low is None or high is None:
        return ""
    ends = (points(end).removesuffix(f"{SPACE}pp") for end in (low, high))
    return f"[{', '.join(ends)}]"


def interval_text(m: Measure, unit: Unit) -> str:
    """The interval in brackets, its unit said once by the value before it; a range of draws is written as one."""
    if m.low is None or m.high is None:
        return f"({Note.NO_SPREAD})" if Note.NO_SPREAD in m.note else ""
    low, high = (
        written(x, unit, m.measure).removesuffix(f"{SPACE}%").removesuffix(f"{SPACE}pp") for x in (m.low, m.high)
    )
    return f"({low} to {high})" if m.of_draws else f"[{low}, {high}]"


def value_cell(m: Measure | None, unit: Unit, interval: bool = True) -> Cell:
    """A measure as a cell."""
    if m is None or m.value is None:
        return Cell(missing_words(m), "none")
    text = value(m, unit, interval=False) + NOTED * bool(m.bound)
    return Cell(text, "number", detail=interval_text(m, unit) if interval else "")


def n_cell(m: Measure | None) -> Cell:
    """The units behind a measure as a cell."""
    if m is None or m.n is None:
        return Cell(missing_words(m) if m is None else "withheld", "none")
    return Cell(count(m.n), "number")


def p_cell(p: float | None) -> Cell:
    """A p or q as a cell."""
    if p is None:
        return Cell("–", "none")
    return Cell(f"<{SPACE}0.001" if p < 0.001 else f"{p:.3f}", "number")


def difference_cells(m: Measure | None, unit: Unit, reference: bool = False) -> tuple[Cell, Cell, Cell]:
    """A difference from the reference group with its p and q; dashes where the row is the reference group's own."""
    if reference:
        return (DASH, DASH, DASH)
    return value_cell(m, unit), p_cell(m.p if m else None), p_cell(m.q if m else None)


def number_cell(text: str) -> Cell:
    """A number already written."""
    return Cell(text, "number")


def state_cell(state: str) -> Cell:
    """A state as a badge with words."""
    return Cell(STATES[State(state)], "state", state)
