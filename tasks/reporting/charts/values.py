"""Values, labels and marks of charts."""

import math
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from schemas import questions
from schemas.questions import STATES
from schemas.tables.verdicts import WIDE_HALF
from schemas.terms import State as Judged

# --------------------------------------------------------------------------------------------------------------------
# Numbers as drawings print them, in one way for plot, description and table.
#
# Signed points are whole numbers where half the interval is 2 points or more, else they have one decimal
# (specification of the report, section 5).


MINUS: Final = "\N{MINUS SIGN}"
INFINITE: Final = "\N{INFINITY}"
WITHHELD: Final = "withheld"
"""Stands for a number that disclosure control withholds, and is what is printed of it."""
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
    if not any(character in "123456789" + INFINITE for character in text):
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
    """A number set by a person, such as a limit, with all decimals that it has (at most 6)."""
    return shortest(value, MOST_PLACES, unit.signed)


def people(n: Count) -> str:
    """A number of people; empty without one."""
    if n is None:
        return ""
    return WITHHELD if n == WITHHELD else number(n)


# --------------------------------------------------------------------------------------------------------------------
# Text of a drawing: characters that XML allows, widths without a font, lines, and isolation of right-to-left names.
#
# Widths are upper bounds of common sans-serif faces (DejaVu Sans is the widest of them), so that a line that fits here
# fits in every browser. Escaping is the template's.


ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
FIXED = "\N{NO-BREAK SPACE}"
"""Where a line must not break."""
LEFT_TO_RIGHT, RIGHT_TO_LEFT = "\N{LEFT-TO-RIGHT ISOLATE}", "\N{RIGHT-TO-LEFT ISOLATE}"
END_ISOLATE = "\N{POP DIRECTIONAL ISOLATE}"
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e")
_ISOLATES = frozenset("\u2066\u2067\u2068\u2069")
_BOLD = 1.14
"""Bold letters are wider by this."""
_WIDTHS = {
    char: width
    for width, chars in {
        0.32: " ijlIJ'",
        0.35: ",./:;\\|·’",
        0.41: "ft()-[]",
        0.45: "r!",
        0.5: '"*_`–',
        0.56: "csz?",
        0.61: "kvxyFL",
        0.64: "0123456789abdeghnopquEPSTY${}",
        0.7: "ABCKRVXZ",
        0.75: "NU",
        0.79: "DGHOQ&",
        0.84: "w#+<=>^~−×∞",
        0.87: "M",
        1.0: "mW%@…",
    }.items()
    for char in chars
}
"""Character -> width in ems."""


def clean(text: str, *, isolates: bool = False) -> str:
    """Text without characters that XML refuses or that turn the direction of what follows; white space is one space.

    Args:
        text: any text, such as a group's name.
        isolates: whether to keep isolation marks, for titles whose writer isolated the names in them.
    """
    dropped = _OVERRIDES if isolates else _OVERRIDES | _ISOLATES
    words = "".join(_allowed(char) for char in text if char not in dropped).split(" ")
    return " ".join(word for word in words if word.strip(FIXED))


def _allowed(char: str) -> str:
    if char.isspace():
        return char if char == FIXED else " "
    refused = unicodedata.category(char) in ("Cc", "Cs") or ord(char) & 0xFFFE == 0xFFFE
    return "\N{REPLACEMENT CHARACTER}" if refused else char


def isolated(name: str, full_text: str = "") -> str:
    """A name that does not change the direction of the text around it: for text without ``bdi``.

    Args:
        name: or a line of it.
        full_text: the name of which ``name`` is a line; its direction holds for each line.
    """
    name = clean(name)
    directions = [unicodedata.bidirectional(char) for char in full_text or name]
    if not any(direction in ("R", "AL", "AN") for direction in directions):
        return name
    first = next((direction for direction in directions if direction in ("L", "R", "AL")), "L")
    return f"{LEFT_TO_RIGHT if first == 'L' else RIGHT_TO_LEFT}{name}{END_ISOLATE}"


