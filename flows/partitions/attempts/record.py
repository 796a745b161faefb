"""Record of one attempt to audit a year, or one partition of it: its states, and what many of them come to."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from schemas.errors import EvenhandError
from schemas.tables.source import read_words
from schemas.terms import ExitCode, State


class YearState(StrEnum):
    """State of the audit of a year."""

    RUNNING = "running"
    WITHIN = "within"
    BREACH = "breach"
    INSUFFICIENT = "insufficient"
    """Audited, or found to hold nothing to compare: too little evidence for a verdict, which is no pass."""
    TOO_FEW = "too_few"
    """A partition with fewer people than `by` asks for: it is listed and not audited, which is no failure."""
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
        failed = [f"{_named(r)} (exit code {r.exit_code})" for r in records if r.state is YearState.FAILED]
        parts = any(record.value for record in records)
        named = ", ".join(failed[:_NAMED]) + (f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else "")
        super().__init__(
            f"{len(failed)} of {len(records)} {'partitions' if parts else 'years'} could not be audited: {named}; "
            f"`evenhand status{' --by' if parts else ''}` says why"
        )
        self.summary = summed_up(records)


def _named(record: Attempt) -> str:
    return f"{record.year} {record.value}".rstrip()


def worst(codes: Iterable[int | None]) -> ExitCode:
    """The most serious of exit codes; without any, nothing was found, which is no pass.

    None is that of a year of which nobody knows how it ended.
    """
    known = [ExitCode.INFRASTRUCTURE if code is None else ExitCode(code) for code in codes]
    return max(known, key=SERIOUSNESS.index, default=ExitCode.INSUFFICIENT_EVIDENCE)


def summed_up(records: Sequence[Attempt]) -> dict[str, Any]:
    """What a back-fill gives: the record of every year or partition, and the exit code of the most serious one.

    Partitions with too few people do not count. A partition that failed makes it 5 at least.
    """
    codes = [record.exit_code for record in records if record.state is not YearState.TOO_FEW]
    failed = any(record.value and record.state is YearState.FAILED for record in records)
    code = worst([*codes, *([ExitCode.INFRASTRUCTURE] if failed else [])])
    said = [record.model_dump(mode="json") for record in records]
    return {"audit": records[0].audit, "exit_code": int(code), "years": said}
