"""Parts of a section of the report: words, figures and tables, all plain text until the template escapes it.

Scope: shapes. How numbers are written: ``numbers``. How charts are drawn: ``charts``. Files: ``pages``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from tasks.reporting.charts.element import Chart


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    kind: Literal["text", "number", "state", "none", "time"] = "text"
    """``none`` is a number that is not there: withheld, undefined or not computed, as its text says."""
    state: str = ""
    """For a state: its code, which decides colour and shape; for a time: it in ISO 8601. Words are in ``text``."""
    detail: str = ""
    """The interval of a number, which may stand on a line of its own."""
    address: str = ""
    """Where the text leads to, from the page; empty where it leads nowhere."""

    @property
    def whole(self) -> str:
        """The cell as one line."""
        return f"{self.text} {self.detail}".strip()


K = TypeVar("K")
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class TableView:
    """A table as shown."""

    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    folded: bool = False
    """Whether it stays closed until asked for."""
    whole: int = 0
    """Rows of the whole table where ``rows`` are the first of them by size of effect; 0: these are all."""
    rest: str = ""
    """Where what is not printed stands; empty: in the files that have all measures."""

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
class Figure:
    """A chart with a caption that says what it shows and no more; its title is the chart's."""

    chart: Chart
    caption: str = ""


@dataclass(frozen=True)
class Notice:
    """A sentence that must not be overlooked, and the points that it is about."""

    title: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """Text that keeps its lines, such as a spec or a command."""

    title: str
    text: str
    folded: bool = True
    """Whether it stays closed until asked for."""


@dataclass(frozen=True)
class Link:
    """Words, and the page or file of the run that they lead to."""

    words: str
    address: str
    """From the folder of the run, such as ``method.html#gap``."""


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
    listings: tuple[Listing, ...] = ()
    links: tuple[Link, ...] = ()
    """Where to read on; they stand below the words."""
    parts: tuple["Section", ...] = ()
