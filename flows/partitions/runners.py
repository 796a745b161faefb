"""Task runners of a back-fill: threads, processes or Dask workers."""

import hashlib
import logging
import math
import os
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from flows.concurrency.workers import THREADS, threads_of
from schemas.errors import EvenhandError, InfrastructureError, SpecError
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake
from tasks.pipeline.digests import FIRST_PARTY, versions

if TYPE_CHECKING:
    from distributed import Client
    from prefect.task_runners import TaskRunner


# --------------------------------------------------------------------------------------------------------------------
# Identity of the code that computes: what decides a process's results, as one digest.


@cache
def identity() -> str:
    """What decides a process's results, as one digest: first-party code by its bytes, and versions of libraries."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for path in sorted(path for name in FIRST_PARTY for path in (root / name).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# Checks before a back-fill that every Dask worker has the same code, sees the lake and reaches Prefect's API.
#
# A worker with other code would compute partitions under other keys. A worker that does not see the lake would create
# an empty one. A worker that cannot reach Prefect's API would start its own. The messages name each such worker.


log = logging.getLogger("evenhand")

_FRACTIONS = ("target", "spill", "pause")
_SECONDS = 5
"""Patience with a scheduler or an API that does not answer."""


class Capacity(NamedTuple):
    """What a Dask worker may take."""

    worker: str
    mb: float
    """For each of its threads; infinite without a limit."""
    large: bool
    """Whether it has the resource ``large``."""


def require_fit(address: str, lake: str | None) -> None:
    """Examine all workers that there are.

    Raises:
        InfrastructureError: the scheduler does not answer, or a worker is not fit.
    """
    try:
        client = _client(address)
    except OSError as error:
        raise InfrastructureError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, or correct --address"
        ) from error
    with client:
        try:
            worker_states = _examined(client, lake)
        except EvenhandError:
            raise
        except Exception as error:
            raise InfrastructureError(
                f"the Dask workers at {address} cannot run evenhand ({error!r}); install the same evenhand there"
            ) from error
    if not worker_states:
        log.warning("the Dask scheduler at %s has no worker yet: waiting for `dask worker %s`", address, address)
    for worker, state in worker_states.items():
        _require(worker, state, lake)


def _client(address: str) -> "Client":
    """Client of a scheduler. Dask is an extra, and what plans years loads neither it nor Prefect."""
    from distributed import Client

    return Client(address, timeout=_SECONDS, set_as_default=False)


def threads_at(address: str) -> int:
    """Tasks that the workers take at the same time; 1 where there is no worker yet."""
    with _client(address) as client:
        return max(int(sum(client.ncores().values())), 1)


def capacities(address: str) -> list[Capacity]:
    """What each worker may take."""
    with _client(address) as client:
        limits = client.run_on_scheduler(_capacities)
    return [
        Capacity(name, limit / threads / 1e6 if limit else math.inf, large) for name, limit, threads, large in limits
    ]


def _capacities(dask_scheduler: Any) -> list[tuple[str, int, int, bool]]:
    """Runs on the scheduler: address, bytes, threads and resource of each worker."""
    workers = dask_scheduler.workers.values()
    return [(w.address, w.memory_limit or 0, w.nthreads, w.resources.get("large", 0) >= 1) for w in workers]


def require_restarts(address: str) -> None:
    """Require the settings under which a worker that dies takes its own partition along, and no other.

    Raises:
        InfrastructureError: the scheduler would hand a partition that ends a worker to others, or a worker that is near
            its limit would pause and take nothing more.
    """
    with _client(address) as client:
        allowed = client.run_on_scheduler(_allowed_failures)
        paused = [worker for worker, pauses in client.run(_pauses).items() if pauses]
    if allowed:
        raise InfrastructureError(
            f"the Dask scheduler at {address} would hand a partition that ends its worker to {allowed} more of them; "
            "start it with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0: the back-fill takes it once more itself"
        )
    if paused:
        names = ", ".join(f"DASK_DISTRIBUTED__WORKER__MEMORY__{name.upper()}=false" for name in _FRACTIONS)
        raise InfrastructureError(
            f"the Dask worker {paused[0]} would spill or pause near its memory limit, and may then take nothing more; "
            f"start workers with {names}"
        )


def _allowed_failures(dask_scheduler: Any) -> int:
    """Runs on the scheduler."""
    return int(dask_scheduler.allowed_failures)


def _pauses() -> bool:
    """Runs on a worker."""
    import dask

    return any(dask.config.get(f"distributed.worker.memory.{name}") for name in _FRACTIONS)


def _examined(client: "Client", lake: str | None) -> dict[str, dict[str, Any]]:
    """What every worker reports of itself; a mark in the lake shows which of them see this very lake."""
    from prefect.settings import PREFECT_API_URL

    api = PREFECT_API_URL.value()
    if lake is None:
        return dict(client.run(_say, None, "", api))
    mark = f"tmp/seen-{uuid.uuid4().hex}/mark"
    shared_lake = Lake(lake)
    shared_lake.write_file(mark, b"seen")
    try:
        return dict(client.run(_say, shared_lake.location, mark, api))
    finally:
        shared_lake.storage.remove(mark.rpartition("/")[0])


def _say(lake: str | None, mark: str, api: str | None) -> dict[str, Any]:
    """Runs on a worker."""
    return {
        "identity": identity(),
        "sees": lake is None or storage_at(lake).read(mark) is not None,
        "unreached": _unreached(api),
    }


def _require(worker: str, state: Mapping[str, Any], lake: str | None) -> None:
    if state["identity"] != identity():
        raise InfrastructureError(
            f"the Dask worker {worker} has another evenhand, or other libraries, than this process: its results would "
            "not be those of the others; install the same requirements.lock there, and start it again"
        )
    if not state["sees"]:
        raise InfrastructureError(
            f"the Dask worker {worker} does not see the lake {lake}: name one that all of them share, a directory "
            "mounted at the same path everywhere or a URI such as s3://bucket/lake"
        )
    if state["unreached"]:
        raise InfrastructureError(
            f"the Dask worker {worker} does not reach Prefect's API ({state['unreached']}): start a server that all "
            "workers reach, and set PREFECT_API_URL here"
        )


def _unreached(api: str | None) -> str:
    """Why an API cannot be reached; empty where it can, or where there is none."""
    if api is None:
        return ""
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=_SECONDS):  # noqa: S310 http, as Prefect was given it
            return ""
    except urllib.error.HTTPError:
        return ""  # it answered
    except (OSError, ValueError) as error:
        return f"{api}: {error}"


# --------------------------------------------------------------------------------------------------------------------
# Task runners of a back-fill: threads or processes of this machine, or Dask workers.
#
# Scope: the setting, from ``--runner`` and ``--address`` or EVENHAND_RUNNER and EVENHAND_DASK_ADDRESS, and Prefect's
# task runner for it. Requirements on Dask workers: ``dask_workers``.


Kind = Literal["threads", "processes", "dask"]


class RunnerSettings(BaseModel):
    """Where tasks run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = "processes"
    """Processes by default: libraries that compute share one process badly."""
    workers: int = Field(default=1, ge=1)
    """Tasks at the same time. Dask has as many as its workers have threads, and takes no notice of this."""
    address: str | None = None
    """Of the Dask scheduler, such as ``tcp://10.0.0.5:8786``."""

    @model_validator(mode="after")
    def _address_of_dask(self) -> Self:
        if self.kind != "dask":
            if self.address is not None:
                raise ValueError(f"runner {self.kind} takes no address; runner dask does")
            return self
        parts = urlsplit(self.address or "")
        try:
            usable = parts.scheme in ("tcp", "tls") and bool(parts.hostname) and parts.port is not None
        except ValueError:  # a port that is no number
            usable = False
        if not usable:
            raise ValueError(
                f"runner dask needs the address of a scheduler, such as tcp://127.0.0.1:8786, and got {self.address!r}"
            )
        return self

    @classmethod
    def parse(cls, kind: str | None = None, address: str | None = None, workers: int = 1) -> "RunnerSettings":
        """The settings that words on the command line request; an address alone requests Dask.

        Raises:
            SpecError: they do not go together.
        """
        fields = {"kind": kind or ("dask" if address else "processes"), "address": address or None, "workers": workers}
        return _checked(fields)


