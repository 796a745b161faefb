"""Memory of runs at work, looked at while they live: of one that was killed nobody can ask it any more.

A back-fill computes its years in other processes: their records in the lake say in which stage each was.
"""

import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from flows.partitions.attempts.reading import read_record
from flows.partitions.attempts.record import YearState
from flows.supervision.presence import Presence, alive
from schemas.errors import IntegrityError
from tasks.lake.store import Lake
from tasks.pipeline.lineage.memory import free_mb

_MB = 1e6


@dataclass
class Seen:
    """The most memory that a run was seen to hold, and how much there was for it at that time."""

    stage: str = ""
    peak_mb: float = 0.0
    there_was_mb: float = 0.0
    pids: set[int] = field(default_factory=set)
    """Its process, and those that it started."""

    def words(self, lake: Lake) -> str:
        """What was seen, as a message says it."""
        stage = f"stage {self.stage}" if self.stage else ", ".join(years_at_work(lake, self.pids)) or "it"
        return f"{stage} was seen to hold {_gb(self.peak_mb)} of the {_gb(self.there_was_mb)} that there was"


@dataclass
class Memory:
    """Memory of the runs on a lake, by the names of their records."""

    seen: dict[str, Seen] = field(default_factory=dict)

    def look(self, lake: Lake) -> None:
        """Look at the runs of this machine that are at work."""
        for presence in alive(lake):
            if presence.host == socket.gethostname():
                self._keep(presence, _family(presence.pid))

    def words(self, lake: Lake, presence: Presence) -> str:
        """What was seen of a run; empty where nothing was."""
        known = self.seen.get(presence.name)
        return known.words(lake) if known and known.peak_mb else ""

    def _keep(self, presence: Presence, family: Collection[psutil.Process]) -> None:
        """Of the stage at work: a peak of an earlier one is no reason for its death."""
        mb = sum(map(_resident, family)) / _MB
        known = self.seen.setdefault(presence.name, Seen())
        if presence.stage != known.stage:
            known = self.seen[presence.name] = Seen(presence.stage)
        known.pids |= {each.pid for each in family}
        if mb > known.peak_mb:
            known.peak_mb, known.there_was_mb = mb, mb + free_mb()


def years_at_work(lake: Lake, pids: Collection[int]) -> Iterator[str]:
    """The years and partitions that processes did not come to the end of, each with its stage: ``2019 detect cst``."""
    for path in (path for depth in ("*", "*/*") for path in lake.storage.glob(f"backfills/*/{depth}/*.json")):
        with suppress(IntegrityError):
            record = read_record(lake, path)
            if record and record.state is YearState.RUNNING and record.pid in pids:
                yield " ".join(filter(None, (str(record.year), record.value, record.stage)))


def _family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    return []


def _resident(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return float(process.memory_info().rss)
    return 0.0


def _gb(mb: float) -> str:
    return f"{mb / 1000:.2f} GB"
