"""Laws of the regressions: units, constants, rows that lose a little, blocks of resamples, and symmetric intervals."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from schemas.terms import Kind
from tasks.numerics.arrays import Column, Packed
from tasks.numerics.encoding import Columns
from tasks.numerics.statistics import regression
from tasks.numerics.statistics.regression import (
    area_under_curve,
    estimate,
    fit_logit,
    fitted,
    has_maximum,
    recedes,
    sequential_p,
    standard_error,
)


def test_a_constant_column_says_nothing_of_anybody():
    """Its standard deviation is exactly 0, by which nothing is divided."""
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.normal(size=30), np.full(30, 7.0)])
    design = fitted(Columns(("x", "constant"), (Kind.CONTINUOUS,) * 2, ((), ()), values), squared=False)
    assert design.independent.tolist() == [True, True, False]
    other = design.of(values + np.array([0, 3]))
    assert np.isfinite(other).all()
    np.testing.assert_array_equal(other, design.of(values))


@pytest.mark.parametrize(("lost", "ends"), [(0.0, True), (1e-6, True), (1e-3, False)])
def test_a_likelihood_rises_without_end_where_no_row_loses_a_thousandth_of_what_another_gains(lost, ends):
    x, y = np.array([[1.0], [lost]]), np.array([1.0, 0.0])
    assert recedes(x, y, np.array([1.0])) is ends
    assert not recedes(x, y, np.array([-1.0])), "the first row loses most"


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_whether_there_is_a_maximum_does_not_depend_on_units(unit):
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(60), unit * rng.normal(size=60)])
    y = (np.arange(60) % 2).astype(float)
    sure = np.where(np.arange(60) < 5, y, 0.5)
    assert has_maximum(x, y, sure), "the other rows tell both columns apart"
    assert not has_maximum(np.column_stack([x, np.arange(60) < 5]), y, sure), "nothing is left of the third"


def test_a_penalised_fit_of_separated_rows_is_never_called_separated():
    """So small a penalty takes more steps than those after which a fit without one ends."""
    x = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)])
    y = (x[:, 1] > 0).astype(float)
    fit = fit_logit(x, y, ridge=1e-9)
    assert fit.separated == ""
    assert fit.passes > regression.SOON
    np.testing.assert_allclose(x.T @ (y - fit.fitted), 1e-9 * np.array([0, fit.coefficients[1]]), atol=1e-9)
    assert fit_logit(x, y).separated


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_a_weight_of_three_is_a_row_three_times(ridge):
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(120), rng.normal(size=(120, 2))])
    y = (rng.random(120) < expit(x @ [0.2, 1.0, -0.5])).astype(float)
    times = rng.integers(1, 4, 120)
    weighted = fit_logit(x, y, ridge=ridge, weight=times.astype(float))
    repeated = fit_logit(np.repeat(x, times, axis=0), np.repeat(y, times), ridge=ridge)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, atol=1e-9)
    np.testing.assert_allclose(weighted.inverse, repeated.inverse, atol=1e-9)
    np.testing.assert_allclose(weighted.fitted, expit(x @ weighted.coefficients))
    assert (weighted.separated, repeated.separated) == ("", "")


def test_blocks_hold_as_many_resamples_as_fit_and_at_least_one():
    for rows, width in ((1_000, 4_000), (3, 1_333_333), (10_000_000, 1), (0, 4_000_000)):
        found = list(regression.blocks(rows, 3 * width))
        assert [(each.start, each.stop) for each in found] == [(k * width, (k + 1) * width) for k in range(3)]


def test_an_interval_is_symmetric_and_as_wide_as_its_level():
    found = estimate(0.2, 0.1, 0.95)
    assert found.low < found.value < found.high
    assert found.low + found.high == pytest.approx(0.4)
    assert found.high - found.low == pytest.approx(2 * 1.959964 * 0.1, abs=1e-6)
    clustered = estimate(0.2, 0.1, 0.95, np.arange(5, dtype=np.int32))
    assert clustered.high - clustered.low == pytest.approx(2 * 2.776445 * 0.1, abs=1e-6), "Student's t of four"


def test_an_error_of_clusters_is_that_of_their_sums():
    influence = np.array([0.1, -0.2, 0.3, 0.05])
    sums = np.array([-0.1, 0.35])
    assert standard_error(influence) == pytest.approx(math.sqrt((influence**2).sum()))
    assert standard_error(influence, np.array([0, 0, 1, 1])) == pytest.approx(math.sqrt(2 * (sums**2).sum()))
    assert math.isnan(standard_error(influence, np.zeros(4, np.int32)))


def test_the_information_of_many_rows_is_that_of_their_parts():
    """Beyond so many rows it is summed in blocks."""
    rng = np.random.default_rng(3)
    x, p = rng.normal(size=(regression.BLOCK + 500, 2)), expit(rng.normal(size=regression.BLOCK + 500))
    parts = [regression.information(x[rows], p[rows], 0.25) for rows in (slice(None, 400), slice(400, 9_000))]
    parts.append(regression.information(x[9_000:], p[9_000:], 0.25))
    np.testing.assert_allclose(regression.information(x, p, 0.75), sum(parts), rtol=1e-12)


def test_draws_without_a_value_do_not_count():
    assert sequential_p(1.0, [np.nan, 2.0, 0.0, np.nan, 1.0], 2) == 2 / 3
    assert sequential_p(1.0, [np.nan, 2.0, 0.0], 2) == 2 / 3
    assert sequential_p(1.0, [0.0, 0.0, 0.0], 2) == 1 / 4


def logit_rows(n=300, seed=6):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return x, (rng.random(n) < expit(x @ [-0.5, 1.0, 0.7])).astype(float), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_many_rows_and_packed_ones_have_the_fit_of_few(weighted, packed, monkeypatch):
    """The score is 0 at a fit: X'w(y - p) is the penalty's gradient, and the inverse that of X'wWX with the penalty."""
    x, y, weight = logit_rows()
    given = weight if weighted else None
    matrix = Packed.of([Column(x[:, 0]), Column(x[:, 1]), Column(x[:, 2])]) if packed else x
    few = fit_logit(matrix, y, ridge=0.3, weight=given)
    for name, value in (("BLOCK", 40), ("CACHED", 7), ("MANY", 20), ("SAMPLE", 10), ("EVERY", 3)):
        monkeypatch.setattr(regression, name, value)
    many = fit_logit(matrix, y, ridge=0.3, weight=given)
    w, penalty = weight if weighted else np.ones(len(y)), np.array([0, 0.3, 0.3])
    for fit in (few, many):
        np.testing.assert_allclose(fit.fitted, expit(x @ fit.coefficients))
        np.testing.assert_allclose(x.T @ (w * (y - fit.fitted)), penalty * fit.coefficients, atol=1e-7)
        slope = w * fit.fitted * (1 - fit.fitted)
        np.testing.assert_allclose(np.linalg.inv(fit.inverse), (x.T * slope) @ x + np.diag(penalty), rtol=1e-6)
        assert fit.separated == ""
    np.testing.assert_allclose(many.coefficients, few.coefficients, atol=1e-8)
    assert few.passes == 6
    assert many.passes < few.passes, "steps begin at the fit of a part of the rows"


