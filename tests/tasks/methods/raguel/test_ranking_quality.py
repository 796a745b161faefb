"""rND, rKL and rRD by hand and against the worst ranking by dynamic programming; FA*IR against all coin tosses."""

import itertools
import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.methods.raguel.algorithm.ranking.fair_top import failing, fair_top, needed
from tasks.methods.raguel.algorithm.ranking.quality import MAJORITY, ONE_GROUP, TOO_SHORT, quality

QUICK = settings(deadline=None, max_examples=examples(60))


def rd(inside, cut, count, n):
    return abs(inside / cut - count / n)


def kl(inside, cut, count, n):
    pairs = ((inside / cut, count / n), (1 - inside / cut, 1 - count / n))
    return sum(a * math.log(a / b) for a, b in pairs if a > 0)


def rr(inside, cut, count, n):
    here = inside / (cut - inside) if cut > inside else 0.0
    return abs(here - count / (n - count))


def plain(term, protected):
    """The sum over the cut points, not normalised."""
    n, count = len(protected), sum(protected)
    cuts = range(10, n + 1, 10)
    return sum(term(sum(protected[:cut]), cut, count, n) / math.log2(cut) for cut in cuts)


def worst(term, n, count):
    """The largest sum of any ranking: by the number of protected records before each cut point."""
    best = {0: 0.0}
    for cut in range(10, n + 1, 10):
        most, least = min(count, cut), max(0, count - (n - cut))
        best = {
            inside: max(best[k] for k in range(inside - 10, inside + 1) if k in best)
            + term(inside, cut, count, n) / math.log2(cut)
            for inside in range(least, most + 1)
            if any(k in best for k in range(inside - 10, inside + 1))
        }
    return max(best.values())


@QUICK
@given(n=st.integers(11, 80), share=st.floats(0.01, 0.99), seed=st.integers(0, 10**6))
def test_the_metrics_are_the_plain_sums_divided_by_the_worst_of_all_rankings(n, share, seed):
    count = min(max(round(share * n), 1), n - 1)
    protected = np.random.default_rng(seed).permutation(np.arange(n) < count)
    found = quality(protected)
    assert found.rnd == pytest.approx(plain(rd, protected.tolist()) / worst(rd, n, count))
    assert found.rkl == pytest.approx(plain(kl, protected.tolist()) / worst(kl, n, count), abs=1e-12)
    if 2 * count <= n:
        assert found.rrd == pytest.approx(plain(rr, protected.tolist()) / worst(rr, n, count))
        assert found.reason == ""
    else:
        assert np.isnan(found.rrd)
        assert found.reason == MAJORITY


def test_twenty_records_by_hand():
    """All five protected first: 5 of 10 where 1 in 4 is due, and the end adds nothing; so does any such top half."""
    protected = np.arange(20) < 5
    found = quality(protected)
    first, last = 5 / 10 - 5 / 20, 5 / 20
    assert found.rnd == pytest.approx(first / max(first, last)) == pytest.approx(1)
    assert found.rrd == pytest.approx((5 / 5 - 5 / 15) / (5 / 5 - 5 / 15)) == pytest.approx(1)
    kl_first, kl_last = 0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75), math.log(1 / 0.75)
    assert found.rkl == pytest.approx(kl_first / max(kl_first, kl_last))


def test_a_perfectly_mixed_list_scores_nothing():
    found = quality(np.arange(200) % 10 < 3)
    assert (found.rnd, found.rkl, found.rrd, found.reason) == (0, 0, 0, "")


@pytest.mark.parametrize(
    ("protected", "reason"),
    [(np.ones(30, bool), ONE_GROUP), (np.zeros(30, bool), ONE_GROUP), (np.arange(10) < 3, TOO_SHORT)],
)
def test_what_is_not_defined_has_a_reason_and_no_value(protected, reason):
    found = quality(protected)
    assert found.reason == reason
    assert np.isnan([found.rnd, found.rkl, found.rrd]).all()


def test_the_chance_to_fail_is_that_of_all_tosses():
    wanted, share = np.array([0, 0, 1, 1, 1, 2, 2, 3]), 0.4
    chance = 0.0
    for tosses in itertools.product((0, 1), repeat=len(wanted)):
        if (np.cumsum(tosses) < wanted).any():
            chance += share ** sum(tosses) * (1 - share) ** (len(tosses) - sum(tosses))
    assert failing(wanted, share) == pytest.approx(chance)


def test_alpha_is_lowered_until_a_ranking_at_random_fails_as_often_as_asked_for():
    wanted = needed(100, 0.3, 0.15)
    assert 0.1 < failing(wanted, 0.3) <= 0.15
    uncorrected = binom.ppf(0.15, np.arange(1, 101), 0.3)
    assert failing(uncorrected.astype(int), 0.3) > 0.3
    assert (wanted <= uncorrected).all()
    assert (np.diff(wanted) >= 0).all()


@QUICK
@given(
    n=st.integers(1, 60), share=st.sampled_from([0.2, 0.5]), seed=st.integers(0, 10**6), top=st.sampled_from([None, 20])
)
def test_the_top_has_enough_and_both_groups_keep_their_order(n, share, seed, top):
    rng = np.random.default_rng(seed)
    cost, protected = rng.integers(0, 5, n).astype(float), rng.random(n) < share
    order = fair_top(cost, protected, share, top=top)
    assert sorted(order.tolist()) == list(range(n))
    wanted = needed(min(top or n, n), share, 0.15)
    held = np.cumsum(protected[order])[: len(wanted)]
    assert ((held >= wanted) | (held == protected.sum())).all()
    for kind in (True, False):
        mine = [(cost[i], i) for i in order if protected[i] == kind]
        assert mine == sorted(mine)


def test_a_list_that_is_fair_already_is_the_list_by_cost():
    cost, protected = np.arange(30.0), np.arange(30) % 2 == 0
    assert fair_top(cost, protected, 0.5).tolist() == list(range(30))
