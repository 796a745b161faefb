"""How a run ended, as one value: what the server's state, the log and alerts say."""

from dataclasses import dataclass
from enum import StrEnum


class Name(StrEnum):
    """Name of the state in which a run ended, as the server shows it."""

    WITHIN = "Within"
    BREACH = "Breach"
    INSUFFICIENT = "Insufficient evidence"
    SPEC = "Spec"
    DATA_QUALITY = "Data quality"
    INFRASTRUCTURE = "Infrastructure"
    INTEGRITY = "Integrity"
    CRASHED = "Crashed"
    """Its process is gone; no code of a command says so."""
    CANCELLED = "Cancelled"
    """Somebody cancelled it on the server."""
    OVERDUE = "Overdue"
    """No run came."""


@dataclass(frozen=True)
class Ending:
    """How one run, or one back-fill, ended."""

    name: Name
    subject: str
    """What it was about: ``loans 2024``, or ``history 2018-2024``."""
    message: str
    """One line from published figures: counts and the worst check; or what failed, where, and the next step."""
    run: str = ""
    """Run id; empty where no run was published."""
    flow_run: str = ""
    """Id of the flow run on the server; empty without one."""
    report: str = ""
    """Address of the report, or its path; empty where there is none."""
