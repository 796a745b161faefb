"""The three figures: which group, which numbers, and how they are printed."""

from dataclasses import replace
from itertools import permutations

import pytest
from decide_runs import (
    INSIDE,
    LITTLE,
    NO_LIMIT,
    NOT_RUN,
    OUTSIDE,
    WHITE,
    boston,
    effect,
    gap,
    nearest,
    of_states,
    texas,
    white,
)

from schemas.terms import Theory
from tasks.reporting.charts.values import POINTS, places_of
from tasks.reporting.first_page.facts import Group, Groups, Run, forecast, interval, percent, points, some_points
from tasks.reporting.first_page.result import choice, figures, forest


def of(run):
    return figures(Groups(run))


def lines(run):
    return {each.name: each for each in of(run).comparisons}


def test_boston_as_in_the_example():
    found = of(boston())
    assert found.title == "Points of approval: Black minus white"
    assert (found.key, found.reference, found.among) == (("race", "Black"), "white", 2)
    printed = [(each.label, each.detail, each.text, each.shown_interval) for each in found.comparisons]
    assert printed == [
        ("All applicants", "197 people", "−23", "[−30, −17]"),
        ("Similar applicants", "18 characteristics, 197 people", "−14", "[−20, −7]"),
        ("Nearest applicants", "15 white for each of 197 Black", "−18", "[−25, −12]"),
    ]
    assert {each.shown_limit for each in found.comparisons} == {"−5"}
    assert {each.interval for each in found.comparisons} == {"verdict"}


def test_texas_has_a_decimal_where_intervals_are_short_and_n_is_of_the_people_of_a_comparison():
    found = [(each.text, each.shown_interval, each.n) for each in of(texas()).comparisons]
    assert found == [
        ("−10.9", "[−12.4, −9.4]", 3995),
        ("−7", "[−8.3, −5.7]", 3995),
        ("−9.8", "[−11, −8.5]", 3962),
    ]


def test_the_group_has_the_least_favourable_near_end_and_not_the_largest_effect():
    wide, narrow = (-30.0, -58.0, -2.0), (-10.0, -14.0, -6.0)
    rows = (effect("wide", LITTLE, wide), effect("narrow", OUTSIDE, narrow))
    groups = (white(), Group("race", "wide", 40, 0.5), Group("race", "narrow", 900, 0.8))
    for each in permutations(rows):
        assert choice(Groups(Run(each, groups))) == (("race", "narrow"), 2)
    small = (white(), Group("race", "wide", 40, 0.5), Group("race", "narrow", 29, 0.8))
    assert choice(Groups(Run(rows, small))) == (("race", "wide"), 1), "below the least number it is not chosen"
    withheld = (rows[0], replace(rows[1], withheld=True))
    assert choice(Groups(Run(withheld, groups))) == (("race", "wide"), 1)


def test_intervals_of_two_kinds_are_not_compared():
    """A two-sided interval has a nearer end than a corrected one, which would choose the group without a verdict."""
    corrected = effect("judged", LITTLE, (-10, -20, 0))
    plain = effect("open", LITTLE, (-10, -20, 0), low=None, high=None, plain_low=0.05, plain_high=0.15)
    groups = (white(), Group("race", "judged", 100, 0.5), Group("race", "open", 100, 0.8))
    assert choice(Groups(Run((corrected, plain), groups))) == (("race", "judged"), 1)
    alone = Run((plain,), groups)
    assert choice(Groups(alone)) == (("race", "open"), 1)
    assert lines(alone)["adjusted"].interval == "plain"


