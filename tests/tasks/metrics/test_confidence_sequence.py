"""The band over years: its formula by hand, what it promises, and what it costs."""

import math

import numpy as np
import pytest
from benches.years import alone, found_by, found_by_constant, normal_years
from conftest import fingerprint
from hypothesis import given
from hypothesis import strategies as st

from tasks.metrics.algorithm.monitoring import (
    between_years,
    bonferroni,
    confidence_sequence,
    false_breach,
    radius,
    single_year,
)


def band(estimates, variances, a=0.1, biases=None):
    zeros = np.zeros(len(estimates))
    return confidence_sequence(np.array(estimates), np.array(variances), zeros if biases is None else biases, a)


def test_the_radius_by_hand():
    # one year of variance 1: I = 1, r = 0.35, a = 0.1
    assert radius(1, 1, 0.1) == pytest.approx(math.sqrt(1.35 * math.log(1.35 / (0.35 * 0.01))))
    assert radius(1, 1, 0.1) == pytest.approx(2.835, abs=1e-3)


@pytest.mark.parametrize("years", range(1, 13))
def test_the_radius_is_about_2_8_standard_errors_all_along(years):
    errors = radius(years, 1, 0.1) * math.sqrt(years)
    assert errors == pytest.approx(2.8, abs=0.15)


@pytest.mark.parametrize("years", [1, 3, 8])
def test_the_radius_does_not_know_the_unit(years):
    assert radius(years * 400, 400, 0.1) == pytest.approx(radius(years, 1, 0.1) / 20)


def test_years_are_pooled_by_precision():
    found = band([0.02, 0.05], [0.0001, 0.0004])  # weights 10,000 and 2,500
    assert found.pooled == pytest.approx((0.02 * 10_000 + 0.05 * 2_500) / 12_500)
    half = radius(12_500, 10_000, 0.1)
    assert (found.low, found.high) == pytest.approx((found.pooled - half, found.pooled + half))


def test_a_false_breach_in_eight_years_is_rare():
    e = normal_years(np.random.default_rng(1), 3_000)
    assert found_by_constant(e)[-1] == pytest.approx(0.012, abs=0.006)
    some = found_by(e[:600])[-1]
    assert some <= 0.012 + 0.012
    assert alone(e) == pytest.approx(0.34, abs=0.03)
    assert alone(e, plan=8) == pytest.approx(0.047, abs=0.013)
    assert false_breach(0.05, 8) == pytest.approx(0.3366, abs=1e-4)


def test_eight_groups_share_alpha():
    e = normal_years(np.random.default_rng(2), 400 * 8).reshape(400, 8, 8)
    some = [np.mean([found_by_constant(groups, a)[-1] > 0 for groups in e]) for a in (0.1 / 8, 0.1)]
    assert some[0] <= 0.03
    assert some[1] == pytest.approx(0.086, abs=0.035)  # each at 2 alpha: too often


def test_a_lender_beyond_the_limit_is_found():
    e = normal_years(np.random.default_rng(3), 1_500, beyond=1.5)
    assert found_by_constant(e)[[2, 4, 7]] == pytest.approx([0.47, 0.75, 0.94], abs=0.035)


def test_from_four_years_on_wandering_widens_the_band_and_before_it_does_not():
    e, v = np.array([0.0, 0.06, -0.02, 0.08]), np.full(4, 0.0001)
    found = band(e, v)
    assert found.tau2 == between_years(e, v) > 0
    assert found.high - found.low == pytest.approx(
        2 * radius(4 / (0.0001 + found.tau2), 1 / (0.0001 + found.tau2), 0.1)
    )
    assert band(e[:3], v[:3]).tau2 == 0


@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=9), st.floats(0, 0.2))
def test_a_bias_is_added_on_both_sides(estimates, bias):
    variances = np.linspace(0.0001, 0.0004, len(estimates))
    plain = band(estimates, variances)
    wide = band(estimates, variances, biases=np.full(len(estimates), bias))
    assert wide.pooled == plain.pooled
    assert (wide.low, wide.high) == pytest.approx((plain.low - bias, plain.high + bias), abs=1e-12)


def test_biases_are_pooled_like_the_estimates():
    wide = band([0.1, 0.1], [0.0001, 0.0003], biases=np.array([0.04, 0.08]))  # weights 3 to 1
    plain = band([0.1, 0.1], [0.0001, 0.0003])
    assert plain.low - wide.low == pytest.approx(0.05)


def test_one_year_alone_and_by_a_plan():
    assert single_year(0.1, 0.0004, 0.01, 0.05).low == pytest.approx(0.1 - 1.6449 * 0.02 - 0.01, abs=1e-5)
    assert bonferroni(0.1, 0.0004, 0, 0.05, 10).high == pytest.approx(0.1 + 2.5758 * 0.02, abs=1e-5)


RESULTS = {
    "band": lambda: band([0.02, 0.05, 0.01], [1e-4, 4e-4, 2e-4], 0.05, np.array([0.0, 0.01, 0.02])),
    "one year": lambda: single_year(0.03, 2e-4, 0.01, 0.1),
    "bonferroni": lambda: bonferroni(0.03, 2e-4, 0.01, 0.1, 4),
    "false breach": lambda: [false_breach(0.05, years) for years in (1, 2, 8)],
    "between": lambda: [between_years(np.array([0.0, 0.3]), np.full(2, 0.01))],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: bands of three years. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "band": {"pooled": 2.145132, "low": 0.367857, "high": 2.81927, "tau2": 1.0},
    "one year": {"pooled": 2.386294, "low": 1.171945, "high": 2.918743, "tau2": 1.0},
    "bonferroni": {"pooled": 2.386294, "low": 0.428, "high": 3.050503, "tau2": 1.0},
    "false breach": {"0": 2.791759, "1": 3.374906, "2": 4.545527},
    "between": {"0": 2.504077},
}
