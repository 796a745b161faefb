"""Stage connect: builds the feasibility graph of encoded rows, for the search of recourse (FGCE, section III)."""

import pyarrow as pa

from schemas.audit.spec import AuditSpec, StageSettings
from schemas.tables.applications import ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.tables.feasibility import FEASIBILITY_EDGES, FEASIBILITY_FACTS, FEASIBILITY_NODES
from tasks.feasibility_graph.settings import GraphSettings
from tasks.pipeline.stage import Produced, stage


class ConnectSettings(StageSettings):
    """Settings of the graph."""

    graph: GraphSettings


def settings_of(spec: AuditSpec) -> ConnectSettings:
    """The stage's settings: those of the graph among a method's, the defaults where no method of the audit has any."""
    return ConnectSettings(graph=GraphSettings.part_of(spec.methods.of(GraphSettings) or GraphSettings()))


@stage(reads=(FEATURES, ENCODINGS, MEMBERSHIPS), writes=(FEASIBILITY_NODES, FEASIBILITY_EDGES, FEASIBILITY_FACTS))
def connect(features: pa.Table, encodings: pa.Table, memberships: pa.Table, *, settings: ConnectSettings) -> Produced:
    """Nodes, edges and what was decided on the way. Protected groups are never crossed."""
    from tasks.feasibility_graph.rows import connected  # loads numba

    return connected(features, encodings, memberships, settings.graph)
