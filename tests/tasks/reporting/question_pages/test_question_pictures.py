"""Charts and tables of the questions: units, signs, intervals, the ladder, and what stands beside them."""

import json
from dataclasses import replace

from decide_runs import (
    LITTLE,
    NO_LIMIT,
    boston,
    effect,
    gap,
    white,
    whole,
)
from question_sections import (
    charts,
    column,
    measured,
    pages,
    part,
    table,
    with_measures,
)
from report_tables import built, material, spec

from schemas.tables.verdicts import PUBLISHED_WATERFALL
from schemas.terms import Theory
from tasks.reporting import stage
from tasks.reporting.first_page.facts import Group, Groups, Run
from tasks.reporting.first_page.page import decide
from tasks.reporting.question_pages.data import Matter, declaration
from tasks.reporting.question_pages.page import pages_of


def test_effects_on_denial_are_points_of_approval_everywhere():
    page = pages()["similar-applicants"]
    assert column(page, "Points of approval")["Black"].text == "−14"
    assert column(page, "Interval")["Black"].text == "[−20, −7]"
    forest = charts(page)[0]
    black = next(mark for mark in forest.rows if mark.label == "Black")
    assert (black.value, black.low, black.high) == (-13.8, -20.2, -7.4)
    assert (forest.limit, forest.side, forest.unit.name) == (-5, "at_least", "points of approval")
    nearest = charts(page)[1].rows[0]
    assert (nearest.value, nearest.state) == (-18.5, "outside"), "the second method, from its own row"


def test_a_ratio_of_approvals_is_in_points_at_the_rate_of_the_reference_group_and_its_limit_too():
    page = pages()["approval-rates"]
    assert column(page, "Points of approval")["Black"].text == "−23"
    assert column(page, "Approved of 100")["white (reference)"].text == "91"
    assert column(page, "State")["white (reference)"].text == "–"
    assert charts(page)[1].limit == -5
    assert all(each.caption.endswith("Of the lender's own decisions.") for each in part(page, "picture").figures)
    addresses = [each.address for each in part(page, "cannot").links]
    assert addresses == ["method.html#questions", "method.html#outcomes-cannot", "evidence/outcomes.html"]
    assert charts(page)[0].rows[0].reference, "rates are shown of the reference group, too"


def test_without_a_limit_the_interval_is_the_plain_one_and_is_called_so():
    own = {"low": None, "high": None, "plain_low": 0.07, "plain_high": 0.2}
    rows = (
        whole(Theory.SIMILAR_APPLICANTS, NO_LIMIT),
        replace(effect("Black", NO_LIMIT, (-13.8, -20, -7), **own), limit=None),
    )
    page = pages(Run(rows, (white(), Group("race", "Black", 197, 0.68))))["similar-applicants"]
    assert column(page, "Interval")["Black"].text == "[−20, −7]"
    assert (charts(page)[0].limit, charts(page)[0].interval) == (None, "95 % interval")
    assert declaration().sure["interval_plain"] in part(page, "sure").points


def test_an_interval_that_does_not_cover_is_not_printed_and_a_range_of_draws_is_in_round_brackets():
    rows = (
        measured("fgce", "infeasible_share", "Black", 0.16, low=0.09, high=0.26),
        measured("fgce", "infeasible_share_size_matched", "Black", 0.21, low=0.06, high=0.4, n=40, note="range"),
    )
    page = pages(measures=with_measures(*rows))["path-to-approval"]
    bars = charts(page)[0]
    assert bars.bars
    assert [mark.value for mark in bars.rows[:2]] == [16, 21]
    assert [(mark.low, mark.n) for mark in bars.rows[:2]] == [(None, 64), (None, None)], "forty draws are no people"
    assert column(page, "The same, reference at this size")["Black"].whole == "21 (6 to 40)"
    assert [mark.below for mark in bars.rows[:2]] == ["as it is, n\u00a064", "reference at this size (6 to 40)"]
    assert [mark.is_grey for mark in bars.rows[:2]] == [False, True]
    assert column(page, "Without a way, of 100 denied")["Black"].whole == "16"
    assert column(page, "Without a way, of 100 denied")["Hispanic"].text == "not computed"
    assert declaration().sure["draws"] in part(page, "sure").points


def rung(name, value, estimator="logit", over="own"):
    said = json.dumps({"estimator": estimator, "over": over, "rung": name}, sort_keys=True)
    ends = {"low": value - 0.07, "high": value + 0.07}
    return measured("adjusted", "adjusted_effect", "Black", value, parameters=said, decision_maker="lender", **ends)


