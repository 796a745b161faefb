"""Coverage of the interval of a share less a mean, whose distances to the ends are added as squares."""

import numpy as np
import pytest

from tasks.numerics.statistics.intervals import Estimate, bootstrap_interval, difference, estimate

LEVEL = 0.95


def _estimate(values: np.ndarray, rng: np.random.Generator, *, share: bool) -> Estimate:
    distinct, counts = np.unique(values, return_counts=True)
    return estimate(distinct.astype(float), counts, rng, 500, LEVEL, share=share)


def _coverage(share: float, of: int, others: int, worlds: int) -> float:
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(worlds):
        own = _estimate((rng.random(of) < share).astype(float), rng, share=True)
        other = _estimate(rng.beta(2, 5, others), rng, share=False)
        interval = difference(own, other, LEVEL)
        inside += interval.low <= share - 2 / 7 <= interval.high
    return inside / worlds


@pytest.mark.parametrize(("of", "others"), [(40, 400), (400, 40)])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_it_covers_as_often_as_it_says(share: float, of: int, others: int) -> None:
    """0.937 to 0.955 of 1,000 worlds each (set ``worlds`` to 1,000); 300 tell 0.95 from 0.90 here."""
    assert 0.92 <= _coverage(share, of, others, 300) <= 0.98


def test_two_means_have_the_interval_of_their_resamples() -> None:
    rng = np.random.default_rng(7)
    one, other = (_estimate(rng.exponential(size=80), rng, share=False) for _ in range(2))
    assert difference(one, other, LEVEL) == bootstrap_interval(one.replicates - other.replicates, LEVEL)


def test_it_is_too_short_where_nearly_all_values_are_the_same() -> None:
    """A known limit: a mean of 40 values of which 9 in 10 are 0 is resampled, and resamples spread too little."""
    rng, inside, worlds = np.random.default_rng(7), 0, 300
    for _ in range(worlds):
        own = _estimate((rng.random(400) < 0.02).astype(float), rng, share=True)
        other = _estimate(rng.uniform(0, 1, 40) * (rng.random(40) < 0.1), rng, share=False)
        interval = difference(own, other, LEVEL)
        inside += bool(interval.low <= 0.02 - 0.05 <= interval.high)
    assert 0.82 <= inside / worlds <= 0.93
