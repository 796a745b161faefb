"""Settings of the stage ``rerank``."""

from typing import ClassVar

from schemas.audit.column import Recourse
from schemas.audit.limits import Bootstrap
from schemas.audit.model import Model
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Explain, Protected, StageSettings
from schemas.errors import SpecError, nearest
from schemas.terms import Kind
from tasks.methods.raguel.settings import RaguelSettings


class RerankSettings(StageSettings):
    """Settings of the lists."""

    memory: ClassVar[Growth] = Growth(240, 7)

    raguel: RaguelSettings
    recourse: dict[str, Recourse]
    """By feature; in which direction it may change is among the encodings."""
    explain: Explain
    protected: tuple[Protected, ...]
    model: Model
    bootstrap: Bootstrap
    seed: int


def rerank_settings(spec: AuditSpec) -> RerankSettings | None:
    """Returns the stage's settings; None without the method.

    Raises:
        SpecError: The column of the blocks is no feature, or has no order.
    """
    settings = spec.methods.of(RaguelSettings)
    if settings is None:
        return None
    name = settings.block_column
    if name is not None:
        ordered = [feature for feature, column in spec.features().items() if column.type is not Kind.NOMINAL]
        if name not in ordered:
            message = (
                f"{name!r} is no column whose values have an order, as those of blocks need; {nearest(name, ordered)}"
            )
            raise SpecError(message, ("methods", "raguel", "block_column"))
    recourse = {name: column.recourse for name, column in spec.features().items()}
    return RerankSettings.of(spec, raguel=settings, recourse=recourse)
