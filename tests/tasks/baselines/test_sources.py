"""Laws of every counterfactual source in the registry; AR and MACE against all choices and a programme."""

import itertools

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from shift_programme import least_shift

from tasks.baselines import sources
from tasks.baselines.sources import MOST, SOURCES, Grid, SearchSpace, cheapest, score
from tasks.counterfactuals.algorithm.recourse import Boundary, make_actions

QUICK = settings(deadline=None, max_examples=examples(30))
ON_GRIDS = ("ar", "ar_total", "mace")


def drawn(seed: int, n: int = 6, d: int = 4, observed: int = 30) -> SearchSpace:
    """Applicants among observed rows, with directions, bounds, and attributes that nobody can change."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-8, 9, (observed, d)) / 4
    free = rng.random(d) < 0.8
    free[0] = True
    actions = make_actions(
        rng.uniform(0.1, 1, d),
        changeable=free,
        direction=rng.choice([-1, 0, 0, 1], d),
        lower=-1.75,
        upper=1.75,
    )
    return SearchSpace(rows[:n], Boundary(rng.normal(size=d), float(rng.normal()) - 0.5), actions, rows)


@pytest.mark.parametrize("name", SOURCES)
@QUICK
@given(seed=st.integers(0, 10**6))
def test_a_point_is_accepted_and_permitted_or_there_is_a_reason(name, seed):
    space = drawn(seed)
    found, again = (SOURCES[name](space) for _ in range(2))
    assert np.array_equal(found.point, again.point)
    assert found.point.shape == space.values.shape
    assert np.isfinite(found.point).all()
    assert ((found.refusal == "") == found.reached).all()
    moved, there = found.point - space.values, found.reached
    assert (moved[~there] == 0).all()
    assert (score(found.point, space.boundary)[there] >= -1e-9 * np.maximum(1, space.gap[there])).all()
    accepted = space.gap == 0
    assert (found.cost[accepted] == 0).all()
    assert (moved[accepted] == 0).all()
    assert (moved[:, ~space.actions.changeable] == 0).all()
    assert (moved * space.actions.direction >= 0).all()
    below, above = found.point < space.actions.lower - 1e-9, found.point > space.actions.upper + 1e-9
    assert not ((below & (moved < 0)) | (above & (moved > 0))).any()
    assert found.proven.all()


@pytest.mark.parametrize("name", ON_GRIDS)
@QUICK
@given(seed=st.integers(0, 10**6))
def test_sources_on_grids_take_values_that_somebody_has(name, seed):
    space = drawn(seed)
    found = SOURCES[name](space)
    for j in range(space.values.shape[1]):
        changed = found.point[:, j] != space.values[:, j]
        assert np.isin(found.point[changed, j], space.observed[:, j]).all()


@QUICK
@given(seed=st.integers(0, 10**6))
def test_every_grid_agrees_on_who_can_be_reached(seed):
    space = drawn(seed)
    reached = [SOURCES[name](space).reached.tolist() for name in ON_GRIDS]
    assert reached[0] == reached[1] == reached[2]


def every_choice(space: SearchSpace, i: int):
    """All points of one applicant's grid that are accepted."""
    options = []
    for j, now in enumerate(space.values[i]):
        actions = space.actions
        column = np.unique(space.observed[:, j])
        inside = (column >= actions.lower[j]) & (column <= actions.upper[j])
        allowed = column[inside & ((column - now) * actions.direction[j] >= 0)] if actions.changeable[j] else []
        options.append([now, *allowed])
    for point in itertools.product(*options):
        if np.dot(point, space.boundary.slope) + space.boundary.intercept >= -1e-9:
            yield np.array(point)


def largest_shift(space: SearchSpace, i: int, point: np.ndarray) -> float:
    ranks = [[(space.observed[:, j] <= v[j]).mean() for j in range(len(v))] for v in (space.values[i], point)]
    return float(np.abs(np.subtract(*ranks)).max())


@QUICK
@given(seed=st.integers(0, 10**6))
def test_ar_and_mace_are_the_best_of_all_choices(seed):
    space = drawn(seed, n=4, d=3, observed=7)
    ar, mace = SOURCES["ar"](space), SOURCES["mace"](space)
    for i in range(len(space.values)):
        choices = list(every_choice(space, i))
        if not choices:
            assert not ar.reached[i]
            continue
        assert mace.cost[i] == pytest.approx(min(np.abs(c - space.values[i]).sum() for c in choices))
        assert mace.cost[i] == pytest.approx(np.abs(mace.point[i] - space.values[i]).sum())
        assert ar.cost[i] == pytest.approx(min(largest_shift(space, i, c) for c in choices))
        assert ar.cost[i] == pytest.approx(largest_shift(space, i, ar.point[i]))


def test_ar_changes_the_fewest_attributes_within_its_shift():
    """Both attributes can rise by one step, either is enough: the one that gains more is taken."""
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    space = SearchSpace(rows[:1], Boundary(np.array([1.0, 2.0]), -1.5), make_actions([1.0, 1.0]), rows)
    found = SOURCES["ar"](space)
    assert found.point.tolist() == [[0.0, 1.0]]
    assert found.cost[0] == pytest.approx(0.25)


def test_a_logarithmic_shift_by_hand():
    """From the lowest of four to the second: three of four have at least that, so the cost is log(4 / 3)."""
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    space = SearchSpace(rows[:1], Boundary(np.array([1.0]), -0.5), make_actions([1.0]), rows)
    assert SOURCES["ar_total"](space).cost[0] == pytest.approx(np.log(4 / 3))


def test_long_grids_are_thinned_and_keep_their_ends():
    rows = np.arange(500.0)[:, None]
    grid = Grid(SearchSpace(rows[:1], Boundary(np.ones(1), -250.0), make_actions([1.0]), rows))
    assert grid.values.shape == (1, MOST)
    assert (grid.values[0, 0], grid.values[0, -1]) == (0.0, 499.0)


@QUICK
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4), k=st.integers(1, 4))
def test_the_cheapest_choice_is_that_of_all_choices(seed, d, k):
    rng = np.random.default_rng(seed)
    gain = rng.integers(0, 6, (1, d, k)).astype(float)
    cost = rng.integers(0, 9, (1, d, k)) / 2
    need = float(rng.integers(0, 4 * d))
    best = np.inf
    for numbers in itertools.product(range(-1, k), repeat=d):
        taken = [(gain[0, j, o], cost[0, j, o]) for j, o in enumerate(numbers) if o >= 0 and gain[0, j, o] > 0]
        if sum(g for g, _ in taken) >= need:
            best = min(best, sum(c for _, c in taken))
    pick, total, proven = cheapest(gain, cost, np.array([need]))
    assert proven.all()
    if not np.isfinite(best):
        assert np.isnan(total[0])
        return
    assert total[0] == pytest.approx(best)
    assert sum(cost[0, j, o] for j, o in enumerate(pick[0]) if o >= 0) == pytest.approx(best)


def test_ar_is_the_optimum_of_its_own_programme():
    space = drawn(7, n=50, d=8, observed=200)
    grid, found = Grid(space), SOURCES["ar"](space)
    (part, options), *_ = list(grid.chunks())
    shift = sources._shifts(grid, options, part)
    checked = 0
    for i in np.flatnonzero(found.reached & (space.gap > 0)):
        wanted = least_shift(options.gain[i], shift[i], float(space.gap[i]))
        assert found.cost[i] == pytest.approx(wanted, abs=1e-6)
        checked += 1
    assert checked > 10
