"""Processes that ended count as such before their parent collects them, as that of runs is halted while they leave."""

import subprocess
import sys
import time

import psutil

from flows.supervision.shutdown import has_ended, kill_family, wait_for

CHILD = "import time; print('ready', flush=True); time.sleep(60)"
PARENT = f"""\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}])
print(child.pid, flush=True)
time.sleep(60)
"""


def begun(program: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_a_zombie_has_ended_though_its_parent_does_not_collect_it() -> None:
    with begun(PARENT) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.stdout.readline()
        parent.send_signal(psutil.signal.SIGSTOP)
        assert not has_ended(child)
        child.kill()
        began = time.monotonic()
        assert wait_for([child], 20) == []
        assert time.monotonic() - began < 5
        assert child.status() == psutil.STATUS_ZOMBIE
        kill_family(psutil.Process(parent.pid), 5)


def test_what_does_not_end_is_told_when_the_time_is_over() -> None:
    with begun(CHILD) as process:
        process.stdout.readline()
        one = psutil.Process(process.pid)
        assert wait_for([one], 0.2) == [one]
        kill_family(one, 5)
        assert wait_for([one], 0) == []


def test_a_family_is_killed_with_all_that_it_started() -> None:
    with begun(PARENT) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        kill_family(psutil.Process(parent.pid), 5)
        assert wait_for([child], 5) == []
