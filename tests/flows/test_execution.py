"""Stages as task runs of a real Prefect server: as many as the plan has stages, with the edges that tables declare."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import SPEC, evenhand, evenhand_process, loans, spec_of
from lenders_of_loans import MIDDLE, YEAR, write_lenders
from loans_by_year import BREACH, WITHIN, write_years, yearly_spec

from flows.cli.options import BUNDLED
from flows.concurrency.schedule import waits_for
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import listed_value
from flows.partitions.years import spec_of_year
from schemas.audit.file import spec_text
from schemas.audit.spec import AuditSpec
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

RAN = (0, 1, 3)


def asked(server: str, what: str, **body: object) -> list[dict[str, Any]]:
    """What the API of the server has of a kind, at most 200."""
    answer = httpx.post(f"{server}/{what}/filter", json={**body, "limit": 200}, timeout=30)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()
    return found


def flow_runs(server: str, lake: Path) -> list[dict[str, Any]]:
    """The flow runs with a lake among their parameters, the oldest first."""
    runs = asked(server, "flow_runs", sort="START_TIME_ASC")
    return [run for run in runs if run["parameters"].get("lake") == str(lake)]


def graph(server: str, flow_run: str) -> dict[str, set[str]]:
    """Last words of the name of each task run -> those of the task runs that it waits for."""
    runs = asked(server, "task_runs", flow_runs={"id": {"any_": [flow_run]}})
    names = {run["id"]: run["name"] for run in runs}
    return {
        run["name"]: {
            names[source["id"]] for sources in run["task_inputs"].values() for source in sources if "id" in source
        }
        for run in runs
    }


def declared(spec: AuditSpec, flow_run_name: str) -> dict[str, set[str]]:
    """The same by the tables that the stages declare."""
    steps = plan(spec).steps
    names = [f"{flow_run_name} {step.name}" for step in steps]
    return {name: {names[at] for at in waits} for name, waits in zip(names, waits_for(steps), strict=True)}


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.slow)])
def test_every_stage_is_a_task_run_with_the_edges_of_its_tables(tmp_path: Path, server: str, jobs: int) -> None:
    loans().to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}"))
    lake = tmp_path / "lake"
    words = ("audit", str(tmp_path / "loans.yaml"), "--lake", str(lake), "--jobs", str(jobs), "--quiet")
    done = evenhand_process(*words, server=server)
    assert done.returncode in RAN, done.stderr
    (run,) = flow_runs(server, lake)
    expected = declared(spec_of(tmp_path), run["name"])
    assert graph(server, run["id"]) == expected
    assert sum(map(len, expected.values())) > len(expected)


@pytest.mark.long
def test_boston_has_a_task_run_a_stage_and_the_edges_of_its_tables(tmp_path: Path, server: str) -> None:
    done = evenhand_process("audit", "--lake", str(tmp_path / "lake"), "--quiet", "--jobs", "2", server=server)
    assert done.returncode in RAN, done.stderr
    (run,) = flow_runs(server, tmp_path / "lake")
    spec = read_spec(spec_text(BUNDLED), str(BUNDLED), {}).spec
    found = graph(server, run["id"])
    assert found == declared(spec, run["name"])
    assert len(found) == len(plan(spec).steps)
    assert sum(map(len, found.values())) == sum(map(len, waits_for(plan(spec).steps)))


def sub_flows(server: str, lake: Path) -> dict[str, dict[str, Any]]:
    """The sub-flow runs of the last back-fill on a lake by their names."""
    *_, parent = [run for run in flow_runs(server, lake) if not run["parent_task_run_id"]]
    runs = asked(server, "flow_runs", flow_runs={"parent_flow_run_id": {"any_": [parent["id"]]}})
    return {run["name"]: run for run in runs}


@pytest.mark.slow
@pytest.mark.parametrize("runner", [pytest.param("processes", marks=pytest.mark.long), "threads"])
def test_every_year_is_a_sub_flow_run_with_its_stages(
    tmp_path: Path, server: str, runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_REPORTS_URL", "https://audits.example")
    path, lake, years = write_years(tmp_path), tmp_path / "lake", (WITHIN, BREACH)
    words = ("backfill", str(path), "--years", f"{WITHIN},{BREACH}", "--lake", str(lake), "--runner", runner)
    done = evenhand(*words, server=server)
    assert done.returncode == 1, done.stderr
    runs = sub_flows(server, lake)
    assert {name: run["state_name"] for name, run in runs.items()} == {
        f"yearly {WITHIN}": "Within the limit",
        f"yearly {BREACH}": "Outside the limit",
    }
    spec = yearly_spec(tmp_path)
    for year in years:
        run = runs[f"yearly {year}"]
        assert graph(server, run["id"]) == declared(spec_of_year(spec, year, Lake(lake)), run["name"])
        shown = asked(server, "artifacts", flow_runs={"id": {"any_": [run["id"]]}})
        artifacts = {artifact["key"]: artifact["data"] for artifact in shown}
        address = rf"https://audits\.example/yearly-{year}-[^ /]+/report\.html"
        assert re.search(rf"\({address}\)", artifacts["verdict"])
        assert re.search(rf"\({address}\)", artifacts["report"])
        assert {row["state"] for row in json.loads(artifacts["checks"])}
        lines = asked(server, "logs", logs={"flow_run_id": {"any_": [run["id"]]}})
        assert any(f"yearly {year} stage report: " in line["message"] for line in lines)


@pytest.mark.slow
def test_a_small_partition_is_one_task_run_and_its_back_fill_says_where_its_stages_are(
    tmp_path: Path, server: str
) -> None:
    path, lake = write_lenders(tmp_path), tmp_path / "lake"
    words = ("backfill", str(path), "--years", str(YEAR), "--lake", str(lake), "--by-value", MIDDLE)
    words = (*words, "--runner", "threads")
    done = evenhand(*words, server=server)
    assert done.returncode in RAN, done.stderr
    (run,) = flow_runs(server, lake)
    assert [*graph(server, run["id"])] == [f"lenders {YEAR} {MIDDLE}"]
    lines = [line["message"] for line in asked(server, "logs", logs={"flow_run_id": {"any_": [run["id"]]}})]
    assert "stages of partitions below 10,000 rows are in the log" in lines
    assert any(f"lenders {YEAR} {MIDDLE} stage report: " in line for line in lines)


@pytest.mark.slow
def test_a_partition_with_enough_rows_is_a_sub_flow_run_with_its_stages(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_SUB_FLOW_ROWS", "300")
    path, lake = write_lenders(tmp_path), Lake(tmp_path / "lake")
    words = ("backfill", str(path), "--years", str(YEAR), "--lake", lake.location, "--by-value", MIDDLE)
    words = (*words, "--runner", "threads")
    done = evenhand(*words, server=server)
    assert done.returncode in RAN, done.stderr
    [(name, run)] = sub_flows(server, tmp_path / "lake").items()
    assert name == f"lenders {YEAR} {MIDDLE}"
    spec = read_spec(path.read_text(), path.name, {}).spec
    part = spec_of_part(spec, YEAR, listed_value(spec, YEAR, lake, MIDDLE), lake)
    assert graph(server, run["id"]) == declared(part, run["name"])
    told = json.dumps({name: value for name, value in run["parameters"].items() if name != "spec"})
    listed = listed_value(spec, YEAR, lake, MIDDLE)
    assert MIDDLE in told
    assert not [fact for fact in (listed.rows, listed.usable, listed.rows_sha256) if str(fact) in told], "exact counts"
    lines = [line["message"] for line in asked(server, "logs", sort="TIMESTAMP_DESC")]
    assert "stages of partitions below 300 rows are in the log" not in lines
