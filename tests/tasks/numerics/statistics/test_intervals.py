"""Intervals: they resample the printed statistic, and cover it as often as they say."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from schemas.terms import Note
from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import (
    Estimate,
    Interval,
    Pair,
    benjamini_hochberg,
    estimate,
    fisher_p,
    percentile_interval,
    two_sided_p,
)


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


def known(value: float, low: float, high: float, events: int | None = None, note: str = "", **more) -> Estimate:  # type: ignore[no-untyped-def]
    """An estimate of 20 units, half of them with a value, whose resamples are 1 to 5."""
    return Estimate(value, low, high, 20, 10, events, np.arange(1.0, 6.0), note, **more)


def test_central_quantiles_by_hand_and_how_many_have_to_be_finite() -> None:
    assert percentile_interval(np.arange(101.0), 0.9) == pytest.approx((5.0, 95.0))
    nine = np.array([*range(9), np.nan])
    assert percentile_interval(nine, 0.5) == pytest.approx((2.0, 6.0)), "nine of ten are enough"
    found = intervals.percentile_intervals([np.arange(3.0), np.zeros(0), nine, np.arange(5.0)], 0.5)
    assert found == [(0.5, 1.5), (pytest.approx(np.nan, nan_ok=True),) * 2, (2.0, 6.0), (1.0, 3.0)]


@pytest.mark.parametrize(("value", "low", "high"), [(3.0, 1.1, 4.9), (0.0, 0.0, 4.9), (9.0, 1.1, 9.0)])
def test_an_interval_by_refits_holds_the_share(value: float, low: float, high: float) -> None:
    found = intervals.by_refits(known(value, 2.0, 4.0, 3), np.arange(1.0, 6.0), 0.95)
    assert (found.low, found.high, found.value) == pytest.approx((low, high, value))
    assert (found.fitted, found.events, found.n, found.defined, found.note) == (True, 3, 20, 10, "")
    assert found.replicates.tolist() == [1, 2, 3, 4, 5]
    assert intervals.by_refits(known(2.0, 1.0, 4.0), np.full(5, 2.0), 0.95).note == Note.NO_SPREAD


@pytest.mark.parametrize(("high", "note"), [(1 + 1e-13, Note.NO_SPREAD), (1 + 1.5e-12, ""), (1 - 1.5e-12, "")])
def test_ends_that_differ_by_rounding_are_no_interval(high: float, note: str) -> None:
    assert intervals.with_width(1.0, high).note == note


def test_resamples_are_as_many_units_drawn_with_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    """By counts for few values, by units for many, and in blocks: each has the mean and error of the mean."""
    for values in (np.array([0.0, 1.0]), np.arange(5.0), np.arange(70.0), np.array([*range(70), np.nan])):
        counts = np.arange(1, len(values) + 1)
        found = intervals.resample(values, counts, np.random.default_rng(0), 2_000)
        units = np.repeat(values, counts)
        units = units[~np.isnan(units)]
        assert found.shape == (2_000,)
        assert found.mean() == pytest.approx(units.mean(), abs=4 * found.std() / 2_000**0.5)
        assert found.std() == pytest.approx(units.std() / len(units) ** 0.5, rel=0.06)
        monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 2**15)
        assert intervals.resample(values, counts, np.random.default_rng(0), 2_000).tolist() == found.tolist()
    monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 1)
    assert intervals.resample(np.arange(70.0), np.ones(70, int), np.random.default_rng(0), 3).shape == (3,)
    assert intervals.resample(np.array([7.0, 8.0]), np.array([0, 4]), np.random.default_rng(0), 3).tolist() == [8.0] * 3


def test_a_resample_without_a_value_has_no_mean() -> None:
    with np.errstate(all="raise"):
        found = intervals.resample(np.array([5.0, np.nan]), np.array([1, 1]), np.random.default_rng(0), 40)
        drawn = intervals._mean_of_drawn(
            np.array([3.0, 0.0, 5.0]), np.array([True, False, True]), np.array([[0, 2, 2], [1, 1, 1], [0, 1, 2]])
        )
    assert 3 < np.isnan(found).sum() < 20
    assert set(found[~np.isnan(found)]) == {5.0}
    np.testing.assert_allclose(drawn, [13 / 3, np.nan, 4.0])


def test_two_sided_p_counts_ties_with_both_sides() -> None:
    assert two_sided_p(np.array([0.0, 1, 2, 3, 4, np.nan, np.inf])) == pytest.approx(4 / 6)
    assert two_sided_p(np.array([-1.0, -2, -3, 1, 5, -6, -7, -8, -9])) == pytest.approx(0.6)


def test_holm_by_hand() -> None:
    """0.001 against 0.05 / 4; 0.02 against 0.05 / 3 is not rejected, nor is what follows."""
    found = intervals.step_down(np.array([0.03, 0.001, np.nan, 0.02]), 0.05)
    assert found.adjusted.tolist() == pytest.approx([0.06, 0.004, 1.0, 0.06])
    assert found.level.tolist() == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert found.rejected.tolist() == [False, True, False, False]
    both = intervals.step_down(np.array([0.05, 0.025]), 0.05)
    assert both.level.tolist() == [0.05, 0.025]
    assert both.rejected.tolist() == [True, True], "a p at its level is rejected"
    assert intervals.step_down(np.array([0.7, 0.6]), 0.05).adjusted.tolist() == [1.0, 1.0]
    assert intervals.step_down(np.zeros(0), 0.05).level.shape == (0,)


def test_the_score_of_a_ratio_by_hand() -> None:
    """At ratio 1 the likeliest shares are the pooled ones: z = (8/10 - 4/20) / sqrt(0.4 0.6 (1/10 + 1/20) 30/29)."""
    found = intervals.score(Pair(*np.array([[8, 10, 4, 20], [3, 9, 5, 15], [5, 5, 5, 5]]).T), 1.0)
    assert found == pytest.approx([0.6 / math.sqrt(0.24 * 0.15 * 30 / 29), 0.0, 0.0])
    assert intervals.score(Pair(*np.array([[5], [5], [5], [5]])), 0.5)[0] > 0
    assert intervals.score(Pair(*np.array([[0], [5], [0], [5]])), 2.0).tolist() == [0.0]


def test_a_difference_of_a_share_and_a_mean_adds_distances_as_squares() -> None:
    own, other = known(0.5, 0.2, 0.9, events=5), known(0.3, 0.26, 0.6)
    found = intervals.difference(own, other, 0.95)
    assert found == pytest.approx((0.2 - math.hypot(0.3, 0.3), 0.2 + math.hypot(0.4, 0.04), ""))
    resampled = Estimate(2.0, 1.0, 3.0, 9, 9, None, np.array([1.0, 1, 1, 2, 2]))
    means = intervals.bootstrap_interval(np.array([0.0, 1, 2, 2, 3]), 0.8)
    assert intervals.difference(known(3.0, 1.0, 5.0), resampled, 0.8) == means
    fitted = known(0.5, 0.2, 0.9, events=5, fitted=True)
    assert intervals.difference(fitted, resampled, 0.8) == means, "refits are resampled"
    for pair in ((known(1.0, 1, 1, note="why"), own), (own, known(1.0, 1, 1, note="why"))):
        assert intervals.difference(*pair, 0.95).note == Note.NO_SPREAD
        assert intervals.ratio(*pair, 0.95).note == Note.NO_SPREAD


def test_a_ratio_is_that_of_resamples() -> None:
    other = Estimate(2.0, 1.0, 3.0, 9, 9, None, np.array([1.0, 2, 1, 2, 5]))
    found = intervals.ratio(known(3.0, 1.0, 5.0), other, 0.5)
    assert found == Interval(1.0, 2.0)


def test_shares_of_people_have_events_units_and_no_model() -> None:
    share_of = known(0.5, 0.2, 0.9, events=5)
    nobody = Estimate(np.nan, np.nan, np.nan, 3, 0, 0, np.zeros(0))
    assert intervals.both_shares(share_of, share_of)
    assert not intervals.both_shares(share_of, nobody)
    assert not intervals.both_shares(nobody, share_of)
    assert not intervals.both_shares(share_of, known(0.5, 0.2, 0.9))
    assert not intervals.both_shares(known(0.5, 0.2, 0.9), share_of)
    assert not intervals.both_shares(known(0.5, 0.2, 0.9, events=5, fitted=True), share_of)


def test_ratios_of_shares_are_of_events_and_units_with_a_value() -> None:
    of = [known(0.8, 0, 1, events=8), known(0.4, 0, 1, events=4), known(0.0, 0, 1, events=0)]
    low, high = intervals.ratio_bounds(Pair(*np.array([[8.0], [10], [4], [10]])), intervals.quantile(0.05))
    first, second = intervals.ratios_of_shares([(of[0], of[1]), (of[0], of[2])], 0.9)
    assert first == (pytest.approx(low[0]), pytest.approx(high[0]), "")
    assert second.note == Note.NO_UPPER_END
    assert second.low > 1
    assert math.isnan(second.high)
    assert intervals.ratios_of_shares([], 0.9) == []


@pytest.mark.parametrize(("low", "high", "ends"), [(0.0, 9.0, (-1.0, 8.0)), (2.5, 3.5, (1.1, 4.9))])
def test_what_is_held_against_draws_is_no_surer_than_by_itself(
    low: float, high: float, ends: tuple[float, float]
) -> None:
    found = intervals.from_drawn(known(3.0, low, high), np.arange(1.0, 6.0), 1.0, 0.95)
    assert found == (*map(pytest.approx, ends), "")
    assert intervals.from_drawn(known(3.0, 1.0, 5.0, note="why"), np.arange(5.0), 1.0, 0.95).note == Note.NO_SPREAD
    nothing = intervals.from_drawn(known(3.0, 1.0, 5.0, note="why"), np.zeros(0), 1.0, 0.95)
    assert np.isnan(nothing[:2]).all()
    assert nothing.note == ""


def test_an_estimate_by_hand() -> None:
    rng = np.random.default_rng(0)
    found = estimate(np.array([0.0, 1.0, np.nan]), np.array([3, 1, 2]), rng, 50, 0.95, share=True)
    assert (found.value, found.n, found.defined, found.events) == (0.25, 6, 4, 1)
    assert (found.low, found.high) == pytest.approx(intervals.wilson(1, 4, 1.959964), abs=1e-6)
    assert found.replicates.shape == (50,)
    costs = estimate(np.array([0.0, 1.0]), np.array([30, 10]), rng, 500, 0.95, share=False)
    assert (costs.events, costs.defined) == (None, 40)
    assert (costs.low, costs.high) == intervals.percentile_interval(costs.replicates, 0.95)
    nobody = estimate(np.array([]), np.array([], dtype=np.int64), rng, 7, 0.95, share=True)
    assert (nobody.defined, nobody.events, nobody.replicates.shape) == (0, None, (7,))
    undefined = estimate(np.array([np.nan]), np.array([4]), rng, 7, 0.95, share=True)
    assert (undefined.n, undefined.defined, undefined.events) == (4, 0, 0)
    assert np.isnan(undefined.value)
