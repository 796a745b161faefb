"""Layout of a chart: axis, shapes, text, legend, plot area, and the SVG element."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol

import jinja2
from markupsafe import Markup

from tasks.reporting.charts.values import (
    MOST_PLACES,
    Estimate,
    Icon,
    Side,
    State,
    Tone,
    Unit,
    clean,
    clipped,
    isolated,
    lines,
    number,
    width,
)

# --------------------------------------------------------------------------------------------------------------------
# The axis of a chart: round ticks that include 0, and which intervals leave it.


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
    """Decimals that distinguish ticks."""

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
    values = [float(estimate.value) for estimate in estimates if isinstance(estimate.value, int | float)]
    core = [*values, *limits, 0.0]
    low, high = min(core), max(core)
    intervals = [estimate.ends for estimate in estimates if estimate.point is not None]
    halves = sorted((b - a) / 2 for a, b in intervals if math.isfinite(b - a))
    typical = halves[(len(halves) - 1) // 2] if halves else 0.0
    reach = max(_SHARE * (high - low), _HALVES * typical)
    first = min([low, *(max(a, low - reach) for a, _ in intervals)])
    last = max([high, *(min(b, high + reach) for _, b in intervals)])
    nearly = _SLIVER * (last - first)
    inner = [*limits, *([0.0] if unit.signed else [])]  # both sides of these are seen
    first, last = min([first, *(tick - nearly for tick in inner)]), max([last, *(tick + nearly for tick in inner)])
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


# --------------------------------------------------------------------------------------------------------------------
# Shapes that drawings consist of: paths and texts in colours by meaning, symbols of states, and sizes of a layout.
#
# A colour is a name here. The style sheet gives each a variable for light, dark and forced colours; the values below
# are those of a drawing without style sheet, too.


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
class PathShape:
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


Shape = PathShape | Text


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
    """Whether labels are above what they label, not next to it."""

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
    """A square on its corner."""
    return path("M", x, y - r, "L", x + r, y, "L", x, y + r, "L", x - r, y, "Z")


def marker(x: float, y: float, state: State | None, *, reference: bool = False) -> PathShape:
    """The mark of a value: its shape shows the state without colour.

    Args:
        x: of its centre.
        y: of its centre.
        state: diamond outside the limit, hollow circle for too little, else a filled circle.
        reference: a grey square.
    """
    colour = tone_of(state, reference=reference)
    if reference:
        return PathShape(box(x - 4.5, y - 4.5, x + 4.5, y + 4.5), "fill", colour)
    match state.icon if state else "":
        case "cross":
            return PathShape(diamond(x, y, 7), "fill", colour)
        case "question":
            return PathShape(circle(x, y, 5), "hollow", colour)
        case _:
            return PathShape(circle(x, y, 5.5), "fill", colour)


def tone_of(state: State | None, *, reference: bool = False) -> Tone:
    """The colour of what is drawn of a value: grey for the reference group, accent where no verdict was reached."""
    if reference:
        return "soft"
    return state.tone if state and state.tone != "soft" else "accent"


def icon(name: Icon, x: float, y: float, tone: Tone) -> tuple[PathShape, ...]:
    """The symbol of a state, 14 units wide, around a point; the same as on the badges of the page."""
    match name:
        case "cross":
            arms = segment(x - 3, y - 3, x + 3, y + 3) + " " + segment(x + 3, y - 3, x - 3, y + 3)
            return PathShape(box(x - 6.5, y - 6.5, x + 6.5, y + 6.5), "fill", tone), PathShape(arms, "thin", "paper")
        case "tick":
            return (PathShape(path("M", x - 5.5, y + 0.5, "L", x - 1.5, y + 4.5, "L", x + 5.5, y - 4.5), "bar", tone),)
        case "question":
            hook = path("M", x - 2.3, y - 1.6, "A", 2.3, 2.3, 0.0, "1 1", x + 0.9, y + 0.6, "L", x, y + 1.4)
            dot = segment(x, y + 3.4, x, y + 4.6)
            return PathShape(circle(x, y, 7), "dotted", tone), PathShape(f"{hook} {dot}", "thin", tone)
        case "dash":
            return (PathShape(segment(x - 5, y, x + 5, y), "bar", tone),)
        case "dot":
            return (PathShape(circle(x, y, 4), "fill", tone),)
        case "ring":
            return (PathShape(circle(x, y, 5), "thin", tone),)


# --------------------------------------------------------------------------------------------------------------------
# Texts of a drawing in lines that fit, each isolated from the direction of the others.


def text_lines(
    text: str,
    x: float,
    baseline: float,
    room: float,
    sheet: Sheet,
    most: int,
    colour: Colour,
    anchor: Anchor = "start",
    *,
    bold: bool = False,
) -> list[Text]:
    """A text in lines under each other; if it is cut, the title of the last line has the full text.

    Args:
        text: any text.
        x: of its anchor.
        baseline: of the first line.
        room: width of a line.
        sheet: whose letters and leading it has.
        most: lines.
        colour: of the letters.
        anchor: which end of a line lies at ``x``.
        bold: whether letters are bold.
    """
    full_text = clean(text)
    text_rows = lines(full_text, room, sheet.size, most=most, bold=bold)
    left_out = "".join(text_rows).replace(" ", "") != full_text.replace(" ", "")
    return [
        Text(x, baseline + i * sheet.leading, isolated(line, full_text), colour, bold, anchor, full_text * left_out)
        for i, line in enumerate(text_rows)
    ]


# --------------------------------------------------------------------------------------------------------------------
# Legends: samples of lines and marks, each with its words, flowing in lines under a drawing.


_SAMPLE, _GAP = 26.0, 18.0
"""Room of a sample before its words, and between two entries."""


@dataclass(frozen=True)
class Entry:
    """A sample and what it means."""

    words: str
    sample: Callable[[float, float], Iterable[PathShape]]
    """Draws the sample around a point."""


def icon_entry(state: State) -> Entry:
    """A state by the symbol of its badge."""
    return Entry(state.word, lambda x, y: icon(state.icon, x, y, state.tone))


def marker_entry(state: State) -> Entry:
    """A state by the mark of a value."""
    return Entry(state.word, lambda x, y: (marker(x, y, state),))


def reference_entry(name: str) -> Entry:
    """The reference group: a grey line with squares."""
    return Entry(
        f"{name} (reference)",
        lambda x, y: (PathShape(segment(x - 9, y, x + 9, y), "thin", "soft"), marker(x, y, None, reference=True)),
    )


def limit_entry(words: str) -> Entry:
    """The limit: a dashed line."""
    return Entry(
        f"{words}; shaded: outside the limit",
        lambda x, y: (PathShape(segment(x - 9, y, x + 9, y), "dashed", "breach"),),
    )


def break_entry(year: int, words: str) -> Entry:
    """A break: a dotted line."""
    return Entry(f"break from {year}: {words}", lambda x, y: (PathShape(segment(x, y - 8, x, y + 8), "dotted", "ink"),))


def legend(entries: Sequence[Entry], top: float, sheet: Sheet) -> tuple[list[Shape], float]:
    """Entries side by side as long as they fit, then on the next line.

    Returns:
        Shapes, and where they end.
    """
    shapes: list[Shape] = []
    x, y, tallest = 0.0, top, 0
    for entry in entries:
        text_rows = lines(entry.words, sheet.width - _SAMPLE, sheet.size, most=4)
        entry_width = _SAMPLE + max(width(line, sheet.size) for line in text_rows)
        if x and x + entry_width > sheet.width:
            x, y, tallest = 0.0, y + tallest * (sheet.leading + 2), 0
        baseline = y + sheet.size
        shapes += entry.sample(x + 10, baseline - sheet.size * 0.36)
        shapes += [Text(x + _SAMPLE, baseline + i * sheet.leading, line, "soft") for i, line in enumerate(text_rows)]
        x, tallest = x + entry_width + _GAP, max(tallest, len(text_rows))
    return shapes, y + tallest * (sheet.leading + 2)


# --------------------------------------------------------------------------------------------------------------------
# What lies on a horizontal axis: grid, limit with the side beyond it, intervals, bars and the axis itself.


Span = tuple[float, float]
"""Two coordinates of one direction."""
_HEAD = 5.0
"""Half the height of the head of an arrow."""


@dataclass(frozen=True)
class Plot:
    """The area of a horizontal axis."""

    axis: Axis
    unit: Unit
    side: Side
    start: float
    end: float

    def x(self, value: float) -> float:
        """Coordinate of a value."""
        return self.axis.at(value, self.start, self.end)

    def grid(self, strips: Sequence[Span]) -> tuple[Shape, ...]:
        """Faint lines at ticks, and the line of 0, through strips."""
        spans = merged(strips)
        if not spans:
            return ()
        ticks = " ".join(_through(self.x(tick), spans) for tick in self.axis.ticks if tick != 0)
        return PathShape(ticks, "faint", "line"), PathShape(_through(self.x(0), spans), "thin", "ink")

    def limit(self, value: float, strips: Sequence[Span]) -> tuple[Shape, ...]:
        """The limit as a dashed line, and the side beyond it shaded."""
        spans, x = merged(strips), self.x(value)
        edge = self.start if self.side == "at_least" else self.end
        if not spans:
            return ()
        shade = " ".join(box(min(x, edge), top, max(x, edge), bottom) for top, bottom in spans)
        return (
            *((PathShape(shade, "fill", "shade"),) if x != edge else ()),
            PathShape(_through(x, spans), "dashed", "breach"),
        )

    def limit_label(self, words: str, value: float, baseline: float, sheet: Sheet) -> Text:
        """The words over the line of a limit, kept inside the drawing."""
        text = clipped(clean(words), sheet.width, sheet.size)
        return _inside(Text(self.x(value), baseline, text, "breach", anchor="middle"), sheet)

    def interval(self, estimate: Estimate, y: float, state: State | None, *, reference: bool) -> tuple[Shape, ...]:
        """Interval with caps, or arrows where it leaves the axis, and the mark of the value over it."""
        value, (low, high) = estimate.point, estimate.ends
        if value is None:
            return ()
        colour, ends = tone_of(state, reference=reference), (self.x(low), self.x(high))
        leaves = (low < self.axis.low, high > self.axis.high)
        caps = [path("M", x, y - 4, "V", y + 4) for x, out in zip(ends, leaves, strict=True) if not out]
        start, end = ends[0] + _HEAD * leaves[0], ends[1] - _HEAD * leaves[1]
        whisker = " ".join([path("M", min(start, end), y, "H", max(start, end)), *caps])
        shapes: list[Shape] = [PathShape(whisker, "bar", colour)]
        heads = [(ends[0], -1.0)] * (low < self.axis.low) + [(ends[1], 1.0)] * (high > self.axis.high)
        for x, way in heads:
            arrow = path("M", x, y, "L", x - way * 8, y - _HEAD, "V", y + _HEAD, "Z")
            shapes.append(PathShape(arrow, "fill", colour))
        return (*shapes, marker(self.x(value), y, state, reference=reference))

    def bar(self, value: float, y: float, state: State | None, *, reference: bool) -> PathShape:
        """A bar from 0 to a value."""
        ends = sorted((self.x(0), self.x(value)))
        return PathShape(box(ends[0], y - 6, ends[1], y + 6), "fill", tone_of(state, reference=reference))

    def ticks(self, baseline: float, sheet: Sheet) -> tuple[Text, ...]:
        """Labels of ticks around a baseline; every second or fifth where all of them would collide."""
        zero = self.axis.ticks.index(0.0)
        labels = list(zip(self.axis.ticks, self.axis.labels(self.unit), strict=True))
        for step in (1, 2, 5, len(self.axis.ticks)):
            # Counted from 0, so that 0 keeps its own.
            visible_labels = [label for i, label in enumerate(labels) if not (i - zero) % step]
            row = tuple(_inside(Text(self.x(t), baseline, text, anchor="middle"), sheet) for t, text in visible_labels)
            if apart(row, sheet):
                return row
        return ()

    def caption(self, words: str, baseline: float, sheet: Sheet) -> tuple[Text, ...]:
        """What the axis counts and what the shade means, centred under the axis."""
        text_rows = lines(words, sheet.width, sheet.size, most=3)
        centre = (self.start + self.end) / 2
        return tuple(
            _inside(Text(centre, baseline + i * sheet.leading, line, "soft", anchor="middle"), sheet)
            for i, line in enumerate(text_rows)
        )


def apart(labels: Iterable[Text], sheet: Sheet) -> bool:
    """Whether centred labels on a line leave a space between them."""
    spans = [(label.x, width(label.text, sheet.size) / 2) for label in labels]
    return all(x1 + half1 + 6 <= x2 - half2 for (x1, half1), (x2, half2) in pairwise(spans))


def merged(strips: Sequence[Span]) -> tuple[Span, ...]:
    """Strips that touch as one, from top to bottom."""
    spans: list[Span] = []
    for top, bottom in strips:
        if spans and abs(spans[-1][1] - top) < 0.05:
            spans[-1] = (spans[-1][0], bottom)
        else:
            spans.append((top, bottom))
    return tuple(spans)


def _through(x: float, spans: Iterable[Span]) -> str:
    return " ".join(path("M", x, top, "V", bottom) for top, bottom in spans)


def _inside(text: Text, sheet: Sheet) -> Text:
    """A centred text shifted so that it ends inside the drawing."""
    half = width(text.text, sheet.size, bold=text.bold) / 2
    x = min(max(text.x, half), max(half, sheet.width - half))
    return Text(x, text.y, text.text, text.colour, text.bold, text.anchor, text.title)


def boundary(y: float, right: float) -> str:
    """A hairline between two rows."""
    return segment(0, y, right, y)


# --------------------------------------------------------------------------------------------------------------------
# Charts as HTML: both layouts, description, and the table of the same numbers in a closed ``details``.


_TEMPLATES = Path(__file__).parents[1] / "templates"
_FORMS: Mapping[str, Mapping[str, str]] = {
    "fill": {},
    "hollow": {"stroke-width": "2"},
    "bar": {"stroke-width": "3"},
    "thin": {"stroke-width": "1.5"},
    "dashed": {"stroke-width": "1.5", "stroke-dasharray": "5 3"},
    "dotted": {"stroke-width": "1.5", "stroke-dasharray": "2.5 2"},
    "faint": {"stroke-width": "1"},
}
"""Kind of path -> attributes other than its colour."""


@dataclass(frozen=True)
class Table:
    """The numbers of a chart; the first cell of a row is its header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without_empty(self) -> "Table":
        """The table without columns that are empty in every row."""
        columns = [i for i in range(len(self.header)) if not i or any(row[i] for row in self.rows)]
        return Table(tuple(self.header[i] for i in columns), tuple(tuple(row[i] for i in columns) for row in self.rows))


