"""Records of attempts to audit a year or a partition."""

import hashlib
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.supervision.crash_files import report_crash
from flows.supervision.presence import held
from flows.supervision.shutdown import is_replaceable, lacks_memory
from schemas.audit.partition import slug
from schemas.errors import EvenhandError, IntegrityError, TooFewError
from schemas.tables.applications import read_words
from schemas.terms import ExitCode, State
from tasks.lake.log import last_number
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# Record of one attempt to audit a year, or one partition of it: its states, and what many of them come to.


class YearState(StrEnum):
    """State of the audit of a year."""

    RUNNING = "running"
    WITHIN = "within"
    OUTSIDE = "outside"
    INCONCLUSIVE = "inconclusive"
    """Audited, or found to hold nothing to compare: too little evidence for a verdict, which is no pass."""
    TOO_FEW = "too_few"
    """A partition with fewer people than `by` asks for: it is listed and not audited, which is no failure."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Its process died."""

    @classmethod
    def _missing_(cls, value: object) -> "YearState | None":
        """A state as earlier versions recorded it."""
        return {"breach": cls.OUTSIDE, "insufficient": cls.INCONCLUSIVE}.get(str(value))


OF_VERDICT = {State.WITHIN: YearState.WITHIN, State.OUTSIDE: YearState.OUTSIDE}
"""The state of a finished year by the verdict of its run; any other verdict is inconclusive."""

SERIOUSNESS = (
    ExitCode.WITHIN,
    ExitCode.INCONCLUSIVE,
    ExitCode.OUTSIDE,
    ExitCode.USAGE,
    ExitCode.DATA_QUALITY,
    ExitCode.INFRASTRUCTURE,
    ExitCode.INTEGRITY,
)
"""Exit codes, the most serious last: what was altered outweighs what could not be run, and that outweighs a verdict."""


_NAMED = 10
"""Years or partitions in a message."""


class Attempt(BaseModel):
    """One attempt to audit one year, or one partition of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit: str
    year: int
    value: str = ""
    """Of the column of `by`, or ``ALL``; empty where the year is audited as a whole."""
    rows: int | None = None
    """Of the partition in the source."""
    conditions: str = ""
    """Digest of what decides the result of a partition (``lenders.outlook``); empty of a year."""
    attempt: int
    state: YearState
    stage: str = ""
    """The stage that runs, or at which it ended."""
    stages: tuple[str, ...] = ()
    """Those of the year, in order."""
    message: str = ""
    """Why it is insufficient or failed."""
    run: str | None = None
    source_sha256: str | None = None
    vintage: str = ""
    """The edition of the year's data in words, where the lake holds it as one."""
    read: dict[str, Any] | None = None
    """What was read, as the run's manifest keeps it; None without a run, and in records of earlier versions."""
    lacking: tuple[str, ...] = ()
    computed: int = 0
    """Stages that were not in the lake before."""
    began: str
    after: int | None = None
    """Number of the last entry of the lake's log when it began; None in records of earlier versions."""
    seconds: float | None = None
    exit_code: int | None = None
    replaced: bool = False
    """Whether it had no memory and its process ended for that: another process may have more."""
    pid: int
    host: str

    @property
    def ended(self) -> bool:
        """Whether the attempt has ended."""
        return self.state is not YearState.RUNNING

    @property
    def source_words(self) -> str:
        """What was read in words; where that is not known, the edition or the digest of the year's data."""
        return read_words(self.read) if self.read else self.vintage or (self.source_sha256 or "")[:12]


class YearsFailedError(EvenhandError):
    """Years or partitions could not be audited. The others were: ``summary`` has all, as ``summed_up`` gives it."""

    def __init__(self, records: Sequence[Attempt]) -> None:
        """The message names the first of them; why each failed is in its record."""
        failed = [
            f"{r.year} {r.value}".rstrip() + f" (exit code {r.exit_code})"
            for r in records
            if r.state is YearState.FAILED
        ]
        parts = any(record.value for record in records)
        named = ", ".join(failed[:_NAMED]) + (f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else "")
        super().__init__(
            f"{len(failed)} of {len(records)} {'partitions' if parts else 'years'} could not be audited: {named}; "
            f"`evenhand status{' --by' if parts else ''}` says why"
        )
        self.summary = summed_up(records)


def worst(codes: Iterable[int | None]) -> ExitCode:
    """The most serious of exit codes; without any, nothing was found, which is no pass.

    None is that of a year of which nobody knows how it ended.
    """
    exit_codes = [ExitCode.INFRASTRUCTURE if code is None else ExitCode(code) for code in codes]
    return max(exit_codes, key=SERIOUSNESS.index, default=ExitCode.INCONCLUSIVE)


def summed_up(records: Sequence[Attempt]) -> dict[str, Any]:
    """What a back-fill gives: the record of every year or partition, and the exit code of the most serious one.

    Partitions with too few people do not count. A partition that failed makes it 5 at least.
    """
    codes = [record.exit_code for record in records if record.state is not YearState.TOO_FEW]
    failed = any(record.value and record.state is YearState.FAILED for record in records)
    code = worst([*codes, *([ExitCode.INFRASTRUCTURE] if failed else [])])
    year_records = [record.model_dump(mode="json") for record in records]
    return {"audit": records[0].audit, "exit_code": int(code), "years": year_records}


# --------------------------------------------------------------------------------------------------------------------
# Reads records: ``backfills/<audit>/<year>/<attempt>.json``, of a partition ``.../<year>/<slug>/<attempt>.json``.
#
# A record that says ``running`` while its lock is free belongs to an interrupted attempt. Scope: one year or one
# partition. All partitions of a year at once: ``flows.partitions.partition_list``.


