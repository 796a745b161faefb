"""A server of one's own that can be killed and started again at the same address, with one deployment of the audit.

Leases of concurrency limits lie on the disk, as compose.yaml has it.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
from conftest import REPOSITORY

from flows.supervision.prepare import seed_database

POOL = "evenhand"
PATIENCE = 400.0


@dataclass
class Server:
    """Prefect's server as a process, on SQLite."""

    home: Path
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    started: list[psutil.Process] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)
    """Settings of commands."""

    def __post_init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        seed_database(self.home)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "EVENHAND_"))}
        own = {
            "PREFECT_HOME": str(self.home),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            "PREFECT_SERVER_CONCURRENCY_INITIAL_DEPLOYMENT_LEASE_DURATION": "30",  # the least: a lost one shows soon
            "PREFECT_SERVER_UI_ENABLED": "false",
        }
        return kept | own | {"PYTHONPATH": str(REPOSITORY), "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}"}

    def start(self) -> None:
        app = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on", "--log-level", "error"]
        words = [sys.executable, "-m", "uvicorn", *app, "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(words, env=self.environment(), cwd=self.home, stdout=log, stderr=log)
        until("the server is ready", self.ready)

    def ready(self) -> bool:
        try:
            return httpx.get(f"{self.api}/ready", timeout=5).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of ours with this server."""
        environment = {**self.environment(), "PREFECT_API_URL": self.api, **self.more}
        done = [sys.executable, "-m", "flows.cli", *words]
        return subprocess.run(
            done, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def end(self) -> None:
        """End it, and all workers with what they started."""
        for process in self.started:
            with suppress(psutil.Error):
                for each in [process, *process.children(recursive=True)]:
                    each.kill()
        self.kill()

    def worker(self, lake: Path, **said: str) -> "subprocess.Popen[bytes]":
        """`evenhand worker`, which has taken no run yet."""
        environment = {**self.environment(), "PREFECT_API_URL": self.api, "EVENHAND_JOBS": "1", **said}
        environment["PREFECT_WORKER_WEBSERVER_PORT"] = str(free_port())
        environment["PREFECT_WORKER_QUERY_SECONDS"] = "1"
        with (self.home / "worker.log").open("ab") as log:
            words = [sys.executable, "-m", "flows.cli", "worker", "--lake", str(lake)]
            process = subprocess.Popen(
                words, env=environment, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_heed,
            )  # fmt: skip
        self.started.append(psutil.Process(process.pid))
        return process

    def log(self) -> str:
        file = self.home / "worker.log"
        return file.read_text(errors="replace")[-6000:] if file.is_file() else ""


def _heed() -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(what: str, found: Callable[[], Any], seconds: float = PATIENCE, told: Callable[[], str] = str) -> Any:
    """Wait for something to be found; gives it."""
    limit = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < limit, f"not within {seconds:g} s: {what}\n{told()}"
        time.sleep(0.05)
    return result


@dataclass
class Deployed:
    """A deployment of a flow on a server."""

    client: Any
    deployment: UUID

    def begin(self, **parameters: Any) -> UUID:
        """A run of it, to begin now."""
        return UUID(str(self.client.create_flow_run_from_deployment(self.deployment, parameters=parameters).id))

    def state(self, run: UUID) -> tuple[str, str, str]:
        """Type, name and message."""
        state = self.client.read_flow_run(run).state
        return state.type.value, state.name, state.message or ""

    def states(self, run: UUID) -> list[str]:
        """The messages of all states that it had."""
        return [state.message or "" for state in self.client.read_flow_run_states(run)]

    def resume_pool(self) -> None:
        """Let workers take runs again, as ``prefect work-pool resume`` does."""
        from prefect.client.schemas.actions import WorkPoolUpdate

        self.client.update_work_pool(POOL, WorkPoolUpdate(is_paused=False))

    def over(self, run: UUID) -> tuple[str, str, str] | None:
        """Its state, once it is no other any more; a crash may be taken up again."""
        found = self.state(run)
        return found if found[0] in ("COMPLETED", "FAILED", "CANCELLED") else None


@contextmanager
def deployed(server: Server, entrypoint: str) -> Iterator[Deployed]:
    """A flow, registered with a limit of one run at a time, as prefect.yaml has it."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server.api}), get_client(sync_client=True) as client:
        if not client.read_work_pools():
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        flow = client.create_flow_from_name(entrypoint.split(".")[-1])
        deployment = client.create_deployment(
            flow,
            name="living",
            entrypoint=entrypoint,
            work_pool_name=POOL,
            pull_steps=[],
            concurrency_limit=1,
        )
        yield Deployed(client, deployment)


def limit_memory(pids: Iterable[int], limited: set[int]) -> None:
    """Let processes have no more memory than they have now, as `ulimit -v` does; each once."""
    for pid in set(pids) - limited:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            process.rlimit(psutil.RLIMIT_AS, (process.memory_info().vms, psutil.RLIM_INFINITY))
            limited.add(pid)
