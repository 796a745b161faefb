"""False discovery rates over partitions: by definition, by simulation at the limit, and degrees of freedom."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from tasks.metrics.league.algorithm import RATE, degrees, one_sided, screened


def test_q_is_that_of_benjamini_and_hochberg():
    p = np.array([0.01, 0.02, 0.03, np.nan, 0.5])
    found = screened(p, np.array([True, True, False, True, True]))
    assert found.q[:3] == pytest.approx([0.04, 0.04, 0.04])
    assert found.q_dependent[0] == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))
    assert np.isnan(found.q[3])
    assert found.screened.tolist() == [True, True, False, False, False]
    assert found.by_chance == pytest.approx(0.2)
    assert found.false == pytest.approx(0.08)


def test_nothing_is_screened_where_nothing_is_tested():
    found = screened(np.array([np.nan, np.nan]), np.array([True, True]))
    assert not found.screened.any()
    assert (found.by_chance, found.false) == (0.0, 0.0)


def test_no_more_than_the_rate_is_false_among_lenders_at_the_limit():
    """100 lenders, 80 of them exactly at the limit and 20 far beyond it: shares of false ones among those screened."""
    rng, shares, all_at_limit = np.random.default_rng(11), [], []
    truth = np.r_[np.zeros(80), np.full(20, 3.5)]
    for _ in range(200):
        z = rng.normal(truth, 1)
        found = screened(one_sided(z, np.ones(100), np.full(100, 1.96)), z > 1.6449)
        shares.append(found.screened[:80].sum() / max(found.screened.sum(), 1))
        nobody = screened(norm.sf(rng.normal(size=100)), np.ones(100, bool))
        all_at_limit.append(nobody.screened.any())
    assert np.mean(shares) <= RATE
    assert np.mean(shares) > 0.01
    assert np.mean(all_at_limit) <= RATE + 2 * np.sqrt(RATE / 200)


def test_an_interval_tells_the_degrees_of_freedom_of_its_error():
    for df in (3.0, 12.0, 60.0):
        assert degrees(student.ppf(0.975, df)) == pytest.approx(df, rel=1e-6)
    assert degrees(1.959964) == np.inf
    assert degrees(100.0) == 1.0
    p = one_sided(np.array([2.0]), np.array([1.0]), np.array([student.ppf(0.975, 10.0)]))
    assert p[0] == pytest.approx(student.sf(2.0, 10.0))
