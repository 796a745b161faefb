"""Task runners of a back-fill: threads or processes of this machine, or Dask workers.

Scope: the setting, from ``--runner`` and ``--address`` or EVENHAND_RUNNER and EVENHAND_DASK_ADDRESS, and Prefect's task
runner for it. Requirements on Dask workers: ``dask_workers``.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from flows.concurrency.worker import THREADS
from flows.concurrency.workers import threads_of
from schemas.errors import InfrastructureError, SpecError

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

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
        """The settings that words on the command line ask for; an address alone asks for Dask.

        Raises:
            SpecError: they do not go together.
        """
        given = {"kind": kind or ("dask" if address else "processes"), "address": address or None, "workers": workers}
        return _checked(given)


def _checked(given: Mapping[str, Any]) -> RunnerSettings:
    try:
        return RunnerSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ")
        where = f"runner.{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise SpecError(f"{where}{said}") from error


def task_runner(settings: RunnerSettings | Mapping[str, Any], lake: str | None = None) -> "TaskRunner[Any]":
    """The Prefect task runner of settings, or of their dump as a flow's parameter holds it.

    Args:
        settings: where tasks run.
        lake: the lake that they work on, at which Dask's workers are asked whether they see it.

    Raises:
        SpecError: the settings are none.
        InfrastructureError: Dask is not installed, its scheduler does not answer, or a worker is not fit for the work.
    """
    asked = settings if isinstance(settings, RunnerSettings) else _checked(settings)
    if asked.address is not None:
        return _on_dask(asked.address, lake)
    from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

    if asked.kind == "threads":
        return ThreadPoolTaskRunner(max_workers=asked.workers)
    return ProcessPoolTaskRunner(max_workers=asked.workers)


def at_a_time(settings: Mapping[str, Any]) -> int:
    """Tasks at the same time.

    Raises:
        SpecError: the settings are none.
        InfrastructureError: the scheduler of Dask does not answer.
    """
    asked = _checked(settings)
    if asked.address is None:
        return asked.workers
    from flows.partitions.runners.dask_workers import threads_at

    return threads_at(asked.address)


def require_restarts(settings: Mapping[str, Any]) -> None:
    """Of Dask: require that a worker which dies takes its own partition along, and no other.

    Raises:
        InfrastructureError: the scheduler or a worker is set up otherwise.
    """
    address = _checked(settings).address
    if address is not None:
        from flows.partitions.runners import dask_workers

        dask_workers.require_restarts(address)


def _on_dask(address: str, lake: str | None) -> "TaskRunner[Any]":
    try:
        from prefect_dask import DaskTaskRunner

        from flows.partitions.runners.dask_workers import require_fit
    except ImportError as error:
        raise InfrastructureError(
            f"runner dask needs libraries that are not installed ({error}): pip install 'evenhand[dask]'"
        ) from error
    require_fit(address, lake)
    runner: TaskRunner[Any] = DaskTaskRunner(address=address)
    return runner


@contextmanager
def shared_cores(at_a_time: int, *, one: bool = False) -> Iterator[None]:
    """Give processes that start meanwhile their share of the cores, through the environment where libraries look.

    Args:
        at_a_time: processes that compute at the same time.
        one: whether each has one thread, however many cores there are.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1" if one else str(threads_of(at_a_time))))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
