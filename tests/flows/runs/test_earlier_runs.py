"""Runs of an earlier version stay readable, and outputs of one run agree in sign, words and figures."""

import hashlib
import json
import re
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from audited_loans import audited
from lake_of_runs import NEW, lake_of_runs

from flows.outcome.alerts import text_of
from flows.outcome.conclusion import ending_of_run
from flows.outcome.ending import Name, checks_of, shown
from flows.runs.first_page import first_page, summary
from flows.runs.index import digest, listed, run_of
from flows.runs.summary import read_summary
from schemas.audit.limits import Verdicts
from schemas.questions import QUESTIONS, QUESTIONS_BEFORE, STATES, STATES_BEFORE
from schemas.tables.verdicts import VERDICTS, effect_words, in_approval, published_verdicts, row_words
from schemas.terms import State, Theory
from tasks.lake.store import Lake
from tasks.lake.views import open_views

GROUP = "audited_loans"

THEN = {key: before for before, key in (QUESTIONS_BEFORE | STATES_BEFORE).items()}
"""Key -> what an earlier version called it."""
LATER = ["part_n", "part_detectable", "choices", "choices_outside", "choices_within"]
"""Columns of verdicts that an earlier version did not have."""


def _then(value: object) -> object:
    """A value of a document in the keys of an earlier version."""
    if isinstance(value, dict):
        return {name: _then(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_then(part) for part in value]
    return THEN.get(value, value) if isinstance(value, str) else value


def earlier(place: Path) -> Lake:
    """The lake of three runs as version 1.3 of report.json had it, with effects on denial."""
    limits = {"direct": {"points": 0.02}, "total": 0.05, "outcome": 0.8}
    lake = lake_of_runs(place, spec={"verdicts": {"limits": limits, "gate": ["direct", "outcome"]}})
    (artifact,) = (a for a in run_of(lake, NEW).partitions[0].tables if a.table == "published_verdicts")
    rows = lake.read(artifact)
    for name in ("theory", "state"):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.schema.field(name), pa.array([THEN.get(v, v) for v in rows[name].to_pylist()]))
    rows = rows.drop_columns(LATER)
    others = {a.table: lake.read(a) for a in run_of(lake, NEW).partitions[0].tables if a.table != artifact.table}
    tables = {**others, artifact.table: rows}
    made = lake.publish("publish", "1" * 32, tables, {}, {}).model_dump(mode="json", exclude={"reused"})
    for path in lake.storage.glob("runs/*/manifest.json"):
        content = json.loads(lake.storage.read(path) or b"")
        content.pop("sha256")
        report_path = f"reports/{content['run']}/report.json"
        document = _then(json.loads(lake.storage.read(report_path) or b"")) | {"schema_version": "1.3"}
        columns = [name for name in document["theories"]["columns"] if name not in LATER]
        document["theories"]["columns"] = columns
        stored = rows.to_pylist()
        document["theories"]["rows"] = [[row[name] for name in columns] for row in stored]
        for group in document["groups"]:
            for row in group["verdicts"]:
                if row["theory"] in ("direct", "total"):
                    ends = row["effect"]["value"], row["interval"]["high"], row["interval"]["low"]
                    value, low, high = (None if end is None else -end for end in ends)
                    row["effect"]["value"], row["interval"]["low"], row["interval"]["high"] = value, low, high
        report = json.dumps(document).encode()
        lake.write_file(report_path, report)
        content |= {"state": THEN.get(content["state"], content["state"]), "partitions": [made]}
        content["exported"] = {"report.json": hashlib.sha256(report).hexdigest()}
        lake.write_file(path, json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    return lake


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Lake]:
    place = tmp_path_factory.mktemp("versions")
    gate = {"verdicts": {"gate": ["similar_applicants", "approval_rates"]}}
    return earlier(place / "then"), lake_of_runs(place / "now", spec=gate)


def test_a_run_of_before_is_listed_shown_and_judged_as_one_of_now(lakes: tuple[Lake, Lake]) -> None:
    then, now = lakes
    stored = then.storage.read(f"runs/{NEW}/manifest.json") or b""
    assert b'"breach"' in stored and b'"direct"' in stored  # noqa: PT018
    assert {run.run: (run.state, run.theories) for run in listed(then)} == {
        run.run: (run.state, run.theories) for run in listed(now)
    }
    assert len(listed(then, state=State.OUTSIDE)) == 1
    assert read_summary(then, NEW).question_states == read_summary(now, NEW).question_states
    pages = [first_page(lake, NEW)[0] for lake in lakes]
    assert summary(pages[0], "x") == summary(pages[1], "x")
    theories = pages[1]["theories"]
    columns = [name for name in theories["columns"] if name not in LATER]
    at = [theories["columns"].index(name) for name in columns]
    former = {
        "columns": [theories["columns"][i] for i in at],
        "rows": [[row[i] for i in at] for row in theories["rows"]],
    }
    for name in ("theories", "groups", "questions"):
        assert pages[0][name] == json.loads(json.dumps({**pages[1], "theories": former}[name])), name
    printed = published_verdicts(then.read(run_of(then, NEW).published(VERDICTS.name)).to_pylist())
    assert {row[printed["columns"].index("choices")] for row in printed["rows"]} == {None}
    assert ending_of_run(then, NEW).name is Name.OUTSIDE
    assert ending_of_run(then, NEW).message == ending_of_run(now, NEW).message
    settings = Verdicts.model_validate(run_of(then, NEW).spec["verdicts"])
    assert settings.gate == (Theory.SIMILAR_APPLICANTS, Theory.APPROVAL_RATES)


