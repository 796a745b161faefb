"""Checks before a back-fill that every Dask worker has the same code, sees the lake and reaches Prefect's API.

A worker with other code would compute partitions under other keys. A worker that does not see the lake would create an
empty one. A worker that cannot reach Prefect's API would start its own. The messages name each such worker.
"""

import logging
import math
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import dask
from distributed import Client
from prefect.settings import PREFECT_API_URL

from flows.partitions.runners.identity import identity
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake

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
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except OSError as error:
        raise InfrastructureError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, or mend --address"
        ) from error
    with client:
        try:
            found = _examined(client, lake)
        except EvenhandError:
            raise
        except Exception as error:
            raise InfrastructureError(
                f"the Dask workers at {address} cannot run evenhand ({error!r}); install the same evenhand there"
            ) from error
    if not found:
        log.warning("the Dask scheduler at %s has no worker yet: waiting for `dask worker %s`", address, address)
    for worker, said in found.items():
        _require(worker, said, lake)


def threads_at(address: str) -> int:
    """Tasks that the workers take at the same time; 1 where there is no worker yet."""
    with Client(address, timeout=_SECONDS, set_as_default=False) as client:
        return max(int(sum(client.ncores().values())), 1)


def capacities(address: str) -> list[Capacity]:
    """What each worker may take."""
    with Client(address, timeout=_SECONDS, set_as_default=False) as client:
        found = client.run_on_scheduler(_capacities)
    return [
        Capacity(name, limit / threads / 1e6 if limit else math.inf, large) for name, limit, threads, large in found
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
    with Client(address, timeout=_SECONDS, set_as_default=False) as client:
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
    return any(dask.config.get(f"distributed.worker.memory.{name}") for name in _FRACTIONS)


def _examined(client: Client, lake: str | None) -> dict[str, dict[str, Any]]:
    """What every worker says of itself; a mark in the lake shows which of them see this very lake."""
    api = PREFECT_API_URL.value()
    if lake is None:
        return dict(client.run(_say, None, "", api))
    mark = f"tmp/seen-{uuid.uuid4().hex}/mark"
    here = Lake(lake)
    here.write_file(mark, b"seen")
    try:
        return dict(client.run(_say, here.location, mark, api))
    finally:
        here.storage.remove(mark.rpartition("/")[0])


def _say(lake: str | None, mark: str, api: str | None) -> dict[str, Any]:
    """Runs on a worker."""
    return {
        "identity": identity(),
        "sees": lake is None or storage_at(lake).read(mark) is not None,
        "unreached": _unreached(api),
    }


def _require(worker: str, said: Mapping[str, Any], lake: str | None) -> None:
    if said["identity"] != identity():
        raise InfrastructureError(
            f"the Dask worker {worker} has another evenhand, or other libraries, than this process: its results would "
            "not be those of the others; install the same requirements.lock there, and start it again"
        )
    if not said["sees"]:
        raise InfrastructureError(
            f"the Dask worker {worker} does not see the lake {lake}: name one that all of them share, a directory "
            "mounted at the same path everywhere or a URI such as s3://bucket/lake"
        )
    if said["unreached"]:
        raise InfrastructureError(
            f"the Dask worker {worker} does not reach Prefect's API ({said['unreached']}): start a server that all "
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
