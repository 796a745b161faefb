"""Writes the record of an attempt: when it begins, at each of its stages, and when it ends, each time in one step.

The process that audits a year or a partition holds its lock, which the operating system releases when the process dies.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from flows.partitions.attempts.reading import folder_of, latest, lock_of
from flows.partitions.attempts.record import Attempt, YearState
from flows.supervision.crash import report_crash
from flows.supervision.processes.shortage import is_replaceable, lacks_memory
from schemas.errors import EvenhandError, TooFewError
from schemas.terms import ExitCode
from tasks.lake.log import last_number
from tasks.lake.store import Lake


class Recorder:
    """Keeps the record of one attempt."""

    def __init__(self, lake: Lake, audit: str, year: int, value: str = "", **known: Any) -> None:
        """Begin the next attempt of the year or partition; the caller holds its lock.

        ``known`` are fields of the record that are known before it begins, such as its rows.
        """
        self._lake, self._clock = lake, time.perf_counter()
        before = latest(lake, audit, year, value)
        self.attempt = Attempt(
            audit=audit,
            year=year,
            value=value,
            **known,
            attempt=before.attempt + 1 if before else 1,
            state=YearState.RUNNING,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            after=last_number(lake),
            pid=os.getpid(),
            host=socket.gethostname(),
        )
        self.tell()

    def tell(self, **news: object) -> None:
        """Update the record."""
        self.attempt = self.attempt.model_copy(update=news)
        write(self._lake, self.attempt)

    def end(self, state: YearState, exit_code: int, message: str = "", **more: object) -> Attempt:
        """Record the end of the attempt."""
        seconds = round(time.perf_counter() - self._clock, 3)
        self.tell(state=state, exit_code=int(exit_code), message=message, seconds=seconds, **more)
        return self.attempt


@contextmanager
def recorded(lake: Lake, audit: str, year: int, value: str = "", **known: Any) -> Iterator[Recorder]:
    """An attempt of a year or partition. An error is recorded and goes on, but for data with nothing to compare.

    Another attempt of the same one, in whatever process, waits for it to end.
    """
    with lake.lock(lock_of(audit, year, value)):
        recorder = Recorder(lake, audit, year, value, **known)
        try:
            yield recorder
        except TooFewError as error:
            recorder.end(YearState.INSUFFICIENT, ExitCode.INSUFFICIENT_EVIDENCE, str(error))
        except EvenhandError as error:
            _fail(recorder, error, str(error))
            raise
        except OSError as error:
            _fail(recorder, error, f"{type(error).__name__}: {error}")
            raise
        except Exception as error:  # its words may hold values of rows: they stay out of the record
            _fail(recorder, error, report_crash(error, ["--lake", lake.location]))
            raise


def _fail(recorder: Recorder, error: Exception, message: str) -> None:
    code = error.exit_code if isinstance(error, EvenhandError) else ExitCode.INFRASTRUCTURE
    recorder.end(YearState.FAILED, code, message, replaced=lacks_memory(error) and is_replaceable())


def write(lake: Lake, attempt: Attempt) -> None:
    """Write a record over the one that was there."""
    path = f"{folder_of(attempt.audit, attempt.year, attempt.value)}/{attempt.attempt:04d}.json"
    draft = f"tmp/{path.replace('/', '-')}-{os.getpid()}"  # files of other years have the same name
    lake.write_file(path, attempt.model_dump_json(indent=1).encode(), draft)
