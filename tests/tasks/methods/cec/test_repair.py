"""Disparate impact remover: a hand-worked column, and the laws of the repair on drawn columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ks_2samp

from tasks.methods.cec.algorithm.mitigations import Repair

GROUPS = np.array([False, False, False, True, True, True])


@st.composite
def drawn(draw):
    """Inputs of two groups, with and without ties."""
    n = draw(st.integers(4, 40))
    whole = draw(st.booleans())
    number = st.integers(-3, 3).map(float) if whole else st.floats(-1e3, 1e3, width=32)
    inputs = draw(arrays(np.float64, (n, 2), elements=number))
    protected = np.arange(n) < draw(st.integers(1, n - 1))
    return inputs, protected


def test_a_value_becomes_the_median_over_the_groups_of_its_quantile():
    """Lowest 0 and 10, middle 2 and 14, highest 4 and 30: by hand (0 + 10) / 2, (2 + 14) / 2, (4 + 30) / 2."""
    inputs = np.array([[0.0], [2.0], [4.0], [30.0], [10.0], [14.0]])
    repair = Repair.fitted(inputs, GROUPS)
    assert repair.of(inputs, GROUPS)[:, 0].tolist() == [5, 8, 17, 17, 5, 8]
    half = Repair.fitted(inputs, GROUPS, 0.5)
    assert half.of(inputs, GROUPS)[:, 0].tolist() == [2.5, 5, 10.5, 23.5, 7.5, 11]


def test_rows_that_were_not_fitted_lie_between_their_neighbours_or_at_an_end():
    repair = Repair.fitted(np.array([[0.0], [2.0], [4.0], [30.0], [10.0], [14.0]]), GROUPS)
    asked = np.array([[-9.0], [1.0], [99.0], [99.0]])
    assert repair.of(asked, np.array([False, False, False, True]))[:, 0].tolist() == [5, 6.5, 17, 17]


def test_the_group_itself_becomes_constant():
    inputs = GROUPS.astype(float)[:, None]
    assert set(Repair.fitted(inputs, GROUPS).of(inputs, GROUPS)[:, 0]) == {0.5}


@given(drawn())
@settings(deadline=None)
def test_level_nought_is_the_identity_to_the_bit(case):
    inputs, protected = case
    kept = inputs.copy()
    assert (Repair.fitted(inputs, protected, 0.0).of(inputs, protected) == kept).all()
    Repair.fitted(inputs, protected).of(inputs, protected)
    assert (inputs == kept).all()


@given(drawn(), st.floats(0, 1))
@settings(deadline=None)
def test_ranks_within_a_group_are_kept(case, level):
    inputs, protected = case
    out = Repair.fitted(inputs, protected, level).of(inputs, protected)
    for group in (protected, ~protected):
        for before, after in zip(inputs[group].T, out[group].T, strict=True):
            order = np.argsort(before, kind="stable")
            assert (np.diff(after[order]) >= -1e-9 * max(1.0, np.abs(before).max())).all()


def test_full_repair_leaves_continuous_training_columns_alike():
    rng = np.random.default_rng(0)
    protected = np.arange(2000) < 600
    inputs = rng.normal(size=(2000, 3)) + protected[:, None] * [0.5, 2, -1]
    out = Repair.fitted(inputs, protected).of(inputs, protected)
    assert min(ks_2samp(c[protected], c[~protected]).statistic for c in inputs.T) > 0.1
    assert max(ks_2samp(c[protected], c[~protected]).statistic for c in out.T) <= 0.02


@pytest.mark.parametrize(
    ("protected", "level", "said"), [([True, True], 1, "both groups"), ([True, False], 1.5, "between 0 and 1")]
)
def test_what_cannot_be_repaired_is_refused(protected, level, said):
    with pytest.raises(ValueError, match=said):
        Repair.fitted(np.zeros((2, 1)), np.array(protected), level)
