"""Effects in parts of a group: harm that a mean hides, one critical value, and what is too small to be looked at."""

import numpy as np
import pytest
from scipy.special import expit

from tasks.methods.adjusted.algorithm.expected import effect_on, error_of, odds_of_membership, rule_of
from tasks.methods.adjusted.algorithm.parts import (
    Inside,
    Rules,
    Split,
    _columns,
    _cross_products,
    critical_values,
    parts_of,
    split_of_fifths,
    split_of_number,
)


def parts(shift, *, seed=1, n=6000, cluster=None, rules=None, levels=3):
    rng = np.random.default_rng(seed)
    member = rng.random(n) < 0.3
    number = rng.standard_normal(n)
    code = rng.integers(0, levels, n).astype(np.int32)
    chance = expit(-1.2 + 0.7 * number + np.resize(shift, levels)[code] * member)
    x = np.column_stack([np.ones(n), number, *(code == level for level in range(1, levels))])
    y = (rng.random(n) < chance).astype(float)
    rule = rule_of(x, y, ~member)
    effect = effect_on(rule, member)
    inside = Inside(1, effect, odds_of_membership(x, member, ~member), 0.02)
    split = Split("product", tuple(f"p{level}" for level in range(levels)), code)
    own = parts_of(rule, [inside], {1: [split]}, cluster, rules or Rules(), np.random.default_rng(0))
    return effect, {part.level: part for part in own}


def test_harm_and_favour_that_add_up_to_nothing_are_found_where_they_are():
    effect, by_level = parts([-1.6, 1.4, 0.0])
    assert abs(effect.value) < 0.06
    assert [level for level, part in by_level.items() if part.outside] == ["p1"]
    assert by_level["p1"].bars
    assert by_level["p1"].exceeds_rest
    assert by_level["p1"].value > 0.15
    assert by_level["p0"].high < 0


def test_without_harm_no_part_is_outside_nor_keeps_the_group_from_being_within():
    outside = bars = 0
    for seed in range(30):
        _, by_level = parts([0.0], seed=seed, n=2000, levels=6)
        outside += any(part.outside for part in by_level.values())
        bars += any(part.bars for part in by_level.values())
    assert (outside, bars <= 4) == (0, True)


def test_what_a_strict_branch_does_to_everybody_is_no_effect():
    rng = np.random.default_rng(3)
    n = 6000
    member = rng.random(n) < 0.3
    branch = np.where(rng.random(n) < np.where(member, 0.7, 0.3), 1, 0).astype(np.int32)
    y = (rng.random(n) < expit(-1.5 + 1.2 * branch)).astype(float)
    rule = rule_of(np.ones((n, 1)), y, ~member)
    inside = Inside(1, effect_on(rule, member), np.ones(n), 0.02)
    found = parts_of(rule, [inside], {1: [Split("branch", ("a", "b"), branch)]}, None, Rules(), rng)
    assert inside.effect.value > 0.05
    assert not any(part.outside or part.bars for part in found)


def test_small_parts_and_those_that_hold_nearly_everybody_are_not_looked_at():
    _, by_level = parts([0.0], rules=Rules(minimum_n=800))
    assert by_level == {}
    _, whole = parts([0.0], levels=1)
    assert whole == {}


