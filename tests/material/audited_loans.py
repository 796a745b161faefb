"""One audit of synthetic loans that was computed once for all tests of a session, and copies of its lake."""

import shutil
from pathlib import Path

import pytest
from computed_lake import computed
from conftest import SPEC, loans

from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec


def audited(factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with ``loans.csv`` and ``lake``, which nobody changes, and the run in it."""
    place = factory.getbasetemp() / "audited_loans"
    if not place.exists():
        place.mkdir()
        loans(400, 7).to_csv(place / "loans.csv", index=False)
        spec = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")
        computed(Lake(place / "lake"), read_spec(spec, "loans.yaml", {}).spec)
    return place, next(path.name for path in (place / "lake" / "runs").iterdir())


def copy_of(lake: Path, place: Path) -> Lake:
    """The same lake elsewhere, to be changed."""
    shutil.copytree(lake, place)
    return Lake(place)
