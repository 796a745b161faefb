"""True counterfactuals of the twin: the same people, noise and purposes, as members of another group.

No audit can observe it. Here it is known, so that what a method finds can be held against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.ingest.synthetic.twin.algorithm import causal, publishing
from tasks.ingest.synthetic.twin.algorithm.causal import World
from tasks.ingest.synthetic.twin.algorithm.drawing import Twin
from tasks.ingest.synthetic.twin.algorithm.publishing import Published
from tasks.ingest.synthetic.twin.algorithm.settings import RACES, SEXES, WHITE
from tasks.numerics.arrays import Bools, Ints


@dataclass(frozen=True)
class Otherwise:
    """Everybody as a member of another group of one attribute."""

    attribute: str
    """``race`` or ``sex``."""
    group: Ints
    """``(n,)`` the own group, as a place in ``names``."""
    to: Ints
    """``(n,)`` the group that a person is imagined in."""
    names: tuple[str, ...]
    world: World
    published: Published
    flips: Bools
    """``(n,)`` whether the decision would have been another one; of rows that were decided on."""


def as_members(twin: Twin, race: Ints, sex: Ints) -> World:
    """Mediators and decisions of the same people, had they been of some races and sexes ``(n,)``."""
    return causal.world(twin.settings, twin.people, twin.noise, causal.disadvantage(twin.settings, race, sex))


def otherwise(twin: Twin) -> Iterator[Otherwise]:
    """Everybody in the other group: of race, as white, and the white as Black; of sex, as the other one."""
    race, sex = twin.people.race, twin.people.sex
    to_race = np.where(race == WHITE, RACES.index("Black"), WHITE).astype(np.int32)
    yield _found(twin, "race", race, to_race, RACES, as_members(twin, to_race, sex))
    to_sex = (1 - sex).astype(np.int32)
    yield _found(twin, "sex", sex, to_sex, SEXES, as_members(twin, race, to_sex))


def _found(twin: Twin, attribute: str, group: Ints, to: Ints, names: tuple[str, ...], then: World) -> Otherwise:
    flips = (then.approved != twin.world.approved) & twin.decided
    published = publishing.publish(then.mediators, twin.settings.modern)
    return Otherwise(attribute, group, to, names, then, published, flips)


@dataclass(frozen=True)
class FlipShare:
    """How many decisions on a group hang on the group."""

    attribute: str
    group: str
    decisions: int
    flips: int

    @property
    def share(self) -> float:
        """Flips among the decisions; NaN where there are none."""
        return self.flips / self.decisions if self.decisions else float("nan")


def flip_shares(twin: Twin) -> list[FlipShare]:
    """The true share of decisions that would have been others, by attribute and group that somebody is of."""
    out = []
    for found in otherwise(twin):
        for group in np.unique(found.group).tolist():
            own = (found.group == group) & twin.decided
            out.append(FlipShare(found.attribute, found.names[group], int(own.sum()), int((found.flips & own).sum())))
    return out
