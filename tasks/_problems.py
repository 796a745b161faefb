"""Tables as the problems that methods look at: one for each decision maker and protected attribute.

Here belong who is explained, who may serve as a counterfactual, and the arrays of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.settings import Bootstrap, Explain, Protected
from schemas.terms import DecisionMaker
from tasks.algorithms.detector import Bools, FeasibilityGraph, Problem


class Asked(Protocol):
    """What of the settings decides the problems."""

    @property
    def explain(self) -> Explain: ...
    @property
    def protected(self) -> tuple[Protected, ...]: ...
    @property
    def bootstrap(self) -> Bootstrap: ...


@dataclass(frozen=True)
class Case:
    """A problem with what its arrays stand for."""

    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    problem: Problem


def cases(
    features: pa.Table,
    encodings: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    nodes: pa.Table,
    edges: pa.Table,
    asked: Asked,
) -> Iterator[Case]:
    """One case for each decision maker whose decisions are explained, and each protected attribute."""
    rows = features.select(["row_id"]).to_pandas().merge(nodes.to_pandas(), on="row_id", validate="one_to_one")
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    graph = _graph(edges, int(rows["node"].max()) + 1)
    group_of = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group")
    groups = group_of.loc[rows["row_id"]]
    for maker, frame in decided(decisions, asked.explain):
        made = rows[["row_id"]].merge(frame, on="row_id", validate="one_to_one")
        factual, candidate = explained_and_candidates(made, maker, asked.explain)
        for p in asked.protected:
            names, codes = np.unique(groups[p.name].to_numpy(dtype=str), return_inverse=True)
            problem = Problem(
                encoded=encoded,
                feature_of_column=encodings["feature_index"].to_numpy(),
                features=tuple(dict.fromkeys(encodings["feature"].to_pylist())),
                group=codes.astype(np.int32),
                groups=tuple(names.tolist()),
                reference=int(np.searchsorted(names, p.reference)),
                factual=factual,
                candidate=candidate,
                node=rows["node"].to_numpy(),
                graph=graph,
                resamples=asked.bootstrap.draws,
            )
            yield Case(maker, p.name, rows["row_id"].to_numpy(), problem)


def decided(decisions: pa.Table, explain: Explain) -> list[tuple[str, pd.DataFrame]]:
    """The decisions of every decision maker who is explained, by name."""
    frames = decisions.to_pandas().groupby("decision_maker")
    return [(str(maker), frame) for maker, frame in sorted(frames) if maker in explain.decision_makers]


def explained_and_candidates(decided: pd.DataFrame, maker: str, explain: Explain) -> tuple[Bools, Bools]:
    """Which rows are explained, and which may serve as their counterfactuals.

    The lender's own decisions have no error to speak of, so all of its unfavourable decisions are explained.
    """
    favourable, open_ = decided["favourable"].to_numpy(), decided["explained"].to_numpy()
    factual = ~favourable & open_
    candidate = favourable & open_
    if maker == DecisionMaker.MODEL:
        if explain.factuals == "false_negatives":
            factual &= decided["outcome"].to_numpy()
        if explain.candidate_score is not None:
            candidate &= decided["score"].to_numpy() > explain.candidate_score
    return factual, candidate


def _graph(edges: pa.Table, size: int) -> FeasibilityGraph:
    """The graph from its edges, which are stored by ascending source and destination."""
    indptr = np.searchsorted(edges["source"].to_numpy(), np.arange(size + 1)).astype(np.int64)
    return FeasibilityGraph(indptr, edges["destination"].to_numpy(), edges["distance"].to_numpy())
