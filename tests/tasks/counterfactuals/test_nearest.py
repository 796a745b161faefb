"""Label-stratified matching: clear loops with and without replacement, ties, cells, limits and bad features."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import EMPTY_CELL, TAKEN, TOO_FAR, UNMATCHED, Matching
from tasks.numerics import encoding
from tasks.numerics.encoding import Columns

QUICK = settings(deadline=None, max_examples=examples(60))
AS_THEY_ARE = Matching(winsorise=None)


def drawn(seed, n=60, features=2, levels=4):
    """Rows on a coarse grid of thirds, so that many places and distances are equal but for rounding."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, levels, (n, features)) / 3 + 0.1
    return at, rng.random(n) < 0.6, rng.integers(0, 3, n).astype(np.int32), rng.random(n) < 0.8


def distance(at, i, j):
    return np.float32(np.sqrt(((at[i] - at[j]) ** 2).sum()))


@QUICK
@given(seed=st.integers(0, 10**6), features=st.integers(1, 3))
def test_a_match_is_the_lowest_of_the_nearest_in_the_cell(seed, features):
    at, label, group, pool = drawn(seed, features=features)
    rows = np.flatnonzero(group != 0)
    found = nearest.match_nearest(nearest.index(at, label, group, pool, AS_THEY_ARE), rows, 0)
    for row, match, away, reason in zip(rows, found.match, found.distance, found.reason, strict=True):
        cell = [j for j in np.flatnonzero(pool) if group[j] == 0 and label[j] == label[row]]
        if not cell:
            assert (match, reason) == (UNMATCHED, EMPTY_CELL)
            assert np.isnan(away)
            continue
        assert match == min(cell, key=lambda j: (distance(at, row, j), j))
        assert np.float32(away) == distance(at, row, match)
        assert reason == ""
    assert found.reuse.tolist() == [int((found.match == m).sum()) for m in np.unique(found.match[found.matched])]


@QUICK
@given(seed=st.integers(0, 10**6), k=st.integers(1, 30), furthest=st.sampled_from([None, 0.4]))
def test_several_matches_are_the_nearest_of_the_cell(seed, k, furthest):
    at, label, group, pool = drawn(seed)
    rows = np.flatnonzero(group != 0)
    laid_out = nearest.index(at, label, group, pool, Matching(None, furthest, k=k))
    for row, several in zip(rows, nearest.match_several(laid_out, rows, 0), strict=True):
        cell = [j for j in np.flatnonzero(pool) if group[j] == 0 and label[j] == label[row]]
        away = sorted(distance(at, row, j) for j in cell)[:k]
        found = [j for j in several if j != UNMATCHED]
        assert len(set(found)) == len(found)
        assert set(found) <= set(cell)
        assert [distance(at, row, j) for j in found] == [a for a in away if furthest is None or a <= furthest]


@QUICK
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), levels=st.sampled_from([2, 4, 1000]))
def test_without_replacement_the_nearest_pair_comes_first(seed, n, levels):
    at, _, group, _ = drawn(seed, n, levels=levels)
    label, group = np.ones(n, bool), group % 2
    everybody = nearest.index(at, label, group, label, Matching(None, replacement=False))
    found = nearest.match_nearest(everybody, np.flatnonzero(group == 1), 0)
    asking, offered = found.row, np.flatnonzero(group == 0)
    lowest = {side: {tuple(at[j]): j for j in rows[::-1]} for side, rows in (("r", asking), ("c", offered))}

    def order(pair):
        row, candidate = pair
        places = lowest["r"][tuple(at[row])], lowest["c"][tuple(at[candidate])]
        return (distance(at, row, candidate), *places, row, candidate)

    expected, taken = {}, set()
    for row, candidate in sorted(((i, j) for i in asking for j in offered), key=order):
        if row not in expected and candidate not in taken:
            expected[row] = candidate
            taken.add(candidate)
    assert dict(zip(found.row[found.matched], found.match[found.matched], strict=True)) == expected
    left = EMPTY_CELL if len(offered) == 0 else TAKEN
    assert (found.reason[~found.matched] == left).all()
    assert len(np.unique(found.match[found.matched])) == found.matched.sum() == min(len(asking), len(offered))


def test_ties_by_the_dozen_are_all_looked_at():
    # twelve places around the origin equally far but for rounding, each held by two rows; the last is the lowest row
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.repeat(np.column_stack([np.cos(angle), np.sin(angle)]) * 0.1, 2, axis=0)
    for shift in range(0, 24, 5):
        at = np.vstack([np.roll(ring, shift, axis=0), [[0.0, 0.0]]])
        group = np.array([0] * 24 + [1], np.int32)
        same = np.ones(25, bool)
        assert nearest.match_nearest(nearest.index(at, same, group, same, AS_THEY_ARE), np.array([24]), 0).match == [0]


