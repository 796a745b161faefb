"""The first sentence: the strongest reliable result, or what would have been seen."""

from dataclasses import replace

import pytest
from decide_runs import INSIDE, LITTLE, NO_LIMIT, OUTSIDE, boston, effect, gap, of_states, row, whole

from schemas.terms import State, Theory
from tasks.reporting.first_page.facts import About, Finding
from tasks.reporting.first_page.page import decide

SIMILAR, RATES, CAUSAL = Theory.SIMILAR_APPLICANTS, Theory.APPROVAL_RATES, Theory.CAUSAL_MODEL
NOTHING, LESS = (-1, -4, 2), (-20, -28, -12)


def of(*rows, **more):
    """The headline of a run with one judged group, A."""
    wholes = tuple(whole(each.theory, each.state) for each in rows)
    run = replace(of_states((LITTLE, LITTLE)), rows=(*wholes, *rows), complete=True)
    return decide(replace(run, **more)).headline


def similar(points, state=LITTLE, **more):
    return effect("A", state, points, limit=-2, n=100, **more)


def rates(points, state=LITTLE):
    return gap("A", state, points, n=100)


PART = Finding("part", "race", "A", "purpose: refinance", 0.25, 0.21, 0.3, 80, "Where purpose is refinance ...")
TOTAL = effect("A", OUTSIDE, LESS, theory=CAUSAL, n=100)
CASES = {
    "similar": ([similar(LESS, OUTSIDE), rates(LESS)], {}),
    "similar_lacking": ([similar(LESS), rates(LESS)], {"complete": False, "lacks": ("the credit score",)}),
    "similar_within": ([similar((-1, -1.8, -0.2), INSIDE)], {}),
    "part": ([similar(NOTHING, OUTSIDE), rates(LESS)], {"findings": (PART,)}),
    "rates": ([similar(NOTHING), rates(LESS), TOTAL], {}),
    "rates_alone": ([rates(LESS, OUTSIDE)], {}),
    "similar_more": ([similar((20, 12, 28)), rates(NOTHING)], {}),
    "causal": ([similar(NOTHING), rates(NOTHING), TOTAL], {}),
    "rates_more": ([similar(NOTHING), rates((8, 2, 14))], {}),
    "nothing": ([similar(NOTHING), rates(NOTHING)], {}),
    "check_data": ([similar(LESS, OUTSIDE)], {"warnings": ("columns_swapped",)}),
}


@pytest.mark.parametrize("rule", CASES)
def test_the_strongest_result_makes_the_sentence(rule):
    rows, more = CASES[rule]
    assert of(*rows, **more).rule == rule


def test_nothing_found_says_what_would_have_been_seen():
    assert of(similar(NOTHING), rates(NOTHING)).words == (
        "No group was shown to be treated differently; differences above 5 points would have been seen."
    )


def test_a_result_that_is_not_reliable_makes_no_headline():
    doubted = replace(TOTAL, state=State.UNRELIABLE)
    assert of(similar(NOTHING), rates(NOTHING), doubted).rule == "nothing"


def test_a_question_elsewhere_is_not_passed_over():
    path = row(Theory.PATH_TO_APPROVAL, "A", LITTLE, value=0.7, low=0.6, high=0.9, limit=0.8, n=100, events=40)
    found = of(similar(NOTHING), rates(NOTHING), path)
    assert found.words == "No difference in approvals was shown; see the path to approval."


def test_what_the_data_lack_is_named():
    found = of(similar(LESS), complete=False, lacks=("the credit score",))
    assert found.words.endswith("; what the data lack (the credit score) could account for it.")


def test_who_and_when_come_first_and_long_names_are_cut():
    about = About("A lender with a name of very many words that nobody reads to its end")
    found = decide(replace(boston(limit=-2), about=about, year=1990)).headline
    assert found.words.startswith("A lender with a name of")
    assert ", 1990: Black and Hispanic applicants were approved less often than" in found.words
    assert len(found.words.split()) <= 25


