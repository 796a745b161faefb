"""Propensity strata: of equal size, with labels that stay in theirs, and a p that is never 0."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.numerics.statistics.regression import Relabelling, p_of, propensity, relabelled, strata

QUICK = settings(deadline=None, max_examples=examples(30))


def test_strata_by_hand():
    assert strata(np.arange(6.0), 3).tolist() == [0, 0, 1, 1, 2, 2]
    assert strata(np.zeros(4), 3).tolist() == [0] * 4, "equal scores stay together"
    assert strata(np.zeros(0)).tolist() == []


@QUICK
@given(seed=st.integers(0, 10**6), count=st.integers(1, 40))
def test_strata_are_ordered_and_of_nearly_equal_size(seed, count):
    score = np.random.default_rng(seed).random(200)
    found = strata(score, count)
    assert (np.diff(found[np.argsort(score)]) >= 0).all()
    sizes = np.bincount(found, minlength=count)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 2


@QUICK
@given(seed=st.integers(0, 10**6))
def test_labels_keep_their_number_in_every_stratum(seed):
    rng = np.random.default_rng(seed)
    member, stratum = rng.random(60) < 0.3, rng.integers(0, 5, 60)
    found = relabelled(member, stratum, rng)
    assert [found[stratum == s].sum() for s in range(5)] == [member[stratum == s].sum() for s in range(5)]


def test_every_order_of_labels_is_as_likely():
    rng, stratum = np.random.default_rng(0), np.array([0, 0, 0, 1])
    times = sum(relabelled(np.array([True, False, False, True]), stratum, rng) for _ in range(3000))
    assert times[:3] / 3000 == pytest.approx(np.full(3, 1 / 3), abs=0.03)
    assert times[3] == 3000


def test_the_propensity_of_a_known_logit():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(20_000), rng.normal(size=20_000)])
    true = 1 / (1 + np.exp(-(x @ [-1.0, 0.8])))
    assert propensity(x, rng.random(20_000) < true) == pytest.approx(true, abs=0.03)


def test_p_counts_draws_at_least_as_large_and_the_observed_one():
    draws = np.array([0.0, 1.0, 2.0, math.nan])
    assert [p_of(x, draws) for x in (3.0, 2.0, 1.5, -1.0)] == [0.25, 0.5, 0.5, 1.0]
    assert p_of(1.0, np.zeros(0)) == 1
    assert math.isnan(p_of(math.nan, draws)), "nothing observed is no small p"


@QUICK
@given(seed=st.integers(0, 10**6))
def test_labels_laid_out_once_are_drawn_as_by_sorting_strata_and_random_numbers(seed):
    rng = np.random.default_rng(seed)
    member, stratum = rng.random(60) < 0.3, rng.integers(0, 5, 60)
    clear = np.empty_like(member)
    key = np.random.default_rng(seed).random(60)
    clear[np.argsort(stratum, kind="stable")] = member[np.lexsort((key, stratum))]
    found = Relabelling.of(stratum).draw(member, np.random.default_rng(seed))
    assert found.tolist() == clear.tolist()


def test_nobody_is_relabelled_without_rows():
    nobody = np.zeros(0, bool)
    assert relabelled(nobody, np.zeros(0, np.int64), np.random.default_rng(0)).tolist() == []


def test_there_are_thirty_strata_and_a_small_penalty():
    assert np.bincount(strata(np.arange(60.0))).tolist() == [2] * 30
    x = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)])
    member = np.arange(40) % 3 == 0
    fitted = propensity(x, member)
    slope = np.polyfit(x[:, 1], np.log(fitted / (1 - fitted)), 1)[0]
    assert x.T @ (member - fitted) == pytest.approx([0, 1e-3 * slope], abs=1e-8)


def test_a_layout_by_hand():
    laid = Relabelling.of(np.array([1, 0, 1, 2, 0]))
    assert (laid.order.tolist(), laid.ends) == ([1, 4, 0, 2, 3], (2, 4, 5))
    assert Relabelling.of(np.zeros(0, np.int64)).ends == ()
    assert [p_of(1.0, np.array([np.nan, 1.0, np.inf])), p_of(1.0, np.array([2.0, 0.0, -np.inf]))] == [1.0, 2 / 3]