def test_a_start_is_kept_and_a_fit_at_its_end_takes_one_pass():
    x, y, _ = logit_rows()
    fit, start = fit_logit(x, y), np.array([0.1, 0.2, 0.3])
    again = fit_logit(x, y, fit.coefficients)
    assert again.passes == 1
    np.testing.assert_allclose(fit_logit(x, y, start).coefficients, fit.coefficients, atol=1e-9)
    assert start.tolist() == [0.1, 0.2, 0.3]
    np.testing.assert_allclose(fit.influence(x, y), np.linalg.solve((x.T * fit.fitted * (1 - fit.fitted)) @ x,
                                                                    (x * (y - fit.fitted)[:, None]).T).T)  # fmt: skip


def test_a_step_that_overshoots_is_halved():
    """From far away Newton's step of a logit lands where the likelihood is lower."""
    x, y, _ = logit_rows()
    far = fit_logit(x, y, np.array([4.0, -4.0, 3.0]))
    np.testing.assert_allclose(far.coefficients, fit_logit(x, y).coefficients, atol=1e-8)


def test_likelihood_information_and_systems_by_hand():
    index, y = np.log([3.0, 1.0, 1 / 4]), np.array([1.0, 0.0, 0.0])
    assert regression.log_likelihood(index, y) == pytest.approx(math.log(0.75 * 0.5 * 0.8))
    assert regression.log_likelihood(index, y, np.array([2.0, 1, 0])) == pytest.approx(math.log(0.75**2 * 0.5))
    x, p = np.array([[1.0, 2.0], [1.0, 0.0]]), np.array([0.5, 0.2])
    assert regression.information(x, p) == pytest.approx(np.array([[0.41, 0.5], [0.5, 1.0]]))
    found = regression.information(x, p, np.array([0.0, 0.5]), np.array([2.0, 1.0]))
    assert found == pytest.approx(np.array([[0.66, 1.0], [1.0, 2.5]]))
    assert regression.solve(np.diag([2.0, 4.0]), np.array([2.0, 2.0])) == pytest.approx([1.0, 0.5])
    assert regression.solve(np.ones((2, 2)), np.array([2.0, 2.0])) == pytest.approx([1.0, 1.0])
    assert regression.inverse(np.ones((2, 2))) == pytest.approx(np.full((2, 2), 0.25))


