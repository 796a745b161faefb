"""The rows of the first page: the first word follows from the printed interval, the limit and the doubt have their own
columns, and no row has a word of another one's state."""

import re
from dataclasses import replace

import pytest
from conftest import examples
from decide_runs import INSIDE, LITTLE, NO_LIMIT, NOT_RUN, OUTSIDE, boston, effect, gap, of_states, row, white, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decide_page import runs

from schemas.questions import QUESTIONS, STATES
from schemas.tables.verdicts import unit_of
from schemas.terms import State, Theory
from tasks.reporting.charts.values import MINUS, Mark, number, value_text
from tasks.reporting.first_page.answers import RELIABILITY, effect_of, questions, rates_of
from tasks.reporting.first_page.facts import Finding, GraphTests, Group, Groups, LeftOut, Run
from tasks.reporting.first_page.page import decide
from tasks.reporting.question_pages.data import SCALES

ENDS = re.compile(rf"\(([+{MINUS}]?[\d.]+) to ([+{MINUS}]?[\d.]+)\)")
ALIKE = Theory.SIMILAR_APPLICANTS
BLACK = ("race", "Black")


def excludes(line):
    """Whether the first interval that a result prints excludes no difference, read from its text alone."""
    ends = [tuple(float(end.replace(MINUS, "-")) for end in pair) for pair in ENDS.findall(line.sentence)]
    if not ends:
        return None
    low, high = ends[0]
    if line.theory is Theory.PATH_TO_APPROVAL:
        return not low <= 100 <= high
    signed = any(sign in ENDS.search(line.sentence)[0] for sign in f"+{MINUS}")
    return low > 0 or high < 0 if signed else low > 0


def contradictions(page):
    """Rows whose first word is not that of the interval beside it, or that have the word of a state."""
    wrong = []
    for line in page.questions:
        says = {DIFFERENT[line.theory]: True}.get(line.sentence.split(" ")[0], False)
        shown = excludes(line)
        if shown is not None and says is not shown:
            wrong.append((line.theory, line.sentence))
        if shown is None and line.theory in DIFFERENT and says and line.effects:
            wrong.append((line.theory, line.sentence))
        own = STATES[line.state].words
        others = [state.words for state in STATES.values() if state.words != own]
        for text in (line.sentence, line.against, line.reliable):
            wrong += [(line.theory, text) for words in others if words.casefold() in text.casefold()]
        if own.casefold() in line.sentence.casefold() and own not in ("Not run",):
            wrong.append((line.theory, line.sentence))
    return wrong


DIFFERENT = {theory: "No." if theory is ALIKE else "Yes." for theory in QUESTIONS if theory is not Theory.OWN_LIMITS}
DIFFERENT[Theory.OWN_LIMITS] = "none"


@given(runs())
@settings(deadline=None, max_examples=examples(300))
def test_the_first_word_is_that_of_the_printed_interval(run):
    assert contradictions(decide(run)) == []


def answered(run, theory=ALIKE, most=45):
    return next(row for row in questions(Groups(run), most) if row.theory is theory)


def one(points, state=LITTLE, limit=-2, **more):
    """A run with one judged group, compared with similar applicants."""
    rows = (whole(ALIKE, state), effect("Black", state, points, limit, **({"n": 197} | more)))
    groups = (white(), Group("race", "Black", 197, 0.675))
    return Run(rows, groups, columns={BLACK: 17}, complete=True)


@pytest.mark.parametrize(
    ("points", "word"),
    [
        ((-13, -20, -6), "No."),
        ((13, 6, 20), "No."),
        ((-1, -1.8, -0.2), "No."),
        ((0.1, -1.5, 1.6), "Yes."),
        ((0.1, -2.5, 1.6), "No difference is shown by these data."),
        ((-3, -8, 2), "No difference is shown by these data."),
        ((-1.2, -2.4, -0.02), "No difference is shown by these data."),
    ],
    ids=["less", "more", "less than the limit", "the same", "reaches the limit", "open", "0 as printed"],
)
def test_similar_applicants_by_the_interval_alone(points, word):
    for state in (OUTSIDE, LITTLE, INSIDE, NO_LIMIT):
        assert answered(one(points, state)).sentence.startswith(word), state


