"""Partial pooling against a known truth, published figures, and the corners of the estimate of tau2."""

import numpy as np
import pytest

from tasks.metrics.league.algorithm import paule_mandel, pooled, restricted, spread_of

SCHOOLS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18]) ** 2
"""Eight schools (Rubin 1981): effects and variances. REML finds no variance between them."""
BCG = (
    np.concatenate(
        (
            [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.012, -0.4694, -1.3713],
            [-0.3394, 0.4459, -0.0173],
        )
    ),
    np.array([0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714]),
)
"""Thirteen trials of BCG (Colditz and others 1994): log relative risks and variances, as metafor prints them."""


def drawn(rng, k, tau, way=(0.2, 2.0)):
    errors = rng.uniform(*way, k)
    truth = rng.normal(0.3, tau, k)
    return truth, rng.normal(truth, errors), errors**2


@pytest.mark.parametrize("tau", [0.0, 0.6, 1.5])
def test_intervals_cover_the_truth_and_estimates_are_nearer_to_it_than_raw_ones(tau):
    rng, inside, ours, raw = np.random.default_rng(7), [], [], []
    for _ in range(60):
        truth, y, v = drawn(rng, 40, tau)
        found = pooled(y, v)
        inside += list((found.low <= truth) & (truth <= found.high))
        ours += list((found.values - truth) ** 2)
        raw += list((y - truth) ** 2)
    assert np.mean(inside) > 0.935
    assert np.mean(ours) < 0.75 * np.mean(raw)


def test_intervals_of_few_partitions_cover_too():
    rng, inside = np.random.default_rng(8), []
    for _ in range(400):
        truth, y, v = drawn(rng, 6, 1.0)
        found = pooled(y, v)
        inside += list((found.low <= truth) & (truth <= found.high))
    assert np.mean(inside) > 0.935


def test_the_mean_has_the_interval_of_hartung_and_knapp():
    rng, inside = np.random.default_rng(9), []
    for _ in range(400):
        _, y, v = drawn(rng, 8, 1.0)
        found = spread_of(y, v)
        inside.append(found.low <= 0.3 <= found.high)
    assert np.mean(inside) > 0.92


def test_variances_between_are_those_that_are_published():
    assert restricted(*BCG) == pytest.approx(0.3132, abs=0.001)
    assert paule_mandel(*BCG) == pytest.approx(0.3181, abs=0.001)
    assert restricted(*SCHOOLS) == 0.0
    assert paule_mandel(*SCHOOLS) == 0.0


def test_estimates_are_never_pooled_beyond_the_mean_and_its_interval_is_narrower():
    y, v = np.array([0.0, 0.1, 0.2, 0.3, 5.0]), np.full(5, 0.04)
    found = pooled(y, v)
    assert (np.abs(found.values - found.spread.mean) <= np.abs(y - found.spread.mean)).all()
    assert found.spread.way == "reml"
    assert (found.weight >= 0).all()
    assert (found.weight <= 1).all()


def test_fewer_than_four_stand_as_they_are():
    y, v = np.array([0.0, 1.0, 2.0]), np.array([0.01, 0.04, 0.09])
    found = pooled(y, v)
    assert (found.values == y).all()
    assert found.high - found.low == pytest.approx(2 * 1.959964 * np.sqrt(v))
    assert pooled(y[:1], v[:1]).spread.way == "none"
    assert np.isnan(pooled(y[:0], v[:0]).spread.mean)


def test_equal_estimates_have_no_variance_between():
    found = pooled(np.full(6, 0.5), np.full(6, 0.01))
    assert found.spread.tau2 == 0.0
    assert found.values == pytest.approx(np.full(6, 0.5))


@pytest.mark.parametrize(
    ("y", "v"), [([np.nan, 1.0], [1.0, 1.0]), ([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, np.inf])]
)
def test_what_cannot_be_pooled_is_refused(y, v):
    with pytest.raises(ValueError, match="finite"):
        pooled(np.array(y), np.array(v))
