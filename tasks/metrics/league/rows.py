"""Rows of the league: one measure of one group in every partition, with pooled estimates, screening and differences.

A state is that of the partition's own verdict. Nothing here changes it, and q decides no state.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from schemas.terms import Note, State
from tasks.metrics.league.algorithm.pooling import Spread, pooled
from tasks.metrics.league.algorithm.screening import one_sided, screened
from tasks.numerics.arrays import Bools, Floats

NORMAL_95: Final = 1.959963984540054
_POWER: Final = NORMAL_95 + float(norm.isf(0.2))
"""Normal quantiles of a two-sided 5 % test and of 80 % power."""
LEAST_P: Final = 0.001
"""A published p is told as this where it is smaller: then estimate and error tell it."""


@dataclass(frozen=True)
class Entrant:
    """One partition, by the run that stands for it."""

    value: str
    """Of the column, such as the LEI of a lender."""
    name: str = ""
    """What the value is called, where that is known."""
    run: str = ""
    usable: int | None = None
    """Rows that were used, as published; None where withheld."""
    sampled: str = ""
    """Which methods asked a sample of the applicants, in words; empty where everybody was asked."""


@dataclass(frozen=True)
class Figure:
    """One measure of one partition, as its run has published it; None where there is no number, or it is withheld."""

    value: float | None = None
    low: float | None = None
    """Ends of the 95 % interval."""
    high: float | None = None
    judged_low: float | None = None
    """Ends of the verdict interval."""
    judged_high: float | None = None
    se: float | None = None
    """Standard error of the value, or of its logarithm."""
    logarithmic: bool = False
    bias: float = 0.0
    """By how much a column that the table lacks may have moved it."""
    limit: float | None = None
    side: str = ""
    p: float | None = None
    """One-sided, of an effect at or inside the limit, as published."""
    detectable: float | None = None
    """Smallest effect (of a ratio: largest) that would be found with 80 % power."""
    robustness: float | None = None
    n: int | None = None
    state: str = State.NOT_RUN
    reason: str = ""
    withheld: bool = False

    @property
    def is_pooled(self) -> bool:
        """Whether it has an estimate with an error on its scale."""
        known = self.value is not None and self.se is not None and self.se > 0
        return known and not (self.logarithmic and not (self.value or 0.0) > 0)

    @property
    def is_beyond(self) -> bool:
        """Whether the verdict interval lies beyond the limit."""
        if self.limit is None or self.judged_low is None or self.judged_high is None:
            return False
        return self.judged_low > self.limit if self.side == "at_most" else self.judged_high < self.limit


WITHHELD: Final = Figure(state=State.INSUFFICIENT_EVIDENCE, reason="withheld: it rests on few people", withheld=True)
ACROSS: Final = replace(WITHHELD, reason="withheld: it would tell the count of few people in another partition")


@dataclass(frozen=True)
class Line:
    """One partition in the league."""

    entrant: Entrant
    figure: Figure
    difference: float | None = None
    """Its value less that of all rows."""
    pooled: float | None = None
    pooled_low: float | None = None
    pooled_high: float | None = None
    p: float | None = None
    q: float | None = None
    q_dependent: float | None = None
    screened: bool = False


@dataclass(frozen=True)
class Standings:
    """All partitions by one measure of one group."""

    lines: tuple[Line, ...]
    """In the order of the lower end of the pooled interval, the side beyond the limit first; then those without one."""
    everybody: Figure | None
    """Of all rows of the year."""
    spread: Spread
    logarithmic: bool
    tested: int
    by_chance: float
    """Partitions that tests at 5 % would call beyond a limit that they all just keep."""
    false: float
    """Screened partitions that are expected to be false, at most."""

    @property
    def screened(self) -> tuple[Line, ...]:
        """The partitions that are screened."""
        return tuple(line for line in self.lines if line.screened)


def of_verdict(row: Mapping[str, Any]) -> Figure:
    """The figure of a row of the published table of verdicts."""
    if row["withheld"]:
        return replace(WITHHELD, limit=row["limit"], side=row["side"] or "")
    logarithmic = row["scale"] == "log"
    numbers = {"value": row["value"], "se": row["se"], "logarithmic": logarithmic, "bias": row["bias"] or 0.0}
    ends = {"low": row["plain_low"], "high": row["plain_high"], "judged_low": row["low"], "judged_high": row["high"]}
    limit = {"limit": row["limit"], "side": row["side"] or "", "p": row["p_breach"], "robustness": row["robustness"]}
    found = Figure(**numbers, **ends, **limit, n=row["n"], state=row["state"], reason=row["reason"])
    return replace(found, detectable=row["detectable"] if row["detectable"] is not None else _detectable(found))


def of_measure(row: Mapping[str, Any], *, covers: bool) -> Figure:
    """The figure of a row of the published table of measures; its error is that of its interval, where that covers."""
    if row["value"] is None and (row["n"] is None or row["reason"].startswith("withheld")):
        return WITHHELD
    ranged = Note.RANGE in (row["note"] or "").split("; ")
    low, high = (None, None) if ranged or not covers else (row["low"], row["high"])
    logarithmic = row["measure"].endswith("_ratio")
    se = None
    if low is not None and high is not None and not (logarithmic and low <= 0):
        ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
        se = (ends[1] - ends[0]) / (2 * NORMAL_95)
    found = Figure(row["value"], low, high, se=se, logarithmic=logarithmic, n=row["n"], state=row["state"])
    compared = row["reference_group"] is not None
    return replace(found, reason=row["reason"], detectable=_detectable(found) if compared else None)


def _detectable(figure: Figure) -> float | None:
    """From no difference, where no limit is set; a ratio below 1."""
    if figure.se is None or figure.limit is not None:
        return None
    return math.exp(-_POWER * figure.se) if figure.logarithmic else _POWER * figure.se


def standings(figures: Sequence[tuple[Entrant, Figure]], everybody: Figure | None) -> Standings:
    """Pool, screen and order the figures of partitions, of one measure and group."""
    p = np.array([_p(figure) for _, figure in figures], dtype=np.float64)
    found = screened(p, np.array([figure.is_beyond for _, figure in figures], dtype=np.bool_))
    usable = np.array([figure.is_pooled for _, figure in figures], dtype=np.bool_)
    logarithmic = any(figure.logarithmic for _, figure in figures)
    ends, spread = _pooled([figure for _, figure in figures], usable, logarithmic)
    base = None if everybody is None else everybody.value
    lines = []
    for number, (entrant, figure) in enumerate(figures):
        difference = None if base is None or figure.value is None else figure.value - base
        value, low, high = (_known(each) for each in ends[number])
        own, q, dependent = (_known(each[number]) for each in (p, found.q, found.q_dependent))
        is_screened = bool(found.screened[number])
        lines.append(Line(entrant, figure, difference, value, low, high, own, q, dependent, is_screened))
    side = next((figure.side for _, figure in figures if figure.side), "at_most")
    lines.sort(key=lambda line: _place(line, side))
    tested = int(np.isfinite(p).sum())
    return Standings(tuple(lines), everybody, spread, logarithmic, tested, found.by_chance, found.false)


def _pooled(figures: Sequence[Figure], usable: Bools, logarithmic: bool) -> tuple[Floats, Spread]:
    """Pooled estimates with both ends, ``(k, 3)``, on the scale of the values, and how true effects lie."""
    ends = np.full((len(figures), 3), np.nan)
    known = [figure for figure, is_known in zip(figures, usable, strict=True) if is_known]
    values = np.array([figure.value for figure in known], dtype=np.float64)
    errors = np.array([figure.se for figure in known], dtype=np.float64)
    made = pooled(np.log(values) if logarithmic else values, errors**2)
    stacked = np.column_stack([made.values, made.low, made.high])
    ends[usable] = np.exp(stacked) if logarithmic else stacked
    return ends, made.spread


def _p(figure: Figure) -> float:
    """One-sided, of an effect at or inside the limit; NaN where there is no limit, or no number."""
    if figure.p is None or figure.limit is None:
        return math.nan
    if figure.p > LEAST_P or not figure.is_pooled or figure.low is None or figure.high is None:
        return figure.p
    scale = math.log if figure.logarithmic else float
    if figure.logarithmic and not figure.low > 0:
        return figure.p
    sign = 1.0 if figure.side == "at_most" else -1.0
    beyond = sign * (scale(figure.value or 0.0) - scale(figure.limit)) - figure.bias
    half = (scale(figure.high) - scale(figure.low)) / 2
    told = one_sided(np.array([beyond]), np.array([figure.se]), np.array([half]))
    return min(float(told[0]), figure.p)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _place(line: Line, side: str) -> tuple[bool, float, str]:
    """By the lower end of the pooled interval: first the largest where large is beyond the limit, else the smallest."""
    low = line.pooled_low
    if low is None:
        return True, 0.0, line.entrant.value
    return False, low if side == "at_least" else -low, line.entrant.value
