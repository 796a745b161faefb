"""The whole page: both worked examples, its budget of words, banned words, order, and what it is as JSON."""

import json
import random
import re
import string
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from conftest import examples
from decide_runs import FIVE, MEASURES, OUTSIDE, boston, texas, white, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.questions import QUESTIONS, STATES
from schemas.tables.verdicts import VERDICTS
from schemas.terms import State, Theory
from tasks.reporting.first_page import facts as module
from tasks.reporting.first_page.facts import (
    About,
    Benchmark,
    Files,
    GraphTests,
    Group,
    Groups,
    LeftOut,
    Lost,
    Row,
    Run,
    fitting,
    sentences,
    short,
    texts,
    words,
)
from tasks.reporting.first_page.page import MOST_WORDS, decide, length
from tasks.reporting.material import listed
from tasks.reporting.plain_words import banned_in, words_of


def test_boston_has_its_headline_lines_and_command():
    page = decide(replace(boston(limit=-2), about=About("Boston lenders", 1985, 1989), year=1990))
    assert page.headline.words == (
        "Boston lenders, 1990: Black and Hispanic applicants were approved less often than white applicants with the "
        "same recorded characteristics."
    )
    assert [line.words for line in page.next] == [
        "Read the files of the 20 denied Black applicants whose most similar white applicants were approved most "
        "often.",
        "Ask underwriting for the reasons on record.",
    ]
    assert page.next[0].command == "evenhand pack RUN --group Black"
    assert [line.words for line in page.cannot] == [
        "Why decisions differ, or whether that is lawful.",
        "What the lender saw beyond these columns.",
        "Anything about one person.",
    ]
    assert page.figures.group == "Black"


def test_a_file_of_many_lenders_says_so():
    page = decide(texas())
    assert page.questions[0].sentence.startswith(
        "Yes. Approved per 100: Black 70, American Indian 71, white 81, Asian 83."
    )
    assert [line.words for line in page.next] == ["Audit each lender alone: this file holds many."]
    assert [line.rule for line in page.cannot] == ["why_lawful", "mixed_lenders", "single_person"]


PRINTED = (
    *("value", "low", "high", "plain_low", "plain_high", "robustness", "bias", "detectable", "needed"),
    *("n", "events", "n_reference"),
)
"""Numbers of a row that the page could print."""
LETTERS = "aeio  xyz<>&{}'\"אבש"
NAMES = st.lists(st.text(LETTERS, min_size=1, max_size=80), max_size=40, unique_by=lambda name: " ".join(name.split()))


@st.composite
def runs(draw):
    """Runs of up to 40 groups in two attributes; every number may be missing, and every fact may hold."""
    names = draw(NAMES)
    dice = random.Random(draw(st.integers(0, 2**32)))

    def some(low, high):
        return None if dice.random() < 0.2 else dice.uniform(low, high)

    groups, rows = [], []
    for attribute in ("race", "sex")[: dice.choice((1, 2))]:
        groups.append(Group(attribute, f"reference {attribute}", 900, some(0, 1), reference=True))
        for name in names:
            n = dice.choice((None, 3, 29, 30, 100, 5000))
            groups.append(Group(attribute, name, n, some(0, 1)))
            for theory in MEASURES:
                rows += [
                    _row(dice, some, theory, attribute, name, role, n)
                    for role in ("primary", "beside", "adds")
                    if dice.random() < (0.9 if role == "primary" else 0.2)
                ]
    rows += [whole(theory, dice.choice(FIVE)) for theory in Theory if dice.random() < 0.9]
    rows += [Row(Theory.OWN_LIMITS, dice.choice(FIVE)) for _ in range(dice.choice((0, 3)))]
    key = (groups[-1].key if groups else ("race", "none")) if names else ("race", "none")
    return Run(
        tuple(rows),
        tuple(groups),
        warnings=() if dice.random() < 0.8 else ("columns_swapped",),
        columns={key: dice.choice((1, 18))},
        lost=tuple(
            Lost(*each.key, 100, 40, ("income", "a column of so many words that it is cut"))
            for each in groups[: dice.choice((0, 1, 5))]
        ),
        neighbours=dice.choice((None, 15)),
        credit_history=dice.random() < 0.5,
        strongest={key: Benchmark("a column of so many words that it is cut", 0.001, 0.2)},
        files={key: Files(dice.choice((None, 20)), "evenhand pack")},
        left_out=dice.choice((None, LeftOut(100, 1000, some(0, 1), some(0, 1)))),
        public=dice.random() < 0.5,
        graph_tests=dice.choice((None, GraphTests(49, 29))),
        year=2013,
        lacking=dice.choice(((), ("history",), ("a column of so many words that it is cut",) * 3)),
        lenders=dice.choice((1, 5)),
        sampled=dice.random() < 0.5,
    )


