"""Quality of counterfactual mediators: against the truth where it is known, else among each other.

The normalised errors of the paper's Table 3 are no proof: a regression of the mediator on covariates and category
passes them too. The informative number is the slope of the generated on the true mediator about the conditional mean: 1
for the right person, 0 for the mean of similar people, -1 for the other solution of Lemma 1.

Generated mediators are ``(s, k, n, p)``: networks, categories, applicants and mediators.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.mediation import Mediation

WIDE: Final = 0.25
"""Spread, in standard deviations of the mediator, above which a record is flagged as not identified. Our choice."""


@dataclass(frozen=True)
class AgainstTruth:
    """Each network against known counterfactuals, over all categories but a row's own."""

    slope: Floats
    """``(s, p)`` of the generated on the true mediator, both less E[M | x, a']; NaN where the truth does not vary."""
    factual_counterfactual: float
    """Mean of ||M - M_cf||^2: what Table 3 divides by; a normalised error of 1."""
    factual_generated: Floats
    """``(s,)`` mean of ||M - M_gen||^2, normalised."""
    counterfactual_generated: Floats
    """``(s,)`` mean of ||M_cf - M_gen||^2, normalised."""
    counterfactual_mean: float
    """Mean of ||M_cf - E[M | x, a']||^2, normalised: what a regression with endless data would score."""


def against_truth(imagined: Floats, rows: Mediation, potential: Floats, mean: Floats) -> AgainstTruth:
    """Table 3 and the slope.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        potential: ``(k, n, p)`` their true mediators in every category.
        mean: ``(k, n, p)`` the true E[M | x, a].
    """
    other = others(rows.category, len(rows.categories))
    made, true, expected = imagined[:, other], potential[other], mean[other]
    observed = np.broadcast_to(rows.mediators.values, potential.shape)[other]
    apart = _squared(observed - true)
    return AgainstTruth(
        slope=_slope(true - expected, made - expected),
        factual_counterfactual=float(apart),
        factual_generated=_squared(observed - made) / apart,
        counterfactual_generated=_squared(true - made) / apart,
        counterfactual_mean=float(_squared(true - expected) / apart),
    )


def kept(imagined: Floats, rows: Mediation, mean: Floats) -> Floats:
    """``(s, q)`` slope of the generated on the observed numeric mediator, each less its conditional mean.

    Needs no truth. Where noise adds to a mediator alike in all categories the right answer is 1; 0 says that nothing
    of the applicant is left but the mean of people alike.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        mean: ``(k, n, q)`` estimated E[M | x, a] of the numeric mediators.
    """
    other, numeric = others(rows.category, len(rows.categories)), rows.numeric
    own = rows.mediators.values[:, numeric] - mean[rows.category, np.arange(len(rows))]
    return _slope(np.broadcast_to(own, mean.shape)[other], imagined[:, other][..., numeric] - mean[other])


def spread(imagined: Floats, rows: Mediation, deviation: Floats) -> Floats:
    """How far the networks disagree about each applicant, ``(n,)``: the largest over mediators and categories.

    Of a numeric mediator the standard deviation over networks, in units of ``deviation``; of others the share of
    networks that name another category than most. 0 for a single network, which shows nothing.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        deviation: ``(p,)`` standard deviation of the mediators in the data; not read of those with categories.
    """
    numeric = rows.numeric
    scale = np.where(deviation > 0, deviation, 1.0)
    apart = np.where(numeric, imagined.std(axis=0) / scale, 0.0)
    for at in np.flatnonzero(~numeric):
        apart[..., at] = _dissent(imagined[..., at], len(rows.mediators.categories[at]))
    found: Floats = apart.max(axis=(0, 2))
    return found


def others(category: Longs, categories: int) -> Bools:
    """``(k, n)`` every category but each row's own."""
    found: Bools = np.arange(categories)[:, None] != category
    return found


def _dissent(codes: Floats, categories: int) -> Floats:
    """Share of networks off the majority, ``(k, n)``, for codes ``(s, k, n)``."""
    votes = np.stack([(codes == code).mean(axis=0) for code in range(categories)])
    found: Floats = 1.0 - votes.max(axis=0)
    return found


def _squared(apart: Floats) -> Floats:
    """Mean over rows of the squared length of ``(..., n, p)``."""
    found: Floats = np.square(apart).sum(axis=-1).mean(axis=-1)
    return found


def _slope(true: Floats, made: Floats) -> Floats:
    """Least-squares slope ``(s, p)`` of ``(s, n, p)`` on ``(n, p)``."""
    centred = true - true.mean(axis=0)
    variance = np.square(centred).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(variance > 0, (centred * made).sum(axis=1) / variance, np.nan)
    return found
