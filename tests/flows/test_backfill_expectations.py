"""A back-fill with the user's own expectations: a warning in one year, and a critical one in another."""

import json
from pathlib import Path

import pandas as pd
import pytest
from conftest import evenhand
from few_loans import between, few_loans, mean
from served_lake import served
from told_runs import told_runs

from flows.partitions.attempts import attempts
from flows.runs.index import read_manifest, runs_of
from schemas.artifact import Partition
from schemas.tables.applications import VALIDATIONS
from schemas.terms import ExitCode
from tasks.lake.store import Lake

WARNED, REFUSED = 2023, 2024

pytestmark = pytest.mark.slow


def test_a_warning_lets_its_year_go_on_and_a_critical_one_refuses_its_own(tmp_path: Path, server: str) -> None:
    spec = few_loans(tmp_path, [mean("warning"), between(70)])
    spec.write_text(spec.read_text().replace("path: loans.csv", f"path: '{tmp_path}/loans_{{year}}.csv'"))
    rows = pd.read_csv(tmp_path / "loans.csv")
    rows.to_csv(tmp_path / f"loans_{WARNED}.csv", index=False)
    rows.assign(income=rows["income"] + 40).to_csv(tmp_path / f"loans_{REFUSED}.csv", index=False)
    lake = Lake(tmp_path / "lake")
    words = ("--years", f"{WARNED}-{REFUSED}", "--lake", lake.location, "--runner", "threads", "--json")
    done = evenhand("backfill", str(spec), *words, server=server)
    assert done.returncode == ExitCode.DATA_QUALITY, done.stderr

    warned, refused = attempts(lake, "few")
    assert warned.state.value == "inconclusive"
    assert refused.state.value == "failed"
    assert refused.stage == "ingest"
    assert "  expectations.1: expect_column_values_to_be_between of income" in refused.message
    assert '{"max_value": 70}: 30 of 60 values; rows L0030, L0031, L0032' in refused.message

    (run,) = told_runs(server, Path(lake.location))
    years = {row["year"]: row for row in json.loads(run.artifacts["years"])}
    assert {year: row["state"] for year, row in years.items()} == {WARNED: "inconclusive", REFUSED: "failed"}
    assert "L0030" not in json.dumps(run.artifacts)

    [audited] = runs_of(lake)
    assert audited.year == WARNED
    partitions = [Partition.model_validate(part) for part in read_manifest(lake, audited.run)["partitions"]]
    rules = lake.read(partitions[0].table(VALIDATIONS.name)).to_pylist()
    assert [(rule["expectation"], rule["success"]) for rule in rules if rule["severity"] == "warning"] == [
        ("expect_column_mean_to_be_between", False)
    ]
    with served(lake.location).client as pages:
        assert "failed (warning)" in pages.get(f"/runs/{audited.run}/quality").text
    report = Path(lake.location) / "reports" / audited.run
    assert any("failed (warning)" in page.read_text() for page in report.rglob("*.html"))
