"""The applications of Texas in 2022, on which more than one method is timed."""

from collections.abc import Mapping
from pathlib import Path

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.pipeline.specs import read_spec

TEXAS_SPEC = Path(__file__).parents[2] / "data" / "audits" / "hmda-tx-2022.yaml"
TEXAS_FILE = Path("data") / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz"


def texas_spec(data: Path, overrides: Mapping[str, str]) -> AuditSpec:
    """The audit spec of these applications, reading the user's own copy of the file.

    Raises:
        InfrastructureError: Evenhand was not started from a checkout.
    """
    if not TEXAS_SPEC.is_file():
        raise InfrastructureError(
            f"{str(TEXAS_SPEC)!r} is not there; run the benchmark from a checkout, which holds it"
        )
    asked = {**overrides, "source.path": str(data / TEXAS_FILE)}
    return read_spec(TEXAS_SPEC.read_text(encoding="utf-8"), str(TEXAS_SPEC), asked).spec