def _row(dice, some, theory, attribute, name, role, n):
    ratio = theory in (Theory.APPROVAL_RATES, Theory.PATH_TO_APPROVAL) and role == "primary"
    value = some(0.3, 1.4) if ratio else some(-0.3, 0.4)
    length = dice.uniform(0.001, 0.3)
    known = value is not None and dice.random() < 0.8
    return Row(
        theory,
        dice.choice(FIVE),
        role=role,
        protected_attribute=attribute,
        group=name,
        reference_group=f"reference {attribute}",
        decision_maker=dice.choice(("lender", "model")),
        measure="st_effect" if role == "beside" else "x",
        value=value,
        low=value - length if known else None,
        high=value + length if known else None,
        robustness=some(0, 0.3),
        bias=dice.choice((None, 0.0, 0.1)),
        limit=0.8 if ratio else 0.02,
        side="at_least" if ratio else "at_most",
        detectable=some(0.02, 0.9),
        needed=some(1, 1e6),
        n=n,
        events=None if n is None else n // 3,
        n_reference=900,
        withheld=dice.random() < 0.1,
    )


@given(runs())
@settings(deadline=None, max_examples=examples(300))
def test_every_page_keeps_its_budgets_and_its_words(run):
    page = decide(run)
    assert words(page.headline.words) <= 25
    assert all(row.sentence and row.against and row.reliable for row in page.questions)
    assert [row.theory for row in page.questions][:5] == [
        Theory.APPROVAL_RATES,
        Theory.SIMILAR_APPLICANTS,
        Theory.CAUSAL_MODEL,
        Theory.PATH_TO_APPROVAL,
        Theory.MODEL_REASONS,
    ]
    assert length(page) <= MOST_WORDS + 30 <= 350, "names of groups may have 8 words"
    named = {part for group in run.groups for part in words_of(group.name)}
    assert set(banned_in(page.texts())) <= named
    assert all(len(lines) <= 3 for lines in (page.change, page.next))
    assert len(page.cannot) in (3, 3 + bool(run.lost))
    assert [each.name for each in page.figures.comparisons] == ["all", "adjusted", "nearest"]
    json.dumps(asdict(page), allow_nan=False)


@given(runs())
@settings(deadline=None, max_examples=examples(120))
def test_no_group_below_the_least_number_is_in_the_headline_or_the_figures(run):
    page, enough = decide(run), {group.key for group in run.groups if (group.n or 0) >= 30}
    assert set(page.headline.groups) <= enough
    assert page.figures.key is None or page.figures.key in enough


