"""Laws of the regressions: units, constants, rows that lose a little, blocks of resamples, and symmetric intervals."""

import math

import numpy as np
import pytest
from scipy.special import expit

from schemas.terms import Kind
from tasks.numerics.encoding import Columns
from tasks.numerics.statistics import regression
from tasks.numerics.statistics.regression import (
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
