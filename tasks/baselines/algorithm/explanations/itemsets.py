"""Frequent itemsets of binned columns: the conditions from which AReS makes its rules.

An item is a feature with one of its values: a category, or an equal-width bin of a number. Scope: the search by length
(Agrawal and Srikant 1994, Apriori).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

BINS: Final = 10
"""Equal-width bins of a column with more values than that."""

Itemset = tuple[tuple[int, int], ...]
"""Pairs of feature and value, features ascending."""


@dataclass(frozen=True)
class Binned:
    """The values of rows by feature, and what each value is in encoded columns."""

    columns: tuple[Ints, ...]
    """For each feature its encoded columns."""
    values: tuple[Floats, ...]
    """For each feature ``(values, columns)``: the encoded columns of each value."""
    edges: tuple[Floats, ...]
    """For each feature where its bins end; empty for categories and for few values."""

    def of(self, rows: Floats) -> Ints:
        """``(r, features)`` number of each row's value."""
        return np.column_stack([self._of(rows, at) for at in range(len(self.columns))]).astype(np.int32)

    def _of(self, rows: Floats, at: int) -> Ints:
        own = rows[:, self.columns[at]]
        place: Longs
        if len(self.columns[at]) > 1:
            place = own.argmax(axis=1)
        elif len(self.edges[at]):
            place = np.searchsorted(self.edges[at], own[:, 0], side="left")
        else:
            place = np.abs(own - self.values[at][:, 0]).argmin(axis=1)
        return place.astype(np.int32)


def binned(rows: Floats, feature: Ints) -> Binned:
    """Bins of ``(n, p)`` rows; ``feature`` is ``(p,)``. A bin stands for the mean of the rows in it."""
    columns, values, edges = [], [], []
    for number in np.unique(feature):
        own = np.flatnonzero(feature == number).astype(np.int32)
        columns.append(own)
        found, ends = (np.eye(len(own)), np.zeros(0)) if len(own) > 1 else _bins(rows[:, own[0]])
        values.append(found)
        edges.append(ends)
    return Binned(tuple(columns), tuple(values), tuple(edges))


def _bins(values: Floats) -> tuple[Floats, Floats]:
    """``(values, 1)`` what a bin stands for, and where bins end."""
    distinct = np.unique(values)
    if len(distinct) <= BINS:
        return distinct[:, None], np.zeros(0)
    edges = np.linspace(distinct[0], distinct[-1], BINS + 1)[1:-1]
    place = np.searchsorted(edges, values, side="left")
    middle = (np.concatenate([distinct[:1], edges]) + np.concatenate([edges, distinct[-1:]])) / 2
    means = [values[place == at].mean() if (place == at).any() else middle[at] for at in range(BINS)]
    return np.array(means)[:, None], edges


def frequent(codes: Ints, support: float, length: int) -> Mapping[Itemset, Bools]:
    """Itemsets that hold for a share of rows.

    Args:
        codes: ``(n, features)`` number of each value.
        support: Least share of rows.
        length: Most items.

    Returns:
        By itemset the rows ``(n,)`` for which it holds; none of no rows.
    """
    least = max(support * len(codes), 1)
    every: dict[Itemset, Bools] = {
        ((at, int(value)),): codes[:, at] == value for at in range(codes.shape[1]) for value in np.unique(codes[:, at])
    }
    single = {items: held for items, held in every.items() if held.sum() >= least}
    found, longest = dict(single), single
    for _ in range(length - 1):
        longest = _longer(longest, single, least)
        found |= longest
    return found


def _longer(known: Mapping[Itemset, Bools], single: Mapping[Itemset, Bools], least: float) -> dict[Itemset, Bools]:
    """Itemsets with one item more, of a later feature."""
    out = {}
    for items, held in known.items():
        for (item,), also in single.items():
            if item[0] > items[-1][0]:
                both = held & also
                if both.sum() >= least:
                    out[(*items, item)] = both
    return out


def features_of(items: Itemset) -> tuple[int, ...]:
    """The features of an itemset."""
    return tuple(feature for feature, _ in items)


def by_features(found: Sequence[Itemset]) -> dict[tuple[int, ...], list[Itemset]]:
    """Itemsets by their features."""
    grouped: dict[tuple[int, ...], list[Itemset]] = {}
    for items in found:
        grouped.setdefault(features_of(items), []).append(items)
    return grouped
