"""A lake of fifty runs: what operators ask for every day takes less than five seconds of a processor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment
from lake_of_runs import NEW, lake_of_runs

from flows.runs.index import digest
from flows.runs.signatures import certify
from schemas.terms import ExitCode

pytestmark = pytest.mark.long
MOST_SECONDS = 5.0
AUDITS, YEARS = 5, 10


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty runs of five audits and ten years, each in the log of the lake; their partitions are those of one."""
    lake = lake_of_runs(tmp_path_factory.mktemp("fifty") / "lake")
    said = json.loads((lake.root / "runs" / NEW / "manifest.json").read_text())
    report = (lake.root / "reports" / NEW / "report.json").read_bytes()
    del said["sha256"]
    for number in range(AUDITS * YEARS - 3):
        audit, year = f"audit{number % AUDITS}", 2000 + number // AUDITS
        run = f"{audit}-{year}-{number:010x}"
        own = {**said, "run": run, "dataset": audit, "year": year, "spec": {**said["spec"], "name": audit}}
        lake.write_file(f"reports/{run}/report.json", report)
        lake.write_file(f"runs/{run}/manifest.json", json.dumps({**own, "sha256": digest(own)}).encode())
        certify(lake, run)
    return lake.root


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["status"], ExitCode.WITHIN, "years of audit4"),
        (["gc", "--keep", "1", "--below-minimum", "a test"], 0, "nothing was removed, as --yes was not given"),
        (["sql", "SELECT count(*) FROM published_measures"], 0, "count_star()"),
    ],
    ids=["status", "gc", "sql"],
)
def test_each_takes_less_than_five_seconds(words: list[str], code: int, told: str, fifty: Path) -> None:
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words, "--lake", str(fifty)],
        env=environment(None),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
    )
    after = os.times()
    assert done.returncode == code, done.stderr
    assert told in done.stdout
    taken = after.children_user + after.children_system - before.children_user - before.children_system
    assert taken < MOST_SECONDS
