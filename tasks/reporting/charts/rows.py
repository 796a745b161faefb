"""Charts of rows on one axis: forest, steps, caterpillar."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tasks.reporting.charts import values
from tasks.reporting.charts.layout import (
    Anchor,
    Axis,
    Colour,
    Drawing,
    PathShape,
    Plot,
    Shape,
    Sheet,
    Span,
    Table,
    Text,
    axis_of,
    boundary,
    circle,
    diamond,
    icon,
    legend,
    limit_entry,
    marker_entry,
    path,
    segment,
    text_lines,
    tone_of,
)

# --------------------------------------------------------------------------------------------------------------------
# Rows of estimates along one horizontal axis: the layout that forest and steps share.
#
# On a wide sheet the label is left of the plot and the numbers are right of it; on a narrow one both are above it.


_MOST_LEFT, _MOST_RIGHT, _GUTTER = 190.0, 170.0, 14.0
"""Widest columns of labels and of numbers on a wide sheet, and the room between them and the plot."""
_PAD, _STRIP = 7.0, 30.0
"""Above and below the text of a row; height of the plot of a row on a narrow sheet."""
_MANY = 10
"""More rows than these have the axis above them, too."""
_ICON = 20.0
_LEAST_BELOW = 100.0
"""Room that the line under a label needs next to the numbers."""


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

    marks: Sequence[values.Mark]
    unit: values.Unit
    axis: Axis
    side: values.Side
    states: Mapping[str, values.State]
    joined: bool = False
    """Whether a line leads from each mark to the next."""
    bars: bool = False
    """Whether values are bars from 0, which need no interval."""
    limit_name: str = "limit"
    beyond: str = "outside the limit"
    """What the shaded side means."""

    def draw(self, sheet: Sheet) -> Drawing:
        """All rows in one layout."""
        plot = self._plot(sheet)
        y, shapes = 4.0, list[Shape]()
        has_marks = any(self._drawn(mark) for mark in self.marks)
        if has_marks and len(self.marks) > _MANY:
            shapes += plot.ticks(y + sheet.size, sheet)
            y += sheet.leading + 4
        blocks: list[Block] = []
        before: float | None = None
        for mark in self.marks:
            # A row that begins a new limit has room for the words of it.
            opens = self._drawn(mark) and mark.limit is not None and mark.limit != before
            before = mark.limit if self._drawn(mark) else before
            layout = self._stacked if sheet.stacked else self._side_by_side
            blocks.append(layout(mark, plot, sheet, blocks[-1].bottom if blocks else y, opens))
        shapes += self._background(plot, sheet, blocks)
        shapes += [shape for block in blocks for shape in block.shapes]
        shapes += self._values(plot, blocks)
        y = max([y, *(block.bottom for block in blocks)])
        below: tuple[Text, ...] = ()
        if has_marks:
            # The labels of the axis, what it counts, and what the shade means.
            limited = any(mark.limit is not None and self._drawn(mark) for mark in self.marks)
            words = f"{self.unit.name}; shaded: {self.beyond}" if limited else self.unit.name
            baseline = y + sheet.leading + 2
            below = (*plot.ticks(baseline, sheet), *plot.caption(words, baseline + sheet.leading + 2, sheet))
        bottom = max([y, *(text.y for text in below)]) + 8
        return Drawing(sheet.width, bottom, sheet.size, (*shapes, *below))

    def _plot(self, sheet: Sheet) -> Plot:
        """The area of the axis: all of a narrow sheet, else what labels and numbers leave."""
        if sheet.stacked:
            return Plot(self.axis, self.unit, self.side, 10, sheet.width - 10)
        labels = sheet.room((values.clean(mark.label) for mark in self.marks), bold=True)
        left_width = min(_MOST_LEFT, max(labels, sheet.room(mark.below for mark in self.marks)))
        states = [state.word for mark in self.marks if (state := values.state_of(mark, self.states))]
        numbers = sheet.room(values.shown(mark, self.unit) for mark in self.marks)
        right = min(_MOST_RIGHT, max(numbers, _ICON + sheet.room(states) if states else 0))
        return Plot(self.axis, self.unit, self.side, left_width + _GUTTER, sheet.width - right - _GUTTER)

    def _side_by_side(self, mark: values.Mark, plot: Plot, sheet: Sheet, top: float, opens: bool) -> Block:
        """Label, plot and numbers next to each other."""
        first = top + _PAD + sheet.leading * opens
        baseline = first + sheet.size - 1
        left_texts = [*_label(mark, 0, baseline, plot.start - _GUTTER, sheet)]
        left_texts += text_lines(
            mark.below, 0, baseline + len(left_texts) * sheet.leading, plot.start - _GUTTER, sheet, 3, "soft"
        )
        room = sheet.width - plot.end - _GUTTER
        right, icons = self._numbers(mark, sheet.width, baseline, room, sheet)
        sentence = self._sentence(mark, plot.start, baseline, plot.end - plot.start, sheet)
        shapes: list[Shape] = [*left_texts, *right, *icons, *sentence]
        if opens and mark.limit is not None:
            shapes.append(plot.limit_label(self._limit_words(mark.limit), mark.limit, top + sheet.size, sheet))
        rows = max(len(left_texts), len(right), len(sentence))
        bottom = first + rows * sheet.leading + _PAD
        return Block(tuple(shapes), bottom, (first - _PAD + 2 * opens, bottom), baseline - sheet.size * 0.36)

    def _stacked(self, mark: values.Mark, plot: Plot, sheet: Sheet, top: float, opens: bool) -> Block:
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

    def _words_above(self, mark: values.Mark, sheet: Sheet, baseline: float) -> tuple[list[Shape], float]:
        """Label, the line under it and numbers; numbers are right of the other two where space allows.

        Returns:
            Texts with symbols, and the last baseline.
        """
        label = _label(mark, 0, baseline, sheet.width, sheet)
        beside, icons = self._numbers(mark, sheet.width, baseline, sheet.width, sheet)
        free = sheet.width - _ICON - 8
        label_width, right = (
            sheet.room((label_text.text for label_text in label), bold=True),
            sheet.room(number_text.text for number_text in beside),
        )
        if len(label) == 1 and beside and label_width + right < free:
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
        return f"{self.limit_name} {values.exact(limit, self.unit)}"

    def _numbers(
        self, mark: values.Mark, x: float, baseline: float, room: float, sheet: Sheet, anchor: Anchor = "end"
    ) -> tuple[list[Text], list[Shape]]:
        """Value with interval, and under it the state in words next to its symbol."""
        texts = text_lines(values.shown(mark, self.unit), x, baseline, room, sheet, 3, "ink", anchor)
        state = values.state_of(mark, self.states)
        if state is None:
            return texts, []
        y = baseline + len(texts) * sheet.leading
        words = text_lines(state.word, x, y, room - _ICON, sheet, 2, state.tone, anchor)
        if anchor == "start":
            words, at = [replace(text, x=x + _ICON) for text in words], x + 7
        else:
            at = x - values.width(words[0].text, sheet.size) - 10
        return [*texts, *words], [*icon(state.icon, at, y - sheet.size * 0.34, state.tone)]

    def _sentence(self, mark: values.Mark, x: float, baseline: float, room: float, sheet: Sheet) -> list[Text]:
        """The sentence shown in place of a mark."""
        return [] if self._drawn(mark) else text_lines(mark.sentence, x, baseline, room, sheet, 4, "soft")

    def _drawn(self, mark: values.Mark) -> bool:
        return isinstance(mark.value, int | float) if self.bars else mark.point is not None

    def _background(self, plot: Plot, sheet: Sheet, blocks: Sequence[Block]) -> list[Shape]:
        """Shades, grid and limits, and hairlines between rows."""
        pairs = self._pairs(blocks)
        strips = [block.strip for _, block in pairs]
        shapes: list[Shape] = []
        for limit in dict.fromkeys(mark.limit for mark in self.marks if mark.limit is not None):
            spans = [block.strip for mark, block in pairs if mark.limit == limit]
            shapes += plot.limit(limit, spans)
        shades = [shape for shape in shapes if isinstance(shape, PathShape) and shape.colour == "shade"]
        hairlines = " ".join(boundary(block.bottom, sheet.width) for block in blocks)
        dashes = [shape for shape in shapes if shape not in shades]
        return [*shades, PathShape(hairlines, "faint", "line"), *plot.grid(strips), *dashes]

    def _pairs(self, blocks: Sequence[Block]) -> list[tuple[values.Mark, Block]]:
        """Rows that have a mark."""
        return [(m, b) for m, b in zip(self.marks, blocks, strict=True) if self._drawn(m)]

    def _values(self, plot: Plot, blocks: Sequence[Block]) -> Iterator[Shape]:
        """Lines from each mark to the next, then marks."""
        pairs = self._pairs(blocks)
        stairs = []
        for (above, upper), (under, lower) in pairwise(pairs):
            if self.joined and not under.apart:
                # From a mark down to the height over the next one, and across to it.
                x1, x2 = (plot.x(mark.point or 0.0) for mark in (above, under))
                start = upper.y + 8 if upper.strip[1] == lower.strip[0] else lower.strip[0]
                stairs.append(path("M", x1, start, "V", lower.y - 11, "H", x2, "V", lower.y - 7))
        if stairs:
            yield PathShape(" ".join(stairs), "thin", "soft")
        for mark, block in pairs:
            state = values.state_of(mark, self.states)
            if self.bars and isinstance(mark.value, int | float):
                yield plot.bar(mark.value, block.y, state, reference=mark.is_grey)
            if mark.point is not None:
                yield from plot.interval(mark, block.y, state, reference=mark.is_grey)


def _label(mark: values.Mark, x: float, baseline: float, room: float, sheet: Sheet) -> list[Text]:
    """The name of a row, grey where it is the reference group."""
    colour: Colour = "soft" if mark.is_grey else "ink"
    return text_lines(mark.label, x, baseline, room, sheet, 3, colour, bold=True)


# --------------------------------------------------------------------------------------------------------------------
# Forest: values with their intervals under each other, the limit as a dashed line and the side beyond it shaded.


OUTSIDE: Mapping[values.Side, str] = {"at_least": "below", "at_most": "above"}
"""Allowed side of a limit -> where the other side lies."""


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Comparisons or groups with value, interval and number of people.

    Raises:
        ValueError: no row, an infinite limit, or a state that is not in ``states``.
    """

    title: str
    unit: values.Unit
    rows: tuple[values.Mark, ...]
    limit: float | None = None
    """Limit of all rows that have none of their own."""
    side: values.Side = "at_least"
    """Allowed side of the limits."""
    limit_name: str = "limit"
    """What the dashed line is."""
    beyond: str = "outside the limit"
    """What the shaded side means."""
    interval: str = "95 % interval"
    """What the intervals are."""
    head: str = "Comparison"
    """What a row is, as the table says it."""
    axis: tuple[float, float] | None = None
    """Values that the axis reaches at least, so that several charts can have the same."""
    states: Mapping[str, values.State] = field(default_factory=lambda: values.VERDICTS)

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"no row: {self.title}")
        for row in self.rows:
            values.state_of(row, self.states)
        if not all(math.isfinite(mark.limit) for mark in self.marks if mark.limit is not None):
            raise ValueError(f"a limit is finite: {self.title}")

    @property
    def marks(self) -> tuple[values.Mark, ...]:
        """Rows, each with the limit that holds for it."""
        return tuple(replace(row, limit=self.limit if row.limit is None else row.limit) for row in self.rows)

    def description(self) -> list[str]:
        """A sentence for each row, then the axis and the limits."""
        sentences = [f"{len(self.rows)} rows; unit: {self.unit.name}."]
        for mark in self.marks:
            parts = [part for part in (mark.detail, "reference" if mark.reference else "") if part]
            detail = f" ({values.isolated(', '.join(parts))})" if parts else ""
            sentences.append(f"{values.isolated(mark.label)}{detail}: {self._mark_words(mark)}")
        where = OUTSIDE[self.side]
        for limit in dict.fromkeys(mark.limit for mark in self.marks if mark.limit is not None):
            text = values.exact(limit, self.unit)
            sentences.append(f"Dashed line: {self.limit_name} {text}; {where} it: {self.beyond}.")
        return sentences

    def _mark_words(self, mark: values.Mark) -> str:
        text = values.said(mark, self.unit, self.interval, values.state_of(mark, self.states), self._note(mark))
        has_own_limit = mark.limit is not None and mark.limit != self.limit
        return (
            f"{text} {self.limit_name.capitalize()} of this row: {values.exact(mark.limit or 0.0, self.unit)}."
            if has_own_limit
            else text
        )

    def _note(self, mark: values.Mark) -> str:
        """The note of a row in the table: why it has no mark, or its note."""
        return mark.note if mark.point is not None else mark.sentence

    def table(self) -> Table:
        """A row for each mark: what, value, interval, number of people, limit, state, note."""
        header = (
            self.head,
            "Detail",
            self.unit.name,
            self.interval,
            "n",
            self.limit_name.capitalize(),
            "State",
            "Note",
        )
        return Table(header, tuple(self._cells(mark) for mark in self.marks))

    def _cells(self, mark: values.Mark) -> tuple[str, ...]:
        ends, state = values.ends_text(mark, self.unit), values.state_of(mark, self.states)
        return (
            mark.label,
            ", ".join(part for part in (mark.detail, "reference" if mark.reference else "") if part),
            values.value_text(mark, self.unit),
            f"{ends[0]} to {ends[1]}" if ends else "",
            values.people(mark.n),
            "" if mark.limit is None else values.exact(mark.limit, self.unit),
            state.word if state else "",
            self._note(mark),
        )

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows under each other on one axis."""
        return self._rows().draw(sheet)

    def _rows(self) -> Rows:
        limits = [mark.limit for mark in self.marks if mark.limit is not None]
        axis = axis_of(self.rows, [*limits, *(self.axis or ())], self.unit)
        return Rows(self.marks, self.unit, axis, self.side, self.states, limit_name=self.limit_name, beyond=self.beyond)


# --------------------------------------------------------------------------------------------------------------------
# Steps: what is left of a difference line by line (the ladder), or numbers that shrink along a way (routes).


@dataclass(frozen=True, kw_only=True)
class Steps(Forest):
    """Rows in an order that means something.

    A ladder joins each mark with the next. With ``bars``, values are bars from 0: counts and other numbers that have
    no interval.
    """

    head: str = "Step"
    bars: bool = False

    def _note(self, mark: values.Mark) -> str:
        """The note of a bar, which has no interval."""
        return mark.note if self.bars and isinstance(mark.value, int | float) else super()._note(mark)

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows under each other on one axis."""
        return replace(self._rows(), joined=not self.bars, bars=self.bars).draw(sheet)


