"""The first page as lines: headline on the third, its words as report.json has them, lines and columns bounded."""

import json
from typing import Any

import pytest
from decide_runs import boston, of_states, texas
from exported_run import material

from flows.runs.first_page import MOST_COLUMNS, MOST_LINES, exit_words, left_out_words, summary
from schemas.questions import QUESTIONS
from schemas.terms import State, Theory
from tasks.reporting.exports.report_json import document
from tasks.reporting.first_page.facts import Run
from tasks.reporting.first_page.page import decide

PLACE = "data/lake/reports/RUN/report.html"
GRAVE = of_states(*[(State.OUTSIDE, State.OUTSIDE), (State.INCONCLUSIVE, State.WITHIN)] * 6)


def said(run: Run, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document(material(), decide(run), ()))
    return found | more


@pytest.mark.parametrize("run", [boston(), texas(), GRAVE, of_states()], ids=["boston", "texas", "many", "none"])
def test_it_has_at_most_24_lines_of_at_most_100_columns_and_the_headline_on_the_third(run: Run) -> None:
    report = said(run)
    lines = summary(report, PLACE, left_out="11 of the rows read")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert report["headline"]["words"].startswith(lines[2])
    assert (lines[1], lines[-3]) == ("", "")
    assert lines[-2:] == [f"run     {report['run']}     {exit_words(report['state'])}", f"report  {PLACE}"]
    assert [line for line in lines if line != line.rstrip()] == []


def test_every_question_has_its_state_and_sentence() -> None:
    report = said(boston(-2))
    lines = summary(report, PLACE, width=None)
    for row in report["questions"]:
        (line,) = (line for line in lines if line.startswith(f"  {QUESTIONS[Theory(row['theory'])].short} "))
        assert f"  {row['state_words']}  " in f"{line}  "
        assert line.endswith(row["sentence"].removesuffix(".").replace("\u2212", "-"))
    assert "\u2212" not in "".join(lines)


def test_a_command_stands_whole_on_a_line_of_its_own() -> None:
    lines = summary(said(boston(-2)), PLACE)
    assert [line.strip() for line in lines if "evenhand" in line] == ["evenhand pack RUN --group Black"]


@pytest.mark.parametrize(("number", "steps"), [(0, 1), (2, 1), (30, 1)])
def test_what_else_is_told_has_room_before_the_second_step(number: int, steps: int) -> None:
    more = [f"Method {i} did not run, as it is off." for i in range(number)]
    lines = summary(said(boston(-2)), PLACE, notes=more)
    whole = " ".join(" ".join(lines).split())
    told = sum(sentence in whole for sentence in more)
    assert [sentence in whole for sentence in more] == [True] * told + [False] * (number - told)
    assert told == number or number > told >= 2
    assert (f"{number - told} more with --verbose." in whole) is (told < number)
    assert ("2 Ask underwriting for the reasons on record." in whole) is (steps > 1)
    assert "1 Read the files" in whole
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize(
    ("state", "code"), [("within", 0), ("outside", 1), ("inconclusive", 3), ("no_limit", 3), ("not_run", 3)]
)
def test_the_exit_code_is_told_with_its_meaning(state: str, code: int) -> None:
    assert exit_words(state).startswith(f"exit code {code}: ")


def test_names_of_groups_are_never_broken() -> None:
    long = "W" * 78
    report = said(boston())
    report["headline"]["words"] = f"{long} applicants were approved less often."
    assert long in summary(report, PLACE)[2]


def test_rows_left_out_of_everything_and_of_all_but_approval_rates():
    def refused(n, reason, attribute="race"):
        return {"protected_attribute": attribute, "n": n, "reason": reason}

    rows = [refused(1228, "no_decision"), refused(34, "missing_covariate"), refused(34, "missing_covariate", "sex")]
    assert left_out_words(rows) == "1,228 of the rows read; 34 with gaps, from all but approval rates"
    assert left_out_words(rows[1:]) == "34 with gaps, from all but approval rates"
    assert left_out_words(rows[:1]) == "1,228 of the rows read"
    assert left_out_words([*rows, refused(None, "filtered")]) == "", "a withheld number"
    assert left_out_words([refused(0, "filtered")]) == left_out_words([]) == ""
