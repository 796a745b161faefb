"""Intervals of comparisons: shares by score methods, means by resamples, and none that would have no width."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from thresholds_judged import judge

from schemas.terms import Note, State
from tasks.metrics.algorithm.measures import Drawn, Family, Given, Measure, Plan, Statistic, summarise
from tasks.metrics.algorithm.measures import Threshold as Limit
from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import Estimate, estimate

PLAN = Plan({"race": "white"}, 100, 0.95, 1)
FAMILY = Family("outcomes", "lender", "race", "approval_rate", "{}")


def estimated(values: list[float], counts: list[int], *, share: bool) -> Estimate:
    return estimate(np.array(values), np.array(counts), np.random.default_rng(0), 400, 0.95, share=share)


def rates(**groups: tuple[int, int]) -> list[Statistic]:
    """Approvals from group=(events, n)."""
    return [
        Statistic(FAMILY, group, np.array([0.0, 1.0]), np.array([n - events, events]), headline=True)
        for group, (events, n) in groups.items()
    ]


def checked(measure: str, low: float, high: float, **groups: tuple[int, int]) -> Measure:
    """The measure of the group, held against a limit."""
    (found,) = [m for m in summarise(rates(**groups), {}, PLAN) if m.family.measure == measure and m.group == "Black"]
    return judge([found], [Limit(measure, None, None, low, high)], 30)[0]


@settings(deadline=None, max_examples=examples(60))
@given(n=st.integers(1, 300), other=st.integers(1, 3000), one=st.floats(0, 1), two=st.floats(0, 1))
def test_the_difference_of_two_shares_is_newcombes(n: int, other: int, one: float, two: float) -> None:
    x, y = round(one * n), round(two * other)
    own, reference = (estimated([0.0, 1.0], [m - e, e], share=True) for e, m in ((x, n), (y, other)))
    found = intervals.difference(own, reference, 0.95)
    pair = intervals.Pair(*(np.array([part], float) for part in (x, n, y, other)))
    expected = np.concatenate(intervals.bounds(pair, "newcombe", intervals.quantile(0.025)))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.low < found.high


def test_a_share_less_a_mean_has_the_errors_of_both() -> None:
    """A group of which nobody flips, and a reference whose flips are shares of networks: 0, a half or 1."""
    own, other = estimated([0.0, 1.0], [50, 0], share=True), estimated([0.0, 0.5, 1.0], [40, 30, 30], share=True)
    assert (own.events, other.events) == (0, None)
    low, high, _ = intervals.difference(own, other, 0.95)
    value = own.value - other.value
    assert low == pytest.approx(value - (other.high - other.value))
    assert high == pytest.approx(value + math.hypot(own.high, other.value - other.low))


def test_where_one_mean_has_no_spread_no_comparison_has_an_interval() -> None:
    single, many = estimated([2.0], [1], share=False), estimated([1.0, 2.0, 3.0], [30, 40, 30], share=False)
    for made in (intervals.difference, intervals.ratio):
        for pair in ((single, many), (many, single)):
            low, high, note = made(*pair, 0.95)
            assert math.isnan(low)
            assert math.isnan(high)
            assert note == Note.NO_SPREAD
        assert made(many, many, 0.95).note in ("", Note.NO_SPREAD)
    low, high, note = intervals.from_drawn(single, single.replicates - 1.0, 1.0, 0.95)
    assert (math.isnan(low), math.isnan(high), note) == (True, True, Note.NO_SPREAD)


@pytest.mark.parametrize(
    ("group", "reference", "low", "high", "state"),
    [
        ((0, 30), (1500, 1940), 0.0, 0.1469, State.OUTSIDE),
        ((0, 30), (20, 100), 0.0, 0.5806, State.OUTSIDE),
        ((30, 30), (1500, 1940), 1.1459, 1.3262, State.WITHIN),
        ((133, 197), (1527, 1681), 0.6675, 0.8122, State.INCONCLUSIVE),
    ],
)
def test_four_fifths_at_small_counts(
    group: tuple[int, int], reference: tuple[int, int], low: float, high: float, state: State
) -> None:
    found = checked("approval_rate_ratio", 0.8, math.inf, Black=group, white=reference)
    assert (found.low, found.high, found.state) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5), state)


def test_no_denial_among_thirty_is_no_proof_that_denials_are_as_rare() -> None:
    """0 of 30 against 20 of 100: a limit of a third of the reference's rate was kept by the interval [0, 0]."""
    found = checked("approval_rate_ratio", -math.inf, 0.35, Black=(0, 30), white=(20, 100))
    assert found.state is State.INCONCLUSIVE
    found = checked("approval_rate_difference", -0.1, math.inf, Black=(0, 30), white=(0, 300))
    assert (found.low, found.high) == (pytest.approx(-0.0126, abs=5e-5), pytest.approx(0.1135, abs=5e-5))


@pytest.mark.parametrize(("events", "low"), [(0, 0.0), (5, 13.0748)])
def test_a_ratio_to_a_share_of_0_has_no_upper_end_and_no_verdict(events: int, low: float) -> None:
    found = checked("approval_rate_ratio", 0.8, math.inf, Black=(events, 30), white=(0, 300))
    assert math.isnan(found.value)
    assert (found.low, found.note) == (pytest.approx(low, abs=5e-5), Note.NO_UPPER_END)
    assert math.isnan(found.high)
    assert found.state is State.INCONCLUSIVE


def test_what_was_drawn_is_a_range_and_no_verdict() -> None:
    drawn = {(FAMILY, "Black"): Drawn(np.full(40, 0.9), "4 of 40 are bounds")}
    found = {m.family.measure: m for m in summarise(rates(Black=(60, 100), white=(180, 200)), drawn, PLAN)}
    matched = found["approval_rate_size_matched"]
    assert (matched.low, matched.high, matched.note) == (0.9, 0.9, "4 of 40 are bounds; range")
    (judged,) = judge([matched], [Limit("approval_rate_size_matched", None, None, 0.8, math.inf)], 30)
    assert (judged.state, judged.reason) == (State.INCONCLUSIVE, "a range of draws is no interval")
    gap = found["approval_rate_size_matched_difference"]
    assert gap.note == "4 of 40 are bounds"
    assert gap.low < gap.value < gap.high


def test_an_aggregate_whose_resamples_do_not_differ_has_no_interval() -> None:
    k0 = Given(replace(FAMILY, measure="k0"), "Black", 3.0, 40, np.full(50, 3.0), True, True, "")
    (found,) = [m for m in summarise([], {}, PLAN, [k0]) if m.reference_group is None]
    assert (found.value, found.note) == (3.0, Note.NO_SPREAD)
    (judged,) = judge([found], [Limit("k0", None, None, -math.inf, 5)], 30)
    assert judged.state is State.INCONCLUSIVE
    assert "sampling error" in judged.reason
