"""Recourse costs: the worked example, closed form against bounds, bounds against bisection, steps against all tries."""

import numpy as np
import pytest
from conftest import examples, fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_in_loops import cost_to_boundary

from schemas.errors import SpecError
from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import Boundary, in_steps, make_actions
from tasks.methods.raguel.algorithm import lists
from tasks.methods.raguel.algorithm.modification import _overshoots
from tasks.methods.raguel.settings import RaguelSettings

QUICK = settings(deadline=None, max_examples=examples(60))
LOAN = Boundary(np.array([2.0, -1.0]), 0.0)
"""Example 1 of the paper: the loan's duration is twice its amount."""
APPLICANTS = np.array([[3.5, 6.0], [2.0, 1.0], [4.0, 4.0], [5.0, 4.0]])


def drawn(seed, n=20, d=4):
    """Records on a grid of quarters, a boundary, and actions of all kinds."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-8, 9, (n, d)) / 4
    boundary = Boundary(rng.normal(size=d), float(rng.normal()))
    actions = make_actions(
        rng.uniform(0.1, 1, d),
        changeable=rng.random(d) < 0.8,
        step=rng.choice([0.25, 0.5, 1.0], d),
        direction=rng.choice([-1, 0, 0, 1], d),
        lower=-2.5,
        upper=2.5,
    )
    return values, boundary, actions


def score(boundary, x):
    return float(boundary.intercept + (boundary.slope * x).sum())


def test_the_worked_example_to_two_decimals():
    found = recourse.to_boundary(APPLICANTS, LOAN, make_actions([0.5, 1.0]))
    assert found.cost.round(2).tolist() == [0.33, 1.00, 1.33, 2.00]
    assert found.point.round(2).tolist() == [[3.06, 6.11], [0.67, 1.33], [2.22, 4.44], [2.33, 4.67]]


def test_neither_weights_nor_what_may_change_decides_the_order():
    rng = np.random.default_rng(1)
    values, boundary = rng.normal(size=(50, 3)), Boundary(rng.normal(size=3), 0.2)
    one = recourse.costs_to_boundary(values, boundary, make_actions([1.0, 2.0, 3.0]))
    other = recourse.costs_to_boundary(values, boundary, make_actions([3.0, 0.2, 1.0], changeable=[True, True, False]))
    assert np.argsort(one).tolist() == np.argsort(other).tolist()


@QUICK
@given(seed=st.integers(0, 10**6))
def test_a_point_lies_on_the_boundary_as_far_away_as_it_costs(seed):
    values, boundary, actions = drawn(seed)
    free = make_actions(actions.weight, changeable=actions.changeable)
    found = recourse.to_boundary(values, boundary, free)
    for x, point, cost in zip(values, found.point, found.cost, strict=True):
        if not actions.changeable.any():
            assert np.isnan(cost)
            continue
        assert score(boundary, point) == pytest.approx(0, abs=1e-9)
        assert cost == pytest.approx(np.sqrt((free.weight * (x - point) ** 2).sum()))
        assert (point == x)[~actions.changeable].all()
    assert recourse.costs_to_boundary(values, boundary, free) == pytest.approx(found.cost, nan_ok=True)


@QUICK
@given(seed=st.integers(0, 10**6))
def test_bounds_that_never_bind_change_nothing(seed):
    values, boundary, actions = drawn(seed)
    free = make_actions(actions.weight, changeable=actions.changeable)
    wide = make_actions(actions.weight, changeable=actions.changeable, lower=-1e6, upper=1e6)
    closed, bounded = (recourse.to_boundary(values, boundary, each) for each in (free, wide))
    assert bounded.cost == pytest.approx(closed.cost, nan_ok=True)
    assert bounded.point == pytest.approx(closed.point)


@QUICK
@given(seed=st.integers(0, 10**6))
def test_under_bounds_and_directions_the_cheapest_way_is_that_of_a_bisection(seed):
    values, boundary, actions = drawn(seed)
    found = recourse.to_boundary(values, boundary, actions)
    for x, point, cost in zip(values, found.point, found.cost, strict=True):
        expected = cost_to_boundary(
            x, boundary.slope, boundary.intercept, actions.weight, actions.lower, actions.upper, actions.direction
        )
        assert (np.inf if np.isnan(cost) else cost) == pytest.approx(expected)
        permitted(x, point, actions)
        if np.isfinite(cost):
            assert score(boundary, point) == pytest.approx(0, abs=1e-9)
        else:
            assert (point == x).all()


def permitted(x, point, actions):
    """No immutable attribute changes, no bound is broken, no direction is gone against."""
    delta = point - x
    assert (delta[~actions.changeable] == 0).all()
    assert (delta * actions.direction >= 0).all()
    assert ((delta == 0) | ((point >= actions.lower - 1e-9) & (point <= actions.upper + 1e-9))).all()


@QUICK
@given(seed=st.integers(0, 10**6), most=st.sampled_from([1, 2, None]))
def test_in_steps_nothing_cheaper_exists(seed, most):
    values, boundary, actions = drawn(seed, n=3, d=3)
    found = in_steps(values, boundary, actions, most)
    assert found.proven.all()
    for x, point, cost in zip(values, found.targets.point, found.targets.cost, strict=True):
        permitted(x, point, actions)
        assert (np.inf if np.isnan(cost) else cost) == pytest.approx(cheapest_try(x, boundary, actions, most))
        if np.isfinite(cost):
            steps = (point - x) / actions.step
            assert steps == pytest.approx(np.round(steps))
            assert (point != x).sum() <= (most or 3)
            assert score(boundary, point) * np.sign(score(boundary, x)) <= 1e-9


def cheapest_try(x, boundary, actions, most):
    """Every number of steps of every attribute."""
    reach = []
    for j, step in enumerate(actions.step):
        moves = np.arange(-20, 21) * step * actions.changeable[j]
        inside = (x[j] + moves >= actions.lower[j]) & (x[j] + moves <= actions.upper[j])
        reach.append(np.unique(moves[(inside & (moves * actions.direction[j] >= 0)) | (moves == 0)]))
    move = np.stack(np.meshgrid(*reach, indexing="ij"), axis=-1).reshape(-1, len(x))
    after = x + move
    fine = (move != 0).sum(axis=1) <= (most or len(x))
    start = score(boundary, x)
    fine &= (after @ boundary.slope + boundary.intercept) * np.sign(start) <= 1e-9 * abs(start)
    return np.sqrt(move[fine] ** 2 @ actions.weight).min(initial=np.inf)


def test_without_steps_the_search_finds_the_cheapest_way_to_the_boundary():
    rng = np.random.default_rng(4)
    values, boundary = rng.normal(size=(20, 5)), Boundary(rng.normal(size=5), 0.5)
    actions = make_actions(rng.uniform(0.2, 1, 5), lower=-2, upper=2)
    found = in_steps(values, boundary, actions)
    assert found.targets.cost == pytest.approx(recourse.to_boundary(values, boundary, actions).cost, nan_ok=True)


def test_equal_records_are_solved_once_and_cost_the_same_to_the_last_bit():
    values = np.repeat([[0.3, 0.7, -1.1]], 1003, axis=0)
    boundary, actions = Boundary(np.array([0.37, -0.91, 1.3]), 0.77), make_actions([0.3, 0.9, 0.5], step=0.1)
    assert in_steps(values, boundary, actions).cases == 1
    assert len(set(in_steps(values, boundary, actions).targets.cost.tolist())) == 1
    assert len(set(recourse.to_boundary(values, boundary, actions).cost.tolist())) == 1


def test_what_cannot_reach_the_boundary_is_refused_and_stays():
    values, boundary = np.array([[1.0, 1.0], [-1.0, 0.0]]), Boundary(np.array([1.0, 0.0]), 0.0)
    kept = make_actions([1.0, 1.0], direction=[1, 0])
    found = recourse.to_boundary(values, boundary, kept)
    assert found.reached.tolist() == [False, True]
    assert found.point.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    nothing = make_actions([1.0, 1.0], changeable=False)
    for each in (recourse.to_boundary(values, boundary, nothing), in_steps(values, boundary, kept, 1).targets):
        assert not each.reached[0]
        assert each.point[0].tolist() == [1.0, 1.0]


def test_a_common_target_leaves_out_what_cannot_change():
    actions = make_actions([0.5, 1.0, 9.0], changeable=[True, True, False], direction=[0, 1, 0])
    found = recourse.given(np.array([[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]]), np.tile([3.0, 3.0, 0.0], (2, 1)), actions)
    assert found.cost[0] == pytest.approx(np.sqrt(0.5 * 4 + 1))
    assert found.point[0].tolist() == [3.0, 3.0, 5.0]
    assert found.reached.tolist() == [True, False]


def test_costs_from_elsewhere_fall_as_the_distance_does():
    values, points = np.array([[0.0], [1.0], [2.0]]), np.array([[4.0], [1.0], [np.nan]])
    found = recourse.given(values, points, make_actions([1.0]), np.array([8.0, 0.0, np.nan]))
    assert found.rate.tolist() == [2.0, 1.0, 1.0]
    assert found.reached.tolist() == [True, True, False]


def test_weights_are_divided_by_the_largest_that_may_change():
    assert make_actions([2.0, 4.0, 100.0], changeable=[True, True, False]).weight.tolist() == [0.5, 1.0, 0.0]


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, -2.0], [1.0, np.nan]])
def test_weights_that_are_not_positive_are_an_error(weights):
    with pytest.raises(SpecError, match="not a positive number"):
        make_actions(weights)


def test_bad_steps_and_bounds_are_errors():
    with pytest.raises(SpecError, match="step is negative"):
        make_actions([1.0], step=-1)
    with pytest.raises(SpecError, match="lower bound lies above"):
        make_actions([1.0], lower=2, upper=1)


@pytest.mark.parametrize(
    ("unit", "gain", "before", "required", "allowed", "overshoots"),
    [
        (1.0, 5.0, 2.0, 3.0, 3.5, False),  # one step is enough
        (1.0, 5.0, 0.5, 3.0, 3.5, False),  # three steps are
        (2.0, 6.0, 0.5, 3.0, 3.5, True),  # two steps bring 4
        (2.0, 3.0, 0.5, 3.0, 3.5, False),  # and no more than 3 with the attribute's bounds
        (0.0, 5.0, 0.5, 3.0, 3.5, False),  # any amount
        (1.0, 5.0, 3.2, 3.0, 3.5, True),  # the last is not needed
    ],
)
def test_steps_overshoot_where_the_fewest_that_are_enough_bring_too_much(
    unit: float, gain: float, before: float, required: float, allowed: float, overshoots: bool
) -> None:
    for function in (_overshoots, _overshoots.py_func):  # compiled, and as it is written
        assert function(unit, gain, before, required, allowed, 1e-9) is overshoots


def targets_of(how):
    """Points of twelve records, by one way of finding them."""
    values, boundary, actions = drawn(5, n=12)
    fold = (np.arange(12) % 2).astype(np.int32)
    ways = {0: boundary, 1: Boundary(boundary.slope[::-1].copy(), -boundary.intercept)}
    if how == "nearest":
        return lists.to_nearest(values, values[::2] + 0.25, actions, 3, lambda rows, points: points[:, 0] > -0.5)
    if how == "top":
        return lists.to_top(values, actions, np.array([0.2, np.nan, 0.9, 0.9]), values[:4] + 0.5)
    if how == "nobody":
        return lists.to_top(values, actions, np.full(2, np.nan), values[:2])
    return lists.to_boundaries(
        values, fold, ways, actions, RaguelSettings(steps=how == "steps", most=2 if how != "any" else None)
    )


RESULTS = {how: lambda how=how: vars(targets_of(how)) for how in ("nearest", "top", "nobody", "steps", "few", "any")}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: points and costs by each way. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "nearest": {
        "targets": 916.677698,
        "by": 4.718044,
        "refusal": 111.036447,
        "candidate": 163.548963,
        "boundary": 3.60269,
    },
    "top": {"targets": 781.434309, "by": 3.568792, "refusal": 103.726196, "candidate": 201.377552, "boundary": 3.60269},
    "nobody": {
        "targets": 847.504667,
        "by": 3.568792,
        "refusal": 151.242829,
        "candidate": 18.746587,
        "boundary": 3.60269,
    },
    "steps": {
        "targets": 797.540213,
        "by": 4.061728,
        "refusal": 103.726196,
        "candidate": 18.746587,
        "boundary": 3.60269,
    },
    "few": {"targets": 788.713538, "by": 4.061728, "refusal": 103.726196, "candidate": 18.746587, "boundary": 3.60269},
    "any": {"targets": 790.007724, "by": 4.235183, "refusal": 103.726196, "candidate": 18.746587, "boundary": 3.60269},
}
