"""Years together: states by hand, comparability, replaced years, and what the order of the list may not change."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import fingerprint
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from schemas.terms import ChangeState, State
from tasks.metrics.algorithm.monitoring import (
    WANDERING,
    Conditions,
    MonitoringRule,
    YearEstimate,
    change_state,
    holm,
    monitor,
    radius,
    two_years,
)

SEQUENCE = MonitoringRule()


def estimate(year, value, se=0.01, *, group="Black", theory="similar_applicants", limit=0.02, **more):
    fixed = {"attribute": "race", "decision_maker": "lender", "measure": "effect"}
    return YearEstimate(year, theory, group=group, value=value, se=se, limit=limit, **{**fixed, **more})


def ratio(year, value, se=0.02, **more):
    return estimate(year, value, se, theory="approval_rates", limit=0.8, side="at_least", scale="log", **more)


def years(values, first=2016, make=estimate, **more):
    return [make(first + i, value, **more) for i, value in enumerate(values)]


def followed(estimates, rule=SEQUENCE):
    return {(row.of.group, row.of.year): row for row in monitor(estimates, rule)}


def states(estimates, rule=SEQUENCE):
    return [row.state for row in monitor(estimates, rule)]


def test_a_lender_beyond_its_limit_is_found_when_the_years_have_said_enough():
    rows = monitor(years([0.038] * 4), SEQUENCE)
    assert [row.state for row in rows] == [State.INCONCLUSIVE] * 2 + [State.OUTSIDE] * 2  # 1.8 errors beyond
    half = radius(2 / 0.01**2, 1 / 0.01**2, 0.1)
    assert (rows[1].pooled_low, rows[1].pooled_high) == pytest.approx((0.038 - half, 0.038 + half))
    assert rows[3].first_breach == 2018
    assert "for the first time in 2018" in rows[3].reason


def test_an_honest_lender_comes_to_be_within():
    assert states(years([0.0] * 5, se=0.012)) == [State.INCONCLUSIVE] * 2 + [State.WITHIN] * 3


def test_what_must_be_at_least_the_limit_is_worked_on_logarithms():
    rows = monitor(years([0.70, 0.72], make=ratio), SEQUENCE)
    assert [row.state for row in rows] == [State.OUTSIDE, State.OUTSIDE]
    pooled = (math.log(0.70) + math.log(0.72)) / 2
    half = radius(2 / 0.02**2, 1 / 0.02**2, 0.1)
    assert rows[1].pooled == pytest.approx(math.exp(pooled))
    assert (rows[1].pooled_low, rows[1].pooled_high) == pytest.approx(
        (math.exp(pooled - half), math.exp(pooled + half))
    )
    assert rows[1].change.change == pytest.approx(0.72 / 0.70)
    assert states(years([0.95], make=ratio)) == [State.WITHIN]


def test_columns_that_are_not_complete_take_a_breach_away():
    plain, wide = years([0.08] * 3), years([0.08] * 3, bias=0.05)
    assert states(plain)[-1] is State.OUTSIDE
    rows = monitor(wide, SEQUENCE)
    assert rows[-1].state is State.INCONCLUSIVE
    assert rows[-1].pooled_low == pytest.approx(monitor(plain, SEQUENCE)[-1].pooled_low - 0.05)
    assert "widened on both sides" in rows[-1].reason


def test_more_judged_groups_make_the_band_wider_and_other_theories_do_not():
    one = followed(years([0.05] * 3))["Black", 2018]
    two = followed([*years([0.05] * 3), *years([0.0] * 3, group="Asian")])["Black", 2018]
    other = followed([*years([0.05] * 3), *years([0.9] * 3, make=ratio, group="Asian")])["Black", 2018]
    assert two.pooled_low < one.pooled_low == other.pooled_low
    assert two.pooled - two.pooled_low == pytest.approx(radius(3 / 0.01**2, 1 / 0.01**2, 0.05))


def test_bonferroni_and_none_take_each_year_alone():
    alone = monitor(years([0.02, 0.02 + 1.7 * 0.01]), MonitoringRule("none"))
    assert [row.state for row in alone] == [State.INCONCLUSIVE, State.OUTSIDE]
    assert all("probability 0.34" in row.reason for row in alone)
    planned = MonitoringRule("bonferroni", years=2)
    assert states(years([0.02, 0.02 + 1.7 * 0.01, 0.5]), planned) == [State.INCONCLUSIVE] * 3  # 1.96, then spent
    assert states(years([0.02, 0.02 + 2.0 * 0.01]), planned)[1] is State.OUTSIDE


def test_the_difference_of_two_years_has_no_state():
    row = monitor(years([0.01, 0.20]), SEQUENCE)[1]
    assert row.change.state is ChangeState.NONE
    assert WANDERING in row.change.reason
    assert row.change.change == pytest.approx(0.19)
    assert row.change.low == pytest.approx(0.19 - 1.95996 * 0.01 * math.sqrt(2), abs=1e-6)
    assert "after Holm over 1" in row.change.reason


def test_with_four_years_before_it_a_year_is_judged():
    calm = [0.01, 0.012, 0.008, 0.01]
    assert [row.change.state for row in monitor(years([*calm, 0.10]), SEQUENCE)] == [
        *[ChangeState.NONE] * 4,
        ChangeState.CHANGED,
    ]
    last = monitor(years([*calm, 0.10]), SEQUENCE)[-1].change
    assert last.years_used == 4
    assert not last.predicted_low < 0.10 < last.predicted_high
    assert last.since_year == 2020
    assert 0 < last.since_p <= 1
    assert last.q == pytest.approx(last.p)
    assert monitor(years([*calm, 0.03]), SEQUENCE)[-1].change.state is ChangeState.UNCLEAR
    assert monitor(years([*calm, 0.01], se=0.001), SEQUENCE)[-1].change.state is ChangeState.UNCHANGED


def test_a_change_of_which_nothing_speaks_has_no_date():
    assert monitor(years([0.01, 0.012, 0.008, 0.01, 0.011]), SEQUENCE)[-1].change.since_year is None


OTHERS = {
    "without ltv": Conditions(lacking=frozenset({"ltv"})),
    "the groups are defined otherwise": Conditions(groups="b2"),
    "another version of the method": Conditions(version="2"),
    "columns_complete true, before false": Conditions(columns_complete=True),
    "edition snapshot, before ": Conditions(edition="snapshot"),
    "from 2018 other rules": Conditions(era="from 2018 other rules"),
    "income is read otherwise (unit)": Conditions(recipe=frozenset({("income", "unit", '"CHF"')})),
}


@pytest.mark.parametrize(("words", "conditions"), OTHERS.items())
def test_years_that_are_not_alike_are_not_compared_and_the_difference_is_named(words, conditions):
    before = years([0.08] * 5)
    after = years([0.20] * 2, 2021, conditions=conditions)
    rows = followed([*before, *after])
    first = rows["Black", 2021]
    assert first.change.state is ChangeState.NOT_COMPARABLE
    assert f"not comparable with 2020: {words}" in first.change.reason
    assert math.isnan(first.change.change)
    alone = followed(after, SEQUENCE)
    assert rows["Black", 2022].pooled_low == alone["Black", 2022].pooled_low  # a sequence of its own
    assert rows["Black", 2022].change.years_used == 1
    assert rows["Black", 2020] == followed(before)["Black", 2020]


def test_another_limit_is_another_sequence():
    rows = monitor([*years([0.01] * 2), estimate(2018, 0.01, limit=0.05)], SEQUENCE)
    assert "the limit is at most 0.05, before at most 0.02" in rows[-1].change.reason


def test_a_gap_is_no_pass_and_no_number_and_the_sequence_goes_on():
    gap = estimate(2018, math.nan, math.nan, gap="withheld")
    rows = followed([*years([0.05] * 2), gap, estimate(2019, 0.05)])
    assert rows["Black", 2018].state is State.INCONCLUSIVE
    assert math.isnan(rows["Black", 2018].pooled)
    assert rows["Black", 2018].reason == "withheld"
    without = followed([*years([0.05] * 2), estimate(2019, 0.05)])
    assert rows["Black", 2019] == without["Black", 2019]
    never = monitor([estimate(2018, math.nan, math.nan, gap="never audited", ran=False)], SEQUENCE)
    assert never[0].state is State.NOT_RUN


@pytest.mark.parametrize("bad", [{"value": 0.0}, {"se": 0.0}, {"se": math.nan}, {"value": math.inf}])
def test_an_estimate_without_sampling_error_is_a_gap(bad):
    assert math.isnan(monitor([replace(ratio(2016, 0.7), **bad)], SEQUENCE)[0].pooled)


def test_without_a_limit_there_is_no_verdict_but_a_change():
    rows = monitor(years([0.01, 0.012, 0.008, 0.01, 0.10], limit=math.nan), SEQUENCE)
    assert {row.state for row in rows} == {State.NO_LIMIT}
    assert rows[-1].change.state is ChangeState.CHANGED


VALUES = st.lists(st.floats(-0.1, 0.2), min_size=2, max_size=8)


@given(VALUES, st.integers(0, 7), st.floats(-0.1, 0.2))
def test_a_restated_year_replaces_its_own_and_all_is_computed_anew(values, place, restated):
    place %= len(values)
    old, new = years(values), estimate(2016 + place, restated, 0.02)
    fresh = [new if one.year == new.year else one for one in old]
    assert repr(monitor([*old, new], SEQUENCE)) == repr(monitor(fresh, SEQUENCE))


@given(st.permutations(range(12)), st.integers(0, 2**32))
def test_the_order_of_groups_and_years_changes_nothing(order, seed):
    rng = np.random.default_rng(seed)
    known = [one for group in ("a", "b") for one in years(rng.normal(0.03, 0.02, 6), group=group)]
    assert repr(monitor([known[i] for i in order], SEQUENCE)) == repr(monitor(known, SEQUENCE))


def test_a_new_year_never_changes_what_was_said_of_earlier_ones():
    values = [0.03, 0.05, 0.01, 0.06, 0.04, 0.2]
    whole, part = monitor(years(values), SEQUENCE), monitor(years(values[:5]), SEQUENCE)
    assert repr(whole[:5]) == repr(part)


def test_q_goes_over_all_series_of_the_year():
    calm = [0.01, 0.012, 0.008, 0.01]
    others = [*years([*calm, 0.015], group="Asian"), *years([0.9] * 4 + [0.8], make=ratio)]
    rows = followed([*years([*calm, 0.06]), *others])  # the third is another theory of the same group
    last = [row for row in monitor([*years([*calm, 0.06]), *others], SEQUENCE) if row.of.year == 2020]
    expected = multipletests([row.change.p for row in last], method="fdr_bh")[1]
    assert len(last) == 3
    assert [row.change.q for row in last] == pytest.approx(list(expected))
    assert rows["Asian", 2019].change.years_used == 1


def test_two_years_and_their_states_by_hand():
    found = two_years(0.10, 0.0009, 0.02, 0.0016)  # se 0.05
    assert (found.value, found.low, found.high) == pytest.approx(
        (0.08, 0.08 - 1.96 * 0.05, 0.08 + 1.96 * 0.05), abs=1e-5
    )
    assert found.p == pytest.approx(0.1096, abs=1e-4)
    assert change_state(0.001, 0.2, 0.02) is ChangeState.CHANGED
    assert change_state(-0.2, -0.001, 0.02) is ChangeState.CHANGED
    assert change_state(-0.009, 0.01, 0.02) is ChangeState.UNCHANGED
    assert change_state(-0.009, 0.011, 0.02) is ChangeState.UNCLEAR
    assert change_state(-0.1, 0.1, math.log(0.8)) is ChangeState.UNCHANGED  # half of it is 0.112
    assert change_state(-0.001, 0.001, math.nan) is ChangeState.UNCLEAR


def test_two_years_cover_their_difference():
    rng = np.random.default_rng(10)
    a, b = rng.normal(0.1, 0.01, 4_000), rng.normal(0.05, 0.02, 4_000)
    found = [two_years(x, 0.0001, y, 0.0004) for x, y in zip(a, b, strict=True)]
    assert np.mean([d.low <= 0.05 <= d.high for d in found]) == pytest.approx(0.95, abs=0.011)


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]


def test_a_band_that_ends_at_its_limit_keeps_it_and_does_not_lie_beyond():
    plain = MonitoringRule(rule="none")
    (row,) = monitor(years([0.05]), plain)
    at_low, at_high = (states(years([0.05], limit=end), plain) for end in (row.pooled_low, row.pooled_high))
    assert (at_low, at_high) == ([State.INCONCLUSIVE], [State.WITHIN])
    turned = [states(years([0.05], limit=end, side="at_least"), plain) for end in (row.pooled_high, row.pooled_low)]
    assert turned == [[State.INCONCLUSIVE], [State.WITHIN]]


RESULTS = {
    "differences": lambda: monitor(years([0.01, 0.02, 0.05, 0.04, 0.06]), SEQUENCE),
    "ratios": lambda: monitor(years([0.9, 0.82, 0.7, 0.75], make=ratio), SEQUENCE),
    "two groups": lambda: monitor(years([0.0, 0.0, 0.0]) + years([0.03, 0.0, 0.06], group="Asian", se=0.02), SEQUENCE),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of the rows of years. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "differences": {"0": 647.916505, "1": 625.468632, "2": 629.030353, "3": 624.518111, "4": 566.399746},
    "ratios": {"0": 685.973739, "1": 674.86107, "2": 673.824742, "3": 671.063454},
    "two groups": {"0": 651.23513, "1": 614.191901, "2": 629.786996, "3": 644.607947, "4": 616.378715, "5": 620.261992},
}
