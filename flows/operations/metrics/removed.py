"""Figures of runs that retention removed: ``removed/<run>.json``, one small file each, so that counters do not fall.

A file holds what the metrics tell of a run, with rows to two digits. It names no group and holds no result but the
state. The run's entry in the lake's log is its record; this file serves metrics alone.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from pydantic import TypeAdapter, ValidationError

from flows.operations.metrics.run_figures import RunFigures, run_figures
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

FOLDER: Final = "removed"
_FILE: Final = TypeAdapter(RunFigures)


def keep_figures(lake: Lake, run: str) -> None:
    """Keep the figures of a run that is to be removed; nothing of one whose removal was begun before.

    It raises nothing: a full disk, for which runs are removed, must not keep them.
    """
    with suppress(EvenhandError, OSError, ValueError, KeyError, TypeError):
        figures = replace(run_figures(lake, run, checks=False), checks={})
        lake.write_file(f"{FOLDER}/{run}.json", _FILE.dump_json(figures))


def removed(lake: Lake, known: Collection[str] = ()) -> dict[str, RunFigures]:
    """Run -> its figures, of every run that was removed but those that are known; what cannot be read is left out."""
    found = {}
    for path in lake.storage.glob(f"{FOLDER}/*.json"):
        run = PurePosixPath(path).stem
        if run not in known:
            with suppress(ValidationError, OSError):
                found[run] = _FILE.validate_json(lake.storage.read(path) or b"")
    return found
