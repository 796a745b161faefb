"""Withholds cells from everything published, so that no small group of people can be identified.

A small count is withheld, and a further one with it if it could be computed by subtraction from a printed total
(complementary suppression). Profiles and their origin: docs/methods/index.md.
"""

from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Longs


@dataclass(frozen=True)
class Policy:
    """One profile of disclosure control."""

    smallest: int
    """Counts from 1 to ``smallest - 1`` are withheld."""
    events_too: bool
    """Whether that holds for the units with and without the event as well as for n."""
    round_to: int
    """Published counts are rounded to a multiple of this."""


POLICIES = {
    "public": Policy(smallest=5, events_too=False, round_to=1),
    "strict": Policy(smallest=8, events_too=True, round_to=5),
}


def small(policy: Policy, n: int, events: int | None = None) -> bool:
    """Whether a count of people, or a share by its count and events, is to be withheld. Zero says nothing of anyone."""
    counts = [n, events, n - events] if policy.events_too and events is not None else [n]
    return any(0 < count < policy.smallest for count in counts)


def rounded(policy: Policy, count: int) -> int:
    """The count as published."""
    return round(count / policy.round_to) * policy.round_to


def complement(withheld: Bools, counts: Longs, smallest: int = 0) -> Bools:
    """Withhold more where what is withheld could be had by subtraction from the total of ``counts``.

    A single withheld count can be, and so can the sum of several, which must not be small either (below ``smallest``).
    The next smallest positive count goes with them, or a zero where there is no other; ``(n,)`` in, ``(n,)`` out.
    """
    out = withheld.copy()
    while out.any() and not out.all() and (out.sum() == 1 or 0 < counts[out].sum() < smallest):
        cost = np.where(counts > 0, counts, counts.max() + 1)
        out[np.argmin(np.where(out, counts.max() + 2, cost))] = True
    return out


def withhold_table(policy: Policy, counts: Longs) -> Bools:
    """Which cells of an ``(r, c)`` table of counts with printed margins to withhold.

    Rows and columns are visited until no row and no column holds a single withheld cell that its total gives away.
    """
    withheld = (counts > 0) & (counts < policy.smallest)
    while True:
        before = withheld.copy()
        for i in range(counts.shape[0]):
            withheld[i] = complement(withheld[i], counts[i])
        for j in range(counts.shape[1]):
            withheld[:, j] = complement(withheld[:, j], counts[:, j])
        if (withheld == before).all():
            return withheld