def strong(column, times, value):
    whose = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "blocks": "terms + history"}
    return {**whose, "rung": 2, "column": column, "times": times, "value": value, "of_denial": 0.1, "of_group": 0.1}


def test_the_ladder_leads_to_the_judged_rung_and_the_second_method_stands_apart():
    rungs = (rung("none", 0.233), rung("terms", 0.2), rung("history", 0.138), rung("history", 0.14, "lpm", "all"))
    own = {"adjusted_benchmarks": benchmarks(strong("public_record", 1, 0.12), strong("public_record", 2, 0.1))}
    steps, unseen = charts(pages(measures=with_measures(*rungs), **own)["similar-applicants"])[2:4]
    assert [each.label for each in steps.rows] == [
        "Unadjusted",
        "+ terms",
        "+ history",
        "Nearest 15 applicants",
    ]
    assert [each.value for each in steps.rows] == [-23.3, -20, -13.8, -18.5]
    assert [each.state for each in steps.rows] == ["", "", "outside", "outside"]
    assert [each.apart for each in steps.rows] == [False, False, False, True]
    assert (steps.limit, steps.title) == (-5, "Black: the gap after each block of characteristics")
    assert [(each.label, each.value) for each in unseen.rows] == [
        ("As measured, linear form", -14),
        ("public record", -12),
        ("public record", -10),
    ]
    assert unseen.bars


def benchmarks(*rows):
    declared = next(table for table in stage.READ if table.name.endswith("adjusted_benchmarks"))
    return built(declared, list(rows))


def test_a_rate_that_is_published_as_a_range_is_printed_as_one():
    groups = (white(), replace(Group("race", "Black", 197), approval_text="more than 95"))
    run = Run((whole(Theory.APPROVAL_RATES, LITTLE), gap("Black", LITTLE, (5, 2, 8))), groups)
    made = material(run)
    matter = Matter(made, Groups(run), decide(run))
    page = pages_of(matter)["approval-rates"]
    assert column(page, "Approved of 100")["Black"].text == "more than 95"
    assert charts(page)[0].rows[1].sentence == "more than 95"


def test_groups_of_several_attributes_name_theirs():
    sexes = effect("female", LITTLE, (-3, -8, 2), protected_attribute="sex", reference_group="male")
    groups = (*boston().groups, Group("sex", "male", 1600, 0.9, reference=True), Group("sex", "female", 400, 0.88))
    both = [{"name": name, "columns": [name], "reference": ref} for name, ref in (("race", "white"), ("sex", "male"))]
    found = pages(replace(boston(), rows=(*boston().rows, sexes), groups=groups), spec(protected=both))
    assert [(each.label, each.detail) for each in charts(found["similar-applicants"])[0].rows] == [
        ("Black", "race"),
        ("Hispanic", "race"),
        ("female", "sex"),
    ]
    names = [each[0].text for each in table(found["approval-rates"]).rows]
    assert names == ["white (reference)", "Black", "Hispanic"], "no verdict on approvals by sex"


def became(neither, source=400):
    """The waterfall of white and Black records, some of which were neither approved nor denied."""
    of = {"protected_attribute": "race", "stage": "ingest", "column": "", "approval": None}
    lines = (("source", "", {"white": 2000, "Black": source}), ("refused", "decision_not_audited", neither))
    rows = [
        {**of, "line": line, "kind": kind, "reason": reason, "group": group, "n": n, "withheld": n is None}
        for line, (kind, reason, counts) in enumerate(lines)
        for group, n in counts.items()
    ]
    return {PUBLISHED_WATERFALL.name: built(PUBLISHED_WATERFALL, rows)}


def test_who_was_neither_approved_nor_denied_is_drawn_where_there_are_such():
    title = "What became of 100 records, by group"
    found = next(
        each for each in charts(pages(**became({"white": 300, "Black": 100}))["approval-rates"]) if each.title == title
    )
    black = {mark.detail: round(mark.value) for mark in found.rows if mark.label == "Black"}
    assert black == {"approved": 33, "denied": 16, "neither": 25}
    few = next(
        each for each in charts(pages(**became({"white": 300, "Black": None}))["approval-rates"]) if each.title == title
    )
    assert {m.detail: m.value for m in few.rows if m.label == "Black"}["neither"] == "withheld"
    for nobody in (became({"white": 0, "Black": 0}), {}):
        assert title not in [each.title for each in charts(pages(**nobody)["approval-rates"])]
