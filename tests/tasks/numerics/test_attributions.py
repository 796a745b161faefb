"""Integrated gradients in closed form and by quadrature: a clear loop, automatic differentiation, and captum."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from completeness import completeness_error
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from test_networks import drawn, networks
from torch_modules import to_module

from schemas.errors import SpecError
from tasks.numerics.attributions import Linear, Module, Quadrature, Rule, of_logistic_regression, of_network, sample
from tasks.numerics.networks.network import Network
from tasks.numerics.piecewise_attributions import Piecewise
from tasks.numerics.problem import Attributor

QUICK = settings(deadline=None, max_examples=examples(60))


def pieces(network: Network, x, baseline) -> list[float]:
    """Where on one row's path any unit changes its sign, layer by layer, with both ends."""

    def before(layer, s):
        values = baseline + s * (x - baseline)
        for each in range(layer):
            values = np.maximum(network.weights[each] @ values + network.biases[each], 0)
        return network.weights[layer] @ values + network.biases[layer]

    cuts = [0.0, 1.0]
    for layer in range(len(network.weights) - 1):
        found = []
        for low, high in pairwise(cuts):
            ends = zip(before(layer, low), before(layer, high), strict=True)
            found += [low + (high - low) * a / (a - b) for a, b in ends if a * b < 0]
        cuts = sorted({*cuts, *found})
    return cuts


def by_hand(network: Network, x, baseline):
    """One row: the gradient in the middle of each piece of its path, times the length of the piece."""
    total = np.zeros(len(x))
    for low, high in pairwise(pieces(network, x, baseline)):
        middle = baseline + (low + high) / 2 * (x - baseline)
        total += (high - low) * network.gradient(middle[None])[0]
    return (x - baseline) * total


def paths(network: Network, rows: int = 6):
    rng = np.random.default_rng(5)
    return rng.normal(size=(rows, network.inputs)), rng.normal(size=(rows, network.inputs))


@given(networks(("relu",)))
@QUICK
def test_closed_form_agrees_with_a_loop_over_all_pieces(network):
    x, baseline = paths(network)
    expected = [by_hand(network, one, other) for one, other in zip(x, baseline, strict=True)]
    np.testing.assert_allclose(Piecewise(network).attribute(x, baseline), expected, rtol=1e-9, atol=1e-9)


@given(networks(("relu",)))
@QUICK
def test_closed_form_is_complete(network):
    x, baseline = paths(network)
    model = Piecewise(network)
    assert (completeness_error(model, x, baseline, model.attribute(x, baseline)) < 1e-12).all()


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=3))
@QUICK
def test_closed_form_is_complete_where_kinks_meet(seed, hidden):
    """Small whole numbers: units that switch together, at the ends of the path, or lie at their kink along it."""
    rng = np.random.default_rng(seed)
    sizes = [2, *hidden, 1]
    weights = tuple(rng.integers(-1, 2, (out, into)).astype(float) for into, out in pairwise(sizes))
    network = Network(weights, tuple(rng.integers(-1, 2, out).astype(float) for out in sizes[1:]), "relu")
    x, baseline = rng.integers(-2, 3, (2, 8, 2)).astype(float)
    model = Piecewise(network)
    assert (completeness_error(model, x, baseline, model.attribute(x, baseline)) < 1e-12).all()


@given(networks(), st.permutations(range(6)))
@QUICK
def test_rows_do_not_depend_on_each_other(network, order):
    x, baseline = paths(network)
    model = of_network(network)
    together = model.attribute(x, baseline)
    np.testing.assert_allclose(model.attribute(x[order], baseline[order]), together[order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "softplus", "silu"])
def test_a_row_at_its_baseline_owes_nothing(activation):
    model = of_network(drawn(1, 4, (8, 5), activation))
    x, _ = paths(model.network if isinstance(model, Piecewise) else drawn(1, 4, (8, 5), activation))
    assert not model.attribute(x, x).any()


