"""Training: the same on every run and after an interruption, divergence, folds, and the frontier."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from schemas.errors import DataQualityError, IntegrityError
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending, generate
from tasks.methods.cec.algorithm.mitigations import Population, ablation, evaluate, lambda_grid, non_dominated, split
from tasks.metrics.compare.algorithm import performance
from tasks.numerics.networks.network import NetSettings, TrainingSettings
from tasks.numerics.networks.training import DivergedError, TrainingRows, train

SMALL = TrainingSettings(net=NetSettings((16, 8)), epochs=4, learning_rate=0.003, device="cpu")


def training_rows(n=300, seed=0):
    drawn = generate(SyntheticLending(rows=n), np.random.default_rng(seed))
    match = np.random.default_rng(seed + 1).permutation(n)
    match[:20] = -1
    return TrainingRows(drawn.features, drawn.favourable, drawn.protected, match)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_runs_are_the_same_to_the_bit_and_leave_no_trace():
    rows, state, threads = training_rows(), torch.get_rng_state(), torch.get_num_threads()
    first, second = train(rows, SMALL), train(rows, SMALL)
    assert same(first.checkpoint.tensors, second.checkpoint.tensors)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    other = train(rows, replace(SMALL, seed=1))
    assert not same(first.checkpoint.tensors, other.checkpoint.tensors)


@pytest.mark.parametrize("after", [1, 3])
def test_interrupted_and_resumed_is_uninterrupted(after):
    rows, states = training_rows(), []

    def interrupt(state):
        states.append(state)
        if state.epoch == after:
            raise KeyboardInterrupt

    whole = train(rows, SMALL)
    with pytest.raises(KeyboardInterrupt):
        train(rows, SMALL, interrupt)
    resumed = train(rows, SMALL, resume=states[-1])
    assert resumed.checkpoint.epoch == 4
    assert same(whole.checkpoint.tensors, resumed.checkpoint.tensors)


def test_a_run_does_not_go_on_with_other_rows():
    state = train(training_rows(), replace(SMALL, epochs=1)).checkpoint
    with pytest.raises(IntegrityError, match="other rows or with other settings"):
        train(training_rows(seed=5), SMALL, resume=state)


def test_each_term_brings_down_what_it_is_about():
    rows = training_rows(600)
    settings = replace(SMALL, epochs=25, lambda_eo=0.0, lambda_cec=5.0)
    history = train(rows, settings).checkpoint.history
    assert history.shape == (25, 4)
    assert history[-1, 3] < 0.8 * history[0, 3]
    plain = train(rows, replace(settings, lambda_cec=0.0)).checkpoint.history
    assert plain[-1, 1] < 0.8 * plain[0, 1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_no_number_stops_with_the_last_good_state():
    rows = training_rows()
    with pytest.raises(DivergedError, match="epoch 1, batch") as stopped:
        train(rows, replace(SMALL, learning_rate=1e38))
    assert stopped.value.last_good.epoch == 0
    assert all(bool(torch.isfinite(value).all()) for value in stopped.value.last_good.tensors.values())


def test_labels_of_one_kind_are_refused():
    rows = training_rows()
    with pytest.raises(DataQualityError, match="one kind only"):
        train(replace(rows, favourable=np.ones(300, bool)), SMALL)


def test_the_baseline_is_the_mean_of_the_label_and_group():
    inputs = np.array([[1.0], [3.0], [10.0], [7.0]])
    rows = TrainingRows(inputs, np.array([1, 1, 1, 0], bool), np.array([0, 0, 1, 1], bool), np.full(4, -1))
    assert rows.baseline().ravel().tolist() == [2, 2, 10, 7]


def test_folds_fit_nothing_to_the_rows_they_hold_out():
    drawn = generate(SyntheticLending(rows=400), np.random.default_rng(0))
    population = Population(drawn.features, drawn.favourable, drawn.protected)
    folds = list(split(population, 5, seed=0))
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(400))
    assert folds[0].inputs[folds[0].train].mean(axis=0) == pytest.approx(np.zeros(20), abs=1e-12)
    variants = ablation(SMALL)
    outcomes = list(
        evaluate(population, folds[0], variants, SMALL,
                 lambda fold: np.arange(len(fold.train))[::-1].copy(),
                 lambda net, fold: {"rows": len(fold.test)})
    )  # fmt: skip
    assert [outcome.variant.name for outcome in outcomes] == ["pred", "pred+EO", "pred+CEC", "full"]
    assert all(outcome.consistency == {"rows": 80} for outcome in outcomes)
    assert all(0 <= outcome.performance.eo_gap <= 1 for outcome in outcomes)


def test_performance_by_hand():
    """Group 0: TPR 1/2, FPR 0; group 1: TPR 1, FPR 1/2; positive rates 1/4 and 3/4."""
    favourable = np.array([1, 1, 0, 0] * 2, bool)
    protected = np.repeat([False, True], 4)
    predicted = np.array([1, 0, 0, 0, 1, 1, 1, 0], bool)
    found = performance(favourable, protected, predicted, None)
    assert (found.eo_gap, found.sp_gap, found.positive_rate) == (0.5, 0.5, 0.5)
    assert found.f1 == pytest.approx(2 * 0.75 * 0.75 / 1.5)
    assert np.isnan(found.auc)
    assert not found.collapsed
    assert performance(favourable, protected, np.ones(8, bool), None).collapsed


def test_gaps_are_those_of_fairlearn():
    library = pytest.importorskip("fairlearn.metrics", reason="fairlearn is a test reference")
    favourable, protected, predicted = np.random.default_rng(0).random((3, 200)) < 0.4
    found = performance(favourable, protected, predicted, None)
    expected = library.equalized_odds_difference(favourable, predicted, sensitive_features=protected)
    assert found.eo_gap == pytest.approx(expected)
    expected = library.demographic_parity_difference(favourable, predicted, sensitive_features=protected)
    assert found.sp_gap == pytest.approx(expected)


def test_the_frontier_is_what_nobody_beats():
    f1 = np.array([0.8, 0.8, 0.7, 0.9, 0.8])
    eo = np.array([0.1, 0.2, 0.0, 0.3, np.nan])
    cec = np.array([0.3, 0.3, 0.3, 0.5, 0.1])
    assert non_dominated(f1, eo, cec).tolist() == [True, False, True, True, False]
    assert non_dominated(*np.ones((3, 2))).all()  # equals do not beat one another
    assert len(lambda_grid()) == 36
