"""The first sentence: all 25 pairs of states, what comes before them, and whom it names."""

from dataclasses import replace
from itertools import product

import pytest
from decide_runs import FIVE, INSIDE, LITTLE, NO_LIMIT, NOT_RUN, OUTSIDE, effect, gap, nearest, of_states, white, whole

from schemas.terms import Theory
from tasks.reporting.first_page.facts import Group, Groups, Row, Run, words
from tasks.reporting.first_page.rules import MOST_WORDS, headline

SENTENCES = {
    "both_outside": "A applicants were approved less often than white applicants with similar records on file.",
    "adjusted_outside": "A applicants were approved less often than similar white applicants, whatever the plain rates "
    "show.",
    "gap_outside_adjusted_inside": "A applicants were approved less often; between similar records no difference "
    "beyond the limit is shown.",
    "gap_outside": "A applicants were approved less often; these data do not say whether similar records were, too.",
    "gap_outside_no_limit": "A applicants were approved less often; no limit was set for the difference between "
    "similar records.",
    "inside": "No difference against a group beyond the limits is shown; 8 points in approvals or 9 points between "
    "similar records would likely be seen.",
    "no_limit": "No limit was set for approvals: the figures below come without a verdict.",
    "too_little": "Inconclusive.",
}
OTHERS = {
    (OUTSIDE, OUTSIDE): "both_outside",
    (OUTSIDE, INSIDE): "gap_outside_adjusted_inside",
    (OUTSIDE, NO_LIMIT): "gap_outside_no_limit",
    **{(OUTSIDE, other): "gap_outside" for other in (LITTLE, NOT_RUN)},
    **{(other, OUTSIDE): "adjusted_outside" for other in (INSIDE, LITTLE, NO_LIMIT, NOT_RUN)},
    (INSIDE, INSIDE): "inside",
    (NO_LIMIT, NO_LIMIT): "no_limit",
}
"""The table of report.md 4, where it says more than too little."""


def of(run: Run) -> tuple[str, str]:
    found = headline(Groups(run))
    return found.rule, found.words


