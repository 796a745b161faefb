"""report.json: valid by its schema, small, and each number beside what is printed of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from decide_runs import boston
from exported_run import HOSTILE, REFERENCE, material
from jsonschema import Draft202012Validator

from schemas.report import schema
from schemas.tables.verdicts import PUBLISHED_DECISION_DIRECTION
from schemas.terms import Theory
from tasks.reporting.exports.report_json import document
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.material import Material
from tasks.reporting.question_pages.page import question_pages

MOST_BYTES = 300_000
PAGES = ("report.html", "pages/approval-rates.html")


def said(made: Material) -> dict[str, Any]:
    content = document(made, decide(boston()), PAGES)
    found: dict[str, Any] = json.loads(content)
    Draft202012Validator(schema()).validate(found)
    assert len(content) < MOST_BYTES
    return found


def test_it_is_valid_and_says_what_the_first_page_says() -> None:
    found, decision = said(material()), decide(boston())
    assert found["headline"]["words"] == decision.headline.words
    assert [q["sentence"] for q in found["questions"]] == [q.sentence for q in decision.questions]
    assert [each["points"] for each in found["figures"]] == [
        {"value": each.value, "shown": each.text} for each in decision.figures.comparisons
    ]
    assert found["pages"] == list(PAGES)
    assert found["state"] == "outside"
    assert found["source"]["rows"] == {"value": 500, "shown": "500"}


@pytest.mark.parametrize(
    "groups", [(), HOSTILE, tuple(f"{i} {'W' * 78}" for i in range(12))], ids=["none", "hostile", "many"]
)
def test_it_is_valid_and_small_whatever_the_groups_are(groups: tuple[str, ...]) -> None:
    attributes = ("race", "sex", "age")
    found = said(material(groups, attributes))
    assert [(each["attribute"], each["group"]) for each in found["groups"]] == [
        (attribute, group) for attribute in attributes for group in (REFERENCE, *groups)
    ]


def test_a_number_stands_beside_what_is_printed_of_it() -> None:
    black = said(material())["groups"][1]
    assert black["n"] == {"value": 1199, "shown": "1,199"}
    [approval] = black["approvals"]
    assert approval["rate"] == {"value": 0.676, "shown": "68 of 100"}
    direct = next(each for each in black["verdicts"] if each["theory"] == Theory.SIMILAR_APPLICANTS)
    assert direct["effect"] == {"value": -0.126, "shown": "−13"}
    assert direct["interval"] == {"low": -0.182, "high": -0.061, "kind": "verdict", "shown": "[−18, −6]"}
    assert direct["unit"] == "points of approval"


def test_what_is_printed_of_a_verdict_is_what_its_page_prints() -> None:
    made = material()
    pages = question_pages(made, decide(run_of(made)))
    for judged in said(made)["groups"][1]["verdicts"]:
        page = next((pages[q.page] for q in decide(boston()).questions if q.theory == judged["theory"]), None)
        if page is None or judged["theory"] == Theory.OWN_LIMITS:
            continue
        [table] = [table for part in page.parts for table in part.tables]
        [row] = [row for row in table.rows if row[0].text == "Black"]
        cells = [cell.text for cell in row]
        assert judged["effect"]["shown"] in cells, judged["theory"]
        assert judged["interval"]["shown"] in cells, judged["theory"]


def test_a_withheld_group_tells_no_number_and_no_state() -> None:
    found = said(material(withheld=["Black"]))
    black = next(each for each in found["groups"] if each["group"] == "Black")
    assert black["n"] == black["approvals"][0]["rate"] == {"value": None, "shown": "withheld"}
    assert {each["state_words"] for each in black["verdicts"]} == {"withheld"}
    assert {each["effect"]["value"] for each in black["verdicts"]} == {None}
    names = found["theories"]["columns"]
    rows = [dict(zip(names, row, strict=True)) for row in found["theories"]["rows"]]
    assert {row["state"] for row in rows if row["group"] == "Black"} == {"inconclusive (withheld)"}


def test_checks_count_what_held_and_tell_what_did_not() -> None:
    [checks] = said(material())["checks"]
    assert checks["expectations"] == 3
    [broken] = checks["broken"]
    assert (broken["column"], broken["unexpected"], broken["set_aside"]) == ("c2", 12, True)


def test_an_exchanged_decision_is_one_warning_and_one_that_is_not_checked_is_none() -> None:
    row = {"decided_by": "columns", "columns": "income +", "n": 500, "auc": 0.31, "high": 0.34, "reversed": True}
    for told, warned in ((row, 1), ({**row, "auc": 0.7, "high": 0.73, "reversed": False}, 0)):
        made = material()
        found = said(replace(made, tables={**made.tables, PUBLISHED_DECISION_DIRECTION.name: (told,)}))["warnings"]
        assert len(found) == warned
        assert all(text.startswith("columns_swapped: ") and "0.31" in text for text in found)


def test_paths_of_the_machine_stay_out() -> None:
    made = material()
    secret = made.settings.model_copy(
        update={"source": made.settings.source.model_copy(update={"path": "/srv/secret.csv"})}
    )
    assert "secret" not in json.dumps(said(replace(made, settings=secret)))


def test_equal_runs_give_equal_bytes() -> None:
    decision = decide(boston())
    assert document(material(), decision, PAGES) == document(material(), decision, PAGES)
