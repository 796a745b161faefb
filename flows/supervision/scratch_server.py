"""Runs a complete Prefect server in a temporary home, for the length of a check.

Prefect starts the embedded API of a lake without the services that create scheduled runs.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from flows.supervision.embedded_api import seed_database
from schemas.errors import InfrastructureError

_START_SECONDS = 120
_PLAN_SECONDS = 2
"""How often the server looks for schedules without a run; Prefect's own default is a minute."""


@contextmanager
def scratch_server(home: Path) -> Iterator[str]:
    """A server on a free loopback port with its files in ``home``; gives the URL of its API, and ends it.

    Raises:
        InfrastructureError: the server ended by itself, or did not answer within two minutes.
    """
    seed_database(home)
    port, log = _free_port(), home / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(_words(port), env=_environment(home), cwd=home, stdout=output, stderr=output)  # noqa: S603 our own words
        try:
            _wait(f"http://127.0.0.1:{port}/api/ready", process, log)
            yield f"http://127.0.0.1:{port}/api"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _words(port: int) -> list[str]:
    app = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on", "--log-level", "error"]
    return [sys.executable, "-m", "uvicorn", *app, "--host", "127.0.0.1", "--port", str(port)]


def _environment(home: Path) -> dict[str, str]:
    """The environment without any setting of Prefect's: one of them names the database of the server in use."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {
        **kept,
        "PREFECT_HOME": str(home),
        "PREFECT_UI_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_SERVER_LEVEL": "ERROR",
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": str(_PLAN_SECONDS),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise InfrastructureError(f"it ended with exit code {process.returncode}: {_last_line(log)}")
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    raise InfrastructureError(f"it did not answer within {_START_SECONDS} s: {_last_line(log)}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
