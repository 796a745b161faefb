"""The check that favourable and unfavourable are the right way round: known truth, hand-worked values, plain loops."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.preprocessing.algorithm import LEAST, direction

GROUPS = ([0.66, 0.17, 0.12, 0.05], [0.8, 0.2])


def lender(rng: np.random.Generator, n: int, groups: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Income (some missing), debt ratio and loan to value of applicants, and who was approved; no group is harmed."""
    group = rng.choice(len(groups), n, p=groups)
    income = rng.lognormal(4, 0.5, n) * np.where(group == 1, np.exp(rng.normal(0, 0.2)), 1)
    debt, value = rng.normal(36, 9, n), 100 * rng.beta(6, 2, n)
    z = -1.4 - 1.2 * (np.log(income) - 4) + 0.045 * (debt - 36) + 0.02 * (value - 75) + rng.normal(0, 0.6, n)
    income[rng.random(n) < 0.05] = np.nan
    return np.column_stack([income, debt, value]), rng.random(n) > 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(("n", "groups"), [(1500, GROUPS[0]), (1500, GROUPS[1]), (300, GROUPS[1])])
def test_honest_lenders_pass_and_exchanged_decisions_are_caught(n, groups):
    """100 lenders each; the binomial 99 % point of the targets (1 % of honest, 99 % of exchanged) is 4 of 100."""
    rng = np.random.default_rng(11)
    drawn = [lender(rng, n, groups) for _ in range(100)]
    assert sum(direction(x, [1, -1, -1], y).reversed for x, y in drawn) <= 4
    assert sum(direction(x, [1, -1, -1], ~y).reversed for x, y in drawn) >= 96


def test_the_standard_error_is_the_spread_of_the_auc():
    rng = np.random.default_rng(5)
    found = [direction(*(lambda x, y: (x, [1, -1, -1], y))(*lender(rng, 600, GROUPS[1]))) for _ in range(200)]
    spread = np.std([f.auc for f in found])
    assert np.mean([f.error for f in found]) == pytest.approx(spread, rel=0.15)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_the_auc_is_the_share_of_pairs_in_the_right_order(seed, levels):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, levels, 60).astype(float), rng.random(60) < 0.5
    if min(y.sum(), (~y).sum()) < LEAST:
        return
    pairs = [(a > b) + (a == b) / 2 for a in x[y] for b in x[~y]]
    assert direction(x[:, None], [1], y).auc == pytest.approx(np.mean(pairs))
    assert direction(x[:, None], [-1], y).auc == pytest.approx(1 - np.mean(pairs))
    assert direction(x[:, None], [1], ~y).auc == pytest.approx(1 - np.mean(pairs))


def test_a_missing_value_counts_as_the_middle():
    y = np.repeat([True, False], 20)
    x = np.full(40, np.nan)
    assert direction(x[:, None], [1], y).auc == 0.5


@pytest.mark.parametrize("kind", [True, False])
def test_few_decisions_of_either_kind_are_not_checked(kind):
    y = np.full(100, kind)
    y[: LEAST - 1] = not kind
    assert direction(np.arange(100.0)[:, None], [1], y) is None
    y[LEAST - 1] = not kind
    assert direction(np.arange(100.0)[:, None], [1], y) is not None


def test_without_a_directed_column_nothing_is_checked():
    assert direction(np.empty((50, 0)), [], np.arange(50) < 25) is None
