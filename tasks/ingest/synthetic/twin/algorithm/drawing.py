"""Draws a twin in blocks, of any size: people, outcomes of their applications, and what is reported of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.ingest.synthetic.twin.algorithm import causal, people, publishing, unreported
from tasks.ingest.synthetic.twin.algorithm.causal import Noise, World
from tasks.ingest.synthetic.twin.algorithm.people import People
from tasks.ingest.synthetic.twin.algorithm.publishing import Published
from tasks.ingest.synthetic.twin.algorithm.settings import PURPOSES, TwinSettings, check
from tasks.ingest.synthetic.twin.algorithm.unreported import Unreported
from tasks.numerics.arrays import Bools, Ints

BLOCK = 100_000
"""Rows that are drawn at a time: some 200 MB, whatever the number of rows."""

ORIGINATED, NOT_ACCEPTED, DENIED, WITHDRAWN, INCOMPLETE, PURCHASED, PREAPPROVAL_DENIED, PREAPPROVED = range(1, 9)
"""Codes of the action taken."""
PURCHASE = PURPOSES.index("purchase")


@dataclass(frozen=True)
class Twin:
    """One block of rows and what is known of them."""

    settings: TwinSettings
    people: People
    noise: Noise
    world: World
    """What came about; of rows without a decision (4, 5, 6), what would have been decided."""
    action: Ints
    """``(n,)`` code of the action taken."""
    published: Published
    unreported: Unreported

    @property
    def decided(self) -> Bools:
        """``(n,)`` whether the application was decided on."""
        return ~np.isin(self.action, (WITHDRAWN, INCOMPLETE, PURCHASED))


def blocks(settings: TwinSettings, rng: np.random.Generator) -> Iterator[Twin]:
    """All rows in blocks of at most ``BLOCK``: the first rows of a longer twin are not those of a shorter one.

    Raises:
        ValueError: A parameter is not what it has to be.
    """
    check(settings)
    for start in range(0, settings.rows, BLOCK):
        yield _block(settings, min(BLOCK, settings.rows - start), rng)


def generate(settings: TwinSettings, rng: np.random.Generator) -> Twin:
    """All rows at once, for what has to be held in memory anyway: the rows of ``blocks`` where one block is enough.

    Raises:
        ValueError: A parameter is not what it has to be.
    """
    check(settings)
    return _block(settings, settings.rows, rng)


def _block(settings: TwinSettings, n: int, rng: np.random.Generator) -> Twin:
    who, noise = people.draw(settings, n, rng), causal.draw(n, rng)
    happened = causal.world(settings, who, noise, causal.disadvantage(settings, who.race, who.sex))
    action = _actions(settings, happened.approved, who.purpose == PURCHASE, rng)
    denied = np.isin(action, (DENIED, PREAPPROVAL_DENIED))
    published = publishing.publish(happened.mediators, settings.modern)
    return Twin(settings, who, noise, happened, action, published, unreported.draw(settings, denied, rng))


def _actions(settings: TwinSettings, approved: Bools, purchase: Bools, rng: np.random.Generator) -> Ints:
    """``(n,)`` codes: some applications are never decided on, whatever the decision would have been.

    A preapproval is asked for before a home is bought, and for nothing else.
    """
    n = len(approved)
    ends = np.cumsum([settings.withdrawn, settings.incomplete, settings.purchased])
    fate = np.searchsorted(ends, rng.random(n), side="right")
    early, declined = purchase & (rng.random(n) < settings.preapprovals), rng.random(n) < settings.not_accepted
    yes = np.where(declined, np.where(early, PREAPPROVED, NOT_ACCEPTED), ORIGINATED)
    no = np.where(early, PREAPPROVAL_DENIED, DENIED)
    decided = np.where(approved, yes, no)
    return np.choose(fate, [WITHDRAWN, INCOMPLETE, PURCHASED, decided]).astype(np.int32)
