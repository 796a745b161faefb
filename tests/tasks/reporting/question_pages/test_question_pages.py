"""Pages of the questions: five parts, the same groups in the same order, within their budgets, in every state."""

import re
from dataclasses import replace

import pytest
from decide_runs import (
    FIVE,
    INSIDE,
    LITTLE,
    NOT_RUN,
    OUTSIDE,
    boston,
    effect,
    gap,
    of_states,
    row,
    white,
    whole,
)
from question_sections import (
    cells,
    charts,
    column,
    drawn,
    everything,
    headings,
    measured,
    pages,
    part,
    prose,
    sections,
    table,
    tables,
    with_measures,
    words,
)
from report_tables import built, spec

from schemas.questions import STATES
from schemas.tables.counterfactuals import GRAPH_TESTS
from schemas.tables.verdicts import AGREEMENT
from schemas.terms import Theory
from tasks.reporting.charts.layout import element
from tasks.reporting.first_page.facts import Group, Run
from tasks.reporting.question_pages.data import declaration
from tasks.reporting.question_pages.page import RULES

CLAIMS = re.compile(
    r"\b(because|due to|bias\w*|unfair\w*|discriminat\w*|prov(e|es|en)|significan\w*|counterfactual\w*)\b",
    re.IGNORECASE,
)
"""What no heading says."""


PARTS = ["answer", "picture", "sure", "groups", "cannot"]
MOST_WORDS, MOST_FIGURES, MOST_BYTES = 900, 6, 250_000


def hold_budgets(found):
    """Words as a browser counts them, drawings among them; bytes of what is heaviest, the charts."""
    for name, page in found.items():
        assert words(*prose(page), *cells(page), *drawn(page)) <= MOST_WORDS, name
        assert len(charts(page)) <= MOST_FIGURES, name
        assert sum(len(element(chart, f"c{i}").encode()) for i, chart in enumerate(charts(page))) < MOST_BYTES, name
        assert [each for each in headings(page) if CLAIMS.search(each)] == [], name


def test_a_page_a_question_that_the_run_has_with_the_same_five_parts():
    found = pages()
    assert list(found) == ["approval-rates", "similar-applicants", "path-to-approval", "model-reasons"], (
        "nothing is known of the assumed graph"
    )
    for name, page in found.items():
        assert page.anchor == name
        assert [each.anchor for each in page.parts] == PARTS
        assert len(part(page, "cannot").points) == 3
        assert part(page, "cannot").links[0].address.startswith("method.html#")
        assert [each[0].text for each in table(page).rows if "(reference)" not in each[0].text] == ["Black", "Hispanic"]
    hold_budgets(found)


def test_the_answer_of_routes_begins_with_what_the_way_costs_and_counts_come_after():
    run = replace(
        boston(),
        rows=tuple(
            replace(each, value=0.742, low=0.61, high=0.95, limit=0.8, side="at_least")
            if each.theory is Theory.PATH_TO_APPROVAL and each.role == "primary"
            else each
            for each in boston().rows
        ),
    )
    first, *later = part(pages(run)["path-to-approval"], "answer").words
    assert first.startswith("What the way of white applicants costs where the group's costs 100, by the ")
    assert first.endswith(": Black 74 [61, 95]; Hispanic 74 [61, 95].")
    assert any(each.startswith("Yes. For denied white applicants it is 74 %") for each in later)


def test_an_answer_in_points_says_of_what_and_with_its_interval():
    said = part(pages()["similar-applicants"], "answer").words
    assert said[0].startswith("No. Among similar applicants, Black applicants were approved 14 points less often")
    assert said[1].startswith("Points of approval, compared with similar white applicants: Black −14 [−20, −7]; ")


def test_intervals_beside_the_verdict_are_called_what_they_are():
    assert table(pages()["approval-rates"]).note.endswith(declaration().table["plain"])


@pytest.mark.parametrize("state", FIVE)
def test_every_state_stands_in_words_in_answer_chart_and_table(state):
    found = pages(of_states((state, state), (OUTSIDE, INSIDE)))
    for page in (found["approval-rates"], found["similar-applicants"]):
        assert column(page, "State")["A"].text == STATES[state].words
        assert any(each.startswith(STATES[state].words) for each in part(page, "answer").points)
        chart = next(each for each in charts(page) if each.unit.signed)
        assert next(mark.state for mark in chart.rows if mark.label == "A") == state
        worst = "Outside the limit" if page.anchor == "approval-rates" or state == OUTSIDE else ""
        assert part(page, "answer").words[-1].startswith(f"The question as a whole: {worst}")


