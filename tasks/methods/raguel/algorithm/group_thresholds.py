"""Thresholds by group on the scores of a given model (Hardt et al. 2016), by fairlearn, as a baseline.

Nothing is trained. The thresholds of demographic parity, and of equalised odds, are chosen on the rows that they decide
on. Some decisions are random, and the decision maker has to know the group of everybody.
"""

from typing import Any, Literal, Self

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

from tasks.numerics.arrays import Bools, Floats, Ints

Constraint = Literal["demographic_parity", "equalized_odds"]


class Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model that was asked before: its one input is its score."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, *_: Any) -> Self:
        """Nothing is learnt."""
        return self

    def predict_proba(self, scores: Floats) -> Floats:
        """Probabilities ``(r, 2)`` of the labels 0 and 1, of scores ``(r, 1)``."""
        favourable = np.asarray(scores, np.float64)[:, 0]
        return np.column_stack([1 - favourable, favourable])


def one_sided(label: Bools, group: Ints) -> bool:
    """Whether some group has outcomes of one kind only: then there are no such thresholds."""
    return any(len(np.unique(label[group == g])) < 2 for g in np.unique(group))


def decided(scores: Floats, label: Bools, group: Ints, constraint: Constraint, seed: int) -> Bools:
    """Decisions of the thresholds that follow the outcomes best under a constraint.

    Args:
        scores: ``(r,)`` probabilities of the favourable decision.
        label: ``(r,)`` whether the outcome is favourable; both kinds in each group.
        group: ``(r,)``.
        constraint: What the groups are to have in common.
        seed: Of the decisions that are drawn.
    """
    model = ThresholdOptimizer(estimator=Scores(), constraints=constraint, prefit=True, predict_method="predict_proba")
    model.fit(scores[:, None], label.astype(np.int64), sensitive_features=group)
    found = model.predict(scores[:, None], sensitive_features=group, random_state=seed)
    return np.asarray(found) > 0
