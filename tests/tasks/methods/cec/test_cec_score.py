"""The score of two attributions, regimes and divergence by feature: laws, and clear loops beside the array forms."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tasks.methods.cec.algorithm import pairs as cec_score
from tasks.methods.cec.algorithm.pairs import NO_REGIME

QUICK = settings(deadline=None, max_examples=examples(100))

NUMBERS = st.floats(-100, 100).map(lambda v: 0.0 if abs(v) < 1e-3 else v)
PAIRS = arrays.arrays(np.float64, (2, 5, 3), elements=NUMBERS)
SCORES = arrays.arrays(np.float64, 12, elements=st.sampled_from([0.0, 0.1, 0.3, 0.30000001, 0.7, 1.0, np.nan]))
FLIPS = arrays.arrays(np.float64, 12, elements=st.sampled_from([0.0, 1.0, np.nan]))


def cec(one, other):
    return cec_score.apart(cec_score.directions(one), cec_score.directions(other))


def cec_by_hand(one, other):
    lengths = [sum(v * v for v in each) ** 0.5 for each in (one, other)]
    if min(lengths) == 0:
        return np.nan
    apart = [a / (lengths[0] + 1e-8) - b / (lengths[1] + 1e-8) for a, b in zip(one, other, strict=True)]
    return sum(v * v for v in apart) ** 0.5 / 2


@QUICK
@given(pairs=PAIRS)
def test_the_score_is_that_of_the_loop_in_0_to_1_and_symmetric(pairs):
    one, other = pairs
    score = cec(one, other)
    assert score == pytest.approx([cec_by_hand(*pair) for pair in zip(one, other, strict=True)], nan_ok=True)
    known = score[~np.isnan(score)]
    assert ((known >= 0) & (known <= 1)).all()
    assert np.array_equal(score, cec(other, one), equal_nan=True)


@QUICK
@given(pairs=PAIRS, factor=st.floats(0.1, 100), sign=st.sampled_from([-1, 1]))
def test_scaling_or_turning_the_logit_changes_no_score(pairs, factor, sign):
    one, other = pairs
    assert cec(sign * factor * one, sign * factor * other) == pytest.approx(cec(one, other), abs=1e-4, nan_ok=True)


@QUICK
@given(pairs=PAIRS)
def test_identical_pairs_score_0_and_opposite_ones_1(pairs):
    one = pairs[0]
    known = (one != 0).any(axis=1)
    assert (cec(one, one)[known] == 0).all()
    assert cec(one, -one)[known] == pytest.approx(np.ones(known.sum()), abs=1e-4)
    # twice as much to explain, in the same balance
    assert cec(one, 2 * one)[known] == pytest.approx(np.zeros(known.sum()), abs=1e-4)


def test_reasons_at_right_angles():
    assert cec(np.array([[3.0, 0.0]]), np.array([[0.0, 4.0]])) == pytest.approx([np.sqrt(2) / 2])


def test_an_attribution_of_nothing_has_no_direction():
    score = cec(np.array([[0.0, 0.0], [1.0, 0.0], [1e-12, 0.0]]), np.array([[1.0, 0.0]] * 3))
    assert np.isnan(score).tolist() == [True, False, True]


def test_divergence_adds_up_the_columns_of_a_feature():
    one, other = np.array([[0.6, 0.8, 0.0]]), np.array([[0.0, 0.6, 0.8]])
    parted = cec_score.divergence(one, other, np.array([0, 1, 1]), 3)
    assert parted == pytest.approx(np.array([[0.6, 0.2 + 0.8, 0.0]]))
    assert cec_score.largest(parted, 2).tolist() == [[1, 0]]
    assert cec_score.largest(np.array([[1.0, 2.0, 2.0]]), 9).tolist() == [[1, 2, 0]]


def test_shares_of_features_are_of_the_mean_divergence_and_pairs_without_a_direction_count_in_none():
    parted = np.array([[1.0, 1.0], [3.0, 0.0], [np.nan, np.nan]])
    assert cec_score.shares_of(parted).tolist() == [(1 + 3) / 5, 1 / 5]
    assert np.isnan(cec_score.shares_of(np.zeros((2, 2)))).all()
    assert np.isnan(cec_score.shares_of(parted[2:])).all()


def test_resampled_shares_scatter_around_the_share_as_resampled_rows_do(monkeypatch):
    parted = np.random.default_rng(0).exponential(size=(300, 3)) * [1.0, 2.0, 3.0]
    drawn = cec_score.resampled_shares(parted, 400, np.random.default_rng(1))
    assert drawn.sum(axis=1) == pytest.approx(np.ones(400))
    assert drawn.mean(axis=0) == pytest.approx(cec_score.shares_of(parted), abs=0.005)
    rng = np.random.default_rng(2)
    by_hand = np.array([cec_score.shares_of(parted[rng.integers(0, 300, 300)]) for _ in range(400)])
    assert drawn.std(axis=0) == pytest.approx(by_hand.std(axis=0), rel=0.15)
    monkeypatch.setattr(cec_score, "DRAWN_AT_ONCE", 150)
    np.testing.assert_allclose(cec_score.resampled_shares(parted, 400, np.random.default_rng(1)), drawn)
    assert np.isnan(cec_score.resampled_shares(np.full((2, 3), np.nan), 4, rng)).all()


def test_incompleteness_is_absolute_below_1_and_relative_above():
    attributions = np.array([[0.2, 0.4], [6.0, 6.0], [0.1, 0.2]])
    error = cec_score.incompleteness(attributions, np.array([0.5, 10.0, 0.3]))
    assert error == pytest.approx([0.1, 0.2, 0])
    assert error[2] == 0 != 0.1 + 0.2 - 0.3  # rounding is no error


def regime_by_hand(score, flip, theta):
    if np.isnan(score) or np.isnan(flip):
        return NO_REGIME
    return {(0, True): 0, (0, False): 1, (1, True): 2, (1, False): 3}[int(flip), bool(score <= theta)]


@QUICK
@given(scores=SCORES, flips=FLIPS)
def test_regimes_partition_the_pairs_for_every_theta(scores, flips):
    thetas = np.array([0.0, 0.1, 0.3, 0.5, 1.0])
    counts = cec_score.regime_counts(scores, flips, thetas)
    known = int((~np.isnan(scores) & ~np.isnan(flips)).sum())
    for theta, counted in zip(thetas, counts, strict=True):
        expected = [regime_by_hand(s, f, theta) for s, f in zip(scores, flips, strict=True)]
        assert cec_score.regimes(scores, flips, theta).tolist() == expected
        assert counted.tolist() == [expected.count(number) for number in range(4)]
        assert counted.sum() == known
    assert (counts[-1, [1, 3]] == 0).all()
    assert (np.diff(counts[:, [0, 2]], axis=0) >= 0).all()