def test_the_rows_of_boston():
    rows = decide(replace(boston(limit=-2), complete=True)).questions
    assert [row.question for row in rows] == [question.words for question in list(QUESTIONS.values())[:5]]
    assert [(row.sentence, row.against, row.reliable) for row in rows[:2]] == [
        (
            "Yes. Approved per 100: Black 68, Hispanic 77, white 91. Black 23 points below white "
            "(17 to 30), Hispanic 14 (6 to 22).",
            "Outside the limit: Black rate 0.74 of the white rate (0.67 to 0.82), below 0.98 (−2 points)",
            "from 197 Black applicants",
        ),
        (
            "No. With the same 18 recorded characteristics, Black applicants were approved 14 points "
            "less often (7 to 20), Hispanic 11 (3 to 18).",
            "Outside the limit of 2 points",
            "from 197 Black applicants",
        ),
    ]
    assert rows[2].sentence == "This method was switched off."
    assert rows[2].against == "Not run"
    assert rows[4].sentence == "Not shown to vary more between groups than inside one."


@pytest.mark.parametrize("value", [0.575, 0.285, 0.145, 0.265, 0.2650004, 0.2649996, 0.255])
def test_sentence_chart_and_terminal_round_a_number_alike(value):
    """0.575 is 57.499999999999993 points and was printed as 57 here and as 58 there."""
    known = {"value": value, "low": value - 0.1, "high": value + 0.1}
    run = one((-13, -20, -6), OUTSIDE)
    printed = effect_of(ALIKE, BLACK, row(ALIKE, "Black", OUTSIDE, **known), Groups(run))
    scale = SCALES["points"]
    mark = Mark(label="", value=scale.of(value), low=-99, high=99)
    assert value_text(mark, scale.unit) == number(printed.value, signed=True)
    terminal, _ = unit_of({**known, "measure": "adjusted_effect", "theory": ALIKE, "scale": "linear"})
    assert terminal(-value) == f"{printed.value:+.0f}"


def test_a_causal_model_and_a_path_say_what_would_be():
    total = effect("Black", OUTSIDE, (-25, -33, -18), theory=Theory.CAUSAL_MODEL, n=197)
    path = row(Theory.PATH_TO_APPROVAL, "Black", LITTLE, value=0.74, low=0.59, high=0.92, limit=0.8, events=64, n=197)
    run = replace(one((-3, -8, 2)), rows=(whole(Theory.CAUSAL_MODEL, OUTSIDE), total, path, whole(path.theory, LITTLE)))
    assert answered(run, Theory.CAUSAL_MODEL).sentence == (
        "Yes. Under the assumed causal model, Black applicants would be approved 25 points more often if white "
        "(18 to 33)."
    )
    found = answered(run, Theory.PATH_TO_APPROVAL)
    assert found.sentence == "Yes. For denied white applicants it is 74 % as long as for Black ones (59 to 92)."
    assert found.against == "Inconclusive: the limit of 80 % lies inside 59 to 92"
    assert found.reliable == "only 64 Black denied"
    unreliable = [replace(each, state=State.UNRELIABLE) if each.theory is total.theory else each for each in run.rows]
    doubted = answered(replace(run, rows=tuple(unreliable), graph_tests=GraphTests(49, 29)), Theory.CAUSAL_MODEL)
    assert doubted.against == "Not reliable: no verdict"
    assert doubted.reliable == "the data contradict the model in 29 of 49 tests"
    assert "only the order of columns" not in doubted.sentence
    saturated = {total.key: (0.24, 0.14, 0.34)}
    doubted = answered(replace(run, rows=tuple(unreliable), saturated=saturated), Theory.CAUSAL_MODEL)
    assert doubted.sentence.endswith(
        "(18 to 33). A model that assumes only the order of columns gives 24 points more often (14 to 34)."
    )
    assert "only the order of columns" not in answered(replace(run, saturated=saturated), Theory.CAUSAL_MODEL).sentence


