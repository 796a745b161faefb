"""Detect: one method looks at every decision maker and protected attribute; its arrays become tables.

Which method it is makes no difference here: the registry names its module, and every module has the same ``detect``.
"""

from collections.abc import Mapping
from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.applications import DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.findings import AGGREGATES, DRAWS, EVIDENCE, FINDINGS, TALLIES
from schemas.graph import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.settings import AuditSpec, Bootstrap, Explain, Methods, Protected, StageSettings
from tasks._problems import Case, cases
from tasks._stage import Produced, stage
from tasks._statistics import Origin
from tasks.algorithms.detector import Detected
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
    method = METHODS[settings.method].load()
    tables: dict[str, list[pa.Table]] = {t.name: [t.empty()] for t in detect.writes}
    expected = 0
    for case in cases(features, encodings, decisions, memberships, nodes, edges, settings):
        rng = np.random.default_rng([settings.seed, crc32(f"{case.decision_maker}|{case.attribute}".encode())])
        found = method.detect(case.problem, getattr(settings.methods, settings.method), rng)
        expected += int(case.problem.factual.sum())
        for name, table in _tables(settings.method, case, found).items():
            tables[name].append(table)
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()}, rows_in=expected)


def _tables(method: str, case: Case, found: Detected) -> Mapping[str, pa.Table]:
    problem, ids = case.problem, case.ids
    names = np.array(problem.groups, dtype=object)
    origin = Origin(method, case.decision_maker, case.attribute, problem.groups)

    def shared(n: int) -> dict[str, list[str]]:
        return {
            "method": [method] * n,
            "decision_maker": [case.decision_maker] * n,
            "protected_attribute": [case.attribute] * n,
        }

    f, e = found.findings, found.evidence
    nothing = [None] * len(f.row)
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
        TALLIES.name: origin.tallies(found.tallies),
        AGGREGATES.name: origin.aggregates(found.aggregates),
        DRAWS.name: origin.draws(found.draws),
    }
