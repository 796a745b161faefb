"""Encodes mediators of mixed types as numbers for networks, and decodes them.

Numbers and ordered categories come first, on a scale of 1. Each of the other mediators follows as a head: one input per
category.
"""

from dataclasses import dataclass

import numpy as np

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional.moments import Moments, fit_moments, inputs_of, own
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.mediation import Mediation, require_seen


@dataclass(frozen=True)
class Encoded:
    """``n`` applicants as networks see them."""

    covariates: Floats
    """``(n, c)`` standardised, categories one input each."""
    category: Longs
    """``(n,)``."""
    mediators: Floats
    """``(n, d)`` numbers on a scale of 1, then a head for each mediator with categories."""


@dataclass(frozen=True)
class Encoder:
    """Scales fitted to training rows."""

    template: Mediation
    """The training rows, without any."""
    covariate_mean: Floats
    covariate_scale: Floats
    moments: Moments | None
    """Mean and spread among people alike, by which numeric mediators are standardised; plain ones if None."""
    location: Floats
    """``(q,)`` mean of the numeric mediators, or of what their moments leave."""
    scale: Floats
    """``(q,)`` standard deviation of the same."""

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """First and behind-last input of each mediator with categories."""
        sizes = [len(names) for names in self._labels()]
        ends = len(self.scale) + np.cumsum(sizes, dtype=np.int64)
        return tuple((int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True))

    @property
    def width(self) -> int:
        """Inputs ``d`` of all mediators."""
        return len(self.scale) + sum(len(names) for names in self._labels())

    def encode(self, rows: Mediation) -> Encoded:
        """Lay rows out.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        require_seen(rows, self.template)
        covariates = (inputs_of(rows.covariates) - self.covariate_mean) / self.covariate_scale
        location, scale = self._location_scale(rows)
        values = rows.mediators.values[:, rows.numeric]
        numbers = (values - own(location, rows.category)) / own(scale, rows.category)
        codes = rows.mediators.values[:, ~rows.numeric].T
        hot = [code[:, None] == np.arange(len(names)) for names, code in zip(self._labels(), codes, strict=True)]
        return Encoded(covariates, rows.category, np.hstack([numbers, *hot]))

    def decode(self, generated: Floats, rows: Mediation) -> Floats:
        """Mediators in the user's units, what was observed in the place of each row's own category.

        Args:
            generated: ``(s, k, d, n)`` what networks made of the rows.
            rows: The rows.

        Returns:
            ``(s, k, n, p)`` laid out as ``Columns.values``.
        """
        values = np.empty((*generated.shape[:2], len(rows), len(rows.numeric)))
        numbers = np.moveaxis(generated[:, :, : len(self.scale)], 2, 3)
        location, scale = self._location_scale(rows)
        values[..., rows.numeric] = location + scale * numbers
        for at in np.flatnonzero(rows.numeric):
            if rows.mediators.kinds[at] is Kind.ORDINAL:
                values[..., at] = np.clip(np.round(values[..., at]), 0, len(rows.mediators.categories[at]) - 1)
        for at, (first, end) in zip(np.flatnonzero(~rows.numeric), self.heads, strict=True):
            values[..., at] = generated[:, :, first:end].argmax(axis=2)
        values[:, rows.category, np.arange(len(rows))] = rows.mediators.values
        return values

    def _location_scale(self, rows: Mediation) -> tuple[Floats, Floats]:
        """``(k, n, q)`` each: what is taken off numeric mediators, and what the rest is divided by."""
        if self.moments is None:
            shape = (len(rows.categories), len(rows), len(self.location))
            return np.broadcast_to(self.location, shape), np.broadcast_to(self.scale, shape)
        mean, spread = self.moments.potential(rows.covariates)
        return mean + spread * self.location, spread * self.scale

    def _labels(self) -> list[tuple[str, ...]]:
        """The categories of the mediators that are no numbers."""
        columns = zip(self.template.mediators.categories, self.template.numeric, strict=True)
        return [names for names, numeric in columns if not numeric]


def fit_encoder(rows: Mediation, among_alike: bool, seed: int) -> Encoder:
    """The scales of training rows.

    Args:
        rows: Training rows.
        among_alike: Whether numeric mediators are standardised among people alike, and not among all.
        seed: Of the regressions.
    """
    inputs, numbers = inputs_of(rows.covariates), rows.mediators.values[:, rows.numeric]
    moments = fit_moments(rows, seed) if among_alike and rows.numeric.any() else None
    if moments is not None:
        mean, spread = moments.potential(rows.covariates)
        numbers = (numbers - own(mean, rows.category)) / own(spread, rows.category)
    return Encoder(
        rows.template, inputs.mean(axis=0), _above_zero(inputs.std(axis=0)), moments, numbers.mean(axis=0),
        _above_zero(numbers.std(axis=0)),
    )  # fmt: skip


def _above_zero(deviation: Floats) -> Floats:
    """What is constant is only centred."""
    return np.where(deviation > 0, deviation, 1.0)
