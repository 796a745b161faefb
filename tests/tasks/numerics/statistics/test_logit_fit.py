"""The logit and its effects against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, log_expit

from tasks.methods.adjusted.algorithm.regressions import change, effect_of
from tasks.numerics.arrays import Floats, Repeated
from tasks.numerics.statistics.regression import LogitFit, fit_logit, log_likelihood, logistic, standard_error


def errors(fit: LogitFit, x: Floats, y: Floats, cluster: np.ndarray | None = None) -> Floats:
    """Sandwich errors of the coefficients."""
    return np.array([standard_error(column, cluster) for column in fit.influence(x, y).T])


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats, np.ndarray]:
    rng = np.random.default_rng(3)
    n = 900
    cluster = rng.integers(0, 30, n).astype(np.int32)
    group = (rng.random(n) < 0.3).astype(float)
    numbers = rng.normal(size=(n, 3)) + 0.5 * group[:, None] + 0.3 * rng.normal(size=30)[cluster][:, None]
    x = np.column_stack([np.ones(n), group, numbers])
    y = (rng.random(n) < 1 / (1 + np.exp(1 - x[:, 1:] @ [0.6, 0.8, -0.5, 0.2]))).astype(float)
    return x, y, cluster


def test_coefficients_and_sandwich(data: tuple[Floats, Floats, np.ndarray]) -> None:
    x, y, _ = data
    ours, theirs = fit_logit(x, y), sm.Logit(y, x).fit(disp=0, tol=1e-12, cov_type="HC0")
    assert ours.separated == ""
    np.testing.assert_allclose(ours.coefficients, theirs.params, atol=1e-9)
    np.testing.assert_allclose(errors(ours, x, y), theirs.bse, rtol=1e-8)


def test_clusters_differ_from_statsmodels_by_its_second_factor_alone(data: tuple[Floats, Floats, np.ndarray]) -> None:
    """Ours is G / (G - 1); statsmodels multiplies the variance by (n - 1) / (n - p) too."""
    x, y, cluster = data
    theirs = sm.Logit(y, x).fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": cluster})
    factor = np.sqrt((len(y) - 1) / (len(y) - x.shape[1]))
    np.testing.assert_allclose(errors(fit_logit(x, y), x, y, cluster) * factor, theirs.bse, rtol=1e-8)


@pytest.mark.parametrize("clustered", [False, True])
def test_effect_over_all_rows(data: tuple[Floats, Floats, np.ndarray], clustered: bool) -> None:
    x, y, cluster = data
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": cluster}} if clustered else {"cov_type": "HC0"}
    theirs = sm.Logit(y, x).fit(disp=0, tol=1e-12, **kind).get_margeff(dummy=True)
    factor = np.sqrt((len(y) - 1) / (len(y) - x.shape[1])) if clustered else 1.0
    fit = fit_logit(x, y)
    ours = effect_of(change(fit.coefficients, x, 1, slice(1, 2)), fit, x, y, 0.95, cluster if clustered else None)
    assert ours.value == pytest.approx(theirs.margeff[0], abs=1e-9)
    assert ours.se * factor == pytest.approx(theirs.margeff_se[0], rel=1e-7)


def test_gradient_of_the_effect_is_its_derivative(data: tuple[Floats, Floats, np.ndarray]) -> None:
    x, y, _ = data
    b, step = fit_logit(x, y).coefficients, 1e-6
    rows = x[x[:, 1] == 1]
    numeric = [
        (change(b + step * unit, rows, 1, slice(1, 2)).effect - change(b - step * unit, rows, 1, slice(1, 2)).effect)
        / (2 * step)
        for unit in np.eye(len(b))
    ]
    np.testing.assert_allclose(change(b, rows, 1, slice(1, 2)).gradient, numeric, atol=1e-8)


def test_separated_data_are_told(data: tuple[Floats, Floats, np.ndarray]) -> None:
    x, _, _ = data
    assert fit_logit(x, (x[:, 2] > 0).astype(float)).separated
    assert fit_logit(x, np.where(x[:, 1] == 1, 0.0, (x[:, 3] + x[:, 4] > 0.3))).separated


def test_a_large_intercept_and_sure_rows_are_no_separation() -> None:
    rng = np.random.default_rng(6)
    score = 20 + 3 * rng.normal(size=4_000)
    x = np.column_stack([np.ones(4_000), score])
    y = (rng.random(4_000) < 1 / (1 + np.exp(-2.5 * (score - 20)))).astype(float)
    fit = fit_logit(x, y)
    assert fit.separated == ""
    assert fit.coefficients[0] < -30
    assert fit.fitted.min() < 1e-8
    np.testing.assert_allclose(x.T @ (y - fit.fitted), 0, atol=1e-6)


@pytest.mark.parametrize("far", [1.0, 40.0])
def test_rows_far_out_that_a_column_tells_are_separated_whatever_its_scale(far: float) -> None:
    """The larger the value, the smaller the coefficient at which rounding ends all steps."""
    rng = np.random.default_rng(7)
    alone = np.arange(500) < 12
    x = np.column_stack([np.ones(500), rng.normal(size=500), far * alone])
    assert fit_logit(x, np.where(alone, 1.0, rng.random(500) < 0.3)).separated


def test_a_ridge_fit_of_separated_data_is_finite(data: tuple[Floats, Floats, np.ndarray]) -> None:
    x, _, _ = data
    y = (x[:, 2] > 0).astype(float)
    fit = fit_logit(x, y, ridge=0.1)
    penalty = 0.1 * np.r_[0, fit.coefficients[1:]]
    np.testing.assert_allclose(x.T @ (y - fit.fitted), penalty, atol=1e-6)


def test_columns_that_are_repeated_on_some_rows_are_fitted_as_a_matrix_of_them_is() -> None:
    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(500), rng.random(500) < 0.4, rng.normal(size=(500, 3))])
    y = (rng.random(500) < expit(x @ [-1, 0.4, 0.5, 0, -0.3])).astype(np.float64)
    repeated = Repeated(x, np.flatnonzero(x[:, 1]), np.array([2, 4]))
    plain = np.hstack([x, x[:, [2, 4]] * x[:, [1]]])
    np.testing.assert_array_equal(repeated[:], plain)
    some = repeated.taken(slice(None, None, 3))
    assert isinstance(some, Repeated)
    np.testing.assert_array_equal(some[:], plain[::3])
    one, other = fit_logit(repeated, y), fit_logit(plain, y)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-12)
    np.testing.assert_allclose(one.inverse, other.inverse, atol=1e-12)


def test_the_logistic_and_the_likelihood_are_those_of_scipy() -> None:
    index = np.array([-800.0, -40, -3, 0, 0.1, 38, 800])
    np.testing.assert_allclose(logistic(index), expit(index), rtol=1e-14, atol=1e-300)
    y = np.array([0.0, 1, 0, 1, 0, 1, 1])
    assert log_likelihood(index, y) == pytest.approx(log_expit(np.where(y > 0, index, -index)).sum(), rel=1e-14)
