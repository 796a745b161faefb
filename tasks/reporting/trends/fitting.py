"""What fits on a page over years: about 1.7 MB. The JSON file beside the page holds every row of every measure."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

CHARTS = 40
"""On a page; the years against their limits come first."""
POINTS = 1_000
"""Of all charts of a page, a group in a year each: 1.2 kB a point, drawn twice, described and in a table."""
TABLES = 40
"""Of measures without a chart."""
CELLS = 4_000
"""Of all these tables, a group in a year each: 0.1 kB."""
ROWS = 25
"""Of a table, and panels of a chart."""

T = TypeVar("T")


def fitting(sizes: Mapping[T, int], most: int, room: int) -> list[T]:
    """At most so many, the first of them as long as there is room; one that is too large leaves its room to others."""
    kept: list[T] = []
    for each, size in sizes.items():
        if len(kept) < most and size <= room:
            kept.append(each)
            room -= size
    return kept


def largest(items: Iterable[T], size: Callable[[T], float]) -> list[T]:
    """As many items as fit, those with the largest size, in the order in which they came."""
    known = list(items)
    kept = sorted(range(len(known)), key=lambda i: -size(known[i]))[:ROWS]
    return [known[i] for i in sorted(kept)]


def left_out(
    shown: int, whole: int, what: str = "groups", where: str = "The JSON file beside this page holds all."
) -> str:
    """A sentence on what did not fit; empty where all did."""
    return f"These are the {shown} {what} with the largest effects, of {whole}. {where}" if shown < whole else ""
