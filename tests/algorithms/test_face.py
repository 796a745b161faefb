"""FACE and the ratio to it: hand-worked costs, a plain loop as reference, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.algorithms import face

INF, NAN = np.inf, np.nan


@st.composite
def some_costs(draw):
    f, c = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    cost = st.one_of(st.just(INF), st.integers(0, 4).map(float), st.floats(0.01, 100))
    matrix = draw(st.lists(st.lists(cost, min_size=c, max_size=c), min_size=f, max_size=f))
    weight = draw(st.lists(st.integers(1, 5), min_size=f, max_size=f))
    picks = draw(st.permutations(range(c)))[: draw(st.integers(0, c))] + [-1] * draw(st.integers(0, 2))
    return np.array(matrix, dtype=float).reshape(f, c), np.array(weight, np.int64), np.array(picks, np.int64)


def by_hand(cost, weight, picks):
    """Ratio, mean, rows with a ratio and rows left out, factual by factual and k by k."""
    ratio = np.full((len(cost), len(picks)), NAN)
    mean, defined, left_out = [], [], []
    for k in range(len(picks)):
        total = rows = dropped = 0
        for i, row in enumerate(cost):
            paid = min((row[pick] for pick in picks[: k + 1] if pick >= 0), default=INF)
            if paid == INF:
                continue
            if min(row) == 0 and paid > 0:
                dropped += weight[i]
                continue
            ratio[i, k] = 1.0 if paid == 0 else paid / min(row)
            rows += weight[i]
            total += weight[i] * ratio[i, k]
        mean.append(total / rows if rows else NAN)
        defined.append(rows)
        left_out.append(dropped)
    return ratio, mean, defined, left_out


def test_ratios_by_hand():
    cost = np.array([[2.0, 1.0, 4.0], [3.0, INF, 3.0], [0.0, 5.0, INF], [INF, INF, INF]])
    found = face.face_ratio(cost, np.array([1, 2, 3, 4]), np.array([2, 1, 0, -1]))
    assert found.ratio.tolist()[0] == [4.0, 1.0, 1.0, 1.0]
    assert found.ratio.tolist()[1] == [1.0, 1.0, 1.0, 1.0]
    # the third is covered by the second pick at a cost of 5, while its own optimum is free
    assert np.array_equal(found.ratio[2], [NAN, NAN, 1.0, 1.0], equal_nan=True)
    assert np.isnan(found.ratio[3]).all()
    assert found.mean.tolist() == [(1 * 4.0 + 2 * 1.0) / 3, 1.0, 1.0, 1.0]
    assert found.defined.tolist() == [3, 3, 6, 6]
    assert found.left_out.tolist() == [0, 3, 0, 0]


def test_optimum_by_hand():
    cost, choice = face.optimum(np.array([[2.0, 1.0, 1.0], [INF, INF, INF], [INF, INF, 0.0]]))
    assert np.array_equal(cost, [1.0, NAN, 0.0], equal_nan=True)
    assert choice.tolist() == [1, -1, 2]


@given(some_costs())
@settings(deadline=None, max_examples=300)
def test_ratios_agree_with_a_plain_loop(case):
    cost, weight, picks = case
    found = face.face_ratio(cost, weight, picks)
    ratio, mean, defined, left_out = by_hand(cost, weight, picks)
    assert np.array_equal(found.ratio, ratio, equal_nan=True)
    assert np.allclose(found.mean, mean, rtol=1e-12, equal_nan=True)
    assert found.defined.tolist() == defined
    assert found.left_out.tolist() == left_out


@given(some_costs())
@settings(deadline=None, max_examples=200)
def test_laws(case):
    cost, weight, picks = case
    found = face.face_ratio(cost, weight, picks)
    has = ~np.isnan(found.ratio)
    assert (found.ratio[has] >= 1).all()
    assert (np.diff(has.astype(int), axis=1) >= 0).all()  # once there is a ratio, there is one for every larger k
    for row in found.ratio:
        assert (np.diff(row[~np.isnan(row)]) <= 0).all()
    everything = face.face_ratio(cost, weight, np.arange(cost.shape[1]))
    if cost.shape[1]:
        feasible = np.isfinite(cost).any(axis=1)
        assert np.array_equal(everything.ratio[:, -1], np.where(feasible, 1.0, NAN), equal_nan=True)
    best, choice = face.optimum(cost)
    assert (np.isnan(best) == (choice < 0)).all()
    chosen = choice >= 0
    assert (cost[chosen, choice[chosen]] == best[chosen]).all()
    assert (best[chosen, None] <= cost[chosen]).all()


@given(some_costs(), st.floats(0.25, 4))
@settings(deadline=None, max_examples=50)
def test_the_unit_of_cost_does_not_matter(case, unit):
    cost, weight, picks = case
    before, after = face.face_ratio(cost, weight, picks), face.face_ratio(cost * unit, weight, picks)
    assert np.allclose(before.ratio, after.ratio, equal_nan=True)


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_costs_that_are_none(bad):
    with pytest.raises(ValueError, match="negative or NaN"):
        face.face_ratio(np.array([[1.0, bad]]), np.array([1]), np.array([0]))