@given(networks(("relu",)), st.integers(0, 10))
@QUICK
def test_attributions_do_not_notice_how_units_are_numbered(network, seed):
    if len(network.weights) < 2:
        return
    order = np.random.default_rng(seed).permutation(len(network.biases[0]))
    weights = (network.weights[0][order], network.weights[1][:, order], *network.weights[2:])
    again = Network(weights, (network.biases[0][order], *network.biases[1:]), "relu")
    x, baseline = paths(network)
    one, other = Piecewise(network).attribute(x, baseline), Piecewise(again).attribute(x, baseline)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_hand_worked_kinks():
    # f(x) = relu(x - 1) + relu(-x), from 0 to 4: gradient -0 until the kink at a quarter of the way, then 1
    network = Network((np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0]])), (np.array([-1.0, 0.0]), np.zeros(1)), "relu")
    model = Piecewise(network)
    x, baseline = np.array([[4.0], [1.0], [-2.0], [4.0]]), np.array([[0.0], [0.0], [2.0], [1.0]])
    # to the kink only; across both kinks: 1 * (1/4) down and 2 up; from the kink on
    assert model.attribute(x, baseline).tolist() == [[3.0], [0.0], [1.0], [3.0]]


def test_a_path_along_a_kink_has_the_gradient_of_torch():
    # the second feature alone moves, and relu(x_0) stays at its kink
    network = Network((np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[5.0, 2.0]])), (np.zeros(2), np.zeros(1)), "relu")
    assert Piecewise(network).attribute(np.array([[0.0, 3.0]]), np.array([[0.0, 1.0]])).tolist() == [[0.0, 4.0]]


def test_kinks_of_several_units_and_layers_at_one_point():
    # units 0 and 1 of the first layer and unit 0 of the second all switch at half way
    network = Network(
        (np.array([[1.0], [-1.0]]), np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 10.0]])),
        (np.zeros(2), np.zeros(2), np.zeros(1)),
        "relu",
    )
    # for x < 0: relu(x - 0)... = 0 and 10 |x|; for x > 0: x + 10 x
    assert Piecewise(network).attribute(np.array([[1.0]]), np.array([[-1.0]])).tolist() == [[1.0]]


@pytest.mark.parametrize("hidden", [(12,), (16, 8), (6, 5, 4)])
def test_closed_form_agrees_with_captum(hidden):
    network = drawn(3, 5, hidden, "relu")
    x, baseline = paths(network, 4)
    found = Piecewise(network).attribute(x, baseline)
    for row in range(4):
        # captum samples the path, so it is sent from kink to kink, where sampling has no error
        at = np.array(pieces(network, x[row], baseline[row]))[:, None]
        knots = baseline[row] + at * (x[row] - baseline[row])
        expected = _captum(network, knots[1:], knots[:-1], 2).sum(axis=0)
        np.testing.assert_allclose(found[row], expected, rtol=1e-6, atol=1e-6)
    assert np.abs(found - _captum(network, x, baseline, 5_000)).max() < 1e-2


@pytest.mark.parametrize("activation", ["softplus", "silu"])
def test_quadrature_agrees_with_captum(activation):
    network = drawn(4, 5, (16, 8), activation)
    x, baseline = paths(network, 8)
    strict = Rule(tolerance=1e-10)
    expected = _captum(network, x, baseline, 96, "gausslegendre")
    np.testing.assert_allclose(Quadrature(network, strict).attribute(x, baseline), expected, atol=1e-6)
    module = Quadrature(Module(to_module(network)), strict)
    np.testing.assert_allclose(module.attribute(x, baseline), expected, atol=1e-6)


def test_the_midpoint_rule_of_the_paper_agrees_with_captum():
    network = drawn(4, 5, (16, 8), "relu")
    x, baseline = paths(network, 8)
    found = Quadrature(network, Rule(32, 32, nodes="midpoint")).attribute(x, baseline)
    np.testing.assert_allclose(found, _captum(network, x, baseline, 32, "riemann_middle"), atol=1e-9)


