"""What would change it, what to do next, what it cannot tell: when each rule prints, when not, and at most three."""

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
    of_states,
    row,
    texas,
    white,
    whole,
)

from schemas.terms import State, Theory
from tasks.reporting.first_page.facts import Finding, Group, Groups, LeftOut, Run, sentences
from tasks.reporting.first_page.result import figures
from tasks.reporting.first_page.rules import (
    MOST_LINES,
    OF_FINDINGS,
    RULES,
    STEPS,
    View,
    cannot_tell,
    next_steps,
    remarks,
)


def view(run):
    groups = Groups(run)
    return View(groups, figures(groups).key)


def told(run, name):
    """The longest form of one rule, before any is cut off; None where it does not apply."""
    rules = dict((*RULES, *STEPS))
    forms = rules[name](view(run))
    return forms[0] if forms else None


def outside(**more):
    """One group, outside in both."""
    run = of_states((OUTSIDE, OUTSIDE))
    rows = tuple(
        replace(each, robustness=0.124) if each.theory is Theory.SIMILAR_APPLICANTS else each for each in run.rows
    )
    return replace(run, rows=rows, **more)


def inside(**more):
    return replace(of_states((INSIDE, INSIDE)), **more)


def test_confounder_where_similar_applicants_differ():
    plain = (
        "Only a missing factor that explains 12 % of the remaining variation in both race and approval could remove "
        "the gap."
    )
    assert told(outside(), "confounder") == plain
    strongest = "The strongest recorded factor, public record, explains 1 % and 4 %."
    assert told(boston(), "confounder") == f"{plain} {strongest}"
    unsure = effect("A", LITTLE, (-20, -39, -1), limit=-2, bias=0.10, robustness=0.055)
    run = Run((unsure,), (white(), Group("race", "A", 100, 0.7)))
    assert "explains 5.5 % of" in told(run, "confounder")
    assert told(replace(run, rows=(replace(unsure, low=-0.2),)), "confounder") is None
    assert told(of_states((OUTSIDE, OUTSIDE)), "confounder") is None, "without a robustness value"
    assert told(of_states((OUTSIDE, OUTSIDE), n=29), "confounder") is None


def test_no_credit_score_where_no_column_is_one_and_nobody_said_that_the_columns_are_all():
    run = outside(credit_history=False)
    assert told(run, "no_credit_score") == (
        "No column is a credit score or payment history. One could raise or lower the adjusted gap."
    )
    assert told(replace(run, credit_history=True), "no_credit_score") is None
    assert told(replace(run, complete=True), "no_credit_score") is None
    plain = tuple(each for each in run.rows if each.theory is Theory.APPROVAL_RATES)
    assert told(replace(run, rows=plain), "no_credit_score") is None, "no adjusted gap is shown"


def test_left_out_above_five_percent():
    assert told(texas(), "left_out") == (
        "6,141 applicants with gaps in their columns are in no comparison. Of 100 of them 57 were denied; of the "
        "others 22."
    )
    hidden = LeftOut(6141, 50000, None, 0.22)
    assert told(inside(left_out=hidden), "left_out") == (
        "6,141 applicants with gaps in their columns are in no comparison."
    )
    assert told(inside(left_out=LeftOut(51, 1000)), "left_out")
    assert told(inside(left_out=LeftOut(50, 1000)), "left_out") is None
    assert told(inside(left_out=LeftOut(0, 0)), "left_out") is None
    assert told(inside(), "left_out") is None


def test_detectable_where_there_is_too_little_to_say():
    expected = "This audit can easily miss {} points."
    adjusted, plain = "an adjusted difference below 9", "a difference in approval rates below 8"
    assert told(of_states((INSIDE, LITTLE)), "detectable") == expected.format(adjusted)
    assert told(of_states((LITTLE, INSIDE)), "detectable") == expected.format(plain)
    widened = of_states((INSIDE, LITTLE))
    widened = tuple(
        replace(each, bias=0.1) if each.theory is Theory.SIMILAR_APPLICANTS else each for each in widened.rows
    )
    assert told(replace(inside(), rows=widened), "detectable") is None, "more people would not narrow it"
    assert told(inside(), "detectable") is None
    assert told(of_states((LITTLE, LITTLE), n=29), "detectable") is None
    run = of_states((INSIDE, LITTLE))
    unknown = tuple(replace(each, detectable=None) for each in run.rows)
    assert told(replace(run, rows=unknown), "detectable") is None
    withheld = tuple(replace(each, withheld=True) for each in run.rows)
    assert told(replace(run, rows=withheld), "detectable") is None


