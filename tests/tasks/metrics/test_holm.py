"""Holm's procedure against its definition, and statsmodels."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from tasks.numerics.statistics.intervals import step_down

ps = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(ps)
def test_it_rejects_and_adjusts_as_statsmodels_does(p: np.ndarray) -> None:
    found = step_down(p, 0.05)
    rejected, adjusted, _, _ = multipletests(p, 0.05, method="holm")
    assert found.adjusted == pytest.approx(adjusted)
    assert found.rejected.tolist() == rejected.tolist()


@given(ps)
def test_a_row_is_rejected_iff_its_p_is_at_or_below_its_own_level(p: np.ndarray) -> None:
    found = step_down(p, 0.05)
    assert (p <= found.level).tolist() == found.rejected.tolist()


def test_levels_by_hand() -> None:
    found = step_down(np.array([0.03, 0.001, np.nan, 0.02]), 0.05)
    assert found.level.tolist() == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert found.rejected.tolist() == [False, True, False, False]


def test_no_row_costs_nothing() -> None:
    assert step_down(np.zeros(0), 0.05).rejected.tolist() == []
