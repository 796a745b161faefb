"""Cells, reasons and sortable tables that several pages share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from flows.outcome.ending import without_cells
from flows.runs.summary import Summary
from flows.serving.site import Links, Sorted, path_of, run_path
from schemas.questions import QUESTIONS, STATES
from schemas.terms import State, Theory
from tasks.reporting.text import Cell, TableView, state_cell

# --------------------------------------------------------------------------------------------------------------------
# Cells that several lists have: runs with their address, times, states by question.


STATE_WORDS: Mapping[str, str] = {key.value: state.words for key, state in STATES.items()}
"""Words of the filters: those of the badges."""


def run_cell(run: str) -> Cell:
    """A run, leading to its first page."""
    return Cell(run, address=run_path(run))


def time_cell(time: str) -> Cell:
    """A time as it was written, to the minute; UTC."""
    return Cell(f"{time.replace('T', ' ')[:16]} UTC", "time", state=time) if time else Cell("–", "none")


def run_state(state: str) -> Cell:
    """The state of a run; one of another version by its name."""
    return state_cell(state) if state in STATES else Cell(state.replace("_", " "), "state", "not_run")


def gravity(state: str) -> int:
    """The place of a state in lists: the gravest first, one of another version last."""
    order = list(STATES)
    return order.index(State(state)) if state in STATES else len(order)


def badge(words: str, colour: str, detail: str = "") -> Cell:
    """Words with the colour and sign of a state, and a detail text."""
    return Cell(words, "state", colour, detail)


def by_question(run: Summary) -> Cell:
    """The questions of each state, the gravest first."""
    states = run.question_states
    questions = {
        state_name.words: [question_short(theory) for theory, state in states.items() if state == key]
        for key, state_name in STATES.items()
    }
    return Cell("; ".join(f"{words}: {', '.join(of)}" for words, of in questions.items() if of) or "–")


def question_short(theory: str) -> str:
    """The short name of a question; one of another version by its key."""
    return QUESTIONS[Theory(theory)].short if theory in QUESTIONS else theory.replace("_", " ")


def table(title: str, header: Iterable[str], rows: Iterable[tuple[Cell, ...]], note: str = "") -> TableView:
    """A table of rows of cells."""
    return TableView(title, tuple(header), tuple(rows), note)


def number_cell(value: float | None, reason: str | None) -> Cell:
    """A number as published, or why there is none."""
    return Cell(reason or "withheld", "none") if value is None else Cell(number(value), "number")


def number(value: float) -> str:
    """A number with four significant digits; a count whole."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def steps(place: str, query: dict[str, str], page: int, count: int, size: int) -> Links:
    """Links to the page before and after of a list with its filters."""
    last = max((count + size - 1) // size, 1)
    ways = [(page - 1, "Previous")] if page > 1 else []
    ways += [(page + 1, f"Next: page {page + 1} of {last}")] if page < last else []
    parts = [unquote(part) for part in place.strip("/").split("/")]
    return tuple((path_of(*parts, **query, page=number), words) for number, words in ways)


# --------------------------------------------------------------------------------------------------------------------
# Tables that links in their headers sort: a second click turns the order.


@dataclass(frozen=True)
class Column:
    """A column of a list."""

    words: str
    name: str = ""
    """What the address sorts by; empty of one that is not sorted by."""
    falls: bool = False
    """Whether the largest come first at the first click."""


def in_order(sort: str, columns: Sequence[Column]) -> str:
    """What is sorted by, - before it for the largest first; nothing where there is no such column."""
    name = sort.removeprefix("-")
    return sort if name and name in {column.name for column in columns} else ""


def sorted_by(view: TableView, columns: Sequence[Column], place: str, query: Mapping[str, str], sort: str) -> Sorted:
    """A table with the links of its headers.

    Args:
        view: with these columns.
        columns: in order.
        place: address of the list.
        query: its filters.
        sort: what it is sorted by; empty: by no column.
    """
    parts = [unquote(part) for part in place.strip("/").split("/")]
    addresses, orders = [], []
    for column in columns:
        first, second = (f"-{column.name}", column.name) if column.falls else (column.name, f"-{column.name}")
        following = second if sort == first else first
        addresses.append(path_of(*parts, **query, sort=following) if column.name else "")
        is_sorted = column.name and sort.removeprefix("-") == column.name
        orders.append(("descending" if sort.startswith("-") else "ascending") if is_sorted else "")
    return Sorted(view, tuple(addresses), tuple(orders))


# --------------------------------------------------------------------------------------------------------------------
# Reasons of failures and of stale years as pages may show them: no cell, count, row, folder or command of a server.


_GONE: Final = "\N{HORIZONTAL ELLIPSIS}"
_COUNT = re.compile(r"\b(?!(?:19|20)\d\d\b)\d[\d,.]*\d|\b\d\b")
"""A number that is no year."""
_ROWS = re.compile(r"; rows .*")
"""Ids of rows, which a failed check names at its end."""
_FROM = re.compile(r" ?\((?:from|in|at) [^)]*/[^)]*\)")
"""A bracket with the folder of a search."""
_PLACE = re.compile(r"(?<![\w.])(?:~|\w[\w+.-]*:/)?/[^\s,;:()'\"]*")
"""A path from the root of a machine, or a URI."""
_COMMAND = re.compile(r"`evenhand|(?<!\w)--\w")


def shareable(text: str) -> str:
    """A reason as it may be shown; years stay. What it advises to type is left out: a reader of pages has no shell."""
    reason = _PLACE.sub(_GONE, _FROM.sub("", _ROWS.sub("", without_cells(text, ()))))
    return _COUNT.sub(_GONE, "; ".join(clause for clause in reason.split("; ") if not _COMMAND.search(clause)))