def with_effect(run: Run, **fields: object) -> Run:
    return replace(
        run, rows=tuple(replace(r, **fields) if r.theory is Theory.SIMILAR_APPLICANTS else r for r in run.rows)
    )


def test_parts_that_were_looked_at_where_a_group_is_inside():
    run = with_effect(inside(parts=(50, 0.05)), part_n=200, part_detectable=0.168)
    assert told(run, "parts") == (
        "No part of at least 50 A applicants was shown to differ by more than 5 points; a part of 200 would have been "
        "seen at 17 points."
    )
    assert told(replace(run, parts=None), "parts") is None, "no parts were looked at"
    assert told(with_effect(run, part_n=None), "parts") is None
    assert told(with_effect(run, state=LITTLE), "parts") is None
    assert told(with_effect(run, withheld=True), "parts") is None


def test_missing_limit_and_set_limits_where_a_theory_that_could_have_one_has_none():
    run = of_states((NO_LIMIT, INSIDE))
    assert told(run, "missing_limit") == "Nobody has set a limit for some questions."
    assert told(run, "set_limits") == "Set a limit for every question, and note its source."
    reasons = inside()
    reasons = replace(reasons, rows=(*reasons.rows, whole(Theory.MODEL_REASONS, NO_LIMIT)))
    for name in ("missing_limit", "set_limits"):
        assert told(reasons, name) is None, "a score of reasons has no scale for a limit"
        assert told(inside(), name) is None


def test_fix_data_where_there_is_a_warning():
    assert told(inside(warnings=("columns_swapped",)), "fix_data")
    assert told(inside(), "fix_data") is None


def test_columns_that_the_data_lack_are_asked_for_where_similar_applicants_are_not_shown_to_be_within():
    lacks = {"lacks": ("the credit score",)}
    expected = "Repeat the audit with the credit score from the lender's files."
    assert told(outside(**lacks), "add_columns") == expected
    assert told(replace(of_states((INSIDE, LITTLE)), **lacks), "add_columns") == expected
    assert told(outside(), "add_columns") is None
    assert told(outside(complete=True, **lacks), "add_columns") is None
    assert told(inside(**lacks), "add_columns") is None
    assert told(replace(of_states((INSIDE, NOT_RUN)), **lacks), "add_columns") is None


def test_the_step_of_each_finding_is_its_own_and_one_of_them_is_enough():
    def with_finding(kind):
        return inside(findings=(Finding(kind, "race", "A", sentence="It was found.", next="Do it."),))

    for kind in OF_FINDINGS[:-1]:
        assert told(with_finding(kind), kind) == "Do it.", kind
    assert {name for name in OF_FINDINGS if told(inside(), name)} == set()


def test_an_order_of_causes_is_asked_for_where_the_data_contradict_the_causal_model():
    doubted = whole(Theory.CAUSAL_MODEL, State.UNRELIABLE)
    assert told(replace(inside(), rows=(*inside().rows, doubted)), "causal_order")
    assert told(inside(), "causal_order") is None


def test_by_lender_where_a_file_has_many():
    assert told(inside(lenders=2), "by_lender") == "Audit each lender alone: this file holds many."
    assert told(inside(lenders=None), "by_lender") == "Audit each lender alone if this file holds several."
    assert told(inside(), "by_lender") is None


@pytest.mark.parametrize("name", ["read_files", "ask_reasons"])
def test_files_are_read_where_similar_records_are_outside_and_the_data_are_the_lenders(name):
    assert told(outside(), name)
    assert told(outside(public=True), name) is None
    assert told(inside(), name) is None
    assert told(of_states((OUTSIDE, LITTLE)), name) is None
    assert told(of_states((OUTSIDE, OUTSIDE), n=29), name) is None


