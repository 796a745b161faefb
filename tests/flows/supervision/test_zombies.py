"""Runs whose process died: found by the lock that they no longer hold, told to Prefect, and their drafts removed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from conftest import REPOSITORY, environment

from flows.operations.retention import Keeping, collect
from flows.supervision import presence, zombies
from flows.supervision.crash import report_crash
from flows.supervision.presence import alone, at_work, dead
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake

WAITS = """\
import sys, time
from prefect import flow
from flows.supervision.announcement import announced

@flow(name="waits")
@announced
def waits(lake: str, seconds: float) -> str:
    print("at work", flush=True)
    time.sleep(seconds)
    return "done"

waits(lake=sys.argv[1], seconds=float(sys.argv[2]))
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def on_server(server: str) -> Iterator[None]:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server}):
        yield


def flow(lake: Lake, seconds: float, server: str) -> "subprocess.Popen[str]":
    """A flow in a process of its own, that is at work on the lake."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, lake.location, str(seconds)],
        env=environment(server),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    return process


def killed(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()  # type: ignore[union-attr]


def state(run: str) -> tuple[str, str]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(UUID(run)).state
    assert found is not None
    return found.type.value, found.message or ""


@pytest.mark.usefixtures("on_server")
class TestOnAServer:
    def test_a_killed_run_is_marked_and_one_at_work_is_not(self, lake: Lake, server: str) -> None:
        working, doomed = flow(lake, 600, server), flow(lake, 600, server)
        try:
            assert dead(lake) == []
            killed(doomed)
            (gone,) = dead(lake)
            assert gone.pid == doomed.pid
            assert state(gone.run)[0] == "RUNNING", "Prefect itself does not notice"
            (marked,) = zombies.mark_dead(lake)
            assert (marked.flow_run, marked.resumed) == (gone.run, False)
            kind, message = state(gone.run)
            assert kind == "CRASHED"
            assert f"process {doomed.pid} on " in message
            assert zombies.mark_dead(lake) == [], "once"
            assert [p.pid for p in presence.recorded(lake)] == [working.pid]
        finally:
            killed(working)

    def test_a_run_whose_process_is_being_ended_is_marked(self, lake: Lake, server: str) -> None:
        working = flow(lake, 600, server)
        try:
            (run,) = [at_work.run for at_work in presence.alive(lake)]
            zombies.mark_stopped(run)
            zombies.mark_stopped(None)  # a command without a flow run
            assert state(run) == ("CRASHED", "Stopped by a signal.")
        finally:
            killed(working)

    def test_the_next_run_on_the_lake_marks_it(self, lake: Lake, server: str) -> None:
        killed(flow(lake, 600, server))
        (gone,) = dead(lake)
        (lake.root / "tmp" / "ingest-0").mkdir()
        (lake.root / "locks" / "ingest-0.lock").touch()
        after = flow(lake, 0, server)
        assert after.wait(timeout=240) == 0
        after.stdout.close()  # type: ignore[union-attr]
        assert state(gone.run)[0] == "CRASHED"
        assert not (lake.root / "tmp" / "ingest-0").exists()
        assert list(presence.recorded(lake)) == [], "a run that ended is at work no longer"

    def test_a_run_of_another_lake_or_another_server_is_left_alone(
        self, lake: Lake, server: str, tmp_path: Path
    ) -> None:
        killed(flow(lake, 600, server))
        (gone,) = dead(lake)
        assert zombies.mark_dead(Lake(tmp_path / "other")) == []
        assert state(gone.run)[0] == "RUNNING"
        unknown = replace(gone, run="00000000-0000-4000-8000-000000000000", name="other")
        (presence._home(lake) / "other.json").write_text(json.dumps(asdict(unknown)))
        (marked,) = zombies.mark_dead(lake)
        assert marked.flow_run == gone.run
        assert [p.run for p in dead(lake)] == [unknown.run], "its server is not the one that was asked"

    def test_a_run_that_was_taken_and_not_begun_is_marked_after_a_while(self, lake: Lake, tmp_path: Path) -> None:
        from prefect import flow as declare
        from prefect.client.orchestration import get_client
        from prefect.states import Pending

        @declare(name="waits")
        def waits(lake: str) -> None: ...

        with get_client(sync_client=True) as client:
            ours = client.create_flow_run(waits, parameters={"lake": lake.location}, state=Pending())
            other = client.create_flow_run(waits, parameters={"lake": str(tmp_path)}, state=Pending())
        now = datetime.now(UTC)
        assert zombies.mark_dead(lake, resume=True, now=now) == []
        found = zombies.mark_dead(lake, resume=True, now=now + 2 * zombies.SOON)
        assert [marked.flow_run for marked in found] == [str(ours.id)]
        assert (state(str(ours.id))[0], state(str(other.id))[0]) == ("CRASHED", "PENDING")


class TestPresence:
    def test_a_record_goes_with_its_run(self, lake: Lake) -> None:
        with at_work(lake, "command-1"), at_work(lake, "command-1"):
            assert [p.run for p in presence.alive(lake)] == ["command-1", "command-1"], "a run within a run"
            assert dead(lake) == []
        assert list(presence._home(lake).iterdir()) == []

    def test_a_process_id_that_was_given_again_does_not_pass_for_the_dead(self, lake: Lake) -> None:
        presence._home(lake).mkdir(parents=True)
        gone = {"run": "command-1", "host": "here", "pid": os.getpid(), "started": "2020-01-01T00:00:00Z", "name": "a"}
        (presence._home(lake) / "a.json").write_text(json.dumps(gone))
        assert [p.run for p in dead(lake)] == ["command-1"]

    def test_a_torn_record_is_passed_over(self, lake: Lake) -> None:
        presence._home(lake).mkdir(parents=True)
        (presence._home(lake) / "command-1.json").write_text('{"run": "comm')
        assert dead(lake) == []

    def test_nobody_is_alone_on_a_lake_where_somebody_works(self, lake: Lake) -> None:
        with (
            at_work(lake, "command-1"),
            pytest.raises(InfrastructureError, match=r"process .* at work since"),
            alone(lake),
        ):
            pass
        with (
            lake.lock("year-loans-2020"),
            pytest.raises(InfrastructureError, match="year-loans-2020"),
            alone(lake),
        ):
            pass

    def test_who_comes_while_files_are_removed_waits(self, lake: Lake) -> None:
        order = []

        def work() -> None:
            with at_work(lake, "command-1"):
                order.append("work")

        worker = threading.Thread(target=work)
        with alone(lake):
            worker.start()
            time.sleep(0.3)
            order.append("removed")
        worker.join(timeout=30)
        assert order == ["removed", "work"]


class TestLeftovers:
    def test_a_draft_goes_unless_its_writer_holds_its_lock(self, lake: Lake) -> None:
        for name in ("score-1", "score-2"):
            (lake.root / "tmp" / name).mkdir()
            (lake.root / "locks" / f"{name}.lock").touch()
        with lake.lock("score-1"):
            assert [path.name for path in zombies.clear_leftovers(lake)] == ["score-2"]
        assert [path.name for path in zombies.clear_leftovers(lake)] == ["score-1"]

    def test_a_draft_without_a_lock_goes_after_a_day(self, lake: Lake) -> None:
        draft = lake.root / "tmp" / "manifest.json-77"
        draft.write_text("{}")
        assert zombies.clear_leftovers(lake) == []
        long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
        os.utime(draft, (long_ago, long_ago))
        assert zombies.clear_leftovers(lake) == [draft]
        assert not draft.exists()

    def test_a_crash_file_stays_until_gc_finds_it_older_than_its_days(self, lake: Lake) -> None:
        said = report_crash(KeyError("x"), ["audit", "--lake", lake.location])
        (file,) = (lake.root / "tmp").iterdir()
        assert str(file) in said
        long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
        os.utime(file, (long_ago, long_ago))
        assert zombies.clear_leftovers(lake) == []
        assert collect(lake, Keeping(runs=1, days=3)) == []
        assert file.is_file()
        draft = lake.root / "tmp" / "manifest.json-77"  # a file, too
        draft.write_text("{}")
        os.utime(draft, (long_ago, long_ago))
        gone = collect(lake, Keeping(runs=1, days=1))
        assert [(each.kind, each.path) for each in gone] == [("draft", draft), ("crash file", file)]
        assert not file.exists()
        assert not draft.exists()
