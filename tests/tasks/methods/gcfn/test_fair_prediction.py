"""The fair predictor: its loss against plain loops, the trade-off, the baselines, its measures, and given deciders."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score

from research.gcfn.truth import rates, treated_differently, unfairness
from schemas.errors import DataQualityError
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.methods.gcfn.algorithm.predictors import (
    CFAN,
    CFUA,
    SWEEP,
    PredictorSettings,
    Scales,
    in_other_categories,
    regularisation,
    seen_by,
    sweep,
    train,
)

SMALL = PredictorSettings(hidden=(16,), epochs=4, device="cpu")


def drawn(n=1_500, seed=0):
    return synthetic(Synthetic(rows=n, noise=0.3, beta_3=2.0), np.random.default_rng(seed))


def applicants(rows, networks=2):
    """Laid out with the true counterfactuals, and with the mean of people alike as a second opinion."""
    mean = rows.mean.copy()
    mean[rows.category, np.arange(len(rows.category))] = rows.mediators
    imagined = np.stack([rows.potential, mean])[:networks]
    return Scales.of(rows.mediation()).applicants(rows.mediation(), imagined, rows.favourable)


def test_other_categories_row_by_row():
    rng = np.random.default_rng(0)
    category, imagined = rng.integers(3, size=8), rng.normal(size=(2, 3, 8, 2))
    found = in_other_categories(imagined, category)
    assert found.shape == (2, 2, 8, 2)
    for j in range(2):
        for i in range(8):
            others = [imagined[j, a, i] for a in range(3) if a != category[i]]
            assert (found[j, :, i] == others).all()


def test_inputs_are_on_the_scale_of_the_training_rows():
    rows = drawn()
    found = applicants(rows)
    assert found.mediators.std() == pytest.approx(1)
    assert found.imagined.shape == (2, 1, 1_500, 1)
    other = rows.potential[1 - rows.category, np.arange(1_500)]
    by_hand = (other - rows.mediators.mean()) / rows.mediators.std()
    assert found.imagined[0, 0] == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("worst", ["batch", "row"])
def test_the_regularisation_row_by_row(worst):
    rng = np.random.default_rng(0)
    scores, imagined = rng.random(5), rng.random((3, 2, 5))
    by_network = [
        [np.mean([(scores[i] - imagined[j, a, i]) ** 2 for a in range(2)]) for i in range(5)] for j in range(3)
    ]
    expected = max(map(np.mean, by_network)) if worst == "batch" else np.max(by_network, axis=0).mean()
    found = regularisation(torch.from_numpy(scores), torch.from_numpy(imagined), worst)
    assert float(found) == pytest.approx(expected)
    if worst == "batch":
        assert unfairness(scores, imagined).max() == pytest.approx(expected)


def test_training_is_the_same_every_time_and_leaves_no_trace():
    rows, state = applicants(drawn()), torch.get_rng_state()
    one, again, other = (train(rows, replace(SMALL, seed=seed, lipschitz=2.0)) for seed in (0, 0, 1))
    assert (one.scores(rows) == again.scores(rows)).all()
    assert (one.scores(rows) != other.scores(rows)).any()
    assert torch.equal(state, torch.get_rng_state())
    assert one.history.shape == (4, 2)


def test_more_weight_on_fairness_moves_scores_less_and_costs_accuracy():
    rows = drawn(4_000)
    laid_out = applicants(rows)
    moved, right = [], []
    for weight in (0.0, 0.5, 10.0):
        predictor = train(laid_out, replace(SMALL, epochs=15, fairness=weight))
        scores = predictor.scores(laid_out)
        moved.append(unfairness(scores, predictor.imagined_scores(laid_out)).max())
        right.append(rates(rows.favourable, scores >= 0.5).accuracy)
        assert np.isnan(predictor.history[:, 1]).all() == (weight == 0)
    assert moved[0] > 1.5 * moved[1] > 3 * moved[2]
    assert right[0] > right[2] > 0.5


def test_what_sees_covariates_alone_moves_nobody():
    laid_out = seen_by(CFUA.sees, applicants(drawn()))
    predictor = train(laid_out, replace(SMALL, fairness=CFUA.fairness))
    assert unfairness(predictor.scores(laid_out), predictor.imagined_scores(laid_out)) == pytest.approx([0, 0])


def test_what_sees_the_noise_moves_nobody_and_beats_covariates():
    rows = drawn(4_000)
    laid_out = applicants(rows)
    seen = seen_by(CFAN.sees, laid_out, rows.noise / 0.3)
    predictor = train(seen, replace(SMALL, epochs=15, fairness=CFAN.fairness))
    assert unfairness(predictor.scores(seen), predictor.imagined_scores(seen))[0] < 1e-9
    blind = seen_by(CFUA.sees, laid_out)
    without = train(blind, replace(SMALL, epochs=15, fairness=0.0))
    right = [
        np.mean((one.scores(each) >= 0.5) == rows.favourable) for one, each in ((predictor, seen), (without, blind))
    ]
    assert right[0] > right[1]
    with pytest.raises(ValueError, match="give what a causal model abducted"):
        seen_by(CFAN.sees, laid_out)


@pytest.mark.parametrize("bound", [0.5, 3.0])
def test_the_logit_changes_no_faster_than_the_bound(bound):
    rows = applicants(drawn())
    net = train(rows, replace(SMALL, hidden=(16, 8), lipschitz=bound, fairness=0.0)).net
    inputs = torch.from_numpy(np.hstack([rows.covariates, rows.mediators])).float()
    with torch.no_grad():
        change = (net(inputs[1:]) - net(inputs[:-1])).abs().squeeze()
    assert (change <= bound * (inputs[1:] - inputs[:-1]).norm(dim=1) + 1e-5).all()
    assert [type(layer).__name__ for layer in net] == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]


def test_what_cannot_be_learnt_from_is_refused():
    rows = applicants(drawn(300))
    with pytest.raises(DataQualityError, match="one kind only"):
        train(replace(rows, label=np.ones(300, bool)), SMALL)
    with pytest.raises(DataQualityError, match="no counterfactual mediators"):
        train(replace(rows, imagined=rows.imagined[:0]), SMALL)
    with pytest.raises(DataQualityError, match="diverged in epoch 1"):
        train(rows, replace(SMALL, learning_rate=1e38))


def test_the_sweep_has_every_weight():
    assert [variant.fairness for variant in sweep()] == list(SWEEP)
    assert sweep((0.5,))[0].name == "GCFN, lambda 0.5"


def test_rates_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    label, predicted, category = rng.random(200) < 0.4, rng.random(200) < 0.6, rng.integers(3, size=200)
    for one in range(3):
        of = category == one
        found = rates(label[of], predicted[of])
        tn, fp, fn, tp = confusion_matrix(label[of], predicted[of]).ravel()
        assert (found.fpr, found.fnr) == (fp / (fp + tn), fn / (fn + tp))
        assert found.accuracy == accuracy_score(label[of], predicted[of])
        assert found.ppv == precision_score(label[of], predicted[of])
    nobody = rates(np.ones(3, bool), np.zeros(3, bool))
    assert np.isnan(nobody.ppv)
    assert np.isnan(nobody.fpr)
    assert nobody.fnr == 1


def test_decisions_that_differ_by_value():
    given, fair = np.array([1, 1, 0, 0, 1], bool), np.array([1, 0, 1, 0, 1], bool)
    values, rows, differing = treated_differently(given, fair, np.array([3.0, 1.0, 1.0, 1.0, 2.0]))
    assert (values.tolist(), rows.tolist(), differing.tolist()) == ([1, 2, 3], [3, 1, 1], [2, 0, 0])
