"""What RAGUEL alone needs of a problem: places in the whole list, as the arrays that findings are made of."""

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from tasks.methods.raguel.algorithm.detection import Ranks
from tasks.methods.raguel.tables import RERANKED, WHOLE
from tasks.pipeline.method import ProblemTables


def own(tables: ProblemTables, maker: str, attribute: str) -> Ranks | None:
    """The places of one decision maker and protected attribute; None where nothing was ranked."""
    reranked = tables.of_method(RERANKED)
    if not reranked.num_rows:
        return None
    selection = (pc.field("decision_maker") == maker) & (pc.field("protected_attribute") == attribute)
    ranked = reranked.filter(selection & pc.field("order").isin(WHOLE)).to_pandas()
    at = pd.Series(np.arange(len(tables.ids)), index=tables.ids)
    ranked = ranked.assign(row=at.loc[ranked["row_id"]].to_numpy()).sort_values("row")
    candidate = ranked["candidate"].map(at).fillna(-1)
    return Ranks(
        row=ranked["row"].to_numpy(np.int64),
        cost=ranked["cost"].to_numpy(np.float64),
        rank=ranked["rank"].to_numpy(np.float64),
        rank_after=ranked["rank_after"].to_numpy(np.float64),
        offered=ranked["attained"].notna().to_numpy(),
        refusal=ranked["refusal"].fillna("").to_numpy(dtype=str),
        candidate=candidate.to_numpy(np.int64),
    )
