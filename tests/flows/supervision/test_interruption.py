"""How a command ends on a signal, whatever it is doing at that moment. The command is a small one in a process."""

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
from stopping import LIMIT, MESSAGE, heed_signals, session

HEAD = """\
import os, subprocess, sys, threading, time
from flows.supervision import shutdown as interruption
from flows.supervision.shutdown import at_forced_end; from flows.supervision.shutdown import shielded_children; from flows.supervision.shutdown import stoppable
from tasks.pipeline.progress import raise_if_stopped

def ready():
    print("ready", flush=True)

"""  # noqa: E501
WORKS = """\
def work():
    ready()
    time.sleep(600)
"""
SWALLOWS = """\
def swallowed():
    try:
        ready()
        time.sleep(600)
    except BaseException:
        pass
    time.sleep(600)

def work():
    swallowed()
"""
SWALLOWS_IN_CALLBACK = """\
import ctypes
ended = []

@ctypes.CFUNCTYPE(None)
def callback():
    try:
        ready()
        time.sleep(600)
    finally:
        ended.append(True)

def work():
    callback()
    assert ended
    print("went on", flush=True)
    for _ in range(600):
        raise_if_stopped()
        time.sleep(1)
"""
IN_A_LIBRARY = """\
import hashlib

def work():
    threading.Timer(0.5, ready).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""
ENDS_OTHERWISE = """\
def work():
    try:
        ready()
        time.sleep(600)
    finally:
        sys.exit(0)
"""
FAILS_OTHERWISE = """\
def work():
    try:
        ready()
        time.sleep(600)
    except BaseException:
        raise RuntimeError("query interrupted")
"""
HAS_CHILDREN = """\
def work():
    with shielded_children():
        starts_another = "import subprocess; subprocess.run(['sleep', '600'])"
        child = subprocess.Popen([sys.executable, "-c", starts_another])
    while len(interruption.psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.01)
    ready()
    child.wait()
"""
IS_LOADING = """\
import pathlib, tempfile
interruption.INTERRUPTION_GRACE_SECONDS = 600.0
folder = tempfile.mkdtemp()
pathlib.Path(folder, "library.py").write_text('''\
import time
try:
    print("ready", flush=True)
    time.sleep(0.5)
except BaseException:
    print("a fault of the library", flush=True)
''')
sys.path.insert(0, folder)

def work():
    import library
    try:
        time.sleep(600)
    finally:
        print("stopped in order", flush=True)
"""
RUN = "\nsys.exit(stoppable(lambda: work() or 0))\n"


@contextmanager
def begun(program: str, *before: str) -> Iterator["subprocess.Popen[str]"]:
    """A command that says that it is ready."""
    process = subprocess.Popen(
        [*before, sys.executable, "-c", HEAD + program + RUN],
        env=environment(None),
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


def stopped(program: str, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    with begun(program) as process:
        os.kill(process.pid, number)
        said, errors = process.communicate(timeout=LIMIT)
        assert psutil.wait_procs(session(process.pid), timeout=10)[1] == []
    return process.returncode, said, errors


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_a_signal_ends_the_command_with_its_own_code(number: signal.Signals, code: int) -> None:
    assert stopped(WORKS, number) == (code, "", MESSAGE)


@pytest.mark.parametrize("program", [SWALLOWS, IN_A_LIBRARY], ids=["swallowed", "in a library"])
def test_a_command_that_takes_no_notice_is_ended_after_the_grace_period(program: str) -> None:
    assert stopped(program) == (130, "", MESSAGE)


def test_a_library_is_loaded_before_the_interrupt_is_raised() -> None:
    assert stopped(IS_LOADING) == (130, "stopped in order\n", MESSAGE)


def test_an_interrupt_that_a_callback_swallows_is_raised_again_by_the_next_check() -> None:
    patient = "interruption.INTERRUPTION_GRACE_SECONDS = 60.0\n"  # else a busy machine ends it before the check
    assert stopped(patient + SWALLOWS_IN_CALLBACK) == (130, "went on\n", MESSAGE)


@pytest.mark.parametrize("program", [ENDS_OTHERWISE, FAILS_OTHERWISE], ids=["as a success", "with an error"])
def test_the_code_is_that_of_the_signal_however_the_command_ends(program: str) -> None:
    assert stopped(program) == (130, "", MESSAGE)


def test_children_end_with_the_command_and_ctrl_c_does_not_reach_them_before() -> None:
    with begun(HAS_CHILDREN) as process:
        children = psutil.Process(process.pid).children(recursive=True)
        for child in children:
            child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert [child.status() == psutil.STATUS_ZOMBIE for child in children] == [False, False]
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LIMIT) == 130
        assert psutil.wait_procs(session(process.pid), timeout=10)[1] == []


def test_a_second_ctrl_c_ends_the_command_at_once() -> None:
    patient = "interruption.INTERRUPTION_GRACE_SECONDS = 600.0\n" + SWALLOWS
    with begun(patient) as process:
        os.kill(process.pid, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LIMIT) == 130


@pytest.mark.slow
def test_what_is_to_be_done_at_a_forced_end_is_done_and_does_not_hold_it_up(tmp_path: Path) -> None:
    acts = f"""\
def note():
    open({str(tmp_path / "note")!r}, "w").close()

def work():
    with at_forced_end(note), at_forced_end(lambda: 1 / 0):
        swallowed()
"""
    assert stopped(SWALLOWS + acts) == (130, "", MESSAGE)
    assert (tmp_path / "note").exists()
    hangs = acts.replace("1 / 0", "time.sleep(600)")
    assert stopped(SWALLOWS + hangs) == (130, "", MESSAGE)


def test_a_job_that_ignores_ctrl_c_goes_on() -> None:
    """Such as one that a shell runs in the background."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    with begun("def work():\n    ready()\n    time.sleep(1)\n", sys.executable, "-c", _exec(ignoring)) as process:
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LIMIT) == 0


def _exec(before: str) -> str:
    return before + "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"


def test_a_signal_to_a_forked_child_is_not_one_to_its_parent() -> None:
    forks = """\
def work():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b".")
        time.sleep(600)
    os.read(reading, 1)
    os.kill(child, 15)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -15
    ready()
    time.sleep(0.5)
"""
    with begun(forks) as process:
        assert process.wait(LIMIT) == 0
