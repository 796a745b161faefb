"""Watches processes while they work: CPU seconds and the highest memory of each, and of all that they start.

The kernel keeps a process's highest memory, so that looking several times a second misses none but a last moment's.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_EVERY_S = 0.25
_WORKS = "spawn_main"
"""Stands in the command line of a process that a pool or a nanny started to work."""


@dataclass
class Watch:
    """What processes have used since the watch began."""

    roots: list[int]
    """Process ids; what they start is watched as well."""
    peak_mb: float = 0.0
    """The highest memory of any one process."""
    _cpu: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict)
    """Process id and time of its start -> CPU seconds at first and last sight."""

    @property
    def cpu_s(self) -> float:
        """CPU seconds, of processes that have ended as well, to their last sight."""
        return sum(last - first for first, last in self._cpu.values())

    def look(self, *, begun: bool = False) -> None:
        """Look at all of them now; of those that are ``begun`` what they have used so far does not count."""
        for process in self._family():
            try:
                key, times = (process.pid, process.create_time()), process.cpu_times()
                self.peak_mb = max(self.peak_mb, _highest_mb(process.pid))
            except (psutil.Error, OSError):  # it has ended
                continue
            used = times.user + times.system
            first = self._cpu[key][0] if key in self._cpu else used if begun else 0.0
            self._cpu[key] = first, used

    def working(self) -> psutil.Process | None:
        """Of the processes that a pool or a nanny started to work, the one that has worked most."""
        found = []
        for process in self._family():
            try:
                if any(_WORKS in word for word in process.cmdline()):
                    found.append((sum(process.cpu_times()[:2]), process))
            except psutil.Error:
                continue
        return max(found, key=lambda each: each[0])[1] if found else None

    def _family(self) -> Iterator[psutil.Process]:
        for pid in self.roots:
            try:
                root = psutil.Process(pid)
                yield from (root, *root.children(recursive=True))
            except psutil.Error:
                continue


@contextmanager
def watched(roots: Sequence[int]) -> Iterator[Watch]:
    """Watch processes, from now on, until the block ends."""
    watch, ended = Watch(list(roots)), threading.Event()
    watch.look(begun=True)

    def keep_looking() -> None:
        while not ended.wait(_EVERY_S):
            watch.look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
        watch.look()


def _highest_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(line.split()[1]) / 1024