def test_a_withheld_group_shows_no_number_anywhere():
    hidden = effect("Roma", LITTLE, (-55.1, -57.2, -53.3), n=3, events=2, withheld=True, robustness=0.333)
    rows = (*boston().rows, hidden, gap("Roma", LITTLE, (-55.1, -57.2, -53.3), n=3, withheld=True))
    found = pages(replace(boston(), rows=rows, groups=(*boston().groups, Group("race", "Roma"))))
    for page in (found["approval-rates"], found["similar-applicants"]):
        shown = next(each for each in table(page).rows if each[0].text == "Roma")
        assert {cell.text for cell in shown[1:]} <= {"withheld", "–", "Inconclusive (withheld)", "not computed"}
        assert not re.search(r"\b(55|57|53|33)\b", everything(page))
        assert "Roma: withheld" in everything(page)
        assert "Groups with fewer than 30 applicants, and withheld ones, are not judged: Roma." in everything(page)
    assert table(found["similar-applicants"]).rows[-1][0].text == "Roma", "groups without a printed size last"


def test_all_withheld_and_all_refused_still_make_pages():
    rows = tuple(replace(each, withheld=each.role != "theory") for each in boston().rows)
    found = pages(
        replace(boston(), rows=rows, groups=tuple(replace(g, n=None, approval=None) for g in boston().groups))
    )
    for page in found.values():
        assert "withheld" in everything(page)
        assert [each.text for each in column(page, "State").values() if each.kind == "state"] == (
            ["Inconclusive (withheld)"] * 2
        )
    gone = {"value": None, "low": None, "high": None, "state": LITTLE, "reason": "not measured: too_few_for_adjustment"}
    refused = pages(
        replace(
            boston(), rows=tuple(each if each.role == "theory" else replace(each, **gone) for each in boston().rows)
        )
    )
    page = refused["similar-applicants"]
    assert column(page, "Points of approval")["Black"].text == "not computed"
    assert "Not computed: too few for adjustment." in everything(page)
    hold_budgets(found | refused)


def test_without_groups_a_page_says_why_there_is_nothing():
    run = Run((whole(Theory.APPROVAL_RATES, NOT_RUN, "no group is judged"),), (white(),))
    found = pages(run)
    assert list(found) == ["approval-rates"], "approvals were measured, nothing else"
    page = found["approval-rates"]
    assert (charts(page), tables(page)) == ([], [])
    assert part(page, "picture").words == ("Nothing to draw: no group is judged.",)
    assert pages(Run((), ())) == {}


def test_one_group():
    run = of_states((OUTSIDE, LITTLE))
    found = pages(run)
    assert [each.label for each in charts(found["similar-applicants"])[0].rows] == ["A"]
    assert declaration().sure["interval_one"] in part(found["similar-applicants"], "sure").points
    hold_budgets(found)


def many(attributes, groups):
    """Groups of several attributes, each with a verdict on approvals and similar records."""
    rows, people = [whole(Theory.APPROVAL_RATES, OUTSIDE), whole(Theory.SIMILAR_APPLICANTS, OUTSIDE)], []
    for a in range(attributes):
        attribute = f"attribute {a}"
        people.append(Group(attribute, f"reference {a}", 5000, 0.91, reference=True))
        for g in range(groups):
            whose = {"protected_attribute": attribute, "reference_group": f"reference {a}"}
            own = {**whose, "n": 100 + g, "detectable": 0.9, "needed": 9000.0, "robustness": 0.1}
            points = (-1.0 - g / 4, -6.0, 1.0) if g % 10 else (-9.0, -12.0, -6.0)
            name = f"Applicants of Two or More Races, kind {a} {g}"
            state = LITTLE if g % 10 else OUTSIDE
            rows += [gap(name, state, points, **own), effect(name, state, points, **own)]
            people.append(Group(attribute, name, 100 + g, 0.7))
    return Run(tuple(rows), tuple(people))


@pytest.mark.parametrize(("attributes", "groups"), [(1, 40), (3, 14)])
def test_many_groups_stay_within_words_charts_and_bytes(attributes, groups):
    protected = [
        {"name": f"attribute {a}", "columns": ["race"], "reference": f"reference {a}"} for a in range(attributes)
    ]
    run = many(attributes, groups)
    found = pages(run, spec(protected=protected))
    hold_budgets(found)
    for name in ("approval-rates", "similar-applicants"):
        view = table(found[name])
        assert len(view.rows) <= 25 < view.whole
        shown = [each[0].text for each in view.rows]
        outside = sum(each.state == "outside" for rows in view.rows for each in rows)
        assert outside == attributes * len(range(0, groups, 10)), "no row outside a limit is left out"
        assert any("measures.xlsx" in figure.caption for s in sections(found[name]) for figure in s.figures)
        order = [each for each in table(found["approval-rates"]).rows if each[0].text in shown]
        assert [each[0].text for each in order] == [name for name in shown if name in {o[0].text for o in order}]


