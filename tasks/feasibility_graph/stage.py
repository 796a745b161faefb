"""Stage connect: builds the feasibility graph of encoded rows, for the search of recourse (FGCE, section III)."""

from typing import ClassVar

import pyarrow as pa

from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, StageSettings
from schemas.tables.applications import APPLICATIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.tables.counterfactuals import FEASIBILITY_EDGES, FEASIBILITY_FACTS, FEASIBILITY_NODES
from tasks.feasibility_graph.settings import GraphSettings
from tasks.pipeline.stage import Produced, stage


class ConnectSettings(StageSettings):
    """Settings of the graph."""

    memory: ClassVar[Growth] = Growth(160, 10, "graph")

    graph: GraphSettings
    rows: int | None = None
    """Of a graph at most; None: all rows of the audit."""
    seed: int = 0
    """Of the draws of rows."""


def connect_settings(spec: AuditSpec) -> ConnectSettings:
    """The stage's settings: those of the graph among a method's, the defaults where no method of the audit has any."""
    graph = GraphSettings.part_of(spec.methods.of(GraphSettings) or GraphSettings())
    return ConnectSettings(graph=graph, rows=spec.sampling.graph_rows if spec.sampling else None, seed=spec.seed)


@stage(
    reads=(FEATURES, ENCODINGS, MEMBERSHIPS, APPLICATIONS),
    writes=(FEASIBILITY_NODES, FEASIBILITY_EDGES, FEASIBILITY_FACTS),
)
def connect(
    features: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    *,
    settings: ConnectSettings,
) -> Produced:
    """Nodes, edges and what was decided on the way. Protected groups are never crossed.

    A large audit has a graph for each of several draws of its rows, with nodes of their own.
    """
    from tasks.feasibility_graph.rows import connected  # loads numba

    return connected(features, encodings, memberships, applications, settings)
