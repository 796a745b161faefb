"""GLOBE-CE: one direction for a whole group, and for each applicant how far to go along it.

After Ley, Mishra and Magazzeni, "GLOBE-CE: A Translation-Based Approach for Global Counterfactual Explanations" (2023),
sections 3.1 to 3.3: sparse directions are drawn at random, the one that serves most applicants at the least mean cost
is kept, and each applicant gets the smallest scalar that changes the decision. A one-hot set takes the category with
the largest value after the move. The authors' code has no licence and was not read.

Numeric columns stay within [0, 1]. The system knows no rules of a step; one that is ``told`` draws only directions that
the signs of the rules permit, so that "is not told" and "cannot" come apart.

Scope: directions and scalars. Whether a step leads to what is proposed: FGCE's ``ablation.proposals``.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.baselines.algorithm.explanations.kind import IMMUTABLE, Proposals, Refused, proposals
from tasks.numerics.arrays import Bools, Floats, Ints

FARTHEST: Final = 2.0
"""Largest scalar: a direction's largest entry is 1, and a category changes beyond 1."""


@dataclass(frozen=True)
class GlobeCe:
    """GLOBE-CE with its sizes."""

    translations: int = 1000
    """Directions that are drawn."""
    features: int = 4
    """Most features that a direction changes (the paper's sparsity)."""
    coarse: int = 20
    """Scalars by which directions are compared."""
    fine: int = 60
    """Scalars tried along the chosen one, before the interval is halved."""
    told: bool = False
    """Whether directions keep to ``Refused.direction``."""
    dense: bool = False
    """Whether each direction changes every feature."""

    def __call__(self, refused: Refused, rng: np.random.Generator) -> Proposals:
        """Draws directions and scales the best; section 3.2, algorithm 1.

        Raises:
            ValueError: The system is told the rules, and there are none.
        """
        sign = self._signs(refused)
        best, rank = None, (-1, np.inf)
        scalars = _scalars(self.coarse)
        for _ in range(self.translations):
            direction = _drawn(refused.feature, sign, None if self.dense else self.features, rng)
            if direction is None:
                break
            reached, cost = _served(refused, direction, scalars)
            # most applicants first, then the least mean cost
            if (reached, -cost) > (rank[0], -rank[1]):
                best, rank = direction, (reached, cost)
        if best is None or not rank[0]:
            none = np.full(len(refused.values), -1, np.int32)
            return proposals(refused, refused.values, none, 0)
        scalar = _smallest(refused, best, _scalars(self.fine))
        served = np.isfinite(scalar)
        point = moved(refused, refused.values, np.where(served, scalar, 0.0)[:, None] * best)
        return proposals(refused, point, np.where(served, 0, -1).astype(np.int32), 1, (_words(best),))

    def _signs(self, refused: Refused) -> Ints:
        """``(p,)`` how each column may change, as far as the system is told."""
        if not self.told:
            return np.zeros(len(refused.feature), np.int32)
        if refused.direction is None:
            raise ValueError("GLOBE-CE is to keep to the rules and was given none: set the direction of each column")
        return refused.direction


def _scalars(count: int) -> Floats:
    """Scalars above 0, closer together where they are small: a short way is cheap."""
    return FARTHEST * (np.arange(1, count + 1) / count) ** 2


def _drawn(feature: Ints, sign: Ints, most: int | None, rng: np.random.Generator) -> Floats | None:
    """A direction ``(p,)`` of at most ``most`` features, or of all, its largest entry 1; None if none may change."""
    features = np.unique(feature[sign != IMMUTABLE])
    if not len(features):
        return None
    direction = np.zeros(len(feature))
    count = len(features) if most is None else rng.integers(1, min(most, len(features)) + 1)
    for number in rng.choice(features, count, replace=False):
        columns = np.flatnonzero(feature == number)
        if len(columns) > 1:
            direction[rng.choice(columns)] = 1.0
        else:
            entry = rng.uniform(-1, 1)
            direction[columns] = np.abs(entry) * sign[columns] if sign[columns[0]] else entry
    scaled: Floats = direction / np.abs(direction).max()
    return scaled


def moved(refused: Refused, values: Floats, step: Floats) -> Floats:
    """Rows ``(r, p)`` after steps ``(r, p)``: numbers cut to [0, 1], one-hot sets at their largest value."""
    point = np.clip(values + step, 0.0, 1.0)
    for columns in refused.sets:
        raw = (values + step)[:, columns]
        unchanged = raw.max(axis=1, keepdims=True) == raw
        # a tie leaves the category as it was
        place = np.where(unchanged & (values[:, columns] > 0), 2, unchanged).argmax(axis=1)
        point[:, columns] = np.eye(len(columns))[place]
    return point


def _along(refused: Refused, direction: Floats, scalars: Floats) -> tuple[Floats, Bools]:
    """Points ``(s, f, p)`` of everybody along a direction, and whether the model accepts each ``(s, f)``."""
    people = len(refused.values)
    steps = np.repeat(scalars, people)[:, None] * direction
    point = moved(refused, np.tile(refused.values, (len(scalars), 1)), steps)
    shape = len(scalars), people
    return point.reshape(*shape, -1), refused.accepted(point).reshape(shape)


def _served(refused: Refused, direction: Floats, scalars: Floats) -> tuple[int, float]:
    """Applicants whom some scalar serves, and the mean cost of the smallest one that does."""
    point, accepted = _along(refused, direction, scalars)
    served = accepted.any(axis=0)
    first = point[accepted.argmax(axis=0), np.arange(len(refused.values))]
    length = np.sqrt(((first - refused.values) ** 2).sum(axis=1))
    return int(served.sum()), float(length[served].mean()) if served.any() else np.inf


def _smallest(refused: Refused, direction: Floats, scalars: Floats) -> Floats:
    """``(f,)`` smallest scalar of the grid that serves, halved thirty times towards the one before; inf for none."""
    _, accepted = _along(refused, direction, scalars)
    served = accepted.any(axis=0)
    place = accepted.argmax(axis=0)
    high = scalars[place]
    low = np.where(place > 0, scalars[place - 1], 0.0)
    for _ in range(30):
        middle = (low + high) / 2
        enough = refused.accepted(moved(refused, refused.values, middle[:, None] * direction))
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.where(served, high, np.inf)


def _words(direction: Floats) -> str:
    """The columns that change, and their entries."""
    return ", ".join(f"{column}: {direction[column]:+.3f}" for column in np.flatnonzero(direction).tolist())