def test_files_are_named_by_their_number_and_group():
    assert told(boston(), "read_files") == (
        "Read the files of the 20 denied Black applicants whose most similar white applicants were approved most often."
    )
    assert told(replace(boston(), files={}), "read_files") == "Read the files of denied Black applicants."


def test_wait_where_more_applications_would_settle_it():
    def needing(needed, state=LITTLE):
        run = of_states((INSIDE, state))
        return replace(run, rows=tuple(replace(each, needed=needed) for each in run.rows))

    assert told(needing(5000.0), "wait") == (
        "Wait until about 5,000 A and white applicants have applied: 3 years at this year's number."
    )
    assert ": 10 years at" in told(needing(9.9 * 1781.0), "wait")
    assert told(needing(10 * 1781.0), "wait") == (
        "Add earlier years or a wider area, or join groups: this year alone has too few applicants."
    )
    assert told(replace(needing(5000.0), years_old=36), "wait") == told(needing(10 * 1781.0), "wait"), "nobody waits"
    kept_open = replace(needing(5000.0), findings=(Finding("missing", "race", "A"),))
    assert told(kept_open, "wait") is None, "more applicants would not settle it"
    assert told(needing(1000.0), "wait") is None, "there are more than that"
    assert told(needing(None), "wait") is None, "no number would settle it"
    assert told(needing(5000.0, INSIDE), "wait") is None


def test_a_finding_of_too_few_people_is_no_line_and_a_public_file_has_no_files_to_read():
    of_group = Finding("undecided", "race", "A", sentence="A: of 100.", next="Read files of A.")
    few = replace(of_states((LITTLE, LITTLE), n=6), findings=(of_group,))
    assert view(few).finding("undecided") is None
    enough = replace(of_states((LITTLE, LITTLE), n=60), findings=(of_group,))
    assert told(enough, "undecided") == "Read files of A."
    assert told(replace(enough, public=True), "undecided") is None


def test_wait_where_a_group_has_too_few_people():
    assert told(of_states((LITTLE, LITTLE), n=10), "wait") == (
        "Wait until about 30 A applicants have applied: 3 years at this year's number."
    )
    assert told(of_states((INSIDE, INSIDE), n=30), "wait") is None
    hidden = replace(of_states((LITTLE, LITTLE), n=10), groups=(white(), Group("race", "A", None, None)))
    assert told(hidden, "wait") is None, "a withheld number is not told by a wait"


def test_what_it_cannot_tell_is_always_three_lines():
    def names(run):
        return [name for name, _ in cannot_tell(view(run))]

    assert names(inside()) == ["why_lawful", "unseen", "single_person"]
    assert names(inside(lenders=2, sampled=True)) == ["why_lawful", "mixed_lenders", "single_person"]
    assert names(inside(lenders=None)) == ["why_lawful", "mixed_lenders", "single_person"]
    assert dict(cannot_tell(view(inside(lenders=None))))["mixed_lenders"][0].endswith("if this file holds several.")
    assert names(inside(sampled=True)) == ["why_lawful", "sample", "single_person"]
    assert names(Run((), ())) == ["why_lawful", "unseen", "single_person"]


def test_a_sample_of_the_applicants_is_told_by_a_line_of_its_own():
    found = dict(cannot_tell(view(inside(sample=(20_000, 155_123)))))
    assert list(found) == ["why_lawful", "unseen", "asked", "single_person"]
    assert found["asked"] == ("What applicants who were not drawn would show: 20,000 of 155,123 were.",)


def test_columns_that_the_year_lacks_are_named_and_many_are_not():
    run = inside(year=2013, lacking=("history", "credit_score"))
    assert told(run, "year_lacks") == "The data of 2013 do not have history and credit score, which the audit asks for."
    many = replace(run, lacking=("a", "b", "c", "d"))
    assert told(many, "year_lacks") == "The data of 2013 lack columns that the audit asks for."
    assert told(inside(year=2013), "year_lacks") is None