def _checked(fields: Mapping[str, Any]) -> RunnerSettings:
    try:
        return RunnerSettings.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        where = f"runner.{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise SpecError(f"{where}{message}") from error


def task_runner(settings: RunnerSettings | Mapping[str, Any], lake: str | None = None) -> "TaskRunner[Any]":
    """The Prefect task runner of settings, or of their dump as a flow's parameter holds it.

    Args:
        settings: where tasks run.
        lake: the lake that they work on, at which Dask's workers are asked whether they see it.

    Raises:
        SpecError: the settings are none.
        InfrastructureError: Dask is not installed, its scheduler does not answer, or a worker is not fit for the work.
    """
    checked_settings = settings if isinstance(settings, RunnerSettings) else _checked(settings)
    if checked_settings.address is not None:
        return _on_dask(checked_settings.address, lake)
    from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

    if checked_settings.kind == "threads":
        return ThreadPoolTaskRunner(max_workers=checked_settings.workers)
    return ProcessPoolTaskRunner(max_workers=checked_settings.workers)


def at_a_time(settings: Mapping[str, Any]) -> int:
    """Tasks at the same time.

    Raises:
        SpecError: the settings are none.
        InfrastructureError: the scheduler of Dask does not answer.
    """
    checked_settings = _checked(settings)
    if checked_settings.address is None:
        return checked_settings.workers

    return threads_at(checked_settings.address)


def task_runners_require_restarts(settings: Mapping[str, Any]) -> None:
    """Of Dask: require that a worker which dies takes its own partition along, and no other.

    Raises:
        InfrastructureError: the scheduler or a worker is set up otherwise.
    """
    address = _checked(settings).address
    if address is not None:
        require_restarts(address)


def _on_dask(address: str, lake: str | None) -> "TaskRunner[Any]":
    try:
        from prefect_dask import DaskTaskRunner

    except ImportError as error:
        raise InfrastructureError(
            f"runner dask needs libraries that are not installed ({error}): pip install 'evenhand[dask]'"
        ) from error
    require_fit(address, lake)
    runner: TaskRunner[Any] = DaskTaskRunner(address=address)
    return runner


def least_rows() -> int:
    """Rows from which on a partition has a sub-flow run: EVENHAND_SUB_FLOW_ROWS, else 10,000.

    Below them Prefect's share of the cost would be large, and of thousands of partitions the server would keep a
    hundred thousand task runs: their stages are in the log alone.
    """
    setting = os.environ.get("EVENHAND_SUB_FLOW_ROWS", "")
    return int(setting) if setting.isdecimal() else 10_000


def least_divided() -> int:
    """Rows from which on each stage of a partition is a separate task, where several tasks run at the same time."""
    return 10 * least_rows()


@contextmanager
def shared_cores(at_a_time: int, *, single_thread: bool = False) -> Iterator[None]:
    """Give processes that start meanwhile their share of the cores, through the environment where libraries look.

    Args:
        at_a_time: processes that compute at the same time.
        single_thread: whether each has one thread, however many cores there are.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1" if single_thread else str(threads_of(at_a_time))))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
