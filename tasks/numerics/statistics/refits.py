"""A penalised logit fitted again on resamples of rows, all of them at once.

Newton's method with the information of the fit to all rows in place of each resample's own: a step is then two products
of matrices for all resamples together. It converges where each resample's information is less than twice that of all
rows, as it is but for rare categories; resamples that do not come to rest are finished by Newton's method proper.

Scope: resamples, coefficients and cuts. What a model is fitted to: ``tasks.scoring.refitting``.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.logit import fit_logit

Counts = NDArray[np.uint8]
"""How often rows are drawn: of one of n rows, more than 255 times of n has a chance below 1e-300."""

CLOSE = 1e-5
"""A resample rests when no coefficient moves by more: a hundredth of a percent of what sampling moves it by."""
STEPS = 40
CELLS = 4_000_000
"""Rows times resamples that are worked on at once."""


def resampled(part: Longs, draws: int, rng: np.random.Generator) -> Counts:
    """``(n, draws)`` how often each row is drawn, with replacement and as many of each part as there are.

    Args:
        part: ``(n,)`` number of the part of the rows that each is drawn from, such as the rows of a fit and the others.
        draws: Resamples.
        rng: Draws rows.
    """
    found = np.zeros((len(part), draws), np.uint8)
    for number in np.unique(part):
        rows = np.flatnonzero(part == number)
        for draw in range(draws):
            found[rows, draw] = np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows))
    return found


def blocks(rows: int, draws: int) -> Iterator[slice]:
    """Resamples that are worked on at once."""
    width = max(1, CELLS // max(rows, 1))
    yield from (slice(first, min(first + width, draws)) for first in range(0, draws, width))


def refitted(x: Floats, y: Bools, counts: Counts, ridge: float) -> Floats:
    """Coefficients of a logit on each resample, ``(d, draws)``.

    Args:
        x: ``(n, d)``, intercept first.
        y: ``(n,)``.
        counts: ``(n, draws)`` how often each row counts.
        ridge: Penalty ``ridge / 2`` on the sum of squared coefficients but the intercept's, positive.
    """
    label = y.astype(np.float64)
    whole = fit_logit(x, label, ridge=ridge)
    found = np.tile(whole.coefficients[:, None], (1, counts.shape[1]))
    for block in blocks(len(x), counts.shape[1]):
        found[:, block], rests = _together(x, label, counts[:, block], ridge, whole.inverse, found[:, block])
        for draw in block.start + np.flatnonzero(~rests):
            rows = np.repeat(np.arange(len(x)), counts[:, draw])
            found[:, draw] = fit_logit(x[rows], label[rows], whole.coefficients, ridge).coefficients
    return found


def _together(
    x: Floats, y: Floats, counts: Counts, ridge: float, inverse: Floats, start: Floats
) -> tuple[Floats, Bools]:
    """Some resamples from where they start: coefficients, and which of them have come to rest."""
    b, open_ = start.copy(), np.arange(start.shape[1])
    weight = counts.astype(np.float64)
    penalty = np.full((len(b), 1), ridge)
    penalty[0] = 0.0
    for _ in range(STEPS):
        residual = expit(x @ b[:, open_])
        np.subtract(y[:, None], residual, out=residual)
        residual *= weight
        step = inverse @ (x.T @ residual - penalty * b[:, open_])
        b[:, open_] += step
        moving = ~(np.abs(step).max(axis=0, initial=0.0) <= CLOSE)
        if not moving.any():
            return b, np.ones(b.shape[1], dtype=bool)
        if not moving.all():
            open_, weight = open_[moving], weight[:, moving]
    rests = np.ones(b.shape[1], dtype=bool)
    rests[open_] = False
    return b, rests


def rate_matched(index: Floats, count: Counts, denied: int) -> float:
    """The smallest index that is still approved where ``denied`` rows of a resample are to be denied.

    Args:
        index: ``(n,)`` linear predictor of each row.
        count: ``(n,)`` how often each row counts.
        denied: Rows of the resample that the lender denied.
    """
    spread = np.repeat(index, count)
    at = min(denied, len(spread) - 1)
    return float(np.partition(spread, at)[at])
