"""Networks: the same as torch's, there and back, and refused where they do not fit."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from torch import nn
from torch_modules import to_module

from schemas.errors import IntegrityError, SpecError
from tasks.numerics.networks.network import Network, of_module, of_safetensors, to_safetensors

KINDS = {"relu": nn.ReLU, "softplus": nn.Softplus, "silu": nn.SiLU}


def drawn(seed: int, inputs: int, hidden: tuple[int, ...], activation: str) -> Network:
    rng = np.random.default_rng(seed)
    sizes = [inputs, *hidden, 1]
    weights = tuple(rng.normal(size=(out, into)) for into, out in pairwise(sizes))
    return Network(weights, tuple(rng.normal(size=out) for out in sizes[1:]), activation)


@st.composite
def networks(draw, activations=tuple(KINDS)):
    hidden = tuple(draw(st.lists(st.integers(1, 6), max_size=3)))
    return drawn(draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 5)), hidden, draw(st.sampled_from(activations)))


def test_hand_worked_example():
    # z = (1, -1) at x = 1; relu: (1, 0); logit 2 * 1 + 3 * 0 + 0.5; gradient 2 * 1
    network = Network(
        (np.array([[1.0], [-2.0]]), np.array([[2.0, 3.0]])), (np.array([0.0, 1.0]), np.array([0.5])), "relu"
    )
    assert network.logit(np.array([[1.0]])).tolist() == [2.5]
    assert network.gradient(np.array([[1.0]])).tolist() == [[2.0]]
    # at x = 0.5 the second unit is at its kink: its flat side, as in torch
    assert network.gradient(np.array([[0.5]])).tolist() == [[2.0]]


@given(networks())
@settings(deadline=None, max_examples=examples(60))
def test_logit_and_gradient_are_those_of_torch(network):
    x = np.random.default_rng(0).normal(size=(7, network.inputs))
    tensor = torch.tensor(x, requires_grad=True)
    logits = to_module(network)(tensor)[:, 0]
    (gradient,) = torch.autograd.grad(logits.sum(), tensor)
    np.testing.assert_allclose(network.logit(x), logits.detach().numpy(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(network.gradient(x), gradient.numpy(), rtol=1e-7, atol=1e-7)


@given(networks())
@settings(deadline=None, max_examples=examples(30))
def test_there_and_back(network):
    for again in (of_module(to_module(network)), of_safetensors(to_safetensors(network))):
        assert all(map(np.array_equal, again.weights + again.biases, network.weights + network.biases))
        assert again.activation == (network.activation if len(network.weights) > 1 else again.activation)


def test_rows_in_batches_are_rows_at_once(monkeypatch):
    network, x = drawn(0, 3, (5, 4), "silu"), np.random.default_rng(1).normal(size=(10, 3))
    logits, gradients = network.logit(x), network.gradient(x)
    monkeypatch.setattr("tasks.numerics.networks.network.ROWS_AT_ONCE", 3)
    np.testing.assert_allclose(network.logit(x), logits, rtol=1e-12)
    np.testing.assert_allclose(network.gradient(x), gradients, rtol=1e-12)
    assert network.logit(x[:0]).shape == (0,)


def test_dropout_and_precision_of_a_module():
    module = nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Dropout(0.5), nn.Linear(4, 1, bias=False)).eval()
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    network = of_module(module)
    assert network.biases[1].tolist() == [0.0]
    exact = module.double()(torch.tensor(x, dtype=torch.float64))  # the same weights; single precision rounds otherwise
    np.testing.assert_allclose(network.logit(x), exact.detach().numpy()[:, 0], rtol=1e-12)


def test_bytes_follow_from_the_network_alone():
    one = to_safetensors(drawn(3, 4, (3, 2), "softplus"))
    assert one == to_safetensors(of_safetensors(one))
    assert b'"activation":"softplus"' in one


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)], "Tanh"),
        ([nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.SiLU(), nn.Linear(3, 1)], "no network here"),
        ([nn.Linear(2, 3), nn.Linear(3, 1)], "Linear"),
        ([nn.Linear(2, 1), nn.ReLU()], "no network here"),
        ([nn.ReLU(), nn.Linear(2, 1)], "ReLU"),
        ([nn.Linear(2, 3), nn.Softplus(beta=2), nn.Linear(3, 1)], "beta=2"),
        ([], "no network here"),
    ],
)
def test_modules_that_are_no_network_are_refused(layers, words):
    with pytest.raises(SpecError, match=words):
        of_module(nn.Sequential(*layers))


def test_layers_that_do_not_fit_are_refused():
    one, two = np.ones((3, 2)), np.ones((1, 3))
    with pytest.raises(IntegrityError, match="layer 0 of a network gives 3 numbers and layer 1 takes 2"):
        Network((one, np.ones((1, 2))), (np.ones(3), np.ones(1)), "relu")
    with pytest.raises(IntegrityError, match="biases of shape"):
        Network((one, two), (np.ones(2), np.ones(1)), "relu")
    with pytest.raises(IntegrityError, match="ends in 3 numbers"):
        Network((one,), (np.ones(3),), "relu")
    with pytest.raises(IntegrityError, match="not finite"):
        Network((one * np.nan, two), (np.ones(3), np.ones(1)), "relu")
    with pytest.raises(IntegrityError, match="'tanh'"):
        Network((one, two), (np.ones(3), np.ones(1)), "tanh")  # type: ignore[arg-type]
    with pytest.raises(IntegrityError, match="one of each"):
        Network((one, two), (np.ones(3),), "relu")


def test_bytes_that_are_no_network_are_refused():
    array = {"layers.0.weight": np.ones((1, 2)), "layers.0.bias": np.ones(1)}
    with pytest.raises(IntegrityError, match="not in the safetensors format"):
        of_safetensors(b"\x80\x04pickled")
    with pytest.raises(IntegrityError, match="does not say"):
        of_safetensors(save(array))
    with pytest.raises(IntegrityError, match="'tanh'"):
        of_safetensors(save(array, {"activation": "tanh"}))
    with pytest.raises(IntegrityError, match="holds the arrays"):
        of_safetensors(save({**array, "other": np.ones(1)}, {"activation": "relu"}))
    with pytest.raises(IntegrityError, match="holds the arrays"):
        of_safetensors(save({}, {"activation": "relu"}))