@pytest.mark.parametrize("wide", [False, True])
def test_places_of_codes_are_those_of_rows(monkeypatch: pytest.MonkeyPatch, wide: bool):
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.integers(0, 3, 500) / 7, rng.choice([-1.0, 0.0, -0.0, 2.5], 500), rng.random(500) < 0.1]
    )
    rows[0, 0] = 9.0  # a value that the rows that are looked at first lack
    if wide:
        rows = np.column_stack([rows, rng.random(500)])
    expected = encoding.gather(rows)
    monkeypatch.setattr(encoding, "LOOKED_AT", 50)
    monkeypatch.setattr(encoding, "FEW", 40)
    assert (encoding._lexical(rows) is None) == wide
    places = encoding.gather(rows)
    assert (places.at == expected.at).all()
    assert places.order.tolist() == expected.order.tolist()
    assert places.start.tolist() == expected.start.tolist()
    assert (places.at[places.place] == rows).all()
    values = rng.integers(0, 9, (500, 2)).astype(np.float32)
    sums = [values[places.place == place].sum(axis=0) for place in range(len(places.start))]
    assert (places.sums(values[places.order]) == np.array(sums)).all()


def test_coordinates_that_are_no_numbers_are_sorted_as_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoding, "LOOKED_AT", 2)
    assert encoding._lexical(np.array([[1.0], [np.nan], [1.0], [2.0]])) is None
    monkeypatch.setattr(encoding, "MOST", 3)
    assert encoding._lexical(np.array([[1.0, 1], [2, 1], [1, 2], [2, 2]])) is None


def test_places_gather_rows_in_order():
    places = encoding.gather(np.array([[1.0, 2], [0, 5], [1, 2], [0, 4], [1, 2]]))
    assert places.at.tolist() == [[0, 4], [0, 5], [1, 2]]
    assert places.first.tolist() == [3, 1, 0]
    assert places.count.tolist() == [1, 1, 3]
    assert places.order.tolist() == [3, 1, 0, 2, 4]


def test_matches_are_of_the_pool_and_rows_need_not_be():
    at = np.array([[0.0], [0.1], [5.0], [0.0]])
    group, same = np.array([0, 0, 0, 1], np.int32), np.ones(4, bool)
    pool = np.array([False, False, True, False])
    found = nearest.match_nearest(nearest.index(at, same, group, pool, AS_THEY_ARE), np.array([3]), 0)
    assert (found.match.tolist(), found.distance.tolist()) == ([2], [5.0])


def test_exactly_at_the_limit_still_counts_and_beyond_it_the_distance_is_kept():
    at = np.array([[0.0], [0.5], [0.75]])
    group, same = np.array([0, 1, 1], np.int32), np.ones(3, bool)
    limited = nearest.index(at, same, group, same, Matching(None, maximum_distance=0.5))
    found = nearest.match_nearest(limited, np.array([1, 2]), 0)
    assert found.match.tolist() == [0, UNMATCHED]
    assert found.reason.tolist() == ["", TOO_FAR]
    assert found.distance.tolist() == [0.5, 0.75]


def test_matches_are_counterfactuals_for_any_method():
    values = np.array([[1.0, 0], [2, 1], [3, 0]])
    columns = Columns(("income", "purpose"), (Kind.CONTINUOUS, Kind.NOMINAL), ((), ("a", "b")), values)
    matches = nearest.Matches(
        np.array([2, 0, 1]), np.array([1, 2, UNMATCHED]), np.zeros(3), np.array(["", "", TOO_FAR])
    )
    told = nearest.counterfactuals(matches, columns, np.array([True, False, True]))
    assert told.row.tolist() == [0, 2]
    assert told.values.tolist() == [[3, 0], [2, 1]]
    assert told.favourable.tolist() == [True, False]
    assert nearest.counterfactuals(matches, columns, None).favourable is None


def test_nobody_is_their_own_match():
    at, same, group = np.zeros((2, 1)), np.ones(2, bool), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="own matches"):
        nearest.match_nearest(nearest.index(at, same, group, same, AS_THEY_ARE), np.array([1]), 0)
    laid = nearest.index(at, same, group, np.array([True, False]), AS_THEY_ARE)
    assert nearest.match_nearest(laid, np.array([1]), 0).match.tolist() == [0]


def test_standardising_looks_at_the_pool_alone():
    values = np.array([[1.0], [3.0], [100.0]])
    at = nearest.standardise(values, ("income",), np.array([True, True, False]), None)
    assert at[:, 0].tolist() == [-1.0, 1.0, 98.0]


def test_winsorising_clips_at_quantiles_of_the_pool():
    values = np.append(np.arange(101.0), 1e9)[:, None]
    pool = np.arange(102) < 101
    at = nearest.standardise(values, ("income",), pool, (0.01, 0.99))
    inside = np.clip(values, 1, 99)
    assert at == pytest.approx((inside - inside[pool].mean()) / inside[pool].std())
    assert at[-1] == at[99]


def test_a_feature_that_clipping_would_leave_nothing_of_is_not_clipped():
    values = np.append(np.zeros(999), 7.0)[:, None]
    at = nearest.standardise(values, ("gain",), np.ones(1000, bool), (0.01, 0.99))
    assert at[-1, 0] == pytest.approx((7 - values.mean()) / values.std())


@pytest.mark.parametrize(
    ("values", "pool", "told"),
    [
        ([[1.0, 2], [2, 2]], [True, True], "'amount' is constant among the rows"),
        ([[1.0, 2], [2, 3]], [True, False], "'income' is constant among the rows"),
        ([[1.0, np.nan], [2, 3]], [True, True], "'amount' has missing or infinite"),
        ([[1.0, 2], [2, 3]], [False, False], "no row may serve as a match"),
    ],
)
def test_features_that_nobody_can_be_compared_by_are_named(values, pool, told):
    with pytest.raises(DataQualityError, match=told):
        nearest.standardise(np.array(values), ("income", "amount"), np.array(pool), None)
