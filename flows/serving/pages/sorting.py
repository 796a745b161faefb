"""Tables that links in their headers sort: a second click turns the order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from flows.serving.rendering import Sorted, path_of
from tasks.reporting.section import TableView


@dataclass(frozen=True)
class Column:
    """A column of a list."""

    words: str
    name: str = ""
    """What the address sorts by; empty of one that is not sorted by."""
    falls: bool = False
    """Whether the largest come first at the first click."""


def in_order(said: str, columns: Sequence[Column]) -> str:
    """What is sorted by, - before it for the largest first; nothing where there is no such column."""
    name = said.removeprefix("-")
    return said if name and name in {column.name for column in columns} else ""


def sorted_by(view: TableView, columns: Sequence[Column], place: str, asked: Mapping[str, str], sort: str) -> Sorted:
    """A table with the links of its headers.

    Args:
        view: with these columns.
        columns: in order.
        place: address of the list.
        asked: its filters.
        sort: what it is sorted by; empty: by no column.
    """
    parts = [unquote(part) for part in place.strip("/").split("/")]
    addresses = [path_of(*parts, **asked, sort=_turned(sort, each)) if each.name else "" for each in columns]
    return Sorted(view, tuple(addresses), tuple(_order(sort, each) for each in columns))


def _turned(sort: str, column: Column) -> str:
    rising, falling = column.name, f"-{column.name}"
    first, second = (falling, rising) if column.falls else (rising, falling)
    return second if sort == first else first


def _order(sort: str, column: Column) -> str:
    if not column.name or sort.removeprefix("-") != column.name:
        return ""
    return "descending" if sort.startswith("-") else "ascending"
