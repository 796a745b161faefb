"""Settings for reading an HMDA file: the policy for departures from its layout, and which vintage is read.

Scope: keys under ``source`` that are about HMDA alone. Layouts: ``tasks.ingest.hmda.layouts``.
"""

from datetime import date
from typing import Literal

from pydantic import Field

from schemas.bounds import Strict

ACTION = "action_taken"
"""The column of the decision in canonical applications of HMDA."""
APPROVED, DENIED = frozenset({"1", "2", "8"}), frozenset({"3", "7"})
"""Codes of actions that approve an application or a preapproval, and of those that deny one."""

Treatment = Literal["stop", "quarantine", "accept"]
"""Of a departure: the audit stops, the rows concerned are refused with the reason, or they are kept and it is told."""


class HmdaPolicy(Strict):
    """Treatment of each departure of a file. A departure of a column concerns all rows of its file."""

    missing_columns: Treatment = Field("stop", description="a column that the spec names and the file cannot give")
    unknown_columns: Treatment = Field("accept", description="a column that the file's layout does not know")
    unknown_codes: Treatment = Field("quarantine", description="a code that no filing guide lists, in a column named")


class VintageChoice(Strict):
    """Criteria for the edition of a year: the newest that fits in the lake is read."""

    dataset: str | None = Field(None, description="such as snapshot, one-year, three-year, historic or twin")
    geography: str | None = Field(None, description="nationwide, or the letters of a state")
    frozen: date | None = Field(None, description="the day on which the edition was frozen")
