"""What GCFN alone needs of a problem: what the model would have decided on applicants with other mediators."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.counterfactuals import GENERATOR_REFITS
from schemas.terms import DecisionMaker
from tasks.methods.gcfn.algorithm.detection import Mediated
from tasks.numerics.arrays import Floats, Longs
from tasks.pipeline.method import ProblemTables


def own(given: ProblemTables, maker: str, attribute: str) -> Mediated | None:
    """What the model would have decided on the mediators that ``mediate`` left; None without, or for a lender."""
    if maker != DecisionMaker.MODEL or not given.mediated.num_rows:
        return None
    reassigned, decided = _of(given.mediated, attribute), _of(given.mediated_decisions, attribute)
    frame = reassigned.select(["row_id", "to_group", "spread", "refusal"]).to_pandas()
    places = decided.select(["row_id", "to_group"]).to_pandas().assign(place=np.arange(decided.num_rows))
    frame = frame.merge(places, on=["row_id", "to_group"], how="left", validate="one_to_one")
    frame["row"] = pd.Series(np.arange(len(given.ids)), index=given.ids).loc[frame["row_id"]].to_numpy()
    frame = frame.sort_values("row", kind="stable")
    place = frame["place"].fillna(-1).to_numpy(np.int64)
    return Mediated(
        row=frame["row"].to_numpy(np.int64),
        spread=frame["spread"].to_numpy(np.float64),
        refusal=frame["refusal"].fillna("").to_numpy(dtype=str),
        flips=_by_network(decided["flips"], place, 0.0) == 1,
        change=_by_network(decided["score_changes"], place, np.nan),
        denial=_denial(given),
        refits=_refits(given.of_method(GENERATOR_REFITS), attribute),
    )


def _denial(inputs: ProblemTables) -> Floats:
    """``(n,)`` the model's probability of denial; none of a model without probabilities, as a rule."""
    model_decisions = inputs.decisions.filter(pc.equal(inputs.decisions["decision_maker"], str(DecisionMaker.MODEL)))
    score = model_decisions.select(["row_id", "score"]).to_pandas().set_index("row_id")["score"].loc[inputs.ids]
    approval = score.to_numpy(np.float64)
    return 1 - approval if np.isfinite(approval).all() else np.zeros(0)


def _refits(refits: pa.Table, attribute: str) -> dict[str, Floats]:
    """Values of each group, in the order of the refits; empty without refits."""
    frame = _of(refits, attribute).to_pandas().sort_values("refit")
    return {
        str(group): group_refits["share_changed"].to_numpy(np.float64) for group, group_refits in frame.groupby("group")
    }


def _by_network(lists: pa.ChunkedArray, place: Longs, otherwise: float) -> Floats:
    """``(s, m)`` out of lists of one length; a place of -1 has none."""
    values = pc.list_flatten(lists).to_numpy().reshape(len(lists) or 1, -1)
    if not values.size:
        return np.full((1, len(place)), otherwise)
    by_network: Floats = np.where(place >= 0, values[place].T, otherwise)
    return by_network


def _of(table: pa.Table, attribute: str) -> pa.Table:
    return table.filter(pc.equal(table["protected_attribute"], attribute))
