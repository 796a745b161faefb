"""Refits of a logit on resamples: against one fit at a time, against scikit-learn, and where little is left to fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tasks.numerics.encoding import gather
from tasks.numerics.statistics import regression
from tasks.numerics.statistics.regression import fit_logit


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.random((n, 3)), rng.random(n) < 0.03])
    return x, rng.random(n) < expit(x @ [1.0, 2.0, -1.5, 0.3, -2.0])


def one_at_a_time(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    drawn = [np.repeat(np.arange(len(x)), count) for count in counts.T]
    return np.array([fit_logit(x[at], y[at].astype(float), ridge=1.0).coefficients for at in drawn]).T


def test_all_at_once_are_one_at_a_time() -> None:
    x, y = rows(400)
    counts = regression.resampled(np.zeros(400, np.int64), 30, np.random.default_rng(1))
    found = regression.refitted(x, y, counts, 1.0)
    assert found == pytest.approx(one_at_a_time(x, y, counts), abs=1e-4)
    assert found.std(axis=1).min() > 0.05  # they are not all the fit of all rows


def test_blocks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(300)
    counts = regression.resampled(np.zeros(300, np.int64), 7, np.random.default_rng(1))
    whole = regression.refitted(x, y, counts, 1.0)
    monkeypatch.setattr(regression, "CELLS", 600)
    assert regression.refitted(x, y, counts, 1.0) == pytest.approx(whole, abs=1e-9)


def test_it_is_the_regression_of_scikit_learn_with_c_1() -> None:
    """As converged as it can be; as it is used, with its own tolerance, decisions are the same but for a few."""
    x, y = rows(1500)
    counts = regression.resampled(np.zeros(1500, np.int64), 2, np.random.default_rng(2))
    found = regression.refitted(x, y, counts, 1.0)
    for draw, coefficients in enumerate(found.T):
        at = np.repeat(np.arange(1500), counts[:, draw])
        exact = LogisticRegression(tol=1e-10, max_iter=10_000).fit(x[at, 1:], y[at])
        assert coefficients == pytest.approx([*exact.intercept_, *exact.coef_[0]], abs=1e-4)
        used = LogisticRegression(max_iter=1000).fit(x[at, 1:], y[at]).decision_function(x[:, 1:])
        cuts = np.quantile(used, 0.2), np.quantile(x @ coefficients, 0.2)
        assert np.mean((used >= cuts[0]) == (x @ coefficients >= cuts[1])) > 0.99


@given(st.integers(2, 40), st.integers(0, 1000))
def test_few_rows_separated_ones_and_labels_of_one_kind_have_a_fit(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), np.arange(n) > n / 2, np.full(n, 0.5), rng.random(n)])
    y = x[:, 1] > 0 if seed % 3 else np.zeros(n, bool) if seed % 2 else rng.random(n) < 0.5
    counts = regression.resampled(np.zeros(n, np.int64), 5, rng)
    found = regression.refitted(x, y, counts, 1.0)
    assert np.isfinite(found).all()
    slopes = one_at_a_time(x, y, counts)
    assert expit(x @ found) == pytest.approx(expit(x @ slopes), abs=1e-3)


def test_resamples_draw_as_many_of_each_part() -> None:
    part = np.array([0, 1, 1, 0, 1, 1, 1])
    counts = regression.resampled(part, 50, np.random.default_rng(3))
    assert (counts[part == 0].sum(axis=0) == 2).all()
    assert (counts[part == 1].sum(axis=0) == 5).all()
    assert counts.max() > 1


def test_the_cut_denies_as_many_as_are_to_be_denied() -> None:
    """0.1 twice, 0.2 three times, 0.4 once: two denials leave 0.2 approved, three denials fall into a tie."""
    index, count = np.array([0.4, 0.1, 0.2, 9.0]), np.array([1, 2, 3, 0], np.int32)
    assert regression.rate_matched(index, count, 0) == 0.1
    assert regression.rate_matched(index, count, 2) == 0.2
    assert regression.rate_matched(index, count, 5) == 0.4
    assert regression.rate_matched(index, count, 6) == 0.4


def test_resamples_that_do_not_come_to_rest_are_fitted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(200)
    counts = regression.resampled(np.zeros(200, np.int64), 4, np.random.default_rng(1))
    monkeypatch.setattr(regression, "REFITS_STEPS", 1)
    monkeypatch.setattr(regression, "CELLS", 400)
    assert regression.refitted(x, y, counts, 1.0) == pytest.approx(one_at_a_time(x, y, counts), abs=1e-7)


def test_a_resample_rests_when_no_coefficient_moves() -> None:
    x, y = rows(200)
    counts = regression.resampled(np.zeros(200, np.int64), 6, np.random.default_rng(1))
    found = regression.refitted(x, y, counts, 1.0)
    p = expit(x @ found)
    gradient = x.T @ (counts * (y[:, None] - p)) - np.array([[0.0], [1], [1], [1], [1]]) * found
    assert np.abs(gradient).max() < 2e-3
    assert counts.dtype == np.uint8


def test_parts_are_drawn_in_turn_and_every_row_may_be() -> None:
    part, rng = np.array([1, 0, 1, 0, 0]), np.random.default_rng(8)
    counts = regression.resampled(part, 300, rng)
    assert counts.shape == (5, 300)
    assert counts.mean(axis=1) == pytest.approx(np.ones(5), abs=0.15)
    again = np.random.default_rng(8)
    drawn = np.bincount(again.integers(0, 3, 3), minlength=3)
    assert counts[part == 0, 0].tolist() == drawn.tolist()


@pytest.mark.parametrize("steps", [regression.REFITS_STEPS, 1])
def test_rows_that_are_alike_are_fitted_as_one(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(900), rng.integers(0, 3, (900, 2)) / 2])
    y = rng.random(900) < expit(x @ [0.4, 1.5, -1.0])
    counts = regression.resampled(np.zeros(900, np.int64), 5, rng)
    monkeypatch.setattr(regression, "REFITS_STEPS", steps)
    expected, places = regression.refitted(x, y, counts, 1.0), gather(x)
    order = places.order
    found = regression.refitted(places.at, y[order], counts[order], 1.0, places)
    assert len(places.at) == 9
    assert found == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 60), st.integers(0, 1000))
def test_the_cut_is_that_of_sorted_rows(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = rng.normal(size=n) if seed % 3 else rng.integers(0, 4, n) / 8
    count = rng.integers(0, 4, n).astype(np.uint8)
    count[rng.integers(0, n)] = 1
    spread = np.sort(np.repeat(index, count))
    for denied in range(len(spread) + 2):
        assert regression.rate_matched(index, count, denied) == spread[min(denied, len(spread) - 1)]
