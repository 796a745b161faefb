"""Intervals: they resample the printed statistic, and cover it as often as they say."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tasks.numerics.statistics.intervals import benjamini_hochberg, estimate, fisher_p, percentile_interval, two_sided_p


def share(events: int, n: int, seed: int = 0, draws: int = 400):  # type: ignore[no-untyped-def]
    values, counts = np.array([0.0, 1.0]), np.array([n - events, events])
    return estimate(values, counts, np.random.default_rng(seed), draws, 0.95, share=True)


def test_a_share_by_hand() -> None:
    found = share(30, 120)
    assert (found.value, found.n, found.events) == (0.25, 120, 30)
    assert found.low < 0.25 < found.high
    # Wilson (1927), with z = 1.96: (30 + z²/2 ± z sqrt(30 * 90 / 120 + z²/4)) / (120 + z²)
    assert (found.low, found.high) == (pytest.approx(0.1811, abs=5e-5), pytest.approx(0.3344, abs=5e-5))


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    truth, hits, trials = 0.3, 0, 300
    for seed in range(trials):
        found = share(int(rng.binomial(200, truth)), 200, seed)
        hits += found.low <= truth <= found.high
    assert 0.91 <= hits / trials <= 0.98


@pytest.mark.parametrize(("events", "low", "high"), [(0, 0.0, 0.1135), (30, 0.8865, 1.0)])
def test_a_share_of_none_or_all_has_width(events: int, low: float, high: float) -> None:
    found = share(events, 30)  # Wilson for 0 of 30: z² / (30 + z²) = 0.1135
    assert_allclose([found.low, found.high], [low, high], atol=1e-4)


@pytest.mark.parametrize("values", [[0.3], [0.3, np.nan], [1.0], [0.0]])
def test_a_mean_of_values_that_do_not_differ_has_no_interval(values: list[float]) -> None:
    counts = np.array([9, 40])[: len(values)]
    found = estimate(np.array(values), counts, np.random.default_rng(0), 200, 0.95, share=False)
    assert (found.value, found.note) == (pytest.approx(values[0]), "no spread")
    assert np.isnan([found.low, found.high]).all()


def test_one_unit_tells_a_mean_and_no_interval() -> None:
    found = estimate(np.array([2.5]), np.array([1]), np.random.default_rng(0), 200, 0.95, share=False)
    assert (found.value, found.note, found.defined) == (2.5, "no spread", 1)
    assert np.isnan(found.low)


def test_units_without_a_value_are_resampled_and_left_out_of_the_mean() -> None:
    values, counts = np.array([2.0, 4.0, np.nan]), np.array([10, 10, 80])
    found = estimate(values, counts, np.random.default_rng(0), 2000, 0.95, share=False)
    assert (found.value, found.n, found.events) == (3.0, 100, None)
    assert found.replicates.std() == pytest.approx(1 / np.sqrt(20), rel=0.15)  # only some 20 units carry it


def test_both_ways_of_resampling_agree() -> None:
    rng = np.random.default_rng(3)
    many = np.round(rng.normal(5, 1, 500), 6)  # distinct values: resampled by unit
    few, counts = np.unique(np.round(many, 1), return_counts=True)  # fewer than 64: resampled by count
    one = estimate(many, np.ones(500, dtype=np.int64), rng, 1000, 0.95, share=False)
    two = estimate(few, counts, rng, 1000, 0.95, share=False)
    assert_allclose([one.low, one.high], [two.low, two.high], atol=0.03)


def test_nobody_gives_no_number() -> None:
    found = estimate(np.array([]), np.array([], dtype=np.int64), np.random.default_rng(0), 100, 0.95, share=True)
    assert found.n == 0
    assert np.isnan([found.value, found.low, found.high]).all()


@settings(max_examples=examples(25))
@given(st.integers(1, 60), st.integers(0, 60))
def test_same_seed_same_interval(n: int, events: int) -> None:
    events = min(events, n)
    one, two = share(events, n, 5, 100), share(events, n, 5, 100)
    assert (one.low, one.high) == (two.low, two.high)


def test_an_interval_of_mostly_undefined_replicates_is_undefined() -> None:
    assert np.isnan(percentile_interval(np.array([1.0] * 8 + [np.nan] * 2), 0.95)).all()


def test_two_sided_p_by_hand() -> None:
    assert two_sided_p(np.arange(1.0, 20.0)) == pytest.approx(0.1)  # 2 * (1 + 0) / 20
    assert two_sided_p(np.array([-1.0, 1.0])) == 1.0
    assert np.isnan(two_sided_p(np.array([np.nan])))


def test_fisher_and_benjamini_hochberg_by_hand() -> None:
    assert fisher_p((3, 1), (4, 4)) == pytest.approx(0.4857, abs=1e-4)  # the tea taster
    assert_allclose(benjamini_hochberg(np.array([0.01, np.nan, 0.04, 0.03])), [0.03, np.nan, 0.04, 0.04])
