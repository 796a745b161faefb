"""Missing values against decisions: counts by a clear loop, and AUCs of missingness that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.preprocessing import algorithm
from tasks.preprocessing.algorithm import FOLDS, auc_of_missingness, beyond_chance, by_reason, lacking


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 4))
def test_counts_are_those_of_a_loop(seed, n, f):
    rng = np.random.default_rng(seed)
    flags, favourable, named = rng.random((n, f)) < 0.4, rng.random(n) < 0.5, rng.integers(0, f, n)
    found = lacking(flags, favourable, named)
    for j in range(f):
        mine = [i for i in range(n) if flags[i, j]]
        other = [i for i in mine if named[i] != j]
        assert found.flagged[j] == len(mine)
        assert found.favourable[j] == sum(favourable[i] for i in mine)
        assert found.elsewhere[j] == len(other)
        assert found.favourable_elsewhere[j] == sum(favourable[i] for i in other)


def test_exempt_applications_are_told_from_the_others():
    gone, exempt = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], bool), np.array([0, 1, 1, 0], bool)
    assert by_reason(gone, exempt).astype(int).tolist() == [[1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_the_auc_of_one_flag_is_half_of_one_plus_the_difference_of_its_shares():
    """Flagged: 60 of 100 denied, 10 of 100 approved; so AUC = (1 + 0.6 - 0.1) / 2 = 0.75, the same in every fold."""
    favourable = np.repeat([False, True], 100)
    flag = np.zeros(200, bool)
    for fold in range(FOLDS):  # folds take rows in order within a kind of decision
        flag[20 * fold : 20 * fold + 12] = True
        flag[100 + 20 * fold : 100 + 20 * fold + 2] = True
    assert auc_of_missingness(flag[:, None], favourable) == pytest.approx(0.75)


def test_missingness_at_random_ranks_nobody_and_a_leak_ranks_everybody():
    rng = np.random.default_rng(3)
    favourable = rng.random(4000) < 0.7
    at_random = rng.random((4000, 3)) < 0.2
    assert not beyond_chance(auc_of_missingness(at_random, favourable), favourable.sum(), (~favourable).sum())
    assert auc_of_missingness(~favourable[:, None], favourable) == pytest.approx(1)
    mixed = np.column_stack([at_random, ~favourable & (rng.random(4000) < 0.3)])
    assert beyond_chance(auc_of_missingness(mixed, favourable), favourable.sum(), (~favourable).sum())


def test_many_rows_that_lack_the_same_are_fitted_as_one(monkeypatch):
    rng = np.random.default_rng(5)
    flags = rng.random((3_000, 4)) < np.array([0.02, 0.3, 0.0, 0.1])
    favourable = rng.random(3_000) < 0.7 - 0.3 * flags[:, 1]
    row_by_row = auc_of_missingness(flags, favourable)
    monkeypatch.setattr(algorithm, "MANY", 2_999)
    assert auc_of_missingness(flags, favourable) == pytest.approx(row_by_row, abs=1e-4)


@pytest.mark.parametrize("denied", [0, FOLDS - 1])
def test_too_few_of_either_decision_give_no_auc(denied):
    favourable = np.arange(50) >= denied
    assert np.isnan(auc_of_missingness(np.arange(100).reshape(50, 2) % 3 == 0, favourable))


def test_nothing_missing_gives_no_auc():
    assert np.isnan(auc_of_missingness(np.zeros((40, 2), bool), np.arange(40) % 2 == 0))
    assert np.isnan(auc_of_missingness(np.zeros((40, 0), bool), np.arange(40) % 2 == 0))


def test_chance_goes_as_far_as_random_ranks_do():
    rng = np.random.default_rng(0)
    aucs = []
    for _ in range(2000):
        scores = rng.random(60)
        aucs.append((scores[:20, None] < scores[20:]).mean())
    assert np.mean([beyond_chance(auc, 20, 40) for auc in aucs]) == pytest.approx(0.05, abs=0.02)
