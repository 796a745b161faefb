"""Rerank: applicants ranked by what recourse would cost them, and lists that represent every group fairly (RAGUEL).

Here belong the stage's settings and its declaration; what it does is in ``_reranking``, which loads fairlearn for the
baselines and is itself loaded only when something is ranked.
"""

import pyarrow as pa

from schemas.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.errors import SpecError, nearest
from schemas.findings import AGGREGATES, TALLIES
from schemas.models import Model
from schemas.raguel import RaguelSettings
from schemas.recourse import Recourse
from schemas.reranking import OFFERS, RERANKED
from schemas.settings import AuditSpec, Bootstrap, Explain, Protected, StageSettings
from schemas.terms import Kind
from tasks._stage import Produced, stage


class RerankSettings(StageSettings):
    """What decides the lists."""

    raguel: RaguelSettings
    recourse: dict[str, Recourse]
    """By feature; in which direction it may change is among the encodings."""
    explain: Explain
    protected: tuple[Protected, ...]
    model: Model
    bootstrap: Bootstrap
    seed: int


def settings_of(spec: AuditSpec) -> RerankSettings | None:
    """The stage's settings; None without the method.

    Raises:
        SpecError: The column of the blocks is no feature, or has no order.
    """
    asked = spec.methods.raguel
    if asked is None:
        return None
    _check_block_column(asked.block_column, spec)
    recourse = {name: column.recourse for name, column in spec.features().items()}
    return RerankSettings.of(spec, raguel=asked, recourse=recourse)


def _check_block_column(name: str | None, spec: AuditSpec) -> None:
    if name is None:
        return
    ordered = [each for each, column in spec.features().items() if column.type is not Kind.NOMINAL]
    if name not in ordered:
        message = f"{name!r} is no column whose values have an order, as those of blocks need; {nearest(name, ordered)}"
        raise SpecError(message, ("methods", "raguel", "block_column"))


@stage(
    reads=(DECISIONS, APPLICANTS, ENCODINGS, MEMBERSHIPS, MODELS),
    writes=(RERANKED, OFFERS, TALLIES, AGGREGATES),
)
def rerank(
    decisions: pa.Table,
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    models: pa.Table,
    *,
    settings: RerankSettings,
) -> Produced:
    """Every applicant to be ranked, once for each order, with its recourse or the reason why it has none.

    Raises:
        DataQualityError: Nobody belongs to a reference group.
        IntegrityError: A stored model is not what the stage ``score`` would have left.
    """
    from tasks._reranking import reranked  # fairlearn takes seconds to load

    return reranked(decisions, applicants, encodings, memberships, models, settings=settings)