def test_more_than_six_groups_are_the_four_lowest_and_a_number():
    many = [Group("race", f"G{n}", 100, 0.5 + 0.04 * n) for n in range(7)]
    groups = Groups(Run((), (white(), *many)))
    assert rates_of(groups) == "Approved per 100: G0 50, G1 54, G2 58, G3 62; 4 other groups."
    compared = rates_of(groups, ("race", "white"))
    assert compared == "Approved per 100: G0 50, G1 54, G2 58, G3 62, white 91; 3 other groups."
    few = Groups(Run((), (white(), *many[:3], Group("race", "few", 9))))
    assert rates_of(few) == "Approved per 100: G0 50, G1 54, G2 58, white 91; 1 other group."


PART = Finding(
    "part", "race", "Black", "purpose: refinance", 0.25, 0.21, 0.30, 80,
    "Where purpose is refinance, similar Black applicants were approved 25 points less often (21 to 30).",
)  # fmt: skip


def test_a_part_alone_is_a_difference_and_its_interval_is_printed():
    found = answered(replace(one((-1, -3, 1), OUTSIDE), findings=(PART,)))
    assert found.sentence == f"No. {PART.sentence}"
    assert [(each.value, each.low, each.high) for each in found.effects] == [(-25, -30, -21)]


@pytest.mark.parametrize(
    ("state", "points", "more", "words"),
    [
        (OUTSIDE, (-13, -20, -6), {}, "Outside the limit of 2 points"),
        (INSIDE, (0, -1, 1), {}, "Within the limit of 2 points"),
        (INSIDE, (0, -1, 1), {"limit_used": 0.005}, "Within the limit of 0.5 points"),
        (LITTLE, (-3, -8, 2), {}, "Inconclusive: may be above or below the limit of 2 points"),
        (LITTLE, (-5, -8, -2.6), {}, "Inconclusive: close to the limit of 2 points"),
        (LITTLE, (-5, -8, 1), {"bias": 0.09}, "Inconclusive: columns that the data lack could account for it"),
        (LITTLE, (0, -1, 1), {}, "Inconclusive: one part of the group may lie beyond the limit"),
        (NO_LIMIT, (-3, -8, 2), {}, "No limit set"),
        (State.INFORMATION, (-3, -8, 2), {}, "For information"),
        (LITTLE, (-3, -8, 2), {"value": None, "low": None, "high": None}, "Inconclusive: too few applicants"),
    ],
)
def test_against_the_limit(state, points, more, words):
    assert answered(one(points, state, **more)).against == words


def test_a_state_of_some_groups_names_them():
    run = of_states((OUTSIDE, OUTSIDE), (OUTSIDE, INSIDE), (OUTSIDE, INSIDE))
    assert answered(run).against == "Outside the limit of 5 points for A applicants"


