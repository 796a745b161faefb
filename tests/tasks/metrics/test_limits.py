"""Settings that would look like a check and be none."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.audit.limits import Limits, Unseen


@pytest.mark.parametrize("value", [0, -0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("theory", ["similar_applicants", "causal_model", "model_reasons", "approval_rates"])
def test_a_limit_that_nobody_can_keep_or_miss_is_refused(theory: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate({theory: value})


@pytest.mark.parametrize("said", [{"denial": 0}, {"group": 0.0}, {"denial": 1}])
def test_columns_that_are_lacking_have_some_strength(said: dict[str, Any]) -> None:
    """Else ``columns_complete: false`` would widen nothing, for public HMDA too."""
    with pytest.raises(ValidationError):
        Unseen.model_validate(said)
