"""Samples by hash: who is drawn depends on nobody else but by the threshold; floors, weights, design variance."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.numerics.statistics.sampling import (
    Asked,
    allotted,
    design_variance,
    hashes,
    proportionally,
    thresholds,
)

QUICK = settings(deadline=None, max_examples=examples(60))
COUNTS = st.lists(st.integers(0, 60), min_size=1, max_size=5).map(np.array)


def rows_of(counts):
    """Ids and groups, rows of all groups in turn mixed."""
    group = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    order = np.random.default_rng(int(counts.sum())).permutation(len(group))
    return [f"row {number}" for number in range(len(group))], group[order]


def asked_of(ids, group, counts, most, floor, seed=1):
    return Asked.of(hashes(ids, seed), group, allotted(counts, most, floor))


@QUICK
@given(COUNTS, st.integers(1, 80), st.integers(0, 30))
def test_every_group_has_its_floor_and_weights_sum_to_the_group(counts, most, floor):
    ids, group = rows_of(counts)
    asked = asked_of(ids, group, counts, most, floor)
    drawn, members = asked.sizes
    assert (members == counts).all()
    assert (drawn >= np.minimum(counts, floor)).all()
    assert (drawn <= counts).all()
    if counts.sum() <= most:
        assert asked.drawn.all()
        assert (asked.weights == 1).all()
    for number in np.flatnonzero(drawn):
        assert asked.weights[group == number].sum() == pytest.approx(counts[number])
        assert len(np.unique(asked.weights[asked.drawn & (group == number)])) == 1, "equal weights within a group"
        assert asked.part(int(number)) == (drawn[number], counts[number])
    assert (asked.weights[~asked.drawn] == 0).all()


@QUICK
@given(COUNTS, st.integers(1, 80), st.integers(0, 30), st.data())
def test_order_and_more_rows_move_the_threshold_alone(counts, most, floor, data):
    ids, group = rows_of(counts)
    asked = asked_of(ids, group, counts, most, floor)
    order = np.array(data.draw(st.permutations(range(len(ids)))), dtype=int)
    again = asked_of([ids[at] for at in order], group[order], counts, most, floor)
    assert (again.drawn == asked.drawn[order]).all()
    grown = np.minimum(counts + 20, 10**6)
    more = np.repeat(np.arange(len(counts)), 20).astype(np.int32)
    larger = asked_of(
        [*ids, *(f"new {number}" for number in range(len(more)))], np.concatenate([group, more]), grown, most, floor
    )
    assert (larger.hashed[: len(ids)] == asked.hashed).all()
    kept = larger.hashed[: len(ids)] <= larger.threshold[group]
    assert (larger.drawn[: len(ids)] == kept).all()
    for number in range(len(counts)):
        own, moved = group == number, larger.threshold[number] >= asked.threshold[number]
        of = asked.drawn[own], larger.drawn[: len(ids)][own]
        assert (of[1] >= of[0]).all() if moved else (of[1] <= of[0]).all()


@QUICK
@given(COUNTS.filter(lambda counts: counts.sum() > 0), st.integers(1, 80))
def test_cells_lose_the_same_share(counts, most):
    sizes = proportionally(counts, most)
    assert sizes.sum() == min(most, counts.sum())
    assert (sizes <= counts).all()
    assert (np.abs(sizes - counts * min(1, most / counts.sum())) < 1).all()


def test_sizes_by_hand_are_shares_with_a_floor_and_nobody_twice():
    """A tenth of 1,005 rows: 10 of 100 are fewer than the floor of 20, and five are all there are."""
    counts = np.array([100, 5, 900])
    assert allotted(counts, 100, 20).tolist() == [20, 5, 90]
    assert allotted(counts, 100, 0).tolist() == [10, 0, 90]
    assert allotted(counts, 1_005, 20).tolist() == [100, 5, 900]


def test_a_seed_or_a_draw_is_another_sample_and_hashes_stay_what_they_are():
    ids = [str(number) for number in range(400)]
    first, other, again = hashes(ids, 1), hashes(ids, 2), hashes(ids, 1, 1)
    assert (first == hashes(ids, 1)).all()
    size, cell = np.array([100]), np.zeros(400, np.int64)
    drawn = [each <= thresholds(each, cell, size)[0] for each in (first, other, again)]
    assert [each.sum() for each in drawn] == [100, 100, 100]
    assert 5 < (drawn[0] & drawn[1]).sum() < 50 > (drawn[0] & drawn[2]).sum() > 5
    assert hashes(["A-1"], 482).tolist() == [KNOWN], "runs of earlier versions would ask others"


KNOWN = 15414472673499414656


def test_the_design_variance_is_that_of_samples_without_replacement():
    rng = np.random.default_rng(4)
    values = rng.gamma(2, size=300)
    means, variances = [], []
    for _ in range(4000):
        some = rng.choice(values, 80, replace=False)
        means.append(some.mean())
        variances.append(design_variance((some - some.mean()) / 80, 80, 300))
    assert np.var(means) == pytest.approx(np.mean(variances), rel=0.08)
    assert design_variance((values - values.mean()) / 300, 300, 300) == 0.0


def test_cells_thresholds_and_variance_by_hand():
    """9 of 20 rows: 4.5, 2.25 and 2.25 round down to 8, and the one left goes to the cell that lost most."""
    assert proportionally(np.array([10, 5, 5]), 9).tolist() == [5, 2, 2]
    assert proportionally(np.array([5, 10]), 5).tolist() == [2, 3], "1.67 loses more by rounding down than 3.33"
    assert proportionally(np.array([5, 15, 5]), 5).tolist() == [1, 3, 1]
    assert proportionally(np.array([2, 6]), 2).tolist() == [0, 2], "where both lose a half the larger cell comes first"
    assert proportionally(np.array([3, 4]), 7).tolist() == [3, 4]
    hashed, cell = np.array([5, 1, 9, 4, 2], np.uint64), np.array([0, 0, 0, 1, 2])
    limits = thresholds(hashed, cell, np.array([2, 1, 0]))
    assert limits.tolist() == [5, 2**64 - 1, 0]
    asked = Asked(hashed, cell.astype(np.int32), limits)
    assert asked.drawn.tolist() == [True, True, False, True, False]
    assert asked.below(0).tolist() == [True, True, False, True, True]
    assert asked.weights.tolist() == [1.5, 1.5, 0.0, 1.0, 0.0]
    assert asked.part(0) == (2, 3)
    assert design_variance(np.array([0.5, -0.5]), 2, 10) == pytest.approx(0.5 * 2 / 1 * 0.8)
    assert design_variance(np.array([0.5]), 1, 10) == 0.0
    assert design_variance(np.array([0.5, -0.5]), 2, 2) == 0.0
