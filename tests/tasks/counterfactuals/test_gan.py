"""Training of generators: the same every time, alone or together, interrupted or not; and what it is there for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from schemas.errors import DataQualityError, IntegrityError, SpecError
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.diagnostics import TERMS, against_truth, convergence, log_loss_alone
from tasks.counterfactuals.algorithm.gan.networks import PAPER, GanSettings
from tasks.counterfactuals.algorithm.gan.training import GanDivergedError, train
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.numerics.encoding import Columns
from tasks.numerics.networks.training import Checkpoint
from tasks.numerics.problem import Mediation

SMALL = GanSettings(networks=2, hidden=16, epochs=4, batch=64, device="cpu")


def applicants(n=400, seed=0, noise=0.5):
    return synthetic(Synthetic(rows=n, noise=noise), np.random.default_rng(seed))


def mixed(n=300, k=3, seed=0):
    """Three categories; income, a history of three grades, an occupation of four, of which one is typical for each."""
    rng = np.random.default_rng(seed)
    category = rng.permutation(np.arange(n) % k)
    job = np.where(rng.random(n) < 0.6, category, rng.integers(4, size=n))
    values = np.column_stack([rng.normal(50, 20, n) + 30 * category, rng.integers(3, size=n), job]).astype(float)
    kinds, labels = (Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL), ((), tuple("abc"), tuple("wxyz"))
    covariates = Columns(("age",), (Kind.CONTINUOUS,), ((),), rng.normal(40, 10, (n, 1)))
    return Mediation(
        covariates, category, tuple("ABC"[:k]), Columns(("income", "history", "job"), kinds, labels, values)
    )


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_runs_are_the_same_to_the_bit_and_leave_no_trace():
    rows, state, threads = applicants().mediation(), torch.get_rng_state(), torch.get_num_threads()
    first, second = train(rows, SMALL), train(rows, SMALL)
    assert same(first.checkpoint.tensors, second.checkpoint.tensors)
    assert (first.imaginer.imagine(rows) == second.imaginer.imagine(rows)).all()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    assert not same(first.checkpoint.tensors, train(rows, replace(SMALL, seed=1)).checkpoint.tensors)


@pytest.mark.parametrize("after", [1, 3])
def test_interrupted_and_resumed_is_uninterrupted(after):
    rows, states = mixed(), []

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


def test_a_finished_checkpoint_imagines_without_training():
    rows, told = mixed(), []
    whole = train(rows, SMALL)
    again = train(rows, SMALL, told.append, resume=whole.checkpoint)
    assert told == []
    assert (again.imaginer.imagine(rows) == whole.imaginer.imagine(rows)).all()


def test_a_run_does_not_go_on_with_other_rows_or_settings():
    state = train(applicants().mediation(), replace(SMALL, epochs=1)).checkpoint
    for rows, settings in ((applicants(seed=5), replace(SMALL, epochs=1)), (applicants(), SMALL)):
        with pytest.raises(IntegrityError, match="other rows or with other settings"):
            train(rows.mediation(), settings, resume=state)


def test_without_covariates_and_without_numbers_it_still_trains():
    rows = mixed()
    jobs = Columns(*(part[2:] for part in (rows.mediators.names, rows.mediators.kinds, rows.mediators.categories)),
                   rows.mediators.values[:, 2:])  # fmt: skip
    bare = Mediation(Columns((), (), (), np.zeros((300, 0))), rows.category, rows.categories, jobs)
    assert train(bare, SMALL).imaginer.imagine(bare).shape == (2, 3, 300, 1)


@pytest.mark.parametrize("rows", [applicants().mediation(), mixed()])
def test_an_ensemble_is_its_networks_trained_alone(rows):
    together = train(rows, replace(SMALL, networks=3))
    imagined = together.imaginer.imagine(rows)
    for number in range(3):
        alone = train(rows, replace(SMALL, networks=1, first=number))
        close = np.isclose(imagined[number], alone.imaginer.imagine(rows)[0], rtol=1e-3, atol=1e-3)
        assert close.mean() > 0.995  # a category can turn on the last digit
        ours, theirs = together.checkpoint.history[:, number], alone.checkpoint.history[:, 0]
        torch.testing.assert_close(ours, theirs, atol=0.01, rtol=0.01)
    assert not np.allclose(imagined[0], imagined[1])


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, **PAPER)])
def test_what_is_imagined_are_mediators(settings):
    rows = mixed()
    imaginer = train(rows, settings).imaginer
    imagined = imaginer.imagine(rows)
    assert imagined.shape == (2, 3, 300, 3)
    assert (imagined[:, rows.category, np.arange(300)] == rows.mediators.values).all()
    assert np.isfinite(imagined[..., 0]).all()
    assert set(np.unique(imagined[..., 1])) <= {0, 1, 2}
    assert set(np.unique(imagined[..., 2])) <= {0, 1, 2, 3}
    chosen = np.array([7, 3, 250])
    assert imaginer.imagine(rows.rows(chosen)) == pytest.approx(imagined[:, :, chosen], abs=1e-4)


def test_nobody_is_imagined_whom_the_training_has_not_seen():
    imaginer = train(mixed(), replace(SMALL, epochs=1)).imaginer
    rows = mixed()
    with pytest.raises(DataQualityError, match="has not seen 'D'"):
        imaginer.imagine(replace(rows, categories=("A", "B", "D")))
    with pytest.raises(DataQualityError, match=r"covariates must be those of the training.*age"):
        imaginer.imagine(replace(rows, covariates=replace(rows.covariates, names=("height",))))


def test_too_few_rows_for_a_batch_are_refused():
    with pytest.raises(SpecError, match="a batch of 1 has no spread"):
        train(mixed(), replace(SMALL, batch=1))
    with pytest.raises(DataQualityError, match="fewer rows than the 256 of a batch"):
        train(mixed(), replace(SMALL, batch=256))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_weight_that_is_no_number_stops_with_the_last_good_state():
    rows, states = applicants().mediation(), []
    with pytest.raises(GanDivergedError, match="not finite in epoch 1; the state after epoch 0 is kept") as stopped:
        train(rows, replace(SMALL, learning_rate=1e38), states.append)
    assert states == []
    last_good = stopped.value.last_good
    assert (stopped.value.epoch, last_good.epoch) == (1, 0)
    assert all(bool(torch.isfinite(value).all()) for value in last_good.tensors.values())


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_the_default_finds_the_person_and_the_paper_does_not(noise):
    rows = applicants(3_000, noise=noise)
    learn, held = rows.rows(np.arange(2_000)), rows.rows(np.arange(2_000, 3_000))
    slopes = []
    for settings in (GanSettings(), GanSettings(**PAPER)):
        brief = replace(settings, networks=2, epochs=30, batch=128, learning_rate=2e-3, device="cpu")
        imagined = train(learn.mediation(), brief).imaginer.imagine(held.mediation())
        slopes.append(against_truth(imagined, held.mediation(), held.potential, held.mean).slope.mean())
    default, paper = slopes
    assert default > 0.85
    assert paper < 0.7


def test_generated_occupations_follow_the_category():
    """Nobody's occupation is identified, but the shares of a category are those that were observed in it."""
    rows = mixed(1_200, k=2)
    brief = replace(SMALL, networks=3, hidden=64, epochs=60, learning_rate=2e-3)
    jobs = train(rows, brief).imaginer.imagine(rows)[..., 2]
    for own, other in ((0, 1), (1, 0)):
        observed = (rows.mediators.values[rows.category == other, 2] == other).mean()
        unmoved = (rows.mediators.values[rows.category == own, 2] == other).mean()
        generated = (jobs[:, other, rows.category == own] == other).mean(axis=1)
        assert (abs(generated - observed) < abs(unmoved - observed)).all()


