"""The substitute for integrated gradients: what it is of additive, smooth and jumping models."""

import numpy as np
import pytest
from completeness import completeness_error
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from test_networks import drawn

from tasks.numerics.attributions import CLIP, Differences, Quadrature, Rule, log_odds
from tasks.numerics.problem import Attributor


def by_hand(score, x, baseline, steps):
    """One row: walk each step in both orders, one feature at a time."""
    gains = np.zeros(len(x))
    for step in range(steps):
        before = baseline + step / steps * (x - baseline)
        after = x if step == steps - 1 else baseline + (step + 1) / steps * (x - baseline)
        for order in (range(len(x)), reversed(range(len(x)))):
            point = before.copy()
            for feature in order:
                was = score(point[None])[0]
                point[feature] = after[feature]
                gains[feature] += (score(point[None])[0] - was) / 2
    return gains


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 6))
@settings(deadline=None, max_examples=examples(40))
def test_agrees_with_a_walk_feature_by_feature(seed, inputs, steps):
    network = drawn(seed, inputs, (4,), "relu")
    x, baseline = np.random.default_rng(seed).normal(size=(2, 3, inputs))
    model = Differences(network.logit, steps)
    expected = [by_hand(network.logit, one, other, steps) for one, other in zip(x, baseline, strict=True)]
    found = model.attribute(x, baseline)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert (completeness_error(model, x, baseline, found) < 1e-12).all()


def test_comes_near_integrated_gradients_of_a_smooth_model():
    network = drawn(5, 4, (6, 4), "silu")
    x, baseline = np.random.default_rng(1).normal(size=(2, 20, 4))
    exact = Quadrature(network, Rule(tolerance=1e-10)).attribute(x, baseline)
    errors = [np.abs(Differences(network.logit, n).attribute(x, baseline) - exact).max() for n in (8, 16, 32)]
    # by the square of the steps
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.3)


def test_an_additive_model_owes_to_each_feature_its_own_part():
    def score(x):
        return 3.0 * (x[:, 0] > 0.3) - 2.0 * (x[:, 1] > 0.7) + x[:, 2] ** 2

    x, baseline = np.array([[1.0, 1.0, 2.0], [0.2, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found = Differences(score, 4).attribute(x, baseline)
    np.testing.assert_allclose(found, [[3, -2, 3], [0, -2, 0]], atol=1e-12)


def test_a_jump_that_two_features_make_together_is_shared():
    def both(x):
        return 4.0 * ((x[:, 0] > 0.5) & (x[:, 1] > 0.5))

    def late(x):
        return 4.0 * ((x[:, 0] > 0.1) & (x[:, 1] > 0.9))

    one, zero = np.ones((1, 2)), np.zeros((1, 2))
    assert Differences(both, 5).attribute(one, zero).tolist() == [[2.0, 2.0]]
    assert Differences(late, 5).attribute(one, zero).tolist() == [[0.0, 4.0]]  # x_1 crosses last


def test_a_feature_that_does_not_move_owes_nothing_even_on_a_threshold():
    edge = 0.1 + 0.2

    def score(x):
        return 1.0 * (x[:, 0] <= edge) + x[:, 1]

    found = Differences(score, 7).attribute(np.array([[edge, 1.0]]), np.array([[edge, 0.0]]))
    assert found[0, 0] == 0.0


def test_chunks_do_not_show(monkeypatch):
    network = drawn(2, 3, (6, 4), "relu")
    x, baseline = np.random.default_rng(1).normal(size=(2, 20, 3))
    model = Differences(network.logit)
    whole = model.attribute(x, baseline)
    monkeypatch.setattr("tasks.numerics.attributions.DIFFERENCES_POINTS_AT_ONCE", 300)
    np.testing.assert_allclose(model.attribute(x, baseline), whole, rtol=1e-10)


def test_log_odds_of_what_a_forest_says():
    bound = np.log((1 - CLIP) / CLIP)
    np.testing.assert_allclose(log_odds(np.array([0.0, 0.5, 1.0])), [-bound, 0.0, bound])
    np.testing.assert_allclose(log_odds(expit(np.array([-3.0, 2.0]))), [-3.0, 2.0])


def test_says_that_it_is_a_substitute():
    model: Attributor = Differences(lambda x: x[:, 0])
    assert "substitute" in model.name
    assert not model.exact
