"""Attributions that are trained through: closed form, switches followed and multiplied out, against autograd twice."""

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.numerics.networks.network import NetSettings
from tasks.numerics.networks.training import (
    build,
    inconsistency,
    integrated_gradients,
    kept_units,
    linear_layers,
    logits,
    mean_unit_gradient,
    multiplied_out,
    twice_differentiated,
)


def case(seed, hidden=(9, 6), activation="relu", rows=8, features=5):
    rng = np.random.default_rng(seed)
    net = build(features, NetSettings(hidden, activation), rng).double()
    inputs, baseline = (torch.from_numpy(rng.normal(size=(rows, features)) * scale) for scale in (2.0, 0.5))
    return net, inputs, baseline


def loss_and_gradients(form, net, inputs, baseline, steps):
    net.zero_grad()
    factual, counterfactual = form(net, inputs, baseline, steps).chunk(2)
    loss = inconsistency(factual, counterfactual, torch.full((len(factual),), 1 / len(factual)).double())
    loss.backward()
    return loss.item(), [layer.weight.grad.clone() for layer in linear_layers(net)]


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 10_000), steps=st.sampled_from([1, 2, 8, 33]))
def test_closed_form_is_autograd_twice_in_value_and_gradient(seed, steps):
    of = case(seed)
    assert integrated_gradients(*of, steps).detach().numpy() == pytest.approx(
        twice_differentiated(*of, steps).detach().numpy(), abs=1e-9
    )
    loss, gradients = loss_and_gradients(integrated_gradients, *of, steps)
    expected, expected_gradients = loss_and_gradients(twice_differentiated, *of, steps)
    assert loss == pytest.approx(expected, abs=1e-9)
    for found, wanted in zip(gradients, expected_gradients, strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_switches_followed_are_switches_multiplied_out():
    net, inputs, baseline = case(3, hidden=(40, 20), rows=30)
    first, second, last = linear_layers(net)
    start, change = first(baseline).detach(), (inputs - baseline) @ first.weight.detach().T
    at = (second.weight.detach(), second.bias.detach())
    followed = mean_unit_gradient(start, change, *at, last.weight[0].detach(), 16)
    factors = at[0] * last.weight[0].detach()[:, None]
    assert torch.allclose(followed, multiplied_out(factors, start, change, *at, 16), atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 33])
def test_switches_at_the_ends_and_together_are_followed(steps):
    rng = np.random.default_rng(6)
    start, change = (torch.from_numpy(rng.integers(-1, 2, (40, 12)).astype(float)) for _ in range(2))
    change = change * torch.from_numpy(rng.choice([1.0, 3.0], (40, 12)))  # ends at 0, at a third, or does not move
    at = torch.from_numpy(rng.normal(size=(5, 12))), torch.from_numpy(rng.normal(size=5))
    out = torch.from_numpy(rng.normal(size=5))
    followed = mean_unit_gradient(start, change, *at, out, steps)
    assert torch.allclose(followed, multiplied_out(at[0] * out[:, None], start, change, *at, steps), atol=1e-12)


def test_gradient_is_that_of_small_differences():
    net, inputs, baseline = case(1)
    _, gradients = loss_and_gradients(integrated_gradients, net, inputs, baseline, 8)
    weight = linear_layers(net)[1].weight
    step, losses = 1e-6, []
    for sign in (1, -1):
        with torch.no_grad():
            weight[2, 4] += sign * step
        losses.append(loss_and_gradients(integrated_gradients, net, inputs, baseline, 8)[0])
        with torch.no_grad():
            weight[2, 4] -= sign * step
    assert gradients[1][2, 4].item() == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("activation", ["relu", "softplus", "silu"])
def test_attributions_sum_to_the_change_of_the_logit(activation):
    net, inputs, baseline = case(5, activation=activation)
    change = logits(net, inputs) - logits(net, baseline)
    total = integrated_gradients(net, inputs, baseline, 512).sum(1)
    assert total.tolist() == pytest.approx(change.tolist(), abs=2e-3)


def test_a_row_at_its_baseline_has_no_attribution():
    net, inputs, _ = case(2)
    assert integrated_gradients(net, inputs, inputs, 8).abs().max().item() == 0


def test_nothing_dropped_is_the_net_in_eval_mode_and_dropout_keeps_the_mean():
    net, inputs, _ = case(4)
    assert torch.equal(logits(net, inputs), net.eval()(inputs).squeeze(1))
    kept = kept_units(net, 20_000, np.random.default_rng(0))
    assert [part.shape[1] for part in kept] == [9, 6]
    assert kept[0].unique().tolist() == pytest.approx([0, 1.25])
    assert kept[0].mean().item() == pytest.approx(1, abs=0.01)


def test_building_a_net_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    build(3, NetSettings(), np.random.default_rng(0))
    assert torch.equal(before, torch.get_rng_state())
