"""Design rows: what enters, on which scale, and which columns are left out."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.terms import Kind
from tasks.numerics.encoding import Columns
from tasks.numerics.statistics.regression import fitted

QUICK = settings(deadline=None, max_examples=examples(30))
CATEGORIES = ("a", "b", "c")


def columns(values, logged=()):
    """Numbers, and last a category of three."""
    values = np.array(values, float)
    names = tuple(f"x{i}" for i in range(values.shape[1] - 1))
    kinds = (*[Kind.CONTINUOUS] * len(names), Kind.NOMINAL)
    return Columns((*names, "purpose"), kinds, (*[()] * len(names), CATEGORIES), values, logged)


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.lognormal(3, 1, n), rng.normal(size=n), rng.integers(0, 3, n)])


def test_a_row_by_hand():
    """Mean 2 and standard deviation 1 of the number; no square of an indicator."""
    z = fitted(columns([[1.0, 0], [3.0, 1], [1.0, 2], [3.0, 0]])).of(np.array([[4.0, 2], [2.0, 1]]))
    assert z.tolist() == [[1, 2, 0, 1], [1, 0, 1, 0]], "the square of two values is constant, and left out"
    z = fitted(columns([[1.0, 0], [2.0, 1], [3.0, 2], [2.0, 0], [1.0, 1], [3.0, 0]])).of(np.array([[3.0, 0]]))
    assert z == pytest.approx(np.array([[1, 1.5**0.5, 1.5, 0, 0]]))


def test_logarithms_are_of_the_smallest_positive_value_at_least():
    design = fitted(columns([[0.0, 0], [1.0, 1], [np.e**2, 2], [1.0, 0]], logged=("x0",)), squared=False)
    logs = np.array([0, 0, 2, 0])
    assert design.of(design.columns.values)[:, 1] == pytest.approx((logs - logs.mean()) / logs.std())
    assert design.of(np.array([[-5.0, 0]])) == pytest.approx(design.of(np.array([[1.0, 0]])))


def test_a_logged_column_without_a_positive_value_enters_as_it_is():
    values = [[-1.0, 0], [0.0, 1], [-2.0, 2], [-1.0, 0]]
    logged, plain = (fitted(columns(values, logged), squared=False) for logged in (("x0",), ()))
    assert logged.of(np.array(values)) == pytest.approx(plain.of(np.array(values)))


def test_columns_linear_in_others_are_left_out():
    values = drawn(1)
    doubled = np.column_stack([values[:, 0], 2 * values[:, 0] + 3, np.full(40, 0.1), values[:, 2]])
    assert fitted(columns(doubled), squared=False).of(doubled).shape == (40, 4), "1, one number, two indicators"
    assert fitted(columns(doubled)).of(doubled).shape == (40, 5)


@QUICK
@given(seed=st.integers(0, 10**6), shift=st.floats(-1e3, 1e3), scale=st.floats(0.01, 100))
def test_units_do_not_matter(seed, shift, scale):
    values = drawn(seed)
    other = values * [scale, scale, 1] + [0, shift, 0]
    first, second = fitted(columns(values, ("x0",))), fitted(columns(other, ("x0",)))
    assert first.of(values) == pytest.approx(second.of(other), abs=1e-6)


@QUICK
@given(seed=st.integers(0, 10**6))
def test_designs_have_full_rank_and_standardised_numbers(seed):
    values = drawn(seed)
    z = fitted(columns(values)).of(values)
    assert np.linalg.matrix_rank(z) == z.shape[1] == 7
    assert z[:, 1].mean() == pytest.approx(0, abs=1e-9)
    assert z[:, 2] == pytest.approx(z[:, 1] ** 2)
    assert z[:, 2].mean() == pytest.approx(1)
