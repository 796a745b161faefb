"""What charts are drawn of: estimates with interval, number of people and state, and the words that say them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from schemas.tables import verdicts
from schemas.tables.verdicts import STATES
from schemas.terms import State as Judged
from tasks.reporting.charts.lettering import FIXED, clean
from tasks.reporting.charts.numbers import WITHHELD, Count, Figure, Unit, people, places_of, shortest

Side = Literal["at_least", "at_most"]
"""Side of a limit that is allowed; the other side is shaded."""
Tone = Literal["accent", "breach", "few", "ok", "soft"]
"""Colour by meaning, as the style sheet names it."""
Icon = Literal["cross", "tick", "question", "dash", "dot", "ring"]


@dataclass(frozen=True)
class State:
    """A state as it is drawn: a word, and a shape that tells it without colour."""

    word: str
    icon: Icon
    tone: Tone


_DRAWN: Mapping[Judged, tuple[Icon, Tone]] = {
    Judged.BREACH: ("cross", "breach"),
    Judged.WITHIN: ("tick", "ok"),
    Judged.INSUFFICIENT_EVIDENCE: ("question", "few"),
    Judged.NO_LIMIT: ("dash", "soft"),
    Judged.DESCRIPTIVE: ("dot", "soft"),
    Judged.NOT_RUN: ("ring", "soft"),
}
VERDICTS: Mapping[str, State] = {
    **{str(state): State(STATES[state], *_DRAWN[state]) for state in _DRAWN},
    verdicts.WITHHELD: State(f"{STATES[Judged.INSUFFICIENT_EVIDENCE]} (withheld)", "question", "few"),
}
"""States of verdicts -> how they are drawn, in the order of legends (specification of the report, section 3)."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval, in the unit of the chart.

    Raises:
        ValueError: a number that is no number, an interval with one end, or the interval of a withheld value.
    """

    value: Figure = None
    low: float | None = None
    high: float | None = None
    """Both ends or none; an infinite end is an arrow."""
    n: Count = None
    note: str = ""
    """Sentence that stands in the place of the mark where there is no interval; else it is in the table only."""
    state: str = ""
    """Key of the chart's states; empty: none is printed."""

    def __post_init__(self) -> None:
        ends = [end for end in (self.low, self.high) if end is not None]
        if len(ends) == 1:
            raise ValueError("an interval has two ends: give an infinite one where it is open")
        if any(math.isnan(end) for end in ends) or (ends and ends[0] > ends[1]):
            raise ValueError(f"no interval: {ends}")
        if isinstance(self.value, str):
            if self.value != WITHHELD or ends:
                raise ValueError(f"a value is a number, {WITHHELD!r} without an interval, or None: {self.value!r}")
        elif self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a value is finite: {self.value}")
        elif self.value is None and ends:
            raise ValueError("an interval without its value")

    @property
    def point(self) -> float | None:
        """The value if it may be drawn as a mark: it is there, and so is its interval."""
        return float(self.value) if isinstance(self.value, int | float) and self.low is not None else None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval; the value itself where there is none."""
        if self.low is None or self.high is None:
            value = float(self.value) if isinstance(self.value, int | float) else 0.0
            return value, value
        return self.low, self.high

    @property
    def sentence(self) -> str:
        """What is printed where no mark can stand."""
        note = clean(self.note)
        if self.value == WITHHELD:
            return note if WITHHELD in note.lower() else f"Withheld. {note}".rstrip()
        return note or ("Not computed." if self.value is None else "No interval is published.")


@dataclass(frozen=True, kw_only=True)
class Mark(Estimate):
    """A row of a forest or of steps."""

    label: str
    """Name of a group or comparison, as users wrote it."""
    detail: str = ""
    """Second line, such as "as decided"; the number of people is added to it."""
    reference: bool = False
    """Whether this is the reference group, which is grey."""
    compared: bool = False
    """Whether another row is held against it: as grey as the reference group, and not called one."""
    limit: float | None = None
    """Limit of this row, where rows have different ones; None: that of the chart."""
    apart: bool = False
    """Whether it is no step from the row above: steps are not joined to it."""

    @property
    def is_grey(self) -> bool:
        """Whether it is drawn as what others are compared with."""
        return self.reference or self.compared

    @property
    def below(self) -> str:
        """The line under the label: detail and number of people."""
        said = people(self.n)
        parts = [clean(self.detail), "reference" if self.reference else "", f"n{FIXED}{said}" if said else ""]
        return ", ".join(part for part in parts if part)


def state_of(estimate: Estimate, states: Mapping[str, State]) -> State | None:
    """How the state of an estimate is drawn; None where it has none.

    Raises:
        ValueError: a state that the chart does not know.
    """
    if not estimate.state:
        return None
    if estimate.state not in states:
        raise ValueError(f"unknown state {estimate.state!r}: one of {', '.join(states)}")
    return states[estimate.state]


def value_text(estimate: Estimate, unit: Unit) -> str:
    """The value alone, with the decimals that its interval allows; empty where there is none."""
    if estimate.value is None:
        return ""
    if isinstance(estimate.value, str):
        return WITHHELD
    return shortest(estimate.value, places_of(unit, estimate.low, estimate.high), unit.signed)


def ends_text(estimate: Estimate, unit: Unit) -> tuple[str, str] | None:
    """Both ends of the interval in words; None without one."""
    if estimate.low is None or estimate.high is None:
        return None
    places = places_of(unit, estimate.low, estimate.high)
    return shortest(estimate.low, places, unit.signed), shortest(estimate.high, places, unit.signed)


def shown(estimate: Estimate, unit: Unit) -> str:
    """Value and interval as they stand beside a mark: "−23 [−30, −17]"."""
    ends = ends_text(estimate, unit)
    return value_text(estimate, unit) + (f" [{ends[0]}, {ends[1]}]" if ends else "")


def said(estimate: Estimate, unit: Unit, interval: str, state: State | None, note: str) -> str:
    """An estimate as a description says it: value, interval, number of people, state and note."""
    ends, n = ends_text(estimate, unit), people(estimate.n)
    value = value_text(estimate, unit) or ("" if state else "no value")
    parts = [
        value,
        f"{interval} {ends[0]} to {ends[1]}" if ends else "",
        f"n {n}" if n else "",
        state.word if state else "",
    ]
    text = ", ".join(part for part in parts if part)
    return f"{text}. {clean(note)}" if note else f"{text}."