def _captum(network, x, baseline, steps, method="riemann_middle"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of captum's own imports
        from captum.attr import IntegratedGradients
    found = IntegratedGradients(to_module(network), multiply_by_inputs=True).attribute(
        torch.tensor(x), torch.tensor(baseline), target=0, n_steps=steps, method=method, internal_batch_size=200_000
    )
    return found.detach().numpy()


def test_steps_are_added_only_where_they_are_needed():
    class Counted(Network):
        def gradient(self, points):
            seen.append(len(points))
            return super().gradient(points)

    seen: list[int] = []
    network = drawn(7, 3, (20, 10), "relu")
    model = Quadrature(Counted(network.weights, network.biases, "relu"), Rule(8, 4096, 1e-2, "midpoint"))
    x, baseline = paths(network, 50)
    x[0] = baseline[0]  # complete at once
    found = model.attribute(x, baseline)
    assert seen[0] == 50 * 8
    assert seen[1] < 50 * 16
    assert seen[-1] % 16 == 0
    assert (completeness_error(model, x, baseline, found) <= 1e-2).all()


def test_what_stays_incomplete_is_told():
    network = drawn(7, 3, (20, 10), "relu")
    model = Quadrature(network, Rule(2, 4, 1e-6, "midpoint"))
    x, baseline = paths(network, 20)
    found = model.attribute(x, baseline)
    error = completeness_error(model, x, baseline, found)
    assert error.max() > 1e-3
    gain = network.logit(x) - network.logit(baseline)
    np.testing.assert_allclose(error, np.abs(found.sum(1) - gain) / np.maximum(1, np.abs(gain)))


@pytest.mark.parametrize("kind", ["gauss_legendre", "midpoint"])
@pytest.mark.parametrize("steps", [1, 8, 32, 64])
def test_rules_integrate_what_they_should(kind, steps):
    nodes, weights = sample(kind, steps)
    assert len(nodes) == len(weights) == steps
    assert nodes @ weights == pytest.approx(0.5)
    assert weights.sum() == pytest.approx(1)
    if kind == "gauss_legendre" and steps > 1:
        assert nodes**15 @ weights == pytest.approx(1 / 16)


def test_chunks_do_not_show(monkeypatch):
    network = drawn(2, 3, (6, 4), "silu")
    x, baseline = paths(network, 11)
    relu = Network(network.weights, network.biases, "relu")
    one, other = Quadrature(network).attribute(x, baseline), Piecewise(relu).attribute(x, baseline)
    monkeypatch.setattr("tasks.numerics.attributions.POINTS_AT_ONCE", 64)
    monkeypatch.setattr("tasks.numerics.piecewise_attributions.ROWS_AT_ONCE", 2)
    np.testing.assert_allclose(Quadrature(network).attribute(x, baseline), one, rtol=1e-10)
    np.testing.assert_allclose(Piecewise(relu).attribute(x, baseline), other, rtol=1e-10)


def test_linear_models_and_networks_without_hidden_layers():
    rng = np.random.default_rng(0)
    x, baseline = rng.normal(size=(9, 3)), rng.normal(size=(9, 3))
    weights = np.array([[1.0, -2.0, 0.5]])
    expected = (x - baseline) * weights
    plain = Network((weights,), (np.array([0.3]),), "relu")
    linear = Linear(weights[0], 0.3)
    np.testing.assert_allclose(Piecewise(plain).attribute(x, baseline), expected)
    np.testing.assert_allclose(linear.attribute(x, baseline), expected)
    np.testing.assert_allclose(linear.logit(x), plain.logit(x))
    centre, scale = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(linear.before_scaling(centre, scale).logit(x), linear.logit((x - centre) / scale))


def test_logistic_regressions_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    fitted = LogisticRegression().fit(x, x[:, 0] + rng.normal(size=80) > 0)
    model = of_logistic_regression(fitted)
    np.testing.assert_allclose(model.logit(x), fitted.decision_function(x))
    with pytest.raises(SpecError, match="3 classes"):
        of_logistic_regression(LogisticRegression().fit(x, rng.integers(0, 3, 80)))


def test_every_kind_is_an_attributor():
    network = drawn(2, 3, (6, 4), "relu")
    models: list[Attributor] = [Piecewise(network), Quadrature(network), Linear(np.ones(3))]
    assert [model.exact for model in models] == [True, False, True]
    assert len({model.name for model in models}) == 3
    assert isinstance(of_network(network), Piecewise)
    assert isinstance(of_network(network, Rule()), Quadrature)
    with pytest.raises(SpecError, match="quadrature"):
        Piecewise(drawn(2, 3, (6, 4), "silu"))


def test_modules_by_what_they_give():
    network = drawn(2, 3, (6, 4), "silu")
    x, _ = paths(network)
    squashed = Module(torch.nn.Sequential(to_module(network), torch.nn.Sigmoid()), "probability")
    np.testing.assert_allclose(squashed.logit(x), np.clip(network.logit(x), -13.8155, 13.8155), rtol=1e-4)
    with pytest.raises(SpecError, match=r"gives \(6, 2\) for 6 rows"):
        Module(torch.nn.Linear(3, 2)).logit(x)
    dropped = Module(torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(3, 1)))
    assert np.array_equal(dropped.logit(x), dropped.logit(x))
