"""Prefect's API for a command: the configured server, else an embedded one with its database in the lake.

The embedded API is a server on the loopback interface that Prefect starts. Runs take turns to use it. The run in turn
owns the server: it passes address and password to its child processes, which would otherwise each start a server, and
stops it. The password is for the server's life, in the environment of these processes alone.
The next run stops the server of a killed process.
"""

import json
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from flows.supervision.interruption import shielded_children
from flows.supervision.prepare import seed_database
from flows.supervision.processes.server_check import require_server
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")


class InUseError(InfrastructureError):
    """Another run is using the embedded API of a lake."""


@contextmanager
def prefect_api(lake: Lake, *, wait: bool = True) -> Iterator[None]:
    """Prefect at hand: the server where one is named, else the embedded API.

    Runs on the embedded API of one lake take turns; a server takes any number at once.

    Raises:
        InUseError: another run has its turn, and ``wait`` is false.
        InfrastructureError: the server that is named is not ready.
    """
    prepare_environment(lake.storage.local)
    if api := os.environ.get("PREFECT_API_URL"):
        require_server(api)
        yield
        return
    turn = FileLock(lake.storage.local / "locks" / "embedded-api.lock")
    try:
        turn.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise InUseError(
                f"a run uses the embedded Prefect of the lake {lake.location}; try again when it has ended"
            ) from None
        log.info("another audit is running on this lake: waiting for it to end")
        turn.acquire()
    try:
        seed_database(Path(os.environ["PREFECT_HOME"]))
        with _server(lake.storage.local / "locks" / "embedded-api.json"):
            yield
    finally:
        Path(turn.lock_file).unlink(missing_ok=True)  # while it is held: who has it open sees that it is another's
        turn.release()


def prepare_environment(local: Path) -> None:
    """Keep Prefect's files in the lake, its telemetry off and its log quiet, unless the user has said otherwise.

    ``local`` is where the lake keeps files on this machine, wherever it lies: Prefect's database has to be locked.
    """
    home = local / "prefect"
    wanted = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
    }
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("PREFECT_LOCAL_STORAGE_PATH", str(Path(os.environ["PREFECT_HOME"]) / "storage"))


@contextmanager
def _server(record: Path) -> Iterator[None]:
    """The server, named to this process and those that it starts; ``record`` says to others which process it is."""
    from flows.supervision.processes.server_process import embedded_server, end, wait_for

    _end_orphan(record)
    server, password = None, f"evenhand:{secrets.token_urlsafe(32)}"
    try:
        with shielded_children():  # an audit that is stopped has to tell Prefect so
            server, api = embedded_server(password)
        record.write_text(json.dumps({"pid": server.pid, "began": psutil.Process(server.pid).create_time()}))
        from prefect.settings import (  # a second, in which the server starts
            PREFECT_API_AUTH_STRING,
            PREFECT_API_URL,
            temporary_settings,
        )

        wait_for(server, api)
        with temporary_settings({PREFECT_API_URL: api, PREFECT_API_AUTH_STRING: password}):
            yield
    finally:
        if server is not None:
            end(server)
        record.unlink(missing_ok=True)


def _end_orphan(record: Path) -> None:
    """End the server of a killed process; the run in turn has exclusive use of the embedded API."""
    try:
        known = json.loads(record.read_text())
        process = psutil.Process(known["pid"])
        if process.create_time() == known["began"]:  # else its number was given to another process
            process.terminate()
    except (OSError, ValueError, KeyError, psutil.Error):
        return
