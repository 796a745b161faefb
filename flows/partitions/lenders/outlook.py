"""What is left of a year's partitions: those done under today's conditions are not begun with again.

A partition's conditions are what decides its result: the spec without other partitions, its own rows, the code, the
libraries, and the published runs of the lake. A record under the same conditions whose run is in the lake as it was
written stands, and costs neither a plan nor a process. One that failed twice alike under them is set aside.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.partitions.attempts.reading import lock_of
from flows.partitions.attempts.record import Attempt, YearState
from flows.partitions.attempts.recorder import Recorder
from flows.partitions.lenders.listing import Listed, by_of, listing
from flows.partitions.lenders.records import before, keep_listing, newest
from flows.partitions.runners.identity import identity
from flows.runs.trust.verification import verify_run
from schemas.audit.partition import ALL, By
from schemas.audit.spec import AuditSpec, without_places
from schemas.errors import EvenhandError, SpecError, nearest
from schemas.terms import ExitCode
from tasks.lake import log
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Choice:
    """Which partitions of a year are asked for."""

    values: tuple[str, ...] = ()
    """By their values; all without any."""
    limit: int | None = None
    """At most so many, the largest first, beside ``ALL``."""

    def of(self, listed: Sequence[Listed], year: int) -> list[Listed]:
        """Those of a year.

        Raises:
            SpecError: the year does not have one, or the limit is below 1.
        """
        if self.limit is not None and self.limit < 1:
            raise SpecError(f"--limit {self.limit}: expected 1 partition or more")
        known = [each.value for each in listed]
        for value in self.values:
            if value not in known:
                raise SpecError(f"--by-value {value}: {year} has no such partition; {nearest(value, known)}")
        if self.values:
            return [each for each in listed if each.value in self.values]
        if self.limit is None:
            return list(listed)
        largest = [each for each in listed if not each.too_few and each.value != ALL][: self.limit]
        return [*(each for each in listed if each.value == ALL), *largest]


@dataclass(frozen=True)
class Outlook:
    """The partitions of a year, by what is to be done with them."""

    year: int
    to_do: tuple[tuple[Listed, str], ...] = ()
    """Each with its conditions, the largest first."""
    standing: tuple[Attempt, ...] = ()
    """Done, or of too few people."""
    set_aside: tuple[Attempt, ...] = ()
    """Failed twice alike."""
    known: tuple[Attempt, ...] = field(default=(), repr=False)
    """Last attempts of all partitions, which tell how long they take."""


def outlook(spec: AuditSpec, year: int, listed: Sequence[Listed], lake: Lake, *, force: bool = False) -> Outlook:
    """What is left of some partitions of a year; writes the records of those with too few people.

    Args:
        spec: with ``by``.
        year: of the partitions.
        listed: the partitions.
        lake: of the audit.
        force: whether protected runs and partitions that were set aside are done again.
    """
    last, base = newest(lake, spec.name, year), _base(spec, year, lake)
    to_do, standing, aside = [], [], []
    logged = log.entries(lake)
    for each in sorted(listed, key=lambda one: -one.rows):
        conditions = hashlib.sha256(f"{base} {each.value} {each.rows_sha256} {each.too_few}".encode()).hexdigest()[:24]
        attempt = last.get(each.value)
        same = attempt is not None and attempt.conditions == conditions
        if each.too_few:
            standing.append(attempt if same and attempt else _too_few(spec, year, each, conditions, lake))
        elif same and attempt and not force and _stands(attempt, lake, logged):
            standing.append(attempt)
        elif same and attempt and not force and _failed_twice(attempt, lake):
            aside.append(attempt)
        else:
            to_do.append((each, conditions))
    return Outlook(year, tuple(to_do), tuple(standing), tuple(aside), tuple(last.values()))


def _base(spec: AuditSpec, year: int, lake: Lake) -> str:
    """Digest of the conditions that all partitions of a year share."""
    own = spec.model_copy(update={"by": By(column=by_of(spec).column)})
    published = lake.storage.glob("runs/*/protected/mark.json")
    model = Path(spec.model.file.path) if spec.model.file else None
    given = hashlib.sha256(model.read_bytes()).hexdigest() if model and model.is_file() else ""
    said = [own.model_dump(mode="json") | without_places(own.source, own.model), year, identity(), given, published]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _too_few(spec: AuditSpec, year: int, listed: Listed, conditions: str, lake: Lake) -> Attempt:
    with lake.lock(lock_of(spec.name, year, listed.value)):
        recorder = Recorder(lake, spec.name, year, listed.value, rows=listed.rows, conditions=conditions)
        return recorder.end(YearState.TOO_FEW, ExitCode.INSUFFICIENT_EVIDENCE, listed.too_few)


def _stands(attempt: Attempt, lake: Lake, logged: Sequence[log.Entry]) -> bool:
    """Whether it was audited and its run is as it was written, or holds nothing to compare."""
    if attempt.run is None:
        return attempt.state is YearState.INSUFFICIENT
    return attempt.state is not YearState.FAILED and attempt.ended and _is_as_written(lake, attempt.run, logged)


def _is_as_written(lake: Lake, run: str, logged: Sequence[log.Entry]) -> bool:
    try:
        verify_run(lake.location, run, logged=logged)
    except EvenhandError:
        return False  # the attempt that follows says what is amiss
    return True


def _failed_twice(attempt: Attempt, lake: Lake) -> bool:
    if attempt.state is not YearState.FAILED:
        return False
    earlier = before(lake, attempt)
    return (
        earlier is not None
        and (earlier.state, earlier.conditions) == (attempt.state, attempt.conditions)
        and _alike(earlier.message) == _alike(attempt.message)
    )


def _alike(message: str) -> str:
    """A message without its numbers, such as the id of a process."""
    return re.sub(r"\d+", "0", message)


def outlooks(
    spec: AuditSpec, years: Sequence[int], lake: Lake, choice: Choice, *, force: bool = False
) -> tuple[list[Outlook], list[Attempt]]:
    """What is left of the partitions of years, and the records of years whose partitions cannot be listed.

    Raises:
        SpecError: a value is asked for that a year does not have.
    """
    found, failed = [], []
    for year in years:
        try:
            listed = listing(spec, year, lake)
        except EvenhandError as error:
            with lake.lock(lock_of(spec.name, year)):
                failed.append(Recorder(lake, spec.name, year).end(YearState.FAILED, error.exit_code, str(error)))
            continue
        keep_listing(lake, spec.name, year, by_of(spec).column, listed)
        found.append(outlook(spec, year, choice.of(listed, year), lake, force=force))
    return found, failed
