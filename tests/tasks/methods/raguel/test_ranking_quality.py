"""rND, rKL and rRD by hand and against the worst ranking by dynamic programming."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.methods.raguel.algorithm.representation import MAJORITY, ONE_GROUP, TOO_SHORT, quality

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
