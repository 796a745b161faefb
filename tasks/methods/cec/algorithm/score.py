"""The CEC score: distance of the directions of two explanations, and the regimes beside the decisions.

Popoola and Sheppard (2026), sections on the CEC metric and on its regimes. An attribution is reduced to its direction,
g = IG / (|IG| + 1e-8), so that only the balance of the reasons counts. The distance of two directions is |g - g~| / 2,
in [0, 1]. Both directions share one baseline (Principle 1).

Scope: arithmetic on pairs of attributions. Choice of pairs: ``pairs``.
"""

import numpy as np

from tasks.numerics.arrays import Floats, Ints, Longs

EPSILON = 1e-8
"""Added to the length of an attribution; one that is no longer has no direction."""

INCOMPLETE = 1e-3
"""Error of completeness, as in ``incompleteness``, that an attribution should not exceed."""

REGIMES = ("A", "B", "C", "D")
"""Same prediction and reasons; same prediction, different reasons (hidden); different prediction; both differ."""

NO_REGIME = -1

DRAWN_AT_ONCE = 16
"""Resamples summed in one product."""


def directions(attributions: Floats) -> Floats:
    """Attributions ``(r, p)`` as directions ``(r, p)``: NaN in rows that have none, their input being the baseline."""
    length = np.linalg.norm(attributions, axis=1, keepdims=True)
    return np.where(length > EPSILON, attributions / (length + EPSILON), np.nan)


def apart(one: Floats, other: Floats) -> Floats:
    """CEC of each pair of directions ``(r, p)``: ``(r,)`` in [0, 1], NaN where one of the two has no direction."""
    scores: Floats = np.minimum(np.linalg.norm(one - other, axis=1) / 2, 1.0)
    return scores


def divergence(one: Floats, other: Floats, feature_of_column: Ints, features: int) -> Floats:
    """Where the directions of each pair part: the sum of |g_j - g~_j| over the columns of each feature.

    Args:
        one: ``(r, p)`` directions.
        other: ``(r, p)`` directions.
        feature_of_column: ``(p,)`` feature of each column.
        features: Number of features ``m``.

    Returns:
        ``(r, m)``, NaN where one of the two has no direction.
    """
    belongs = feature_of_column[:, None] == np.arange(features)
    parted: Floats = np.abs(one - other) @ belongs.astype(np.float64)
    return parted


def incompleteness(attributions: Floats, change: Floats) -> Floats:
    """How far attributions ``(r, p)`` are from adding up to the change of the logit from the baseline, ``(r,)``.

    |sum IG - change| / max(1, |change|), ``(r,)``: absolute for small changes and relative for large ones.
    """
    error: Floats = np.abs(attributions.sum(axis=1) - change) / np.maximum(1.0, np.abs(change))
    return error


def regimes(cec: Floats, flip: Floats, theta: float) -> Longs:
    """Number in ``REGIMES`` of each pair, ``(r,)``; ``NO_REGIME`` where the score or the flip is NaN.

    Args:
        cec: ``(r,)`` scores.
        flip: ``(r,)`` whether the predictions differ, as 0 and 1.
        theta: Score up to which reasons count as the same.
    """
    known = ~np.isnan(cec) & ~np.isnan(flip)
    return np.where(known, 2 * (flip == 1) + (cec > theta), NO_REGIME).astype(np.int64)


def regime_counts(cec: Floats, flip: Floats, thetas: Floats) -> Longs:
    """Pairs in each regime for every theta at once, ``(t, 4)``: scores are sorted once and thetas looked up in them."""
    out = np.empty((len(thetas), len(REGIMES)), np.int64)
    for flipped in (0, 1):
        scores = np.sort(cec[(flip == flipped) & ~np.isnan(cec)])
        same = np.searchsorted(scores, thetas, side="right")
        out[:, 2 * flipped], out[:, 2 * flipped + 1] = same, len(scores) - same
    return out


def largest(parted: Floats, most: int) -> Longs:
    """The features in which each pair parts most, ``(r, most)`` or fewer: largest first, of equals the lowest."""
    return np.argsort(-parted, axis=1, kind="stable")[:, :most]


def shares_of(parted: Floats) -> Floats:
    """Share of each feature ``(m,)`` in the mean divergence of ``(r, m)``; NaN where no pair diverges."""
    total = parted[~np.isnan(parted).any(axis=1)].sum(axis=0)
    return total / total.sum() if total.sum() > 0 else np.full(len(total), np.nan)


def resampled_shares(parted: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """``shares_of`` on bootstrap samples of the pairs, ``(draws, m)``."""
    known = parted[~np.isnan(parted).any(axis=1)]
    if not known.any():
        return np.full((draws, parted.shape[1]), np.nan)
    n, total = len(known), np.empty((draws, parted.shape[1]))
    for start in range(0, draws, DRAWN_AT_ONCE):
        size = min(DRAWN_AT_ONCE, draws - start)
        times = np.array([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)], np.float64)
        total[start : start + size] = times @ known
    with np.errstate(invalid="ignore"):
        shares: Floats = total / total.sum(axis=1, keepdims=True)
    return shares
