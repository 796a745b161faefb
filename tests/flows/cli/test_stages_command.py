"""`evenhand stages`: a table for people, JSON for programs, and what it says of its exact numbers."""

import json
from pathlib import Path

from conftest import evenhand
from lake_of_runs import NEW, lake_of_runs


def test_stages_are_printed_with_their_sums_and_as_json(tmp_path: Path) -> None:
    lake_of_runs(tmp_path)
    shown = evenhand("stages", NEW, "--lake", str(tmp_path))
    told = evenhand("stages", NEW, "--lake", str(tmp_path), "--json")
    assert shown.returncode == told.returncode == 0, shown.stderr
    assert "publish\t000000000000\t500" in shown.stdout
    assert "in all 1.0 s of stages, 0.0 CPU s" in shown.stderr
    assert [row["seconds"] for row in json.loads(told.stdout)] == [1.0]
    assert "restricted: not for publication" in shown.stderr


def test_a_run_that_is_not_there_is_an_error_that_names_the_known(tmp_path: Path) -> None:
    lake_of_runs(tmp_path)
    told = evenhand("stages", "loans-1999-0000000000", "--lake", str(tmp_path))
    assert told.returncode == 2
    assert "no run" in told.stderr
