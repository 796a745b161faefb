"""Reads files that are shipped with evenhand, such as audit specs of the papers' experiments.

The specs read the user's own copy of the data.
"""

from collections.abc import Mapping
from pathlib import Path

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.pipeline.specs import read_spec

_ROOT = Path(__file__).parents[2]

TEXAS_FILE = "data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"


def shipped(name: str) -> Path:
    """Returns a file of ``data/`` in a checkout, which an installed wheel has inside the package.

    Raises:
        InfrastructureError: The file is not where it was installed.
    """
    places = (_ROOT / "data" / name, _ROOT / "flows" / "bundled" / name.removeprefix("audits/"))
    for place in places:
        if place.is_file():
            return place
    raise InfrastructureError(f"{str(places[0])!r} is not there; it belongs to evenhand: install it again")


def paper_spec(name: str, overrides: Mapping[str, str]) -> AuditSpec:
    """Reads the audit spec of one experiment.

    Raises:
        InfrastructureError: The file is not where it was installed.
        SpecError: It does not fit the overrides.
    """
    file = shipped(f"audits/paper/{name}")
    return read_spec(file.read_text(encoding="utf-8"), str(file), overrides).spec


def texas_spec(data: Path, overrides: Mapping[str, str]) -> AuditSpec:
    """Reads the audit spec of the applications of Texas in 2022, on which more than one method is timed.

    Raises:
        InfrastructureError: Evenhand was not started from a checkout.
    """
    file = _ROOT / "data" / "audits" / "hmda-tx-2022.yaml"
    if not file.is_file():
        raise InfrastructureError(f"{str(file)!r} is not there; run the benchmark from a checkout, which holds it")
    asked = {**overrides, "source.path": str(data / TEXAS_FILE)}
    return read_spec(file.read_text(encoding="utf-8"), str(file), asked).spec


def require(data: Path, files: list[Path]) -> None:
    """Checks that files are there, and names the first that is missing.

    Raises:
        InfrastructureError: One of the files is not in the directory that ``--data`` gives.
    """
    for file in files:
        if not file.is_file():
            raise InfrastructureError(
                f"{str(file)!r} is not there; --data is to be the directory that holds data/ and golden/, with "
                f"{file.relative_to(data)} in it"
            )
