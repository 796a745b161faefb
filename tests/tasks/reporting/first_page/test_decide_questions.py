"""The rows of "What was found": states, whole numbers of 100 and of points, and forms for many groups."""

from dataclasses import replace

import pytest
from decide_runs import (
    INSIDE,
    LITTLE,
    NO_LIMIT,
    NOT_RUN,
    OUTSIDE,
    boston,
    effect,
    gap,
    nearest,
    of_states,
    row,
    texas,
    white,
    whole,
)

from schemas.questions import QUESTIONS, STATES
from schemas.terms import State, Theory
from tasks.reporting.first_page.facts import Group, Groups, LeftOut, Run, in_points, part, words
from tasks.reporting.first_page.rules import QUESTIONS_MOST_WORDS, questions


def rows_of(run):
    return {question.theory: question for question, _ in questions(Groups(run))}


def sentence(run, theory):
    return rows_of(run)[theory].sentence


def adjusted(*rows, state=OUTSIDE, groups=()):
    return Run((whole(Theory.SIMILAR_APPLICANTS, state), *rows), (white(), *groups))


OWN_STATES = tuple(State)
POINTS = (-10.0, -15.0, -5.0)


def test_five_rows_in_the_order_of_the_pages_and_a_sixth_where_the_spec_has_limits():
    rows = rows_of(boston())
    assert [row.page for row in rows.values()] == [
        "approval-rates",
        "similar-applicants",
        "causal-model",
        "path-to-approval",
        "model-reasons",
    ]
    assert [row.question for row in rows.values()] == [QUESTIONS[theory].words for theory in rows]
    own = (
        whole(Theory.OWN_LIMITS, OUTSIDE),
        row(Theory.OWN_LIMITS, "Black", OUTSIDE),
        row(Theory.OWN_LIMITS, "Black", INSIDE, measure="b"),
        row(Theory.OWN_LIMITS, "Hispanic", INSIDE, measure="b"),
    )
    states = (*OWN_STATES, *OWN_STATES)
    many = (
        whole(Theory.OWN_LIMITS, OUTSIDE),
        *(row(Theory.OWN_LIMITS, str(n), state) for n, state in enumerate(states)),
    )
    assert sentence(Run(many, ()), Theory.OWN_LIMITS) == "2 of 12 limits Outside the limit.", (
        "six states are too many words"
    )
    sixth = list(rows_of(replace(boston(), rows=(*boston().rows, *own))).values())[5]
    assert (sixth.question, sixth.state_words) == ("Are your own limits kept?", "Outside the limit")
    assert sixth.sentence == "Of 3 limits: 1 Outside the limit, 2 Within the limit."


def test_states_are_printed_in_the_words_of_the_one_place():
    assert STATES == {
        State.OUTSIDE: "Outside the limit",
        State.WITHIN: "Within the limit",
        State.INCONCLUSIVE: "Inconclusive",
        State.NO_LIMIT: "No limit set",
        State.INFORMATION: "For information",
        State.NOT_RUN: "Not run",
    }


def test_rates_are_of_100_as_published_the_highest_first_and_withheld_last():
    run = boston()
    assert sentence(run, Theory.APPROVAL_RATES) == "Of 100 applicants approved: white 91, Hispanic 77, Black 68."
    hidden = replace(run, groups=(*run.groups, Group("race", "Asian", None, None)))
    assert sentence(hidden, Theory.APPROVAL_RATES).endswith("Black 68, Asian withheld.")
    ranged = replace(run, groups=(white(), Group("race", "Black", 197, None, approval_text="more than 95")))
    assert sentence(ranged, Theory.APPROVAL_RATES) == "Of 100 applicants approved: Black more than 95, white 91."
    all_hidden = replace(run, groups=tuple(replace(group, approval=None) for group in run.groups))
    assert sentence(all_hidden, Theory.APPROVAL_RATES) == "Approval rates are withheld."


def test_the_lender_decided_on_every_application_and_the_model_on_those_that_it_scored():
    many = replace(boston(), left_out=LeftOut(510, 1000))
    assert sentence(many, Theory.APPROVAL_RATES) == "Of 100 applicants approved: white 91, Hispanic 77, Black 68."
    scored = tuple(replace(group, decision_maker="model") for group in many.groups)
    assert sentence(replace(many, groups=scored), Theory.APPROVAL_RATES) == (
        "Of 100 applications that the model scored, it approved: white 91, Hispanic 77, Black 68."
    )


