"""Offers that the model is asked about: whether its score rises by what was promised."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.methods.raguel.algorithm.statistics import Applied

NOW = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
POINTS = NOW + np.array([[0.5, 0], [0.5, 0], [0.0, 0], [0.5, 0]])
OFFERED, UNFAVOURABLE = np.array([True, True, False, True]), np.array([True, True, True, False])


def applied(answers):
    """Inputs are the columns themselves."""
    space = SimpleNamespace(decoded=lambda now, x, values, column: values)
    return Applied(space, np.arange(2, dtype=np.int32), np.arange(4), NOW, NOW, answers)


def sums(rows, values):
    return values.sum(axis=1) > 3, values.sum(axis=1)


@pytest.mark.parametrize(("gain", "expected"), [(0.4, 1.0), (0.5, 1.0), (0.5 + 1e-7, 1.0), (0.5001, 0.0), (2.0, 0.0)])
def test_an_offer_is_confirmed_where_the_score_rises_by_the_gain(gain, expected):
    """A gain of 0.5 to the rounding of a millionth; nobody is asked who has no offer, or is favoured already."""
    order = SimpleNamespace(offered=OFFERED, values=POINTS)
    found = applied(sums).offers_confirmed(order, np.full(4, gain), UNFAVOURABLE)
    np.testing.assert_array_equal(found, [expected, expected, np.nan, np.nan])


@pytest.mark.parametrize(
    ("score", "gain", "expected"), [(1e6, 0.9, 1.0), (1e6, 1.1, 0.0), (0.0, 0.9e-6, 1.0), (0.0, 1.5e-6, 0.0)]
)
def test_rounding_is_a_millionth_of_the_score_and_never_less_than_a_millionth(score, gain, expected):
    order = SimpleNamespace(offered=OFFERED, values=POINTS)
    found = applied(lambda rows, values: (rows < 0, np.full(len(rows), score))).offers_confirmed(
        order, np.full(4, gain), UNFAVOURABLE
    )
    assert found[0] == expected


def test_each_applicant_is_held_to_the_gain_of_that_applicant():
    order = SimpleNamespace(offered=OFFERED, values=POINTS)
    found = applied(sums).offers_confirmed(order, np.array([0.4, 0.6, 0.0, 0.0]), UNFAVOURABLE)
    np.testing.assert_array_equal(found, [1, 0, np.nan, np.nan])


def test_without_a_model_or_an_offer_nothing_is_confirmed():
    order = SimpleNamespace(offered=OFFERED, values=POINTS)
    assert np.isnan(applied(None).offers_confirmed(order, np.zeros(4), UNFAVOURABLE)).all()
    nobody = SimpleNamespace(offered=np.zeros(4, bool), values=POINTS)
    asked = []
    found = applied(lambda *of: asked.append(of)).offers_confirmed(nobody, np.zeros(4), UNFAVOURABLE)
    assert np.isnan(found).all()
    assert asked == []


def test_a_point_is_confirmed_where_the_model_favours_it():
    np.testing.assert_array_equal(applied(sums).confirmed(POINTS, UNFAVOURABLE), [0, 0, 0, np.nan])
    np.testing.assert_array_equal(applied(sums).confirmed(POINTS + 1, UNFAVOURABLE), [1, 1, 1, np.nan])
    assert not applied(None).favoured(POINTS).any()
