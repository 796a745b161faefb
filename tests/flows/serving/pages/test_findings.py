"""Pages with rows of persons: which exist, what each enters in the log, and identifiers on request alone."""

import json
import re

import pyarrow as pa
import pytest
from lake_of_runs import NEW, OLD, lake_of_runs
from served_lake import Served, served

from flows.runs.index import digest, read_manifest
from schemas.tables.applications import DECISIONS
from schemas.tables.findings import EVIDENCE, FINDINGS
from tasks.lake import log
from tasks.lake.store import Lake

COMPLAINANTS = 60
"""More than stand on a page."""
IDENTIFIER = re.compile(r"\bL\d{4}\b")


def rows_of_persons() -> dict[str, pa.Table]:
    """Complainants of two groups, each with one nearest applicant of its own and one of the reference group."""
    ids = [f"L{n:04d}" for n in range(COMPLAINANTS + 2)]
    mine, near = ids[:COMPLAINANTS], [(role, row) for row in ids[:COMPLAINANTS] for role in ("control", "test")]
    case = {"method": "cst", "decision_maker": "lender", "protected_attribute": "race"}

    def alike(number: int, **values: object) -> dict[str, list[object]]:
        return {name: [value] * number for name, value in values.items()}

    unknown = dict.fromkeys(("control", "test", "low", "high", "p", "refusal"))
    findings = FINDINGS.build(
        row_id=mine,
        group=["Black", "Asian"] * (COMPLAINANTS // 2),
        statistic=[n / 100 for n in range(COMPLAINANTS)],
        **alike(COMPLAINANTS, **case, **unknown, subgroup=0, verdict="detected", q=0.01, weight=1.0),
    )
    evidence = EVIDENCE.build(
        row_id=[row for _, row in near],
        role=[role for role, _ in near],
        other_row_id=[ids[-1] if role == "test" else ids[-2] for role, _ in near],
        **alike(len(near), **case, rank=1, value=0.5),
    )
    unfitted = dict.fromkeys(("score", "threshold", "fold"))
    decided = alike(len(ids), decision_maker="lender", favourable=False, outcome=False, explained=True, **unfitted)
    applicants = pa.table({"row_id": ids, "income": [float(n) for n in range(len(ids))]})
    decisions = DECISIONS.build(row_id=ids, **decided)
    return {"findings": findings, "evidence": evidence, "applicants": applicants, "decisions": decisions}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = lake_of_runs(tmp_path_factory.mktemp("found") / "lake")
    stage = made.publish("detect", "2" * 32, rows_of_persons(), {}, {}).model_dump(mode="json", exclude={"reused"})
    content = read_manifest(made, NEW)
    content = {**content, "partitions": [*content["partitions"], stage]}
    made.write_file(f"runs/{NEW}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    return made


@pytest.fixture(scope="module")
def place() -> str:
    """Address of the findings of its run."""
    return f"/runs/{NEW}/findings"


@pytest.fixture(scope="module")
def reader(lake: Lake) -> Served:
    return served(lake.location, by="Bob Ray", restricted=True)


def read(lake: Lake, before: int) -> list[str]:
    """Texts of the entries on reading since one."""
    return [entry.text for entry in log.entries(lake)[before:] if entry.event == "read"]


@pytest.mark.parametrize(
    "asked", ["?page=99999999", f"?page={10**30}", "?page=9", "?group=nobody", "?method=%00", "/99999999", "/0"]
)
def test_what_is_not_there_is_404_and_enters_nothing(lake: Lake, reader: Served, place: str, asked: str) -> None:
    before = log.head(lake).n
    assert reader.get(place + asked).status_code == 404
    assert reader.get(f"{place}/{10**30}").status_code == 404
    assert read(lake, before) == []


def test_a_run_without_findings_has_no_such_page(reader: Served) -> None:
    for asked in ("", "/1", "?method=cst"):
        assert reader.get(f"/runs/{OLD}/findings{asked}").status_code == 404


def test_each_page_is_an_entry_that_says_what_was_shown(lake: Lake, reader: Served, place: str) -> None:
    before = log.head(lake).n
    for asked in ("", "?page=-3", "?page=2", "?group=Black", "/1", "/1?ids=1", "/2?group=Black&ids=true"):
        assert reader.get(place + asked).status_code == 200
    assert read(lake, before) == [
        "findings of cst, page 1",
        "findings of cst, page 1",
        "findings of cst, page 2",
        "findings of cst, page 1, Black",
        "findings, number 1 of cst",
        "findings, number 1 of cst, with ids",
        "findings, number 2 of cst, Black, with ids",
    ]


def test_links_show_and_hide_identifiers_of_rows(reader: Served, place: str) -> None:
    page = reader.get(f"{place}/1").text
    assert IDENTIFIER.search(page) is None
    [show] = re.findall(r'<a href="([^"]*)">Show identifiers of rows</a>', page)
    shown = reader.get(show.replace("&amp;", "&")).text
    assert IDENTIFIER.search(shown) is not None
    assert "Show identifiers" not in shown
    [hide] = re.findall(r'<a href="([^"]*)">Hide identifiers of rows</a>', shown)
    assert IDENTIFIER.search(reader.get(hide.replace("&amp;", "&")).text) is None