def test_a_part_where_nobody_differs_has_width():
    n = 1200
    member = np.tile([True, False], n // 2)
    code = np.repeat([0, 1], n // 2).astype(np.int32)
    y = np.zeros(n)
    y[code == 1] = np.tile([0, 0, 1, 1, 0, 1], n // 12)
    rule = rule_of(np.ones((n, 1)), y, ~member)
    inside = Inside(1, effect_on(rule, member), np.ones(n), 0.02)
    found = parts_of(rule, [inside], {1: [Split("c", ("a", "b"), code)]}, None, Rules(), np.random.default_rng(0))
    assert all(part.se > 0.005 for part in found)
    (same,) = (part for part in found if part.level == "a")
    rate = y[~member].mean()
    assert (same.value, same.se) == pytest.approx((0, np.sqrt(rate * (1 - rate) * 2 / 300)))


def test_parts_of_one_split_are_the_same_next_to_another():
    rng = np.random.default_rng(2)
    member, number = rng.random(3000) < 0.4, rng.standard_normal(3000)
    y = (rng.random(3000) < expit(number + 0.5 * member)).astype(float)
    x = np.column_stack([np.ones(3000), number])
    rule = rule_of(x, y, ~member)
    inside = Inside(1, effect_on(rule, member), odds_of_membership(x, member, ~member), 0.02)
    splits = [
        Split(f"s{width}", tuple("abcd"[:width]), rng.integers(0, width, 3000).astype(np.int32)) for width in (2, 4, 3)
    ]

    def found(some: list[Split]) -> dict[tuple[str, str], tuple[float, float]]:
        own = parts_of(rule, [inside], {1: some}, None, Rules(), np.random.default_rng(0))
        return {(part.column, part.level): (part.value, part.se) for part in own}

    together = found(splits)
    assert len(together) == 9
    for split in splits:
        for key, part in found([split]).items():
            assert together[key] == pytest.approx(part)


def test_the_critical_value_of_many_parts_lies_between_one_and_all_of_them():
    rng = np.random.default_rng(0)
    alone = critical_values(np.eye(1), 4000, rng)
    same = critical_values(np.ones((20, 20)), 4000, rng)
    apart = critical_values(np.eye(20), 4000, rng)
    assert alone[0] == pytest.approx(1.645, abs=0.1)
    assert same[0] == pytest.approx(1.645, abs=0.1)
    assert apart[0] == pytest.approx(2.80, abs=0.12)
    assert apart[1] == pytest.approx(3.02, abs=0.12)


def test_a_processor_that_turns_eigenvectors_changes_no_critical_value(monkeypatch):
    """Two parts have an equal share in both vectors, so that rounding decides on their signs."""
    correlation, decompose = np.array([[1.0, 0.3], [0.3, 1.0]]), np.linalg.eigh
    expected = critical_values(correlation, 500, np.random.default_rng(1))
    for signs in ([-1, 1], [1, -1], [-1, -1]):
        turned = lambda matrix, signs=signs: (decompose(matrix)[0], decompose(matrix)[1] * signs)  # noqa: E731
        monkeypatch.setattr(np.linalg, "eigh", turned)
        assert critical_values(correlation, 500, np.random.default_rng(1)) == pytest.approx(expected)


def test_officers_of_one_part_have_an_error_by_officers():
    cluster = np.arange(6000, dtype=np.int32) % 40
    _, by_level = parts([0.0], cluster=cluster)
    _, alone = parts([0.0])
    assert all(by_level[level].se >= alone[level].se for level in alone)


def test_the_error_by_clusters_is_that_of_the_influences_of_all_rows():
    rng = np.random.default_rng(8)
    n = 900
    member, number, cluster = rng.random(n) < 0.4, rng.standard_normal(n), rng.integers(0, 40, n).astype(np.int32)
    y = (rng.random(n) < expit(-0.5 + number + 3 * member * np.sin(cluster))).astype(float)
    rule = rule_of(np.column_stack([np.ones(n), number]), y, ~member)
    inside = Inside(1, effect_on(rule, member), odds_of_membership(rule.x, member, ~member), 0.02)
    split = Split("half", ("a", "b"), (number > 0.2).astype(np.int32))
    columns = list(_columns(rule, inside, [split], Rules()))
    cross, errors = _cross_products(rule, [inside], columns, cluster)
    for place, column in enumerate(columns):
        inside_part, residual = split.code == column.level, y - rule.p0
        influence = -rule.shifted(column.gradient)
        influence += np.where(inside_part & member, (residual - column.mean) / column.n, 0)
        taken_out = inside.odds * (residual - column.taken_out) / column.weight
        influence -= np.where(inside_part & ~member, taken_out, 0)
        assert cross[place, place] == pytest.approx(influence @ influence, rel=1e-12)
        by_cluster = error_of(influence, inside_part & member, ~member, cluster).se
        assert max(errors[place], np.sqrt(cross[place, place])) == pytest.approx(by_cluster, rel=1e-12)
        assert errors[place] > 1.1 * np.sqrt(cross[place, place])


def test_thirds_and_fifths_are_named_and_hold_what_they_say():
    third = split_of_number("income", np.arange(1.0, 10.0))
    assert third.levels == ("up to 3", "above 3 to 6", "above 6")
    assert np.bincount(third.code).tolist() == [3, 3, 3]
    assert split_of_number("flag", np.array([0.0, 1.0, 1.0])).levels == ("up to 0", "above 0 to 1", "above 1")
    missing = split_of_number("income", np.array([1.0, np.nan, 3.0]))
    assert missing.code[1] == -1
    assert split_of_fifths(np.linspace(0, 1, 50)).levels[-1] == "fifth 5 of 5"
