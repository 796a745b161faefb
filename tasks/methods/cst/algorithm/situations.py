"""Situations of complainants: refusals among the nearest rows of the own group and of the reference group.

The control group holds the k nearest rows of the complainant's own group, the test group the k nearest rows of the
reference group; refusals are counted in both (Alvarez and Ruggieri 2023, sections 3.1 and 3.4). The search runs once
for the largest k: every smaller group is a prefix of that list. With the search centres, the complainant is counted in
the control group and its counterfactual in the test group, which then have k + 1 members (section 3.2).

Scope: counts in lists of neighbours. Search: ``neighbours``. Tests: ``significance``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.methods.cst.algorithm.neighbours.search import Neighbours
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.statistics.proportions import Pair

NOBODY = -1
"""Stands in a list of neighbours where there are no more."""


class Counts(NamedTuple):
    """Refused among the neighbours of ``c`` complainants, by number of neighbours; NaN where there are fewer."""

    refused: Floats
    """``(len(ks), c)``"""
    n: Floats
    """``(len(ks), c)`` members of the group."""

    def at(self, place: Longs, size: int) -> "Counts":
        """The same for ``size`` complainants, of whom these are those at ``place``; NaN for the others."""
        wide = np.full((2, len(self.n), size), np.nan)
        wide[:, :, place] = self
        return Counts(*wide)

    def only(self, which: int) -> "Counts":
        """Those of one number of neighbours, by its place in ``ks``."""
        return Counts(self.refused[which : which + 1], self.n[which : which + 1])


class Members(NamedTuple):
    """The rows of one of the two groups around each of ``c`` complainants, nearest first."""

    rows: Ints
    """``(c, k + 1)`` rows, ``NOBODY`` beyond the last."""
    distances: Floats
    """``(c, k + 1)`` from the search centre."""

    def of(self, which: slice) -> "Members":
        """Those of some complainants."""
        return Members(self.rows[which], self.distances[which])


class Side(NamedTuple):
    """One of the two groups around each of ``c`` complainants."""

    alone: Counts
    """Without the search centre."""
    centred: Counts
    """With it; NaN where what was decided on the centre is not known."""
    members: Members
    """Those without the search centre, for ``settings.k``."""


def length(settings: CstSettings) -> int:
    """How many rows to search: one more than the largest k, since a complainant is among its own neighbours."""
    return max(settings.ks) + 1


def control_side(near: Neighbours, row: Longs, refused: Bools, settings: CstSettings) -> Side:
    """Control groups, out of the ``length(settings)`` rows of its own group that are nearest to each complainant.

    With many exact duplicates a complainant may be missing from its own nearest rows. The group has k others all the
    same; with ``duplicates: kept`` it has k + 1, as behind the published counts.

    Args:
        near: ``(c, length)`` with the complainant itself among its group.
        row: ``(c,)`` the complainants.
        refused: ``(n,)`` unfavourable decisions on all rows.
        settings: ``ks``, ``k`` and ``duplicates``.
    """
    met, itself, ks = _counted(near, refused), near.rows == row[:, None], np.array(settings.ks)[:, None]
    place = np.where(itself.any(axis=1), itself.argmax(axis=1), near.rows.shape[1])
    others = (near.rows != NOBODY).sum(axis=1) - itself.any(axis=1)
    within, own = place <= ks, refused[row]
    n = ks + (~within & (settings.duplicates == "kept"))
    alone = _take(met, n + within) - (within & own)
    members = _members(near, itself, n[settings.ks.index(settings.k)], others, settings)
    # k + 1 duplicates, kept, are as many as the complainant and k others: it is not counted beside them
    centred = alone + (own & (n == ks))
    return Side(_counts(alone, n, others >= ks), _counts(centred, ks + 1, others >= ks), members)


def test_side(near: Neighbours, row: Longs, refused: Bools, imagined: Bools | None, settings: CstSettings) -> Side:
    """Test groups, out of the ``length(settings)`` rows of the reference group nearest to each counterfactual.

    With ``duplicates: kept`` the counterfactual is one of the rows searched, under the row of its complainant, and
    k + 1 exact duplicates that come before it crowd it out.

    Args:
        near: ``(c, length)``; for situation testing the rows nearest to the complainants themselves.
        row: ``(c,)`` the complainants.
        refused: ``(n,)`` unfavourable decisions on all rows.
        imagined: ``(c,)`` unfavourable decisions on the counterfactuals; None where they are not known.
        settings: ``ks``, ``k``, ``duplicates`` and ``ties``.
    """
    met, found, ks = _counted(near, refused), (near.rows != NOBODY).sum(axis=1), np.array(settings.ks)[:, None]
    n = ks + np.zeros(near.rows.shape[0], dtype=np.int64)
    crowded = _crowded_out(near, row, settings)
    alone = _counts(_take(met, n), n, found >= ks)
    known = imagined is not None
    centre = imagined if imagined is not None else np.zeros(len(row), dtype=bool)
    centred = _counts(_take(met, n + crowded) + (centre & ~crowded), n + 1, (found >= ks) & known)
    nobody = np.zeros(near.rows.shape, dtype=bool)
    return Side(alone, centred, _members(near, nobody, n[settings.ks.index(settings.k)], found, settings))


def pair(control: Counts, test: Counts) -> Pair:
    """Both sides of every complainant, ``(len(ks), c)``; NaN on both where either has too few."""
    missing = np.isnan(control.n) | np.isnan(test.n)
    return Pair(*(np.where(missing, np.nan, part) for part in (*control, *test)))


def joined(sides: Sequence[Side]) -> Side:
    """Of blocks of complainants, one after the other, those of all."""
    alone, centred, members = zip(*sides, strict=True)
    return Side(
        Counts(*(np.concatenate(parts, axis=1) for parts in zip(*alone, strict=True))),
        Counts(*(np.concatenate(parts, axis=1) for parts in zip(*centred, strict=True))),
        Members(*(np.concatenate(parts) for parts in zip(*members, strict=True))),
    )


def _counted(near: Neighbours, refused: Bools) -> Longs:
    """``(c, m + 1)`` how many of the first 0, 1, 2 ... neighbours were refused."""
    counted = np.zeros((near.rows.shape[0], near.rows.shape[1] + 1), dtype=np.int64)
    np.cumsum(refused[near.rows] & (near.rows != NOBODY), axis=1, out=counted[:, 1:])
    return counted


def _take(counted: Longs, first: Longs) -> Longs:
    """``(len(ks), c)`` refused among the first so many, ``(len(ks), c)``."""
    return np.take_along_axis(counted, first.T, axis=1).T


def _counts(refused: Longs, n: Longs, enough: Bools) -> Counts:
    return Counts(np.where(enough, refused, np.nan), np.where(enough, n, np.nan))


def _crowded_out(near: Neighbours, row: Longs, settings: CstSettings) -> Bools:
    """``(len(ks), c)`` whether k + 1 duplicates of the counterfactual come before it."""
    last = near.rows[:, settings.ks].T
    before = last > row if settings.ties == "descending" else last < row
    crowded: Bools = (near.distances[:, settings.ks].T == 0) & (last != NOBODY) & before
    return crowded & (settings.duplicates == "kept")


def _members(near: Neighbours, itself: Bools, n: Longs, others: Longs, settings: CstSettings) -> Members:
    """The first ``n`` of each list without the complainant; nobody where there are fewer than k."""
    # k + 1 members at most, and the complainant among them
    rows, distances = near.rows[:, : settings.k + 2], near.distances[:, : settings.k + 2]
    order = np.argsort(itself[:, : settings.k + 2] | (rows == NOBODY), axis=1, kind="stable")[:, : settings.k + 1]
    wanted = (np.arange(order.shape[1]) < n[:, None]) & (others >= settings.k)[:, None]
    members = np.where(wanted, np.take_along_axis(rows, order, axis=1), NOBODY)
    return Members(members.astype(np.int32), np.take_along_axis(distances, order, axis=1))
