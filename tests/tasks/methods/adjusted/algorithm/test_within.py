"""Fixed effects by demeaning against dummies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from split_rows import cuts, drawn, split

from tasks.methods.adjusted.algorithm.regressions import fit_linear
from tasks.methods.adjusted.algorithm.streamed import demeaned, fit_batches, within


def dummies(levels):
    return (levels[:, None] == np.unique(levels)).astype(float)


@settings(max_examples=20, deadline=None)
@given(cuts=cuts)
def test_one_fixed_effect_over_batches_is_the_fit_with_dummies(cuts):
    whole = drawn()
    whole = replace(whole, x=whole.x[:, 1:])
    batches, levels = demeaned(split(whole, cuts))
    ours = fit_batches(batches, absorbed=levels)
    one = fit_linear(whole.y, np.column_stack([whole.x, dummies(whole.level)]), whole.cluster)
    p = whole.x.shape[1]
    assert_allclose(ours.coefficients, one.coefficients[:p], rtol=1e-9)
    for name in ("classical", "hc1", "cr1"):
        assert_allclose(getattr(ours, name), getattr(one, name)[:p, :p], rtol=1e-7, atol=1e-20)
    assert ours.df == one.df


def test_several_fixed_effects_in_memory_are_the_fit_with_dummies():
    whole = drawn()
    x, levels = whole.x[:, 1:], [whole.level, whole.cluster]
    left = within(np.column_stack([whole.y, x]), levels)
    absorbed = len(np.unique(levels[0])) + len(np.unique(levels[1])) - 1
    ours = fit_linear(left[:, 0], left[:, 1:], absorbed=absorbed)
    one = fit_linear(whole.y, np.column_stack([x, dummies(levels[0]), dummies(levels[1])[:, 1:]]))
    assert_allclose(ours.coefficients, one.coefficients[: x.shape[1]], rtol=1e-9)
    assert_allclose(ours.hc1, one.hc1[: x.shape[1], : x.shape[1]], rtol=1e-7, atol=1e-20)


def test_rows_without_levels_are_refused():
    with pytest.raises(ValueError, match="without levels"):
        demeaned(split(replace(drawn(), level=None), []))


def test_levels_without_rows_do_no_harm():
    values, levels = np.array([[1.0], [3.0], [10.0]]), np.array([0, 0, 7], np.int32)
    assert_allclose(within(values, [levels]), [[-1.0], [1.0], [0.0]])
