"""Intervals and tests of two shares: published values, statsmodels, and what p and bounds have to agree on."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import Pair

QUICK = settings(deadline=None, max_examples=examples(60))
KINDS = ["newcombe", "agresti_caffo", "wald"]


def pair(*counts):
    return Pair(*(np.atleast_1d(np.array(part, float)) for part in counts))


@st.composite
def counts(draw):
    control_n, test_n = draw(st.integers(1, 120)), draw(st.integers(1, 120))
    return draw(st.integers(0, control_n)), control_n, draw(st.integers(0, test_n)), test_n


@pytest.mark.parametrize(
    ("of", "kind", "low", "high"),
    [
        ((13, 16, 0, 16), "wald", 0.652, 0.973),
        ((13, 16, 0, 16), "newcombe", 0.565, 0.922),
        ((16, 16, 0, 16), "wald", 1.0, 1.0),
        ((16, 16, 0, 16), "newcombe", 0.795, 1.0),
    ],
)
def test_vectors_of_the_specs(of, kind, low, high):
    found = intervals.bounds(pair(*of), kind, intervals.quantile(0.05, 3))
    assert np.concatenate(found) == pytest.approx([low, high], abs=5e-4)


def test_published_example_of_newcombe():
    """Newcombe (1998), Table II, contrast (a): 56/70 - 48/80, 95 %, method 10."""
    low, high = intervals.bounds(pair(56, 70, 48, 80), "newcombe", intervals.quantile(0.025))
    assert (low[0], high[0]) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))


@pytest.mark.parametrize(
    ("of", "low", "high"),
    [
        ((0, 30, 20, 100), -0.2888, -0.0684),
        ((0, 30, 1500, 1940), -0.7913, -0.6581),
        ((30, 30, 1500, 1940), 0.1119, 0.2460),
        ((0, 30, 0, 300), -0.0126, 0.1135),
        ((133, 197, 1527, 1681), -0.3027, -0.1700),
    ],
)
def test_golden_differences_of_a_group_and_its_reference(of, low, high):
    found = np.concatenate(intervals.bounds(pair(*of), "newcombe", intervals.quantile(0.025)))
    assert found == pytest.approx([low, high], abs=5e-5)


@QUICK
@given(n=st.integers(1, 500), share=st.floats(0, 1), level=st.sampled_from([0.01, 0.05, 0.2]))
def test_one_share_is_that_of_statsmodels_and_never_without_width(n, share, level):
    library = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is a test reference")
    events = round(share * n)
    low, high = intervals.wilson(events, n, intervals.quantile(level / 2))
    assert (low, high) == pytest.approx(library.proportion_confint(events, n, level, "wilson"), abs=1e-12)
    assert 0 <= low < high <= 1
    assert low <= events / n <= high
    assert (low == 0, high == 1) == (events == 0, events == n)


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(of=counts(), level=st.sampled_from([0.01, 0.05, 0.2]))
def test_bounds_are_those_of_statsmodels(kind, of, level):
    library = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is a test reference")
    name = {"agresti_caffo": "agresti-caffo"}.get(kind, kind)
    expected = library.confint_proportions_2indep(*of, method=name, compare="diff", alpha=2 * level)
    found = np.concatenate(intervals.bounds(pair(*of), kind, intervals.quantile(level)))
    # statsmodels cuts Newcombe's and Agresti's bounds at -1 and 1 only where they pass them
    assert np.clip(found, -1, 1) == pytest.approx(np.clip(expected, -1, 1), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(of=counts(), level=st.floats(0.001, 0.5), tau=st.sampled_from([0.0, 0.05, 0.3]))
def test_p_is_below_alpha_where_the_bound_is_above_tau(kind, of, level, tau):
    low = intervals.bounds(pair(*of), kind, intervals.quantile(level))[0][0]
    p = intervals.p_values(pair(*of), kind, tau)[0]
    assume(abs(low - tau) > 1e-9)
    assert 0 <= p <= 1
    assert (p < level) == (low > tau)


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(of=counts(), level=st.floats(0.001, 0.5))
def test_swapping_the_groups_turns_the_interval_round(kind, of, level):
    z = intervals.quantile(level)
    low, high = intervals.bounds(pair(*of), kind, z)
    turned = intervals.bounds(pair(*of[2:], *of[:2]), kind, z)
    assert (low[0], high[0]) == (pytest.approx(-turned[1][0], abs=1e-12), pytest.approx(-turned[0][0], abs=1e-12))
    assert low[0] <= high[0] + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_more_refusals_in_the_control_group_never_raise_p(kind):
    control = np.arange(31.0)
    p = intervals.p_values(Pair(control, np.full(31, 30.0) + 1, np.full(31, 9.0), np.full(31, 30.0)), kind, 0.05)
    assert (np.diff(p) <= 1e-15).all()
    assert p[0] > 0.5 > 0.01 > p[-1]


def test_no_width_gives_p_0_or_1():
    all_or_nothing = pair([16, 0, 16], [16, 16, 16], [0, 16, 16], [16, 16, 16])
    assert intervals.p_values(all_or_nothing, "wald", 0.0).tolist() == [0, 1, 1]
    assert intervals.p_values(all_or_nothing, "newcombe", 0.0) == pytest.approx([0, 1, 0.5], abs=1e-9)


def test_kept_p_are_those_of_pairs_solved_alone(monkeypatch):
    rng = np.random.default_rng(5)
    n = rng.integers(5, 40, (2, 300))
    of = Pair(*(part.astype(float) for part in (rng.integers(0, n[0]), n[0], rng.integers(0, n[1]), n[1])))
    monkeypatch.setattr(intervals, "_TAILS", {})
    monkeypatch.setattr(intervals, "MOST_TAILS", 200)
    once, alone = intervals.p_values(of, "newcombe", 0.05), []
    for place in range(300):
        one = Pair(*(part[[place]] for part in of))
        monkeypatch.setattr(intervals, "_TAILS", {})
        alone += intervals.p_values(one, "newcombe", 0.05).tolist()
        monkeypatch.setattr(intervals, "_TAILS", dict(list(intervals._TAILS.items())[:1]))
    assert once.tolist() == alone
    assert intervals.p_values(of, "newcombe", 0.05).tolist() == alone
    assert intervals.p_values(of, "newcombe", 0.0).tolist() != alone


def test_p_beyond_what_is_looked_for():
    assert intervals.p_values(pair(1000, 1000, 0, 1000), "newcombe", 0.0).tolist() == [0.0]
    assert intervals.p_values(pair(0, 15, 15, 15), "newcombe", 0.5).tolist() == [1.0]


@QUICK
@given(many=st.lists(counts(), min_size=1, max_size=20))
def test_many_at_once_are_as_one_by_one(many):
    of = Pair(*(np.append(part, np.nan) for part in np.array(many, float).T))
    for kind in KINDS:
        single = [intervals.p_values(pair(*one), kind, 0.1)[0] for one in many]
        found = intervals.p_values(of, kind, 0.1)
        assert found[:-1] == pytest.approx(single, abs=1e-12)
        assert np.isnan(found[-1])
        twice = intervals.p_values(Pair(*(np.stack([part, part]) for part in of)), kind, 0.1)
        assert np.array_equal(twice, np.stack([found, found]), equal_nan=True)


def test_differences_are_not_torn_from_tau_by_rounding():
    """0.8 - 0.6 is 0.20000000000000007 in floats, and no larger than 0.2."""
    assert pair(8, 10, 6, 10).delta.tolist() == [0.2]
    assert pair(3, 9, 5, 15).delta.tolist() == [0.0]


def test_pairs_of_few_and_many_people_are_not_taken_for_one_another():
    """1 of 50 and 2 of 39 against 3 of 10 each: a key that counts in elevens would be the same."""
    of = pair([1, 2, 3], [50, 39, 28], [3, 3, 3], [10, 10, 10])
    for many in (of, Pair(*of[2:], *of[:2])):
        single = [intervals.p_values(Pair(*(part[[k]] for part in many)), "newcombe", 0.0)[0] for k in range(3)]
        assert intervals.p_values(many, "newcombe", 0.0).tolist() == single
        assert len(set(single)) == 3


def test_no_more_p_are_kept_than_are_to_be(monkeypatch):
    monkeypatch.setattr(intervals, "_TAILS", {})
    monkeypatch.setattr(intervals, "MOST_TAILS", 4)
    for control, kept in (([1, 2, 3], 3), ([4], 4), ([5], 1), ([5, 6], 2)):
        n = len(control)
        intervals.p_values(pair(control, [9] * n, [2] * n, [9] * n), "newcombe", 0.0)
        assert len(intervals._TAILS) == kept


def test_exchange_of_wilson_quantiles_and_rounding():
    assert intervals.quantile(0.05) == pytest.approx(1.6448536, abs=1e-7)
    assert intervals.quantile(0.05, 3) == 1.645
    low, high = intervals.wilsons(np.array([0.0, 1, 4]), np.array([4.0, 4, 4]), 1.0)
    assert low.tolist() == pytest.approx([0.0, (1.5 - 1.0) / 5, 0.8])  # sqrt(1 3 / 4 + 1/4) = 1
    assert high.tolist() == pytest.approx([0.2, 2.5 / 5, 1.0])
