"""The ratio of recourse costs: by hand, who has none, and an interval that counts the model among what is drawn."""

import numpy as np
import pytest
from conftest import fingerprint
from hypothesis import given
from hypothesis import strategies as st
from refitted_lenders import lender, ratio, truth

from schemas.audit.model import Model
from tasks.methods.raguel.algorithm import statistics
from tasks.methods.raguel.algorithm.statistics import Costs


def test_it_is_the_reference_groups_mean_over_the_groups() -> None:
    """(1 + 3) / 2 = 2 and (2 x 4 + 1 x 1) / 3 = 3: 2 / 3; the approved and the unreached do not count."""
    cost = np.array([1.0, 3.0, 4.0, 1.0, 50.0, np.nan])
    costs = Costs.of(cost, np.array([0, 0, 1, 1, 1, 0], np.int32), np.array([1, 1, 2, 1, 0, 1]))
    assert costs.means(3) == pytest.approx([2, 3, np.nan], nan_ok=True)
    assert statistics.cost_ratios(costs.means(3), 0) == pytest.approx([1, 2 / 3, np.nan], nan_ok=True)


@given(st.floats(0.01, 100), st.integers(0, 99))
def test_units_cancel_and_groups_in_turn_are_reciprocal(unit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost, group = rng.gamma(2, size=60), np.arange(60, dtype=np.int32) % 2
    plain, scaled = (Costs.of(each, group, np.ones(60)) for each in (cost, unit * cost))
    one, other = (statistics.cost_ratios(plain.means(2), at) for at in (0, 1))
    assert statistics.cost_ratios(scaled.means(2), 0) == pytest.approx(one)
    assert one[1] * other[0] == pytest.approx(1)
    errors = (statistics.errors_of_rows(each, 2, 0)[1] for each in (plain, scaled))
    assert next(errors) == pytest.approx(next(errors))


def test_the_error_of_rows_is_that_of_resampled_rows() -> None:
    rng = np.random.default_rng(4)
    cost, group = rng.gamma(2, size=400), (rng.random(400) < 0.3).astype(np.int32)
    counts = rng.multinomial(400, np.full(400, 1 / 400), size=2000)
    drawn = np.array([Costs.of(cost, group, each).means(2) for each in counts])
    whole = statistics.errors_of_rows(Costs.of(cost, group, np.ones(400)), 2, 0)[1]
    assert whole == pytest.approx(statistics.errors_of_draws(drawn, 0)[1], rel=0.07)


def test_few_nobody_and_nothing_to_pay_have_no_ratio_and_say_why() -> None:
    group = np.repeat(np.arange(4, dtype=np.int32), [20, 9, 12, 15])
    cost = np.where(group == 2, 0.0, 1.0)
    errors = np.array([0.1, 0.1, 0.1, 0.1, 0.1])
    found = statistics.aggregates(Costs.of(cost, group, np.ones(56)), range(5), 0, errors, 0.95)
    assert [np.isfinite(each.value) for each in found] == [False, False, True, False]
    assert "fewer than 10" in found[0].reason
    assert "nothing to pay" in found[1].reason
    assert found[2].interval == pytest.approx((np.exp(-0.196), np.exp(0.196)), rel=1e-3)
    assert found[3].n == 0
    nobody = Costs.of(np.full(5, np.nan), group[:5], np.ones(5))
    assert statistics.aggregates(nobody, range(2), 0, errors, 0.95) == []


def test_draws_without_a_group_are_left_out_and_too_many_of_them_leave_no_error() -> None:
    means = np.tile([1.0, 2.0, 1.5], (20, 1)) * np.random.default_rng(0).uniform(0.9, 1.1, (20, 3))
    means[0, 1], means[:5, 2] = np.nan, np.nan
    found = statistics.errors_of_draws(means, 0)
    assert found[1] == pytest.approx(np.log(means[1:, 0] / means[1:, 1]).std(ddof=1))
    assert np.isnan(found[2])


def test_without_an_honest_error_it_is_told_without_an_interval() -> None:
    lent = lender(np.random.default_rng(1), 600)
    held = ratio(lent, draws=0)
    assert np.isfinite(held.value)
    assert (held.interval, held.inference) == (None, None)
    assert "methods.raguel.refits is 0" in held.reason


def test_refits_widen_the_interval_around_the_same_value() -> None:
    lent = lender(np.random.default_rng(1), 1500)
    one = ratio(lent)
    assert one.inference is not None
    assert one.interval is not None
    assert (one.inference.scale, one.inference.df) == ("log", np.inf)
    low, high = one.interval
    assert low * high == pytest.approx(one.value**2)
    assert np.log(high / low) == pytest.approx(2 * 1.96 * one.inference.se, rel=1e-3)


def test_a_fixed_threshold_is_kept_in_every_refit() -> None:
    lent = lender(np.random.default_rng(2), 1500)
    fixed, matched = (ratio(lent, model=Model(threshold=each)) for each in (0.5, "rate_matched"))
    assert fixed.inference is not None
    assert matched.inference is not None
    assert fixed.value != matched.value
    assert 0 < fixed.inference.se < 1


def test_an_interval_of_95_percent_covers() -> None:
    """30 lenders of 1,500 rows: 25 is the binomial 1 % point of 0.95; the truth is that of half a million."""
    found = [ratio(lender(np.random.default_rng([1500, seed]), 1500), draws=100, seed=seed) for seed in range(30)]
    inside = [each.interval[0] <= truth() <= each.interval[1] for each in found if each.interval]
    assert len(inside) == 30
    assert sum(inside) >= 25
    assert truth() == pytest.approx(0.757, abs=0.01)


def ratios_of(weight):
    """Four groups, the last of few, held against the second."""
    rng = np.random.default_rng(9)
    group = np.repeat(np.arange(4, dtype=np.int32), [30, 25, 12, 9])
    cost = np.where(rng.random(76) < 0.1, np.nan, rng.gamma(2, size=76) + 0.3 * group)
    costs = Costs.of(cost, group, weight[:76])
    errors = statistics.errors_of_rows(costs, 4, 1)
    return {
        "means": costs.means(5),
        "ratios": statistics.cost_ratios(costs.means(4), 1),
        "errors": errors,
        "aggregates": statistics.aggregates(costs, range(4), 1, errors, 0.9),
        "reason": statistics.aggregates(costs, range(4), 1, "why", 0.9),
    }


RESULTS = {"once": lambda: ratios_of(np.ones(76)), "resampled": lambda: ratios_of(np.arange(76) % 3)}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: ratios of costs with their errors. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "once": {
        "means": 89.245033,
        "ratios": 66.288659,
        "errors": 56.950157,
        "aggregates": 735.330953,
        "reason": 445.451521,
    },
    "resampled": {
        "means": 89.075053,
        "ratios": 66.719695,
        "errors": 58.506292,
        "aggregates": 587.774865,
        "reason": 445.742236,
    },
}
