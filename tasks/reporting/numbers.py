"""How numbers are written, once for the whole report.

Measures with three significant digits, shares of the data page as percent with one decimal, no zeros behind them;
counts with thousands separators. What is not there says why: withheld, undefined and not computed are three things.
"""

import math

from schemas.tables.verdicts import STATES
from schemas.terms import Note, State
from tasks.metrics.algorithm.verdicts import thresholds
from tasks.pipeline.registry import covering
from tasks.reporting.charts.numbers import MINUS, number
from tasks.reporting.declared import Form, Unit, form_of
from tasks.reporting.material import Measure
from tasks.reporting.section import Cell

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
    """Why there is no value."""
    if m is None:
        return "not computed"
    return "withheld" if m.withheld else "undefined"


def covers(measure: str) -> bool:
    """Whether intervals of a measure cover as often as they say: no other is printed."""
    return thresholds.covers(measure, covering())


def ends(low: float, high: float, unit: Unit, form: Form = "") -> str:
    """Both ends of an interval in brackets, their unit said once by the value before them."""
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
    """A p or q with at most three decimals, two at least; published ones below 0.001 are told as 0.001."""
    return f"≤{SPACE}0.001" if p <= 0.001 else f"{p:.3f}".removesuffix("0")


def p_cell(p: float | None) -> Cell:
    """A p or q as a cell."""
    return DASH if p is None else Cell(p_text(p), "number")


def number_cell(text: str) -> Cell:
    """A number already written."""
    return Cell(text, "number")


def state_cell(state: str) -> Cell:
    """A state as a badge with words."""
    return Cell(STATES[State(state)], "state", state)
