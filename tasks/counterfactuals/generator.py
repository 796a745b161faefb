"""Interface of the generators of counterfactuals: the rows that they can serve, and their counterfactuals.

Implementations are a structural causal model (``scm``) and a search among real applicants (``nearest``). Adversarial
networks take long to train and have a stage of their own (``mediate``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schemas.audit.causal import Edge
from tasks.counterfactuals.algorithm.nearest.matching import Matches
from tasks.counterfactuals.algorithm.scm.abduction import Imagined
from tasks.counterfactuals.algorithm.scm.checks import Check
from tasks.numerics.arrays import Longs
from tasks.numerics.problem import Regenerate
from tasks.preprocessing.groups import Grouped
from tasks.scoring.decider import Decide


@dataclass(frozen=True)
class Made:
    """The members of one group as members of the reference group."""

    attribute: str
    group: str
    rows: int
    """Members of the group."""
    imagined: Imagined
    matches: Matches | None = None
    """The real applicants that they stand for, of ``imagined.row``; None of a generator that makes new ones."""


class Generator(Protocol):
    """Generates counterfactuals of applicants as members of the reference group."""

    @property
    def name(self) -> str:
        """Label of its counterfactuals."""

    @property
    def groups(self) -> Mapping[str, Grouped]:
        """Groups of the rows, by protected attribute."""

    def knows(self, attribute: str) -> bool:
        """Whether it has counterfactuals for this attribute."""

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """``rows``, ascending, which are the members of a group, as members of the reference group."""

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """A function that regenerates counterfactuals under other assumptions, with a model's decisions on them."""

    def edges(self, attribute: str) -> tuple[Edge, ...]:
        """The assumptions that can be left out one by one."""

    def reached(self, *attributes: str) -> tuple[str, ...]:
        """The features that any of these attributes is taken to influence, in the order of the columns."""

    def checks(self) -> tuple[Check, ...]:
        """Checks of the assumptions against the data."""


def outside(generator: Generator, attribute: str) -> Iterator[Made]:
    """Every group of an attribute but the reference group."""
    known = generator.groups[attribute]
    for number in range(len(known.groups)):
        if number != known.reference:
            yield generator.members(attribute, number, np.flatnonzero(known.group == number))
