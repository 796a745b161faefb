"""Fixed effects as numbers of levels, and by demeaning, against dummies."""

from dataclasses import replace

import numpy as np
from conftest import examples
from hypothesis import given, settings
from numpy.testing import assert_allclose
from split_rows import cuts, drawn_in_levels, split

from tasks.methods.adjusted.algorithm.design import Levels
from tasks.methods.adjusted.algorithm.regressions import fit_linear
from tasks.methods.adjusted.algorithm.streamed import fit_batches, within


def dummies(levels):
    return (levels[:, None] == np.unique(levels)).astype(float)


@settings(max_examples=examples(40), deadline=None)
@given(cuts=cuts)
def test_fixed_effects_over_batches_are_the_fit_with_dummies(cuts):
    """The first level of each is its base; so is a level of the second that has no indicator."""
    whole, level = drawn_in_levels()
    second = np.arange(len(level)) % 5
    codes = np.where(level == 0, 13, level - 1), np.where(second < 2, 13, second + 8)
    ours = fit_batches(split(replace(whole, levels=Levels(codes, 13)), cuts))
    columns = np.column_stack([whole.x, dummies(level)[:, 1:], dummies(second)[:, 2:]])
    one = fit_linear(whole.y, columns, whole.cluster)
    assert_allclose(ours.coefficients, one.coefficients, rtol=1e-8, atol=1e-10)
    for name in ("classical", "hc1", "cr1"):
        assert_allclose(getattr(ours, name), getattr(one, name), rtol=1e-7, atol=1e-12)
    assert ours.df == one.df


def test_several_fixed_effects_in_memory_are_the_fit_with_dummies():
    whole, level = drawn_in_levels()
    x, levels = whole.x[:, 1:], [level, whole.cluster]
    left = within(np.column_stack([whole.y, x]), levels)
    absorbed = len(np.unique(levels[0])) + len(np.unique(levels[1])) - 1
    ours = fit_linear(left[:, 0], left[:, 1:], absorbed=absorbed)
    one = fit_linear(whole.y, np.column_stack([x, dummies(levels[0]), dummies(levels[1])[:, 1:]]))
    assert_allclose(ours.coefficients, one.coefficients[: x.shape[1]], rtol=1e-9)
    assert_allclose(ours.hc1, one.hc1[: x.shape[1], : x.shape[1]], rtol=1e-7, atol=1e-20)


def test_levels_without_rows_do_no_harm():
    values, levels = np.array([[1.0], [3.0], [10.0]]), np.array([0, 0, 7], np.int32)
    assert_allclose(within(values, [levels]), [[-1.0], [1.0], [0.0]])