def test_without_an_adjusted_row_the_plain_gap_chooses():
    rows = (gap("A", OUTSIDE, (-10, -20, -9)), gap("B", OUTSIDE, (-15, -29, -1)))
    groups = (white(), Group("race", "A", 50, 0.5), Group("race", "B", 90, 0.5))
    assert choice(Groups(Run(rows, groups))) == (("race", "A"), 2)
    assert choice(Groups(Run((), groups))) == (("race", "B"), 2), "the largest group, where no interval is known"
    few = tuple(replace(group, n=3) for group in groups)
    found = of(Run(rows, few))
    assert (found.key, found.caption) == (None, "No group has enough applicants.")
    assert [each.text for each in found.comparisons] == ["Not run"] * 3
    whole_row = replace(rows[0], role="theory", group="", state=LITTLE)
    judged = of(Run((*rows, whole_row), few)).comparisons
    assert [each.text for each in judged] == ["Inconclusive", "Not run", "Not run"], "it was asked, of too few"


def test_there_are_always_the_same_three_and_a_missing_one_says_why():
    run = boston()
    rows = tuple(row for row in run.rows if row.role != "beside")
    assert lines(replace(run, rows=rows))["nearest"].text == "Not run"
    hidden = tuple(
        replace(row, value=None, low=None, high=None, withheld=True, state=LITTLE) if row.role == "beside" else row
        for row in run.rows
    )
    withheld = lines(replace(run, rows=hidden))["nearest"]
    assert (withheld.text, withheld.shown_interval, withheld.value) == ("withheld", "", None)
    unmeasured = tuple(
        replace(row, value=None, low=None, high=None, state=LITTLE) if row.theory is Theory.SIMILAR_APPLICANTS else row
        for row in run.rows
    )
    assert lines(replace(run, rows=unmeasured))["adjusted"].text == "Inconclusive"
    assert list(lines(Run((), ()))) == ["all", "adjusted", "nearest"]


def test_a_withheld_reference_rate_leaves_no_points_of_the_plain_gap():
    run = boston()
    groups = (replace(run.groups[0], approval=None), *run.groups[1:])
    found = lines(replace(run, groups=groups))
    assert (found["all"].text, found["all"].value, found["all"].limit) == ("withheld", None, None)
    assert found["adjusted"].text == "−14"


def test_a_ratio_and_its_limit_are_in_points_at_the_rate_of_the_reference():
    run = replace(boston(), rows=(gap("Black", LITTLE, (-20, -30, -10)),))
    row = replace(run.rows[0], value=0.743, low=0.68, high=0.812, limit=0.8)
    found = lines(replace(run, rows=(row,)))["all"]
    assert found.value == pytest.approx(100 * (0.743 - 1) * WHITE, abs=1e-3)
    assert found.limit == pytest.approx(-20 * WHITE)
    assert found.low < found.value < found.limit < found.high, "the interval reaches over the limit in either unit"
    assert found.shown_limit == "−18"


def test_the_gap_of_a_group_is_the_difference_of_the_rates_that_are_printed_beside_it():
    row = replace(gap("Black", LITTLE, (-20, -30, -10)), value=0.74, low=0.68, high=0.81, limit=0.8)
    own = Group("race", "Black", 197, 0.675, decision_maker=row.decision_maker)
    run = replace(boston(), rows=(row,), groups=(white(), own))
    assert lines(run)["all"].value == pytest.approx(67.5 - 100 * WHITE), "not by a ratio of two decimals"
    for other in (replace(own, decision_maker="model"), replace(own, approval=0.85)):
        found = lines(replace(run, groups=(white(), other)))["all"].value
        assert found == pytest.approx(-26 * WHITE), "of another decision maker, or beyond the limit by its rounding"


def test_a_limit_that_was_declared_in_points_keeps_its_decimal():
    run = replace(boston(), rows=(effect("Black", LITTLE, (-10, -20, 0), limit=-2.5),))
    assert lines(run)["adjusted"].shown_limit == "−2.5"


def test_a_limit_that_is_not_set_is_not_shown_and_the_plain_interval_is():
    row = effect("Black", NO_LIMIT, (-10, -1, -1), limit=-5, plain_low=0.05, plain_high=0.15)
    run = replace(boston(), rows=(replace(row, limit=None, low=None, high=None),))
    found = lines(run)["adjusted"]
    assert (found.shown_limit, found.interval, found.shown_interval) == ("", "plain", "[−15, −5]")


