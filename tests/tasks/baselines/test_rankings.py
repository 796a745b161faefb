"""Laws of every fair ranking in the registry; FoEiR against the linear programme of its paper, and by hand."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tasks.baselines import rankings
from tasks.baselines.rankings import ONE_GROUP, RANKINGS, Listed

QUICK = settings(deadline=None, max_examples=examples(40))
FAIRNESS = ("parity", "treatment", "impact")
LISTS = st.builds(
    lambda n, seed: drawn(n, seed),
    st.integers(2, 60),
    st.integers(0, 10**6),
)


def drawn(n: int, seed: int) -> Listed:
    """Costs with many ties, and two groups, sometimes one."""
    rng = np.random.default_rng(seed)
    protected = rng.random(n) < rng.choice([0.1, 0.4, 0.7])
    return Listed.of(rng.integers(0, 8, n) + 0.5 * protected, protected)


@pytest.mark.parametrize("name", RANKINGS)
@QUICK
@given(listed=LISTS, seed=st.integers(0, 100))
def test_a_ranking_is_a_lottery_over_orders_of_all_records_or_has_a_reason(name, listed, seed):
    found, again = (RANKINGS[name](listed) for _ in range(2))
    assert np.array_equal(found.order, again.order)
    assert np.array_equal(found.weight, again.weight)
    if found.reason:
        assert found.order.shape == (0, len(listed.cost))
        assert found.reason in (ONE_GROUP, rankings.NO_UTILITY, rankings.NOT_FEASIBLE)
        return
    assert (np.sort(found.order, axis=1) == np.arange(len(listed.cost))).all()
    assert (found.weight >= 0).all()
    assert found.weight.sum() == pytest.approx(1)
    first, second = (found.drawn(np.random.default_rng(seed)) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", [name for name in RANKINGS if name != "initial"])
def test_one_group_alone_is_refused(name):
    found = RANKINGS[name](Listed.of(np.arange(5.0), np.zeros(5, bool)))
    assert found.reason == ONE_GROUP
    with pytest.raises(ValueError, match="all records, or none"):
        found.drawn(np.random.default_rng(0))


@pytest.mark.parametrize("name", RANKINGS)
@QUICK
@given(listed=LISTS)
def test_within_a_group_the_cheaper_record_comes_first(name, listed):
    """No system of these has a reason to do otherwise; impact alone may, as it weighs a record by its own utility."""
    if name == "foeir_impact":
        return
    for order in RANKINGS[name](listed).order:
        for kind in (True, False):
            mine = listed.cost[order][listed.protected[order] == kind]
            assert (np.diff(mine) >= 0).all()


@pytest.mark.parametrize("fairness", FAIRNESS)
@QUICK
@given(n=st.integers(3, 9), seed=st.integers(0, 10**6))
def test_foeir_is_the_optimum_of_the_linear_programme(fairness, n, seed):
    listed = drawn(n, seed)
    found = rankings.foeir(listed, fairness)
    if listed.one_group or found.reason == rankings.NO_UTILITY:
        return
    utility, seen = listed.utility, rankings.exposure(n)
    pull = plain_pull(listed, fairness)
    sums = [np.kron(np.eye(n)[i], np.ones(n)) for i in range(n)] + [np.kron(np.ones(n), np.eye(n)[j]) for j in range(n)]
    equal = np.outer(pull, seen).ravel()
    wanted = linprog(-np.outer(utility, seen).ravel(), A_eq=[*sums, equal], b_eq=[1.0] * (2 * n) + [0.0], bounds=(0, 1))
    assert wanted.success == (found.reason == "")
    if wanted.success:
        best = sum(w * (utility[order] @ seen) for w, order in zip(found.weight, found.order, strict=True))
        apart = sum(w * (pull[order] @ seen) for w, order in zip(found.weight, found.order, strict=True))
        assert best == pytest.approx(-wanted.fun, abs=1e-8)
        assert apart == pytest.approx(0, abs=1e-9)


def plain_pull(listed: Listed, fairness: str) -> np.ndarray:
    """The coefficients of the equality, record by record."""
    pull = np.empty(len(listed.cost))
    for i, mine in enumerate(listed.protected):
        of_group = listed.utility[listed.protected == mine]
        per = {"parity": 1.0, "treatment": 1 / max(of_group.mean(), 1e-300), "impact": listed.utility[i]}[fairness]
        per /= of_group.mean() if fairness == "impact" else 1.0
        pull[i] = (1 if mine else -1) * per / len(of_group)
    return pull


def test_foeir_of_four_records_by_hand():
    """Both of a group behind both of the other: equal exposure mixes A C D B with C A B D or the like."""
    listed = Listed.of(np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True]))
    found = rankings.parity(listed)
    seen = rankings.exposure(4)
    assert seen[0] == 1
    assert seen[2] == 0.5
    mean = dict.fromkeys((True, False), 0.0)
    for order, weight in zip(found.order, found.weight, strict=True):
        for kind in mean:
            mean[kind] += weight * seen[listed.protected[order] == kind].mean()
    assert mean[True] == pytest.approx(mean[False]) == pytest.approx(seen.mean())


def test_a_list_that_is_fair_already_stays_as_it_is():
    listed = Listed.of(np.array([1.0, 1.0, 2.0, 2.0]), np.array([True, False, False, True]))
    assert RANKINGS["fair_star"](listed).order.tolist() == [[0, 1, 2, 3]]


def test_without_utility_or_with_too_little_exposure_there_is_a_reason():
    no_utility = Listed.of(np.array([0.0, 1.0, 3.0, 3.0]), np.array([False, False, True, True]))
    assert rankings.treatment(no_utility).reason == rankings.NO_UTILITY
    far = Listed.of(np.array([0.0, 0.1, 9.0, 9.9]), np.array([False, False, True, True]))
    assert rankings.treatment(far).reason == rankings.NOT_FEASIBLE
    assert rankings.parity(far).reason == ""


def test_a_long_list_takes_no_matrix():
    rng = np.random.default_rng(0)
    listed = Listed.of(rng.random(20_000), rng.random(20_000) < 0.3)
    found = rankings.parity(listed)
    assert len(found.order) <= 2