def test_a_group_below_the_least_number_is_never_named_and_several_are_counted():
    few = of_states((OUTSIDE, OUTSIDE), n=29)
    assert decide(few).headline.rule == "too_few"
    many = decide(of_states(*[(OUTSIDE, OUTSIDE)] * 3)).headline
    assert many.words.startswith("Applicants of 3 groups were approved less often")
    assert len(many.groups) == 3
    assert decide(of_states((NO_LIMIT, NO_LIMIT))).headline.rule.startswith("similar")


def price(value, state=OUTSIDE, group="A", **more):
    """A row of prices, in percentage points."""
    numbers = {"value": value, "low": value - 0.05, "high": value + 0.05, "limit": 0.1, "n": 30}
    return row(SIMILAR, group, state, role="adds", measure="rate_spread_effect", **(numbers | more))


def dear(*rows, **more):
    """The headline of a run that is outside by price alone."""
    run = replace(of_states((LITTLE, LITTLE)), rows=(whole(SIMILAR, OUTSIDE), *rows), complete=True)
    return decide(replace(run, **more))


PATH = row(Theory.PATH_TO_APPROVAL, "A", LITTLE, value=0.7, low=0.6, high=0.9, limit=0.8, n=100, events=40)


@pytest.mark.parametrize(
    "rows",
    [
        (similar(NOTHING),),
        (similar(NOTHING, INSIDE), rates(LESS)),
        (similar((-1, -1.8, -0.2), INSIDE),),
        (similar((20, 12, 28), INSIDE),),
        (similar(NOTHING), whole(Theory.PATH_TO_APPROVAL, LITTLE), PATH),
    ],
    ids=["open", "rates differ", "within", "approved more often", "elsewhere"],
)
def test_a_run_that_is_outside_by_price_alone_says_so(rows):
    page = dear(*rows, price(0.3))
    assert page.headline.rule == "price"
    assert page.headline.words == "A borrowers paid more for their loans than similar white borrowers."
    line = next(line for line in page.questions if line.theory is SIMILAR)
    assert "Similar A borrowers paid 0.30 percentage points more" in line.sentence
    assert line.against == "Outside the limit of 0.1 percentage points in prices"
    assert line.reliable == "prices of 30 loans to A borrowers"
    assert any("how those of A loans came about" in step.words for step in page.next)


def test_a_price_within_its_limit_changes_nothing():
    rows = (similar(NOTHING), rates(NOTHING))
    assert of(*rows, price(0.0, INSIDE)) == of(*rows)
    assert of(*rows, price(0.1, LITTLE)) == of(*rows)


def test_approvals_outside_come_before_a_price():
    page = dear(similar(LESS, OUTSIDE), price(0.3))
    assert page.headline.rule == "similar"
    assert page.questions[1].against == "Outside the limit of 2 points"


def test_a_price_of_a_group_with_few_denials_is_printed_beside_its_limit():
    few = row(SIMILAR, "A", LITTLE, n=100, limit=0.02)
    line = dear(few, price(0.3)).questions[1]
    assert line.sentence == (
        "Not measured: too few A applicants. Similar A borrowers paid 0.30 percentage points more above the benchmark "
        "rate (0.25 to 0.35)."
    )
    part = dear(similar(NOTHING, OUTSIDE), price(0.3), findings=(PART,)).questions[1]
    assert part.sentence.startswith("No. Where purpose is refinance ... Similar A borrowers paid 0.30")


def test_dear_groups_are_named_and_several_are_counted():
    many = of_states(*[(LITTLE, LITTLE)] * 3)
    rows = tuple(effect(name, LITTLE, NOTHING, limit=-2, n=100) for name in "ABC")
    run = replace(many, rows=(whole(SIMILAR, OUTSIDE), *rows, *(price(0.3, group=name) for name in "AB")))
    page = decide(run)
    assert page.headline.words == "A and B borrowers paid more for their loans than similar white borrowers."
    everybody = replace(run, rows=(*run.rows, price(0.3, group="C")))
    assert decide(everybody).headline.words.startswith("Borrowers of 3 groups paid more")
    one = replace(run, rows=(*run.rows, price(0.0, INSIDE, group="C")))
    assert decide(one).questions[1].against == "Outside the limit of 0.1 percentage points in prices for A and B"
    assert decide(everybody).questions[1].against == "Outside the limit of 0.1 percentage points in prices"
