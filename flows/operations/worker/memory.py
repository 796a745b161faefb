"""Memory of runs at work, looked at while they live: of one that was killed nobody can ask it any more."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from flows.supervision.presence import Presence, alive
from tasks.lake.store import Lake
from tasks.pipeline.lineage.memory import free_mb

_MB = 1e6


@dataclass
class Seen:
    """The most memory that a run was seen to hold, and how much there was for it at that time."""

    stage: str = ""
    peak_mb: float = 0.0
    there_was_mb: float = 0.0

    def __str__(self) -> str:
        """In the words of a message."""
        stage = f"stage {self.stage}" if self.stage else "it"
        return f"{stage} was seen to hold {_gb(self.peak_mb)} of the {_gb(self.there_was_mb)} that there was"


@dataclass
class Memory:
    """Memory of the runs on a lake, by the names of their records."""

    seen: dict[str, Seen] = field(default_factory=dict)

    def look(self, lake: Lake) -> None:
        """Look at the runs of this machine that are at work."""
        for presence in alive(lake):
            if presence.host == socket.gethostname():
                self._keep(presence, _held_mb(presence.pid))

    def words(self, presence: Presence) -> str:
        """What was seen of a run; empty where nothing was."""
        known = self.seen.get(presence.name)
        return str(known) if known and known.peak_mb else ""

    def _keep(self, presence: Presence, mb: float) -> None:
        """Of the stage at work: a peak of an earlier one is no reason for its death."""
        known = self.seen.setdefault(presence.name, Seen())
        if presence.stage != known.stage:
            known = self.seen[presence.name] = Seen(presence.stage)
        if mb > known.peak_mb:
            known.peak_mb, known.there_was_mb = mb, mb + free_mb()


def _held_mb(pid: int) -> float:
    """Resident memory of a process and of all that it started."""
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        return sum(_resident(each) for each in (parent, *parent.children(recursive=True))) / _MB
    return 0.0


def _resident(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return float(process.memory_info().rss)
    return 0.0


def _gb(mb: float) -> str:
    return f"{mb / 1000:.2f} GB"
