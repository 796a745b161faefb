"""Quality of counterfactual mediators: the right person, the mean of people alike, and the flip."""

import numpy as np
import pytest

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.diagnostics import WIDE, against_truth, kept, others, spread
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation


@pytest.fixture(scope="module")
def rows():
    return synthetic(Synthetic(rows=2_000, noise=0.5, beta_3=2.0), np.random.default_rng(0))


def answers(rows):
    """Right, mean, flipped, and half-way between mean and right: one network each."""
    flipped = 2 * rows.mean - rows.potential
    made = np.stack([rows.potential, rows.mean, flipped, (rows.mean + rows.potential) / 2])
    made[:, rows.category, np.arange(2_000)] = rows.mediators
    return made


def test_the_slope_tells_the_answers_apart(rows):
    found = against_truth(answers(rows), rows.mediation(), rows.potential, rows.mean)
    assert found.slope[:, 0] == pytest.approx([1, 0, -1, 0.5])
    kept_by = kept(answers(rows), rows.mediation(), rows.mean)
    assert kept_by[:, 0] == pytest.approx([1, 0, -1, 0.5])


def test_table_3_by_hand(rows):
    """The effect is 2, so that ||M - M_cf||^2 is 4; the mean misses by the noise, the flip by twice the noise."""
    found = against_truth(answers(rows), rows.mediation(), rows.potential, rows.mean)
    square = float((rows.noise**2).mean())
    assert found.factual_counterfactual == pytest.approx(4)
    assert found.counterfactual_generated == pytest.approx([0, square / 4, 4 * square / 4, square / 16])
    assert found.counterfactual_mean == pytest.approx(square / 4)
    assert found.factual_generated[0] == pytest.approx(1)
    by_hand = np.mean([(rows.mediators[i] - rows.mean[1 - rows.category[i], i]) ** 2 for i in range(2_000)]) / 4
    assert found.factual_generated[1] == pytest.approx(by_hand)


def test_three_categories_are_averaged_over_both_others():
    rng = np.random.default_rng(0)
    category, values = rng.integers(3, size=30), rng.normal(size=(30, 1))
    column = Columns(("m",), (Kind.CONTINUOUS,), ((),), values)
    people = Mediation(Columns((), (), (), np.zeros((30, 0))), category, ("a", "b", "c"), column)
    potential, made = rng.normal(size=(3, 30, 1)), rng.normal(size=(2, 3, 30, 1))
    potential[category, np.arange(30)] = values
    found = against_truth(made, people, potential, np.zeros((3, 30, 1)))
    pairs = [(a, i) for i in range(30) for a in range(3) if a != category[i]]
    apart = np.mean([(potential[a, i] - values[i]) ** 2 for a, i in pairs])
    for j in range(2):
        by_hand = np.mean([(potential[a, i] - made[j, a, i]) ** 2 for a, i in pairs]) / apart
        assert found.counterfactual_generated[j] == pytest.approx(by_hand)
    assert others(category, 3).sum() == 60


def test_networks_that_agree_have_no_spread_and_a_flip_is_flagged(rows):
    people, deviation = rows.mediation(), rows.mediators.std(axis=0)
    right, flipped = answers(rows)[0], answers(rows)[2]
    assert spread(np.stack([right] * 3), people, deviation) == pytest.approx(0, abs=1e-12)
    found = spread(np.stack([right, flipped]), people, deviation)
    assert found == pytest.approx(np.abs(rows.noise[:, 0]) / deviation[0])
    assert (found > WIDE).any()


def test_networks_disagree_about_a_category_by_their_votes():
    column = Columns(("job",), (Kind.NOMINAL,), (("w", "x", "y"),), np.array([[0.0], [1.0]]))
    people = Mediation(Columns((), (), (), np.zeros((2, 0))), np.array([0, 1]), ("a", "b"), column)
    made = np.zeros((4, 2, 2, 1))
    made[:, 1, 1] = 1.0  # row 1 as observed
    made[:, 1, 0, 0] = [2, 2, 1, 2]
    assert spread(made, people, np.ones(1)).tolist() == [0.25, 0.0]
