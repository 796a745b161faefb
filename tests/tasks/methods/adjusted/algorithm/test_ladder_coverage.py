"""Intervals of the ladder on simulated lenders whose truth is known: 40 samples of 1,500 applications."""

import numpy as np
import pytest

from research.adjusted.bench import SCENARIOS, Coverage, estimate_coverage
from tasks.methods.adjusted.algorithm.estimators import Estimator

SMALL = [each for each in SCENARIOS if each.rows == 1500]
ESTIMATORS: tuple[Estimator, ...] = ("logit", "aipw")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def found() -> tuple[Coverage, ...]:
    """Both estimators in the default form, on all scenarios."""
    return tuple(
        each
        for place, scenario in enumerate(SMALL)
        for each in estimate_coverage(scenario, ESTIMATORS, 40, 482 + place, splits=4)
    )


def test_errors_are_those_of_the_samples(found: tuple[Coverage, ...]) -> None:
    """Four errors of the mean are 0.016."""
    assert len(found) == len(SMALL) * len(ESTIMATORS)
    for each in found:
        assert each.repetitions == 40
        assert abs(each.bias) < 0.016
        assert 0.75 < each.mean_se / each.sd < 1.35


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_intervals_cover(found: tuple[Coverage, ...], estimator: str) -> None:
    """Of 160 intervals at 95 % fewer than 144, or more than 158, cover with probability 0.01 together."""
    assert 0.9 <= np.mean([each.covered for each in found if each.estimator == estimator]) <= 158 / 160


def test_the_textbook_form_covers() -> None:
    (one,) = estimate_coverage(SMALL[2], ("logit",), 40, 482, form="linear")
    assert one.covered >= 0.85
    assert abs(one.bias) < 0.016
