"""Places in the list that Algorithm 1 made, as the arrays that findings are made of."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.numerics.problem import Ranks


def places_of(reranked: pa.Table, ids: "np.ndarray[Any, Any]", maker: str, attribute: str) -> Ranks | None:
    """The places of one decision maker and protected attribute; None where nothing was ranked.

    Args:
        reranked: The table of that name; of a method that does not rank, it is empty.
        ids: ``(n,)`` identifiers of the rows.
        maker: Name of the decision maker.
        attribute: Name of the protected attribute.
    """
    if not reranked.num_rows:
        return None
    made = (pc.field("decision_maker") == maker) & (pc.field("protected_attribute") == attribute)
    own = reranked.filter(made & (pc.field("order") == "list")).to_pandas()
    at = pd.Series(np.arange(len(ids)), index=ids)
    own = own.assign(row=at.loc[own["row_id"]].to_numpy()).sort_values("row")
    candidate = own["candidate"].map(at).fillna(-1)
    return Ranks(
        row=own["row"].to_numpy(np.int64),
        cost=own["cost"].to_numpy(np.float64),
        rank=own["rank"].to_numpy(np.float64),
        rank_after=own["rank_after"].to_numpy(np.float64),
        offered=own["attained"].notna().to_numpy(),
        refusal=own["refusal"].fillna("").to_numpy(dtype=str),
        candidate=candidate.to_numpy(np.int64),
    )
