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
from flows.outcome.ending import Name
from flows.outcome.run_state import ending_of
from flows.supervision import dead_runs, presence
from flows.supervision.crash_files import report_crash
from flows.supervision.presence import alone, at_work, dead
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake

WAITS = """\
import sys, time
from prefect import flow
from flows.outcome.run_state import announced

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
            (marked,) = dead_runs.mark_dead(lake)
            assert (marked.flow_run, marked.resumed) == (gone.run, False)
            kind, message = state(gone.run)
            assert kind == "CRASHED"
            assert f"process {doomed.pid} on " in message
            assert dead_runs.mark_dead(lake) == [], "once"
            assert [p.pid for p in presence.recorded(lake)] == [working.pid]
        finally:
            killed(working)

    @pytest.mark.long
    def test_a_run_whose_process_is_being_ended_is_marked(self, lake: Lake, server: str) -> None:
        working = flow(lake, 600, server)
        try:
            (run,) = [at_work.run for at_work in presence.alive(lake)]
            dead_runs.mark_stopped(run)
            dead_runs.mark_stopped(None)  # a command without a flow run
            assert state(run) == ("CRASHED", "Stopped by a signal.")
        finally:
            killed(working)

    @pytest.mark.slow
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

    @pytest.mark.long
    def test_a_run_of_another_lake_or_another_server_is_left_alone(
        self, lake: Lake, server: str, tmp_path: Path
    ) -> None:
        killed(flow(lake, 600, server))
        (gone,) = dead(lake)
        assert dead_runs.mark_dead(Lake(tmp_path / "other")) == []
        assert state(gone.run)[0] == "RUNNING"
        unknown = replace(gone, run="00000000-0000-4000-8000-000000000000", name="other")
        (presence._home(lake) / "other.json").write_text(json.dumps(asdict(unknown)))
        (marked,) = dead_runs.mark_dead(lake)
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
        assert dead_runs.mark_dead(lake, dead_runs.Burial(resume=True, now=now)) == []
        found = dead_runs.mark_dead(lake, dead_runs.Burial(resume=True, now=now + 2 * dead_runs.SOON))
        assert [marked.flow_run for marked in found] == [str(ours.id)]
        assert (state(str(ours.id))[0], state(str(other.id))[0]) == ("CRASHED", "PENDING")


@pytest.mark.usefixtures("on_server")
class TestOfADeployment:
    """Runs that a worker took; their records are left here as a process leaves them."""

    @pytest.fixture
    def run(self, lake: Lake) -> Iterator[str]:
        from prefect.client.orchestration import get_client
        from prefect.states import Running

        with get_client(sync_client=True) as client:
            deployment = client.create_deployment(client.create_flow_from_name("waits"), name=lake.root.parent.name)
            made = client.create_flow_run_from_deployment(deployment, parameters={"lake": lake.location})
            client.set_flow_run_state(made.id, Running(), force=True)
            yield str(made.id)
            client.delete_deployment(deployment)

    def died(self, lake: Lake, run: str, **said: object) -> presence.Presence:
        gone = presence.Presence(run, "here", 1, "2026-01-01T00:00:00Z", os.urandom(8).hex(), "detect cst")
        presence._home(lake).mkdir(parents=True, exist_ok=True)
        presence._write(lake, replace(gone, **said))
        return gone

    def found(self, lake: Lake, **said: object) -> dead_runs.Marked:
        (marked,) = dead_runs.mark_dead(lake, dead_runs.Burial(resume=True, **said))
        return marked

    def test_a_run_is_taken_up_twice_and_then_given_up_with_what_was_seen_of_it(self, lake: Lake, run: str) -> None:
        for again in (1, 2):
            self.died(lake, run)
            assert self.found(lake).resumed
            assert state(run) == ("SCHEDULED", f"Taken up again by evenhand ({again} of 2).")
        self.died(lake, run)
        marked = self.found(
            lake, remembered=lambda _: "stage detect cst was seen to hold 2.9 GB of the 3.0 GB there was"
        )
        assert (marked.resumed, marked.given_up) == (False, True)
        kind, message = state(run)
        assert kind == "FAILED"
        assert "in stage detect cst is gone" in message
        assert "seen to hold 2.9 GB of the 3.0 GB" in message
        assert ending_of(marked).name is Name.INFRASTRUCTURE
        assert dead(lake) == []

    def test_one_that_left_because_it_was_asked_to_is_taken_up_without_being_counted(
        self, lake: Lake, run: str
    ) -> None:
        for _ in range(3):
            self.died(lake, run, stopped=True)
            marked = self.found(lake)
            assert (marked.resumed, marked.stopped) == (True, True)

    def test_a_crash_that_the_worker_of_prefect_reported_is_taken_up_when_that_is_done_with_it(
        self, lake: Lake, run: str
    ) -> None:
        dead_runs.mark_stopped(run)
        self.died(lake, run)
        assert dead_runs.mark_dead(lake, dead_runs.Burial(resume=True, ripe=lambda _, known: not known)) == []
        assert dead_runs.mark_dead(lake) == [], "another run on the lake leaves it to the worker"
        assert self.found(lake).resumed

    def test_a_run_that_ended_while_the_server_was_away_gets_its_state_from_the_lake(
        self, lake: Lake, run: str
    ) -> None:
        self.died(lake, run, outcome=("COMPLETED", "Outside the limit", "1 of 2 outside the limit"))
        assert self.found(lake).mended == ("COMPLETED", "Outside the limit", "1 of 2 outside the limit")
        message = "Found by evenhand: the run ended while the server was away; 1 of 2 outside the limit"
        assert state(run) == ("COMPLETED", message)
        self.died(lake, run, outcome=("COMPLETED", "Outside the limit", "1 of 2 outside the limit"))
        assert dead_runs.mark_dead(lake, dead_runs.Burial(resume=True)) == [], "the server knows it by now"
        assert dead(lake) == []

    def test_a_run_that_ended_and_died_before_it_could_say_so_is_no_crash(self, lake: Lake, run: str) -> None:
        dead_runs.mark_stopped(run)  # as Prefect's worker does when it sees the process end
        self.died(lake, run, outcome=("FAILED", "Infrastructure", "stage ingest ran out of memory"))
        marked = self.found(lake)
        assert not marked.resumed
        kind, message = state(run)
        assert kind == "FAILED"
        assert "the run ended, and its process died before it could say so; stage ingest ran out of memory" in message
        ending = ending_of(marked)
        assert ending is not None
        assert (ending.name, ending.message) == (Name.INFRASTRUCTURE, "stage ingest ran out of memory")
        assert dead(lake) == []

    def test_one_that_was_cancelled_is_not_taken_up(self, lake: Lake, run: str) -> None:
        from prefect.client.orchestration import get_client
        from prefect.states import Cancelled

        with get_client(sync_client=True) as client:
            client.set_flow_run_state(UUID(run), Cancelled(), force=True)
        self.died(lake, run)
        assert dead_runs.mark_dead(lake, dead_runs.Burial(resume=True)) == []
        assert state(run)[0] == "CANCELLED"


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
            assert [path.name for path in presence.clear_leftovers(lake)] == ["score-2"]
        (lake.root / "locks" / "score-1.lock").touch()  # as a killed process leaves it
        assert [path.name for path in presence.clear_leftovers(lake)] == ["score-1"]
        assert list((lake.root / "locks").glob("score-*")) == []

    def test_a_draft_without_a_lock_goes_after_a_day(self, lake: Lake) -> None:
        draft = lake.root / "tmp" / "manifest.json-77"
        draft.write_text("{}")
        assert presence.clear_leftovers(lake) == []
        long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
        os.utime(draft, (long_ago, long_ago))
        assert presence.clear_leftovers(lake) == [draft]
        assert not draft.exists()

    def test_a_crash_file_stays_until_gc_finds_it_older_than_its_days(self, lake: Lake) -> None:
        said = report_crash(KeyError("x"), ["audit", "--lake", lake.location])
        (file,) = (lake.root / "tmp").iterdir()
        assert str(file) in said
        long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
        os.utime(file, (long_ago, long_ago))
        assert presence.clear_leftovers(lake) == []
        assert collect(lake, Keeping(runs=1, days=3)) == []
        assert file.is_file()
        draft = lake.root / "tmp" / "manifest.json-77"  # a file, too
        draft.write_text("{}")
        os.utime(draft, (long_ago, long_ago))
        gone = collect(lake, Keeping(runs=1, days=1))
        assert [(each.kind, each.path) for each in gone] == [("draft", draft), ("crash file", file)]
        assert not file.exists()
        assert not draft.exists()
