"""Laws of every counterfactually fair predictor of the registry, and each system by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.baselines import predictors
from tasks.baselines.predictors import FittingSettings, moved_scores
from tasks.baselines.variational import (
    ADVAE,
    DCEVAE,
    MCEVAE,
    NOT_BUILT,
    PREDICTORS,
    WIDTHS,
    EncodedFold,
    change_over_last_epochs,
    discrepancies,
    fold_scores,
    penalty_of,
)
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.methods.gcfn.algorithm.predictors import PredictorSettings, Scales, seen_by, train
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation

SMALL = FittingSettings(hidden=(8,), epochs=2)
AUTOENCODERS = {"mcevae": MCEVAE, "dcevae": DCEVAE, "advae": ADVAE}


def drawn(n=400, seed=0):
    return synthetic(Synthetic(rows=n, noise=0.5, beta_3=2.0), np.random.default_rng(seed))


def with_categories(n=200):
    """Three categories, a covariate and a mediator with categories, and no number among the mediators."""
    rng = np.random.default_rng(1)
    group, job = rng.integers(3, size=n), rng.integers(4, size=n).astype(float)
    covariates = Columns(("age",), (Kind.CONTINUOUS,), ((),), rng.normal(size=(n, 1)))
    mediators = Columns(("job",), (Kind.NOMINAL,), (("a", "b", "c", "d"),), job[:, None])
    return Mediation(covariates, group, ("x", "y", "z"), mediators), rng.random(n) < 0.5


@pytest.mark.parametrize("name", PREDICTORS)
def test_scores_are_probabilities_and_equal_for_equal_settings(name):
    rows = drawn()
    mediation, other = rows.mediation(), drawn(n=50, seed=1).mediation()
    one, again, elsewhere = (
        PREDICTORS[name](mediation, rows.favourable, replace(SMALL, seed=seed)).scores(other) for seed in (3, 3, 4)
    )
    assert one.shape == (50,)
    assert ((one > 0) & (one < 1)).all()
    assert (one == again).all()
    assert (one != elsewhere).any()


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_cannot_be_learnt_is_refused_with_a_reason(name):
    rows = drawn(n=100)
    with pytest.raises(DataQualityError, match="labels of one kind only"):
        PREDICTORS[name](rows.mediation(), np.ones(100, dtype=bool), SMALL)
    model = PREDICTORS[name](rows.mediation(), rows.favourable, SMALL)
    with pytest.raises(DataQualityError, match="must be those of the training"):
        model.scores(with_other_names(rows.mediation()))


def with_other_names(mediation):
    return replace(mediation, covariates=replace(mediation.covariates, names=("another",)))


@pytest.mark.parametrize("name", PREDICTORS)
def test_categories_are_scored_or_refused(name):
    mediation, label = with_categories()
    if name == "cfan":
        with pytest.raises(DataQualityError, match="needs a mediator that is a number"):
            PREDICTORS[name](mediation, label, SMALL)
        return
    model = PREDICTORS[name](mediation, label, SMALL)
    imagined = np.tile(mediation.mediators.values, (2, 3, 1, 1))
    assert np.isfinite(model.scores(mediation)).all()
    assert moved_scores(model, mediation, imagined).shape == (2, 2, 200)
    if name in AUTOENCODERS:
        found = model.imagine(mediation)
        assert found.shape == (1, 3, 200, 1)
        assert set(np.unique(found)) <= {0.0, 1.0, 2.0, 3.0}
        own = found[0, mediation.category, np.arange(200)]
        assert (own == mediation.mediators.values).all()


@pytest.mark.parametrize("name", PREDICTORS)
def test_inputs_of_a_fold(name):
    rows = drawn(n=300)
    inputs = np.hstack([rows.covariates, rows.mediators])
    fold = EncodedFold(
        inputs[:200], rows.favourable[:200], rows.category[:200] == 1, inputs[200:], rows.category[200:] == 1,
        np.array([True, False]),
    )  # fmt: skip
    found = fold_scores(name, fold, SMALL)
    assert found.shape == (100,)
    assert (found == fold_scores(name, fold, SMALL)).all()


def test_cfua_needs_a_covariate_and_autoencoders_a_mediator():
    rows = drawn(n=50)
    fold = EncodedFold(
        rows.mediators, rows.favourable, rows.category == 1, rows.mediators, rows.category == 1, np.array([False])
    )
    with pytest.raises(DataQualityError, match="would see nothing of an applicant"):
        fold_scores("cfua", fold, SMALL)
    with pytest.raises(DataQualityError, match="needs a mediator"):
        fold_scores("mcevae", replace(fold, covariate=np.array([True])), SMALL)


def test_what_is_not_built_has_a_reason_and_no_system():
    assert set(NOT_BUILT) == {"cfgan"}
    assert not set(NOT_BUILT) & set(PREDICTORS)
    assert all(NOT_BUILT.values())


def test_rows_are_moved_one_by_one():
    class Asking:
        def scores(self, rows):
            return 10.0 * rows.category + rows.mediators.values[:, 0]

    mediation, _ = with_categories(n=6)
    imagined = np.random.default_rng(0).normal(size=(2, 3, 6, 1))
    found = moved_scores(Asking(), mediation, imagined)
    for network in range(2):
        for row, own in enumerate(mediation.category):
            others = [10 * a + imagined[network, a, row, 0] for a in range(3) if a != own]
            assert found[network, :, row] == pytest.approx(others)


def test_cfua_and_cfan_score_alike_in_every_category():
    rows = drawn(n=2_000)
    mediation, truly = rows.mediation(), rows.potential[None]
    for name, most in (("cfua", 0.0), ("cfan", 0.02)):
        model = PREDICTORS[name](mediation, rows.favourable, SMALL)
        assert np.abs(moved_scores(model, mediation, truly) - model.scores(mediation)).max() <= most


def test_cfua_is_that_of_the_audit():
    rows = drawn()
    mediation = rows.mediation()
    laid_out = Scales.of(mediation).applicants(mediation, rows.potential[None], rows.favourable)
    audited = train(
        seen_by("covariates", laid_out), PredictorSettings(fairness=0.0, hidden=(8,), epochs=2, device="cpu")
    )
    found = PREDICTORS["cfua"](mediation, rows.favourable, SMALL).scores(mediation)
    assert (found == audited.scores(seen_by("covariates", laid_out))).all()


def test_the_criterion_row_by_row():
    rng = np.random.default_rng(0)
    score, weights = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    score, alike = score @ score.T, np.equal.outer([0, 1, 1, 0, 1], [0, 1, 1, 0, 1]).astype(float)
    by_hand = []
    for w in weights.T:
        joint = sum(w[i] * w[j] * score[i, j] * alike[i, j] for i in range(5) for j in range(5))
        crossed = sum(w[i] * (score @ w)[i] * (alike @ w)[i] for i in range(5))
        by_hand.append(joint - 2 * crossed + (w @ score @ w) * (w @ alike @ w))
    found = predictors.criterion(*(torch.from_numpy(each) for each in (score, alike, weights)))
    assert float(found) == pytest.approx(np.mean(by_hand))


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000))
def test_the_criterion_is_small_where_scores_do_not_tell_of_the_category(seed):
    rng = np.random.default_rng(seed)
    covariates = torch.from_numpy(rng.integers(2, size=(64, 1)).astype(float))
    category = torch.from_numpy(rng.integers(2, size=64))
    alike = (category[:, None] == category[None, :]).double()
    weights = predictors.ridge_weights(covariates.float()).double()
    told, alone = (
        float(predictors.criterion(predictors.gaussian(scores[:, None], 0.5), alike, weights))
        for scores in (category.double(), covariates[:, 0])
    )
    assert told > 10 * abs(alone)


def test_the_penalty_of_hscic_brings_scores_together():
    rows = drawn(n=800)
    mediation, quick = rows.mediation(), FittingSettings(hidden=(16,), epochs=10, learning_rate=0.02)
    moved = []
    for weight in (0.0, 20.0):
        model = PREDICTORS["hscic"](mediation, rows.favourable, replace(quick, fairness=weight))
        moved.append(np.square(moved_scores(model, mediation, rows.potential[None]) - model.scores(mediation)).mean())
    assert moved[1] < 0.3 * moved[0]


def test_discrepancies_pair_by_pair():
    rng = np.random.default_rng(0)
    noise, of = rng.normal(size=(6, 2)), np.array([0, 0, 1, 1, 1, 0])

    def mean(first, second):
        pairs = [(noise[i], noise[j]) for i in first for j in second]
        return np.mean([sum(np.exp(-((a - b) ** 2).sum() / (2 * w**2)) for w in WIDTHS) for a, b in pairs])

    everybody, weights = range(6), np.stack([(of == k) / (of == k).sum() for k in (0, 1)], axis=1)
    by_hand = []
    for k in (0, 1):
        own = np.flatnonzero(of == k)
        by_hand.append(mean(own, own) - 2 * mean(own, everybody) + mean(everybody, everybody))
    found = discrepancies(torch.from_numpy(noise), torch.from_numpy(weights))
    assert found.numpy() == pytest.approx(by_hand)


@pytest.mark.parametrize("name", AUTOENCODERS)
def test_a_penalty_is_larger_where_noise_tells_of_the_category_and_pushes_it_back(name):
    rng = np.random.default_rng(0)
    category = torch.eye(2)[torch.from_numpy(rng.integers(2, size=256))]
    noise, other = (torch.from_numpy(rng.normal(size=(256, 2))).float() for _ in range(2))
    told = replace(AUTOENCODERS[name], hidden=16, learning_rate=0.02)
    found = {}
    for apart in (0.0, 2.0):
        penalty, shift = penalty_of(told, 2, 2, np.random.default_rng(1)), torch.full((), apart, requires_grad=True)
        for _ in range(40):
            value = penalty(noise + shift * category[:, :1], other, category, torch.arange(256).roll(1))
        value.backward()
        found[apart] = float(value.detach()), float(shift.grad)
    assert found[2.0][0] > found[0.0][0] + 0.1
    assert found[2.0][1] > 0  # descent brings the categories together


def test_an_autoencoder_imagines_better_than_nobody():
    rows = drawn(n=600)
    mediation = rows.mediation()
    model = PREDICTORS["mcevae"](mediation, rows.favourable, replace(SMALL, epochs=15))
    other, everybody = 1 - mediation.category, np.arange(600)
    error = np.square(model.imagine(mediation)[0, other, everybody] - rows.potential[other, everybody]).mean()
    assert error < 0.5 * np.square(rows.mediators - rows.potential[other, everybody]).mean()
    assert model.history[-1] > model.history[0]


def test_the_change_of_the_bound_by_hand():
    history = np.array([0.0, 7.0, *[2.0] * 5, *[2.5] * 5])
    assert change_over_last_epochs(history) == pytest.approx(0.2)