def test_many_groups_are_told_by_their_range():
    groups = tuple(Group("race", f"group {n}", 100, (40 + n) / 100) for n in range(20))
    hidden = Group("race", "Asian", None, None)
    told = sentence(Run((whole(Theory.APPROVAL_RATES, LITTLE),), (white(), *groups, hidden)), Theory.APPROVAL_RATES)
    assert told == "Of 100 applicants approved: white 91; 20 other groups 40 to 59; 1 withheld."
    men = Group("sex", "male", 500, 0.95, reference=True)
    told = sentence(
        Run((whole(Theory.APPROVAL_RATES, LITTLE),), (white(), men, *groups, hidden)), Theory.APPROVAL_RATES
    )
    assert told == "Of 100 applicants approved: 40 to 95 in 22 groups; 1 withheld."
    two = Run((), (white(), Group("race", "Black", 9, 0.7), men, Group("sex", "female", 9, 0.8)))
    assert sentence(two, Theory.APPROVAL_RATES) == "Of 100 applicants approved: white 91, Black 70; male 95, female 80."


def test_effects_name_groups_with_points_parts_and_states():
    assert (
        sentence(boston(), Theory.SIMILAR_APPLICANTS)
        == "Black −14 points, about half of the gap; Hispanic −11, Inconclusive."
    )
    assert sentence(texas(), Theory.SIMILAR_APPLICANTS) == (
        "Black −7 points; Asian −5, Inconclusive; American Indian −5, Inconclusive."
    ), "the parts give way to the groups"
    total = (whole(Theory.CAUSAL_MODEL, INSIDE), effect("Black", INSIDE, (-0.6, -3, 1), theory=Theory.CAUSAL_MODEL))
    assert sentence(replace(boston(), rows=total), Theory.CAUSAL_MODEL) == "Black −1 point."


@pytest.mark.parametrize(("states", "expected"), [
    ([OUTSIDE] * 9, "9 groups Outside the limit."),
    ([OUTSIDE, *[LITTLE] * 5, *[INSIDE] * 4], "G0 −10 points; 5 groups Inconclusive, 4 Within the limit."),
    ([*[OUTSIDE] * 9, *[LITTLE] * 5, *[INSIDE] * 4], "9 groups Outside the limit, 5 Inconclusive, 4 Within the limit."),
])  # fmt: skip
def test_many_groups_are_counted_and_none_with_too_little_is_left_out(states, expected):
    rows = [effect(f"G{number}", state, POINTS) for number, state in enumerate(states)]
    assert sentence(adjusted(*rows), Theory.SIMILAR_APPLICANTS) == expected


def test_a_withheld_group_reads_withheld_and_tells_no_state():
    hidden = effect("Asian", LITTLE, POINTS, value=None, low=None, high=None, withheld=True)
    run = adjusted(effect("Black", OUTSIDE, POINTS), hidden)
    assert sentence(run, Theory.SIMILAR_APPLICANTS) == "Black −10 points; Asian withheld."
    assert sentence(adjusted(hidden), Theory.SIMILAR_APPLICANTS) == "Asian withheld."
    inside = effect("Indian", INSIDE, POINTS)
    assert sentence(adjusted(*run.rows[1:], inside), Theory.SIMILAR_APPLICANTS) == (
        "Black −10 points; Indian −10, Within the limit; Asian withheld."
    )
    many = [replace(hidden, group=f"G{number}") for number in range(9)]
    assert sentence(adjusted(*many), Theory.SIMILAR_APPLICANTS) == "9 groups withheld."


def test_methods_that_disagree_are_told():
    run = adjusted(effect("Black", OUTSIDE, POINTS), nearest("Black", INSIDE, (-1, -2, 0)), state=LITTLE)
    assert sentence(run, Theory.SIMILAR_APPLICANTS) == "Black −10 points, methods disagree."


def test_a_part_of_the_gap_is_told_only_where_it_is_one():
    def of(adjusted_points, gap_points):
        rows = (
            gap("Black", OUTSIDE, (gap_points, -90, 90)),
            whole(Theory.SIMILAR_APPLICANTS, OUTSIDE),
            effect("Black", OUTSIDE, (adjusted_points, -90, 90)),
        )
        return sentence(Run(rows, (white(), Group("race", "Black", 99, 0.5))), Theory.SIMILAR_APPLICANTS)

    assert of(-18, -20) == "Black −18 points, most of the gap."
    assert of(-10, -20) == "Black −10 points, about half of the gap."
    assert of(-14, -20) == "Black −14 points, 70 % of the gap."
    assert of(-4, -20) == "Black −4 points, little of the gap."
    for without in (of(-21, -20), of(-10, 5), of(10, -20)):
        assert "gap" not in without


