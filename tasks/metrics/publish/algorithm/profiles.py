"""Disclosure profiles: thresholds, rounding bases and digits."""

import math
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from schemas.terms import SMALLEST
from tasks.numerics.arrays import Floats

# --------------------------------------------------------------------------------------------------------------------
# Disclosure profiles: thresholds, rounding bases, and what a reader learns from a printed count.
#
# Scope: counts. Digits of other numbers are in ``digits``. Source: rules 3 to 5 of the disclosure pass; decision 0034.


@dataclass(frozen=True)
class Policy:
    """One profile of disclosure control."""

    smallest: int
    """Populations of 1 to ``smallest - 1`` are withheld; 0 where nothing is."""
    events_too: bool
    """Whether counts with and without an event of 1 to ``smallest - 1`` are given as a range."""
    round_to: int
    """Published counts are rounded to a multiple of this."""
    as_counts: int = 0
    """A rate of fewer people than this is printed as its counts: neither a percentage nor a state rests on them."""

    @property
    def protects(self) -> bool:
        """Whether anything is withheld or rounded at all."""
        return self.smallest > 0

    @property
    def wanted(self) -> int:
        """Least width of the interval that a reader can infer for a withheld count."""
        return max(self.smallest - 1, 0)

    @property
    def bases(self) -> tuple[int, ...]:
        """What counts can be rounded to: the profile's base, then coarser ones that secondary control may ask for."""
        return (self.round_to, *(base for base in COARSER if base > self.round_to))


COARSER = (5, 10, 20)
"""Bases of secondary control. Counts rounded alike differ by up to 4, 8 or 10, and 18 or 20, since ties go to even."""

POLICIES = {
    "internal": Policy(SMALLEST["internal"], events_too=False, round_to=1),
    "published": Policy(SMALLEST["published"], events_too=False, round_to=1, as_counts=10),
    "public": Policy(SMALLEST["public"], events_too=False, round_to=1),
    "strict": Policy(SMALLEST["strict"], events_too=True, round_to=5),
    "official": Policy(SMALLEST["official"], events_too=True, round_to=10),
}

MOST_MOVED = 0.1
"""Of a share: what rounding beyond the profile's own may move its events by. 12 of 28 by twenties are 20 of 20."""

CERTAIN = (0.95, 0.9, 0.8, 0.75)
"""Limits that stand for the share of a group in which everybody was denied."""
LEAST, FEW = 5, 100
"""Groups of ``LEAST`` to ``FEW - 1`` people have such a limit."""


