"""Least squares against statsmodels: coefficients and three covariances."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from tasks.methods.adjusted.algorithm.design import Design
from tasks.methods.adjusted.algorithm.estimators import Rung, linear_rows
from tasks.methods.adjusted.algorithm.regressions import CollinearError, fit_linear


@pytest.fixture
def drawn():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(400), rng.normal(1e4, 2e3, 400), rng.normal(size=(400, 3))])
    y = (x[:, 2] + rng.normal(size=400) * (1 + np.abs(x[:, 3])) > 0.5).astype(float)
    return y, x, rng.integers(0, 23, 400).astype(np.int32)


def test_coefficients_and_covariances_are_those_of_statsmodels(drawn):
    y, x, cluster = drawn
    ours, theirs = fit_linear(y, x, cluster), sm.OLS(y, x).fit()
    assert_allclose(ours.coefficients, theirs.params, rtol=1e-9)
    assert_allclose(ours.classical, theirs.cov_params(), rtol=1e-9)
    assert_allclose(ours.hc1, theirs.get_robustcov_results("HC1").cov_params(), rtol=1e-8)
    clustered = theirs.get_robustcov_results("cluster", groups=cluster)
    assert_allclose(ours.cr1, clustered.cov_params(), rtol=1e-7)
    assert_allclose(ours.t, theirs.tvalues, rtol=1e-9)
    assert (ours.df, ours.clusters) == (395, 23)


def test_robust_errors_are_clustered_where_there_are_clusters(drawn):
    y, x, cluster = drawn
    alone, clustered = fit_linear(y, x), fit_linear(y, x, cluster)
    assert alone.cr1 is None
    assert_allclose(alone.se, np.sqrt(np.diag(alone.hc1)))
    assert_allclose(clustered.se, np.sqrt(np.diag(clustered.cr1)))


def test_every_row_its_own_cluster_is_hc1_but_for_the_factor(drawn):
    y, x, _ = drawn
    n = len(y)
    fit = fit_linear(y, x, np.arange(n, dtype=np.int32))
    assert_allclose(fit.cr1, fit.hc1, rtol=1e-10)  # n / (n - 1) * (n - 1) / (n - p) is n / (n - p)


def test_one_cluster_has_no_error(drawn):
    y, x, _ = drawn
    assert np.isnan(fit_linear(y, x, np.zeros(len(y), np.int32)).cr1).all()


def test_a_collinear_column_is_refused(drawn):
    y, x, _ = drawn
    with pytest.raises(CollinearError, match="column 5"):
        fit_linear(y, np.column_stack([x, x[:, 1] - 2 * x[:, 3]]))
    with pytest.raises(CollinearError, match="too few"):
        fit_linear(y[:5], x[:5])


def test_a_rung_whose_columns_are_no_more_than_its_rows_says_so_and_has_no_number(drawn):
    y, x, _ = drawn
    group = (x[:, 2] > 0).astype(np.int32)
    columns = np.column_stack([np.ones(400), group, x[:, 1], 2 * x[:, 1]])
    names = ("intercept", "few", "a", "twice a")
    design = Design(y, columns, group, 0, {1: 1}, names, (-1, -1, 0, 1), (2, 4), ((), ()), None)
    rung = Rung(1, ("all",), design, 0.95, np.bincount(group), np.bincount(group, y).astype(np.int32), (1,))
    ((row,),) = linear_rows(rung, ("a", "b"), np.random.default_rng(1), bootstrap=False).values()
    assert "column 3" in row.reason
    assert np.isnan(row.value)
    ((below,),) = linear_rows(replace(rung, number=0), (), np.random.default_rng(1), bootstrap=False).values()
    assert below.value == pytest.approx(y[group == 1].mean() - y[group == 0].mean())
