"""The part ``verdicts`` of the spec: settings of the states of an audit, apart from its limits."""

from typing import Literal

from pydantic import Field

from schemas.bounds import Strict


class Verdicts(Strict):
    """Settings of the states of an audit."""

    direction: dict[str, Literal["up", "down", "none"]] = Field(
        {},
        description="column -> whether more of it is better for the applicant (up), worse (down), or neither (none); "
        "its `constraint` if left out. Used for one check: whether favourable and unfavourable are exchanged",
    )
