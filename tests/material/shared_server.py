"""One real Prefect server for all workers of a test session: the first that needs it starts it, and ends it last."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from flows.supervision.prefect_server import LIGHT
from flows.supervision.prepare import seed_database

QUICK = {**LIGHT, "PREFECT_SERVER_UI_ENABLED": "false", "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "3"}
"""Tests of schedules wait for the scheduler, else every minute; services that no test waits for take time from all."""
_PR_SET_PDEATHSIG = 1


@contextmanager
def served(place: Path, environment: dict[str, str], settings: Mapping[str, str] = QUICK) -> Iterator[str]:
    """The URL of its API, on a free loopback port; ``place`` is the directory that the workers share."""
    record, lock = place / "prefect-server.json", FileLock(place / "prefect-server.lock")
    with lock:
        process = None if record.exists() else _start(place, environment, record, settings)
        url = _counted(record, lambda users: {*users, os.getpid()})["url"]
    try:
        yield url
    finally:
        with lock:
            _counted(record, lambda users: users - {os.getpid()})
        if process is not None:
            _end(process, record, lock)


def _counted(record: Path, change: Callable[[set[int]], set[int]]) -> dict[str, Any]:
    """What is known of the server, with other users; those that have died are none."""
    known: dict[str, Any] = json.loads(record.read_text())
    known["users"] = sorted(user for user in change(set(known["users"])) if psutil.pid_exists(user))
    record.write_text(json.dumps(known))
    return known


def _end(process: "subprocess.Popen[bytes]", record: Path, lock: FileLock) -> None:
    """Once nobody uses it any more."""
    while True:
        with lock:
            if not _counted(record, set)["users"]:
                record.unlink()
                break
        time.sleep(0.2)
    process.terminate()
    process.wait(timeout=30)


def _start(
    place: Path, environment: dict[str, str], record: Path, settings: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = place / f"prefect-{port}"
    seed_database(home)  # saves the migrations
    home.mkdir(exist_ok=True)
    output = home / "server.log"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            env={**environment, "PREFECT_HOME": str(home), **settings},
            stdout=file,
            stderr=file,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/ready", process, output)
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


def _end_with_parent() -> None:
    """Linux sends the server SIGTERM when the worker that started it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
