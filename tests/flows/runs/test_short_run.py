"""The run of one lender: a short report in the lake, all of it on demand, and sealed before and after."""

from pathlib import Path

import pytest
from conftest import SPEC, evenhand, loans, spec_of

from flows.runs.index import read_manifest
from flows.runs.record import publish
from flows.runs.signatures import verify_run
from schemas.audit.partition import By, Part
from tasks.lake.store import Lake
from tasks.plan import plan, walk

QUICK = {"methods__fgce": "null", "methods__cst": "null", "causal_graph": "{edges: []}", "bootstrap__draws": "100"}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, str]:
    """A lake with the run of one of two lenders."""
    place = tmp_path_factory.mktemp("lenders")
    loans(600).assign(lender=["north", "south"] * 300).to_csv(place / "loans.csv", index=False)
    whole = spec_of(place, SPEC, **QUICK)
    part = Part(column="lender", value="north", rows_sha256="ab" * 32)
    source = whole.source.model_copy(update={"part": part})
    spec = whole.model_copy(update={"source": source, "by": By(column="lender", minimum=100)})
    lake, planned = Lake(place / "lake"), plan(spec)
    publish(
        lake, planned, walk(planned.steps, lambda step, given: step.stage.run(lake, given, step.settings, step.modules))
    )
    return lake, planned.run


def test_the_lake_has_three_files_of_its_report_and_the_command_makes_the_others(audited, tmp_path: Path) -> None:
    lake, run = audited
    exported = read_manifest(lake, run)["exported"]
    assert set(exported) == {"report.html", "report.json", "measures.parquet"}
    assert verify_run(lake.location, run)["altered"] == 0
    done = evenhand("report", run, "--lake", lake.location, "--out", str(tmp_path / "whole"))
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path / "whole").as_posix() for path in (tmp_path / "whole").rglob("*.*")}
    assert {*exported, "pages/approval-rates.html", "evidence/outcomes.html", "method.html", "measures.xlsx"} <= made
    assert (tmp_path / "whole" / "measures.parquet").read_bytes() == (
        lake.root / "reports" / run / "measures.parquet"
    ).read_bytes()
    assert verify_run(lake.location, run)["altered"] == 0
    assert set(read_manifest(lake, run)["exported"]) == set(exported)


def test_the_terminal_says_whose_rows_they_are(audited) -> None:
    lake, run = audited
    shown = evenhand("show", run, "--lake", lake.location).stdout.splitlines()[0]
    assert shown.startswith("Synthetic loans, 2024, lender north (")
