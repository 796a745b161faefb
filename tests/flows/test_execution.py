"""Stages as task runs of a real Prefect server: as many as the plan has stages, with the edges that tables declare."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import SPEC, evenhand_process, loans, spec_of

from flows.concurrency.schedule import waits_for
from schemas.audit.spec import AuditSpec
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


@pytest.mark.parametrize("jobs", [1, 2])
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