@lru_cache(maxsize=4096)
def _ems(char: str) -> float:
    """Width of a character in ems."""
    if char in _WIDTHS:
        return _WIDTHS[char]
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return 1.4 if ord(char) > 0xFFFF else 1.0
    base = unicodedata.decomposition(char).split()
    if base and not base[0].startswith("<"):
        return _ems(chr(int(base[0], 16)))
    return {"Hebrew": 0.72, "Devanagari": 0.8}.get(unicodedata.name(char, "").split(" ")[0].title(), 1.1)


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Upper bound of the width of a text.

    Args:
        text: one line.
        size: of the letters, in the unit of the result.
        bold: whether it is drawn bold.
    """
    return sum(_ems(char) for char in text) * size * (_BOLD if bold else 1.0)


def clipped(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """A text that fits into ``room``, with an ellipsis where something is left out."""
    if width(text, size, bold=bold) <= room:
        return text
    prefix = ""
    for cluster in _clusters(text):
        if width(prefix + cluster + ELLIPSIS, size, bold=bold) > room:
            break
        prefix += cluster
    return prefix.rstrip() + ELLIPSIS


def lines(text: str, room: float, size: float, *, most: int, bold: bool = False) -> tuple[str, ...]:
    """A text in at most ``most`` lines of width ``room``; the last one ends in an ellipsis where that is too few."""
    rows: list[str] = []
    rest = clean(text, isolates=True)
    while rest and len(rows) < most - 1:
        line = _first_line(rest, room, size, bold)
        rows.append(line)
        rest = rest[len(line) :].lstrip()
    return (*rows, clipped(rest, room, size, bold=bold)) if rest else tuple(rows)


def _first_line(text: str, room: float, size: float, bold: bool) -> str:
    """As many words as fit, or as many letters of the first word."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}".lstrip()
        if width(longer, size, bold=bold) > room:
            break
        line = longer
    if line:
        return line
    for cluster in _clusters(text):
        if line and width(line + cluster, size, bold=bold) > room:
            break
        line += cluster
    return line


def _clusters(text: str) -> Iterator[str]:
    """Letters with the marks that belong to them, which no line break may part."""
    cluster = ""
    for char in text:
        joined = unicodedata.category(char)[0] == "M" or char == "\u200d" or cluster.endswith("\u200d")
        if cluster and not joined:
            yield cluster
            cluster = ""
        cluster += char
    if cluster:
        yield cluster


# --------------------------------------------------------------------------------------------------------------------
# What charts are drawn of: estimates with interval, number of people and state, and the words that say them.


Side = Literal["at_least", "at_most"]
"""Side of a limit that is allowed; the other side is shaded."""
Tone = Literal["accent", "breach", "few", "ok", "soft"]
"""Colour by meaning, as the style sheet names it."""
Icon = Literal["cross", "tick", "question", "dash", "dot", "ring"]


@dataclass(frozen=True)
class State:
    """A state as it is drawn: a word, and a shape that shows it without colour."""

    word: str
    icon: Icon
    tone: Tone


_DRAWN: Mapping[Judged, tuple[Icon, Tone]] = {
    Judged.OUTSIDE: ("cross", "breach"),
    Judged.WITHIN: ("tick", "ok"),
    Judged.INCONCLUSIVE: ("question", "few"),
    Judged.UNRELIABLE: ("question", "few"),
    Judged.NO_LIMIT: ("dash", "soft"),
    Judged.INFORMATION: ("dot", "soft"),
    Judged.NOT_RUN: ("ring", "soft"),
}
VERDICTS: Mapping[str, State] = {
    **{str(state): State(STATES[state].words, *_DRAWN[state]) for state in _DRAWN},
    questions.WITHHELD: State(f"{STATES[Judged.INCONCLUSIVE].words} (withheld)", "question", "few"),
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
    """Sentence in place of a mark without an interval; else it is in the table only."""
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
        """The value if it may be drawn as a mark: it exists, and so does its interval."""
        return float(self.value) if isinstance(self.value, int | float) and self.low is not None else None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval; without an interval, the value itself."""
        if self.low is None or self.high is None:
            value = float(self.value) if isinstance(self.value, int | float) else 0.0
            return value, value
        return self.low, self.high

    @property
    def sentence(self) -> str:
        """What is printed where no mark can be drawn."""
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
        group_size = people(self.n)
        parts = [
            clean(self.detail),
            "reference" if self.reference else "",
            f"n{FIXED}{group_size}" if group_size else "",
        ]
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
    """The value alone, with the decimals that its interval allows; empty without one."""
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
    """Value and interval as printed next to a mark: "−23 [−30, −17]"."""
    ends = ends_text(estimate, unit)
    return value_text(estimate, unit) + (f" [{ends[0]}, {ends[1]}]" if ends else "")


def said(estimate: Estimate, unit: Unit, interval: str, state: State | None, note: str) -> str:
    """An estimate in a description: value, interval, number of people, state and note."""
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
