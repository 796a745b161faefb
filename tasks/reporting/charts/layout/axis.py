"""The axis of a chart: round ticks that include 0, and which intervals leave it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.reporting.charts.marks import Estimate
from tasks.reporting.charts.numbers import MOST_PLACES, Unit, number

_STEPS = (1, 2, 5)
_HALVES, _SHARE = 3.0, 0.5
"""An axis goes beyond its values by this many typical half intervals, or this share of their range, whichever is more;
wider intervals end in an arrow."""
_SLIVER = 1e-6
_TINY = 10.0**-MOST_PLACES


@dataclass(frozen=True)
class Axis:
    """Ends and ticks in the unit of the chart."""

    low: float
    high: float
    ticks: tuple[float, ...]
    places: int
    """Decimals that tell ticks apart."""

    def labels(self, unit: Unit) -> tuple[str, ...]:
        """Ticks as they are printed."""
        return tuple(number(tick, self.places, unit.signed) for tick in self.ticks)

    def at(self, value: float, start: float, end: float) -> float:
        """Place of a value between two coordinates, that of the nearer end where it lies outside."""
        inside = min(max(value, self.low), self.high)
        return start + (end - start) * (inside - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high


def axis_of(estimates: Sequence[Estimate], limits: Sequence[float], unit: Unit, most: int = 7) -> Axis:
    """The axis on which all values, all limits and 0 lie, and as much of the intervals as can be read.

    Args:
        estimates: of all rows; those without a value do not count.
        limits: that are drawn.
        unit: whose bounds the axis keeps.
        most: ticks.
    """
    values = [float(each.value) for each in estimates if isinstance(each.value, int | float)]
    core = [*values, *limits, 0.0]
    low, high = min(core), max(core)
    drawn = [each.ends for each in estimates if each.point is not None]
    halves = sorted((b - a) / 2 for a, b in drawn if math.isfinite(b - a))
    typical = halves[(len(halves) - 1) // 2] if halves else 0.0
    reach = max(_SHARE * (high - low), _HALVES * typical)
    first = min([low, *(max(a, low - reach) for a, _ in drawn)])
    last = max([high, *(min(b, high + reach) for _, b in drawn)])
    nearly = _SLIVER * (last - first)
    inner = [*limits, *([0.0] if unit.signed else [])]  # both sides of these are seen
    first, last = min([first, *(each - nearly for each in inner)]), max([last, *(each + nearly for each in inner)])
    return between(max(first, min(unit.low, low)), min(last, max(unit.high, high)), unit, most)


def between(low: float, high: float, unit: Unit, most: int = 7) -> Axis:
    """The axis from the last round number at or below ``low`` to the first at or above ``high``, bounds of 0 included.

    Steps are 1, 2 or 5 times a power of ten, the smallest that needs no more than ``most`` ticks.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < _TINY:
        low, high = (0.0, 1.0) if unit.low == 0 else (-1.0, 1.0)
    power = math.floor(math.log10((high - low) / most)) - 1
    while True:
        for factor in _STEPS:
            first, last = _floor(low, factor, power), -_floor(-high, factor, power)
            if last - first < max(most, 2):
                ticks = tuple(_multiple(i, factor, power) for i in range(first, last + 1))
                return Axis(ticks[0], ticks[-1], ticks, max(0, -power))
        power += 1


def _multiple(i: int, factor: int, power: int) -> float:
    """``i * factor * 10 ** power``, rounded once."""
    return float(i * factor * 10**power) if power >= 0 else i * factor / 10**-power


def _floor(value: float, factor: int, power: int) -> int:
    """How many steps lie below a value; a value that misses a tick by rounding alone lies on it."""
    steps = value / _multiple(1, factor, power)
    nearest = round(steps)
    return nearest if abs(steps - nearest) < 1e-9 * max(1.0, abs(steps)) else math.floor(steps)