def test_the_interval_is_the_one_that_the_result_prints():
    row = effect("Black", LITTLE, (-7, -21, 7), bias=0.12, plain_low=0.05, plain_high=0.09)
    adjusted = lines(replace(boston(), rows=(row,)))["adjusted"]
    assert (adjusted.low, adjusted.high, adjusted.interval) == (pytest.approx(-9), pytest.approx(-5), "plain")


def test_states_of_the_figures_are_those_of_their_rows():
    found = lines(of_states((INSIDE, LITTLE)))
    assert [each.state for each in found.values()] == [INSIDE, LITTLE, NOT_RUN]
    run = of_states((OUTSIDE, OUTSIDE))
    found = lines(replace(run, rows=(*run.rows, nearest("A", INSIDE, (-1, -2, 0)))))
    assert (found["adjusted"].state, found["nearest"].state) == (LITTLE, INSIDE), "methods disagree"


@pytest.mark.parametrize(("low", "high", "expected"), [(-4, 0, 0), (-3.9, 0, 1), (None, 2, 0), (-7, 7, 0)])
def test_a_decimal_is_printed_only_where_half_the_interval_is_below_two_points(low, high, expected):
    assert places_of(POINTS, low, high) == expected


def test_numbers_by_hand():
    assert [points(value) for value in (-3.4, 3.4, 0.4, -0.4, 0)] == ["−3", "+3", "0", "0", "0"]
    assert [points(value, 1) for value in (-0.04, 0.06, -10.95)] == ["0", "+0.1", "−10.9"]
    assert interval(-1.25, 0.5, 1) == "[−1.2, +0.5]"
    assert [percent(share) for share in (0.124, 0.055, 0.05, 0.0996)] == ["12", "5.5", "5", "10"]
    assert [some_points(value) for value in (0.2, 1.0, 8.0001, 9.0)] == ["1 point", "1 point", "9 points", "9 points"]
    assert [forecast(n) for n in (6743.2, 6700, 99, 7.2, 10000)] == ["6,800", "6,700", "99", "8", "10,000"]


def test_where_no_group_has_enough_people_a_comparison_is_not_said_to_be_not_run():
    run = of_states((LITTLE, LITTLE), n=9)
    assert [each.state for each in of(run).comparisons] == [LITTLE, LITTLE, NOT_RUN]
    beside = (*run.rows, nearest("A", LITTLE, (-20, -28, -12), n=9))
    assert of(replace(run, rows=beside)).comparisons[2].state is LITTLE
    assert {each.state for each in of(of_states((NO_LIMIT, NO_LIMIT), n=9)).comparisons[:2]} == {NO_LIMIT}
    assert {each.state for each in of(Run((), (white(),))).comparisons} == {NOT_RUN}


def test_no_end_of_an_interval_lies_beyond_what_can_be():
    found = lines(Run((gap("A", LITTLE, (-20, -43, 94)),), (white(), Group("race", "A", 100, 0.71))))
    assert (found["all"].low, found["all"].high) == (-43, 9.2), "908 of 1,000 are approved in the reference group"


def test_a_number_without_interval_has_its_state_for_a_reason():
    lacks = {"low": None, "high": None}
    run = Run((effect("A", LITTLE, (-12, -20, -4), **lacks),), (white(), Group("race", "A", 100, 0.71)))
    assert forest(of(run)).rows[1].note == "Inconclusive: no interval."


def test_a_name_that_leaves_no_mark_is_called_blank():
    names = ("\u200b", "\u3164\u2800", "\u00a0", "0", "-", "\u05d0")
    groups = Groups(Run((), tuple(Group("race", name, 100, 0.5) for name in names)))
    told = [groups.label(("race", name)) for name in names]
    assert [name.startswith("(blank name)") for name in told] == [True, True, True, False, False, False]
    assert len(set(told)) == len(names)
