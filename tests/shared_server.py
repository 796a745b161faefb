"""One real Prefect server for all workers of a test session: who needs it first starts it, who leaves last ends it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

QUICK = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "3"}
"""Tests of schedules wait for it; else it is a minute."""


@contextmanager
def served(place: Path, environment: dict[str, str]) -> Iterator[str]:
    """The URL of its API, on a free loopback port; ``place`` is the directory that the workers share."""
    record, lock = place / "prefect-server.json", FileLock(place / "prefect-server.lock")
    with lock:
        process = None if record.exists() else _start(place, environment, record)
        url = _counted(record, lambda users: {*users, os.getpid()})["url"]
    try:
        yield url
    finally:
        with lock:
            left = _counted(record, lambda users: {user for user in users - {os.getpid()} if psutil.pid_exists(user)})
            if not left["users"]:
                record.unlink()
                _end(left["pid"])
        if process is not None:
            process.poll()


def _counted(record: Path, change: Callable[[set[int]], set[int]]) -> dict[str, Any]:
    """What is known of the server, with other users."""
    known: dict[str, Any] = json.loads(record.read_text())
    known["users"] = sorted(change(set(known["users"])))
    record.write_text(json.dumps(known))
    return known


def _start(place: Path, environment: dict[str, str], record: Path) -> "subprocess.Popen[bytes]":
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
    record.write_text(json.dumps({"url": f"http://127.0.0.1:{port}/api", "pid": process.pid, "users": []}))
    return process


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


def _end(pid: int) -> None:
    """The worker that started it may have left without waiting for it: a zombie has ended."""
    process = psutil.Process(pid)
    process.terminate()
    until = time.monotonic() + 30
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the Prefect server did not end"
        time.sleep(0.1)
