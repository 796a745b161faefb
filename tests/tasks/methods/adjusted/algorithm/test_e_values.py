"""E-values: printed ones, and the ends of intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.methods.adjusted.algorithm.sensitivity import e_value, e_value_of_effect


@pytest.mark.parametrize(("ratio", "published"), [(1.5, 2.366), (1.8, 3.000), (2.22, 3.866), (1.0, 1.0)])
def test_published_e_values(ratio, published):
    assert e_value(ratio) == pytest.approx(published, abs=5e-4)
    assert e_value(1 / ratio) == pytest.approx(published, abs=5e-4)


@given(ratio=st.floats(1, 100))
def test_a_confounder_as_strong_as_the_e_value_explains_the_ratio(ratio):
    """The bounding factor of Ding and VanderWeele (2016) at the E-value, on both sides, is the ratio."""
    e = e_value(ratio)
    assert e * e / (e + e - 1) == pytest.approx(ratio)


def test_the_ratio_is_of_denial_with_the_group_term_to_denial_without_it():
    said = e_value_of_effect(0.3, 0.1, 0.05, 0.15)
    assert said.ratio == pytest.approx(1.5)
    assert said.value == pytest.approx(2.366, abs=5e-4)
    assert said.near_end == pytest.approx(e_value(0.3 / 0.25))
    below = e_value_of_effect(0.2, -0.1, -0.15, -0.05)
    assert below.ratio == pytest.approx(2 / 3)
    assert below.near_end == pytest.approx(e_value(0.25 / 0.2))


def test_an_interval_that_holds_no_difference_needs_no_confounder():
    assert e_value_of_effect(0.3, 0.1, -0.05, 0.25).near_end == 1.0


@pytest.mark.parametrize(
    ("effect", "low", "high", "near"),
    [
        (0.1, math.nan, 0.15, math.nan),
        (0.1, 0.05, math.nan, e_value(0.3 / 0.25)),
        (0.1, -0.05, math.nan, 1.0),
        (-0.1, math.nan, 0.05, 1.0),
        (-0.1, math.nan, math.nan, math.nan),
    ],
)
def test_an_interval_with_one_end_is_read_at_the_end_nearest_to_zero(effect, low, high, near):
    assert e_value_of_effect(0.3, effect, low, high).near_end == pytest.approx(near, nan_ok=True)


def test_edges():
    assert e_value_of_effect(0.1, 0.1, 0.05, 0.15).value == math.inf
    assert e_value(0.0) == math.inf
    assert math.isnan(e_value(math.nan))
    assert math.isnan(e_value_of_effect(0.0, 0.0, -0.1, 0.1).ratio)
