"""Commands whose k-th write, fsync, rename or link in a lake fails, or at which their process is killed.

One seam for all: a process that forks for each command and, in the fork, puts itself between Python and the system's
calls. ``ENOSPC`` goes on from the k-th call to the end, as on a full disk; ``EIO`` and ``EINTR`` come once. A failing
write has written half. Files that pyarrow opens itself count as one write each time that it is asked.
"""

import builtins
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conftest import REPOSITORY, environment

KINDS = ("ENOSPC", "EIO", "EINTR", "kill")
KILLED = -signal.SIGKILL
_OF_HARNESS = ("said", "calls.json")
AUDIT, SOUND = "audit of this process", "what readers see"
"""In the place of a command: an audit, stage after stage, without Prefect; a check that what is published is whole."""
_OF_PROCESS = re.compile(r"(?<=\.)[0-9a-f]{32}(?=\.)|(?<=alive/)[0-9a-f]{32}|(?<=-)\d+$")


@dataclass
class Faults:
    """Notes the calls that write below a folder, and lets one of them fail."""

    root: Path
    at: str = ""
    """The call that fails, as it is noted; empty for none."""
    kind: str = "EIO"
    calls: list[str] = field(default_factory=list)
    """``write log/#.json 1``: what, where without the numbers of a process, and the how-manieth of these."""
    met: bool = False
    _times: Counter[str] = field(default_factory=Counter)

    def due(self, what: str, path: Any) -> bool:
        """Note a call; whether it is to fail."""
        place = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else Path.cwd() / path
        if self.root not in place.parents:
            return False
        if place.parent == self.root and place.name in _OF_HARNESS:
            return False
        call = f"{what} {_OF_PROCESS.sub('#', str(place.relative_to(self.root)))}"
        self._times[call] += 1
        self.calls.append(f"{call} {self._times[call]}")
        failing = self.calls[-1] == self.at or (self.met and self.kind == "ENOSPC")
        self.met = self.met or failing
        return failing

    def fail(self, path: Any) -> None:
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, self.kind)
        raise OSError(number, os.strerror(number), None if isinstance(path, int) else os.fspath(path))

    def install(self) -> None:
        """Put this between the process and the system, for the rest of its life."""
        import pyarrow.parquet as pq

        for name in ("fsync", "rename", "replace", "link"):
            setattr(os, name, self._call(name, getattr(os, name)))
        faults, opened = self, io.open

        class Raw(io.FileIO):
            def write(self, content: Any, /) -> int:
                if faults.due("write", self.fileno()):
                    if faults.kind != "EINTR":  # a write that was interrupted after some bytes gives their number
                        super().write(memoryview(content)[: len(content) // 2])
                    faults.fail(self.fileno())
                return super().write(content)

        def opening(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                    newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
            if not set(mode) & set("wax+"):
                return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

        io.open = builtins.open = opening

        class Writer(pq.ParquetWriter):
            def __init__(self, where: Any, *rest: Any, **more: Any) -> None:
                super().__init__(where, *rest, **more)
                self.path = where

            def write_table(self, *rest: Any, **more: Any) -> None:
                super().write_table(*rest, **more)
                faults.written(self.path)

            def close(self) -> None:
                super().close()
                faults.written(self.path)

        pq.write_table, pq.ParquetWriter = self._parquet(pq.write_table), Writer

    def written(self, path: Any) -> None:
        """A library wrote a file; where that was to fail, half of it is there."""
        if isinstance(path, str | os.PathLike) and self.due("write", path):
            os.truncate(path, Path(path).stat().st_size // 2)
            self.fail(path)

    def _call(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if self.due(name, arguments[-1]):  # of two paths the new one
                self.fail(arguments[-1])
            return real(*arguments, **more)

        return call

    def _parquet(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def write_table(table: Any, where: Any, *rest: Any, **more: Any) -> None:
            real(table, where, *rest, **more)
            self.written(where)

        return write_table


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Below 0 of a process that a signal ended; 70 of a fault of ours."""
    said: str
    calls: tuple[str, ...] = ()
    """What it wrote, where it was not killed."""
    met: bool = True
    """Whether it came to the call that was to fail."""


class Forks:
    """A process that has loaded what commands need, and forks for each of them."""

    def __init__(self) -> None:
        words = [sys.executable, __file__]
        paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}:{REPOSITORY / 'tests' / 'material'}"
        self._process = subprocess.Popen(
            words, env={**environment(None), "PYTHONPATH": paths}, cwd=REPOSITORY, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, words: list[str], place: Path, at: str = "", kind: str = "EIO") -> Ended:
        """Run a command on the lake of a folder."""
        order = {"words": words, "place": str(place), "at": at, "kind": kind}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        code = int(stdout.readline())
        said = (place / "said").read_text()
        if code < 0:
            return Ended(code, said)
        made = json.loads((place / "calls.json").read_text())
        return Ended(code, said, tuple(made["calls"]), made["met"])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _serve() -> None:
    """Run each command once, so that all that it needs is loaded, and then fork for each line of the input."""
    from few_loans import few_loans

    with TemporaryDirectory() as name:
        few_loans(Path(name))
        _audit(Path(name))
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(**json.loads(line))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _run(words: list[str], place: str, at: str, kind: str) -> None:
    folder = Path(place)
    # a release writes its folder next to the lake
    code, faults = 70, Faults(folder if words[0] == "release" else folder / "lake", at, kind)
    with (folder / "said").open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    calls = os.open(folder / "calls.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        faults.install()
        own = {AUDIT: _audit, SOUND: _check}.get(words[0])
        code = own(folder) if own else _command([*words, "--lake", f"{place}/lake"])
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(calls, json.dumps({"calls": faults.calls, "met": faults.met}).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(words: list[str]) -> int:
    from flows.cli.main import _code

    sys.argv = ["evenhand", *words]
    return _code()


def _audit(folder: Path) -> int:
    from computed_lake import computed

    from schemas.errors import EvenhandError
    from tasks.lake.store import Lake
    from tasks.pipeline.registry import read_spec

    spec = read_spec((folder / "few.yaml").read_text(), "few.yaml", {"source.path": str(folder / "loans.csv")}).spec
    try:
        computed(Lake(folder / "lake"), spec)
    except EvenhandError as error:
        sys.stderr.write(f"evenhand: {error}\n")
        return int(error.exit_code)
    return 0


def _check(folder: Path) -> int:
    """See that all records, runs and entries can be read, and that their files are those that were written."""
    from schemas.artifact import Partition
    from tasks.lake import log
    from tasks.lake.store import Lake

    lake = Lake(folder / "lake")
    for record in (*lake.storage.glob("stages/*/*/partition.json"), *lake.storage.glob("vintages/**/partition.json")):
        partition = Partition.model_validate_json(lake.storage.read(record) or b"")
        for path, digest in {a.path: a.sha256 for a in partition.tables}.items() | partition.files.items():
            lake.require(path, digest)
    log.entries(lake)
    return _command(["verify", "--all", "--lake", lake.location]) if lake.storage.glob("runs/*/manifest.json") else 0


if __name__ == "__main__":
    _serve()
