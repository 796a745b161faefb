"""Rows of estimates along one horizontal axis: the layout that forest and steps share.

On a wide sheet the label stands left of the plot and the numbers right of it; on a narrow one both stand above it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tasks.reporting.charts.layout.axis import Axis
from tasks.reporting.charts.layout.plot import Plot, Span, boundary
from tasks.reporting.charts.layout.shapes import Anchor, Colour, Drawing, Path, Shape, Sheet, Text, icon, path
from tasks.reporting.charts.layout.words import text_lines
from tasks.reporting.charts.lettering import clean, width
from tasks.reporting.charts.marks import Mark, Side, State, shown, state_of
from tasks.reporting.charts.numbers import Unit, exact

_MOST_LEFT, _MOST_RIGHT, _GUTTER = 190.0, 170.0, 14.0
"""Widest columns of labels and of numbers on a wide sheet, and the room between them and the plot."""
_PAD, _STRIP = 7.0, 30.0
"""Above and below the text of a row; height of the plot of a row on a narrow sheet."""
_MANY = 10
"""More rows than these have the axis above them, too."""
_ICON = 20.0
_LEAST_BELOW = 100.0
"""Room that the line under a label needs beside the numbers."""


@dataclass(frozen=True)
class Block:
    """A row as it is drawn, before anything lies behind it."""

    shapes: tuple[Shape, ...]
    bottom: float
    strip: Span
    """Where the row crosses the axis."""
    y: float
    """Height of its mark."""


@dataclass(frozen=True)
class Rows:
    """Rows of a chart, with what they share."""

    marks: Sequence[Mark]
    unit: Unit
    axis: Axis
    side: Side
    states: Mapping[str, State]
    joined: bool = False
    """Whether a line leads from each mark to the next."""
    bars: bool = False
    """Whether values are bars from 0, which need no interval."""
    limit_name: str = "limit"
    beyond: str = "outside limit"
    """What the shaded side means."""

    def draw(self, sheet: Sheet) -> Drawing:
        """All rows in one layout."""
        plot = self._plot(sheet)
        y, shapes = 4.0, list[Shape]()
        drawn = any(self._drawn(mark) for mark in self.marks)
        if drawn and len(self.marks) > _MANY:
            shapes += plot.ticks(y + sheet.size, sheet)
            y += sheet.leading + 4
        blocks = list(self._blocks(plot, sheet, y))
        shapes += self._behind(plot, sheet, blocks)
        shapes += [shape for block in blocks for shape in block.shapes]
        shapes += self._values(plot, blocks)
        y = max([y, *(block.bottom for block in blocks)])
        below = self._below(plot, sheet, y) if drawn else ()
        bottom = max([y, *(text.y for text in below)]) + 8
        return Drawing(sheet.width, bottom, sheet.size, (*shapes, *below))

    def _below(self, plot: Plot, sheet: Sheet, y: float) -> tuple[Text, ...]:
        """The labels of the axis, what it counts, and what the shade means."""
        limited = any(mark.limit is not None and self._drawn(mark) for mark in self.marks)
        words = f"{self.unit.name}; shaded: {self.beyond}" if limited else self.unit.name
        baseline = y + sheet.leading + 2
        return (*plot.ticks(baseline, sheet), *plot.caption(words, baseline + sheet.leading + 2, sheet))

    def _plot(self, sheet: Sheet) -> Plot:
        """The area of the axis: all of a narrow sheet, else what labels and numbers leave."""
        if sheet.stacked:
            return Plot(self.axis, self.unit, self.side, 10, sheet.width - 10)
        labels = sheet.room((clean(mark.label) for mark in self.marks), bold=True)
        left = min(_MOST_LEFT, max(labels, sheet.room(mark.below for mark in self.marks)))
        states = [state.word for mark in self.marks if (state := state_of(mark, self.states))]
        numbers = sheet.room(shown(mark, self.unit) for mark in self.marks)
        right = min(_MOST_RIGHT, max(numbers, _ICON + sheet.room(states) if states else 0))
        return Plot(self.axis, self.unit, self.side, left + _GUTTER, sheet.width - right - _GUTTER)

    def _blocks(self, plot: Plot, sheet: Sheet, top: float) -> Iterator[Block]:
        """Rows under each other; each that begins a new limit has room for the words of it."""
        before: float | None = None
        for mark in self.marks:
            opens = self._drawn(mark) and mark.limit is not None and mark.limit != before
            before = mark.limit if self._drawn(mark) else before
            block = (self._stacked if sheet.stacked else self._beside)(mark, plot, sheet, top, opens)
            yield block
            top = block.bottom

    def _beside(self, mark: Mark, plot: Plot, sheet: Sheet, top: float, opens: bool) -> Block:
        """Label, plot and numbers next to each other."""
        first = top + _PAD + sheet.leading * opens
        baseline = first + sheet.size - 1
        left = [*_label(mark, 0, baseline, plot.left - _GUTTER, sheet)]
        left += text_lines(mark.below, 0, baseline + len(left) * sheet.leading, plot.left - _GUTTER, sheet, 3, "soft")
        room = sheet.width - plot.right - _GUTTER
        right, icons = self._numbers(mark, sheet.width, baseline, room, sheet)
        sentence = self._sentence(mark, plot.left, baseline, plot.right - plot.left, sheet)
        shapes: list[Shape] = [*left, *right, *icons, *sentence]
        if opens and mark.limit is not None:
            shapes.append(plot.limit_label(self._limit_words(mark.limit), mark.limit, top + sheet.size, sheet))
        rows = max(len(left), len(right), len(sentence))
        bottom = first + rows * sheet.leading + _PAD
        return Block(tuple(shapes), bottom, (first - _PAD + 2 * opens, bottom), baseline - sheet.size * 0.36)

    def _stacked(self, mark: Mark, plot: Plot, sheet: Sheet, top: float, opens: bool) -> Block:
        """Label and numbers above the plot."""
        shapes, baseline = self._words_above(mark, sheet, top + _PAD + sheet.size - 1)
        sentence = self._sentence(mark, 0, baseline + sheet.leading, sheet.width, sheet)
        if sentence:
            bottom = baseline + sheet.leading * len(sentence) + _PAD + 4
            return Block((*shapes, *sentence), bottom, (bottom, bottom), bottom)
        if opens and mark.limit is not None:
            baseline += sheet.leading
            shapes.append(plot.limit_label(self._limit_words(mark.limit), mark.limit, baseline, sheet))
        strip = (baseline + 5, baseline + 5 + _STRIP)
        return Block(tuple(shapes), strip[1] + _PAD - 2, strip, sum(strip) / 2)

    def _words_above(self, mark: Mark, sheet: Sheet, baseline: float) -> tuple[list[Shape], float]:
        """Label, the line under it and numbers; numbers stand right of the other two where there is room.

        Returns:
            Texts with symbols, and the last baseline.
        """
        label = _label(mark, 0, baseline, sheet.width, sheet)
        beside, icons = self._numbers(mark, sheet.width, baseline, sheet.width, sheet)
        free = sheet.width - _ICON - 8
        left, right = sheet.room((each.text for each in label), bold=True), sheet.room(each.text for each in beside)
        if len(label) == 1 and beside and left + right < free:
            under = sheet.room([beside[1].text]) if len(beside) > 1 else -_ICON - 8
            below = text_lines(mark.below, 0, baseline + sheet.leading, free - under, sheet, 3, "soft")
            return [*label, *beside, *icons, *below], baseline + sheet.leading * max(len(below), len(beside) - 1)
        baseline += len(label) * sheet.leading
        if beside and free - right < _LEAST_BELOW:
            beside, icons = self._numbers(mark, 0, baseline, sheet.width, sheet, "start")
            below = text_lines(mark.below, 0, baseline + len(beside) * sheet.leading, sheet.width, sheet, 3, "soft")
            tall = len(beside) + len(below)
        else:
            beside, icons = self._numbers(mark, sheet.width, baseline, sheet.width, sheet)
            below = text_lines(mark.below, 0, baseline, free - right if beside else sheet.width, sheet, 3, "soft")
            tall = max(len(below), len(beside))
        return [*label, *beside, *icons, *below], baseline + sheet.leading * (tall - 1)

    def _limit_words(self, limit: float) -> str:
        return f"{self.limit_name} {exact(limit, self.unit)}"

    def _numbers(
        self, mark: Mark, x: float, baseline: float, room: float, sheet: Sheet, anchor: Anchor = "end"
    ) -> tuple[list[Text], list[Shape]]:
        """Value with interval, and under it the state in words beside its symbol."""
        texts = text_lines(shown(mark, self.unit), x, baseline, room, sheet, 3, "ink", anchor)
        state = state_of(mark, self.states)
        if state is None:
            return texts, []
        y = baseline + len(texts) * sheet.leading
        words = text_lines(state.word, x, y, room - _ICON, sheet, 2, state.tone, anchor)
        if anchor == "start":
            words, at = [replace(each, x=x + _ICON) for each in words], x + 7
        else:
            at = x - width(words[0].text, sheet.size) - 10
        return [*texts, *words], [*icon(state.icon, at, y - sheet.size * 0.34, state.tone)]

    def _sentence(self, mark: Mark, x: float, baseline: float, room: float, sheet: Sheet) -> list[Text]:
        """What stands in the place of a mark."""
        return [] if self._drawn(mark) else text_lines(mark.sentence, x, baseline, room, sheet, 4, "soft")

    def _drawn(self, mark: Mark) -> bool:
        return isinstance(mark.value, int | float) if self.bars else mark.point is not None

    def _behind(self, plot: Plot, sheet: Sheet, blocks: Sequence[Block]) -> list[Shape]:
        """Shades, grid and limits, and hairlines between rows."""
        strips = [block.strip for mark, block in self._pairs(blocks)]
        shapes: list[Shape] = []
        for limit in dict.fromkeys(mark.limit for mark in self.marks if mark.limit is not None):
            spans = [block.strip for mark, block in self._pairs(blocks) if mark.limit == limit]
            shapes += plot.limit(limit, spans)
        shades = [each for each in shapes if isinstance(each, Path) and each.colour == "shade"]
        hairlines = " ".join(boundary(block.bottom, sheet.width) for block in blocks)
        dashes = [each for each in shapes if each not in shades]
        return [*shades, Path(hairlines, "faint", "line"), *plot.grid(strips), *dashes]

    def _pairs(self, blocks: Sequence[Block]) -> list[tuple[Mark, Block]]:
        """Rows that have a mark."""
        return [(m, b) for m, b in zip(self.marks, blocks, strict=True) if self._drawn(m)]

    def _values(self, plot: Plot, blocks: Sequence[Block]) -> Iterator[Shape]:
        """Lines from each mark to the next, then marks."""
        pairs = self._pairs(blocks)
        if self.joined and any(not mark.apart for mark, _ in pairs[1:]):
            parts = [_stair(plot, *above, *under) for above, under in pairwise(pairs) if not under[0].apart]
            yield Path(" ".join(parts), "thin", "soft")
        for mark, block in pairs:
            state = state_of(mark, self.states)
            if self.bars and isinstance(mark.value, int | float):
                yield plot.bar(mark.value, block.y, state, reference=mark.is_grey)
            if mark.point is not None:
                yield from plot.interval(mark, block.y, state, reference=mark.is_grey)


def _stair(plot: Plot, above: Mark, upper: Block, under: Mark, lower: Block) -> str:
    """From a mark down to the height over the next one, and across to it."""
    x1, x2 = (plot.x(mark.point or 0.0) for mark in (above, under))
    start = upper.y + 8 if upper.strip[1] == lower.strip[0] else lower.strip[0]
    return path("M", x1, start, "V", lower.y - 11, "H", x2, "V", lower.y - 7)


def _label(mark: Mark, x: float, baseline: float, room: float, sheet: Sheet) -> list[Text]:
    """The name of a row, grey where it is the reference group."""
    colour: Colour = "soft" if mark.is_grey else "ink"
    return text_lines(mark.label, x, baseline, room, sheet, 3, colour, bold=True)
