"""Launch a back-fill: on the server where one is named, else on an embedded API that its processes share."""

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from flows.attempts import Attempt, latest, summed_up
from flows.forecast import forecast
from flows.launch import prefect_api
from flows.year_audit import audit_year
from schemas.errors import EvenhandError
from schemas.settings import AuditSpec
from tasks._store import Lake

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Backfill:
    """What is asked for."""

    spec: AuditSpec
    years: Sequence[int]
    lake: str
    runner: dict[str, Any]
    """Where years run, as ``flows.runners.RunnerSettings`` dumps it."""
    force: bool = False


def run_backfill(asked: Backfill) -> dict[str, Any]:
    """Audit the years; gives the record of each and the exit code of the most serious one.

    Raises:
        InfrastructureError: the lake cannot be written.
    """
    lake = Lake(asked.lake)
    found = forecast(asked.spec, asked.years, lake)
    if not any(year.is_left(asked.force) for year in found):
        log.info("all %d years are in the lake already: nothing to compute", len(found))
        return summed_up([_stands(asked, year.year, lake) for year in found])
    with prefect_api(lake), _shared_api(lake):
        from flows.backfill import backfill  # starts Prefect

        said: dict[str, Any] = backfill(
            spec=asked.spec.model_dump(mode="json"),
            years=list(asked.years),
            lake=lake.location,
            runner=asked.runner,
            force=asked.force,
        )
    return said


def _stands(asked: Backfill, year: int, lake: Lake) -> Attempt:
    """The record of a year of which nothing is left to compute; its files are held against their digests."""
    try:
        return audit_year(asked.spec, year, lake, asked.force)
    except EvenhandError:
        last = latest(lake, asked.spec.name, year)
        if last is None:
            raise
        return last


@contextmanager
def _shared_api(lake: Lake) -> Iterator[None]:
    """Name the embedded API to the processes that audit years: each would else start one of its own."""
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, temporary_settings

    record = lake.storage.local / "locks" / "embedded-api.json"
    _end_orphan(record)
    server = SubprocessASGIServer()
    server.start()
    try:
        if server.server_process is not None:
            process = psutil.Process(server.server_process.pid)
            record.write_text(json.dumps({"pid": process.pid, "began": process.create_time()}))
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            yield
    finally:
        server.stop()
        record.unlink(missing_ok=True)


def _end_orphan(record: Path) -> None:
    """End the server of a back-fill that was killed; whoever holds the lock of the embedded API is alone on it."""
    try:
        known = json.loads(record.read_text())
        process = psutil.Process(known["pid"])
        if process.create_time() == known["began"]:  # else its number was given to another process
            process.terminate()
    except (OSError, ValueError, KeyError, psutil.Error):
        return
