"""The terms of the loss by hand, and a clear loop against the weights of whole epochs."""

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.numerics.networks.training import equalised_odds, inconsistency, odds_contrasts, pair_weights


def odds(scores, favourable, protected):
    contrasts = torch.from_numpy(odds_contrasts(np.array(favourable, bool), np.array(protected, bool), len(scores)))
    return equalised_odds(torch.tensor(scores, dtype=torch.float64), contrasts).item()


def logit(share):
    return float(np.log(share / (1 - share)))


def test_equalised_odds_by_hand():
    """TPR 0.9 and 0.5, FPR (0.2 + 0.4) / 2 and 0.1: 0.4^2 + 0.2^2."""
    scores = [logit(p) for p in (0.9, 0.5, 0.2, 0.4, 0.1)]
    assert odds(scores, [1, 1, 0, 0, 0], [0, 1, 0, 0, 1]) == pytest.approx(0.4**2 + 0.2**2)


def test_equal_rates_cost_nothing():
    scores = [logit(p) for p in (0.9, 0.3, 0.6, 0.2, 0.2)]
    assert odds(scores, [1, 1, 1, 0, 0], [0, 0, 1, 0, 1]) == pytest.approx(0, abs=1e-15)


def test_a_cell_that_a_batch_lacks_skips_its_term():
    scores = [logit(p) for p in (0.9, 0.8, 0.4, 0.1)]
    assert odds(scores, [1, 1, 0, 0], [0, 0, 0, 1]) == pytest.approx(0.3**2)


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 1000), rows=st.integers(1, 40), batch=st.integers(1, 15))
def test_odds_of_an_epoch_are_those_of_its_batches(seed, rows, batch):
    rng = np.random.default_rng(seed)
    favourable, protected = rng.random((2, rows)) < 0.5
    shares = rng.random(rows)
    gaps = odds_contrasts(favourable, protected, batch) * shares
    for begin in range(0, rows, batch):
        at = slice(begin, begin + batch)
        for term, label in enumerate((favourable[at], ~favourable[at])):
            one, other = shares[at][label & ~protected[at]], shares[at][label & protected[at]]
            expected = one.mean() - other.mean() if len(one) and len(other) else 0.0
            assert gaps[term, at].sum() == pytest.approx(expected, abs=1e-12)


def test_only_matched_pairs_of_the_first_half_of_a_batch_count():
    matched = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1], bool)
    assert pair_weights(matched, 4, 0.5).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert pair_weights(matched, 4, 1.0).tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0, 0, 1 / 2, 1 / 2, 1])


def test_inconsistency_by_hand():
    """Right angle: |g - g~|^2 / 4 = 2 / 4; opposite: 1; parallel: 0."""
    factual = torch.tensor([[3.0, 0.0], [1.0, 0.0], [2.0, 2.0]], dtype=torch.float64)
    other = torch.tensor([[0.0, 5.0], [-4.0, 0.0], [7.0, 7.0]], dtype=torch.float64)
    for pair, expected in enumerate((0.5, 1.0, 0.0)):
        weights = torch.zeros(3, dtype=torch.float64)
        weights[pair] = 1
        assert inconsistency(factual, other, weights).item() == pytest.approx(expected, abs=1e-7)


def test_an_explanation_of_nothing_has_a_finite_gradient():
    factual = torch.zeros(1, 3, requires_grad=True)
    inconsistency(factual, torch.ones(1, 3), torch.ones(1)).backward()
    assert torch.isfinite(factual.grad).all()
