"""Cumulative logit: ordered categories with proportional odds (McCullagh 1980, 'Regression Models for Ordinal Data').

With one slope for all categories, a change of causes shifts the whole distribution, as the quantile coupling of an
ordered column requires, and a column of many bands needs few parameters. scikit-learn has no such model, and that of
statsmodels takes minutes over 40,000 rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from tasks.counterfactuals.algorithm.scm.mechanisms.cumulative_newton import newton
from tasks.numerics.arrays import Floats, Longs


@dataclass(frozen=True)
class CumulativeLogit:
    """The model with its parameters."""

    classes_: Longs
    """``(c,)`` the categories that the fit has met, ascending."""
    slopes: Floats
    """``(q,)`` of the scaled causes; a positive one moves towards higher categories."""
    cuts: Floats
    """``(c - 1,)`` ascending, where one category gives way to the next."""
    centre: Floats
    scale: Floats

    def predict_proba(self, causes: Floats) -> Floats:
        """``(r, c)`` probability of every category met."""
        below = expit(self.cuts - (_scaled(causes, self.centre, self.scale) @ self.slopes)[:, None])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)


def refit_cumulative(whole: CumulativeLogit, causes: Floats, codes: Floats) -> CumulativeLogit:
    """The same model of other rows, such as a resample: from where the fit to the whole ended.

    Args:
        whole: The fit to all rows.
        causes: ``(n, q)``.
        codes: ``(n,)`` numbers of categories. Where they are not those of the whole, it is fitted from the start.
    """
    classes, place = np.unique(codes.astype(np.int64), return_inverse=True)
    centre, scale = _scaling(causes)
    if np.array_equal(classes, whole.classes_):
        slopes = whole.slopes * scale / whole.scale
        cuts = whole.cuts - ((centre - whole.centre) / whole.scale) @ whole.slopes
        found = newton(_scaled(causes, centre, scale), place, slopes, cuts)
        if found is not None:
            return CumulativeLogit(classes, *found, centre, scale)
    return fit_cumulative(causes, codes)


def fit_cumulative(causes: Floats, codes: Floats) -> CumulativeLogit:
    """Fit by maximum likelihood, with a slight penalty (half the squared slopes) that keeps separable data finite.

    Args:
        causes: ``(n, q)``, scaled here to mean 0 and standard deviation 1.
        codes: ``(n,)`` numbers of categories; two at least occur.
    """
    classes, place = np.unique(codes.astype(np.int64), return_inverse=True)
    centre, scale = _scaling(causes)
    x = _scaled(causes, centre, scale)
    shares = np.cumsum(np.bincount(place))[:-1] / len(place)
    first = np.log(shares / (1 - shares))
    start = np.concatenate([np.zeros(x.shape[1]), first[:1], np.log(np.diff(first))])
    found = minimize(_loss, start, (x, place, len(classes)), method="L-BFGS-B", jac=True, options=_ENOUGH)
    slopes, cuts = found.x[: x.shape[1]], _cuts(found.x[x.shape[1] :])
    return CumulativeLogit(classes, slopes, cuts, centre, scale)


_ENOUGH = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-11, "gtol": 1e-6}


def _scaling(causes: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each cause; 1 for one that does not vary."""
    spread = causes.std(axis=0)
    return causes.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _scaled(causes: Floats, centre: Floats, scale: Floats) -> Floats:
    return (causes - centre) / scale


def _cuts(free: Floats) -> Floats:
    """Ascending cuts from numbers that may be anything: the first, then logarithms of the steps."""
    return np.cumsum(np.concatenate([free[:1], np.exp(free[1:])]))


def _loss(parameters: Floats, x: Floats, place: Longs, categories: int) -> tuple[float, Floats]:
    """Penalised negative log likelihood per row, and its gradient.

    Log probability of a category between the cuts ``a`` (above) and ``b`` (below), both less the linear term, is
    ``log F(a) + log F(-b) + log(1 - exp(b - a))`` for the logistic ``F``: no difference of nearly equal numbers.
    """
    q, n = x.shape[1], len(x)
    slopes, free = parameters[:q], parameters[q:]
    ends = np.concatenate([[-np.inf], _cuts(free), [np.inf]])
    linear = x @ slopes
    above, below = ends[place + 1] - linear, ends[place] - linear
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isfinite(above) & np.isfinite(below), above - below, np.inf)
    shrink = 1 / np.expm1(gap)
    loss = -(log_expit(above) + log_expit(-below) + np.log(-np.expm1(-gap))).sum() + slopes @ slopes / 2
    of_above, of_below = expit(-above) + shrink, -expit(below) - shrink
    of_slopes = x.T @ (of_above + of_below) + slopes
    of_ends = -np.bincount(place + 1, of_above, categories + 1) - np.bincount(place, of_below, categories + 1)
    # a step moves its own cut and all that follow
    following = np.cumsum(of_ends[1:-1][::-1])[::-1]
    of_free = following * np.concatenate([[1.0], np.exp(free[1:])])
    return float(loss) / n, np.concatenate([of_slopes, of_free]) / n
