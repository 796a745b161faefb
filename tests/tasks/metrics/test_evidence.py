"""Tests and bounds of one measure: they agree with each other, and with worked figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tasks.metrics.algorithm.verdicts import Ended, Estimated, Evidence, RatioOfShares

finite = st.floats(-1, 1)
errors = st.floats(1e-3, 1)
ratios = st.builds(
    lambda n, other, one, two: RatioOfShares(round(one * n), n, max(1, round(two * other)), other),
    st.integers(2, 300),
    st.integers(2, 3000),
    st.floats(0, 1),
    st.floats(0, 1),
)


def kinds() -> st.SearchStrategy[Evidence]:
    linear = st.builds(Estimated, finite, errors, st.just(False), st.sampled_from([math.inf, 19.0]), st.floats(0, 0.2))
    lopsided = st.builds(lambda v, below, above: Estimated(v, below, se_above=above), finite, errors, errors)
    logs = st.builds(Estimated, st.floats(0.1, 3), errors, st.just(True))
    ended = st.builds(lambda v, a, b: Ended(v, v - a, v + b, 0.95), finite, errors, errors)
    return st.one_of(linear, lopsided, logs, ended, ratios)


@given(kinds(), st.floats(0.05, 0.95), st.sampled_from([0.05, 0.025, 0.01]))
def test_a_bound_lies_beyond_a_limit_iff_the_p_is_below_its_level(known: Evidence, limit: float, level: float) -> None:
    for upper, p in ((False, known.above(limit)), (True, known.below(limit))):
        end = known.bound(level, upper)
        if abs(p - level) > 1e-6:
            assert (end < limit if upper else end > limit) == (p < level)


@given(kinds(), st.floats(0.05, 0.95))
def test_both_sides_are_never_rejected_together(known: Evidence, limit: float) -> None:
    assert max(known.above(limit), known.below(limit)) >= 0.5 - 1e-9


def test_an_estimate_by_hand() -> None:
    known = Estimated(0.133, 0.0333)
    assert known.above(0.02) == pytest.approx(norm.sf((0.133 - 0.02) / 0.0333))
    assert known.bound(0.05 / 2, upper=False) == pytest.approx(0.133 - 1.959964 * 0.0333, abs=1e-6)


def test_an_unseen_column_widens_both_sides() -> None:
    plain, wide = Estimated(0.07, 0.006), Estimated(0.07, 0.006, bias=0.14)
    assert plain.above(0.02) < 0.001 < 0.5 < wide.above(0.02)
    assert wide.bound(0.05, upper=True) - plain.bound(0.05, upper=True) == pytest.approx(0.14)
    assert wide.below(0.1) > plain.below(0.1)


def test_bostons_ratio_at_holms_level() -> None:
    """133 of 197 against 1,527 of 1,681: not beyond 0.80, and beyond 0.90."""
    known = RatioOfShares(133, 197, 1527, 1681)
    assert known.bound(0.025, upper=True) == pytest.approx(0.8122, abs=5e-5)
    assert known.below(0.80) > 0.025 > known.below(0.90)


def test_nobody_of_thirty_is_beyond_four_fifths_whatever_a_normal_would_say() -> None:
    known = RatioOfShares(0, 30, 1500, 1940)
    assert known.bound(0.025, upper=True) == pytest.approx(0.1469, abs=5e-5)
    assert known.below(0.8) < 1e-6
    assert math.isnan(known.error)


def test_the_error_of_a_ratio_is_about_that_of_its_logarithm_and_none_where_an_end_is_open() -> None:
    """The delta method by hand; nobody denied on a side leaves the ratio without an end there."""
    known = RatioOfShares(60, 400, 80, 800)
    assert known.error == pytest.approx(math.sqrt(1 / 60 - 1 / 400 + 1 / 80 - 1 / 800), rel=0.02)
    assert RatioOfShares(80, 800, 60, 400).error == pytest.approx(known.error), "turned round"
    assert math.isnan(RatioOfShares(0, 400, 80, 800).error)
    assert math.isnan(RatioOfShares(60, 400, 0, 800).error)
