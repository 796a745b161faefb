"""Runs of one year are those of its partitions: each is valid, kept and found for itself."""

import json
from pathlib import Path

import pytest
from lake_of_runs import NEW, OLD, lake_of_runs

from flows.operations.retention import Keeping, leaving, removals
from flows.runs.index import digest, last_run, read_manifest, runs_of
from flows.runs.run_names import audit_and_year, audit_of
from schemas.audit.partition import ALL
from tasks.lake.store import Lake

LENDER = "loans-2023-7H6G-0123456789"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose older run of the year is of one lender."""
    found = lake_of_runs(tmp_path / "lake")
    told = {**read_manifest(found, OLD), "run": LENDER, "partition": {"column": "lender_id", "value": "7H6G"}}
    found.write_file(f"runs/{LENDER}/manifest.json", json.dumps({**told, "sha256": digest(told)}).encode())
    found.storage.remove(f"runs/{OLD}")
    return found


def test_a_run_is_found_by_its_partition(lake: Lake) -> None:
    assert [run.run for run in runs_of(lake, "loans", 2023, "7H6G")] == [LENDER]
    assert [run.run for run in runs_of(lake, "loans", 2023, ALL)] == [NEW], "a run without `by` is of every row"
    assert [run.run for run in runs_of(lake, "loans", 2023)] == [LENDER, NEW]
    assert [run.value for run in runs_of(lake, "loans", 2023)] == ["7H6G", ALL]


def test_a_year_is_its_run_of_every_row_and_a_lender_its_own(lake: Lake) -> None:
    whole, lender = last_run(lake, "loans", 2023), last_run(lake, "loans", 2023, "7H6G")
    assert (whole and whole.run, lender and lender.run) == (NEW, LENDER)
    assert last_run(lake, "loans", 2023, "another") is None


def test_each_partition_keeps_its_newest_run(lake: Lake, tmp_path: Path) -> None:
    assert {run.run for run in leaving(lake, runs_of(lake), Keeping(1))}.isdisjoint({LENDER, NEW})
    without = lake_of_runs(tmp_path / "without")
    assert OLD in {run.run for run in leaving(without, runs_of(without), Keeping(1))}


def test_counts_of_partitions_go_when_nobody_asked_for_days(lake: Lake) -> None:
    lake.write_file("parts/ab.json", b"{}")
    assert [each.name for each in removals(lake, Keeping(9, days=1)) if each.kind == "counts"] == []
    assert [each.name for each in removals(lake, Keeping(9, days=-1)) if each.kind == "counts"] == ["ab.json"]


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("loans-2023-0123456789", ("loans", "2023")),
        ("loans-2023-7H6G_LLC-0123456789", ("loans", "2023")),
        ("hmda-tx-2022-all-0123456789", ("hmda-tx", "2022")),
        ("hmda-tx-2022-0123456789", ("hmda-tx", "2022")),
    ],
)
def test_an_id_begins_with_audit_and_year(run: str, told: tuple[str, str]) -> None:
    assert audit_and_year(run) == told
    assert audit_of(run) == told[0]