MANY = LeftOut(442, 2000, 0.5, 0.03)
DOUBTS = {
    "people": ({"complete": True}, "from 197 Black applicants"),
    "lacking": ({"complete": False, "lacks": ("the credit score",)}, "the data lack the credit score"),
    "left out": ({"left_out": MANY}, "442 files with gaps are left out"),
    "form": ({"findings": (Finding("form", *BLACK),)}, "depends on the form of the rule"),
    "support": ({"support": {BLACK: 0.63}}, "63 % have similar white applicants"),
    "unknown": ({"unknown": {"race": 0.14}}, "race is unknown for 14 % of applicants"),
    "robust": (
        {"outlasts": {BLACK: 3}},
        "even a missing factor 3 times as strong as any recorded leaves a gap",
    ),
    "as strong": (
        {"outlasts": {BLACK: 1}},
        "even a missing factor as strong as any recorded leaves a gap",
    ),
    "weak": ({"outlasts": {BLACK: 0}}, "a missing factor as strong as a recorded one could explain it"),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_how_reliable_is_the_first_doubt_that_holds(name):
    words = DOUBTS[name][1]
    state = LITTLE if name == "people" else OUTSIDE
    points = {"plain_low": 0.06, "plain_high": 0.2}
    later = [DOUBTS[each][0] for each in list(DOUBTS)[list(DOUBTS).index(name) :]]
    everything = {key: value for each in reversed(later) for key, value in each.items()}
    assert answered(replace(one((-13, -20, -6), state, **points), **everything)).reliable == words


def test_a_state_that_holds_by_fewer_than_40_of_48_choices_says_so():
    words = {"reason": "the whole interval lies beyond the limit", "choices": 48, "choices_within": 0}
    few = one((-13, -20, -6), OUTSIDE, **words, choices_outside=39)
    assert answered(few).reliable == "holds in 39 of 48 choices of form, columns, files and estimator"
    inside = {**words, "reason": "the whole interval lies inside the limit", "choices_within": 31}
    assert answered(one((0, -1, 1), INSIDE, **inside, choices_outside=0)).reliable.startswith("holds in 31 of 48")
    enough = one((-13, -20, -6), OUTSIDE, **words, choices_outside=40)
    of_part = one((-13, -20, -6), OUTSIDE, **{**words, "reason": "a part lies beyond its limit"}, choices_outside=2)
    unmade = one((-13, -20, -6), OUTSIDE, reason=words["reason"])
    for run in (enough, of_part, unmade):
        assert "choices" not in answered(run).reliable


def test_every_doubt_is_looked_at_once():
    assert len(set(RELIABILITY)) == len(RELIABILITY) == 10


@given(st.floats(-0.3, 0.3), st.floats(0.001, 0.2))
def test_numbers_beside_a_word_are_those_of_the_row(value, half):
    points = (-100 * value, -100 * (value + half), -100 * (value - half))
    found = answered(one(points)).effects[0]
    assert found.low <= found.value <= found.high
    rounded = 0.5 + 0.0005  # points are rounded to three decimals first, everywhere
    assert abs(found.low - points[1]) <= rounded
    assert abs(found.high - points[2]) <= rounded


def test_a_row_that_was_not_run_says_why():
    run = replace(one((0, -1, 1)), rows=(whole(Theory.CAUSAL_MODEL, NOT_RUN, "no causal model was given"),))
    found = answered(run, Theory.CAUSAL_MODEL)
    assert (found.sentence, found.against, found.reliable) == ("No causal model was given.", "Not run", "–")


def test_rates_stand_beside_the_difference_of_the_model_where_it_alone_was_judged():
    run = one((-3, -8, 2))
    rows = (whole(Theory.APPROVAL_RATES, LITTLE), gap("Black", LITTLE, (-23, -31, -16), n=197))
    groups = tuple(replace(group, decision_maker="model") for group in run.groups)
    found = answered(replace(run, rows=rows, groups=groups), Theory.APPROVAL_RATES)
    assert found.sentence.startswith("Yes. The model approved, per 100: Black 68, white 91.")


@pytest.mark.parametrize(
    ("numbers", "relabelled", "more"),
    [
        ({"value": 0.01}, {("race", "Black"): 0.03}, False),
        ({"value": 0.04}, {("race", "Black"): 0.03}, True),
        ({"value": 0.04}, {}, False),
        ({"value": 0.04, "low": -0.01, "high": 0.09}, {("race", "Black"): 0.03}, False),
        ({"value": 0.04, "low": 0.01, "high": 0.07}, {}, True),
    ],
    ids=["as by chance", "above chance", "nothing to compare with", "interval holds 0", "interval above 0"],
)
def test_reasons_differ_more_where_chance_or_an_interval_excludes_it(numbers, relabelled, more):
    rows = (whole(Theory.MODEL_REASONS, LITTLE), row(Theory.MODEL_REASONS, "Black", LITTLE, **numbers))
    found = answered(replace(one((-3, -8, 2)), rows=rows, relabelled=relabelled), Theory.MODEL_REASONS).sentence
    less = "Not shown to vary more between groups than inside one."
    assert found == ("Yes. For Black applicants, reasons differ more between groups than within one." if more else less)
