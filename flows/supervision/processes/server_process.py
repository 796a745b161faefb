"""Prefect's server as a process of its own: the embedded API of a lake, or a complete one for the length of a check.

Prefect starts the embedded API of a lake without the services that create scheduled runs. Prefect's own class for it
imports the whole server into the process that starts one, which takes longer than most stages.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from flows.supervision.prepare import seed_database
from flows.supervision.processes.parentage import ended_with
from schemas.errors import InfrastructureError

Server = subprocess.Popen[bytes]
_START_SECONDS = 120
_STOP_SECONDS = 10
_PLAN_SECONDS = 2
"""How often the server looks for schedules without a run; Prefect's own default is a minute."""
_EMBEDDED: Final = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
"""What Prefect gives the server that it starts for one process."""


def embedded_server(password: str) -> tuple[Server, str]:
    """Start a server on a free loopback port with the environment of this process; its process and the URL of its API.

    What it logs goes where this process logs. Whoever asks it for anything has to give ``password``, since every
    account of the machine reaches its port: a deployment that is made there is code that runs as this user.
    """
    port = _free_port()
    own = {**_EMBEDDED, "PREFECT_SERVER_API_AUTH_STRING": password}
    return _started(port, {**os.environ, **own}), f"http://127.0.0.1:{port}/api"


def wait_for(server: Server, api: str) -> None:
    """Wait until it answers.

    Raises:
        InfrastructureError: it ended by itself, or did not answer in time.
    """
    _wait(f"{api}/ready", server, float(os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"]))


def end(server: Server) -> None:
    """End it, and do not leave before it has ended."""
    server.terminate()
    try:
        server.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def scratch_server(home: Path) -> Iterator[str]:
    """A server on a free loopback port with its files in ``home``; gives the URL of its API, and ends it.

    Raises:
        InfrastructureError: the server ended by itself, or did not answer within two minutes.
    """
    seed_database(home)
    port, log = _free_port(), home / "server.log"
    with log.open("w") as output:
        process = _started(port, _environment(home), cwd=home, stdout=output, stderr=output)
        try:
            _wait(f"http://127.0.0.1:{port}/api/ready", process, _START_SECONDS, log)
            yield f"http://127.0.0.1:{port}/api"
        finally:
            end(process)


def _started(port: int, environment: Mapping[str, str], **places: Any) -> Server:
    app = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on", "--log-level", "error"]
    words = [*ended_with("uvicorn"), *app, "--host", "127.0.0.1", "--port", str(port)]
    return subprocess.Popen(words, env=environment, **places)  # noqa: S603 our own words


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


def _wait(url: str, process: Server, seconds: float, log: Path | None = None) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise InfrastructureError(f"it ended with exit code {process.returncode}: {_last_line(log)}")
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    raise InfrastructureError(f"it did not answer within {seconds:g} s: {_last_line(log)}")


def _last_line(log: Path | None) -> str:
    if log is None:
        return "what it said is above"
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
