"""Applicants with known counterfactuals: what the equations say, row by row."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from schemas.terms import Kind
from tasks.ingest.synthetic.algorithm.lending import LawSchool, People, Synthetic, law_school, synthetic


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return People(*(rng.integers(2, size=(2, n)) * 1.0), gender=rng.integers(2, size=n))


def draws(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "rows",
    [
        synthetic(Synthetic(rows=300), draws()),
        law_school(LawSchool(rows=300), people(), draws()),
        law_school(LawSchool("sin", rows=300), people(), draws()),
    ],
)
def test_in_their_own_category_applicants_are_as_observed(rows):
    assert (rows.potential[rows.category, np.arange(300)] == rows.mediators).all()
    mediation = rows.mediation()
    assert mediation.mediators.kinds == (Kind.CONTINUOUS,) * rows.mediators.shape[1]
    assert (mediation.mediators.values == rows.mediators).all()
    chosen = rows.rows(np.array([5, 2]))
    assert (chosen.potential == rows.potential[:, [5, 2]]).all()
    assert (chosen.category == rows.category[[5, 2]]).all()


def test_synthetic_mediators_row_by_row():
    settings = Synthetic(rows=50, beta_2=2.0, beta_3=-3.0, noise=0.4)
    rows = synthetic(settings, draws())
    for i in range(50):
        for a in (0, 1):
            expected = 2 * rows.covariates[i, 0] - 3 * a
            assert rows.mean[a, i, 0] == pytest.approx(expected)
            assert rows.potential[a, i, 0] == pytest.approx(expected + rows.noise[i, 0])


def test_synthetic_shares_follow_their_logits():
    rows = synthetic(Synthetic(rows=40_000, beta_1=1.5, beta_5=-1.0, beta_6=2.0), draws())
    assert rows.noise.std() == pytest.approx(0.1, rel=0.03)
    high = rows.covariates[:, 0] > 1
    error = 4 * np.sqrt(0.25 / high.sum())
    assert rows.category[high].mean() == pytest.approx(expit(1.5 * rows.covariates[high, 0]).mean(), abs=error)
    logit = -rows.covariates[high, 0] + 2 * rows.mediators[high, 0]
    assert rows.favourable[high].mean() == pytest.approx(expit(logit).mean(), abs=error)


def test_law_school_equations_row_by_row():
    settings = LawSchool(rows=40, w_a=0.7, w_x1=-1.0, w_x2=0.3, w_m1=2.0, w_m2=0.5, scale_2=3.0, w_a_2=-0.2, noise=0.3)
    sigmoid = law_school(settings, people(), draws())
    sin = law_school(replace(settings, form="sin"), people(), draws())
    for i in range(40):
        base, u = sigmoid.covariates[i] @ [-1.0, 0.3], sigmoid.noise[i]
        for a in (0, 1):
            by_hand = [2 * expit(0.7 * a + base + u[0]), 0.5 + 3 * expit(-0.2 * a + base + u[1])]
            assert sigmoid.potential[a, i] == pytest.approx(by_hand)
            by_hand = [0.7 * a - np.sin(np.pi * (base + u[0])), -0.2 * a - np.sin(np.pi * (base + u[1]))]
            assert sin.potential[a, i] == pytest.approx(by_hand)


def test_as_printed_both_mediators_have_the_same_scale():
    rows = law_school(LawSchool(rows=200, w_m1=1.7, w_m2=0.4, noise=0.0), people(), draws())
    assert rows.potential[:, :, 1] - 0.4 == pytest.approx(rows.potential[:, :, 0])


@pytest.mark.parametrize("form", ["sigmoid", "sin"])
def test_the_mean_is_that_over_the_noise(form):
    settings = LawSchool(form, rows=20_000, noise=0.5)
    same = People(np.array([1.0]), np.array([0.0]), np.array([1]))
    rows = law_school(settings, same, draws())
    error = 4 * rows.mediators.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(rows.mediators.mean(axis=0) - rows.mean[1, 0]) < error).all()
    assert not np.allclose(rows.mean[1, 0], law_school(replace(settings, noise=0.0), same, draws()).mean[1, 0])


def test_a_seed_is_a_data_set():
    one, again, other = (synthetic(Synthetic(rows=30), draws(seed)) for seed in (1, 1, 2))
    assert (one.mediators == again.mediators).all()
    assert (one.mediators != other.mediators).any()
