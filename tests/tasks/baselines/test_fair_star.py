"""FA*IR against all coin tosses, and its m-tables against the authors' package where that is installed."""

import itertools

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.baselines.rankings import Listed, failing, fair_star, needed, unadjusted

QUICK = settings(deadline=None, max_examples=examples(60))


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
    if protected.all() or not protected.any():
        return
    order = fair_star(Listed(cost, protected, share), top=top).order[0]
    assert sorted(order.tolist()) == list(range(n))
    wanted = needed(min(top or n, n), share, 0.15)
    held = np.cumsum(protected[order])[: len(wanted)]
    assert ((held >= wanted) | (held == protected.sum())).all()
    for kind in (True, False):
        mine = [(cost[i], i) for i in order if protected[i] == kind]
        assert mine == sorted(mine)


def test_a_list_that_is_fair_already_is_the_list_by_cost():
    cost, protected = np.arange(30.0), np.arange(30) % 2 == 0
    assert fair_star(Listed(cost, protected, 0.5)).order[0].tolist() == list(range(30))


@pytest.mark.parametrize("share", [0.2, 0.45])
@pytest.mark.parametrize("top", [10, 20, 50])
def test_tables_without_correction_are_those_of_the_authors_package(top, share):
    package = pytest.importorskip("fairsearchcore")
    assert unadjusted(top, share, 0.15).tolist() == package.Fair(top, share, 0.15).create_unadjusted_mtable()


@pytest.mark.parametrize(
    ("top", "share", "table"),
    [
        (10, 0.45, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]),
        (20, 0.2, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        (20, 0.45, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7]),
    ],
)
def test_tables_that_the_authors_package_gave(top, share, table):
    """By fairsearchcore 1.0.4, which the tests have not: read off once."""
    assert unadjusted(top, share, 0.15).tolist() == table