@pytest.mark.parametrize("pair", list(product(FIVE, FIVE)), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_each_pair_of_states_has_its_sentence(pair):
    rule = OTHERS.get(pair, "too_little")
    assert of(of_states(pair)) == (rule, SENTENCES[rule])


def test_there_are_25_pairs_and_every_sentence_is_one_of_them():
    pairs = list(product(FIVE, FIVE))
    assert len(set(pairs)) == 25
    assert {OTHERS.get(pair, "too_little") for pair in pairs} == set(SENTENCES)


def widened(state=LITTLE, **more):
    """An adjusted effect of 20 points, open by a widening of 10 points; the limit is 2 points."""
    row = replace(effect("A", state, (-20, -39, -1), limit=-2, bias=0.10), **more)
    return Run((whole(Theory.SIMILAR_APPLICANTS, state), row), (white(), Group("race", "A", 100, 0.7)))


def test_outside_without_the_widening_says_what_could_account_for_it():
    sentence = (
        "A applicants were approved less often than white applicants with similar records on file; columns missing "
        "here could account for it."
    )
    assert of(widened()) == ("outside_but_for_missing", sentence)
    for gap_state in FIVE:
        run = widened()
        points = (-20.0, -28.0, -12.0)
        assert of(replace(run, rows=(*run.rows, gap("A", gap_state, points))))[0] == "outside_but_for_missing"


def test_open_for_another_reason_is_no_widening():
    assert of(widened(bias=0.0))[0] == "too_little"
    assert of(widened(low=-0.09))[0] == "too_little", "-0.09 + 0.10 lies inside 0.02: open without the widening, too"
    assert of(widened(low=-0.08))[0] == "too_little", "exactly at the limit"
    assert of(widened(low=None))[0] == "too_little"
    assert of(widened(limit=None))[0] == "too_little"
    assert of(widened(withheld=True))[0] == "too_little"
    assert of(widened(state=NOT_RUN))[0] == "too_little"


def test_data_warnings_come_first():
    run = replace(of_states((OUTSIDE, OUTSIDE)), warnings=("columns_swapped",))
    assert of(run) == ("check_data", "Check the data first: approved and denied may be exchanged.")
    more = replace(run, warnings=("the file is half empty", "columns_swapped: AUC 0.31", "rows are repeated"))
    assert of(more)[1] == "Check the data first: approved and denied may be exchanged, and 2 more."
    unknown = replace(run, warnings=("the file is half empty.",))
    assert of(unknown)[1] == "Check the data first: the file is half empty."
    long = replace(run, warnings=(" ".join(["word"] * 60), *map(str, range(30))))
    assert words(of(long)[1]) <= MOST_WORDS


def test_all_groups_that_meet_the_first_row_are_named():
    one, two = (OUTSIDE, OUTSIDE), (OUTSIDE, LITTLE)
    assert of(of_states(one, two))[1].startswith("A applicants were")
    assert of(of_states(two, one))[1].startswith("B applicants were")
    assert of(of_states(one, two, one))[1].startswith("A and C applicants were approved less often than white")
    assert of(of_states(one, one, one))[1].startswith("Applicants of 3 groups were approved less often than white")


def test_several_attributes_are_named_and_their_references_are_not_mixed():
    sex = {"protected_attribute": "sex", "reference_group": "male"}
    run = of_states((OUTSIDE, OUTSIDE))
    points = (-20.0, -28.0, -12.0)
    rows = (gap("female", OUTSIDE, points, **sex), effect("female", OUTSIDE, points, **sex))
    groups = (Group("sex", "male", 1000, 0.9, reference=True), Group("sex", "female", 900, 0.7))
    both = replace(run, rows=(*run.rows, *rows), groups=(*run.groups, *groups))
    assert of(both)[1] == (
        "A and female applicants were approved less often than reference applicants with similar records on file."
    )
    alone = replace(run, rows=rows, groups=groups)
    assert of(alone)[1].startswith("Female applicants were approved less often than male applicants")


def test_a_name_in_two_attributes_says_of_which():
    again = {"protected_attribute": "ethnicity", "reference_group": "none of these"}
    points = (-20.0, -28.0, -12.0)
    run = of_states((INSIDE, INSIDE))
    rows = (gap("A", OUTSIDE, points, **again), effect("A", OUTSIDE, points, **again))
    groups = (Group("ethnicity", "A", 50, 0.7), Group("ethnicity", "none of these", 500, 0.9, reference=True))
    found = of(replace(run, rows=(*run.rows, *rows), groups=(*run.groups, *groups)))
    assert found[1].startswith("A (ethnicity) applicants were approved less often than none of these applicants")


def test_a_group_below_the_least_number_is_never_named():
    pair = (OUTSIDE, OUTSIDE)
    assert of(of_states(pair, n=30))[0] == "both_outside"
    few = of_states(pair, n=29)
    found = headline(Groups(few))
    assert (found.rule, found.groups) == ("too_little_elsewhere", ())
    assert found.words == (
        "Inconclusive here; Outside the limit: similar records of groups not named here "
        "and approvals of groups not named here."
    )
    hidden = replace(few, groups=(white(), Group("race", "A", None, None)))
    assert headline(Groups(hidden)).groups == ()


def test_all_groups_means_those_below_the_least_number_too():
    inside = of_states((INSIDE, INSIDE), (INSIDE, INSIDE))
    assert of(inside)[0] == "inside"
    small = replace(inside.groups[2], n=3)
    rows = tuple(replace(row, state=LITTLE) if row.group == "B" else row for row in inside.rows)
    assert of(replace(inside, groups=(*inside.groups[:2], small), rows=rows))[0] == "too_little"
    assert of(Run((), ()))[1] == "Inconclusive."


def test_the_difference_that_would_have_been_seen_is_the_largest_and_rounded_up():
    run = of_states((INSIDE, INSIDE), (INSIDE, INSIDE))
    rows = tuple(
        replace(row, detectable=0.1201) if row.group == "B" and row.theory is Theory.SIMILAR_APPLICANTS else row
        for row in run.rows
    )
    assert "8 points in approvals or 13 points between" in of(replace(run, rows=rows))[1]
    ratio = tuple(
        replace(row, detectable=0.70) if row.group == "A" and row.theory is Theory.APPROVAL_RATES else row
        for row in run.rows
    )
    assert "28 points in approvals or 9 points between" in of(replace(run, rows=ratio))[1], "0.91 x 0.30 is 27.3 points"
    unknown = tuple(replace(row, detectable=None) if row.group == "B" else row for row in run.rows)
    assert of(replace(run, rows=unknown))[1] == "No difference against a group beyond the limits is shown."
    hidden = (Group("race", "white", None, None, reference=True), *run.groups[1:])
    assert of(replace(run, groups=hidden))[0] == "inside_no_size"


def test_nothing_reads_as_a_pass_while_another_question_is_outside():
    def beside(*pairs, theories=(Theory.CAUSAL_MODEL,)):
        run = of_states(*pairs)
        return replace(run, rows=(*run.rows, *(whole(theory, OUTSIDE) for theory in theories)))

    assert of(beside((INSIDE, INSIDE)))[1] == (
        "No difference in approvals against a group beyond the limits is shown; Outside the limit: the assumed graph."
    )
    assert of(beside((LITTLE, LITTLE)))[1] == "Inconclusive here; Outside the limit: the assumed graph."
    assert of(beside((NO_LIMIT, NO_LIMIT)))[0] == "no_limit_elsewhere"
    many = (Theory.CAUSAL_MODEL, Theory.PATH_TO_APPROVAL, Theory.OWN_LIMITS)
    assert of(beside((INSIDE, INSIDE), theories=many))[1].endswith("Outside the limit: 3 questions below.")
    assert of(beside((OUTSIDE, OUTSIDE)))[0] == "both_outside"


def test_a_group_of_which_methods_disagree_is_open():
    run = of_states((OUTSIDE, OUTSIDE))
    disagreeing = replace(run, rows=(*run.rows, nearest("A", INSIDE, (-1, -2, 0))))
    assert of(disagreeing)[0] == "gap_outside"
    assert of(replace(run, rows=(*run.rows, nearest("A", LITTLE, (-1, -9, 7)))))[0] == "both_outside"


def test_columns_missing_are_no_excuse_where_second_methods_disagree():
    run = widened()
    rows = (*run.rows, nearest("A", INSIDE, (-1, -2, 0)), nearest("A", OUTSIDE, (-9, -12, -6), measure="overlap"))
    assert of(replace(run, rows=rows))[0] == "too_little"


def test_the_watch_level_and_second_methods_decide_nothing():
    watch = gap("A", OUTSIDE, (-8, -9, -7), role="watch")
    beside = nearest("A", OUTSIDE, (-8, -9, -7))
    run = of_states((LITTLE, LITTLE))
    assert of(replace(run, rows=(*run.rows, watch, beside)))[0] == "too_little"
    run = of_states((INSIDE, INSIDE))
    assert of(replace(run, rows=(*run.rows, watch)))[0] == "inside", "inside 0.80 and outside 0.90 do not disagree"


def test_long_names_keep_the_sentence_short():
    long = "Native Hawaiian or Other Pacific Islander of the northern and the southern islands"
    run = of_states((LITTLE, LITTLE))
    row = replace(widened().rows[1], group=long, reference_group="not of any of the groups above at all")
    group = Group("race", long, 100, 0.7)
    found = headline(Groups(replace(run, rows=(row,), groups=(group,))))
    assert words(found.words) <= MOST_WORDS
    assert found.words.startswith("Native Hawaiian or Other Pacific Islander… applicants were")
    assert found.groups == (("race", long),)


def test_rows_of_two_decision_makers_count_the_worst():
    run = of_states((INSIDE, INSIDE))
    model: tuple[Row, ...] = (gap("A", OUTSIDE, (-20, -28, -12), decision_maker="model"),)
    assert of(replace(run, rows=(*model, *run.rows)))[0] == "gap_outside_adjusted_inside"
