"""The part ``verdicts`` of the spec: settings of the states of an audit, beside its limits."""

from typing import Literal

from pydantic import Field

from schemas.audit.source import Strict


class Verdicts(Strict):
    """What the states of an audit rest on."""

    direction: dict[str, Literal["up", "down", "none"]] = Field(
        {},
        description="column -> whether more of it is better for the applicant (up), worse (down), or neither (none); "
        "its `constraint` if left out. Used for one check: whether favourable and unfavourable are exchanged",
    )
