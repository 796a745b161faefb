"""One real Prefect server for all workers of a test session: who needs it first starts it, who leaves last ends it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import FileLock

QUICK = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "3"}
"""Tests of schedules wait for it; else it is a minute."""


@contextmanager
def served(place: Path, environment: dict[str, str]) -> Iterator[str]:
    """The URL of its API, on a free loopback port; ``place`` is the directory that the workers share."""
    record, lock = place / "prefect-server.json", FileLock(place / "prefect-server.lock")
    with lock:
        known = json.loads(record.read_text()) if record.exists() else _started(place, environment)
        record.write_text(json.dumps({**known, "users": [*known["users"], os.getpid()]}))
    try:
        yield known["url"]
    finally:
        with lock:
            known = json.loads(record.read_text())
            users = [user for user in known["users"] if user != os.getpid() and psutil.pid_exists(user)]
            record.write_text(json.dumps({**known, "users": users}))
            if not users:
                record.unlink()
                _end(psutil.Process(known["pid"]))


def _started(place: Path, environment: dict[str, str]) -> dict[str, object]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = place / f"prefect-{port}"
    home.mkdir()
    output = home / "server.log"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            env={**environment, "PREFECT_HOME": str(home), **QUICK},
            stdout=file,
            stderr=file,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/health", process, output)
    except BaseException:
        process.kill()
        raise
    return {"url": f"http://127.0.0.1:{port}/api", "pid": process.pid, "users": []}


def _wait_for(url: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {output.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"the server did not answer within two minutes: {output.read_text()[-2000:]}")


def _end(process: psutil.Process) -> None:
    """The worker that started it has left perhaps without waiting for it: a zombie has ended."""
    process.terminate()
    until = time.monotonic() + 30
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the Prefect server did not end"
        time.sleep(0.1)
