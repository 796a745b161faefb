"""Measures: comparisons by hand, states that never pass for want of evidence, small cells withheld."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thresholds_judged import judge

from schemas.terms import Note, State
from tasks.metrics.algorithm import publication
from tasks.metrics.algorithm.disclosure import POLICIES, complement, withhold_table
from tasks.metrics.algorithm.measures import Drawn, Family, Given, Measure, Plan, Statistic, summarise
from tasks.metrics.algorithm.verdicts.thresholds import Threshold as Limit
from tasks.metrics.algorithm.verdicts.thresholds import known_names, unmeasured
from tasks.numerics.statistics.intervals import Interval

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


def test_intervals_do_not_depend_on_the_name_of_a_group() -> None:
    one = summarise(shares(white=(20, 200), Black=(30, 100)), {}, PLAN)
    other = summarise(shares(white=(20, 200), b=(30, 100)), {}, PLAN)
    assert [(m.low, m.high) for m in one] == [(m.low, m.high) for m in other]


def test_a_ratio_to_zero_is_undefined() -> None:
    ratio = one(summarise(shares(white=(0, 200), Black=(30, 100)), {}, PLAN), "infeasible_share_ratio", "Black")
    assert math.isnan(ratio.value)
    (judged,) = judge([ratio], [Limit("infeasible_share_ratio", None, None, -math.inf, 2)], 30)
    assert judged.state is State.INSUFFICIENT_EVIDENCE


def test_a_share_that_nobody_has_is_no_surer_beside_what_was_drawn_than_by_itself() -> None:
    drawn = {(FAMILY, "Black"): Drawn(np.full(20, 0.02))}
    found = summarise(shares(white=(20, 200), Black=(0, 32)), drawn, PLAN)
    own, gap = (one(found, f"infeasible_share{end}", "Black") for end in ("", "_size_matched_difference"))
    assert gap.high == pytest.approx(own.high - 0.02)
    (judged,) = judge([gap], [Limit("infeasible_share_size_matched_difference", None, None, -math.inf, 0.05)], 30)
    assert judged.state is State.INSUFFICIENT_EVIDENCE


def test_size_matched_by_hand() -> None:
    drawn = np.linspace(0.2, 0.4, 21)
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {(FAMILY, "Black"): Drawn(drawn)}, PLAN)
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
    assert judged.state is State.NO_LIMIT
    (judged,) = judge([measure(math.nan, math.nan, math.nan)], [], 30)
    assert judged.state is State.NOT_RUN


def test_a_measure_whose_interval_is_not_known_to_cover_is_descriptive_and_never_within() -> None:
    limit = Limit("infeasible_share", None, None, -math.inf, 0.25)
    (judged,) = judge([measure(0.1, 0.0, 0.2)], [limit], 30, covering=())
    assert (judged.state, judged.reason.split(":")[0]) == (State.INSUFFICIENT_EVIDENCE, "descriptive")
    (judged,) = judge([measure(0.1, 0.0, 0.2)], [], 30, covering=())
    assert judged.state is State.DESCRIPTIVE


@given(st.floats(), st.floats(), st.floats(), st.integers(0, 200))
def test_a_pass_needs_finite_numbers_and_enough_units(value: float, low: float, high: float, n: int) -> None:
    (judged,) = judge([measure(value, low, high, n)], [Limit("infeasible_share", None, None, 0.0, 1.0)], 30)
    if judged.state is State.WITHIN:
        assert n >= 30
        assert all(math.isfinite(number) for number in (value, low, high))
        assert 0 <= value <= 1


def publish(statistics: list[Statistic], profile: str) -> list[Measure]:
    policy = POLICIES[profile]
    found = summarise([publication.coarsened(s, policy) for s in statistics], {}, PLAN)
    return publication.published(found, publication.withheld(statistics, policy), policy)


def test_a_small_group_is_withheld_with_its_comparisons_and_its_complement() -> None:
    found = publish(shares(white=(20, 200), Black=(30, 100), Asian=(10, 40), Other=(1, 3)), "public")
    hidden = {(m.family.measure, m.group) for m in found if m.n is None}
    names = ("infeasible_share", "infeasible_share_difference", "infeasible_share_ratio")
    assert hidden == {(name, group) for name in names for group in ("Other", "Asian")}
    assert all(math.isnan(m.value) for m in found if m.n is None)


def test_strict_hides_few_events_and_computes_the_rest_from_rounded_counts() -> None:
    statistics = shares(white=(23, 201), Black=(31, 99), Asian=(30, 102), Other=(5, 100))
    found = publish(statistics, "strict")
    plain = {m.group: m for m in found if m.reference_group is None}
    assert plain["Other"].n is None
    assert (plain["white"].n, plain["white"].events) == (205, 25)  # 23 and 178, each to the nearest 5
    rounded = [
        Statistic(FAMILY, group, np.array([0.0, 1.0]), np.array(counts), headline=True)
        for group, counts in (("white", [180, 25]), ("Black", [70, 30]), ("Asian", [70, 30]))
    ]
    alike = {(m.family.measure, m.group): m for m in summarise(rounded, {}, PLAN)}
    for m in found:
        if m.n is not None:
            other = alike[m.family.measure, m.group]
            assert m.p == other.p or math.isnan(m.p)
            close = 1e-12 if m.events is not None else 0.005  # what is no share is printed to two decimals
            assert (m.value, m.low, m.high) == pytest.approx((other.value, other.low, other.high), abs=close)


def test_a_mean_over_few_defined_units_is_no_verdict_and_is_withheld() -> None:
    family = replace(FAMILY, measure="burden")
    costs = Statistic(family, "Black", np.array([0.5, 0.6, np.nan]), np.array([2, 2, 56]), headline=True)
    (m,) = [x for x in summarise([costs], {}, PLAN) if x.reference_group is None]
    assert (m.n, m.fewest) == (60, 4)
    (judged,) = judge([m], [Limit("burden", None, None, -math.inf, 5)], 30)
    assert judged.state is State.INSUFFICIENT_EVIDENCE
    assert publication.withheld([costs], POLICIES["public"]) == {(family, "Black")}


def test_few_undefined_units_are_withheld_under_strict() -> None:
    family = replace(FAMILY, measure="coverage")
    covered = Statistic(family, "Black", np.array([0.0, 1.0, np.nan]), np.array([27, 70, 3]), headline=False)
    assert publication.withheld([covered], POLICIES["strict"]) == {(family, "Black")}


def test_a_mean_of_shares_over_folds_is_told_no_finer_than_two_decimals_under_strict() -> None:
    """Three folds of 100 rows each: 7, 8 and 9 of them. 8 of 300 rows less would show in the fourth decimal."""
    of_folds = Given(
        replace(FAMILY, measure="trained_flip_share"), "Black", 0.0817, 300, np.zeros(0), False, False, "", 25
    )
    count = replace(of_folds, value=25.0)
    strict, public = POLICIES["strict"], POLICIES["public"]
    assert publication.coarsened_given(of_folds, strict).value == 0.08
    assert publication.coarsened_given(of_folds, public).value == 0.0817
    assert publication.coarsened_given(count, strict).value == 25.0


@pytest.mark.parametrize(("share", "withheld"), [(True, True), (False, False)])
def test_a_mean_with_few_undefined_units_is_kept_unless_it_is_an_area_between_0_and_1(
    share: bool, withheld: bool
) -> None:
    """Of a mean nothing is printed but its n, all units included and rounded; areas have two denominators."""
    family = replace(FAMILY, measure="cec")
    scores = Statistic(family, "Black", np.array([0.25, 0.5, np.nan]), np.array([90, 110, 3]), False, share=share)
    assert publication.withheld([scores], POLICIES["strict"]) == ({(family, "Black")} if withheld else set())
    (m,) = publication.published(summarise([scores], {}, PLAN), set(), POLICIES["strict"])
    assert (m.n, m.events, m.value) == (205, None, 0.39)


def test_nothing_that_is_printed_of_a_mean_depends_on_how_many_of_few_lack_a_value() -> None:
    """The same group with three to seven rows without a value: n, value and counts read alike."""
    made = []
    for missing in (3, 4, 5, 6, 7):
        counts = np.array([100, 100, missing])
        scores = Statistic(FAMILY, "Black", np.array([0.25, 0.5, np.nan]), counts, headline=False, share=False)
        (m,) = publication.published(summarise([scores], {}, PLAN), set(), POLICIES["strict"])
        made.append((m.n, m.events, m.value))
    assert set(made) == {(205, None, 0.38)}


def test_a_part_of_a_group_cannot_be_had_by_subtraction() -> None:
    parts = [
        Statistic(replace(FAMILY, subgroup=i), "white", np.array([0.0, 1.0]), np.array(counts), headline=False)
        for i, counts in ((0, [30, 25]), (1, [20, 20]), (2, [8, 4]), (3, [2, 1]))
    ]
    hidden = publication.withheld(parts, POLICIES["public"])
    assert {family.subgroup for family, _ in hidden} == {2, 3}


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
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {}, PLAN)
    everyone = {("lender", "race", group) for group in ("white", "Black", "Asian")}
    limit = Limit("infeasible_share_difference", None, None, -math.inf, 0.05)
    (gap,) = unmeasured(found, [limit, limit], everyone, PLAN)
    assert (gap.group, gap.n, gap.state) == ("Asian", 0, State.INSUFFICIENT_EVIDENCE)
    assert gap.family.method == "fgce"


@pytest.mark.parametrize("maker", [None, "model"])
def test_a_limit_that_finds_nothing_is_no_pass(maker: str | None) -> None:
    everyone = {("lender", "race", "white"), ("lender", "race", "Black")}
    found = unmeasured([], [Limit("burden", "fgce", maker, -math.inf, 1)], everyone, PLAN)
    assert {(m.family.decision_maker, m.group) for m in found} == {(maker or "lender", g) for g in ("white", "Black")}
    assert {m.state for m in found} == {State.INSUFFICIENT_EVIDENCE}


def test_known_names_are_the_measures_and_their_comparisons() -> None:
    known = known_names(["burden"])
    assert {"burden", "burden_difference", "burden_ratio", "burden_size_matched"} <= set(known)


def given_k0(group: str, value: float, replicates: list[float], n: int = 40) -> Given:
    return Given(replace(FAMILY, measure="k0"), group, value, n, np.array(replicates), True, True, "")


def test_an_aggregate_reaches_to_its_value_and_its_differences_have_no_interval() -> None:
    """Two equal groups: resamples of an extreme are shifted, subsamples are not, and no verdict comes of the two."""
    low = [25.0, 26.0, 27.0, 26.0]
    groups = [given_k0("white", 40, low), given_k0("Black", 40, low)]
    drawn = Drawn(np.full(10, 40.0))
    found = summarise([], {(groups[1].family, "Black"): drawn}, PLAN, groups)
    own = one(found, "k0", "Black")
    assert (own.value, own.high) == (40, 40)
    assert own.low < 27
    for name in ("k0_difference", "k0_ratio", "k0_size_matched_difference"):
        compared = one(found, name, "Black")
        assert math.isfinite(compared.value)
        assert math.isnan(compared.low)
        assert math.isnan(compared.p)


def test_a_size_matched_value_of_one_draw_has_no_range() -> None:
    drawn = Drawn(np.append(2.0, np.full(39, np.nan)))
    found = summarise(shares(white=(20, 200), Black=(30, 100)), {(FAMILY, "Black"): drawn}, PLAN)
    matched = one(found, "infeasible_share_size_matched", "Black")
    assert (matched.value, matched.n, matched.fewest) == (2.0, 1, 1)
    assert math.isnan(matched.low)
    assert math.isnan(one(found, "infeasible_share_size_matched_difference", "Black").low)


def test_what_is_left_of_a_group_is_not_had_by_subtraction() -> None:
    """Six subgroups, five of them printed: the sixth holds three people."""

    def part(number: int, n: int) -> Statistic:
        family = replace(FAMILY, subgroup=number)
        return Statistic(family, "white", np.array([0.0, 1.0]), np.array([n - 9, 9]), headline=False)

    parts = [part(0, 103), *(part(number, 20) for number in range(1, 6))]
    hidden = publication.withheld(parts, POLICIES["public"])
    assert {family.subgroup for family, _ in hidden} & set(range(1, 6))
    enough = [part(0, 110), *parts[1:]]
    assert publication.withheld(enough, POLICIES["public"]) == set()


def test_a_share_is_not_to_be_had_from_the_others_that_add_up_to_one_with_it() -> None:
    family = Family("cec", "model", "race", "regime_share", "{}")
    shares = {"A": 60, "B": 30, "C": 3, "D": 12}
    made = [
        Statistic(
            replace(family, parameters=f'{{"regime": "{name}"}}'),
            "Black",
            np.array([0.0, 1.0]),
            np.array([105 - n, n]),
            False,
        )
        for name, n in shares.items()
    ]
    alone = {f.parameters for f, _ in publication.withheld(made, POLICIES["strict"])}
    assert alone == {'{"regime": "C"}'}
    together = publication.withheld(made, POLICIES["strict"], {"regime_share": ("regime",)})
    assert {f.parameters for f, _ in together} == {'{"regime": "C"}', '{"regime": "D"}'}
    assert publication.withheld(made, POLICIES["public"], {"regime_share": ("regime",)}) == set()


def of_formula(value: float, low: float, high: float, note: str = "") -> Given:
    family = replace(FAMILY, measure="adjusted_effect")
    return Given(family, "Black", value, 200, np.zeros(0), False, False, note, ends=Interval(low, high))


def test_an_aggregate_brings_its_own_interval_and_is_judged_by_it() -> None:
    limit = Limit("adjusted_effect", None, None, -math.inf, 0.05)
    for value, low, high, state in (
        (0.13, 0.06, 0.19, State.BREACH),
        (0.02, 0.01, 0.04, State.WITHIN),
        (0.04, 0.01, 0.07, State.INSUFFICIENT_EVIDENCE),
        (0.13, math.nan, math.nan, State.INSUFFICIENT_EVIDENCE),
    ):
        (found,) = judge(summarise([], {}, PLAN, [of_formula(value, low, high)]), [limit], 30)
        assert found.state is state
        assert (found.value, str(found.low), str(found.high)) == (value, str(low), str(high))


def test_an_interval_of_a_formula_need_not_hold_the_value_of_resamples_and_has_width() -> None:
    (found,) = summarise([], {}, PLAN, [of_formula(0.1, 0.1, 0.1)])
    assert math.isnan(found.low)
    assert found.note == "no spread"


def test_poor_support_is_too_little_evidence_whatever_the_interval() -> None:
    limit = Limit("adjusted_effect", None, None, -math.inf, 0.05)
    (found,) = judge(summarise([], {}, PLAN, [of_formula(0.13, 0.06, 0.19, Note.POOR_SUPPORT)]), [limit], 30)
    assert found.state is State.INSUFFICIENT_EVIDENCE
    assert found.reason == "too few of the group are where applicants of both groups are found"


def test_an_interval_of_a_formula_is_rounded_where_disclosure_rounds() -> None:
    (found,) = summarise([], {}, PLAN, [of_formula(0.126, 0.061, 0.192)])
    (shown,) = publication.published([found], set(), POLICIES["strict"])
    assert (shown.value, shown.low, shown.high) == (0.13, 0.06, 0.19)
