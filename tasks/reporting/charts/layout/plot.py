"""What lies on a horizontal axis: grid, limit with the side beyond it, intervals, bars and the axis itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.reporting.charts.layout.axis import Axis
from tasks.reporting.charts.layout.shapes import Path, Shape, Sheet, Text, box, marker, path, segment, tone_of
from tasks.reporting.charts.lettering import clean, clipped, lines, width
from tasks.reporting.charts.marks import Estimate, Side, State
from tasks.reporting.charts.numbers import Unit

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
    left: float
    right: float

    def x(self, value: float) -> float:
        """Coordinate of a value."""
        return self.axis.at(value, self.left, self.right)

    def grid(self, strips: Sequence[Span]) -> tuple[Shape, ...]:
        """Faint lines at ticks, and the line of 0, through strips."""
        spans = merged(strips)
        if not spans:
            return ()
        ticks = " ".join(_through(self.x(tick), spans) for tick in self.axis.ticks if tick != 0)
        return Path(ticks, "faint", "line"), Path(_through(self.x(0), spans), "thin", "ink")

    def limit(self, value: float, strips: Sequence[Span]) -> tuple[Shape, ...]:
        """The limit as a dashed line, and the side beyond it shaded."""
        spans, x = merged(strips), self.x(value)
        edge = self.left if self.side == "at_least" else self.right
        if not spans:
            return ()
        shade = " ".join(box(min(x, edge), top, max(x, edge), bottom) for top, bottom in spans)
        return (
            *((Path(shade, "fill", "shade"),) if x != edge else ()),
            Path(_through(x, spans), "dashed", "breach"),
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
        shapes: list[Shape] = [Path(_whisker(ends, y, (low < self.axis.low, high > self.axis.high)), "bar", colour)]
        heads = [(ends[0], -1.0)] * (low < self.axis.low) + [(ends[1], 1.0)] * (high > self.axis.high)
        shapes += [Path(_head(x, y, way), "fill", colour) for x, way in heads]
        return (*shapes, marker(self.x(value), y, state, reference=reference))

    def bar(self, value: float, y: float, state: State | None, *, reference: bool) -> Path:
        """A bar from 0 to a value."""
        ends = sorted((self.x(0), self.x(value)))
        return Path(box(ends[0], y - 6, ends[1], y + 6), "fill", tone_of(state, reference=reference))

    def ticks(self, baseline: float, sheet: Sheet) -> tuple[Text, ...]:
        """Labels of ticks around a baseline; every second or fifth where all of them would collide."""
        rows = (self._labels(step, baseline, sheet) for step in (1, 2, 5, len(self.axis.ticks)))
        return next((row for row in rows if apart(row, sheet)), ())

    def _labels(self, step: int, baseline: float, sheet: Sheet) -> tuple[Text, ...]:
        """Every ``step``-th label, counted from 0 so that 0 keeps its own."""
        zero = self.axis.ticks.index(0.0)
        labels = zip(self.axis.ticks, self.axis.labels(self.unit), strict=True)
        kept = [each for i, each in enumerate(labels) if not (i - zero) % step]
        return tuple(_inside(Text(self.x(tick), baseline, text, anchor="middle"), sheet) for tick, text in kept)

    def caption(self, words: str, baseline: float, sheet: Sheet) -> tuple[Text, ...]:
        """What the axis counts and what the shade means, centred under the axis."""
        found = lines(words, sheet.width, sheet.size, most=3)
        centre = (self.left + self.right) / 2
        return tuple(
            _inside(Text(centre, baseline + i * sheet.leading, line, "soft", anchor="middle"), sheet)
            for i, line in enumerate(found)
        )


def apart(labels: Iterable[Text], sheet: Sheet) -> bool:
    """Whether centred labels on a line leave a space between them."""
    spans = [(label.x, width(label.text, sheet.size) / 2) for label in labels]
    return all(x1 + half1 + 6 <= x2 - half2 for (x1, half1), (x2, half2) in pairwise(spans))


def merged(strips: Sequence[Span]) -> tuple[Span, ...]:
    """Strips that touch as one, from top to bottom."""
    found: list[Span] = []
    for top, bottom in strips:
        if found and abs(found[-1][1] - top) < 0.05:
            found[-1] = (found[-1][0], bottom)
        else:
            found.append((top, bottom))
    return tuple(found)


def _through(x: float, spans: Iterable[Span]) -> str:
    return " ".join(path("M", x, top, "V", bottom) for top, bottom in spans)


def _whisker(ends: Span, y: float, leaves: tuple[bool, bool]) -> str:
    """A line with a cap at each end that lies on the axis."""
    caps = [path("M", x, y - 4, "V", y + 4) for x, out in zip(ends, leaves, strict=True) if not out]
    start, end = ends[0] + _HEAD * leaves[0], ends[1] - _HEAD * leaves[1]
    return " ".join([path("M", min(start, end), y, "H", max(start, end)), *caps])


def _head(x: float, y: float, way: float) -> str:
    """The head of an arrow at the end of the axis."""
    return path("M", x, y, "L", x - way * 8, y - _HEAD, "V", y + _HEAD, "Z")


def _inside(text: Text, sheet: Sheet) -> Text:
    """A centred text moved so that it ends inside the drawing."""
    half = width(text.text, sheet.size, bold=text.bold) / 2
    x = min(max(text.x, half), max(half, sheet.width - half))
    return Text(x, text.y, text.text, text.colour, text.bold, text.anchor, text.title)


def boundary(y: float, right: float) -> str:
    """A hairline between two rows."""
    return segment(0, y, right, y)
