"""The runs of a lake and its log at one moment, and what follows from both: order, valid runs, states of review.

Each of these is made once for all pages of one moment, in time that grows with runs and entries and no faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flows.partitions.attempts.record import Attempt
from flows.runs.summary import Summary
from flows.runs.trust.notes import Remediation, remediations
from flows.runs.trust.review import UNSIGNED, states
from flows.serving.index.entries import Logged
from flows.serving.index.written import Stamp
from schemas.audit.partition import ALL
from tasks.lake.store import Lake

Series = tuple[str, tuple[tuple[str, str], ...]]
"""Audit and partition."""


@dataclass(frozen=True)
class Known:
    """The runs and the log at one moment."""

    lake: Lake
    """Opened for this moment: what it found intact it does not read again."""
    runs: Mapping[str, Summary]
    written: Mapping[str, Stamp]
    """When the manifest of each was written."""
    unreadable: tuple[str, ...]
    """Runs whose files cannot be read."""
    log: Logged
    tried: Mapping[str, tuple[Attempt, ...]]
    """Audits that were tried and have no run: the last attempt of each of their years."""

    @cached_property
    def newest_first(self) -> tuple[Summary, ...]:
        """All runs; the order is the log's, as clocks are set back."""
        numbers = self.log.numbers
        return tuple(
            sorted(self.runs.values(), key=lambda run: (numbers.get(run.run, 0), run.finished, run.run), reverse=True)
        )

    @cached_property
    def protected(self) -> frozenset[str]:
        """Runs that are marked as published, by the log."""
        marked: dict[str, bool] = {}
        for entry in self.log.entries:
            if entry.event in ("protected", "unprotected"):
                marked[entry.run] = entry.event == "protected"
        return frozenset(run for run, is_marked in marked.items() if is_marked)

    @cached_property
    def valid(self) -> frozenset[str]:
        """The valid run of every audit, year and partition: the protected one, else the last."""
        found: dict[tuple[Series, int], Summary] = {}
        for run in reversed(self.newest_first):
            key = (_series(run), run.year)
            if key not in found or run.run in self.protected or found[key].run not in self.protected:
                found[key] = run
        return frozenset(run.run for run in found.values())

    @cached_property
    def signed(self) -> Mapping[str, str]:
        """Run -> the state of its review, such as approved, but for unsigned runs; none of a log that is broken."""
        if self.log.broken:
            return {}
        return {run: state for run, state in states(self.log.entries).items() if state != UNSIGNED}

    @cached_property
    def open(self) -> tuple[Remediation, ...]:
        """Remediations that are open."""
        return tuple(remediations(self.log.entries))

    @cached_property
    def audits(self) -> Mapping[str, Sequence[Summary]]:
        """Audit -> its runs, newest first."""
        found: dict[str, list[Summary]] = {}
        for run in self.newest_first:
            found.setdefault(run.audit, []).append(run)
        return dict(sorted(found.items()))

    @cached_property
    def has_partitions(self) -> bool:
        """Whether any run is of a partition."""
        return any(run.partition for run in self.newest_first)

    @cached_property
    def series(self) -> Mapping[Series, Sequence[Summary]]:
        """Audit and partition -> the runs, newest first."""
        found: dict[Series, list[Summary]] = {}
        for run in self.newest_first:
            found.setdefault(_series(run), []).append(run)
        return found

    @cached_property
    def values_of(self) -> Mapping[str, Sequence[str]]:
        """Audit -> its partitions, ``ALL`` before the others, then the largest first by the figures of their runs."""
        sizes: dict[str, dict[str, int]] = {audit: {} for audit in self.audits}
        for run in self.newest_first:
            largest = max((each.n or 0 for each in run.figures), default=0)
            of = sizes[run.audit]
            of[value_of(run)] = max(of.get(value_of(run), 0), largest)
        return {audit: _by_size(of) for audit, of in sizes.items()}

    def alike(self, run: str) -> Sequence[Summary]:
        """The runs of the same audit and partition, the run itself among them, newest first."""
        return self.series[_series(self.runs[run])]

    def before(self, run: str) -> Summary | None:
        """The run that this one supersedes, else that of the same audit and partition whose year comes before."""
        one, alike = self.runs[run], self.alike(run)
        at = next(place for place, each in enumerate(alike) if each.run == run)
        superseded = next((each for each in alike[at + 1 :] if each.year == one.year), None)
        years = [each for each in alike if each.year < one.year and each.run in self.valid]
        return superseded or max(years, key=lambda each: each.year, default=None)


def _by_size(sizes: Mapping[str, int]) -> list[str]:
    return sorted(sizes, key=lambda value: (value != ALL, -sizes[value], value))


def value_of(run: Summary) -> str:
    """The partition of a run; ``ALL`` of every row, with ``by`` or without."""
    return (run.partition or {}).get("value", ALL)


def _series(run: Summary) -> Series:
    return run.audit, tuple(sorted((run.partition or {}).items()))
