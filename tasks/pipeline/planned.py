"""A planned measure: its parameters, the range of its values, and its comparisons."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

Values = tuple[float | str, ...] | None
"""Values that a parameter takes; None where only the data tell them."""

COMPARED: Final = ("difference", "ratio")
"""Suffixes of what a tally compared with the reference group's has beside it."""

RANGE: Final = "is a range of draws"
NO_INTERVAL: Final = "has no interval"
COMPARES_WHOLES: Final = "compares two groups, each as a whole, without an interval"
"""Why a limit on a measure is never judged; see ``tasks.metrics.algorithm.measures``."""

_DRAWN: Final = ("size_matched", "null")

NAMES_OF_BAND: Final[Mapping[str, Values]] = {"from": None, "to": None, "category": None}
"""Parameters of a share by band, of which a band has some."""


@dataclass(frozen=True)
class Form:
    """A measure in one set of parameters."""

    measure: str
    parameters: Mapping[str, Values] = field(default_factory=dict)
    """All that it may have."""
    low: float = 0.0
    high: float = math.inf
    beside: tuple[str, ...] = ()
    """Suffixes of the comparisons that are made of it."""
    makers: tuple[str, ...] = ()
    """Decision makers that it is made of; all whose decisions are explained if none is named."""
    whole: bool = False
    """Whether it is an aggregate: of the group as a whole, so that what compares it has no interval."""
    unjudged: str = ""
    """Why no limit on it is ever judged; empty where one can be."""

    def named(self) -> Iterator["Form"]:
        """The measure itself and each comparison, under its full name and with its own range."""
        yield self
        for suffix in self.beside:
            low, high = _range(suffix, self.low, self.high)
            why = RANGE if suffix in _DRAWN else COMPARES_WHOLES if self.whole else ""
            yield Form(f"{self.measure}_{suffix}", self.parameters, low, high, (), self.makers, self.whole, why)

    def __str__(self) -> str:
        """As a message lists it, such as ``share_positive with k = 5, 10 and variant = st``."""
        said = [f"{name} = {_listed(values)}" for name, values in self.parameters.items()]
        return f"{self.measure} with {' and '.join(said)}" if said else f"{self.measure} without parameters"


def share(
    measure: str,
    parameters: Mapping[str, Values] | None = None,
    beside: tuple[str, ...] = (),
    makers: tuple[str, ...] = (),
) -> Form:
    """A measure from 0 to 1."""
    return Form(measure, parameters or {}, 0.0, 1.0, beside, makers)


def whole(form: Form, unjudged: str = "") -> Form:
    """The form as an aggregate; one that its method never resamples has no interval, and so is not judged."""
    return replace(form, whole=True, unjudged=unjudged)


def without_interval(form: Form) -> Form:
    """The form as an aggregate that is never resampled."""
    return whole(form, NO_INTERVAL)


def up_to(number: int) -> Values:
    """1, 2, ..., the number."""
    return tuple(range(1, number + 1))


def _range(suffix: str, low: float, high: float) -> tuple[float, float]:
    if suffix.endswith("difference"):
        return low - high, high - low
    return (0.0, math.inf) if suffix == "ratio" else (low, high)


def _listed(values: Values) -> str:
    if values is None:
        return "(told by the data)"
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return ", ".join(shown if len(shown) <= _MOST else [*shown[: _MOST - 1], "...", shown[-1]])


_MOST: Final = 8
