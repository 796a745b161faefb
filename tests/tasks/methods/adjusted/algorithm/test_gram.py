"""Least squares over batches against the fit in one piece."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from split_rows import cuts, drawn, split

from tasks.methods.adjusted.algorithm.design import renumbered
from tasks.methods.adjusted.algorithm.regressions import CollinearError, fit_linear
from tasks.methods.adjusted.algorithm.streamed import fit_batches, nested_fits


@settings(max_examples=examples(60), deadline=None)
@given(cuts=cuts, seed=st.integers(0, 1_000), clustered=st.booleans())
def test_any_split_gives_the_fit_in_one_piece(cuts, seed, clustered):
    whole = drawn(seed)
    whole = whole if clustered else replace(whole, cluster=None)
    ours, one = fit_batches(split(whole, cuts)), fit_linear(whole.y, whole.x, whole.cluster)
    assert_allclose(ours.coefficients, one.coefficients, rtol=1e-10, atol=1e-14)
    for name in ("classical", "hc1", "cr1"):
        if getattr(one, name) is None:
            assert getattr(ours, name) is None
        else:
            assert_allclose(getattr(ours, name), getattr(one, name), rtol=1e-7, atol=1e-20)
    assert (ours.df, ours.clusters) == (one.df, one.clusters)


@pytest.mark.parametrize("clustered", [False, True])
def test_fits_on_the_first_columns_are_those_of_each_alone(clustered):
    whole = drawn(7)
    cluster = np.unique(whole.cluster, return_inverse=True)[1].astype(np.int32) if clustered else None
    widths = (2, 3, 3, whole.x.shape[1], len(whole.y))
    fits = nested_fits(whole.y, whole.x, 1, widths, cluster)
    assert fits[-1] is None, "no more rows than columns"
    for width, fit in zip(widths[:-1], fits, strict=False):
        one = fit_linear(whole.y, whole.x[:, :width], cluster)
        theirs = one.coefficients[1], one.se[1], np.sqrt(one.classical[1, 1])
        assert (fit.value, fit.se, fit.classical) == pytest.approx(theirs, rel=1e-9)
        assert fit.df == one.df
    assert nested_fits(whole.y, whole.x, 1, widths, cluster, whole.x.T @ whole.x)[0].value == pytest.approx(
        fits[0].value
    )


def test_columns_far_from_zero_cost_no_digits():
    """A year and an income in cents, squared: their cross products alone would keep five digits."""
    whole = drawn()
    rng = np.random.default_rng(1)
    year = 2018 + rng.integers(0, 5, len(whole.y))
    x = np.column_stack([whole.x, year, (whole.x[:, 3] * 100) ** 2])
    ours, one = fit_batches(split(replace(whole, x=x), [100, 350])), fit_linear(whole.y, x)
    assert_allclose(ours.coefficients, one.coefficients, rtol=1e-10)


def test_collinear_columns_are_refused():
    whole = drawn()
    x = np.column_stack([whole.x, whole.x[:, 4] + whole.x[:, 5]])
    with pytest.raises(CollinearError):
        fit_batches(split(replace(whole, x=x), [100]))
    x = np.column_stack([whole.x, np.zeros(len(whole.y))])
    with pytest.raises(CollinearError, match=f"column {whole.x.shape[1]} is zero in every row"):
        fit_batches(split(replace(whole, x=x), [100]))
    with pytest.raises(CollinearError, match="too few"):
        fit_batches(split(whole.rows(slice(0, 5)), [2]))


def test_clusters_are_numbered_without_gaps_in_their_order():
    assert renumbered(np.array([5, 2, 9, 2], np.int32)).tolist() == [1, 0, 2, 0]
    assert renumbered(np.array([5, 2], np.int32)).dtype == np.int32
    assert renumbered(np.zeros(0, np.int32)).tolist() == []