LISTING = "listing.json"
"""Beside the records of a year: the partitions that it has."""


def folder_of(audit: str, year: int, value: str = "") -> str:
    """Folder of the records of a year, or of a partition."""
    return f"backfills/{audit}/{year}" + (f"/{place_of(value)}" if value else "")


def place_of(value: str) -> str:
    """A partition's part of a path: its slug, which other values may share, with a digest where it is not the value."""
    plain = slug(value)
    return plain if plain == value else f"{plain}-{hashlib.sha256(value.encode()).hexdigest()[:6]}"


def lock_of(audit: str, year: int, value: str = "") -> str:
    """Name of the lock that is held while the year or partition is audited."""
    return f"year-{audit}-{year}" + (f"-{place_of(value)}" if value else "")


def attempts(lake: Lake, audit: str | None = None, year: int | None = None, value: str = "") -> list[Attempt]:
    """All records of an audit and year as a whole, or of one partition, in order of time.

    Raises:
        IntegrityError: one is not as a back-fill of this version writes them.
    """
    value_folder = f"/{place_of(value)}" if value else ""
    paths = lake.storage.glob(f"backfills/{audit or '*'}/{year or '*'}{value_folder}/*.json")
    records = [
        record for path in paths if not path.endswith(LISTING) and (record := read_record(lake, path)) is not None
    ]
    return sorted(records, key=lambda a: (a.audit, a.year, a.attempt))


def read_record(lake: Lake, path: str) -> Attempt | None:
    """One record; None where there is none.

    Raises:
        IntegrityError: it is not as a back-fill of this version writes them.
    """
    try:
        content = lake.storage.read(path)
    except FileNotFoundError:  # removed between the look and the reading
        content = None
    if content is None:
        return None
    try:
        return Attempt.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(
            f"{lake.storage.where(path)} is not a record that this version wrote; restore it from a copy, or remove "
            "it: what the year's audits found is not in it, and stays"
        ) from error


def latest(lake: Lake, audit: str, year: int, value: str = "") -> Attempt | None:
    """The last attempt of a year or partition: interrupted if its process is gone; None without any."""
    last = _last(lake, audit, year, value)
    if last is None or last.ended or _works(lake, last):
        return last
    if _last(lake, audit, year, value) != last:  # it ended, or went on, between the two looks
        return latest(lake, audit, year, value)
    return interrupted(last)


def _works(lake: Lake, attempt: Attempt) -> bool:
    """Whether a process holds the lock of its year or partition."""
    return held(lake.storage.local / "locks" / f"{lock_of(attempt.audit, attempt.year, attempt.value)}.lock")


def as_it_stands(lake: Lake, attempt: Attempt) -> Attempt:
    """A record that was just read, interrupted if its process is gone."""
    if attempt.ended or _works(lake, attempt):
        return attempt
    return latest(lake, attempt.audit, attempt.year, attempt.value) or attempt


def interrupted(attempt: Attempt) -> Attempt:
    """The record of an attempt as interrupted: its process is gone."""
    at = f"process {attempt.pid} on {attempt.host} died during {attempt.stage or 'its start'}"
    message = f"{at}; run the back-fill again, which goes on there"
    return attempt.model_copy(
        update={"state": YearState.INTERRUPTED, "message": message, "exit_code": int(ExitCode.INFRASTRUCTURE)}
    )


def _last(lake: Lake, audit: str, year: int, value: str) -> Attempt | None:
    year_attempts: Sequence[Attempt] = attempts(lake, audit, year, value)
    return year_attempts[-1] if year_attempts else None


# --------------------------------------------------------------------------------------------------------------------
# Writes the record of an attempt: when it begins, at each of its stages, and when it ends, each time in one step.
#
# The process that audits a year or a partition holds its lock, which the operating system releases when the process
# dies.


class Recorder:
    """Keeps the record of one attempt."""

    def __init__(
        self, lake: Lake, audit: str, year: int, value: str = "", *, goes_on: int = 0, **initial_fields: Any
    ) -> None:
        """Begin the next attempt of the year or partition; the caller holds its lock.

        ``initial_fields`` are fields of the record that are known before it begins, such as its rows. ``goes_on`` is
        the number of an attempt that another process began and handed over: it goes on if it has not ended.
        """
        self._lake, self._clock = lake, time.perf_counter()
        before = latest(lake, audit, year, value)
        if before is not None and before.attempt == goes_on and not before.ended:
            since = datetime.now(UTC) - datetime.fromisoformat(before.began)
            self._clock -= max(since.total_seconds(), 0.0)
            self.attempt = before
            self.tell(**initial_fields, pid=os.getpid(), host=socket.gethostname())
            return
        self.attempt = Attempt(
            audit=audit,
            year=year,
            value=value,
            **initial_fields,
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

    def end(self, state: YearState, exit_code: int, message: str = "", **final_fields: object) -> Attempt:
        """Record the end of the attempt."""
        seconds = round(time.perf_counter() - self._clock, 3)
        self.tell(state=state, exit_code=int(exit_code), message=message, seconds=seconds, **final_fields)
        return self.attempt


@contextmanager
def recorded(
    lake: Lake, audit: str, year: int, value: str = "", *, goes_on: int = 0, **initial_fields: Any
) -> Iterator[Recorder]:
    """An attempt of a year or partition. An error is recorded and goes on, but for data with nothing to compare.

    Another attempt of the same one, in whatever process, waits for it to end.
    """
    with lake.lock(lock_of(audit, year, value)):
        recorder = Recorder(lake, audit, year, value, goes_on=goes_on, **initial_fields)
        try:
            yield recorder
        except TooFewError as error:
            recorder.end(YearState.INCONCLUSIVE, ExitCode.INCONCLUSIVE, str(error))
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
