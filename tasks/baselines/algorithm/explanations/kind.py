"""The kind "group explanation": applicants whom a model refuses in, the change proposed to each of them out.

Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

IMMUTABLE: Final = 2
"""Direction of a column that nobody may change; 1 is only up, -1 only down, 0 free."""

NO_CHANGE: Final = "no explanation changes the decision"


@dataclass(frozen=True)
class Refused:
    """``f`` applicants to explain, among ``n`` rows with ``p`` encoded columns in [0, 1]."""

    values: Floats
    """``(f, p)`` the applicants whom the model refuses."""
    rows: Floats
    """``(n, p)`` rows that values and frequencies are taken from."""
    feature: Ints
    """``(p,)`` number of the feature of each column; the columns of a one-hot set share one."""
    logit: Callable[[Floats], Floats]
    """The model's logit ``(r,)`` of rows ``(r, p)``; at 0 and above it accepts."""
    direction: Ints | None = None
    """``(p,)`` how a column may change, for systems that are told the rules; None: they are told of none."""

    @property
    def sets(self) -> tuple[Longs, ...]:
        """Columns of each one-hot set: of each feature with several columns."""
        numbers, counts = np.unique(self.feature, return_counts=True)
        return tuple(np.flatnonzero(self.feature == number) for number in numbers[counts > 1])

    def accepted(self, points: Floats) -> Bools:
        """``(r,)`` whether the model accepts each of ``(r, p)``."""
        decided: Bools = self.logit(points) >= 0
        return decided


@dataclass(frozen=True)
class Proposals:
    """What is proposed to ``f`` applicants."""

    point: Floats
    """``(f, p)``; the applicant's own values where there is no proposal."""
    explanation: Ints
    """``(f,)`` number of the explanation, a rule or a direction, that the proposal is from; -1 for none."""
    cost: Floats
    """``(f,)`` L2 distance to the proposal, in encoded units; NaN where there is none that the model accepts."""
    refusal: NDArray[np.str_]
    """``(f,)`` empty, or why there is no proposal that the model accepts."""
    explanations: int
    """Number of explanations that the group is given."""
    details: tuple[str, ...] = field(default=())
    """The explanations in words of columns, as far as the system has any."""

    @property
    def valid(self) -> Bools:
        """``(f,)`` whether the model accepts the proposal."""
        return np.isfinite(self.cost)


class GroupExplanation(Protocol):
    """A system that explains a group."""

    def __call__(self, refused: Refused, rng: np.random.Generator) -> Proposals:
        """The proposals; the same applicants and the same state of the generator, the same proposals."""
        ...


def proposals(
    refused: Refused, point: Floats, explanation: Ints, explanations: int, details: tuple[str, ...] = ()
) -> Proposals:
    """Proposals, of which those that the model does not accept have a refusal.

    Args:
        refused: The applicants.
        point: ``(f, p)``.
        explanation: ``(f,)``, -1 for none.
        explanations: Number of explanations.
        details: The explanations in words.
    """
    proposed = explanation >= 0
    kept = np.where(proposed[:, None], point, refused.values)
    valid = proposed & refused.accepted(kept)
    length = np.sqrt(((kept - refused.values) ** 2).sum(axis=1))
    return Proposals(
        kept,
        explanation.astype(np.int32),
        np.where(valid, length, np.nan),
        np.where(valid, "", NO_CHANGE),
        explanations,
        details,
    )
