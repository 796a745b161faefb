"""The counterfactual of a scalar continuous mediator by quantiles (Ma et al., Lemma 1; Nasr-Esfahany et al. 2023).

In category a', a mediator keeps its rank among those with the same covariates: F^-1(F(m | x, a) | x, a'). That is exact
where the mediator increases with its noise in every category. Lemma 1 allows one other solution, with reversed ranks:
F^-1(1 - F(m | x, a) | x, a').

The conditional distribution has a location and a spread, both regressed on covariates and category, and one shape of
the residuals per category. If the shape depends on the covariates, ``ranks`` are not uniform among similar applicants.
Each mediator is mapped separately.
"""

from dataclasses import dataclass

import numpy as np

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional.moments import Moments, fit_moments, own
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.mediation import Mediation, require_seen, require_trainable

FEWEST_ROWS = 20
"""Of a category: fewer ranks than this are no distribution."""


@dataclass(frozen=True)
class Shape:
    """The distribution of one standardised mediator within a category, as points of a strictly increasing curve."""

    values: Floats
    """``(u,)`` ascending, no two alike."""
    ranks: Floats
    """``(u,)`` in (0, 1): mean place of each value among the rows."""

    def rank(self, values: Floats) -> Floats:
        """Rank of values ``(n,)``, in (0, 1)."""
        return np.interp(values, self.values, self.ranks)

    def beyond(self, values: Floats) -> Floats:
        """How far values ``(n,)`` lie outside of all that the shape was made of."""
        return values - np.clip(values, self.values[0], self.values[-1])

    def at(self, ranks: Floats) -> Floats:
        """The values at ranks ``(n,)``; the first or last one beyond these."""
        return np.interp(ranks, self.ranks, self.values)


@dataclass(frozen=True)
class QuantileMap:
    """Conditional distributions of ``p`` mediators."""

    template: Mediation
    """The training rows, without any."""
    moments: Moments
    shapes: tuple[tuple[Shape, ...], ...]
    """By category and mediator."""

    def imagine(self, rows: Mediation, flipped: bool = False) -> Floats:
        """Mediators ``(1, k, n, p)`` in the user's units, what was observed in a row's own category.

        Args:
            rows: Applicants.
            flipped: Whether ranks are turned round: the other solution of Lemma 1.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        require_seen(rows, self.template)
        location, spread = self.moments.potential(rows.covariates)
        values = _standardised(self.moments, rows)
        mapped = np.stack([self._mapped(values, rows.category, to, flipped) for to in range(len(rows.categories))])
        imagined = location + spread * mapped
        imagined[rows.category, np.arange(len(rows))] = rows.mediators.values
        return imagined[None]

    def ranks(self, rows: Mediation) -> Floats:
        """F(m | x, a) of every mediator, ``(n, p)`` in (0, 1): uniform, given covariates and category, if it fits."""
        values, found = _standardised(self.moments, rows), np.empty(rows.mediators.values.shape)
        for number, shapes in enumerate(self.shapes):
            of = rows.category == number
            found[of] = np.column_stack([shape.rank(values[of, at]) for at, shape in enumerate(shapes)])
        return found

    def _mapped(self, values: Floats, category: Longs, to: int, flipped: bool) -> Floats:
        """Standardised mediators ``(n, p)`` of another category at the same ranks, or at those turned round."""
        found = np.empty_like(values)
        for number, shapes in enumerate(self.shapes):
            of = category == number
            for at, (here, there) in enumerate(zip(shapes, self.shapes[to], strict=True)):
                rank, beyond = here.rank(values[of, at]), here.beyond(values[of, at])
                found[of, at] = there.at(1 - rank) - beyond if flipped else there.at(rank) + beyond
        return found


def fit_quantiles(rows: Mediation, seed: int) -> QuantileMap:
    """Fit the conditional distribution of every mediator.

    Args:
        rows: Training rows.
        seed: Of the regressions.

    Raises:
        DataQualityError: If a mediator is not continuous, or ``mediation.require_trainable`` refuses the rows.
    """
    _require_continuous(rows.mediators)
    require_trainable(rows, FEWEST_ROWS)
    moments = fit_moments(rows, seed)
    values = _standardised(moments, rows)
    by_category = (values[rows.category == number] for number in range(len(rows.categories)))
    shapes = tuple(tuple(_shape(column) for column in own.T) for own in by_category)
    return QuantileMap(rows.template, moments, shapes)


def _standardised(moments: Moments, rows: Mediation) -> Floats:
    """Mediators ``(n, p)`` less their mean among people alike, over the spread there."""
    location, spread = moments.potential(rows.covariates)
    return (rows.mediators.values - own(location, rows.category)) / own(spread, rows.category)


def _shape(values: Floats) -> Shape:
    """Distinct values and their mean ranks."""
    distinct, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts) - counts
    return Shape(distinct, (below + counts / 2) / len(values))


def _require_continuous(mediators: Columns) -> None:
    known: Bools = np.array([kind is Kind.CONTINUOUS for kind in mediators.kinds], dtype=np.bool_)
    others = [name for name, continuous in zip(mediators.names, known, strict=True) if not continuous]
    if others:
        raise DataQualityError(
            f"the quantile map needs continuous mediators, and {', '.join(map(repr, others))} is none; "
            "map the continuous ones alone, or use the adversarial generators"
        )
