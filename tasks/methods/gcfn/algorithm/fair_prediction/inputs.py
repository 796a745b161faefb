"""Inputs of a predictor: applicants and their counterfactuals, standardised, one input for each category.

Counterfactual inputs are laid out once, before training. A row's own category is no part of them.
"""

from dataclasses import dataclass, replace

import numpy as np

from tasks.counterfactuals.algorithm.conditional.moments import inputs_of
from tasks.methods.gcfn.algorithm.fair_prediction.settings import Sees
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.mediation import Mediation


@dataclass(frozen=True)
class Applicants:
    """``n`` applicants. Inputs of imagined mediators are float32: there are many."""

    covariates: Floats
    """``(n, c)``."""
    mediators: Floats
    """``(n, d)``, or whatever else a predictor sees besides covariates."""
    imagined: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
    """``(s, k - 1, n, d)`` the same in the other categories, ascending, by each generator."""
    label: Bools
    """``(n,)`` what is predicted."""

    def without_mediators(self) -> "Applicants":
        """The same, of whom covariates alone are seen."""
        return replace(self, mediators=self.mediators[:, :0], imagined=self.imagined[..., :0])

    def by_noise(self, noise: Floats) -> "Applicants":
        """The same, of whom noise ``(n, r)`` is seen in the place of mediators: it is kept in every category."""
        shape = (*self.imagined.shape[:2], *noise.shape)
        return replace(self, mediators=noise, imagined=np.broadcast_to(noise.astype(np.float32), shape))


@dataclass(frozen=True)
class Scales:
    """Means and deviations of training rows."""

    covariates: tuple[Floats, Floats]
    mediators: tuple[Floats, Floats]

    @classmethod
    def of(cls, rows: Mediation) -> "Scales":
        """Fit to training rows; what is constant is only centred."""
        return cls(_moments(inputs_of(rows.covariates)), _moments(inputs_of(rows.mediators)))

    def applicants(self, rows: Mediation, imagined: Floats, label: Bools) -> Applicants:
        """Lay out rows, their mediators ``(s, k, n, p)`` as imagined, and labels ``(n,)``."""
        moved = [
            [self._mediators(rows, values).astype(np.float32) for values in network]
            for network in in_other_categories(imagined, rows.category)
        ]
        mediators = self._mediators(rows, rows.mediators.values)
        shape = (len(imagined), len(rows.categories) - 1, *mediators.shape)
        others = np.array(moved, dtype=np.float32).reshape(shape)
        return Applicants(_scaled(inputs_of(rows.covariates), self.covariates), mediators, others, label)

    def _mediators(self, rows: Mediation, values: Floats) -> Floats:
        return _scaled(inputs_of(replace(rows.mediators, values=values)), self.mediators)


def in_other_categories(imagined: Floats, category: Longs) -> Floats:
    """``(s, k - 1, n, p)`` out of ``(s, k, n, p)``: all categories but each row's own, ascending."""
    steps = np.arange(imagined.shape[1] - 1)[:, None]
    other = steps + (steps >= category)
    return imagined[:, other, np.arange(len(category))]


def seen_by(sees: Sees, applicants: Applicants, noise: Floats | None = None) -> Applicants:
    """What a model of a comparison sees.

    Args:
        sees: Of the variant.
        applicants: With mediators.
        noise: ``(n, r)`` standardised noise behind their mediators, as a causal model abducted it.

    Raises:
        ValueError: If noise is asked for and not given.
    """
    if sees == "noise":
        if noise is None:
            raise ValueError("CFAN needs the noise behind the mediators; give what a causal model abducted")
        return applicants.by_noise(noise)
    return applicants if sees == "mediators" else applicants.without_mediators()


def _moments(values: Floats) -> tuple[Floats, Floats]:
    deviation = values.std(axis=0)
    return values.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _scaled(values: Floats, moments: tuple[Floats, Floats]) -> Floats:
    mean, deviation = moments
    return (values - mean) / deviation
