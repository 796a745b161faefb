"""The paper's synthetic data: labels of financial features alone, proxies shifted, all drawn from the generator."""

import numpy as np
import pytest

from tasks.ingest.synthetic.algorithm.lending import SyntheticLending, generate


def test_sizes_shares_and_shifts():
    drawn = generate(SyntheticLending(), np.random.default_rng(0))
    gap = drawn.features[drawn.protected].mean(axis=0) - drawn.features[~drawn.protected].mean(axis=0)
    assert drawn.features.shape == (10_000, 20)
    assert gap[:10] == pytest.approx(np.zeros(10), abs=0.08)
    assert gap[10:15] == pytest.approx(np.full(5, 0.5), abs=0.08)
    assert gap[15:] == pytest.approx(np.zeros(5), abs=0.08)
    assert drawn.favourable.mean() == 0.5


def test_labels_are_independent_of_the_group_and_follow_the_rule():
    drawn = generate(SyntheticLending(label_noise=0.0, threshold=0.3), np.random.default_rng(1))
    assert ((drawn.features[:, :10] @ drawn.weights > 0.3) == drawn.favourable).all()
    rates = [drawn.favourable[drawn.protected == group].mean() for group in (True, False)]
    assert abs(rates[0] - rates[1]) < 4 * np.sqrt(0.25 * 4 / 10_000)  # four standard errors of a difference


def test_a_seed_is_a_data_set_and_weights_can_be_given():
    one, again = (generate(SyntheticLending(rows=50), np.random.default_rng(3)) for _ in range(2))
    assert (one.features == again.features).all()
    given = generate(SyntheticLending(rows=50, financial=2, weights=(1.0, -1.0)), np.random.default_rng(3))
    assert given.weights.tolist() == [1, -1]
    with pytest.raises(ValueError, match="3 weights for 10"):
        generate(SyntheticLending(weights=(1.0, 2.0, 3.0)), np.random.default_rng(0))