class Chart(Protocol):
    """What every kind of chart can do."""

    @property
    def title(self) -> str:
        """What the chart shows, in a phrase."""
        ...

    def description(self) -> Sequence[str]:
        """Sentences that say every number of the chart."""
        ...

    def table(self) -> Table:
        """Every number of the chart."""
        ...

    def draw(self, sheet: Sheet) -> Drawing:
        """The chart in one layout."""
        ...


def element(chart: Chart, prefix: str) -> Markup:
    """A chart as HTML to put into a page; all its text is escaped.

    Args:
        chart: of any kind.
        prefix: of the ids inside, unique in the page: letters, digits and hyphens.

    Returns:
        A ``div`` with two drawings, of which the style sheet (``style``) shows one, and the table.

    Raises:
        ValueError: a prefix that is no id.
    """
    table = chart.table().without_empty()
    layouts = [("wide", chart.draw(WIDE)), ("narrow", chart.draw(NARROW))]
    return _rendered(chart, prefix, "drawing.html.j2", table=table, layouts=layouts)


def svg(chart: Chart, prefix: str) -> Markup:
    """The wide drawing alone, with its title and description; arguments and errors as of ``element``."""
    return _rendered(chart, prefix, "drawing.svg.j2", drawn=chart.draw(WIDE))


def _rendered(chart: Chart, prefix: str, template: str, **content: object) -> Markup:
    if not prefix.replace("-", "").isalnum() or not prefix.isascii() or not prefix[0].isalpha():
        raise ValueError(f"no prefix of an id: {prefix!r}")
    html = (
        _templates()
        .get_template(template)
        .render(
            prefix=prefix,
            title=clean(chart.title, isolates=True),
            description=[clean(sentence, isolates=True) for sentence in chart.description()],
            **content,
        )
    )
    return Markup(html)  # noqa: S704 - the template escapes every text


@cache
def style() -> str:
    """The style sheet of all drawings, once for a page: colours by scheme, and which layout is shown.

    Dark colours follow the ``color-scheme`` of the page: a page that declares none stays light.
    """
    return _templates().get_template("drawing.css.j2").render(light=LIGHT, dark=DARK, forced=FORCED)


def templates(*before: Path) -> jinja2.Environment:
    """The templates of drawings and pages: every text that comes from data is escaped.

    Args:
        before: folders whose templates come before those of the same name here, such as the frame of other pages.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*before, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coordinate"] = coordinate
    environment.filters["clean"] = clean
    environment.globals.update(colours=LIGHT, forms=_FORMS)
    return environment


_templates = cache(templates)
