"""Checks before a back-fill that every Dask worker has the same code, sees the lake and reaches Prefect's API.

A worker with other code would compute partitions under other keys. A worker that does not see the lake would create an
empty one. A worker that cannot reach Prefect's API would start its own. The messages name each such worker.
"""

import hashlib
import logging
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributed import Client
from prefect.settings import PREFECT_API_URL

from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import versions
from tasks.pipeline.lineage.sources import FIRST_PARTY

log = logging.getLogger("evenhand")

_SECONDS = 5
"""Patience with a scheduler or an API that does not answer."""


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


def identity() -> str:
    """What decides a process's results, as one digest: first-party code by its bytes, and versions of libraries."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for path in sorted(path for name in FIRST_PARTY for path in (root / name).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


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
