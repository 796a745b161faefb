"""Kinds of rows: rows that are alike in groups, places and events, which no published count tells apart.

The auditor takes a row for each kind, with its number of people.
"""

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np
import pandas as pd

from tasks.metrics.publish.algorithm.populations import Attribute, Event, People, Place
from tasks.numerics.arrays import Bools, Longs


class Marked(NamedTuple):
    """What is told of each row, ``(rows,)`` each: its group by attribute, the places it is in, what happened to it."""

    codes: dict[str, Longs]
    bases: dict[Place, Bools]
    events: dict[Event, Bools]
    weights: Longs
    """Records that each row stands for."""

    def at(self, rows: Longs) -> "Marked":
        """The same of some rows; of row -1, of which nothing is known, group -1 and no place."""
        known = rows >= 0
        codes = {name: np.where(known, each[rows], -1) for name, each in self.codes.items()}
        bases = {place: known & each[rows] for place, each in self.bases.items()}
        events = {event: known & each[rows] for event, each in self.events.items()}
        return Marked(codes, bases, events, np.where(known, self.weights[rows], 1))

    def with_(self, other: "Marked") -> "Marked":
        """Together with what else is told of the same rows."""
        weights = np.maximum(self.weights, other.weights)
        return Marked(self.codes | other.codes, self.bases | other.bases, self.events | other.events, weights)


class Named(NamedTuple):
    """An attribute by its columns, and the names of its groups."""

    name: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]


def people_of(marked: Marked, named: Sequence[Named], decisions: Sequence[Set[Event]]) -> People:
    """Rows as the auditor takes them: one for each kind, and of weight 0 one for what nobody got.

    Args:
        marked: what is told of each row.
        named: the attributes whose codes it has.
        decisions: events that are one decision: they happen to a person together.
    """
    first, _, counts = kinds_of(marked)
    marked = marked.at(first)
    more, turned = _imagined(marked, decisions)
    every = np.concatenate([np.arange(first.size), more])
    column_of, codes = dict(linked(named)), {name: code[every] for name, code in marked.codes.items()}
    columns = {
        column: _together([codes[name] for name, of in column_of.items() if of == column])
        for column in dict.fromkeys(column_of.values())
    }
    return People(
        columns,
        tuple(Attribute(each.name, (column_of[each.name],), each.groups, codes[each.name]) for each in named),
        {place: rows[every] for place, rows in marked.bases.items()},
        {event: np.concatenate([rows, turned[event]]) for event, rows in marked.events.items()},
        weights=np.concatenate([counts, np.zeros_like(more)]),
    )


def _imagined(marked: Marked, decisions: Sequence[Set[Event]]) -> tuple[Longs, dict[Event, Bools]]:
    """One row like each that differs in where it ended, with each decision turned round."""
    like = np.unique(np.column_stack(list(marked.bases.values())), axis=0, return_index=True)[1].astype(np.int64)
    rows, whose = np.repeat(like, len(decisions)), np.tile(np.arange(len(decisions)), like.size)
    out = {}
    for event, inside in marked.events.items():
        turned = [number for number, together in enumerate(decisions) if event in together]
        out[event] = inside[rows] != np.isin(whose, turned)
    return rows, out


def linked(named: Sequence[Named]) -> Iterator[tuple[str, str]]:
    """Each attribute with the one column of all attributes that share columns, directly or through others."""
    sets: list[set[str]] = []
    for each in named:
        mine = set(each.columns)
        touched = [other for other in sets if other & mine]
        sets = [other for other in sets if not other & mine] + [mine.union(*touched)]
    for each in named:
        yield each.name, " x ".join(sorted(next(other for other in sets if set(each.columns) <= other)))


def kinds_of(marked: Marked) -> tuple[Longs, Longs, Longs]:
    """First row of each kind, ``(kinds,)``, kind of each row, ``(rows,)``, and records of each kind, ``(kinds,)``.

    A kind is alike in groups, places and events.
    """
    packed = np.packbits(np.column_stack([*marked.bases.values(), *marked.events.values()]), axis=1)
    bits = {f"marks {number}": packed[:, number] for number in range(packed.shape[1])}
    frame = pd.DataFrame({**marked.codes, **bits})
    kind = frame.groupby(list(frame), sort=True).ngroup().to_numpy()
    _, first, inverse = np.unique(kind, return_index=True, return_inverse=True)
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, inverse, marked.weights)
    return first.astype(np.int64), inverse.astype(np.int64), counts


def _together(codes: Sequence[Longs]) -> Longs:
    """Number of each row's combination of codes, ``(rows,)``."""
    return np.unique(np.column_stack(list(codes)), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
