"""Server and worker of a soak, which can be killed and started again at the same address, and a receiver of alerts."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil

from flows.supervision.prepare import seed_database
from flows.supervision.processes.parentage import ended_with
from schemas.errors import InfrastructureError

POOL = "evenhand"
_START_SECONDS = 180.0
_LEAVE_SECONDS = 150.0
_OWN = ("PREFECT_", "EVENHAND_")
_RULES = """\
rules:
  - {when: [within, breach, insufficient_evidence, spec, data_quality, infrastructure, integrity, crashed], tell: desk}
"""


@dataclass
class Services:
    """A server on SQLite, and a worker as the operator starts it."""

    home: Path
    alerts: Path
    port: int = 0
    server: "subprocess.Popen[bytes] | None" = None
    worker: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        """Take a free port, and a database that is migrated."""
        self.port = free_port()
        self.prefect.mkdir(parents=True, exist_ok=True)
        seed_database(self.prefect)

    @property
    def api(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def lake(self) -> Path:
        """Where the audits go."""
        return self.home / "lake"

    @property
    def prefect(self) -> Path:
        """Prefect's home, with the database and the leases."""
        return self.home / "prefect"

    def environment(self) -> dict[str, str]:
        """Of both: no setting of the operator's own server."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        return {
            **kept,
            "PREFECT_HOME": str(self.prefect),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_UI_ENABLED": "false",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        }

    def start_server(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            InfrastructureError: it did not.
        """
        app = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on", "--log-level", "error"]
        words = [*ended_with("uvicorn"), *app, "--host", "127.0.0.1", "--port", str(self.port)]
        self.server = self._started(words, self.environment(), "server.log")
        until = time.monotonic() + _START_SECONDS
        while not self._ready():
            if time.monotonic() > until or self.server.poll() is not None:
                raise InfrastructureError(
                    f"the server of the soak did not start; {self.prefect / 'server.log'} says why"
                )
            time.sleep(0.3)

    def start_worker(self) -> None:
        """Start it; it takes runs some seconds later."""
        said = {"PREFECT_API_URL": self.api, "EVENHAND_ALERTS": str(self.alerts), "EVENHAND_JOBS": "1"}
        said["PREFECT_WORKER_WEBSERVER_PORT"] = str(free_port())
        words = [sys.executable, "-m", "flows.cli", "worker", "--pool", POOL, "--lake", str(self.lake)]
        self.worker = self._started(words, {**self.environment(), **said}, "worker.log")

    def kill_server(self) -> None:
        """Kill it as a machine that stops."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    def kill_worker(self) -> None:
        """Kill it alone: what it started has to end by itself."""
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()

    def leave(self) -> int:
        """Ask the worker to end; gives its exit code, and -9 where it had to be killed."""
        if self.worker is None:
            return 0
        with suppress(subprocess.TimeoutExpired):
            self.worker.send_signal(signal.SIGTERM)
            return self.worker.wait(timeout=_LEAVE_SECONDS)
        self.kill_worker()
        return -signal.SIGKILL

    def close(self) -> None:
        """End both in any case."""
        for process in (self.worker, self.server):
            if process is not None and process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                process.kill()
                process.wait()

    def memory_mb(self) -> dict[str, float]:
        """Of the server, and of the worker with Prefect's; runs that they started do not count."""
        found = {}
        with suppress(psutil.Error, AttributeError):
            found["server"] = psutil.Process(self.server.pid).memory_info().rss / 1e6  # type: ignore[union-attr]
            ours = psutil.Process(self.worker.pid)  # type: ignore[union-attr]
            members = [ours, *(child for child in ours.children() if "prefect" in " ".join(child.cmdline()))]
            found["worker"] = sum(each.memory_info().rss for each in members) / 1e6
        return found

    def left(self) -> list[str]:
        """Processes that have to do with this soak and live."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                about = " ".join(process.cmdline()) + process.environ().get("PREFECT_HOME", "")
                if str(self.home) in about and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {process.name()}")
        return found

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.api}/ready", timeout=5).is_success
        except httpx.TransportError:
            return False

    def _started(self, words: list[str], environment: dict[str, str], log: str) -> "subprocess.Popen[bytes]":
        with (self.prefect / log).open("ab") as output:
            return subprocess.Popen(  # noqa: S603 our own words
                words, env=environment, stdout=output, stderr=output, start_new_session=True
            )


@dataclass
class Received:
    """What a receiver of alerts was sent."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def receiver(file: Path) -> Iterator[Received]:
    """A web server on loopback that takes alerts, and the file that names it, for EVENHAND_ALERTS."""
    received = Received()

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Post)
    received.port = server.server_address[1]
    file.write_text(f"to:\n  desk: json://127.0.0.1:{received.port}/soak\n{_RULES}")
    file.chmod(0o600)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
