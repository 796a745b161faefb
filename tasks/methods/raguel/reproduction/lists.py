"""Ranks people by the cost of reaching the boundary of a logistic regression.

The classifier is fitted to all rows, on standardised attributes, which are the units of costs as well. The paper says
of neither how it was done.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from tasks.counterfactuals.algorithm.recourse import targets
from tasks.counterfactuals.algorithm.recourse.actions import Actions, make_actions
from tasks.counterfactuals.algorithm.recourse.targets import Boundary
from tasks.methods.raguel.algorithm.ranking.records import Records, make_records
from tasks.methods.raguel.algorithm.ranking.representation import Representation, representation
from tasks.methods.raguel.reproduction.people import People
from tasks.numerics.arrays import Bools, Floats, Longs

UNFAVOURABLE, ALL, BOUNDED = "unfavourable", "all", "unfavourable, within bounds"
LISTS: Final = (UNFAVOURABLE, ALL, BOUNDED)
"""Who is listed: those whom the classifier refuses (the default), everybody, and those refused once more where
attributes may move only the way the spec allows and not beyond anybody's. In the first two, as in the paper's Equation
2, what may be changed at all may go either way and any distance: without that, nobody who is accepted has a cost."""


@dataclass(frozen=True)
class Judged:
    """People before a classifier."""

    people: People
    values: Floats
    """``(n, d)`` standardised."""
    scale: Floats
    """``(d,)`` standard deviations."""
    model: LogisticRegression
    """Fitted to ``values`` and the labels."""

    @property
    def boundary(self) -> Boundary:
        """Where its decision turns."""
        return Boundary(self.model.coef_[0].astype(np.float64), float(self.model.intercept_[0]))

    @property
    def favourable(self) -> Bools:
        """``(n,)`` its decisions."""
        accepted: Bools = self.model.decision_function(self.values) >= 0
        return accepted


@dataclass(frozen=True)
class Ranked:
    """A list, ready to be re-ranked."""

    records: Records
    rows: Longs
    """``(r,)`` the person that each record is."""
    refused: int
    """People of the list whom no permitted change leads to the boundary; they are left out."""
    reference: int

    def held(self, tolerance: float) -> Representation:
        """Returns the required representation: shares of the list itself."""
        return representation(self.records.group, 2, self.reference, tolerance)


def judge(people: People) -> Judged:
    """Fits the classifier."""
    scale = people.values.std(axis=0)
    values = (people.values - people.values.mean(axis=0)) / scale
    model = LogisticRegression(max_iter=1000).fit(values, people.favourable)
    return Judged(people, values, scale, model)


def actions(judged: Judged, *, bounded: bool) -> Actions:
    """Returns the permitted changes, in standard deviations."""
    people = judged.people
    weight, changeable, step = people.weight, people.changeable, people.step / judged.scale
    if not bounded:
        return make_actions(weight, changeable, step)
    low, high = ((each - people.values.mean(axis=0)) / judged.scale for each in (people.lower, people.upper))
    return make_actions(weight, changeable, step, people.direction, low, high)


def ranked(judged: Judged, who: str, refused: Bools | None = None) -> Ranked:
    """Ranks a list of people.

    Args:
        judged: Everybody.
        who: One of ``LISTS``.
        refused: ``(n,)`` whom another classifier refuses; the costs are those of this one all the same.
    """
    unfavourable = ~judged.favourable if refused is None else refused
    rows = np.flatnonzero(unfavourable | (who == ALL))
    allowed = actions(judged, bounded=who == BOUNDED)
    values = judged.values[rows]
    found = targets.to_boundary(values, judged.boundary, allowed)
    kept = np.flatnonzero(found.reached)
    reached = targets.Targets(found.point[kept], found.cost[kept], found.rate[kept])
    group = judged.people.group[rows[kept]]
    records = make_records(values[kept], reached, group, allowed, judged.boundary)
    return Ranked(records, rows[kept], len(rows) - len(kept), judged.people.reference)
