"""The quantile map: exact where the truth is a shift and a scale, and bound to its laws everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional import fit_mean, fit_quantiles, residuals
from tasks.counterfactuals.algorithm.diagnostics import against_truth
from tasks.ingest.synthetic.algorithm.lending import LawSchool, People, Synthetic, law_school, synthetic
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation


def drawn(n=1_500, noise=0.5, seed=0):
    return synthetic(Synthetic(rows=n, noise=noise), np.random.default_rng(seed))


def students(form):
    rng = np.random.default_rng(0)
    people = People(*(rng.integers(2, size=(2, 500)) * 1.0), gender=rng.integers(2, size=500))
    return law_school(LawSchool(form, rows=3_000), people, rng)


@pytest.mark.parametrize(
    "rows", [drawn(noise=0.1), drawn(), students("sigmoid"), students("sin")], ids=["0.1", "0.5", "sigmoid", "sin"]
)
def test_it_finds_the_person_on_rows_it_was_not_fitted_to(rows):
    half = len(rows.category) // 2
    learn, held = rows.rows(np.arange(half)), rows.rows(np.arange(half, 2 * half))
    imagined = fit_quantiles(learn.mediation(), 0).imagine(held.mediation())
    found = against_truth(imagined, held.mediation(), held.potential, held.mean)
    assert (np.abs(found.slope - 1) < 0.05).all()
    assert found.counterfactual_generated[0] < 0.02


def test_it_finds_a_noise_that_grows_in_one_category_and_the_flip_turns_it_round():
    """M = x + a + (1 + 2 a x^2) u: only the rank is kept, and not the noise."""
    rng = np.random.default_rng(0)
    n = 6_000
    x, u, category = rng.uniform(-1, 1, n), rng.normal(0, 0.3, n), rng.integers(2, size=n)
    mean = np.stack([x, x + 1])
    potential = mean + np.stack([u, (1 + 2 * x**2) * u])
    values = potential[category, np.arange(n)]
    one = ("x",), (Kind.CONTINUOUS,), ((),)
    rows = Mediation(Columns(*one, x[:, None]), category, ("a", "b"), Columns(*one, values[:, None]))
    fitted = fit_quantiles(rows, 0)
    truth = (rows, potential[..., None], mean[..., None])
    assert against_truth(fitted.imagine(rows), *truth).slope.item() == pytest.approx(1, abs=0.06)
    assert against_truth(fitted.imagine(rows, flipped=True), *truth).slope.item() == pytest.approx(-1, abs=0.06)


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 999), k=st.integers(2, 3))
def test_laws(seed, k):
    """Observed where observed; every row by itself; ranks are kept; there and back again."""
    rng = np.random.default_rng(seed)
    category = rng.permutation(np.arange(150) % k)
    values = rng.normal(size=(150, 1)) * (1 + category[:, None]) + category[:, None]
    x = Columns(("x",), (Kind.CONTINUOUS,), ((),), rng.normal(size=(150, 1)))
    rows = Mediation(x, category, tuple("abc"[:k]), Columns(("m",), (Kind.CONTINUOUS,), ((),), values))
    fitted = fit_quantiles(rows, 0)
    imagined = fitted.imagine(rows)
    assert (imagined[0, category, np.arange(150)] == values).all()
    order = rng.permutation(150)
    assert fitted.imagine(rows.rows(order)) == pytest.approx(imagined[:, :, order])
    other = (category + 1) % k
    there = replace(rows, category=other, mediators=replace(rows.mediators, values=imagined[0, other, np.arange(150)]))
    inside = (np.abs(fitted.ranks(rows)[:, 0] - 0.5) < 0.4) & (np.abs(fitted.ranks(there)[:, 0] - 0.5) < 0.4)
    assert fitted.ranks(there)[inside] == pytest.approx(fitted.ranks(rows)[inside], abs=1e-6)
    assert fitted.imagine(there)[0, category, np.arange(150)][inside] == pytest.approx(values[inside], abs=1e-6)


def test_names_of_categories_do_not_matter():
    rows = drawn().mediation()
    turned = replace(rows, category=1 - rows.category)
    one, other = (fit_quantiles(each, 0).imagine(each) for each in (rows, turned))
    assert other[:, ::-1] == pytest.approx(one, abs=0.1)
    assert np.abs(other[:, ::-1] - one).mean() < 0.02


def test_ranks_are_uniform_in_every_category():
    rows = drawn(4_000)
    held = drawn(4_000, seed=1).mediation()
    ranks = fit_quantiles(rows.mediation(), 0).ranks(held)[:, 0]
    for category in (0, 1):
        assert kstest(ranks[held.category == category], "uniform").statistic < 0.05


def test_what_is_no_number_is_refused():
    rows = drawn(200).mediation()
    grades = Columns(("grade",), (Kind.ORDINAL,), (("a", "b"),), (rows.mediators.values > 0).astype(float))
    with pytest.raises(DataQualityError, match="'grade' is none"):
        fit_quantiles(replace(rows, mediators=grades), 0)


def test_the_conditional_mean_is_near_the_truth_and_leaves_no_mean():
    rows = drawn(4_000)
    mediation = rows.mediation()
    found = fit_mean(mediation, 0).potential(mediation.covariates)
    assert np.square(found - rows.mean).mean() < 0.01
    left = residuals(found, rows.category, rows.mediators)
    assert left.mean() == pytest.approx(0, abs=0.01)


def test_without_covariates_the_mean_is_that_of_the_category():
    rows = drawn(1_000).mediation()
    none = replace(rows, covariates=Columns((), (), (), np.zeros((1_000, 0))))
    found = fit_mean(none, 0).potential(none.covariates)
    for category in (0, 1):
        assert found[category, 0, 0] == pytest.approx(rows.mediators.values[rows.category == category].mean(), abs=1e-3)
