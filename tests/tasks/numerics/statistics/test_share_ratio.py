"""The ratio of two shares: golden values, statsmodels, and how often the interval covers the truth."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import Pair, quantile

Z = quantile(0.025)
GOLDEN = [
    ((0, 30, 20, 100), 0.0, 0.5806),
    ((0, 30, 1500, 1940), 0.0, 0.1469),
    ((30, 30, 1500, 1940), 1.1459, 1.3262),
    ((0, 30, 0, 300), 0.0, math.inf),
    ((133, 197, 1527, 1681), 0.6675, 0.8122),
]
"""Events and n of a group and of its reference, and the ends of the ratio's 95 % interval (issue of verdicts)."""


@st.composite
def counts(draw):
    n, reference_n = draw(st.integers(1, 400)), draw(st.integers(1, 4000))
    return draw(st.integers(0, n)), n, draw(st.integers(0, reference_n)), reference_n


def ends(of, z=Z):
    low, high = intervals.ratio_bounds(Pair(*np.array(of, float).reshape(-1, 4).T), z)
    return low[0], high[0]


@pytest.mark.parametrize(("of", "low", "high"), GOLDEN)
def test_golden_values(of, low, high):
    assert ends(of) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")  # an odds ratio that nobody asked for
@settings(deadline=None, max_examples=examples(150))
@given(of=counts(), level=st.sampled_from([0.01, 0.05, 0.2]))
def test_the_score_test_of_statsmodels_has_the_level_as_its_p_at_either_end(of, level):
    library = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is a test reference")
    low, high = ends(of, quantile(level / 2))
    assert (low == 0.0, math.isinf(high)) == (of[0] == 0, of[2] == 0)
    for end in (low, high):
        if 0 < end < math.inf:
            told = library.test_proportions_2indep(*of, value=end, method="score", compare="ratio")
            assert told.pvalue == pytest.approx(level, rel=1e-6)


@settings(deadline=None, max_examples=examples(30))
@given(of=counts())
def test_the_interval_is_that_of_statsmodels_where_it_finds_one(of):
    library = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is a test reference")
    if 0 < of[0] < of[1] and 0 < of[2] < of[3]:
        expected = library.confint_proportions_2indep(*of, method="score", compare="ratio")
        assert ends(of) == pytest.approx(expected, rel=1e-3)  # its search stops at that


@settings(deadline=None, max_examples=examples(100))
@given(of=counts())
def test_it_has_width_holds_the_ratio_and_turns_round_with_the_groups(of):
    low, high = ends(of)
    assert 0 <= low < high
    if of[2]:
        assert low <= (of[0] / of[1]) / (of[2] / of[3]) <= high
    turned = ends((*of[2:], *of[:2]))
    back = [math.inf if end == 0 else 1 / end for end in (high, low)]
    assert turned == pytest.approx(back, rel=1e-9)


@settings(deadline=None, max_examples=examples(15))
@given(many=st.lists(counts(), min_size=1, max_size=5))
def test_many_at_once_are_as_one_by_one(many):
    found = np.column_stack(intervals.ratio_bounds(Pair(*np.array(many, float).T), Z))
    assert found == pytest.approx(np.array([ends(one) for one in many]), rel=1e-12)


@pytest.mark.parametrize(("p", "q"), [(0.02, 0.2), (0.05, 0.05), (0.1, 0.3), (0.3, 0.3), (0.5, 0.7), (0.95, 0.9)])
def test_it_covers_as_often_as_it_says(p, q):
    """30 against 300 people, every outcome by its probability. A bootstrap covers 0.47 to 0.94 there."""
    events, reference = (each.ravel().astype(float) for each in np.meshgrid(np.arange(31), np.arange(301)))
    of = Pair(events, np.full(events.shape, 30.0), reference, np.full(events.shape, 300.0))
    low, high = intervals.ratio_bounds(of, Z)
    chance = binom.pmf(events, 30, p) * binom.pmf(reference, 300, q)
    assert 0.948 <= chance[(low <= p / q) & (p / q <= high)].sum() <= 0.970
