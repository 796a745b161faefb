"""Couplings of discrete values: which noise a value keeps, so that its counterfactual is well defined.

A discrete value is compatible with many values of noise, and a coupling selects one. The quantile coupling preserves
the order of categories or counts; Gumbel-max coupling needs no order. Both draw the noise from its distribution given
the observation, so that noise and causes together reproduce the fitted distribution.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from tasks.numerics.arrays import Bools, Floats

_INSIDE = 1e-6
"""How far, as a share of a step, a drawn quantile keeps from its ends: rounding must not take it to the next value."""


def quantile_score(lower: tuple[Floats, Floats], upper: tuple[Floats, Floats], uniforms: Floats) -> Floats:
    """Noise of observed values under the quantile coupling, as standard normal scores.

    The score lies between those at which the distribution function steps up to the value and away from it. If the
    distribution is the right one, it is standard normal whatever the causes (a randomised quantile residual, Dunn and
    Smyth 1996). Both tails are used, for a score far out to keep its digits.

    Args:
        lower: ``P(X < x)`` and ``P(X <= x)``, ``(r,)`` each.
        upper: ``P(X > x)`` and ``P(X >= x)``, ``(r,)`` each.
        uniforms: ``(r,)`` where in between, in [0, 1).

    Returns:
        ``(r,)`` scores, higher for higher values; not finite where the value has no probability.
    """
    share = _INSIDE + (1 - 2 * _INSIDE) * uniforms
    below = lower[0] + share * (lower[1] - lower[0])
    above = upper[0] + (1 - share) * (upper[1] - upper[0])
    with np.errstate(divide="ignore"):
        scores = np.where(below < above, ndtri(below), -ndtri(above))
    return np.where((lower[1] > lower[0]) | (upper[1] > upper[0]), scores, np.nan)


def passed(scores: Floats, at_most: Floats, more: Floats) -> Bools:
    """Whether scores lie beyond values whose ``P(X <= x)`` and ``P(X > x)`` are given; arrays broadcast."""
    return np.asarray(np.where(scores < 0, at_most <= ndtr(scores), more >= ndtr(-scores)))


def gumbel_noise(probabilities: Floats, observed: Floats, uniforms: Floats) -> Floats:
    """Noise of observed categories under Gumbel-max coupling (Oberst and Sontag 2019, section 3.2 and appendix).

    A category is the one whose log probability plus standard Gumbel noise is largest. Given which one that was, the
    largest sum is a Gumbel variable free of the causes, and the others are Gumbel variables cut off there. With ``e_j``
    exponential and ``k`` observed, that is ``-log(p_k e_k)`` for ``k`` and ``-log(p_j e_k + e_j)`` for the others.

    Args:
        probabilities: ``(r, c)`` fitted probability of every category.
        observed: ``(r,)`` number of the observed one.
        uniforms: ``(r, c)`` in [0, 1).

    Returns:
        ``(r, c)`` noise; not finite where the observed category has no probability.
    """
    exponential = -np.log1p(-uniforms)
    own = np.arange(probabilities.shape[1]) == observed[:, None]
    largest = exponential[own][:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(probabilities * largest + np.where(own, 0.0, exponential)))


def gumbel_argmax(probabilities: Floats, noise: Floats) -> Floats:
    """Number of the category ``(r,)`` that the noise ``(r, c)`` leads to under other probabilities ``(r, c)``."""
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(probabilities) + noise).argmax(axis=1), dtype=np.float64)