# --------------------------------------------------------------------------------------------------------------------
# Caterpillar: many intervals in one order on one axis, too many for a label each; the table names them.


_TALL, _LEAST, _MOST = 900.0, 3.0, 12.0
"""Height that all rows share, and the least and the most of a row."""


@dataclass(frozen=True, kw_only=True)
class Caterpillar:
    """Intervals in the order in which they are given.

    Raises:
        ValueError: no row with an interval, an infinite limit, or a state that is not in ``states``.
    """

    title: str
    unit: values.Unit
    rows: tuple[values.Mark, ...]
    limit: float | None = None
    side: values.Side = "at_least"
    """Allowed side of the limit."""
    interval: str = "95 % interval"
    head: str = "Partition"
    """What a row is, as the table says it."""
    states: Mapping[str, values.State] = field(default_factory=lambda: values.VERDICTS)

    def __post_init__(self) -> None:
        if not self.rows or any(row.point is None for row in self.rows):
            raise ValueError(f"every row has an interval, and there is one: {self.title}")
        if self.limit is not None and not math.isfinite(self.limit):
            raise ValueError(f"a limit is finite: {self.title}")
        for row in self.rows:
            values.state_of(row, self.states)

    def description(self) -> list[str]:
        """A sentence for each row, then the limit."""
        first = f"{len(self.rows)} rows from top to bottom; unit: {self.unit.name}."
        sentences = []
        for row in self.rows:
            text = values.said(row, self.unit, self.interval, values.state_of(row, self.states), row.note)
            sentences.append(f"{values.isolated(row.label)}: {text}")
        if self.limit is not None:
            limit = values.exact(self.limit, self.unit)
            sentences.append(f"Dashed line: limit {limit}; {OUTSIDE[self.side]} it: outside the limit.")
        return [first, *sentences]

    def table(self) -> Table:
        """A row for each interval: what, value, interval, number of people, state, note."""
        header = (self.head, self.unit.name, self.interval, "n", "State", "Note")
        return Table(header, tuple(self._cells(row) for row in self.rows))

    def _cells(self, row: values.Mark) -> tuple[str, ...]:
        ends, state = values.ends_text(row, self.unit), values.state_of(row, self.states)
        words = f"{ends[0]} to {ends[1]}" if ends else ""
        return (
            *(row.label, values.value_text(row, self.unit), words, values.people(row.n)),
            *(state.word if state else "", row.note),
        )

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows close under each other, on an axis that has its labels above and below."""
        limits = [] if self.limit is None else [self.limit]
        plot = Plot(axis_of(self.rows, limits, self.unit), self.unit, self.side, 10, sheet.width - 10)
        pitch = min(_MOST, max(_LEAST, _TALL / len(self.rows)))
        first = 4 + sheet.size
        top = first + 6
        bottom = top + pitch * len(self.rows)
        strip = [(top, bottom)]
        shapes: list[Shape] = [*plot.ticks(first, sheet)]
        shapes += [*(plot.limit(self.limit, strip) if self.limit is not None else ()), *plot.grid(strip)]
        lines: dict[values.Tone, list[str]] = {}
        marks: dict[values.Tone, list[str]] = {}
        size = max(1.5, pitch / 3)
        for number, row in enumerate(self.rows):
            y, state = top + pitch * (number + 0.5), values.state_of(row, self.states)
            tone, (low, high) = tone_of(state), row.ends
            lines.setdefault(tone, []).append(segment(plot.x(low), y, plot.x(high), y))
            shape = diamond if state and state.icon == "cross" else circle
            marks.setdefault(tone, []).append(shape(plot.x(row.point or 0.0), y, size))
        shapes += [PathShape(" ".join(parts), "thin", tone) for tone, parts in lines.items()]
        shapes += [PathShape(" ".join(parts), "fill", tone) for tone, parts in marks.items()]
        baseline = bottom + sheet.leading + 2
        below = (*plot.ticks(baseline, sheet), *plot.caption(self.unit.name, baseline + sheet.leading + 2, sheet))
        used = {row.state for row in self.rows}
        entries = [marker_entry(state) for name, state in self.states.items() if name in used]
        entries += [limit_entry(f"limit {values.exact(self.limit, self.unit)}")] if self.limit is not None else []
        legend_shapes, end = legend(entries, max(text.y for text in below) + 8, sheet)
        return Drawing(sheet.width, end + 4, sheet.size, (*shapes, *below, *legend_shapes))
