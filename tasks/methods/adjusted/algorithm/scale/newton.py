"""Logistic regression by Newton's method over batches: one pass a step, from a start on a sample.

Scope: coefficients. Effects and robust errors, one pass more: ``effects``.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit

from tasks.methods.adjusted.algorithm.ladder.linear import CollinearError
from tasks.methods.adjusted.algorithm.scale.batches import Batches, every
from tasks.methods.adjusted.algorithm.scale.gram import inverse
from tasks.numerics.arrays import Floats

MOST_STEPS = 25
HALVINGS = 5
"""How often a step that lowers the likelihood is halved."""
DECREMENT = 1e-14
"""A step that promises to raise the mean log likelihood by no more is the last."""
SAMPLE, LEAST_ROWS = 100, 20
"""Every so many-th row is in the sample of the start, if it then has so many rows for each column."""


@dataclass(frozen=True)
class Pass:
    """What one pass at given coefficients adds up."""

    n: int
    likelihood: float
    """Log likelihood."""
    score: Floats
    """``(p,)`` its gradient."""
    information: Floats
    """``(p, p)`` its negative second derivative."""


@dataclass(frozen=True)
class Newton:
    """Coefficients, and how they were found."""

    coefficients: Floats
    converged: bool
    passes: int
    n: int


def fit_logit(batches: Batches, start: Floats | None = None, sample: int = SAMPLE) -> Newton:
    """Maximise the likelihood of a logit over all rows.

    Args:
        batches: Rows with an outcome of 0 or 1.
        start: ``(p,)`` coefficients to begin at; those of a sample if left out.
        sample: Every so many-th row is in that sample.

    Returns:
        ``converged`` is false where columns separate the outcomes, or 25 steps do not do.
    """
    return _climb(batches, start) if start is not None else _from_sample(batches, sample)


def _from_sample(batches: Batches, sample: int) -> Newton:
    few = every(batches, sample)
    start = np.zeros(few.x.shape[1])
    if sample > 1 and len(few.y) >= LEAST_ROWS * len(start):
        guess = _climb(lambda: iter([few]), start)
        start = guess.coefficients if guess.converged else start
    found = _climb(batches, start)
    return replace(found, passes=found.passes + 1)


def _climb(batches: Batches, start: Floats) -> Newton:
    at, passes, size = start, 1, 1.0
    best = added_up(batches, at)
    step = _step(best)
    for _ in range(MOST_STEPS):
        if step is None:
            return Newton(at, False, passes, best.n)
        if float(best.score @ step) <= DECREMENT * best.n:
            return Newton(at + step, True, passes, best.n)
        now, passes = added_up(batches, at + size * step), passes + 1
        if now.likelihood < best.likelihood and size > 0.5**HALVINGS:
            size /= 2
            continue
        at, best, size = at + size * step, now, 1.0
        step = _step(best)
    return Newton(at, False, passes, best.n)


def _step(at: Pass) -> Floats | None:
    """Newton's step; None where the information has no inverse, as under separation."""
    try:
        found: Floats = inverse(at.information) @ at.score
    except CollinearError:
        return None
    return found


def added_up(batches: Batches, coefficients: Floats) -> Pass:
    """Likelihood, score and information of all rows at given coefficients."""
    p = len(coefficients)
    n, likelihood, score, information = 0, 0.0, np.zeros(p), np.zeros((p, p))
    for batch in batches():
        linear = batch.x @ coefficients
        fitted = expit(linear)
        n += len(linear)
        likelihood += float(log_expit(np.where(batch.y > 0, linear, -linear)).sum())
        score += batch.x.T @ (batch.y - fitted)
        half = batch.x * np.sqrt(fitted * (1 - fitted))[:, None]
        information += half.T @ half
    return Pass(n, likelihood, score, information)
