"""The interval of the difference between the figures of two independent runs covers as often as it says."""

import numpy as np
import pytest

from flows.serving.pages.runs import difference_of
from tasks.numerics.statistics.intervals import wilsons

Z = 1.959963984540054
RUNS = 4000


def gaps(rng, sizes, rates):
    """Differences of two approval rates with Newcombe's interval, as a run prints them."""
    drawn = [rng.binomial(n, rate, RUNS).astype(float) for n, rate in zip(sizes, rates, strict=True)]
    (p, q), ends = (k / n for k, n in zip(drawn, sizes, strict=True)), []
    for events, n in zip(drawn, sizes, strict=True):
        ends.append(wilsons(events, np.full(RUNS, float(n)), Z))
    (l1, u1), (l2, u2) = ends
    low = p - q - np.hypot(p - l1, u2 - q)
    high = p - q + np.hypot(u1 - p, q - l2)
    return [
        {"value": float(v), "plain_low": float(a), "plain_high": float(b)}
        for v, a, b in zip(p - q, low, high, strict=True)
    ]


@pytest.mark.parametrize(
    ("sizes", "before", "after"),
    [
        ((200, 1600), (0.7, 0.9), (0.7, 0.9)),
        ((100, 400), (0.6, 0.85), (0.75, 0.85)),
        ((40, 300), (0.9, 0.95), (0.8, 0.95)),
    ],
)
def test_the_interval_covers_the_true_change(sizes, before, after):
    rng = np.random.default_rng(0)
    truth = (after[0] - after[1]) - (before[0] - before[1])
    one, other = gaps(rng, sizes, before), gaps(rng, sizes, after)
    found = [difference_of(then, now)[1] for then, now in zip(one, other, strict=True)]
    covered = np.mean([low <= truth <= high for low, high in found])
    assert 0.935 <= covered <= 0.975
