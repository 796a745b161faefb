"""Support: share of a group with comparable applicants, at equal sizes of both groups."""

import math

import numpy as np
import pytest

from tasks.numerics.statistics.regression import fit_logit, is_poor, share_inside, support, supports


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
    assert supports(design, member, design[~member][:500])[1] == 1.0
    assert supports(design, member, design[member])[1] == 0.0


def test_a_group_of_too_few_rows_has_none_and_is_not_called_poor():
    design, member = drawn(9.0, members=19)
    assert math.isnan(support(design, member))
    assert not is_poor(support(design, member))
    assert math.isnan(share_inside(np.zeros(0), 1, 1))


def test_without_a_column_everybody_is_alike():
    design, member = drawn(9.0)
    assert support(design[:, :1], member) == 1.0


def test_ends_and_sizes_by_hand():
    """A propensity of 1/3 of 10 members and 20 others is 1/2 in groups of equal size."""
    assert share_inside(np.array([0.05, 0.95, 0.049, 0.951, 0.5]), 1, 1) == 0.6
    assert share_inside(np.array([1 / 39, 19 / 21, 1 / 40, 10 / 11]), 1, 2) == pytest.approx(0.5), "0.05 and 0.95"
    assert share_inside(np.array([0.0, 1.0]), 3, 3) == 0.0
    assert (is_poor(0.8), is_poor(0.79)) == (False, True)


def test_ten_rows_of_each_group_for_a_column_are_enough():
    for members, others, known in ((20, 20, True), (19, 40, False), (40, 19, False)):
        assert math.isnan(support(*drawn(0.0, members, others))) is not known


def test_counterfactuals_lie_below_the_upper_end_of_equal_groups():
    """The end is where the odds of groups of equal size are 19."""
    design, member = drawn(1.0, 200, 1_000)
    fit = fit_logit(design, member.astype(float), ridge=1e-3)
    end = (math.log(19) - math.log(5) - fit.coefficients[0]) / fit.coefficients[1]
    asked = np.column_stack([np.ones(4), [end - 0.01, end + 0.01, end + 0.02, -50]])
    assert supports(design, member, asked)[1] == 0.5
    assert math.isnan(supports(design, member, asked[:0])[1])