def test_tables_and_queries_have_the_keys_of_now(lakes: tuple[Lake, Lake]) -> None:
    query = "SELECT DISTINCT theory, state FROM published_verdicts ORDER BY ALL"
    answers = []
    for lake in lakes:
        with open_views(lake, tables=("published_verdicts",)) as connection:
            answers.append(connection.execute(query).fetchall())
        table = run_of(lake, NEW).published(VERDICTS.name)
        assert table is not None
        assert set(lake.read(table)["theory"].to_pylist()) <= set(Theory)
        assert set(lake.read(table, ["state"])["state"].to_pylist()) <= set(State)
    assert answers[0] == answers[1]


def test_names_of_endings_in_records_of_before_are_read() -> None:
    assert [Name(name) for name in ("Breach", "Within", "Insufficient evidence")] == [
        Name.OUTSIDE,
        Name.WITHIN,
        Name.INCONCLUSIVE,
    ]


def _figures(text: str) -> list[str]:
    return re.findall(r"[-+]?\d+(?:\.\d+)?", text.replace("\N{MINUS SIGN}", "-"))


def _sizes(text: str) -> list[float]:
    """Numbers without their signs: a sentence has words for them."""
    return [abs(float(figure)) for figure in _figures(text)]


@pytest.mark.slow
def test_verdict_terminal_json_and_message_of_one_run_agree(tmp_path_factory: pytest.TempPathFactory) -> None:
    place, run = audited(tmp_path_factory)
    lake = Lake(place / "lake")
    report, _ = first_page(lake, run)
    terminal = " ".join(" ".join(summary(report, "report.html", width=None)).split())
    checks, ending = checks_of(lake, run_of(lake, run)), ending_of_run(lake, run)
    table = run_of(lake, run).published(VERDICTS.name)
    assert table is not None
    rows = [row for row in lake.read(table).to_pylist() if row["role"] == "primary" and not row["withheld"]]
    assert rows
    listed_rows = [dict(zip(report["theories"]["columns"], row, strict=True)) for row in report["theories"]["rows"]]
    by_group = {
        (group["group"], row["theory"], row["measure"]): row for group in report["groups"] for row in group["verdicts"]
    }
    states = {row["theory"]: row for row in report["questions"]}
    for row in rows:
        turned = in_approval(row)
        key = {name: row[name] for name in ("theory", "group", "measure", "role")}
        (listed_row,) = (
            r for r in listed_rows if key.items() <= r.items() and r["decision_maker"] == row["decision_maker"]
        )
        judged = by_group[row["group"], row["theory"], row["measure"]]
        assert listed_row["value"] == judged["effect"]["value"] == turned["value"]
        assert (listed_row["low"], listed_row["limit"]) == (turned["low"], turned["limit"])
        assert listed_row["state"] == judged["state"] == row["state"]
        assert judged["state_words"] == STATES[State(row["state"])].words
        if row["theory"] == Theory.SIMILAR_APPLICANTS and row["value"] is not None:
            value = _figures(effect_words(row))[0]
            assert float(value) == float(_figures(judged["effect"]["shown"])[0])
            assert (float(value) < 0) == (row["value"] > 0), "more denials are fewer approvals"
    for theory, answer in states.items():
        name = QUESTIONS[Theory(theory)]
        assert answer["question"] == name.words
        assert f"{name.short} " in terminal
        assert STATES[State(answer["state"])].words in terminal
    worst = next((row for row in checks.deciding if row_words(row) in ending.message), None)
    if ending.name is Name.OUTSIDE:
        assert worst is not None
        assert shown(worst)["limit"] in ending.message
        assert shown(worst)["question"] == QUESTIONS[Theory(worst["theory"])].short
    assert ending.name == STATES[State(report["state"])].words or report["state"] in ("no_limit", "not_run")
    compared = 0
    for answer in report["questions"]:
        for effect in answer["effects"]:
            key = {"theory": answer["theory"], "protected_attribute": effect["attribute"], "group": effect["group"]}
            line = row_words(next(row for row in rows if key.items() <= row.items()))
            is_ratio = answer["theory"] == Theory.APPROVAL_RATES
            figures = set(_sizes(line.split(": ", 1)[1].split(", at ")[0]))
            assert figures <= set(_sizes(answer["against"] if is_ratio else answer["sentence"])), (line, answer)
            compared += 1
    assert compared, "a result prints figures"
    book = openpyxl.load_workbook(Path(ending.report).parent / "measures.xlsx", read_only=True)
    cells = {cell for line in book["Decide"].iter_rows(values_only=True) for cell in line}
    assert {report["headline"]["words"]} | {answer["sentence"] for answer in report["questions"]} <= cells
    assert {answer["question"] for answer in report["questions"]} <= cells
    assert ending.message in text_of(ending)