def test_a_history_has_every_network_after_every_epoch():
    checkpoint = train(applicants().mediation(), SMALL).checkpoint
    assert checkpoint.history.shape == (4, 2, len(TERMS))
    assert (checkpoint.history >= 0).all()
    assert (checkpoint.history[:, :, 2] <= 1).all()


def test_convergence_is_judged_by_the_last_tenth():
    """Network 0 rests; 1 misses the mediators; 2 gives the category away; 3 rested only before the end."""
    history = torch.tensor([[0.01, 0.69, 0.5], [0.5, 0.69, 0.5], [0.01, 0.4, 0.9], [0.01, 0.69, 0.5]]).repeat(20, 1, 1)
    history[-2:, 3] = torch.tensor([0.9, 0.1, 1.0])
    found = convergence(Checkpoint(20, {"history": history}, ""), inputs=2, alone=float(np.log(2)))
    assert found.converged.tolist() == [True, False, False, False]
    assert found.reconstruction == pytest.approx([0.005, 0.25, 0.005, 0.45])
    assert found.advantage == pytest.approx(np.log(2) - [0.69, 0.69, 0.4, 0.1])
    assert found.accuracy == pytest.approx([0.5, 0.5, 0.9, 1.0])


def test_covariates_alone_say_what_they_say():
    rows = applicants(4_000).mediation()
    none = replace(rows, covariates=Columns((), (), (), np.zeros((4_000, 0))))
    assert log_loss_alone(none, 0) == pytest.approx(np.log(2), abs=0.005)
    assert log_loss_alone(rows, 0) == pytest.approx(0.6, abs=0.03)  # the mean entropy of sigmoid(x), x normal, is 0.60
