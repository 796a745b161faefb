"""Progress of a download: a bar where a person watches a terminal, elsewhere a line for each 10 %."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from tasks.ingest.download.transfer import Tell
from tasks.pipeline.progress import terminal

log = logging.getLogger("evenhand")

_STEP = 100 * 2**20
"""Bytes between two lines, where nobody says how many there will be."""


@contextmanager
def bytes_progress(of: str) -> Iterator[Tell]:
    """Show how many bytes have come; ``of`` names the file."""
    console = terminal()
    if console is None:
        yield _Lines(of)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(of, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


class _Lines:
    """One line of the log for each tenth that has come. A file that is begun anew is told anew."""

    def __init__(self, of: str) -> None:
        self._of, self._told = of, 0

    def __call__(self, done: int, whole: int | None) -> None:
        reached = done * 10 // whole if whole else done // _STEP
        if reached > self._told:
            share = f"{reached * 10} % of {whole:,} bytes" if whole else f"{done:,} bytes"
            log.info("%s: %s", self._of, share)
        self._told = reached
