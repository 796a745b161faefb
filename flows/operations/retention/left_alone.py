"""What retention leaves alone: links, pipes and folders that cannot be read, in the folders that it clears.

A link is never followed. What does not lie in the lake itself is named and stays, whoever put it there.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.runs.index import Run
from flows.runs.manifest import former_reports
from tasks.lake.local_directory import strange
from tasks.lake.store import Lake

_DEPTHS = {
    "runs": 1,
    "reports": 1,
    "restricted": 1,
    "places": 1,
    "stages": 2,
    "unfinished": 1,
    "parts": 1,
    "tmp": 1,
    "locks": 2,
    "vintages": 5,
}
"""Folders of a lake that retention clears, and how deep below them it removes whole entries."""


@dataclass(frozen=True)
class LeftAlone:
    """A path that retention does not remove."""

    path: Path
    why: str


def left_alone(lake: Lake, leaving: Sequence[Run]) -> list[LeftAlone]:
    """Every such path, in order; reports of leaving runs that an earlier version wrote beside the lake among them."""
    found = [each for name, depth in _DEPTHS.items() for each in _strange(lake.root, lake.root / name, depth)]
    former = former_reports(lake)
    outside = [Path(former.where(run.run)) for run in leaving if former.exists(run.run)]
    return [*found, *(LeftAlone(path, f"{strange(lake.root, path)}; remove it yourself") for path in outside)]


def _strange(root: Path, path: Path, depth: int) -> Iterator[LeftAlone]:
    if why := strange(root, path):
        yield LeftAlone(path, why)
    elif path.is_dir():
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208 names alone
        except OSError as error:
            yield LeftAlone(path, f"{path} cannot be read ({error.strerror})")
            return
        for name in names if depth else ():
            yield from _strange(root, path / name, depth - 1)
