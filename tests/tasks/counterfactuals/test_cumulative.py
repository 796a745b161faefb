"""The cumulative logit against the libraries that have one, and the laws of ordered distributions."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from tasks.counterfactuals.algorithm import mechanisms
from tasks.counterfactuals.algorithm.mechanisms import fit_cumulative


def drawn(seed: int, n: int = 400, categories: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    causes = np.column_stack([rng.normal(3, 2, n), rng.integers(0, 2, n)]).astype(float)
    latent = 0.5 * causes[:, 0] - 1.0 * causes[:, 1] + rng.logistic(size=n)
    return causes, np.searchsorted(np.quantile(latent, np.arange(1, categories) / categories), latent).astype(float)


def test_the_gradient_is_that_of_the_loss() -> None:
    causes, codes = drawn(1)
    x, place = (causes - causes.mean(axis=0)) / causes.std(axis=0), codes.astype(np.int64)
    point = np.array([0.3, -0.2, -1.0, 0.1, 0.4])
    loss, gradient = (lambda p, i=i: mechanisms._loss(p, x, place, 4)[i] for i in (0, 1))
    assert check_grad(loss, gradient, point) < 1e-6


def test_it_is_the_ordered_model_of_statsmodels_but_for_the_slight_penalty() -> None:
    ordered = pytest.importorskip("statsmodels.miscmodels.ordinal_model", reason="statsmodels is not installed")
    causes, codes = drawn(2, n=3000)
    theirs = ordered.OrderedModel(codes.astype(int), causes, distr="logit").fit(method="bfgs", disp=False)
    ours = fit_cumulative(causes, codes)
    assert ours.slopes / ours.scale == pytest.approx(np.asarray(theirs.params)[:2], rel=5e-3)
    assert ours.predict_proba(causes) == pytest.approx(np.asarray(theirs.predict(causes)), abs=2e-3)


def test_of_two_categories_it_is_logistic_regression() -> None:
    causes, codes = drawn(3, categories=2)
    ours = fit_cumulative(causes, codes)
    x = (causes - ours.centre) / ours.scale
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, codes)
    assert ours.slopes == pytest.approx(theirs.coef_[0], abs=1e-4)
    assert ours.predict_proba(causes) == pytest.approx(theirs.predict_proba(x), abs=1e-5)


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 10**6), categories=st.integers(2, 7))
def test_distributions_are_whole_and_ordered_along_a_cause(seed: int, categories: int) -> None:
    causes, codes = drawn(seed, n=120, categories=categories)
    ours = fit_cumulative(causes, codes)
    line = np.column_stack([np.linspace(-5, 10, 20), np.zeros(20)])
    chances = ours.predict_proba(line)
    assert (chances >= 0).all()
    assert chances.sum(axis=1) == pytest.approx(1.0)
    below = np.cumsum(chances, axis=1)
    steps = np.diff(below, axis=0) * np.sign(ours.slopes[0])
    assert (steps <= 1e-12).all(), "a cause moves all categories the same way"


def test_separable_data_and_constant_causes_stay_finite() -> None:
    causes = np.column_stack([np.arange(30.0), np.ones(30)])
    ours = fit_cumulative(causes, np.repeat([0.0, 2.0, 5.0], 10))
    assert np.isfinite(ours.slopes).all()
    assert ours.slopes[1] == 0
    assert ours.classes_.tolist() == [0, 2, 5]
    assert ours.predict_proba(causes).argmax(axis=1).tolist() == np.repeat([0, 1, 2], 10).tolist()
