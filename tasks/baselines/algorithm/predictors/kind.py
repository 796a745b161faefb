"""Counterfactually fair predictors of other papers: what each is given, and what it gives back.

A system learns from rows of the standard fairness model and their labels. It gives back a predictor, which scores rows.
A row is scored by what can be seen of it. Moved to another category, with the mediators that it would have there, it
should be scored as before.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation


@dataclass(frozen=True)
class FittingSettings:
    """Size of the net and its training; that of GCFN's own predictor (Ma et al., section 5.1) unless said otherwise."""

    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden layers, ReLU between them."""
    epochs: int = 30
    batch: int = 256
    learning_rate: float = 5e-3
    fairness: float | None = None
    """lambda, the weight of the system's penalty; None for its own default. Systems without a penalty ignore it."""
    seed: int = 0


class FairPredictor(Protocol):
    """A trained predictor of the label."""

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        ...


class FairSystem(Protocol):
    """Trains a predictor on rows ``n`` and labels ``(n,)``.

    Raises:
        DataQualityError: The labels are of one kind only, there is nothing to learn from, or the training diverged.
    """

    def __call__(self, rows: Mediation, label: Bools, settings: FittingSettings) -> FairPredictor:
        """The predictor; equal for equal settings."""
        ...


def moved_scores(predictor: FairPredictor, rows: Mediation, imagined: Floats) -> Floats:
    """Scores of rows in their other categories, ascending, ``(s, k - 1, n)``.

    Args:
        predictor: Of the label.
        rows: As they are.
        imagined: ``(s, k, n, p)`` their mediators in every category, by each of ``s`` generators, in the user's units.
    """
    steps, everybody = range(1, len(rows.categories)), np.arange(len(rows))
    found = np.empty((len(imagined), len(steps), len(rows)))
    for at in range(len(steps)):
        category = at + (at >= rows.category)
        for number, network in enumerate(imagined):
            mediators = replace(rows.mediators, values=network[category, everybody])
            found[number, at] = predictor.scores(replace(rows, category=category.astype(np.int64), mediators=mediators))
    return found