def test_signs_of_separation():
    p = np.array([0.5, 0.9])
    assert regression._sign(np.array([1.0, -16.0]), p) == "a coefficient beyond 15"
    assert regression._sign(np.array([15.0]), p) == "no convergence in 60 steps"
    for extreme in (1e-9, 1 - 1e-9):
        assert regression._sign(np.zeros(1), np.array([0.5, extreme])) == "a fitted probability of 0 or 1"
    assert regression._sign(np.zeros(1), np.array([1e-7, 1 - 1e-7])) == "no convergence in 60 steps"


def test_a_row_is_fitted_perfectly_within_a_billionth():
    x, y = np.column_stack([np.ones(4), [0.0, 0, 0, 1]]), np.array([0.0, 1, 0, 1])
    assert not has_maximum(x, y, np.array([0.5, 0.5, 0.5, 1 - 5e-10]))
    assert has_maximum(x, y, np.array([0.5, 0.5, 0.5, 1 - 5e-9]))
    small = np.column_stack([x[:, 0], -1e-9 * np.arange(4.0)])
    assert has_maximum(small, y, np.array([0.5, 0.5, 0.5, 1.0])), "neither units nor signs matter"
    zero = np.column_stack([x, np.zeros(4)])
    assert not has_maximum(zero, y, np.array([0.5, 0.5, 0.5, 1.0])), "nothing is divided by a length of 0"


def test_clusters_are_those_with_rows():
    cluster = np.array([0, 0, 3, 3], np.int32)
    assert regression.count_clusters(cluster) == 2
    influence = np.array([0.1, -0.2, 0.3, 0.05])
    assert standard_error(influence, cluster) == pytest.approx(math.sqrt(2 * (0.1**2 + 0.35**2)))
    assert regression.critical_value(0.9) == pytest.approx(1.644854, abs=1e-6)
    assert regression.critical_value(0.9, cluster) == pytest.approx(6.313752, abs=1e-6), "Student's t of one"
    assert math.isnan(regression.critical_value(0.9, np.zeros(3, np.int32)))
    assert estimate(0.2, 0.1, 0.95, reason="why")[3:] == (0.1, "why")


def test_a_design_of_numbers_logarithms_and_categories_by_hand():
    """The logarithm of 0 is that of the least value above 0, and each number is followed by its square."""
    kinds = (Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.NOMINAL)
    values = np.array([[1.0, 1, 0], [2, math.e, 1], [3, 0, 2], [6, math.e**3, 1], [8, math.e**2, 0]])
    design = fitted(Columns(("x", "money", "c"), kinds, ((), (), ("a", "b", "c")), values, ("money",)), squared=False)
    x, money = (values[:, 0] - 4) / values[:, 0].std(), np.array([0.0, 1, 0, 3, 2])
    entering = (money - 1.2) / money.std()
    expected = np.column_stack([np.ones(5), x, entering, [0, 1, 0, 1, 0], [0, 0, 1, 0, 0]])
    np.testing.assert_allclose(design.of(values), expected, atol=1e-12)
    assert (design.least[1], design.logged.tolist()) == (1.0, [False, True, False])
    squared = fitted(Columns(("x",), kinds[:1], ((),), values[:, :1]))
    np.testing.assert_allclose(squared.of(values[:, :1]), np.column_stack([np.ones(5), x, x**2]))


@pytest.mark.parametrize(("rest", "kept"), [(3e-10, False), (3e-9, True)])
def test_a_column_with_a_billionth_of_its_own_is_linear_in_others(rest, kept):
    x, own = np.linalg.qr(np.column_stack([np.ones(9), np.arange(9.0), np.arange(9.0) ** 2]))[0][:, 1:].T
    values = np.column_stack([x, x + rest * own])
    design = fitted(Columns(("x", "y"), (Kind.CONTINUOUS,) * 2, ((), ()), values), squared=False)
    assert design.independent.tolist() == [True, True, kept]


def test_a_sequential_test_ends_with_its_draw():
    draws = iter([0.0, 1.0, 2.0, 5.0])
    assert sequential_p(1.0, draws, 2) == 2 / 3
    assert list(draws) == [5.0]
    assert sequential_p(1.0, [], 2) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_area_under_the_curve_is_that_of_scikit_learn_and_turns_with_the_scores(seed):
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 9, 200) / 9, rng.random(200) < 0.4
    area = area_under_curve(scores, positive)
    assert area == pytest.approx(roc_auc_score(positive, scores))
    assert area_under_curve(-scores, positive) == pytest.approx(1 - area)
    assert math.isnan(area_under_curve(scores, np.ones(200, dtype=bool)))


def test_a_tie_of_scores_counts_half():
    assert area_under_curve(np.array([1.0, 1, 1, 2]), np.array([False, True, False, True])) == 0.75
