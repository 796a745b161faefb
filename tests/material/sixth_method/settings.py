"""Settings of NEARBY."""

from pydantic import Field

from schemas.audit.methods import MethodSettings


class NearbySettings(MethodSettings):
    """How like an approved applicant has to be."""

    reach: float = Field(0.1, gt=0, description="largest difference in any encoded feature")
