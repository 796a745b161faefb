"""Holm's procedure against its definition, and statsmodels."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from tasks.metrics.algorithm import monitoring
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


def test_the_trend_of_years_has_the_same_adjustment_by_hand() -> None:
    assert monitoring.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert monitoring.holm([0.6, 0.7]) == [1.0, 1.0], "no p is above one"


@pytest.mark.parametrize(
    ("low", "high", "limit", "state"),
    [
        (0.01, 0.5, 0.2, "changed"),
        (-0.5, -0.01, 0.2, "changed"),
        (-0.05, 0.05, 0.2, "unchanged"),
        (-0.05, 0.15, 0.2, "unclear"),
        (-0.05, 0.05, math.nan, "unclear"),
    ],
)
def test_a_change_is_beyond_zero_or_within_half_the_limit_or_unclear(
    low: float, high: float, limit: float, state: str
) -> None:
    assert monitoring.change_state(low, high, limit).value == state
