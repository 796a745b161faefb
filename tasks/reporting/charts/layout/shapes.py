"""Shapes that drawings consist of: paths and texts in colours by meaning, symbols of states, and sizes of a layout.

A colour is a name here. The style sheet gives each a variable for light, dark and forced colours; the values below are
those of a drawing without style sheet, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tasks.reporting.charts.lettering import width
from tasks.reporting.charts.marks import Icon, State, Tone

Colour = Literal["ink", "line", "paper", "shade"] | Tone
Kind = Literal["fill", "hollow", "bar", "thin", "dashed", "dotted", "faint"]
"""How a path is drawn: filled, outlined over paper, a line of 3, 1.5 (also dashed and dotted) or 1 unit."""
Anchor = Literal["start", "middle", "end"]

LIGHT: dict[Colour, str] = {
    "ink": "#1c2024",
    "soft": "#565d66",
    "line": "#dfe2e6",
    "paper": "#ffffff",
    "shade": "#fbeae4",
    "accent": "#0b5394",
    "breach": "#a8320a",
    "few": "#7a5000",
    "ok": "#0b6b50",
}
DARK: dict[Colour, str] = {
    "ink": "#eceef0",
    "soft": "#b4bbc4",
    "line": "#3d444c",
    "paper": "#14171a",
    "shade": "#38211a",
    "accent": "#84b9f2",
    "breach": "#ff9c78",
    "few": "#e5b652",
    "ok": "#63cba4",
}
FORCED: dict[Colour, str] = {
    **dict.fromkeys(LIGHT, "CanvasText"),
    "paper": "Canvas",
    "shade": "Canvas",
}
"""Colours by meaning -> system colours, where the reader's system decides them."""


@dataclass(frozen=True)
class Path:
    """A path in the units of the drawing."""

    d: str
    kind: Kind
    colour: Colour


@dataclass(frozen=True)
class Text:
    """A line of text; ``y`` is its baseline."""

    x: float
    y: float
    text: str
    colour: Colour = "ink"
    bold: bool = False
    anchor: Anchor = "start"
    title: str = ""
    """Whole text where only its beginning is drawn."""


Shape = Path | Text


@dataclass(frozen=True)
class Drawing:
    """A drawing in one layout."""

    width: float
    height: float
    size: float
    """Of its letters."""
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Sheet:
    """The room that a layout has."""

    width: float
    size: float
    stacked: bool
    """Whether labels stand above what they label, not beside it."""

    @property
    def leading(self) -> float:
        """From one baseline to the next."""
        return round(1.3 * self.size)

    def room(self, texts: Iterable[str], *, bold: bool = False) -> float:
        """Width of the widest of some lines, rounded up."""
        return max((width(text, self.size, bold=bold) for text in texts), default=0.0) // 1 + 1


WIDE = Sheet(560, 13, stacked=False)
"""From 520 pixels of room on: letters are then drawn at 12 pixels or more."""
NARROW = Sheet(320, 14.2, stacked=True)
"""Below that. A page of 320 pixels with margins of 16 and a scroll bar leaves 273, where letters have 12.1 pixels."""


def coordinate(value: float) -> str:
    """A coordinate with at most one decimal: the same text in every process."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def path(*parts: str | float) -> str:
    """Commands and coordinates as the text of a path."""
    return " ".join(part if isinstance(part, str) else coordinate(part) for part in parts)


def segment(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line from one point to another."""
    return path("M", x1, y1, "L", x2, y2)


def box(x1: float, y1: float, x2: float, y2: float) -> str:
    """A rectangle between two corners."""
    return path("M", x1, y1, "H", x2, "V", y2, "H", x1, "Z")


def circle(x: float, y: float, r: float) -> str:
    """A circle around a point."""
    return path("M", x - r, y, "a", r, r, 0.0, "1 0", 2 * r, 0.0, "a", r, r, 0.0, "1 0", -2 * r, 0.0, "Z")


def diamond(x: float, y: float, r: float) -> str:
    """A square that stands on a corner."""
    return path("M", x, y - r, "L", x + r, y, "L", x, y + r, "L", x - r, y, "Z")


def marker(x: float, y: float, state: State | None, *, reference: bool = False) -> Path:
    """The mark of a value: its shape tells the state without colour.

    Args:
        x: of its centre.
        y: of its centre.
        state: diamond outside the limit, hollow circle for too little, else a filled circle.
        reference: a grey square.
    """
    colour = tone_of(state, reference=reference)
    if reference:
        return Path(box(x - 4.5, y - 4.5, x + 4.5, y + 4.5), "fill", colour)
    match state.icon if state else "":
        case "cross":
            return Path(diamond(x, y, 7), "fill", colour)
        case "question":
            return Path(circle(x, y, 5), "hollow", colour)
        case _:
            return Path(circle(x, y, 5.5), "fill", colour)


def tone_of(state: State | None, *, reference: bool = False) -> Tone:
    """The colour of what is drawn of a value: grey for the reference group, accent where no verdict was reached."""
    if reference:
        return "soft"
    return state.tone if state and state.tone != "soft" else "accent"


def icon(name: Icon, x: float, y: float, tone: Tone) -> tuple[Path, ...]:
    """The symbol of a state, 14 units wide, around a point; the same as on the badges of the page."""
    match name:
        case "cross":
            arms = segment(x - 3, y - 3, x + 3, y + 3) + " " + segment(x + 3, y - 3, x - 3, y + 3)
            return Path(box(x - 6.5, y - 6.5, x + 6.5, y + 6.5), "fill", tone), Path(arms, "thin", "paper")
        case "tick":
            return (Path(path("M", x - 5.5, y + 0.5, "L", x - 1.5, y + 4.5, "L", x + 5.5, y - 4.5), "bar", tone),)
        case "question":
            hook = path("M", x - 2.3, y - 1.6, "A", 2.3, 2.3, 0.0, "1 1", x + 0.9, y + 0.6, "L", x, y + 1.4)
            dot = segment(x, y + 3.4, x, y + 4.6)
            return Path(circle(x, y, 7), "dotted", tone), Path(f"{hook} {dot}", "thin", tone)
        case "dash":
            return (Path(segment(x - 5, y, x + 5, y), "bar", tone),)
        case "dot":
            return (Path(circle(x, y, 4), "fill", tone),)
        case "ring":
            return (Path(circle(x, y, 5), "thin", tone),)
