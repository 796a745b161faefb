"""What the settings of every method share: how the paper's profile replaces defaults, and what detection depends on."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from schemas.bounds import NoFlags


class MethodSettings(NoFlags):
    """Settings of a method, or of a part of it: frozen; unknown keys are errors, and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    paper: ClassVar[dict[str, Any]] = {}
    """What the paper does and the defaults do not."""
    trained: ClassVar[dict[str, type["MethodSettings"]]] = {}
    """Parts about models that are trained beside the method, by key: what is detected does not depend on them."""

    @classmethod
    def under_paper(cls, own: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a spec under the profile `paper`: what the user left out takes the paper's value."""
        out = {**cls.paper, **own}
        for name, part in cls.trained.items():
            if isinstance(out.get(name), Mapping):
                out[name] = part.under_paper(out[name])
        return out

    def detecting(self) -> Self:
        """The same without what is trained."""
        return self.model_copy(update=dict.fromkeys(self.trained))
