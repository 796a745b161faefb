"""Parts of a section of the report: words, figures and tables, all plain text until the template escapes it.

Scope: shapes. How numbers are written: ``numbers``. How charts are drawn: ``charts``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    kind: Literal["text", "number", "state", "none"] = "text"
    """``none`` is a number that is not there: withheld, undefined or not computed, as its text says."""
    state: str = ""
    """For a state: its code, which decides colour and shape; the words stand in ``text``."""
    detail: str = ""
    """The interval of a number, which may stand on a line of its own."""

    @property
    def whole(self) -> str:
        """The cell as one line."""
        return f"{self.text} {self.detail}".strip()


K = TypeVar("K")
Row = tuple[Cell, ...]
Span = Literal["third", "half", "full"]


@dataclass(frozen=True)
class TableView:
    """A table as shown."""

    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    folded: bool = False
    """Whether it is the long form of a figure and stays closed until asked for."""

    @classmethod
    def of(
        cls,
        title: str,
        keys: Iterable[K],
        columns: Mapping[str, Callable[[K], Cell]],
        note: str = "",
        *,
        folded: bool = False,
    ) -> "TableView":
        """A table with a row for each key; ``columns`` give each header the function that makes its cell."""
        rows = tuple(tuple(cell(key) for cell in columns.values()) for key in keys)
        return cls(title, tuple(columns), rows, note, folded)


@dataclass(frozen=True)
class Panel:
    """One chart: its Vega-Lite spec for a browser with scripts and its SVG for everyone else."""

    title: str
    label: str
    """What a screen reader says."""
    spec: Mapping[str, Any]
    svg: str
    span: Span = "third"
    """How much of the page's width it takes."""


@dataclass(frozen=True)
class Swatch:
    """One entry of a legend: colour and dash of a line, or colour and shape of a point."""

    text: str
    colour: str
    dash: str = ""
    shape: str = ""
    """Of a point: circle, square, triangle, triangle-down, diamond or cross; a line has none."""


@dataclass(frozen=True)
class Figure:
    """Charts under one title, with a caption that says what they show and no more."""

    title: str
    panels: tuple[Panel, ...]
    caption: str
    legend: tuple[Swatch, ...] = ()


@dataclass(frozen=True)
class Notice:
    """A sentence that must not be overlooked, and the points that it is about."""

    title: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section; its parts are one heading level below it."""

    title: str
    anchor: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    """Sentences as a list: readings of the figures, one a group."""
    notices: tuple[Notice, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[TableView, ...] = ()
    parts: tuple["Section", ...] = ()
