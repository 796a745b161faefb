"""A command at work on a stage, asked to end by SIGTERM: the stage ends, or its time does; children of the dead end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from conftest import REPOSITORY, environment
from stopping import MESSAGE, heed_signals, session

from flows.supervision.parentage import ended_with
from flows.supervision.shutdown import grace_seconds
from schemas.errors import InfrastructureError

HEAD = """\
import os, signal, sys, time
from flows.supervision.shutdown import heeding_term; from flows.supervision.shutdown import stoppable
from flows.supervision.shutdown import end_if_leaving; from flows.supervision.shutdown import leaves_on_word; from flows.supervision.shutdown import leaving; from flows.supervision.shutdown import may_finish

def stage(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)

"""  # noqa: E501
STAGES = """\
def work():
    with may_finish():
        print("ready", flush=True)
        stage(1.5)
        print("done", flush=True)
        end_if_leaving()
        print("another", flush=True)
    return 0
"""
LAST = STAGES.replace("        end_if_leaving()\n", "").replace('        print("another", flush=True)\n', "")
LONG = STAGES.replace("stage(1.5)", "stage(600)")
RUN = "\nsys.exit(stoppable(work))\n"
OF_WORKER = """\
print_stopped = lambda: print("noted", flush=True)
with leaves_on_word(print_stopped):
    print("ready", flush=True)
    stage(1.0)
    print("done", flush=True)
    end_if_leaving()
    print("another", flush=True)
"""


@contextmanager
def begun(program: str, **said: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + program],
        env={**environment(None), **said},
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        for each in session(process.pid):
            each.kill()
        process.communicate()


def asked(program: str, number: signal.Signals = signal.SIGTERM, **said: str) -> tuple[int, str, str]:
    with begun(program, **said) as process:
        os.kill(process.pid, number)
        printed, errors = process.communicate(timeout=60)
    return process.returncode, printed, errors


def test_the_stage_at_work_ends_and_no_other_begins() -> None:
    assert asked(STAGES + RUN) == (143, "done\n", MESSAGE)


def test_who_was_at_the_last_stage_says_that_it_was_asked_to_end() -> None:
    assert asked(LAST + RUN) == (143, "done\n", MESSAGE)


def test_a_stage_that_takes_longer_than_its_time_is_dropped() -> None:
    began = time.monotonic()
    assert asked(LONG + RUN, EVENHAND_GRACE="0.5") == (143, "", MESSAGE)
    assert time.monotonic() - began < 15


def test_ctrl_c_ends_a_stage_at_once() -> None:
    assert asked(LONG + RUN, signal.SIGINT) == (130, "", MESSAGE)


def test_a_run_of_a_worker_leaves_on_its_word() -> None:
    assert asked(OF_WORKER, signal.SIGUSR1) == (143, "done\nnoted\n", "")


@pytest.mark.parametrize("given", ["soon", "-1", "inf"])
def test_a_time_that_is_none_is_told(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_GRACE", given)
    with pytest.raises(InfrastructureError, match=f"EVENHAND_GRACE is '{given}'; expected seconds, such as 90"):
        grace_seconds()


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """A server, and what it started itself, of a process that cannot end them."""
    parent = f"""\
import subprocess, sys, time
from flows.supervision.parentage import ended_with
child = subprocess.Popen([*ended_with("http.server"), "0", "--bind", "127.0.0.1"], cwd={str(tmp_path)!r})
print(child.pid, flush=True)
time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", parent], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    child = psutil.Process(int(process.stdout.readline()))
    time.sleep(1.0)
    assert child.is_running()
    process.kill()
    process.wait()
    process.stdout.close()
    assert psutil.wait_procs([child], timeout=10)[1] == []


def test_words_of_another_program_name_this_process() -> None:
    assert ended_with("uvicorn")[3:] == [str(os.getpid()), "uvicorn"]


FORKING = """\
import os, sys, threading, time
from flows.supervision import parentage
held, pipe = os.pipe()
def work():
    print(os.read(held, 1), threading.active_count(), flush=True)
    time.sleep(600)
assert not parentage.may_fork()
threading.Thread(target=time.sleep, args=(600,), name=parentage.SIGNALS, daemon=True).start()
threading.Thread(target=time.sleep, args=(600,), name=parentage.PROGRESS, daemon=True).start()
assert parentage.may_fork()
child = parentage.forked(work)
print(child.pid, flush=True)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
assert not parentage.may_fork()
"""


@contextmanager
def forking(ending: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that forks a child, and then does the rest."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING + ending], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


@pytest.mark.skipif(sys.platform != "linux", reason="a command forks on Linux alone")
def test_a_forked_child_holds_nothing_of_its_parent_and_ends_with_it() -> None:
    with forking("time.sleep(600)") as process:
        assert process.stdout is not None
        lines = sorted([process.stdout.readline(), process.stdout.readline()])
        child = psutil.Process(int(lines[0]))
        assert lines[1] == "b'' 2\n", "it reads an end of nothing, and has one thread to watch its parent"
        assert {file.path for file in child.open_files()} <= {os.devnull}
        process.kill()
        process.wait()
        assert psutil.wait_procs([child], timeout=10)[1] == []


@pytest.mark.parametrize(("end", "code"), [("terminate", -15), ("kill", -9)])
@pytest.mark.skipif(sys.platform != "linux", reason="a command forks on Linux alone")
def test_a_forked_child_is_ended_and_its_code_is_known(end: str, code: int) -> None:
    ending = f"assert child.poll() is None\nchild.{end}()\nassert child.wait(10) == {code}\nchild.kill()\nos._exit(7)"
    with forking(ending) as process:
        assert process.wait(30) == 7


@pytest.mark.parametrize(
    ("work", "code"), [("lambda: None", 0), ("lambda: sys.exit(3)", 3), ("lambda: 1 / 0", 1), ("sys.exit", 0)]
)
@pytest.mark.skipif(sys.platform != "linux", reason="a command forks on Linux alone")
def test_a_forked_child_never_goes_on_as_its_parent(work: str, code: int) -> None:
    ending = f"code = parentage.forked({work}).wait(10)\nchild.kill()\nprint('once', code, flush=True)\nos._exit(0)"
    with forking(ending) as process:
        text, _ = process.communicate(timeout=30)
        assert [line for line in text.splitlines() if line.startswith("once")] == [f"once {code}"]
