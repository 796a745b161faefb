"""Measures: comparisons by hand, states that never pass for want of evidence, small cells withheld."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.terms import State
from tasks.algorithms.disclosure import POLICIES, complement, withhold_table
from tasks.algorithms.measures import Family, Measure, Plan, Statistic, summarise, withhold
from tasks.algorithms.verdicts import Limit, judge, unknown, unmeasured

PLAN = Plan({"race": "white"}, 300, 0.95, 1)
FAMILY = Family("fgce", "lender", "race", "infeasible_share", "{}")


def shares(**groups: tuple[int, int]) -> list[Statistic]:
    """Statistics from group=(events, n)."""
    return [
        Statistic(FAMILY, group, np.array([0.0, 1.0]), np.array([n - events, events]), headline=True)
        for group, (events, n) in groups.items()
    ]


def one(measures: list[Measure], name: str, group: str) -> Measure:
    (found,) = [m for m in measures if (m.family.measure, m.group) == (name, group)]
    return found


def test_difference_and_ratio_by_hand() -> None:
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {}, PLAN)
    difference, ratio = (
        one(found, "infeasible_share_difference", "Black"),
        one(found, "infeasible_share_ratio", "Black"),
    )
    assert difference.value == pytest.approx(0.2)
    assert ratio.value == pytest.approx(3.0)
    assert difference.low > 0
    assert ratio.low > 1
    assert difference.reference_group == "white"
    assert difference.p == ratio.p
    assert difference.q == ratio.q < 0.01
    assert {m.group for m in found if m.reference_group} == {"Black"}


def test_swapping_the_groups_turns_the_difference_around() -> None:
    there = one(summarise(shares(white=(20, 200), Black=(30, 100)), {}, PLAN), "infeasible_share_difference", "Black")
    back = one(summarise(shares(white=(30, 100), Black=(20, 200)), {}, PLAN), "infeasible_share_difference", "Black")
    assert back.value == -there.value


def test_a_ratio_to_zero_is_undefined() -> None:
    ratio = one(summarise(shares(white=(0, 200), Black=(30, 100)), {}, PLAN), "infeasible_share_ratio", "Black")
    assert math.isnan(ratio.value)
    (judged,) = judge([ratio], [Limit("infeasible_share_ratio", None, None, -math.inf, 2)], 30)
    assert judged.state is State.INSUFFICIENT_EVIDENCE


def test_size_matched_by_hand() -> None:
    drawn = np.linspace(0.2, 0.4, 21)
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {(FAMILY, "Black"): drawn}, PLAN)
    matched = one(found, "infeasible_share_size_matched", "Black")
    assert (matched.value, matched.n) == (pytest.approx(0.3), 21)
    gap = one(found, "infeasible_share_size_matched_difference", "Black")
    assert gap.value == pytest.approx(0)
    assert gap.low < drawn.min() - 0.3 + 0.02  # the draws spread, and the sampling error of the group, count
    assert gap.low < 0 < gap.high  # inside the range of its size: no disparity is claimed
    (judged,) = judge([gap], [Limit("infeasible_share_size_matched_difference", None, None, -math.inf, 0.05)], 30)
    assert judged.state is not State.BREACH


def measure(value: float, low: float, high: float, n: int = 100) -> Measure:
    return Measure(FAMILY, "Black", None, value, low, high, n, fewest=n)


@pytest.mark.parametrize(
    ("m", "state"),
    [
        (measure(0.5, 0.4, 0.6), State.BREACH),
        (measure(0.1, 0.0, 0.2), State.WITHIN),
        (measure(0.3, 0.2, 0.4), State.INSUFFICIENT_EVIDENCE),
        (measure(0.1, 0.0, 0.2, n=29), State.INSUFFICIENT_EVIDENCE),
        (measure(0.5, 0.4, 0.6, n=3), State.INSUFFICIENT_EVIDENCE),
        (measure(math.nan, 0.0, 0.2), State.INSUFFICIENT_EVIDENCE),
        (measure(0.1, math.nan, 0.2), State.INSUFFICIENT_EVIDENCE),
        (measure(0.1, 0.0, math.inf), State.INSUFFICIENT_EVIDENCE),
    ],
)
def test_states(m: Measure, state: State) -> None:
    (judged,) = judge([m], [Limit("infeasible_share", None, None, -math.inf, 0.25)], 30)
    assert judged.state is state
    assert judged.reason


def test_without_a_threshold_nothing_passes() -> None:
    (judged,) = judge([measure(0.1, 0.0, 0.2)], [], 30)
    assert judged.state is State.NOT_RUN


@given(st.floats(), st.floats(), st.floats(), st.integers(0, 200))
def test_a_pass_needs_finite_numbers_and_enough_units(value: float, low: float, high: float, n: int) -> None:
    (judged,) = judge([measure(value, low, high, n)], [Limit("infeasible_share", None, None, 0.0, 1.0)], 30)
    if judged.state is State.WITHIN:
        assert n >= 30
        assert math.isfinite(value)
        assert low >= 0
        assert high <= 1


def test_a_small_group_is_withheld_with_its_comparisons_and_its_complement() -> None:
    found = summarise(shares(white=(20, 200), Black=(30, 100), Asian=(10, 40), Other=(1, 3)), {}, PLAN)
    published = withhold(found, POLICIES["public"])
    hidden = {(m.family.measure, m.group) for m in published if m.n is None}
    names = ("infeasible_share", "infeasible_share_difference", "infeasible_share_ratio")
    assert hidden == {(name, group) for name in names for group in ("Other", "Asian")}
    assert all(math.isnan(m.value) for m in published if m.n is None)


def test_strict_hides_few_events_and_rounds_the_rest() -> None:
    found = summarise(shares(white=(23, 201), Black=(31, 99), Asian=(30, 102), Other=(5, 100)), {}, PLAN)
    published = {m.group: m for m in withhold(found, POLICIES["strict"]) if m.reference_group is None}
    assert published["Other"].n is None
    assert (published["white"].n, published["white"].events) == (200, 25)
    compared = {m.family.measure: m for m in withhold(found, POLICIES["strict"]) if m.group == "Asian"}
    assert compared["infeasible_share_difference"].value == pytest.approx(30 / 100 - 25 / 200)
    assert compared["infeasible_share_ratio"].value == pytest.approx((30 / 100) / (25 / 200))
    assert compared["infeasible_share_difference"].n == 100
    assert published["white"].value == 25 / 200  # the rate of the printed counts gives the exact ones away no more


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8))
def test_no_single_cell_is_left_to_subtraction(numbers: list[int]) -> None:
    counts = np.array(numbers)
    withheld = complement((counts > 0) & (counts < 5), counts)
    assert withheld.sum() != 1
    assert withheld[(counts > 0) & (counts < 5)].all()


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=5))
def test_tables_leave_no_single_cell_in_any_row_or_column(rows: list[list[int]]) -> None:
    counts = np.array(rows)
    withheld = withhold_table(POLICIES["public"], counts)
    assert withheld[(counts > 0) & (counts < 5)].all()
    for line, gone in [*zip(counts, withheld, strict=True), *zip(counts.T, withheld.T, strict=True)]:
        assert gone.sum() != 1, line


def test_a_group_without_anything_to_measure_is_too_little_evidence() -> None:
    rates = [
        Statistic(Family("outcomes", "lender", "race", "approval_rate", "{}"), g, np.array([1.0]), np.array([50]), True)
        for g in ("white", "Black", "Asian")
    ]
    found = summarise([*rates, *shares(white=(20, 200), Black=(30, 100))], {}, PLAN)
    limits = [Limit("infeasible_share_difference", None, None, -math.inf, 0.05)]
    (gap,) = unmeasured(found, limits, PLAN.references)
    assert (gap.group, gap.n, gap.state) == ("Asian", 0, State.INSUFFICIENT_EVIDENCE)
    assert gap.family.method == "fgce"


def test_a_threshold_on_nothing_known_is_named() -> None:
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {}, PLAN)
    limits = [Limit(name, None, None, -math.inf, 1) for name in ("infeasible_share_ratio", "infeasible_shar")]
    ((position, known),) = unknown(found, limits)
    assert position == 1
    assert "infeasible_share" in known
