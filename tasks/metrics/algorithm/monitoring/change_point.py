"""Since when: the one change point that parts the years best, and how often chance parts them as well.

Binary segmentation at its first step (Scott and Knott 1974): the greatest standardised difference between the years
before and from a point on. p by permuting the standardised years.
"""

import numpy as np

from tasks.metrics.algorithm.monitoring.random_effects import mean_of
from tasks.numerics.arrays import Floats

PERMUTATIONS = 999


def change_point(
    estimates: Floats, variances: Floats, rng: np.random.Generator, draws: int = PERMUTATIONS
) -> tuple[int, float]:
    """Place of the first year after the change among the ``(k,)`` years, and p = (1 + as large) / (1 + draws)."""
    mean, _, tau2 = mean_of(estimates, variances)
    z = (estimates - mean) / np.sqrt(variances + tau2)
    found = _contrasts(z[None, :])[0]
    drawn = _contrasts(rng.permuted(np.tile(z, (draws, 1)), axis=1)).max(axis=1)
    as_large = int((drawn >= found.max() * (1 - 1e-12)).sum())
    return int(found.argmax()) + 1, (1 + as_large) / (1 + draws)


def _contrasts(z: Floats) -> Floats:
    """``(n, k - 1)`` absolute difference of the means of both parts over its standard error, for each cut."""
    k = z.shape[1]
    first = np.arange(1, k)
    sums = np.cumsum(z, axis=1)
    before, after = sums[:, :-1] / first, (sums[:, -1:] - sums[:, :-1]) / (k - first)
    return np.asarray(np.abs(before - after) * np.sqrt(first * (k - first) / k))
