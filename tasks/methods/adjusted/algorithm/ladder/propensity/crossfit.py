"""Cross-fitting: each row's probability by a logit fitted without the row's fold, for many splits at once.

All folds of all splits start from the fit of all rows and share its curvature, so that a step of a hundred fits is two
matrix products. Folds that do not converge so are fitted alone. Fits have a small ridge penalty: a part of the rows may
lack a category's only denial.
"""

import numpy as np
from scipy.special import expit

from tasks.methods.adjusted.algorithm.ladder.propensity.score import RIDGE
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.statistics.logit import fit_logit

STEPS = 30
SMALL = 1e-5
"""Largest step of a coefficient at which a fit has converged."""
CELLS = 2**22
"""Rows times fits held at a time."""


def draw_folds(strata: Ints, folds: int, splits: int, rng: np.random.Generator) -> Ints:
    """``(splits, m)`` fold of each row, equally many of each stratum ``(m,)`` in every fold."""
    found = np.empty((splits, len(strata)), np.int32)
    places = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    for split in range(splits):
        for rows in places:
            found[split, rows] = rng.permutation(np.arange(len(rows)) % folds)
    return found


def draw_folds_of_clusters(strata: Ints, cluster: Ints, folds: int, splits: int, rng: np.random.Generator) -> Ints:
    """``(splits, m)`` fold of each row, that of its whole cluster, so that no fit sees dependents of its held-out rows.

    A cluster is dealt with those of the rarest stratum that it has rows of, which spreads each stratum over folds.

    Args:
        strata: ``(m,)``.
        cluster: ``(m,)`` from 0 without gaps.
        folds: Parts of a split.
        splits: Random splits.
        rng: Draws them.
    """
    pairs = np.unique(np.stack([strata, cluster]), axis=1)
    clusters = np.bincount(pairs[0])
    order = np.argsort(-clusters[pairs[0]], kind="stable")
    rarest = np.zeros(int(cluster.max()) + 1, np.int32)
    rarest[pairs[1][order]] = pairs[0][order]  # the last one written to a cluster is its rarest
    return draw_folds(rarest, folds, splits, rng)[:, cluster]


def fit_without_folds(x: Floats, y: Floats, fold: Ints, folds: int, start: Floats | None = None) -> Floats:
    """Coefficients of a ridge logit without each fold of each split.

    Args:
        x: ``(m, q)`` design of full rank, intercept first.
        y: ``(m,)`` 0 or 1.
        fold: ``(splits, m)`` fold of each row, from 0.
        folds: Number of folds.
        start: ``(q,)`` coefficients near those of all rows, if there are any.

    Returns:
        ``(splits, q, folds)``.
    """
    whole = fit_logit(x, y, start, ridge=RIDGE)
    at_once = max(1, CELLS // (len(x) * folds))
    found = []
    for first in range(0, len(fold), at_once):
        part = fold[first : first + at_once]
        kept = (part[:, None, :] != np.arange(folds, dtype=np.int32)[None, :, None]).reshape(-1, len(x)).T
        found.append(_fit_many(x, y, kept, whole.coefficients, whole.inverse * folds / (folds - 1)))
    return np.concatenate(found, axis=1).T.reshape(len(fold), folds, -1).transpose(0, 2, 1)


def predict(x: Floats, coefficients: Floats, fold: Ints) -> Floats:
    """``(splits, m)`` probabilities of the rows by the fit without their fold."""
    found = [
        expit(np.take_along_axis(x @ each, of[:, None].astype(np.int64), axis=1)[:, 0])
        for each, of in zip(coefficients, fold, strict=True)
    ]
    return np.stack(found)


def _fit_many(x: Floats, y: Floats, kept: Bools, start: Floats, curvature: Floats) -> Floats:
    """``(q, f)`` ridge logits on the rows ``kept (m, f)``, by steps with the inverse Hessian ``curvature``."""
    b = np.repeat(start[:, None], kept.shape[1], axis=1)
    penalty = np.full((len(b), 1), RIDGE)
    penalty[0] = 0.0
    moving = np.arange(kept.shape[1])
    for _ in range(STEPS):
        residual = np.where(kept[:, moving], y[:, None] - expit(x @ b[:, moving]), 0.0)
        step = curvature @ (x.T @ residual - penalty * b[:, moving])
        b[:, moving] += step
        moving = moving[~(np.abs(step).max(axis=0) <= SMALL)]
        if not len(moving):
            return b
    for each in moving:
        b[:, each] = fit_logit(x[kept[:, each]], y[kept[:, each]], start, ridge=RIDGE).coefficients
    return b
