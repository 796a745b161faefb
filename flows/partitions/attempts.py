"""Records of a back-fill: one JSON file per year and attempt, ``backfills/<audit>/<year>/<attempt>.json``.

A record is replaced atomically when the attempt begins, at each of its stages, and when it ends. The process that
audits a year holds its lock, which the operating system releases when the process dies. So a record that says
``running`` while the lock is free belongs to an interrupted attempt.
"""

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.supervision.presence import held
from schemas.errors import EvenhandError, IntegrityError, TooFewError
from schemas.tables.source import read_words
from schemas.terms import ExitCode, State
from tasks.lake.store import Lake


class YearState(StrEnum):
    """State of the audit of a year."""

    RUNNING = "running"
    WITHIN = "within"
    BREACH = "breach"
    INSUFFICIENT = "insufficient"
    """Audited, or found to hold nothing to compare: too little evidence for a verdict, which is no pass."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Its process died."""


OF_VERDICT = {State.WITHIN: YearState.WITHIN, State.BREACH: YearState.BREACH}
"""The state of a finished year by the verdict of its run; any other verdict is insufficient."""

SERIOUSNESS = (
    ExitCode.WITHIN,
    ExitCode.INSUFFICIENT_EVIDENCE,
    ExitCode.BREACH,
    ExitCode.USAGE,
    ExitCode.DATA_QUALITY,
    ExitCode.INFRASTRUCTURE,
    ExitCode.INTEGRITY,
)
"""Exit codes, the most serious last: what was altered outweighs what could not be run, and that outweighs a verdict."""


class Attempt(BaseModel):
    """One attempt to audit one year."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit: str
    year: int
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
    seconds: float | None = None
    exit_code: int | None = None
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
    """Years of a back-fill could not be audited. The others were: ``summary`` has all, as ``summed_up`` gives it."""

    def __init__(self, records: Sequence[Attempt]) -> None:
        """The message names the years; why each failed is in its record."""
        failed = [f"{r.year} (exit code {r.exit_code})" for r in records if r.state is YearState.FAILED]
        super().__init__(
            f"{len(failed)} of {len(records)} years could not be audited: {', '.join(failed)}; "
            "`evenhand status` says why"
        )
        self.summary = summed_up(records)


class Recorder:
    """Keeps the record of one attempt."""

    def __init__(self, lake: Lake, audit: str, year: int) -> None:
        """Begin the next attempt of the year; the caller holds the year's lock."""
        self._lake, self._clock = lake, time.perf_counter()
        before = latest(lake, audit, year)
        self.attempt = Attempt(
            audit=audit,
            year=year,
            attempt=before.attempt + 1 if before else 1,
            state=YearState.RUNNING,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
            host=socket.gethostname(),
        )
        self.tell()

    def tell(self, **news: object) -> None:
        """Update the record."""
        self.attempt = self.attempt.model_copy(update=news)
        write(self._lake, self.attempt)

    def end(self, state: YearState, exit_code: int, message: str = "") -> Attempt:
        """Record the end of the attempt."""
        seconds = round(time.perf_counter() - self._clock, 3)
        self.tell(state=state, exit_code=int(exit_code), message=message, seconds=seconds)
        return self.attempt


@contextmanager
def recorded(lake: Lake, audit: str, year: int) -> Iterator[Recorder]:
    """An attempt of a year. An error is recorded and goes on to the caller, but for data with nothing to compare.

    Another attempt of the same year, in whatever process, waits for it to end.
    """
    with lake.lock(lock_of(audit, year)):
        recorder = Recorder(lake, audit, year)
        try:
            yield recorder
        except TooFewError as error:
            recorder.end(YearState.INSUFFICIENT, ExitCode.INSUFFICIENT_EVIDENCE, str(error))
        except EvenhandError as error:
            recorder.end(YearState.FAILED, error.exit_code, str(error))
            raise
        except Exception as error:
            recorder.end(YearState.FAILED, ExitCode.INFRASTRUCTURE, f"{type(error).__name__}: {error}")
            raise


def lock_of(audit: str, year: int) -> str:
    """Name of the lock that is held while the year is audited."""
    return f"year-{audit}-{year}"


def write(lake: Lake, attempt: Attempt) -> None:
    """Write a record over the one that was there."""
    path = f"backfills/{attempt.audit}/{attempt.year}/{attempt.attempt:04d}.json"
    draft = f"tmp/{path.replace('/', '-')}-{os.getpid()}"  # files of other years have the same name
    lake.write_file(path, attempt.model_dump_json(indent=1).encode(), draft)


def attempts(lake: Lake, audit: str | None = None, year: int | None = None) -> list[Attempt]:
    """All records of an audit and year, or of all, in order of time.

    Raises:
        IntegrityError: one is not as a back-fill of this version writes them.
    """
    paths = lake.storage.glob(f"backfills/{audit or '*'}/{year or '*'}/*.json")
    found = [_read(lake, path, content) for path in paths if (content := lake.storage.read(path)) is not None]
    return sorted(found, key=lambda a: (a.audit, a.year, a.attempt))


def _read(lake: Lake, path: str, content: bytes) -> Attempt:
    try:
        return Attempt.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(
            f"{lake.storage.where(path)} is not a record that this version wrote; restore it from a copy, or remove "
            "it: what the year's audits found is not in it, and stays"
        ) from error


def latest(lake: Lake, audit: str, year: int) -> Attempt | None:
    """The last attempt of a year: interrupted if its process is gone; None without any."""
    last = _last(lake, audit, year)
    if last is None or last.ended or held(lake.storage.local / "locks" / f"{lock_of(audit, year)}.lock"):
        return last
    if _last(lake, audit, year) != last:  # it ended, or went on, between the two looks
        return latest(lake, audit, year)
    at = f"process {last.pid} on {last.host} died during {last.stage or 'its start'}"
    message = f"{at}; run the back-fill again, which goes on there"
    return last.model_copy(
        update={"state": YearState.INTERRUPTED, "message": message, "exit_code": int(ExitCode.INFRASTRUCTURE)}
    )


def _last(lake: Lake, audit: str, year: int) -> Attempt | None:
    found = attempts(lake, audit, year)
    return found[-1] if found else None


def worst(codes: Iterable[int | None]) -> ExitCode:
    """The most serious of exit codes; without any, nothing was found, which is no pass.

    None is that of a year of which nobody knows how it ended.
    """
    known = [ExitCode.INFRASTRUCTURE if code is None else ExitCode(code) for code in codes]
    return max(known, key=SERIOUSNESS.index, default=ExitCode.INSUFFICIENT_EVIDENCE)


def summed_up(records: Sequence[Attempt]) -> dict[str, Any]:
    """What a back-fill gives: the record of every year, and the exit code of the most serious one."""
    years = [record.model_dump(mode="json") for record in records]
    return {"audit": records[0].audit, "exit_code": int(worst(record.exit_code for record in records)), "years": years}
