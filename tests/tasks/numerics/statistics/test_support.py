"""Support: share of a group with comparable applicants, at equal sizes of both groups."""

import math

import numpy as np
import pytest

from tasks.numerics.statistics.regression import is_poor, share_inside, support


def drawn(apart: float, members: int = 200, others: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Design rows with an intercept and one number, and members."""
    rng = np.random.default_rng(3)
    x = np.r_[rng.normal(apart, 1, members), rng.normal(0, 1, others)]
    return np.column_stack([np.ones(len(x)), x]), np.arange(len(x)) < members


@pytest.mark.parametrize(("apart", "least", "most"), [(0.0, 1.0, 1.0), (1.0, 0.95, 1.0), (3.0, 0.2, 0.4), (9.0, 0, 0)])
def test_it_falls_with_the_distance_of_the_groups_and_not_with_their_size(apart, least, most):
    assert least <= support(*drawn(apart)) <= most
    assert support(*drawn(apart, 2_000, 200)) == pytest.approx(support(*drawn(apart, 200, 2_000)), abs=0.1)


def test_counterfactuals_are_asked_about_in_place_of_members():
    design, member = drawn(9.0)
    assert support(design, member, design[~member][:500]) == 1.0
    assert support(design, member, design[member]) == 0.0


def test_a_group_of_too_few_rows_has_none_and_is_not_called_poor():
    design, member = drawn(9.0, members=19)
    assert math.isnan(support(design, member))
    assert not is_poor(support(design, member))
    assert math.isnan(share_inside(np.zeros(0), 1, 1))


def test_without_a_column_everybody_is_alike():
    design, member = drawn(9.0)
    assert support(design[:, :1], member) == 1.0
