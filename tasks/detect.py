"""Detect: one method looks at every decision maker and protected attribute; its arrays become tables.

Which method it is makes no difference here: the registry names its module, and every module has the same ``detect``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.applications import DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.findings import AGGREGATES, DRAWS, EVIDENCE, FINDINGS, TALLIES
from schemas.graph import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.settings import AuditSpec, Bootstrap, Explain, Methods, Protected, StageSettings
from schemas.terms import DecisionMaker
from tasks._stage import Produced, stage
from tasks.algorithms.detector import Detected, FeasibilityGraph, Problem
from tasks.methods import METHODS


class DetectSettings(StageSettings):
    """What decides the findings of one method."""

    method: str
    methods: Methods
    """The settings of ``method`` alone; the others are null."""
    explain: Explain
    protected: tuple[Protected, ...]
    bootstrap: Bootstrap
    seed: int


def settings_of(spec: AuditSpec, method: str) -> DetectSettings:
    """The stage's settings for one method: a change to another method's settings does not touch it."""
    only = dict.fromkeys(Methods.model_fields) | {method: getattr(spec.methods, method)}
    return DetectSettings.of(spec, method=method, methods=Methods.model_validate(only))


@dataclass(frozen=True)
class _Case:
    """A problem with what its arrays stand for."""

    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    problem: Problem


@stage(
    reads=(FEATURES, ENCODINGS, DECISIONS, MEMBERSHIPS, FEASIBILITY_NODES, FEASIBILITY_EDGES),
    writes=(FINDINGS, EVIDENCE, TALLIES, AGGREGATES, DRAWS),
)
def detect(
    features: pa.Table,
    encodings: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    nodes: pa.Table,
    edges: pa.Table,
    *,
    settings: DetectSettings,
) -> Produced:
    """The findings of one method, the evidence behind them, and what is needed to summarise them."""
    rows = features.select(["row_id"]).to_pandas().merge(nodes.to_pandas(), on="row_id", validate="one_to_one")
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    graph = _graph(edges, int(rows["node"].max()) + 1)
    method = METHODS[settings.method].load()
    tables: dict[str, list[pa.Table]] = {t.name: [t.empty()] for t in detect.writes}
    expected = 0
    for case in _cases(rows, decisions, memberships, encoded, encodings, graph, settings):
        rng = np.random.default_rng([settings.seed, crc32(f"{case.decision_maker}|{case.attribute}".encode())])
        found = method.detect(case.problem, getattr(settings.methods, settings.method), rng)
        expected += int(case.problem.factual.sum())
        for name, table in _tables(settings.method, case, found).items():
            tables[name].append(table)
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()}, rows_in=expected)


def _graph(edges: pa.Table, size: int) -> FeasibilityGraph:
    """The graph from its edges, which are stored by ascending source and destination."""
    degrees = np.bincount(edges["source"].to_numpy(), minlength=size)
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return FeasibilityGraph(indptr, edges["destination"].to_numpy(), edges["distance"].to_numpy())


def _cases(
    rows: pd.DataFrame,
    decisions: pa.Table,
    memberships: pa.Table,
    encoded: "np.ndarray[Any, Any]",
    encodings: pa.Table,
    graph: FeasibilityGraph,
    settings: DetectSettings,
) -> Iterator[_Case]:
    group_of = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group")
    groups = group_of.loc[rows["row_id"]]
    made = {str(name): frame for name, frame in decisions.to_pandas().groupby("decision_maker")}
    for maker, frame in sorted(made.items()):
        decided = rows[["row_id"]].merge(frame, on="row_id", validate="one_to_one")
        factual, candidate = explained_and_candidates(decided, maker, settings.explain)
        for p in settings.protected:
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
                resamples=settings.bootstrap.draws,
            )
            yield _Case(maker, p.name, rows["row_id"].to_numpy(), problem)


def explained_and_candidates(
    decided: pd.DataFrame, maker: str, explain: Explain
) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
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


def _tables(method: str, case: _Case, found: Detected) -> Mapping[str, pa.Table]:
    problem, ids = case.problem, case.ids
    names = np.array(problem.groups, dtype=object)

    def shared(n: int) -> dict[str, list[str]]:
        return {
            "method": [method] * n,
            "decision_maker": [case.decision_maker] * n,
            "protected_attribute": [case.attribute] * n,
        }

    f, e = found.findings, found.evidence
    nothing = [None] * len(f.row)
    tallied = [(t, value, count) for t in found.tallies for value, count in zip(t.values, t.counts, strict=True)]
    drawn = [(d, i, value) for d in found.draws for i, value in enumerate(d.values)]
    return {
        FINDINGS.name: FINDINGS.build(
            **shared(len(f.row)),
            row_id=ids[f.row],
            group=names[problem.group[f.row]],
            subgroup=f.subgroup,
            verdict=f.verdict.astype(object),
            statistic=f.statistic,
            low=nothing,
            high=nothing,
            p=nothing,
            q=nothing,
            refusal=[str(reason) or None for reason in f.refusal],
        ),
        EVIDENCE.name: EVIDENCE.build(
            **shared(len(e.row)),
            row_id=ids[e.row],
            role=e.role.astype(object),
            rank=e.rank,
            other_row_id=ids[e.other],
            value=e.value,
        ),
        TALLIES.name: TALLIES.build(
            **shared(len(tallied)),
            group=[problem.groups[t.group] for t, _, _ in tallied],
            subgroup=[t.subgroup for t, _, _ in tallied],
            measure=[t.measure for t, _, _ in tallied],
            parameters=[json.dumps(dict(t.parameters), sort_keys=True) for t, _, _ in tallied],
            headline=[t.headline for t, _, _ in tallied],
            compared=[t.compared for t, _, _ in tallied],
            value=[value for _, value, _ in tallied],
            count=[count for _, _, count in tallied],
        ),
        AGGREGATES.name: AGGREGATES.build(
            **shared(len(found.aggregates)),
            group=[problem.groups[a.group] for a in found.aggregates],
            subgroup=[a.subgroup for a in found.aggregates],
            measure=[a.measure for a in found.aggregates],
            parameters=[json.dumps(dict(a.parameters), sort_keys=True) for a in found.aggregates],
            headline=[a.headline for a in found.aggregates],
            compared=[a.compared for a in found.aggregates],
            value=[a.value for a in found.aggregates],
            n=[a.n for a in found.aggregates],
            reason=[a.reason or None for a in found.aggregates],
            replicates=[a.replicates for a in found.aggregates],
        ),
        DRAWS.name: DRAWS.build(
            **shared(len(drawn)),
            group=[problem.groups[d.group] for d, _, _ in drawn],
            measure=[d.measure for d, _, _ in drawn],
            parameters=[json.dumps(dict(d.parameters), sort_keys=True) for d, _, _ in drawn],
            draw=[i for _, i, _ in drawn],
            value=[value for _, _, value in drawn],
        ),
    }
