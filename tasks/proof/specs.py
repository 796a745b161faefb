"""Audit specs of the papers' experiments: shipped with evenhand, they read the user's own copy of the data."""

from collections.abc import Mapping
from pathlib import Path

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.pipeline.specs import read_spec

_HERE = Path(__file__).parents[2] / "flows"
_PLACES = (_HERE.parent / "data" / "audits" / "paper", _HERE / "bundled" / "paper")
"""In a checkout beside the other audit specs, in an installed wheel inside the package."""


def paper_spec(name: str, overrides: Mapping[str, str]) -> AuditSpec:
    """The audit spec of one experiment.

    Raises:
        InfrastructureError: The file is not where it was installed.
        SpecError: It does not fit the overrides.
    """
    file = next((place for place in _PLACES if place.is_dir()), _PLACES[0]) / name
    if not file.is_file():
        raise InfrastructureError(f"{str(file)!r} is not there; it belongs to evenhand: install it again")
    return read_spec(file.read_text(encoding="utf-8"), str(file), overrides).spec


def require(data: Path, files: list[Path]) -> None:
    """Name the first file that is missing.

    Raises:
        InfrastructureError: One of the files is not in the directory that ``--data`` gives.
    """
    for file in files:
        if not file.is_file():
            raise InfrastructureError(
                f"{str(file)!r} is not there; --data is to be the directory that holds data/ and golden/, with "
                f"{file.relative_to(data)} in it"
            )
