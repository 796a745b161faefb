"""A flow run whose process is killed in each stage in turn: the living worker takes it up, and the tables are the same.

A run is taken up twice, so that a few runs are needed; each is of another year, so that it computes every stage.
"""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from restartable_server import Deployed, Server, deployed
from shaken_years import YEARS, left_alone, write_four_years

from flows.runs.index import runs_of
from tasks.lake.store import Lake

pytestmark = pytest.mark.long

STAGES = ("ingest", "preprocess", "score", "generate", "detect cst", "measure", "publish", "report")
_KILLS = 2
"""As often as a run is taken up again."""
_MOST_SECONDS = 240.0


def at_stage(lake: Path) -> tuple[int, str]:
    """The process of the run and the stage that it computes; 0 where none does."""
    for path in (lake / "locks" / "alive").glob("*.json"):
        with suppress(ValueError, FileNotFoundError):
            said = json.loads(path.read_text())
            if said["stage"] and not said["outcome"]:
                return said["pid"], said["stage"]
    return 0, ""


def killed(lake: Path, run: Any, deployment: Deployed, left: set[str]) -> list[str]:
    """Kill the process of a run in stages that are left, until it is over; the stages in which it was killed."""
    done: list[str] = []
    dead: set[int] = set()
    limit = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < limit:
        pid, stage = at_stage(lake)
        if stage in left and pid not in dead and len(done) < _KILLS:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                dead.add(pid)
                done.append(stage)
                left.discard(stage)
        if deployment.over(run) is not None:
            return done
        time.sleep(0.01)
    raise AssertionError(f"not over within {_MOST_SECONDS:g} s; killed in {done}")


def test_a_run_that_is_killed_in_any_stage_comes_to_the_same(tmp_path: Path) -> None:
    spec, lake = write_four_years(tmp_path, rows=900), tmp_path / "lake"
    expected = left_alone(spec, tmp_path / "quiet")
    left = set(STAGES)
    (tmp_path / "prefect").mkdir()
    server = Server(tmp_path / "prefect")
    server.start()
    try:
        with deployed(server, "flows.audit.audit") as deployment:
            worker = server.worker(lake)
            for year in YEARS:
                of_year = tmp_path / f"spec-{year}.yaml"
                of_year.write_text(spec.read_text().replace("{year}", str(year)).replace("2024", str(year)))
                run = deployment.begin(spec=str(of_year), lake=str(lake))
                killed(lake, run, deployment, left)
                kind, name, message = deployment.state(run)
                assert kind == "COMPLETED", (name, message, server.log())
            found = {
                run.year: {f"{p.stage} {a.table}": a.sha256 for p in run.partitions for a in p.tables}
                for run in runs_of(Lake(lake))
            }
            assert found == expected
            assert not left, "a stage that was over before it could be seen"
            worker.terminate()
            worker.wait(timeout=45)
    finally:
        server.end()
