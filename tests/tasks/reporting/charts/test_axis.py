"""Axes: ticks by hand, and what holds of every axis."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reporting.charts.layout import axis_of, between
from tasks.reporting.charts.values import OF_100, POINTS, RATIO, Estimate

NUMBERS = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-4)


def _e(value, low, high):
    return Estimate(value=value, low=low, high=high)


def test_ticks_by_hand():
    assert between(-30, 7, POINTS).ticks == (-30, -20, -10, 0, 10)
    assert between(-30, 0, POINTS).ticks == (-30, -25, -20, -15, -10, -5, 0)
    assert between(0.31, 0.97, RATIO, most=6).ticks == (0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert between(0.31, 0.97, RATIO, most=6).labels(RATIO) == ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
    assert between(0, 0, OF_100).ticks[0] == 0
    assert between(0, 64_000, OF_100).labels(OF_100) == ("0", "20,000", "40,000", "60,000", "80,000")


def test_places_by_hand():
    axis = between(-30, 10, POINTS)
    assert axis.at(-30, 100, 500) == 100
    assert axis.at(0, 100, 500) == 400
    assert axis.at(10, 100, 500) == 500
    assert axis.at(-math.inf, 100, 500) == 100
    assert axis.at(5, 500, 100) == 150, "an axis that points the other way"


def test_boston_has_its_intervals_and_both_directions_on_the_axis():
    axis = axis_of([_e(-23.3, -30, -16.6), _e(-13.8, -20.2, -7.4)], [-5], POINTS)
    assert axis.ticks == (-30, -20, -10, 0, 10)


def test_a_wide_interval_leaves_the_axis_that_the_others_need():
    """Typical half interval 6.7, so the axis reaches 20.1 beyond the values, from −43.4 to 21.1; the step is 20."""
    axis = axis_of([_e(-23.3, -30, -16.6), _e(-13.8, -20.2, -7.4), _e(-10, -90, 70), _e(1, -math.inf, 5)], [], POINTS)
    assert (axis.low, axis.high) == (-60, 40)
    assert not axis.holds(-90)
    assert not axis.holds(70)
    assert axis.holds(-30)


def test_rates_keep_between_0_and_100():
    axis = axis_of([_e(2.0, -3.0, 9.0), _e(99.0, 92.0, 104.0)], [], OF_100)
    assert (axis.low, axis.high) == (0, 100)


@given(NUMBERS, NUMBERS, st.integers(3, 9))
def test_ticks_are_round_even_few_and_include_0(a, b, most):
    low, high = min(a, b), max(a, b)
    axis = between(low, high, POINTS, most)
    assert 0.0 in axis.ticks
    assert 2 <= len(axis.ticks) <= most
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low <= low + slack
    assert axis.high >= high - slack
    step = axis.ticks[1] - axis.ticks[0]
    mantissa = float(f"{step:.6e}".partition("e")[0])
    assert mantissa in (1.0, 2.0, 5.0)
    assert all(y - x == pytest.approx(step) for x, y in zip(axis.ticks, axis.ticks[1:], strict=False))
    assert len(set(axis.labels(POINTS))) == len(axis.ticks), "printed ticks differ"


@given(st.lists(st.tuples(NUMBERS, st.floats(0, 1e6)), min_size=1, max_size=8), st.lists(NUMBERS, max_size=2))
def test_every_value_every_limit_and_0_lie_on_the_axis(rows, limits):
    axis = axis_of([_e(v, v - half, v + half) for v, half in rows], limits, POINTS)
    slack = 1e-6 * (axis.high - axis.low)
    for value in [*(v for v, _ in rows), *limits, 0.0]:
        assert axis.low - slack <= value <= axis.high + slack
    assert axis.low < 0 < axis.high
