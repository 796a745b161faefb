"""Matrix: a state, a number or both for each pair of two lists, such as year and stage, or group and method."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks.reporting.charts import layout
from tasks.reporting.charts.values import VERDICTS, Estimate, State, Unit, clean, isolated, said, state_of, value_text

_MOST_LABEL, _LEAST, _MOST = 0.32, 44.0, 104.0
"""Widest labels of rows as a share of the sheet, narrowest and widest column."""
_PAD = 7.0


@dataclass(frozen=True, kw_only=True)
class Cell(Estimate):
    """A pair: its state, its number, or both."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of cells, one for each column; None where the pair means nothing."""

    label: str
    cells: tuple[Cell | None, ...]
    reference: bool = False

    @property
    def name(self) -> str:
        """The label, and whether it is the reference group."""
        return self.label + " (reference)" * self.reference


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Rows against columns.

    Raises:
        ValueError: no row or column, a row of another length, a number without ``unit``, or an unknown state.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    unit: Unit | None = None
    """Of the numbers; None: the matrix has states only."""
    head: str = "Group"
    """What a row is, as the table says it."""
    interval: str = "95 % interval"
    states: Mapping[str, State] = field(default_factory=lambda: VERDICTS)

    def __post_init__(self) -> None:
        if not self.rows or not self.columns:
            raise ValueError(f"no row or no column: {self.title}")
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"{len(row.cells)} cells in {len(self.columns)} columns: {row.label}")
            for cell in row.cells:
                if cell is not None:
                    state_of(cell, self.states)
                    if self.unit is None and isinstance(cell.value, int | float):
                        raise ValueError(f"a number without a unit: {row.label}")

    def description(self) -> list[str]:
        """A sentence for each cell, row by row."""
        first = f"{len(self.rows)} rows, {len(self.columns)} columns" + (
            f"; unit: {self.unit.name}." if self.unit else "."
        )
        sentences = []
        for row in self.rows:
            pairs = zip(self.columns, row.cells, strict=True)
            cells = "; ".join(f"{isolated(column)}: {self._cell_words(cell)}" for column, cell in pairs)
            sentences.append(f"{isolated(row.name)}: {cells}.")
        return [first, *sentences]

    def _cell_words(self, cell: Cell | None) -> str:
        if cell is None:
            return "nothing"
        return said(cell, self.unit or _NO_UNIT, self.interval, state_of(cell, self.states), cell.note).rstrip(".")

    def table(self) -> layout.Table:
        """The same cells in words."""
        rows = tuple((row.name, *map(self._cell_words, row.cells)) for row in self.rows)
        return layout.Table((self.head, *self.columns), rows)

    def draw(self, sheet: layout.Sheet) -> layout.Drawing:
        """All columns in a row where they fit, else what needs the fewest blocks under each other.

        Rows and columns are exchanged, and on a narrow sheet labels are above their rows, where that saves blocks.
        """
        ways = [(matrix, above) for above in (False, True)[: 1 + sheet.stacked] for matrix in (self, self.exchanged())]
        grids = [_Grid(matrix, sheet, above) for matrix, above in ways]
        drawings = [(len(grid.blocks()), *grid.draw(4.0)) for grid in grids]
        _, shapes, y = min(drawings, key=lambda drawing: (drawing[0], drawing[2]))
        used = {cell.state for row in self.rows for cell in row.cells if cell}
        legend_shapes, y = layout.legend(
            [layout.icon_entry(state) for name, state in self.states.items() if name in used], y, sheet
        )
        return layout.Drawing(sheet.width, y + 4, sheet.size, (*shapes, *legend_shapes))

    def exchanged(self) -> "Matrix":
        """The same with columns as rows."""
        rows = tuple(Row(label=c, cells=tuple(r.cells[i] for r in self.rows)) for i, c in enumerate(self.columns))
        return replace(self, columns=tuple(row.name for row in self.rows), rows=rows)

    def text(self, cell: Cell | None) -> str:
        """What is written in a cell next to its symbol."""
        if cell is None:
            return "–"
        return value_text(cell, self.unit or _NO_UNIT)