class Span(NamedTuple):
    """Whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int


def small(policy: Policy, n: int, events: int | None = None) -> bool:
    """Whether a count of people, or a share by its count and events, is small. Zero discloses nothing."""
    counts = [n, events, n - events] if policy.events_too and events is not None else [n]
    return any(0 < count < policy.smallest for count in counts)


def rounded(policy: Policy, count: int, base: int = 0) -> int:
    """The count as published, rounded to ``base`` (0: that of the profile); a tie goes to the even multiple."""
    base = base or policy.round_to
    return round(count / base) * base


def is_coarse(policy: Policy, base: int, n: int) -> bool:
    """Whether secondary control rounds to ``base``, by which a share of ``n`` people could be any other one."""
    return base > policy.round_to and base / 2 > MOST_MOVED * n


def learned(policy: Policy, count: int, base: int = 0, never_small: bool = True) -> Span:
    """The counts that are printed as this one is: what a reader who knows the rules learns.

    Where counts of 1 to ``smallest - 1`` would not be printed (``never_small``), the reader leaves them out.
    """
    base = base or policy.round_to
    printed = rounded(policy, count, base)
    near = range(max(ceil(printed - base / 2), 0), floor(printed + base / 2) + 1)
    alike = [candidate for candidate in near if rounded(policy, candidate, base) == printed]
    if never_small:
        alike = [candidate for candidate in alike if not 0 < candidate < policy.smallest]
    return Span(alike[0], alike[-1])


def certain(n: int) -> float | None:
    """Limit for the share with an adverse event in a small group; None where ``n`` needs none.

    It is the largest in ``CERTAIN`` that leaves room for one person without the event.
    """
    return next(limit for limit in CERTAIN if limit * n < n - 1) if LEAST <= n < FEW else None


class Range(NamedTuple):
    """What is printed in place of a share: words, and what a reader learns about a count from them."""

    text: str
    rest: bool
    """Whether the span is about those without the event."""
    span: Span
    least_width: int
    """Least width that must be left of the span."""
    sizes: Span | None = None
    """What the words tell of n."""


def ranged(policy: Policy, n: int, events: int, adverse: bool) -> Range | None:
    """The range that is printed in place of a share; None where the share itself is.

    In a group below ``FEW`` every share near 1 of an ``adverse`` event is a range: if only a share of 1 were, the range
    would tell it.
    """
    if not policy.protects or n == 0:
        return None
    without = n - events
    if policy.events_too:
        if adverse and rounded(policy, n) < FEW and without < policy.smallest:
            return Range(_above(policy, n), True, Span(0, policy.smallest - 1), policy.wanted)
        if 0 < without < policy.smallest and without <= events:
            return Range(_above(policy, n), True, Span(1, policy.smallest - 1), policy.wanted - 1)
        if 0 < events < policy.smallest:
            few, decimals = _limit(policy, n)
            return Range(f"below {few:.{decimals}f}", False, Span(1, policy.smallest - 1), policy.wanted - 1)
        return None
    limit = certain(n) if adverse else None
    if limit is None or events <= limit * n:
        return None
    most = n - floor(limit * n) - 1
    alike = [size for size in range(LEAST, FEW) if certain(size) == limit]
    return Range(f"more than {100 * limit:g} %", True, Span(0, most), min(most, 1), Span(alike[0], alike[-1]))


def _limit(policy: Policy, n: int) -> tuple[float, int]:
    """Share that ``smallest`` of ``n`` are, rounded up, with its decimals."""
    printed = max(rounded(policy, n), 1)
    decimals = max(len(str(printed)) - 1, 1)
    return min(ceil(policy.smallest / printed * 10**decimals) / 10**decimals, 1.0), decimals


def _above(policy: Policy, n: int) -> str:
    limit, decimals = _limit(policy, n)
    return f"above {1 - limit:.{decimals}f}"


# --------------------------------------------------------------------------------------------------------------------
# Digits of published numbers that are no counts: shares, means, distances, p-values, and values of single persons.
#
# Source: rule 5 of the disclosure pass. Under ``internal`` nothing is rounded.


SIGNIFICANT = 3
"""Digits of means, distances and facts of the graph."""
P_DIGITS, LEAST_P = 2, 0.001
EXTREMES = 0.05
"""Quantile that stands for a smallest value; 1 less this for a largest."""
ENOUGH = 60
"""People that such a quantile is taken over, at least."""


class End(StrEnum):
    """Which end of the values one person's value is."""

    SMALLEST = "smallest"
    LARGEST = "largest"


def share(events: int, n: int) -> float:
    """A share as published, of counts as they are printed: as many decimals as ``n``, one or more, has digits."""
    return round(min(events / n, 1.0), decimals(n))


def decimals(n: int) -> int:
    """Decimals of a share of ``n``: as many as ``n`` has digits."""
    return len(str(max(n, 1)))


def blunt(n: int) -> int:
    """Decimals with which a share is one of every number near ``n``: a step of the last is one person or more."""
    return math.floor(math.log10(n))


def significant(policy: Policy, value: float, digits: int = SIGNIFICANT) -> float:
    """A mean, a distance or a fact of the graph as published: three significant digits."""
    return float(f"{value:.{digits}g}") if policy.protects and math.isfinite(value) else value


def p_value(policy: Policy, p: float) -> float:
    """A p-value as published: two digits, and below 0.001 no more than that."""
    if math.isnan(p) or not policy.protects:
        return p
    return LEAST_P if p < LEAST_P else significant(policy, p, P_DIGITS)


def extreme(policy: Policy, values: Floats, end: End) -> float:
    """Published replacement of the smallest or largest of ``(n,)`` values, which belongs to one person.

    The 5 % or 95 % quantile to three digits where n is 60 or more; NaN, that is withheld, below.
    """
    if values.size == 0:
        return math.nan
    if not policy.protects:
        return float(values.min() if end is End.SMALLEST else values.max())
    if values.size < ENOUGH:
        return math.nan
    quantile = float(np.quantile(values, EXTREMES if end is End.SMALLEST else 1 - EXTREMES))
    return significant(policy, quantile)
