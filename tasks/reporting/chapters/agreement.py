"""What several methods say of one question and group: which contradict each other, and the matrix of all states."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.chapters.decide.facts import Key
from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.declared import PAGES
from tasks.reporting.section import Figure, Section

MOST_GROUPS = 12
"""Rows of the matrix, which is drawn twice: of 25 with long names it is 150 kB, and the page has 250."""
TITLE = "What each method says of each group"
Said = Mapping[str, Any]
"""A row of the table ``agreement``."""


@dataclass(frozen=True)
class Apart:
    """A group of which one method says outside and another inside."""

    theory: Theory
    maker: str
    key: Key
    outside: tuple[str, ...]
    """Measures."""
    inside: tuple[str, ...]


def apart(rows: Iterable[Said]) -> tuple[Apart, ...]:
    """The contradictions, in the order of the rows."""
    of: dict[tuple[str, str, Key], list[Said]] = {}
    for row in rows:
        of.setdefault((row["theory"], row["decision_maker"], _key(row)), []).append(row)
    states = (State.BREACH, State.WITHIN)
    found = [
        Apart(Theory(theory), maker, key, *(tuple(row["measure"] for row in said if row["state"] == s) for s in states))
        for (theory, maker, key), said in of.items()
    ]
    return tuple(each for each in found if each.outside and each.inside)


def agreement(rows: Iterable[Said], groups: Groups, words: Callable[[str], str]) -> Section | None:
    """Group x measure, those that point apart first where there are many groups; None without rows.

    Args:
        rows: of the table ``agreement``.
        groups: their order and names.
        words: a measure in words.
    """
    order = list(PAGES)
    said = sorted(rows, key=lambda row: (order.index(row["theory"]), row["decision_maker"] != DecisionMaker.LENDER))
    cells: dict[tuple[Key, str], str] = {}
    for row in said:
        cells.setdefault((_key(row), row["measure"]), row["state"])
    keys = {key for key, _ in cells}
    if not keys:
        return None
    against = {each.key for each in apart(said)}
    ordered = [key for key in groups.order if key in keys]
    kept = set(sorted(ordered, key=lambda key: (key not in against, ordered.index(key)))[:MOST_GROUPS])
    chart = _matrix([key for key in ordered if key in kept], cells, groups, words)
    more = f" The first {len(kept)} of {len(ordered)} groups." if len(kept) < len(ordered) else ""
    return Section(TITLE, "agreement", (_words(len(against)),), figures=(Figure(chart, "State by method." + more),))


def _matrix(
    keys: list[Key], cells: Mapping[tuple[Key, str], str], groups: Groups, words: Callable[[str], str]
) -> Matrix:
    measures = list(dict.fromkeys(measure for _, measure in cells))
    rows = tuple(
        Row(
            label=groups.label(key),
            cells=tuple(Cell(state=cells[key, name]) if (key, name) in cells else None for name in measures),
        )
        for key in keys
    )
    return Matrix(title=TITLE, columns=tuple(words(name) for name in measures), rows=rows)


def _words(against: int) -> str:
    if not against:
        return "No two methods contradict each other: nowhere does one say outside limit and another inside limit."
    return f"Methods point apart for {against} groups: one says outside limit, another inside limit."


def _key(row: Said) -> Key:
    return row["protected_attribute"], row["group"]