@dataclass(frozen=True)
class _Grid:
    """A matrix on a sheet, in blocks of columns that fit in a row."""

    matrix: Matrix
    sheet: layout.Sheet
    above: bool
    """Whether labels are above their rows."""

    def blocks(self) -> list["_Block"]:
        """Blocks with about the same number of columns."""
        count, room = len(self.matrix.columns), 0.0
        if not self.above:
            names = self.sheet.room((clean(row.name) for row in self.matrix.rows), bold=True)
            room = min(self.sheet.width * _MOST_LABEL, names + _PAD)
        # Every word and every number fits into a column.
        words = [word for column in self.matrix.columns for word in clean(column).split(" ")]
        texts = [self.matrix.text(cell) for row in self.matrix.rows for cell in row.cells]
        needed = min(_MOST, max(_LEAST, self.sheet.room([*words, *texts]) + 6))
        most = max(1, int((self.sheet.width - room) // needed))
        block_size = -(-count // -(-count // most))
        step = min(_MOST + 10, (self.sheet.width - room) / block_size)
        starts = range(0, count, block_size)
        return [_Block(self.matrix, range(i, min(i + block_size, count)), room, step, self.sheet) for i in starts]

    def draw(self, y: float) -> tuple[list[layout.Shape], float]:
        """Blocks under each other; returns shapes, and where they end."""
        shapes: list[layout.Shape] = []
        for block in self.blocks():
            block_shapes, y = block.draw(y)
            shapes += block_shapes
            y += 14
        return shapes, y


@dataclass(frozen=True)
class _Block:
    """Some columns of a matrix, with the labels of all rows."""

    matrix: Matrix
    columns: range
    room: float
    """Of the labels."""
    step: float
    """Width of a column."""
    sheet: layout.Sheet

    def draw(self, top: float) -> tuple[list[layout.Shape], float]:
        """Headings and rows; returns shapes, and where they end."""
        headings = [
            layout.text_lines(
                self.matrix.columns[c], self._centre(i), 0, self.step - 6, self.sheet, 3, "soft", "middle"
            )
            for i, c in enumerate(self.columns)
        ]
        tallest = max(map(len, headings))
        headings_shapes: list[layout.Shape] = [
            replace(line, y=line.y + top + self.sheet.size + (tallest - len(heading)) * self.sheet.leading)
            for heading in headings
            for line in heading
        ]
        shapes, y = headings_shapes, top + tallest * self.sheet.leading + 5
        right = self.room + self.step * len(self.columns)
        hairlines = [layout.segment(0, y, right, y)]
        for row in self.matrix.rows:
            row_shapes, bottom = self._row(row, y)
            shapes += row_shapes
            y = bottom
            hairlines.append(layout.segment(0, y, right, y))
        return [*shapes, layout.PathShape(" ".join(hairlines), "faint", "line")], y

    def _centre(self, i: int) -> float:
        return self.room + self.step * (i + 0.5)

    def _row(self, row: Row, top: float) -> tuple[list[layout.Shape], float]:
        """Label and cells of a row, each in the middle of its height."""
        cells = [row.cells[c] for c in self.columns]
        has_both = any(cell and cell.state and self.matrix.text(cell) for cell in cells)
        colour: layout.Colour = "soft" if row.reference else "ink"
        room = self.room - _PAD if self.room else self.sheet.width
        label = layout.text_lines(row.name, 0, 0, room, self.sheet, 3, colour, bold=True)
        height, tall = (1 + has_both) * self.sheet.leading + 2 * _PAD, len(label) * self.sheet.leading
        start = top if self.room else top + tall + 2
        height = max(height, tall + 2 * _PAD) if self.room else height
        first = (top + (height - tall) / 2 if self.room else top + 5) + self.sheet.size - 1
        shapes: list[layout.Shape] = [replace(line, y=line.y + first) for line in label]
        middle, leading = start + height / 2, self.sheet.leading
        for i, cell in enumerate(cells):
            # Symbol over number, or the one that the cell has.
            x, text, state = (
                self._centre(i),
                self.matrix.text(cell),
                state_of(cell, self.matrix.states) if cell else None,
            )
            if state and state.tone == "breach":
                half = self.step / 2 - 1
                shapes.append(
                    layout.PathShape(layout.box(x - half, start + 1, x + half, start + height - 1), "fill", "shade")
                )
            if state:
                shapes += layout.icon(state.icon, x, middle - leading / 2 * bool(text), state.tone)
            if text:
                plain = cell is None or not isinstance(cell.value, int | float)
                y = middle + self.sheet.size * 0.36 + leading / 2 * bool(state)
                shapes.append(layout.Text(x, y, text, "soft" if plain else "ink", anchor="middle"))
        return shapes, start + height


_NO_UNIT = Unit("")
