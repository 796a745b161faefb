"""Dask on this machine: a scheduler, and workers of one thread and a limit of memory each, as in docs/scale.md."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from schemas.errors import InfrastructureError

MEMORY = "3GB"
"""Of a worker: the nanny starts one above it anew, and its partition is done once more, alone."""
LARGE = "12GB"
"""Of the one worker for what an ordinary one cannot take, as docs/scale.md has it."""
_PATIENCE_S = 120
SETTINGS: Mapping[str, str] = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
}
"""A partition that kills its worker is not handed to three more, and no worker pauses at 80 % for ever."""


@contextmanager
def cluster(place: Path, workers: int, *, one_large: bool) -> Iterator[tuple[str, list[int]]]:
    """Address of a scheduler with so many workers, and the ids of the processes; they end with the block.

    Args:
        place: folder for what they write.
        workers: of one thread each.
        one_large: whether one of them may take more, and alone has the resource ``large``; else all have it.

    Raises:
        InfrastructureError: Dask is not installed, or the workers do not come.
    """
    _require_dask()
    place.mkdir(parents=True, exist_ok=True)
    address = f"tcp://127.0.0.1:{_free_port()}"
    port = address.rpartition(":")[2]
    usual = ["--memory-limit", MEMORY] if one_large else ["--memory-limit", MEMORY, "--resources", "large=1"]
    with ExitStack() as running:
        words = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        started = [running.enter_context(_running(words, place / "scheduler"))]
        for name, count, apart in (
            ("workers", workers - one_large, usual),
            ("large", int(one_large), ["--memory-limit", LARGE, "--resources", "large=1"]),
        ):
            words = ["worker", address, "--nworkers", str(count), "--nthreads", "1", *apart, "--no-dashboard"]
            words += ["--host", "127.0.0.1", "--local-directory", str(place)]
            if count:
                started.append(running.enter_context(_running(words, place / name)))
        _wait(address, workers, place)
        yield address, [each.pid for each in started]


def _require_dask() -> None:
    try:
        import distributed  # noqa: F401 seconds, and the runner processes does without
        import prefect_dask  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(
            f"runner dask needs libraries that are not installed ({error}): pip install 'evenhand[dask]', "
            "or --runner processes"
        ) from error


@contextmanager
def _running(words: Sequence[str], home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """One of Dask's commands; it is asked to end, since one that is killed leaves its workers alone."""
    home.mkdir(exist_ok=True)
    told = {**os.environ, **SETTINGS, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with (home / "log").open("w") as output:
        command = [sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, cwd=home, env=told, stdout=output, stderr=output)  # noqa: S603 our own
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(address: str, workers: int, place: Path) -> None:
    from distributed import Client

    try:
        with Client(address, timeout=_PATIENCE_S, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=_PATIENCE_S)
    except (OSError, TimeoutError) as error:
        logs = sorted(place.glob("*/log"))
        log = "".join(each.read_text(encoding="utf-8", errors="replace")[-500:] for each in logs)
        raise InfrastructureError(
            f"{workers} Dask workers did not come within {_PATIENCE_S} s ({error}): {log}"
        ) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
