"""Numbers as the first page prints them: points of approval, rates of 100, percent, words for parts.

Every number is handed in as it was published; here it is only written.
"""

import math

from tasks.reporting.charts.numbers import number, shortest

MOST, LITTLE = 0.75, 0.25
HALF = (0.35, 0.65)
"""Ends of "about half"; both count."""


def points(value: float, decimals: int = 0) -> str:
    """A signed number of points, without zeros behind it; no sign where it is zero as printed."""
    return shortest(value, decimals, signed=True)


def in_points(value: float) -> str:
    """A whole number of points with its unit."""
    text = points(value)
    return f"{text} point" if text[1:] == "1" else f"{text} points"


def interval(low: float, high: float, decimals: int = 0) -> str:
    """An interval of points in brackets."""
    return f"[{points(low, decimals)}, {points(high, decimals)}]"


def some_points(value: float) -> str:
    """A size in points, without a sign, rounded up: "9 points"."""
    n = max(math.ceil(value - 1e-9), 1)
    return f"{n} point" if n == 1 else f"{n} points"


def points_below(value: float) -> str:
    """A size in points, without a sign, rounded down: to a decimal below one point."""
    n = math.floor(value + 1e-9)
    return some_points(n) if n else f"{math.floor(10 * value + 1e-9) / 10:g} points"


def of_100(rate: float) -> str:
    """A share as a whole number of 100."""
    return f"{100 * rate:.0f}"


def forecast(n: float) -> str:
    """A number of applications to two digits, rounded up: it is no more than a forecast."""
    step = 10 ** max(math.floor(math.log10(n)) - 1, 0) if n >= 1 else 1
    return number(math.ceil(n / step - 1e-9) * step)


def percent(share: float) -> str:
    """Percent without its sign: one decimal below 10, unless that is a zero."""
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def whole_percent(share: float) -> str:
    """Percent as a whole number; what is smaller than one says so."""
    return "below 1" if 0 < 100 * share < 0.5 else f"{100 * share:.0f}"


def part(share: float) -> str:
    """A part in words, by fixed ranges; else as percent."""
    if share > MOST:
        return "most"
    if HALF[0] <= share <= HALF[1]:
        return "about half"
    return "little" if share < LITTLE else f"{of_100(share)} %"