def test_methods_that_point_apart_are_told_in_the_first_part():
    said = {
        "theory": "similar_applicants",
        "decision_maker": "lender",
        "protected_attribute": "race",
        "sign": "against",
    }
    rows = [
        {**said, "group": "Black", "method": "adjusted", "measure": "adjusted_effect", "state": "outside"},
        {**said, "group": "Black", "method": "cst", "measure": "st_effect", "state": "within"},
        {**said, "group": "Hispanic", "method": "adjusted", "measure": "adjusted_effect", "state": "outside"},
    ]
    found = pages(agreement=built(AGREEMENT, rows))
    notice = part(found["similar-applicants"], "answer").notices[0]
    assert notice.points == (
        "Black: adjusted comparison outside the limit, nearest applicants within the limit. Inconclusive until this is "
        "settled.",
    )
    assert part(found["approval-rates"], "answer").notices == ()


def test_measures_without_a_verdict_make_their_page_too():
    rows = [measured("gcfn", "share_changed", "Black", 0.04)]
    page = pages(measures=with_measures(*rows))["causal-model"]
    assert column(page, "By generated records, points")["Black"].text == "\N{MINUS SIGN}4"
    assert column(page, "State")["Black"].text == "Not run"


def test_every_rule_of_a_question_is_known_and_every_measure_has_one_scale():
    for name, question in declaration().questions.items():
        assert set(question.sure) <= set(RULES), name
        assert sum(picture.kind == "verdicts" for picture in question.pictures) <= 1


def test_how_sure_names_sizes_of_each_group_and_their_range_where_there_are_many():
    few = part(pages(of_states((LITTLE, LITTLE), (LITTLE, LITTLE)))["similar-applicants"], "sure").points
    assert any(each.endswith("A 9; B 9.") for each in few)
    some = part(pages(of_states(*[(LITTLE, LITTLE)] * 9))["similar-applicants"], "sure").points
    assert any(each.endswith("in points: 9 in each of 9 groups.") for each in some)
    cost = row(Theory.PATH_TO_APPROVAL, "Black", LITTLE, value=0.74, low=0.6, high=0.95, limit=0.8, needed=34_100.0)
    routes = pages(Run((whole(Theory.PATH_TO_APPROVAL, LITTLE), cost), boston().groups))["path-to-approval"]
    assert any("Black 35,000" in each for each in part(routes, "sure").points)
    assert (
        part(routes, "answer").words[-1]
        == "The question as a whole: Inconclusive; limit 80, the reference group's cost per 100 of the group's."
    )


def test_a_p_of_permutations_is_never_printed_as_zero():
    permuted = declaration().questions["causal-model"].permuted
    assert permuted is not None
    found = pages(measures=with_measures(measured(permuted.method, permuted.measure, "Black", 0.0002)))["causal-model"]
    assert any("Black ≤\N{NO-BREAK SPACE}0.001" in each for each in part(found, "sure").points)


def test_a_share_without_each_assumed_effect_is_a_range():
    rows = [
        measured("cst", "share_significant_without", "Black", value, parameters=f'{{"without": "{name}"}}')
        for name, value in (("race -> income", 0.61), ("race -> debt", 0.69))
    ]
    said = part(pages(measures=with_measures(*rows))["causal-model"], "sure").points
    assert any(each.endswith("of 100: Black 61 to 69.") for each in said)
    assert declaration().sure["unchecked"] in said


def test_tests_that_speak_against_the_assumed_graph_stand_in_the_answer():
    run = replace(boston(), rows=(*boston().rows, whole(Theory.CAUSAL_MODEL, OUTSIDE), effect_by_graph()))
    for rejected, titles in ((1, ["These data contradict the assumed causal model"]), (0, [])):
        tests = built(GRAPH_TESTS, [{"tests": 2, "rejected": rejected}])
        answer = part(pages(run, graph_tests=tests)["causal-model"], "answer")
        assert [each.title for each in answer.notices] == titles


def effect_by_graph():
    return row(Theory.CAUSAL_MODEL, "Black", OUTSIDE, value=0.25, low=0.19, high=0.32, limit=0.05, side="at_most")
