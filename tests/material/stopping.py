"""Commands that get one signal at a chosen moment, in processes of their own."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import PROFILE, REPOSITORY, SPEC, loans

LIMIT = 30.0
"""Seconds that a loaded machine may take from the signal to the end."""
AIM = 5.0
"""Seconds that the command promises."""
PATIENCE = 600.0
"""Seconds until a moment has to come."""
MESSAGE = "evenhand: stopped; what was finished is kept, and the same command goes on from there\n"


def spec_of_all_methods(place: Path) -> Path:
    """A spec over the synthetic loans with every method: numba, torch, integer programmes and charts."""
    loans(300).to_csv(place / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}").replace("draws: 200", "draws: 100")
    text = text.replace("income: {type: continuous,", "income: {role: mediator, type: continuous,")
    text = text.replace("history: {type: ordinal,", "history: {role: [financial, mediator], type: ordinal,")
    gcfn = "gcfn: {generator: gan, networks: 2, epochs: 40, hidden: 8, batch: 16, device: cpu}"
    spec = place / "loans.yaml"
    spec.write_text(text.replace("methods:\n", f"methods:\n  {gcfn}\n  cec: {{theta_steps: 5}}\n"))
    return spec


@dataclass(frozen=True)
class Ended:
    """How a command ended after its signal."""

    code: int
    seconds: float
    said: str
    left: list[str]
    """Processes of its session that did not end with it."""


@dataclass
class Stops:
    """One audit of all methods that is stopped again and again and goes on each time; how its stops went."""

    place: Path
    words: list[str]
    seconds: list[float] = field(default_factory=list)
    """From each signal to the end."""

    @classmethod
    def of(cls, place: Path) -> "Stops":
        return cls(place, ["audit", str(spec_of_all_methods(place)), "--lake", str(place / "lake")])

    @property
    def lake(self) -> Path:
        return self.place / "lake"

    def add(self, ended: Ended) -> None:
        """Hold one end against what is promised of each."""
        assert ended.code == 130, ended.said
        assert ended.said.count(MESSAGE) == 1
        assert "Traceback" not in ended.said
        assert ended.left == []
        assert ended.seconds < LIMIT
        self.seconds.append(ended.seconds)

    def check_promise(self) -> None:
        """Nine of ten ends came within the promised time; a loaded machine may delay the tenth."""
        late = sum(each >= AIM for each in self.seconds)
        assert self.seconds
        assert late <= max(1, len(self.seconds) // 10), sorted(self.seconds)


def few_of(moments: Sequence[Any], usual: int, slow: int) -> list[Any]:
    """The moments as parameters, drawn with a fixed seed: some in the usual run, more of them slow, all by night."""
    drawn = random.Random(0).sample(range(len(moments)), len(moments))
    some = drawn if PROFILE == "nightly" else drawn[: usual + slow]
    marks = {place: () if place in drawn[:usual] else pytest.mark.slow for place in sorted(some)}
    return [pytest.param(moments[place], marks=mark) for place, mark in marks.items()]


AFTERWARDS = ("a few moments", pytest.param("more of them", marks=pytest.mark.slow))
"""After which moments something holds, as parameters."""


class EndedBeforeError(Exception):
    """The command ended before the moment came."""


@dataclass
class Running:
    """A command at work: the leader of a session, as a terminal has it, with its output in a file."""

    process: psutil.Process
    output: Path
    wait: Callable[[], int]

    def said(self) -> str:
        return self.output.read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        limit = time.monotonic() + PATIENCE
        while not condition():
            if not self.process.is_running() or self.process.status() == psutil.STATUS_ZOMBIE:
                raise EndedBeforeError(self.said())
            assert time.monotonic() < limit, self.said()
            time.sleep(0.01)

    def until_said(self, pattern: str) -> None:
        self.until(lambda: re.search(pattern, self.said(), re.MULTILINE) is not None)

    def stop(self, number: signal.Signals = signal.SIGINT) -> Ended:
        """Send one signal, to all processes of the command as a terminal does, and wait for the end."""
        if self.process.status() == psutil.STATUS_ZOMBIE:
            raise EndedBeforeError(self.said())
        began = time.monotonic()
        os.killpg(self.process.pid, number)
        code = self.wait()
        seconds = time.monotonic() - began
        _, left = psutil.wait_procs(session(self.process.pid), timeout=10)
        return Ended(code, seconds, self.said(), [str(process) for process in left])


def started(arguments: list[str], environment: dict[str, str], output: Path, module: str = "flows.cli") -> Running:
    """Start the command in a session of its own."""
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=environment,
            cwd=REPOSITORY,
            stdout=file,
            stderr=file,
            start_new_session=True,
            preexec_fn=heed_signals,
        )
    return Running(psutil.Process(process.pid), output, lambda: process.wait(LIMIT))


def heed_signals() -> None:
    """Undo what a shell and nohup do to a job in the background: its children ignore Ctrl-C or hang-up."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def session(leader: int) -> list[psutil.Process]:
    """The processes of a session that are at work still."""
    return [p for p in psutil.process_iter() if _session_of(p.pid) == leader and _lives(p)]


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Warm:
    """A process that has loaded what an audit needs, and forks to run a command: loading takes seconds each time."""

    def __init__(self, environment: dict[str, str], lake: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(lake)],
            env={**environment, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"},
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals,
        )

    def started(self, arguments: list[str], output: Path) -> Running:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        output.touch()
        stdin.write(json.dumps({"arguments": arguments, "output": str(output)}) + "\n")
        stdin.flush()
        pid = int(stdout.readline())
        return Running(psutil.Process(pid), output, lambda: int(stdout.readline()))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _serve() -> None:
    """Fork for each line of the standard input; print the child's process id, then its exit code."""
    from importlib import import_module

    from flows.cli.__main__ import main
    from flows.cli.options import load_spec
    from flows.supervision.prefect_server import prepare_environment

    prepare_environment(Path(sys.argv[1]))  # Prefect reads it as it is imported
    for library in ("flows.audit", "flows.cli.main", "great_expectations", "torch"):
        import_module(library)
    plan = import_module("tasks.plan").plan
    plan(load_spec(None, {}).spec)  # so that the modules of all stages are parsed

    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(main, asked)
        _answer(pid)
        _answer(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _run(main: Callable[[], None], asked: dict[str, object]) -> None:
    code = 70
    try:
        os.setsid()
        with open(str(asked["output"]), "w") as file:  # noqa: PTH123
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.argv = ["evenhand", *asked["arguments"]]  # type: ignore[misc]
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
