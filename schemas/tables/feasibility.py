"""Tables of the feasibility graph (FGCE, section III)."""

from schemas.table import Column, Table
from schemas.tables.applications import ROW_ID

FEASIBILITY_NODES = Table(
    "feasibility_nodes",
    "The node of every application in the graph: equal rows of equal groups share one. A large audit has several "
    "graphs, each of a draw of its rows, whose nodes follow one another.",
    (
        ROW_ID,
        Column("node", "int32", "number of the node, from 0", minimum=0),
        Column("draw", "int32", "number of the draw of rows, from 0; 0 where the graph is of all rows", minimum=0),
    ),
    key=("row_id", "draw"),
    restricted=True,
)

FEASIBILITY_EDGES = Table(
    "feasibility_edges",
    "Directed edges: an application like the source could in one step come to look like the destination.",
    (
        Column("source", "int32", "node", minimum=0),
        Column("destination", "int32", "node", minimum=0),
        Column("distance", "double", "L2 distance in encoded units", minimum=0.0),
    ),
    key=("source", "destination"),
    restricted=True,
)

FEASIBILITY_FACTS = Table(
    "feasibility_facts",
    "What was decided while the graph was built, and what came of it.",
    (
        Column("fact", "string", "epsilon, nodes, edges, isolated, without_neighbour or capped"),
        Column("value", "double", "its value"),
        Column("words", "string", "the same in words"),
    ),
    key=("fact",),
    restricted=True,
)
