"""A draft as a form: what it shows and what it does not, and answers that hold only for the question that was read."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import unprepared_tables as tables

from flows.cli.draft.drafting import Choices, Draft, drafted
from flows.cli.draft.form import (
    MOST_COLUMNS,
    MOST_ROWS,
    Outcome,
    answered_as_shown,
    choices_as_json,
    choices_of,
    form_of,
)
from flows.cli.draft.questions import answered, open_questions, questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.spec_text import text
from schemas.audit.file import parse

MOST_STEPS = 12


def lender(place: Path, **columns: object) -> Draft:
    return drafted(read_file(File(tables.lender(place, **columns))))


def fingerprints(draft: Draft) -> dict[str, str]:
    return {question["key"]: question["shown"] for step in form_of(draft)["steps"] for question in step}


def defaults(draft: Draft) -> dict[str, str]:
    return {question.key: question.default for question in open_questions(draft) if question.default is not None}


def sent(draft: Draft, answers: Mapping[str, str]) -> Outcome:
    return answered_as_shown(draft, fingerprints(draft), answers)


@pytest.mark.parametrize("table", ["south_german", "compas", "adult", "lender", "german"])
def test_a_form_has_at_most_twelve_steps_the_worst_first_and_is_json(table: str, tmp_path: Path) -> None:
    draft = drafted(read_file(File(getattr(tables, table)(tmp_path))))
    form = json.loads(json.dumps(form_of(draft)))
    weights = [[question["weight"] for question in step] for step in form["steps"]]
    assert len(weights) <= MOST_STEPS
    assert weights == sorted(weights)
    assert all(len(set(step)) == 1 for step in weights)
    assert len(form["preview"]["rows"]) == min(MOST_ROWS, draft.table.rows)
    assert len(form["preview"]["header"]) <= MOST_COLUMNS


def test_columns_of_people_are_counts_and_never_in_a_row(tmp_path: Path) -> None:
    draft = lender(tmp_path, maiden_name=[f"Name{i}" for i in range(tables.ROWS)], race=["b", "w"] * (tables.ROWS // 2))
    form = form_of(draft)
    shown = set(form["preview"]["header"])
    people = {entry["column"]: entry for entry in form["people"]}
    assert {"gender", "age", "race"} <= people.keys()
    assert not shown & people.keys()
    assert dict(people["race"]["values"]) == {"b": tables.ROWS // 2, "w": tables.ROWS // 2}
    assert people["age"]["values"] == []


def test_rows_are_shown_as_they_are_read_and_what_was_converted_is_counted(tmp_path: Path) -> None:
    amounts = ["$1,200.50", "N/A", *["$3,000.00"] * (tables.ROWS - 2)]
    answers = ["Approved ", "denied", *["approved", "denied"] * (tables.ROWS // 2 - 1)]
    form = form_of(lender(tmp_path, amount=amounts, answer=answers))
    place = form["preview"]["header"].index("amount")
    assert [row[place] for row in form["preview"]["rows"]][:3] == ["1200.5", "", "3000"]
    assert form["preview"]["header"][0] == "answer"
    assert form["preview"]["rows"][0][0] == "approved"
    changed = {(row["column"], row["rule"]): row["cells"] for row in form["converted"]}
    assert changed["amount", "currency"] == tables.ROWS - 1
    assert changed["amount", "missing_word"] == 1


def test_all_defaults_leave_no_question_and_give_the_spec_of_the_terminal(tmp_path: Path) -> None:
    draft = lender(tmp_path)
    outcome = sent(draft, defaults(draft))
    assert outcome.faults == {}
    assert open_questions(outcome.draft) == []
    assert form_of(outcome.draft)["steps"] == []
    by_terminal = answered(draft, {question.key: question.default for question in questions(draft)})
    assert text(outcome.draft) == text(by_terminal)
    assert parse(text(outcome.draft)).marks == ()


def test_an_answer_is_taken_only_for_the_question_that_was_read(tmp_path: Path) -> None:
    draft = lender(tmp_path)
    stale = {**fingerprints(draft), "sides": "0" * 64}
    outcome = answered_as_shown(draft, stale, defaults(draft))
    assert [question.key for question in open_questions(outcome.draft)] == ["sides"]
    # the other sides change the counts of the reference, which a person has not read yet
    turned = sent(draft, {**defaults(draft), "sides": "the other way round"}).draft
    assert list(turned.of_side("favourable")) == ["denied"]
    still_open = {question.key for question in open_questions(turned)}
    assert "reference" in still_open
    assert not still_open & {"decision", "sides", "limits"}


def test_answers_in_words_and_answers_that_are_none(tmp_path: Path) -> None:
    draft = lender(tmp_path)
    assert sent(draft, {"year": "2019"}).draft.year.value == 2019
    outcome = sent(draft, {"decision": "no such column", "year": "soon", "limits": "yes", "nothing": "yes"})
    assert set(outcome.faults) == {"decision", "year"}
    assert "no such column" in outcome.faults["decision"]
    assert {question.key for question in open_questions(outcome.draft)} == set(defaults(draft)) - {"limits"}


def test_choices_survive_json(tmp_path: Path) -> None:
    race = ["White"] * (tables.ROWS - 9) + ["Samoan"] * 5 + ["Inuit"] * 4
    answers = {"sides": "the other way round", "limits": "yes", "year": "2019", "groups": "Else = Samoan, Inuit"}
    draft = sent(lender(tmp_path, race=race), answers).draft
    assert len(draft.choices.settings["protected.race.groups"]["Else"]) == 2
    written = json.loads(json.dumps(choices_as_json(draft.choices)))
    assert choices_of(written) == Choices(draft.choices.settings, draft.choices.confirmed)
    assert text(drafted(draft.table, choices_of(written))) == text(draft)


def test_a_year_that_was_confirmed_before_the_text_keeps_its_rows_alone(tmp_path: Path) -> None:
    days = ["2022-03-01"] * 150 + ["2023-03-01"] * (tables.ROWS - 150)
    draft = lender(tmp_path, applied_on=days)
    assert parse(text(draft)).value["source"].get("keep") is None
    confirmed = sent(draft, {"year": "yes"}).draft
    assert str(parse(text(confirmed)).value["source"]["keep"]["applied_on"]["maximum"]) == "2022-12-31"
