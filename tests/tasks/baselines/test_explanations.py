"""Laws of every group explanation in the registry; AReS and GLOBE-CE on rows whose best change is known."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from research.fgce import group_explanations
from research.fgce.group_explanations import EXPLANATIONS, IMMUTABLE, Ares, GlobeCe, Refused, moved

QUICK = settings(deadline=None, max_examples=examples(10))

FEATURE = np.array([0, 1, 2, 3, 3, 3], np.int32)
"""Three numbers and a category of three."""


def system(name):
    """A system of the registry, at a size for tests."""
    found = EXPLANATIONS[name]
    return replace(found, translations=30) if isinstance(found, GlobeCe) else found


def drawn(seed, n=60):
    """Rows of which a linear model refuses about half, and rules of a step."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, 9, (n, 3)) / 8, np.eye(3)[rng.integers(0, 3, n)]])
    slope = rng.normal(size=6)
    level = float(np.quantile(rows @ slope, rng.uniform(0.2, 0.8)))
    direction = rng.choice([-1, 0, 1, IMMUTABLE], 4)[FEATURE].astype(np.int32)
    refused = Refused(rows, rows, FEATURE, lambda x: x @ slope - level, direction)
    return replace(refused, values=rows[~refused.accepted(rows)])


@pytest.mark.parametrize("name", EXPLANATIONS)
@QUICK
@given(seed=st.integers(0, 10**6))
def test_a_proposal_is_accepted_or_there_is_a_reason(name, seed):
    refused = drawn(seed)
    found, again = (system(name)(refused, np.random.default_rng(seed)) for _ in range(2))
    assert np.array_equal(found.point, again.point)
    assert found.point.shape == refused.values.shape
    assert np.isfinite(found.point).all()
    assert ((found.point >= 0) & (found.point <= 1)).all()
    assert (found.point[:, 3:].sum(axis=1) == 1).all()
    assert ((found.refusal == "") == found.valid).all()
    assert refused.accepted(found.point[found.valid]).all()
    assert found.explanation.max(initial=-1) < found.explanations
    moved_by = np.sqrt(((found.point - refused.values) ** 2).sum(axis=1))
    assert np.allclose(found.cost[found.valid], moved_by[found.valid])
    assert (moved_by[found.explanation < 0] == 0).all()


@QUICK
@given(seed=st.integers(0, 10**6))
def test_what_is_told_the_rules_keeps_them(seed):
    refused = drawn(seed)
    step = system("globe_ce_told")(refused, np.random.default_rng(seed)).point - refused.values
    assert (step[:, refused.direction == IMMUTABLE] == 0).all()
    for sign in (-1, 1):
        numbers = (refused.direction == sign) & (FEATURE < 3)
        assert (sign * step[:, numbers] >= -1e-12).all()


def test_a_dense_direction_changes_every_number():
    refused = drawn(4)
    found = replace(system("globe_ce_dense"), translations=1)(refused, np.random.default_rng(1))
    step = np.abs(found.point - refused.values)[found.valid]
    assert found.valid.any()
    assert (step[:, :3] > 0).any(axis=0).all()


def test_a_system_that_is_told_the_rules_asks_for_them():
    refused = replace(drawn(0), direction=None)
    with pytest.raises(ValueError, match="was given none"):
        system("globe_ce_told")(refused, np.random.default_rng(0))


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_nobody_is_served_where_the_model_accepts_nobody(name):
    found = system(name)(replace(drawn(1), logit=lambda x: np.full(len(x), -1.0)), np.random.default_rng(0))
    assert not found.valid.any()
    assert found.explanations == 0
    assert (found.refusal != "").all()


def test_the_smallest_scalar_ends_on_the_boundary():
    """One number decides, and one half of it is enough: everybody ends at exactly that."""
    rows = np.column_stack([np.arange(9) / 8, np.zeros(9)])
    refused = Refused(rows[:4], rows, np.array([0, 1], np.int32), lambda x: x[:, 0] - 0.5)
    found = GlobeCe(translations=50)(refused, np.random.default_rng(0))
    assert found.valid.all()
    assert np.allclose(found.point[:, 0], 0.5, atol=1e-6)
    assert np.allclose(found.cost, 0.5 - rows[:4, 0], rtol=0.2)


def test_a_category_changes_where_another_value_is_larger_and_stays_at_a_tie():
    refused = drawn(2)
    values = np.array([[0.5, 0.5, 0.5, 1.0, 0.0, 0.0]])
    step = np.array([[0.7, -0.7, 0.0, 0.0, 1.0, 0.0]])
    assert moved(refused, values, step).tolist() == [[1.0, 0.0, 0.5, 1.0, 0.0, 0.0]]
    assert moved(refused, values, 1.5 * step)[0, 3:].tolist() == [0.0, 1.0, 0.0]


def test_rules_take_the_change_that_everybody_needs():
    """Accepted from 0.5 of the first number on; the second says nothing: one rule for each value below."""
    rows = np.array([[a, b] for a in (0.0, 0.25, 0.5, 1.0) for b in (0.0, 1.0)] * 5)
    refused = Refused(rows[rows[:, 0] < 0.5], rows, np.array([0, 1], np.int32), lambda x: x[:, 0] - 0.5)
    found = Ares()(refused, np.random.default_rng(0))
    assert found.valid.all()
    assert found.explanations == 2
    assert np.array_equal(found.point, np.column_stack([np.full(20, 0.5), refused.values[:, 1]]))


def test_frequent_itemsets_are_those_that_a_count_finds():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (40, 4)).astype(np.int32)
    found = group_explanations.frequent(codes, 0.1, 2)
    for items, held in found.items():
        assert held.sum() == sum(all(row[at] == value for at, value in items) for row in codes) >= 4
    counted = {
        ((a, x), (b, y))
        for a in range(4)
        for b in range(a + 1, 4)
        for x in range(3)
        for y in range(3)
        if ((codes[:, a] == x) & (codes[:, b] == y)).sum() >= 4
    }
    assert {items for items in found if len(items) == 2} == counted


def test_a_bin_stands_for_the_mean_of_its_rows():
    rows = np.concatenate([np.linspace(0, 0.099, 20), [1.0]])[:, None]
    cut = group_explanations.binned(rows, np.zeros(1, np.int32))
    codes = cut.of(rows)[:, 0]
    assert codes.tolist() == [0] * 20 + [group_explanations.BINS - 1]
    assert cut.values[0][0, 0] == pytest.approx(rows[:20].mean())
    assert cut.values[0][-1, 0] == 1.0