@pytest.mark.parametrize(("share", "expected"), [
    (0.751, "most"), (0.75, "75 %"), (0.66, "66 %"), (0.65, "about half"), (0.35, "about half"),
    (0.34, "34 %"), (0.25, "25 %"), (0.249, "little"),
])  # fmt: skip
def test_words_for_parts_have_fixed_ranges(share, expected):
    assert part(share) == expected


def test_the_way_is_told_by_denials_by_cost_or_by_who_has_none():
    assert sentence(boston(), Theory.PATH_TO_APPROVAL) == "64 Black and 26 Hispanic denials."
    ways = (
        whole(Theory.PATH_TO_APPROVAL, OUTSIDE),
        row(Theory.PATH_TO_APPROVAL, "Black", OUTSIDE, value=0.61),
        row(Theory.PATH_TO_APPROVAL, "Hispanic", LITTLE, value=0.871),
    )
    assert sentence(replace(boston(), rows=ways), Theory.PATH_TO_APPROVAL) == (
        "Reference's cost per 100 of the group's: Black 61; Hispanic 87, Inconclusive."
    )
    added = row(
        Theory.PATH_TO_APPROVAL, "Black", OUTSIDE, role="adds", measure="infeasible_share_relabelled", value=0.1
    )
    run = replace(boston(), rows=(ways[0], replace(ways[1], state=LITTLE), added, ways[2]))
    assert sentence(run, Theory.PATH_TO_APPROVAL) == (
        "More without a way than relabelled groups: Black; 1 group Inconclusive."
    )


def test_reasons_are_told_without_a_score():
    def of(state, *values):
        rows = [row(Theory.MODEL_REASONS, f"G{number}", state, value=value) for number, value in enumerate(values)]
        return sentence(Run((whole(Theory.MODEL_REASONS, state), *rows), (white(),)), Theory.MODEL_REASONS)

    assert of(NO_LIMIT, -0.1, 0.0) == "Not more than within one group."
    assert of(NO_LIMIT, -0.1, 0.04) == "Score above that within one group: G1."
    assert of(OUTSIDE, 0.3) == "More than within one group: G0."
    both = (
        whole(Theory.MODEL_REASONS, OUTSIDE),
        *(row(Theory.MODEL_REASONS, s, s, value=0.2) for s in (OUTSIDE, LITTLE)),
    )
    assert sentence(Run(both, ()), Theory.MODEL_REASONS) == (
        "More than within one group: breach; 1 group Inconclusive."
    )
    assert of(LITTLE, -0.1, None) == "2 groups Inconclusive.", "one that was not measured is no pass"


@pytest.mark.parametrize(("reason", "expected"), [
    ("the method cst is off", "Its method was switched off."),
    ("the model does not see the group; what it learnt", "A fitted model does not see the group."),
    ("no group is judged: the data hold none", "No group was judged."),
    ("something else", "The page of this question says why."),
])  # fmt: skip
def test_what_did_not_run_says_why_without_the_name_of_a_method(reason, expected):
    assert sentence(Run((whole(Theory.CAUSAL_MODEL, NOT_RUN, reason),), ()), Theory.CAUSAL_MODEL) == expected
    assert sentence(Run((), ()), Theory.CAUSAL_MODEL) == "The page of this question says why."


def test_no_form_is_longer_than_16_words_and_each_is_shorter_than_the_one_before():
    for run in (boston(), texas(), of_states(*[(OUTSIDE, LITTLE)] * 20)):
        for question, forms in questions(Groups(run)):
            assert question.sentence == forms[0]
            counted = [words(form) for form in forms]
            assert counted == sorted(set(counted), reverse=True)
            assert counted[0] <= QUESTIONS_MOST_WORDS


def test_points_in_words():
    assert [in_points(value) for value in (-14.4, 1.2, -0.6, 0.2, -0.2, 11)] == [
        "−14 points", "+1 point", "−1 point", "0 points", "0 points", "+11 points",
    ]  # fmt: skip
