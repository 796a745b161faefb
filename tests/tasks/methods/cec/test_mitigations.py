"""The mitigations of fairlearn on the project's net: decisions, scores, and a net only where there is one logit."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from tasks.ingest.synthetic.algorithm.lending import SyntheticLending, generate
from tasks.methods.cec.algorithm.mitigations import (
    MITIGATIONS,
    NetClassifier,
    Split,
    adversarial,
    disparate_impact_remover,
    exponentiated_gradient,
    grid_search,
    mitigate,
    predict,
    threshold_optimizer,
    unconstrained,
)
from tasks.methods.cec.settings import Mitigation
from tasks.numerics.networks.network import NetSettings, TrainingSettings

SMALL = TrainingSettings(net=NetSettings((12, 6)), epochs=8, learning_rate=0.01, device="cpu")


@pytest.fixture(scope="module")
def data():
    drawn = generate(SyntheticLending(rows=500), np.random.default_rng(0))
    at = slice(0, 350), slice(350, None)
    parts = (drawn.features[at[0]], drawn.favourable[at[0]], drawn.protected[at[0]])
    return Split(*parts, drawn.features[at[1]], drawn.protected[at[1]]), drawn.favourable[at[1]]


@pytest.mark.parametrize("mitigate", [unconstrained, adversarial, lambda s, t: grid_search(s, t, fits=3)])
def test_one_net_decides_by_its_logit(data, mitigate):
    split, label = data
    state = torch.get_rng_state()
    found = mitigate(split, SMALL)
    assert found.net is not None
    assert found.reason == ""
    assert (predict(found.net, split.test_inputs) == found.scores).all()
    assert (found.predicted == (found.scores >= 0)).all()
    assert (found.predicted == label).mean() > 0.6
    assert torch.equal(state, torch.get_rng_state())


def test_drawn_and_mixed_decisions_have_no_logit_and_say_so(data):
    split, label = data
    drawn, mixed = threshold_optimizer(split, SMALL), exponentiated_gradient(split, SMALL, fits=3)
    assert drawn.scores is None
    assert ((mixed.scores >= -1e-9) & (mixed.scores <= 1 + 1e-9)).all()
    for found in (drawn, mixed):
        assert found.net is None
        assert "no" in found.reason
        assert (found.predicted == label).mean() > 0.5
    assert (threshold_optimizer(split, SMALL).predicted == drawn.predicted).all()


def test_the_remover_decides_on_inputs_that_are_repaired_by_group(data):
    split, label = data
    found = disparate_impact_remover(split, SMALL)
    seen = found.repair.of(split.test_inputs, split.test_protected)
    assert (predict(found.net, seen) == found.scores).all()
    assert (found.predicted == (found.scores >= 0)).all()
    assert (found.predicted == label).mean() > 0.6
    assert found.reason == ""
    nothing = disparate_impact_remover(split, SMALL, level=0.0)
    assert (nothing.scores == unconstrained(split, SMALL).scores).all()


def test_of_one_group_nothing_is_repaired_and_the_reason_is_given(data):
    split, _ = data
    found = disparate_impact_remover(replace(split, protected=np.zeros_like(split.protected)), SMALL)
    assert (found.predicted, found.net) == (None, None)
    assert "one group" in found.reason


def test_the_spec_knows_the_mitigations_by_the_names_they_have_here():
    assert set(get_args(Mitigation)) == set(MITIGATIONS) - {"unconstrained"}


@pytest.mark.parametrize("name", ["grid_search", "exponentiated_gradient", "threshold_optimizer"])
def test_by_its_name_a_mitigation_is_the_same_and_a_reduction_takes_its_most_fits(data, name, monkeypatch):
    split, _ = data
    fitted = []
    fit = NetClassifier.fit
    monkeypatch.setattr(NetClassifier, "fit", lambda self, *args, **more: fitted.append(1) or fit(self, *args, **more))
    few = mitigate(name, split, SMALL, 2)
    counted = len(fitted)
    direct = MITIGATIONS[name](split, SMALL, *([2] if name != "threshold_optimizer" else []))
    assert (few.predicted == direct.predicted).all()
    assert len(fitted) == 2 * counted
    mitigate(name, split, SMALL, 6)
    assert (len(fitted) - 2 * counted > counted) == (name != "threshold_optimizer")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_training_by_the_library_that_ends_in_no_numbers_is_a_reason(data):
    found = adversarial(data[0], replace(SMALL, learning_rate=1e30))
    assert (found.predicted, found.scores, found.net) == (None, None, None)
    assert "diverged" in found.reason
