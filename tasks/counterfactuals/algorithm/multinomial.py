"""Multinomial logit of a column's categories: fitted to all rows, and again to resamples of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.statistics.regression import fit_logit

# --------------------------------------------------------------------------------------------------------------------
# The model, and its fit to all rows by scikit-learn.


@dataclass(frozen=True)
class MultinomialLogit:
    """Probabilities of a fitted logit, without the library's checks of its input: most of a small prediction."""

    classes_: Floats
    """``(c,)`` the categories that the fit has met, ascending."""
    coefficients: Floats
    """``(c, q)`` of the scaled causes; ``(1, q)`` of the second of two categories."""
    intercept: Floats
    """``(c,)`` or ``(1,)``."""
    centre: Floats
    scale: Floats

    def predict_proba(self, causes: Floats) -> Floats:
        """``(r, c)`` probability of every category met."""
        index = (causes - self.centre) / self.scale @ self.coefficients.T + self.intercept
        if len(self.classes_) == 2:
            second = expit(index[:, 0])
            return np.stack([1 - second, second], axis=1)
        odds = np.exp(index - index.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def fit_classifier(causes: Floats, codes: Floats) -> Any:
    """Fit a multinomial logit with the library's slight penalty, which keeps separable data finite.

    Rows that are alike are fitted as one with their number as weight: with categories as causes there are few.
    """
    distinct, weight = distinct_rows(np.column_stack([causes, codes]))
    causes, codes = distinct[:, :-1], distinct[:, -1]
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="prior").fit(causes, codes)
    scaler = StandardScaler().fit(causes, sample_weight=weight)
    logit = LogisticRegression(solver="newton-cholesky", tol=1e-6, max_iter=1000)
    logit.fit((causes - scaler.mean_) / scaler.scale_, codes, sample_weight=weight)
    return MultinomialLogit(logit.classes_, logit.coef_, logit.intercept_, scaler.mean_, scaler.scale_)


LARGEST_KEY = 2**62
"""Keys of rows are smaller."""


def distinct_rows(values: Floats) -> tuple[Floats, Longs]:
    """The distinct rows of ``(n, q)`` values in the order of their columns, and how often each occurs.

    By one number a row, which sorts faster than rows do.
    """
    key = np.zeros(len(values), np.int64)
    highest = 1
    for column in values.T:
        levels, code = 2, column.astype(np.int64)
        if not ((column == 0) | (column == 1)).all():
            ordered, code = np.unique(column, return_inverse=True)
            levels = len(ordered)
        if highest > LARGEST_KEY // levels:
            key = np.unique(key, return_inverse=True)[1]
            highest = int(key.max()) + 1
        key, highest = key * levels + code, highest * levels
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return values[first], counts


# --------------------------------------------------------------------------------------------------------------------
# The model of a resample, from where the fit to all rows ended.
#
# The objective is scikit-learn's: log likelihood less half the squared coefficients, intercepts free. Steps are those
# of Newton's method with the information of an earlier point (the chord method): near the maximum each is a tenth of
# the one before, and costs a pass over rows without the cross products. Where steps are large or do not shrink to a
# quarter, the information is made again. The intercept of the last category stays 0, as only differences count.


CLOSE = 1e-9
"""Steps end when no parameter moves by more."""
LARGE, FAR = 0.1, 3.0
"""Steps after which the information is made again, and beyond which the start was no start."""
STEPS = 60
PENALTY = 1.0
"""Of squared coefficients, times a half: scikit-learn's ``C = 1``."""


def refit_classifier(full_fit: MultinomialLogit, causes: Floats, codes: Floats) -> Any:
    """The same model of other rows, such as a resample.

    Args:
        full_fit: The fit to all rows.
        causes: ``(n, q)``.
        codes: ``(n,)`` numbers of categories; rare ones may be missing. It is fitted from the start where the fit to
            the whole has not met them, or one alone is left.
    """
    classes = np.unique(codes)
    if len(classes) == 1 or not np.isin(classes, full_fit.classes_).all():
        return fit_classifier(causes, codes)
    distinct, weight = distinct_rows(np.column_stack([causes, codes]))
    rows, times = distinct[:, :-1], weight.astype(np.float64)
    centre = times @ rows / times.sum()
    spread = np.sqrt(times @ (rows - centre) ** 2 / times.sum())
    scale = np.where(np.ptp(rows, axis=0) > 0, spread, 1.0)
    x = np.column_stack([np.ones(len(rows)), (rows - centre) / scale])
    start = np.column_stack(
        [
            full_fit.intercept + full_fit.coefficients @ ((centre - full_fit.centre) / full_fit.scale),
            full_fit.coefficients * scale / full_fit.scale,
        ]
    )
    if len(full_fit.classes_) > 2:
        start = start[np.isin(full_fit.classes_, classes)]
    place = np.searchsorted(classes, distinct[:, -1])
    if len(classes) == 2:
        first = start[-1] - start[0] if len(start) == 2 else start[0]
        logit = fit_logit(x, place.astype(np.float64), first, ridge=PENALTY, weight=times)
        b: Floats | None = logit.coefficients[None, :]
    else:
        start[:, 0] -= start[-1, 0]
        b = chord(x, place, times, start)
    if b is None:
        return fit_classifier(causes, codes)
    return MultinomialLogit(classes, b[:, 1:], b[:, 0], centre, scale)


def chord(x: Floats, place: Longs, weight: Floats, start: Floats) -> Floats | None:
    """Coefficients ``(c, q)`` of the largest penalised likelihood of three categories or more; None if not reached.

    Args:
        x: ``(n, q)`` scaled causes, 1 first.
        place: ``(n,)`` number of each row's category.
        weight: ``(n,)`` rows that each is.
        start: ``(c, q)`` near the maximum; the last intercept is 0.
    """
    b, factor, last = start.copy(), None, np.inf
    free = np.arange(b.size) != b.size - b.shape[1]
    penalty = np.full(b.shape, PENALTY)
    penalty[:, 0] = 0.0
    chosen = place[:, None] == np.arange(len(b))
    for _ in range(STEPS):
        index = x @ b.T
        odds = np.exp(index - index.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        gradient = ((chosen - p) * weight[:, None]).T @ x - penalty * b
        if factor is None:
            curvature = information(x, p, weight) + np.diag(penalty.ravel())
            try:
                factor = cho_factor(curvature[np.ix_(free, free)], check_finite=False)
            except np.linalg.LinAlgError:
                return None
        step = np.zeros(b.size)
        step[free] = cho_solve(factor, gradient.ravel()[free], check_finite=False)
        size = float(np.abs(step).max())
        if not size <= FAR:
            return None
        b += step.reshape(b.shape)
        if size <= CLOSE:
            return b
        if size > min(last / 4, LARGE):
            factor = None
        last = size
    return None


def information(x: Floats, p: Floats, weight: Floats) -> Floats:
    """Minus the second derivatives of the log likelihood by all coefficients, ``(c q, c q)``, category by category."""
    c, q = p.shape[1], x.shape[1]
    blocks = np.empty((c, q, c, q))
    for k in range(c):
        for other in range(k + 1):
            slope = weight * p[:, k] * ((k == other) - p[:, other])
            block = (x * slope[:, None]).T @ x
            blocks[k, :, other], blocks[other, :, k] = block, block.T
    return blocks.reshape(c * q, c * q)
