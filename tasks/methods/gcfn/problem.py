"""What GCFN alone needs of a problem: what the model would have decided on applicants with other mediators."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.counterfactuals import GENERATOR_CHECKS, GENERATOR_REFITS
from schemas.terms import DecisionMaker
from tasks.methods.gcfn.algorithm.detection import Mediated
from tasks.numerics.arrays import Floats, Longs
from tasks.pipeline.method import ProblemTables


def own(tables: ProblemTables, maker: str, attribute: str) -> Mediated | None:
    """What the model would have decided on the mediators that ``mediate`` left; None without, or for a lender."""
    if maker != DecisionMaker.MODEL or not tables.mediated.num_rows:
        return None
    reassigned, decided = _of_attribute(tables.mediated, attribute), _of_attribute(tables.mediated_decisions, attribute)
    frame = reassigned.select(["row_id", "to_group", "spread", "refusal"]).to_pandas()
    places = decided.select(["row_id", "to_group"]).to_pandas().assign(place=np.arange(decided.num_rows))
    frame = frame.merge(places, on=["row_id", "to_group"], how="left", validate="one_to_one")
    frame["row"] = pd.Series(np.arange(len(tables.ids)), index=tables.ids).loc[frame["row_id"]].to_numpy()
    frame = frame.sort_values("row", kind="stable")
    place = frame["place"].fillna(-1).to_numpy(np.int64)
    model_decisions = tables.decisions.filter(pc.equal(tables.decisions["decision_maker"], str(DecisionMaker.MODEL)))
    score = model_decisions.select(["row_id", "score"]).to_pandas().set_index("row_id")["score"].loc[tables.ids]
    approval = score.to_numpy(np.float64)
    refits = _of_attribute(tables.of_method(GENERATOR_REFITS), attribute).to_pandas().sort_values("refit")
    checks = _of_attribute(tables.of_method(GENERATOR_CHECKS), attribute)
    supports = checks.filter(pc.equal(checks["check"], "support")).select(["column", "value"]).to_pylist()
    return Mediated(
        row=frame["row"].to_numpy(np.int64),
        spread=frame["spread"].to_numpy(np.float64),
        refusal=frame["refusal"].fillna("").to_numpy(dtype=str),
        flips=_by_network(decided["flips"], place, 0.0) == 1,
        change=_by_network(decided["score_changes"], place, np.nan),
        # none of a model without probabilities, as a rule
        denial=1 - approval if np.isfinite(approval).all() else np.zeros(0),
        refits={str(group): rows["share_changed"].to_numpy(np.float64) for group, rows in refits.groupby("group")},
        support={row["column"]: math.nan if row["value"] is None else row["value"] for row in supports},
    )


def _by_network(lists: pa.ChunkedArray, place: Longs, otherwise: float) -> Floats:
    """``(s, m)`` out of lists of one length; a place of -1 has none."""
    values = pc.list_flatten(lists).to_numpy().reshape(len(lists) or 1, -1)
    if not values.size:
        return np.full((1, len(place)), otherwise)
    by_network: Floats = np.where(place >= 0, values[place].T, otherwise)
    return by_network


def _of_attribute(table: pa.Table, attribute: str) -> pa.Table:
    return table.filter(pc.equal(table["protected_attribute"], attribute))