@given(runs(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(120))
def test_the_order_of_rows_and_groups_changes_nothing(run, dice):
    one_each = {(row.theory, row.role, *row.key, row.decision_maker, row.measure): row for row in run.rows}
    rows, groups = list(one_each.values()), list(run.groups)
    before = decide(replace(run, rows=tuple(rows)))
    dice.shuffle(rows)
    dice.shuffle(groups)
    assert decide(replace(run, rows=tuple(rows), groups=tuple(groups))) == before


@given(runs(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(120))
def test_what_is_withheld_changes_nothing(run, dice):
    """Whatever the numbers and the state of a withheld row are, the page is the same."""

    def other(row):
        numbers = dict.fromkeys(PRINTED, 7)
        return replace(row, **numbers, state=dice.choice(FIVE)) if row.withheld else row

    assert decide(replace(run, rows=tuple(map(other, run.rows)))) == decide(run)


@given(NAMES)
def test_labels_are_short_and_each_is_one_groups(names):
    groups = Groups(Run((), (white(), *(Group("race", name, 50, 0.5) for name in names))))
    labels = [groups.label(key) for key in groups.order]
    assert len(set(labels)) == len(labels)
    assert all(words(label) <= 8 for label in labels)


@pytest.mark.parametrize("one", ["a " * 40, "a" * 80, "<b>" * 26], ids=["words", "letters", "tags"])
def test_forty_groups_with_names_of_eighty_letters(one):
    """Every rule applies, and every group has a row in every theory."""
    names = [f"{one[:77]}{number:03d}" for number in range(40)]
    run = boston()
    rows = [
        replace(row, group=name)
        for row in run.rows
        if row.group == "Black"
        for name in names
    ]  # fmt: skip
    wholes = [replace(row, state=OUTSIDE) for row in run.rows if row.role == "theory"]
    reference = Group("race", f"{one[:76]}none", 1681, 0.91, reference=True)
    many = replace(
        run,
        rows=tuple(replace(row, reference_group=reference.name) for row in (*wholes, *rows)),
        groups=(reference, *(Group("race", name, 197, 0.675) for name in names)),
        credit_history=False,
        strongest={("race", name): Benchmark("public record", 0.01, 0.035) for name in names},
        files={("race", name): Files(20) for name in names},
        left_out=LeftOut(1000, 9000, 0.5, 0.2),
    )
    page = decide(many)
    assert 190 < length(page) <= MOST_WORDS + 5, "nothing more can be cut"
    assert words(page.headline.words) <= 25
    assert "pplicants of 40 groups were" in page.headline.words
    assert "38 other groups" in page.questions[1].sentence or "39 other groups" in page.questions[1].sentence


def test_what_is_too_long_loses_lines_and_then_groups(monkeypatch):
    run = replace(texas(), credit_history=False, lacks=("the credit score",))
    full = decide(run)
    for most in range(words(*full.texts()), 0, -1):
        monkeypatch.setattr("tasks.reporting.first_page.page.MOST_WORDS", most)
        page = decide(run)
        assert (page.headline, page.figures, page.cannot) == (full.headline, full.figures, full.cannot)
        assert [(row.state, row.against) for row in page.questions] == [(r.state, r.against) for r in full.questions]
        assert length(page) <= most or (len(page.change), len(page.next)) == (0, 1)
    assert page.questions[1].sentence.startswith("No. With the same 9 recorded characteristics")


def test_banned_words_are_in_no_sentence_question_or_state():
    written = [*texts(), *(q.words for q in QUESTIONS.values()), *(state.words for state in STATES.values())]
    assert banned_in(written) == ()


@pytest.mark.parametrize(
    "text",
    [
        *("denied because of", "the cause", "it causes", "caused by", "due to race", "bias", "a biased", "unbiased"),
        *("fair", "Unfair", "discriminates", "discrimination", "prove", "proves", "proven", "significant"),
        *("significantly", "counterfactual", "a burden", "infeasible", "the mediator", "by CST", "FGCE", "gcfn"),
        *("0.744 of", "12.255", "by ST alone", "the lake", "nor this", "whatever it is", "on the rung"),
    ],
)
def test_banned_words_are_found(text):
    assert banned_in([text])


@pytest.mark.parametrize(
    "text", ["approved, denied", "−23.3 points", "1,989", "most", "provided", "strongest", "5.5 %", "0.74"]
)
def test_words_that_may_stand_are_not_found(text):
    assert banned_in([text]) == ()


def test_every_sentence_is_used_and_its_places_are_names():
    folder = Path(module.__file__).parent
    code = "".join(file.read_text() for file in (*folder.glob("*.py"), folder.parent / "pages.py"))
    named = {
        "what",
        "elsewhere",
        "not_run",
        "answer",
        "differences",
        "terms",
        "matched",
        "about",
    }  # by what a run holds
    for part, of in sentences().items():
        unused = [name for name in of if part not in named and f'"{name}"' not in code]
        assert [name for name in unused if name.removesuffix("_unknown") not in of] == []
    for text in texts():
        assert all(name.isidentifier() for _, name, _, _ in string.Formatter().parse(text) if name is not None)
    assert set(sentences()["elsewhere"]) <= set(map(str, Theory))


def test_the_longest_form_of_a_sentence_comes_first():
    for part, of in sentences().items():
        for name, forms in of.items():
            if isinstance(forms, list) and part in ("headline", "know", "next", "cannot") and name != "similar_lacking":
                counted = [words(form) for form in forms]
                assert counted == sorted(counted, reverse=True), (part, name)


def test_json_holds_what_is_printed():
    page = decide(boston())
    found = json.loads(json.dumps(asdict(page), allow_nan=False))
    assert list(found)[:6] == ["headline", "questions", "figures", "change", "next", "cannot"]
    assert found["headline"]["words"] == page.headline.words
    assert found["headline"]["groups"] == [["race", "Black"]]
    assert found["questions"][1]["state"] == "outside"
    adjusted = found["figures"]["comparisons"][1]
    assert (adjusted["value"], adjusted["text"], adjusted["limit"]) == (-13.8, "−14", -5.0)
    assert found["next"][0] == {
        "rule": "read_files",
        "words": page.next[0].words,
        "command": "evenhand pack RUN --group Black",
    }


def test_a_row_of_the_table_is_read_by_its_names():
    nothing = dict.fromkeys(column.name for column in VERDICTS.columns)
    row = Row.of(
        {
            **nothing,
            "theory": "similar_applicants",
            "state": "outside",
            "value": 0.1,
            "needed": float("inf"),
            "group": "A",
        }
    )
    assert (row.theory, row.state, row.value, row.needed) == (Theory.SIMILAR_APPLICANTS, State.OUTSIDE, 0.1, None)
    declared = {column.name for column in VERDICTS.columns}
    assert set(Row.__dataclass_fields__) <= declared


def test_nothing_was_judged():
    page = decide(Run((), ()))
    assert page.headline.words == "No group has enough applicants for a result."
    assert {row.state for row in page.questions} == {State.NOT_RUN}
    assert {row.sentence for row in page.questions} == {"Not measured."}
    assert (page.change, [line.rule for line in page.next]) == ((), ["done"])


def test_names_from_right_to_left_do_not_turn_the_sentence():
    groups = Groups(Run((), (Group("race", "שלום", 50, 0.5), Group("race", "Black", 50, 0.5))))
    assert groups.label(("race", "שלום")) == "\N{FIRST STRONG ISOLATE}שלום\N{POP DIRECTIONAL ISOLATE}"
    assert groups.label(("race", "Black")) == "Black"


def test_words_by_hand():
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert fitting(["a b c", "a b", "a b", "a"], 2) == ("a b", "a")
    assert fitting(["a b c", "a b"], 1) == ("a b",)
    assert short("loan_to_value") == "loan to value"
    assert short("one two three four five six seven") == "one two three four five six…"
    assert re.sub(r"\s", "", short("  a   b ")) == "ab"
