"""Weights of the adjusted effects: by hand, against a clear loop, and laws that make the adjustment exact."""

import math

import numpy as np
import pytest
from conftest import examples, fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_situations import DIRECT, MEDIATED, draw

from schemas.terms import Kind
from tasks.methods.cst.algorithm.contrasts import (
    LARGEST_LEVERAGE,
    Lists,
    Sides,
    contrast,
    designs_of,
    fit_side,
    noise,
    served,
    sides_of,
)
from tasks.methods.cst.algorithm.effects import TOO_FEW_COMPLAINANTS, TOO_FEW_FOR_ADJUSTMENT, effects
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.encoding import Columns
from tasks.numerics.statistics.regression import fit_logit

QUICK = settings(deadline=None, max_examples=examples(20))
SIZE = 700


def sides_and_lists(seed, n=SIZE, moved=None):
    """A draw with random neighbours: what holds of weights holds of any lists."""
    rng, drawn = np.random.default_rng(seed), draw(DIRECT, n, seed)
    own, others = np.flatnonzero(drawn.member), np.flatnonzero(~drawn.member)
    y = drawn.denied.astype(float)
    sides = sides_of(designs_of(drawn.columns), drawn.values, (own, others), y)
    row = np.sort(rng.choice(own, len(own) // 2, replace=False))
    lists = Lists(row, rng.choice(own, (len(row), 5)), rng.choice(others, (len(row), 5)), moved and moved(drawn, row))
    return drawn, sides, lists, y


def test_where_the_searches_start_does_not_matter():
    drawn, sides, _, y = sides_and_lists(1, n=1500)
    designs, others = designs_of(drawn.columns), np.flatnonzero(~drawn.member)
    rows = np.sort(np.random.default_rng(2).choice(np.flatnonzero(drawn.member), 180, replace=False)), others
    far, near = (sides_of(designs, drawn.values, rows, y, start) for start in (None, sides))
    assert near.score == pytest.approx(far.score, abs=1e-8)
    assert near.other.logit == pytest.approx(far.other.logit, abs=1e-8)
    assert near.variance(len(y)) == pytest.approx(far.variance(len(y)), abs=1e-8)
    assert not np.allclose(sides.score, far.score), "the other group's are others"


def test_how_often_rows_serve_by_hand():
    assert served(np.array([[0, 1], [1, -1]]), 4) == pytest.approx([0.25, 0.75, 0, 0])


def test_weights_by_hand():
    """One column without squares: the line through the own side says what one unit of x is worth.

    Group rows x = 0..19, complainant at x = 3 with the control x = 0: its weight moves mass to where x is 3 on average.
    """
    values = np.array([[float(x)] for x in [*range(20), *range(20)]])
    columns = Columns(("x",), (Kind.CONTINUOUS,), ((),), values)
    own, others = np.arange(20), np.arange(20, 40)
    design = designs_of(columns)[1]
    denied = (values[:, 0] > 9).astype(float)
    sides = Sides(*(fit_side((design, design), values, rows, denied) for rows in (own, others)))  # without the score
    found = contrast(sides, values, Lists(np.array([3]), np.array([[0]]), np.array([[23]])))
    centred = np.arange(20) - 9.5
    expected = 3.0 * centred / (centred @ centred)
    expected[0] += 1.0
    assert found.weights[:20] == pytest.approx(expected)
    test = np.zeros(20)
    test[3] = -1.0
    assert found.weights[20:] == pytest.approx(test), "a neighbour equal to the complainant needs no adjustment"


@QUICK
@given(seed=st.integers(0, 10**6))
def test_weights_are_those_of_the_clear_loop_and_balance_the_design(seed):
    drawn, sides, lists, _ = sides_and_lists(seed)
    found = contrast(sides, drawn.values, lists)
    c = np.zeros(SIZE)
    for near in lists.control:
        for j in near:
            c[j] += 1 / lists.control.size
    side = sides.group
    z = {int(j): side.z[i] for i, j in enumerate(side.rows)}
    zbar = sum(z[int(i)] for i in lists.row) / len(lists.row)
    gap = np.linalg.pinv(side.z.T @ side.z) @ (zbar - sum(c[j] * z[j] for j in z))
    assert found.weights[side.rows] == pytest.approx([c[j] + z[j] @ gap for j in z])
    assert (found.weights[side.rows].sum(), found.weights[sides.other.rows].sum()) == pytest.approx((1, -1))
    assert side.z.T @ found.weights[side.rows] == pytest.approx(zbar)
    other = sides.other.design.of(drawn.values[lists.row]).mean(axis=0)
    assert -sides.other.z.T @ found.weights[sides.other.rows] == pytest.approx(other)


@QUICK
@given(seed=st.integers(0, 10**6), direct=st.floats(-1, 1))
def test_decisions_linear_in_the_columns_leave_the_direct_effect_alone(seed, direct):
    """However far away the neighbours are, there is no bias."""
    drawn, sides, lists, _ = sides_and_lists(seed)
    b = np.random.default_rng(seed).normal(size=sides.group.z.shape[1])
    y = sides.group.design.of(drawn.values) @ b + direct * drawn.member
    assert contrast(sides, drawn.values, lists).value(y) == pytest.approx(direct, abs=1e-9)


@QUICK
@given(seed=st.integers(0, 10**6))
def test_of_linear_decisions_cst_is_what_the_move_is_worth(seed):
    def moved(drawn, row):
        return drawn.values[row] + [1.0, -0.5, 0.0, 0.0]

    drawn, sides, lists, _ = sides_and_lists(seed, moved=moved)
    y = drawn.values[:, :3] @ [0.3, 0.2, 0.1]
    assert contrast(sides, drawn.values, lists).value(y) == pytest.approx(-0.3 + 0.1, abs=1e-9)


@QUICK
@given(seed=st.integers(0, 10**6), constant=st.floats(-5, 5))
def test_a_constant_added_to_all_decisions_changes_nothing(seed, constant):
    drawn, sides, lists, y = sides_and_lists(seed)
    found = contrast(sides, drawn.values, lists)
    assert found.value(y + constant) == pytest.approx(found.value(y), abs=1e-9)


def test_the_variance_counts_each_decision_once_and_the_difference_of_effects_its_own_weights():
    drawn, sides, lists, _ = sides_and_lists(3)
    found, other = (contrast(sides, drawn.values, each) for each in (lists, lists._replace(test=lists.test[:, :2])))
    variance = sides.variance(SIZE)
    by_loop = sum(found.weights[j] ** 2 * variance[j] for j in range(SIZE))
    assert found.se(variance) == pytest.approx(by_loop**0.5)
    assert found.estimated(0.01).se(variance) == pytest.approx((by_loop + 0.01) ** 0.5)
    between = found.estimated(0.01).less(other)
    assert between.se(variance) ** 2 == pytest.approx((found.weights - other.weights) ** 2 @ variance + 0.01)


def test_the_noise_of_a_decision_is_its_residual_over_one_less_its_leverage():
    drawn = draw(DIRECT, 200, 1)
    z, y = designs_of(drawn.columns)[0].of(drawn.values), drawn.denied.astype(float)
    fit = fit_logit(z, y, ridge=1e-3)
    w = fit.fitted * (1 - fit.fitted)
    hat = np.sqrt(w)[:, None] * z @ fit.inverse @ z.T * np.sqrt(w)
    assert noise(z, y)[1] == pytest.approx(((y - fit.fitted) / (1 - np.diag(hat))) ** 2)
    alone = np.column_stack([np.ones(30), np.arange(30) == 0])
    assert noise(alone, np.ones(30))[1].max() <= (1 / (1 - LARGEST_LEVERAGE)) ** 2


@pytest.mark.parametrize(("rows", "columns"), [(120, 9), (90, 9), (89, 6), (60, 6), (59, None)])
def test_squares_go_first_and_then_the_adjustment_is_refused(rows, columns):
    """1, three numbers and two indicators are 6 columns; 9 with squares."""
    drawn = draw(DIRECT, 300, 2)
    designs = designs_of(drawn.columns)
    found = fit_side(designs, drawn.values, np.arange(rows), drawn.denied.astype(float))
    assert (found.z.shape[1] if found else None) == columns


def test_refusals():
    drawn = draw(DIRECT, 300, 2)
    members = int(drawn.member.sum())
    many = CstSettings(ks=(members // 2 + 1,), k=members // 2 + 1)
    st_, cst = drawn.effects(settings=many)
    assert (st_.reason, cst.reason) == (TOO_FEW_COMPLAINANTS, TOO_FEW_COMPLAINANTS)
    assert math.isnan(st_.value)
    few = CstSettings(ks=(5,), k=5)
    values = np.column_stack([drawn.values, np.random.default_rng(0).normal(size=(300, 6))])
    wide = Columns(
        (*drawn.columns.names, *"uvwxyz"),
        (*drawn.columns.kinds, *[Kind.CONTINUOUS] * 6),
        (*drawn.columns.categories, *[()] * 6),
        values,
    )
    found, none = effects(wide, drawn.member, drawn.denied, None, few)
    assert (found.reason, none) == (TOO_FEW_FOR_ADJUSTMENT, None)


def test_without_a_move_cst_is_situation_testing():
    drawn = draw(MEDIATED, 800, 4)
    found, cst = effects(
        drawn.columns, drawn.member, drawn.denied, drawn.values[drawn.member], CstSettings(ks=(30,), k=30)
    )
    assert (cst.value, cst.se) == (found.value, found.se)


@pytest.mark.parametrize(("few", "there"), [((), True), ((0,), False), ((1,), False), ((0, 1), False)])
def test_there_are_two_sides_or_none(few, there):
    """A side of fewer rows than columns has no adjustment, and then nothing is compared."""
    drawn = draw(DIRECT, SIZE, 5)
    rows = [np.flatnonzero(drawn.member), np.flatnonzero(~drawn.member)]
    for side in few:
        rows[side] = rows[side][:3]
    sides = sides_of(designs_of(drawn.columns), drawn.values, tuple(rows), drawn.denied.astype(float))
    assert (sides is not None) is there
    if sides:
        assert [each.rows.tolist() for each in (sides.group, sides.other)] == [each.tolist() for each in rows]


def of_sides():
    drawn, sides, lists, y = sides_and_lists(3)
    found = contrast(sides, drawn.values, lists)
    group, other = ({k: v for k, v in vars(side).items() if k != "coefficients"} for side in (sides.group, sides.other))
    return [found, group, other, sides.score, sides.variance(len(y)), found.value(y)]


RESULTS = {
    "sides": of_sides,
    "noise": lambda: noise(np.column_stack([np.ones(40), np.arange(40.0) % 7]), (np.arange(40) % 3 == 0).astype(float)),
    "effects": lambda: effects(
        draw(DIRECT, 700, 2).columns,
        draw(DIRECT, 700, 2).member,
        draw(DIRECT, 700, 2).denied,
        None,
        CstSettings(ks=(6,), k=6),
    ),
    "few": lambda: effects(
        draw(DIRECT, 60, 2).columns,
        draw(DIRECT, 60, 2).member,
        draw(DIRECT, 60, 2).denied,
        None,
        CstSettings(ks=(20,), k=20),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: a number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "sides": {
        "0": 15645.399132,
        "1": 81116.523883,
        "2": 151098.234193,
        "3": 66.715574,
        "4": 7428.298677,
        "5": 2.975993,
    },
    "noise": {"0": 22.302166, "1": 506.484965},
    "effects": {"0": 15692.84964, "1": 3.60269},
    "few": {"0": 74.566946, "1": 3.60269},
}
