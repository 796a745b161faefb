"""Refits of mechanisms from the fit to all rows: they find what a fit from the start finds."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import LinearRegression

from schemas.audit.causal import CausalGraph, Mechanism
from schemas.terms import Kind
from tasks.counterfactuals.algorithm import causal_model
from tasks.counterfactuals.algorithm import mechanisms as fast
from tasks.counterfactuals.algorithm.causal_model import Roots
from tasks.counterfactuals.algorithm.mechanisms import TOLERANCE, Line, _loss, fit_cumulative, refit_cumulative
from tasks.numerics.encoding import Columns


def drawn(seed, n=400, categories=4):
    rng = np.random.default_rng(seed)
    causes = np.column_stack([rng.normal(3, 2, n), rng.integers(0, 2, n)]).astype(float)
    latent = 0.5 * causes[:, 0] - causes[:, 1] + rng.logistic(size=n)
    return causes, np.searchsorted(np.quantile(latent, np.arange(1, categories) / categories), latent).astype(float)


def test_derivatives_are_those_of_the_likelihood():
    causes, codes = drawn(1)
    rows = fast.Sorted.of((causes - causes.mean(axis=0)) / causes.std(axis=0), codes.astype(np.int64))
    b = np.array([0.3, -0.2, -1.0, 0.1, 1.4])
    gradient, curvature = fast.derivatives(rows, b)
    assert gradient == pytest.approx(approx_fprime(b, lambda at: fast.likelihood(rows, at), 1e-6), abs=2e-3)
    by_difference = [-approx_fprime(b, lambda at, j=j: fast.derivatives(rows, at)[0][j], 1e-6) for j in range(len(b))]
    assert curvature == pytest.approx(np.array(by_difference), abs=2e-3)


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 10**6), categories=st.integers(2, 7))
def test_a_resample_fitted_from_the_whole_is_the_one_fitted_from_the_start(seed, categories):
    causes, codes = drawn(seed, categories=categories)
    sample = np.random.default_rng(seed).integers(0, len(codes), len(codes))
    found = refit_cumulative(fit_cumulative(causes, codes), causes[sample], codes[sample])
    start = fit_cumulative(causes[sample], codes[sample])
    assert found.slopes == pytest.approx(start.slopes, abs=1e-3)
    assert found.predict_proba(causes) == pytest.approx(start.predict_proba(causes), abs=1e-4)
    # the slopes of the loss that the search from the start minimises are 0 to more digits than it reaches
    x, place = (causes[sample] - found.centre) / found.scale, codes[sample].astype(np.int64)
    free = np.concatenate([found.slopes, found.cuts[:1], np.log(np.diff(found.cuts))])
    assert np.abs(_loss(free, x, place, categories)[1]).max() < 1e-9


def test_a_resample_without_a_category_is_fitted_from_the_start():
    causes, codes = drawn(3)
    some = codes > 0
    found, start = refit_cumulative(fit_cumulative(causes, codes), causes[some], codes[some]), None
    start = fit_cumulative(causes[some], codes[some])
    assert found.classes_.tolist() == [1, 2, 3]
    assert (found.slopes == start.slopes).all()


def test_a_cause_that_does_not_vary_in_the_resample_has_no_slope():
    causes, codes = drawn(4)
    some = causes[:, 1] == 0
    found = refit_cumulative(fit_cumulative(causes, codes), causes[some], codes[some])
    assert found.slopes[1] == 0
    assert found.slopes[0] == pytest.approx(fit_cumulative(causes[some], codes[some]).slopes[0], abs=1e-3)


def test_a_separated_resample_has_the_slopes_of_the_penalty_or_is_fitted_from_the_start():
    causes = np.arange(60.0)[:, None]
    codes = np.repeat([0.0, 1.0, 2.0], 20)
    noisy = codes.copy()
    noisy[[5, 25, 45]] = [1, 2, 0]
    found = refit_cumulative(fit_cumulative(causes, noisy), causes, codes)
    assert found.slopes == pytest.approx(fit_cumulative(causes, codes).slopes, abs=1e-2)


def test_a_line_is_the_linear_regression_of_scikit_learn():
    rng = np.random.default_rng(5)
    causes = np.column_stack([rng.normal(2e5, 8e4, 300), rng.integers(0, 2, 300), rng.integers(0, 2, 300)])
    causes = np.column_stack([causes, causes[:, 1]])  # and one column twice
    values = causes[:, 0] * 3 + 1e4 * causes[:, 1] + rng.normal(0, 100, 300)
    ours, theirs = Line.of(causes, values), LinearRegression(tol=TOLERANCE).fit(causes, values)
    assert ours.coef_ == pytest.approx(theirs.coef_, rel=1e-10)
    assert ours.predict(causes) == pytest.approx(theirs.predict(causes), rel=1e-12)


def test_a_model_fitted_again_moves_people_as_one_fitted_from_the_start():
    rng = np.random.default_rng(6)
    group = rng.integers(0, 3, 900).astype(np.int32)
    income = np.exp(rng.normal(4, 0.5, 900)) - 8 * (group == 1)
    band = np.clip(np.round(3 - income / 40 + (group == 2) + rng.logistic(size=900)), 0, 4)
    purpose = (rng.random(900) < 0.3 + 0.2 * (group == 1)).astype(float)
    columns = Columns(
        ("income", "band", "purpose"),
        (Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL),
        ((), ("a", "b", "c", "d", "e"), ("buy", "build")),
        np.column_stack([income, band, purpose]),
    )
    edges = (("race", "income"), ("race", "band"), ("income", "band"), ("race", "purpose"))
    graph = CausalGraph(edges=edges, mechanisms={"income": Mechanism(kind="linear", bounds=(0, None))})
    roots = Roots(("race",), group[:, None], (("white", "Black", "Asian"),))
    sample = np.sort(rng.integers(0, 900, 600))
    whole = causal_model.fit(graph, columns, roots, np.random.default_rng(1))
    some = replace(roots, codes=roots.codes[sample])
    again = causal_model.refit(whole, columns.rows(sample), some)
    start = causal_model.fit(graph, columns.rows(sample), some, np.random.default_rng(1))
    assert (again.seed, again.rows, again.nodes) == (start.seed, start.rows, start.nodes)
    assert all((again.fitted_categories[place] == seen).all() for place, seen in start.fitted_categories.items())
    members = np.flatnonzero(group > 0)
    one, other = (causal_model.counterfactuals(each, columns, roots, members, {"race": 0}) for each in (again, start))
    assert (one.row == other.row).all()
    assert one.values[:, 0] == pytest.approx(other.values[:, 0], rel=1e-9)
    assert (one.values[:, 1:] == other.values[:, 1:]).mean() > 0.999  # a band may turn in the seventh digit of a fit
