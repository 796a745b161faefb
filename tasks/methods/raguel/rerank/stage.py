"""Stage ``rerank``: ranks applicants by recourse cost, and re-ranks lists to represent every group fairly (RAGUEL).

Scope: the declaration. The work: ``lists``, which loads fairlearn for the baselines and is itself loaded only when
something is ranked.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.tables.findings import AGGREGATES, TALLIES
from tasks.methods.raguel.rerank.settings import RerankSettings, rerank_settings
from tasks.methods.raguel.tables import OFFERS, RERANKED
from tasks.pipeline.stage import OwnStage, Produced, stage


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
    """Ranks every applicant once for each order, with its recourse or the reason why it has none.

    Raises:
        DataQualityError: Nobody belongs to a reference group.
        IntegrityError: A stored model is not what the stage ``score`` would have left.
    """
    from tasks.methods.raguel.rerank.lists import reranked  # fairlearn takes seconds to load

    return reranked(decisions, applicants, encodings, memberships, models, settings=settings)


OWN_STAGE = OwnStage(stage=rerank, settings=rerank_settings)
