"""Excess share of denials: by hand, against the decisions of neighbours, its error, and why it has none."""

import math

import numpy as np
import pytest
from planted_situations import MEDIATED, draw
from scipy.stats import norm

from tasks.methods.cst.algorithm.contrasts import ADJUSTED, RAW, Contrast, excess_share

OWN = np.array([0, 1])
COUNTED = np.array([0.5, 0.5, 0.0, 0.0, 0.0])
BY_HAND = Contrast(
    weights=np.array([0.7, 0.3, -0.2, -0.2, -0.6]),
    raw=np.array([0.5, 0.5, -0.5, -0.25, -0.25]),
    control=COUNTED,
    complainants=2,
)


def by_hand(denied, numerator, variance=0.01, structural=0.0):
    found = BY_HAND.estimated(structural)
    return excess_share(found, OWN, np.array(denied, float), np.full(5, variance), numerator, 0.95)


def test_both_forms_by_hand():
    """Of control groups 0.5 (adjusted 0.7) are denied, of test groups 0.25 (adjusted 0.2)."""
    assert by_hand([1, 0, 0, 1, 0], RAW).value == pytest.approx(1 - 0.25 / 0.5)
    adjusted = by_hand([1, 0, 0, 1, 0], ADJUSTED, structural=0.003)
    assert adjusted.value == pytest.approx(1 - 0.2 / 0.7)
    relative = 0.01 * (0.49 + 0.09) / 0.7**2 + (0.01 * (0.04 + 0.04 + 0.36) + 0.003) / 0.2**2
    factor = math.exp(1.959964 * relative**0.5)
    assert adjusted.interval == pytest.approx((1 - factor * 0.2 / 0.7, 1 - 0.2 / 0.7 / factor))


def test_as_counted_it_has_no_interval():
    """It carries the finances of the group: where nobody is harmed directly its interval covered in 0.79."""
    assert by_hand([1, 0, 0, 1, 0], RAW).interval is None


@pytest.mark.parametrize(
    ("denied", "variance", "value", "reason"),
    [
        ([0, 0, 1, 1, 0], 0.01, math.nan, "no_denials"),
        ([1, 0, 0, 0, 0], 0.01, 1.0, ""),  # the logarithm of nothing
        ([1, 0, 0, 1, 0], 0.0, 1 - 0.2 / 0.7, ""),  # no noise: no interval of no width
    ],
)
def test_without_an_interval(denied, variance, value, reason):
    found = by_hand(denied, ADJUSTED, variance)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (found.interval, found.reason) == (None, reason)


def test_it_is_of_the_decisions_of_all_neighbours_with_the_error_of_the_delta_method():
    drawn = draw(MEDIATED, 700, 5)
    _, cst = drawn.effects(refitted=False)
    own, denied = np.flatnonzero(drawn.member), drawn.denied.astype(float)

    def logarithm(decisions):
        return math.log(1 - excess_share(cst.contrast, own, decisions, drawn.variance, ADJUSTED, 0.95).value)

    steps = 1e-6 * np.eye(700)
    slopes = np.array([(logarithm(denied + step) - logarithm(denied - step)) / 2e-6 for step in steps])
    low, high = drawn.excess(cst).interval
    assert math.log((1 - low) / (1 - high)) / (2 * norm.ppf(0.975)) == pytest.approx(
        float(slopes**2 @ drawn.variance) ** 0.5, rel=1e-5
    )
    members = denied[own].mean()
    weights = np.where(drawn.member, cst.contrast.weights, 0)
    assert weights @ denied == pytest.approx(members, abs=0.02)  # the adjusted control share is the group's own, nearly
    assert weights.sum() == pytest.approx(1)
