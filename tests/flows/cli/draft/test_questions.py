"""The questions of a draft: one model for terminal, file and browser; each key has its mark, and answers are pure."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import unprepared_tables as tables
import yaml
from conftest import environment, evenhand

from flows.cli.draft.drafting import Choices, Draft, drafted
from flows.cli.draft.people import Attribute
from flows.cli.draft.questions import answered, lines, open_questions, questions, settings_of
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.spec_text import text
from schemas.audit.file import parse
from schemas.errors import SpecError

MOST_LINES = 12


def lender(place: Path, **choices: object) -> Draft:
    return drafted(read_file(File(tables.lender(place))), Choices(dict(choices)))


@pytest.mark.parametrize("table", ["south_german", "compas", "adult", "lender", "german"])
def test_every_key_of_a_question_has_its_mark_and_no_other_key_has_one(table: str, tmp_path: Path) -> None:
    draft = drafted(read_file(File(getattr(tables, table)(tmp_path))))
    keys = {key for question in open_questions(draft) for key in question.keys}
    marks = {mark.key for mark in parse(text(draft)).marks}
    assert {key for key in keys if draft.is_whole or not key.startswith(("protected", "decision"))} <= marks
    assert marks - keys <= {
        "decision.favourable",
        "decision.unfavourable",
        "protected.0.columns",
        "protected.0.reference",
    }
    assert len(lines(open_questions(draft))) <= MOST_LINES


def test_questions_come_worst_first_and_as_json(tmp_path: Path) -> None:
    made = questions(lender(tmp_path))
    weights = [question.weight for question in made]
    assert weights == sorted(weights)
    assert {1, 2, 3, 4, 9, 11, 12} <= set(weights)
    document = json.loads(json.dumps([question.as_json() for question in made]))
    assert set(document[0]) == {
        *("key", "keys", "weight", "topic", "text", "default", "options", "evidence", "answered")
    }  # fmt: skip
    assert document[0]["evidence"][0]["as"] in ("favourable", "unfavourable")


def test_what_is_given_is_no_question(tmp_path: Path) -> None:
    draft = lender(tmp_path, **{
        "decision.column": "answer", "decision.favourable": ("approved",), "protected": ("gender",),
        "reference": ("m",), "year": 2022,
    })  # fmt: skip
    assert {q.key for q in questions(draft)} & {"decision", "sides", "protected", "reference", "year"} == set()


def test_an_answer_changes_the_draft_and_not_the_draft_that_was_asked(tmp_path: Path) -> None:
    draft = lender(tmp_path)
    turned = answered(draft, {"sides": "the other way round"})
    assert list(turned.of_side("favourable")) == list(draft.of_side("unfavourable")) == ["denied"]
    assert list(draft.of_side("favourable")) == ["approved"]
    moved = answered(draft, {"reference": "gender: w"})
    assert next(a for a in moved.attributes if a.column == "gender").reference == "w"
    assert answered(draft, {"year": "2019"}).year.value == 2019
    alone = answered(draft, {"protected": "without age"})
    assert [a.column for a in alone.attributes] == ["gender"]


def test_a_default_that_is_taken_is_asked_no_more(tmp_path: Path) -> None:
    draft = lender(tmp_path)
    done = answered(draft, {question.key: question.default for question in questions(draft)})
    assert open_questions(done) == []
    assert parse(text(done)).marks == ()
    assert done.of_side("favourable") == draft.of_side("favourable")


@pytest.mark.parametrize(
    ("key", "answer"), [("nonsense", "yes"), ("limits", "maybe"), ("decision", "amount"), ("year", "x")]
)
def test_answers_that_do_not_fit_are_refused(key: str, answer: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        answered(lender(tmp_path), {key: answer})


@pytest.mark.parametrize(
    ("values", "side", "answer"),
    [
        ({"Approved": 60, "Denied": 30, "Approved but not accepted": 10}, "favourable", "not taken is no decision"),
        ({"Approved": 60, "Denied": 30, "Counteroffer": 10}, "neither", "counteroffer is denied"),
    ],
)
def test_values_of_two_readings_are_asked_with_the_other_one(values, side: str, answer: str, tmp_path: Path) -> None:
    rows = [value for value, n in values.items() for _ in range(n)]
    cells = (f"{i},{('White', 'Black')[i % 2]},{1000 + i},{value}" for i, value in enumerate(rows))
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(["id,race,amount,status", *cells, ""]))
    draft = drafted(read_file(File(path)))
    special = list(values)[-1]
    assert special in draft.of_side(side)
    other = answered(draft, {"sides": answer})
    assert special not in other.of_side(side)
    assert sum(sum(other.of_side(s).values()) for s in ("favourable", "unfavourable", "neither")) == len(rows)


RACES = ["White"] * 120 + ["Black, African"] * 80 + ["Asian"] * 28 + ["Samoan"] * 7 + ["Inuit"] * 5


def of_races(place: Path) -> Draft:
    return drafted(read_file(File(tables.lender(place, race=RACES))))


def asked(draft: Draft) -> dict[str, str]:
    return {question.key: question.text for question in open_questions(draft)}


def race(draft: Draft) -> Attribute:
    return next(attribute for attribute in draft.attributes if attribute.column == "race")


def test_small_groups_are_joined_by_an_answer_and_others_by_words(tmp_path: Path) -> None:
    draft = of_races(tmp_path)
    option = next(option for q in questions(draft) if q.key == "groups" for option in q.options if option.set)
    assert option.effect == "Samoan, Inuit are one group, Samoan or Inuit, of 12 people"
    draft = answered(draft, {"reference": "yes", "groups": option.answer})
    assert race(draft).rows["Samoan or Inuit"] == 12
    assert "groups" not in asked(draft)
    assert "reference" in asked(draft)  # it was read with other groups
    draft = answered(draft, {"reference": "Else = samoan or inuit, BLACK, AFRICAN"})
    assert race(draft).rows == {"White": 120, "Asian": 28, "Else": 92}
    assert race(draft).favourable["Else"] > 0
    spec = text(draft)
    groups = yaml.safe_load(spec)["protected"][0 if draft.attributes[0].column == "race" else 1]["groups"]
    assert groups == {"White": ["White"], "Asian": ["Asian"], "Else": ["Samoan", "Inuit", "Black, African"]}
    again = drafted(draft.table, settings_of(yaml.safe_load(spec)))
    assert race(again).rows == race(draft).rows


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Else = Samoa, Inuit", "expected COLUMN: NAME = GROUP, GROUP"),
        ("sex: Else = Samoan, Inuit", "expected COLUMN: NAME = GROUP, GROUP"),
        ("= Samoan, Inuit", "expected COLUMN: NAME = GROUP, GROUP"),
        ("Else = Samoan", "expected two groups or more"),
        ("Asian = Samoan, Inuit", "race has that group already"),
        ("All = White, Black, African, Asian, Samoan, Inuit", "those are all groups of race"),
    ],
)
def test_groups_that_cannot_be_joined_are_refused(answer: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        answered(of_races(tmp_path), {"groups": answer})


def test_a_value_without_a_word_is_no_decision_until_it_is_answered(tmp_path: Path) -> None:
    rows = ["approved"] * 60 + ["denied"] * 30 + ["zzz"] * 10
    path = tmp_path / "loans.csv"
    path.write_text(
        "\n".join(["id,race,amount,status", *(f"{i},{'WB'[i % 2]},{i * 7},{v}" for i, v in enumerate(rows)), ""])
    )
    draft = drafted(read_file(File(path)), Choices({"protected": ("race",)}))
    assert draft.of_side("neither") == {"zzz": 10}
    asked = next(question for question in questions(draft) if question.key == "sides")
    assert "no word tells what zzz 10 means" in asked.text.casefold()


# --------------------------------------------------------------------------------------------------------------------
# The command.


def init(*words: str, cwd: Path):
    return evenhand("init", *words, cwd=cwd)


def test_check_lists_a_line_for_each_weight_and_confirm_takes_them(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    assert init(file.name, "-o", "spec.yaml", "--json", "questions.json", cwd=tmp_path).returncode == 0
    asked = json.loads((tmp_path / "questions.json").read_text())
    listed = init("--check", "spec.yaml", cwd=tmp_path).stdout.splitlines()
    assert len(listed) == len({question["weight"] for question in asked})
    assert all(line.startswith("line ") for line in listed)
    assert init("--confirm", "spec.yaml", "decision", cwd=tmp_path).returncode == 0
    left = {mark.key for mark in parse((tmp_path / "spec.yaml").read_text()).marks}
    assert not {key for key in left if key.startswith("decision")}
    assert "verdicts.columns_complete" in left
    assert init("--confirm", "spec.yaml", "reference", cwd=tmp_path).returncode == 0
    assert init("--confirm", "spec.yaml", "nonsense", cwd=tmp_path).returncode == 2
    assert init("--confirm", "spec.yaml", cwd=tmp_path).returncode == 0
    assert init("--check", "spec.yaml", cwd=tmp_path).stdout == "nothing is left to confirm\n"
    assert "columns_complete: false" in (tmp_path / "spec.yaml").read_text()


def test_check_tells_what_changed_in_the_table(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    assert init(file.name, "-o", "spec.yaml", cwd=tmp_path).returncode == 0
    text_before = file.read_text()
    file.write_text(text_before.replace("denied", "sent to Mars", 3).replace("purpose", "reason", 1))
    said = init("--check", "spec.yaml", cwd=tmp_path).stderr
    assert "changed: answer: sent to Mars is in no list of the spec (3 rows)" in said
    assert "columns of the spec that the table has no more: purpose" in said
    assert "columns that the spec does not name: reason" in said


def test_several_years_are_asked_and_confirming_keeps_one(tmp_path: Path) -> None:
    years = ["2022-03-01"] * 150 + ["2023-03-01"] * (tables.ROWS - 150)
    file = tables.lender(tmp_path, applied_on=years)
    assert init(file.name, "-o", "spec.yaml", cwd=tmp_path).returncode == 0
    before = parse((tmp_path / "spec.yaml").read_text()).value
    assert (before["year"], before["source"].get("keep")) == (2022, None)
    assert init("--confirm", "spec.yaml", "year", cwd=tmp_path).returncode == 0
    after = parse((tmp_path / "spec.yaml").read_text()).value
    assert str(after["source"]["keep"]["applied_on"]["maximum"]) == "2022-12-31"


def test_an_audit_of_a_decision_that_nobody_confirmed_does_not_start(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    assert init(file.name, "-o", "spec.yaml", cwd=tmp_path).returncode == 0
    done = evenhand("audit", "spec.yaml", "--lake", "lake", cwd=tmp_path)
    assert done.returncode == 2
    assert "evenhand init --confirm SPEC decision" in done.stderr
    assert not list((tmp_path / "lake").glob("runs/*"))


def test_at_a_terminal_enter_takes_a_default_that_is_there(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    shown, typed = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "init", file.name],
        stdin=typed, stderr=typed, stdout=subprocess.PIPE, env=environment(None), cwd=tmp_path,
    ) as running:  # fmt: skip
        os.close(typed)
        os.write(shown, b"\nthe other way round\n\nnonsense\n\n\n")
        out, _ = running.communicate(timeout=120)
    said = os.read(shown, 1 << 16).decode()
    os.close(shown)
    assert running.returncode == 0, said
    assert "Is answer the decision" in said
    marks = {mark.key for mark in parse(out.decode()).marks}
    assert "favourable: ['denied']" in out.decode()
    assert not {key for key in marks if key.startswith(("decision", "protected")) or key == "year"}
    assert "verdicts.limits" in marks


def test_the_end_of_the_input_is_no_breach(tmp_path: Path) -> None:
    shown, typed = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "init", tables.south_german(tmp_path).name],
        stdin=typed, stderr=typed, stdout=subprocess.DEVNULL, env=environment(None), cwd=tmp_path,
    ) as running:  # fmt: skip
        os.close(typed)
        os.write(shown, b"\x04")
        assert running.wait(timeout=120) == 2
    assert "no answer; give --decision" in os.read(shown, 1 << 16).decode()
    os.close(shown)


def test_with_ask_every_question_is_put_even_in_a_pipe(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    words = [sys.executable, "-m", "flows.cli", "init", file.name, "--ask", "-o", "spec.yaml"]
    done = subprocess.run(
        words, input="\n" * 20, capture_output=True, text=True, env=environment(None), cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "nothing is left to confirm" in done.stderr
    assert parse((tmp_path / "spec.yaml").read_text()).marks == ()
    assert "Would you defend the limits?" in done.stderr + done.stdout
