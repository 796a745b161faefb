"""Numbers as drawings print them, in one way for plot, description and table.

Signed points are whole numbers where half the interval is 2 points or more, else they have one decimal
(specification of the report, section 5).
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

MINUS: Final = "\N{MINUS SIGN}"
INFINITE: Final = "\N{INFINITY}"
WITHHELD: Final = "withheld"
"""Stands for a number that disclosure control withholds, and is what is printed of it."""
WIDE_HALF: Final = 2.0
"""Half an interval from which on decimals would claim more than is known, in the unit."""
MOST_PLACES: Final = 6

Figure = float | Literal["withheld"] | None
"""A number, ``WITHHELD``, or nothing because it was not computed."""
Count = int | Literal["withheld"] | None
"""A number of people, ``WITHHELD``, or nothing."""


@dataclass(frozen=True)
class Unit:
    """What numbers of a chart count, and how they are printed."""

    name: str
    """As the axis, the table and the description say it, such as "points of approval"."""
    signed: bool = False
    """Whether a positive number is printed with a plus sign: differences are."""
    places: int | None = None
    """Decimals. None: none or one, by the width of the interval."""
    low: float = -math.inf
    """Least possible value; no axis begins below."""
    high: float = math.inf
    """Greatest possible value; no axis ends above."""


POINTS = Unit("points of approval", signed=True)
"""Differences of approval rates in percentage points."""
OF_100 = Unit("of 100 applicants", low=0.0, high=100.0)
"""Rates as people of 100."""
RATIO = Unit("ratio of approval rates", places=2, low=0.0)
"""Approval rate of a group divided by that of the reference group."""
PERCENT = Unit("percent", places=1, low=0.0)
"""Shares that need a decimal, such as explained variance."""


def number(value: float, places: int = 0, signed: bool = False) -> str:
    """A number with thousands separators, a true minus sign, and no sign on what rounds to zero.

    Args:
        value: any number; infinite ends of intervals are printed as a sign.
        places: decimals.
        signed: whether positive numbers get a plus sign.
    """
    text = INFINITE if math.isinf(value) else f"{abs(value):,.{places}f}"
    if not any(each in "123456789" + INFINITE for each in text):
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def places_of(unit: Unit, low: float | None = None, high: float | None = None) -> int:
    """Decimals of a value and its interval: of the unit, else none where half the interval is wide or unknown."""
    if unit.places is not None:
        return unit.places
    if low is None or high is None:
        return 0
    return 0 if (high - low) / 2 >= WIDE_HALF else 1


def shortest(value: float, places: int, signed: bool = False) -> str:
    """A number without zeros at the end of its decimals: 0.27 as percent may be a rounded number, and no 27.0.

    Every number of a drawing is printed so, value and interval alike, as those of tables are; only ticks of an axis
    share their decimals.
    """
    return number(value, len(f"{abs(value):.{places}f}".partition(".")[2].rstrip("0")), signed)


def exact(value: float, unit: Unit) -> str:
    """A number that somebody set, such as a limit, with all decimals that it has (at most 6)."""
    return shortest(value, MOST_PLACES, unit.signed)


def people(n: Count) -> str:
    """A number of people; empty where there is none."""
    if n is None:
        return ""
    return WITHHELD if n == WITHHELD else number(n)