def everything(**more):
    """A run in which every rule of what would change it applies."""
    few = gap("B", LITTLE, (-8, -20, 4), detectable=0.8, needed=9000.0, n=100, n_reference=1681)
    within = {"part_n": 200, "part_detectable": 0.17}
    inside_b = effect("B", INSIDE, (1, -1, 1.5), **within)
    limitless = (whole(Theory.PATH_TO_APPROVAL, NO_LIMIT), row(Theory.PATH_TO_APPROVAL, "A", NO_LIMIT, value=0.7))
    run = outside(
        groups=(white(), Group("race", "A", 100, 0.7), Group("race", "B", 100, 0.8)),
        credit_history=False,
        year=2013,
        lacking=("history",),
        left_out=LeftOut(100, 1000, 0.3, 0.2),
        lenders=3,
        warnings=("columns_swapped",),
        parts=(50, 0.05),
    )
    rows = (*run.rows, few, inside_b, whole(Theory.CAUSAL_MODEL, OUTSIDE), *limitless)
    return replace(run, rows=rows, **more)


def test_rules_are_printed_in_their_order_and_three_at_most():
    every, found = everything(), {*OF_FINDINGS, "apart"}
    assert {name for name, _ in RULES if not told(every, name)} == found
    assert [name for name, _ in remarks(view(every))] == ["confounder", "no_credit_score", "year_lacks"]
    lost = replace(every, findings=(Finding("missing", "race", "A", sentence="442 files lack income.", next="Do it."),))
    assert [name for name, _ in remarks(view(lost))] == ["missing", "confounder", "no_credit_score"]
    assert [name for name, _ in next_steps(view(every))] == ["fix_data", "read_files", "ask_reasons"]
    assert [name for name, _ in next_steps(view(lost))] == ["fix_data", "missing", "read_files"]
    assert [name for name, _ in next_steps(view(replace(every, public=True)))] == ["fix_data", "by_lender", "wait"]
    assert MOST_LINES == 3


def test_where_no_rule_applies_there_is_nothing_to_know_and_nothing_to_do():
    assert remarks(view(inside())) == ()
    assert next_steps(view(inside())) == (
        ("done", ("Nothing to do now. Repeat the audit with the next year of decisions.",)),
    )


def test_where_another_question_alone_is_outside_it_is_what_to_look_into():
    run = replace(inside(), rows=(*inside().rows, whole(Theory.CAUSAL_MODEL, OUTSIDE)))
    expected = "Find out what lies behind the result that is outside its limit: causal model."
    assert next_steps(view(run)) == (("outside", (expected,)),)


def test_every_rule_has_a_name_and_every_sentence_a_rule():
    of_runs = set(OF_FINDINGS)
    assert {name for name, _ in RULES} - of_runs == set(sentences()["know"])
    assert {name for name, _ in STEPS} - of_runs | {"done", "outside", "wider"} == set(sentences()["next"])
    assert len(sentences()["cannot"]) == 9


def test_lines_are_about_the_group_of_the_figures_where_it_is_one_of_those():
    run = boston(-2)
    assert view(run).chosen == ("race", "Black")
    hispanic_worse = tuple(
        replace(each, low=0.10) if each.group == "Hispanic" and each.theory is Theory.SIMILAR_APPLICANTS else each
        for each in run.rows
    )
    other = replace(run, rows=hispanic_worse)
    assert view(other).chosen == ("race", "Hispanic")
    assert "explains 7.7 %" in told(other, "confounder")
    assert told(other, "read_files") == "Read the files of denied Hispanic applicants."


def test_small_groups_that_are_not_judged_are_named_among_what_the_page_cannot_tell():
    run = replace(everything(), reported=("Samoan", "Tongan"))
    words = dict(cannot_tell(view(run)))["reported"]
    assert words == ("Anything about Samoan and Tongan: fewer than 30 people and less than 1 % of all.",)
    assert "reported" not in dict(cannot_tell(view(everything())))


def test_two_questions_that_point_apart_for_one_group_are_a_line_and_two_groups_are_none():
    assert told(of_states((OUTSIDE, INSIDE)), "apart") == (
        "For A, the question Approval rates is outside its limit and Similar applicants is within. "
        "The two ask different things."
    )
    assert told(of_states((OUTSIDE, OUTSIDE), (INSIDE, INSIDE)), "apart") is None
    assert told(of_states((OUTSIDE, LITTLE)), "apart") is None
    assert told(boston(), "apart") is None
    assert told(boston(-2), "apart") is None
