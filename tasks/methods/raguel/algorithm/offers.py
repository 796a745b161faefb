"""Offers and counterfactual points in the user's units, checked against the model that decided.

Results in standard deviations may not survive the conversion: values are rounded to whole steps, bins have edges, and
the linear form may not match the model. So the model decides again on every applicant after the offer; offers that it
does not confirm are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tasks.methods.raguel.algorithm.lists import Order, Ranked
from tasks.methods.raguel.algorithm.units import Space
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

ROUNDING = 1e-6
"""By how much a score may be off what was counted on."""

Answers = Callable[[Longs, Floats], tuple[Bools, Floats]]
"""From rows, and their columns as they would be, to the model's decisions and how far its scores lie above the cut."""


@dataclass(frozen=True)
class Offers:
    """What applicants of a list are to change, one entry for each applicant and column. Aligned arrays."""

    record: Longs
    attribute: Longs
    """Number of the column."""
    before: Floats
    """In the user's units; categories by their numbers."""
    after: Floats
    falls: Bools
    """Whether the column is to become less."""
    place: Longs
    """Number of the model's input."""


@dataclass(frozen=True)
class Applied:
    """The applicants of a list, as they handed in and as their model takes it; aligned by record."""

    space: Space
    column: Ints
    """``(d,)`` number of the column that each input is of."""
    row: Longs
    """``(n,)`` numbers of their rows."""
    now: Floats
    """``(n, p)`` columns in the user's units."""
    x: Floats
    """``(n, d)`` inputs."""
    answers: Answers | None
    """None where nobody can be asked."""

    def moved(self, values: Floats) -> Floats:
        """``(n, p)`` columns in the user's units where records are moved to ``(n, d)``."""
        return self.space.decoded(self.now, self.x, values, self.column)

    def confirmed(self, points: Floats, unfavourable: Bools) -> Floats:
        """Whether the model favours each point, ``(n,)`` 1 or 0; NaN of who is favoured as it is, or if nobody knows.

        Args:
            points: ``(n, d)`` counterfactual points.
            unfavourable: ``(n,)`` decisions as they are.
        """
        if self.answers is None:
            return np.full(len(self.row), np.nan)
        return np.where(unfavourable, self.favoured(points), np.nan)

    def favoured(self, points: Floats) -> Bools:
        """The model's decisions ``(n,)`` at points ``(n, d)``; nobody is favoured by whom nobody can ask."""
        return (
            np.zeros(len(self.row), np.bool_) if self.answers is None else self.answers(self.row, self.moved(points))[0]
        )

    def offers_confirmed(self, order: Order, gains: Floats, unfavourable: Bools) -> Floats:
        """Whether the model's score rises by at least ``gains`` ``(n,)`` with each offer: 1 or 0; NaN without one."""
        found = np.full(len(self.row), np.nan)
        at = np.flatnonzero(order.offered & unfavourable)
        if self.answers is None or not len(at):
            return found
        _, now = self.answers(self.row[at], self.now[at])
        _, then = self.answers(self.row[at], self.moved(order.values)[at])
        found[at] = then - now >= gains[at] - ROUNDING * (1 + np.abs(now))
        return found


def offers(applied: Applied, ranked: Ranked, order: Order) -> Offers:
    """What is on offer in an order, by record and input."""
    values, moved = ranked.records.values, applied.moved(order.values)
    record, place = np.nonzero(order.values != values)
    attribute = applied.column[place].astype(np.int64)
    falls = order.values[record, place] < values[record, place]
    before, after = applied.now[record, attribute], moved[record, attribute]
    return Offers(record.astype(np.int64), attribute, before, after, falls, place.astype(np.int64))
