"""Encoded rows as a feasibility graph, or a seeded draw of them."""

import json
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.tables.counterfactuals import FEASIBILITY_EDGES, FEASIBILITY_FACTS, FEASIBILITY_NODES
from schemas.terms import Constraint, Kind
from tasks.feasibility_graph.algorithm import (
    DOWN,
    FREE,
    IMMUTABLE,
    UP,
    Built,
    Distinct,
    Epsilon,
    Rules,
    choose_epsilon,
    collapse,
)
from tasks.feasibility_graph.algorithm import build as build_graph
from tasks.feasibility_graph.settings import GraphSettings
from tasks.numerics import encoding
from tasks.numerics.arrays import Bools, Ints, Longs
from tasks.numerics.statistics.sampling import hashes, proportionally, thresholds
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import codes_of

# --------------------------------------------------------------------------------------------------------------------
# Which rows the graph of a large audit is of: seeded draws that take the same share of every group and decision.
#
# Whom somebody can come to look like depends on how many candidates there are, so that no sample estimates what all
# rows would say. What is measured is therefore said of so many rows, and drawn several times.
#
# Scope: rows of each draw. The graph: ``rows``.


DRAWS = 5
"""Graphs of a large audit, each of rows of its own draw."""


def draws(ids: list[str], strata: Ints, favourable: Bools, most: int | None, seed: int) -> list[Longs]:
    """The rows of every draw, ascending: one of all rows where they are no more than ``most``.

    Args:
        ids: ``(n,)``.
        strata: ``(n, s)`` groups of every protected attribute.
        favourable: ``(n,)`` the lender's decisions.
        most: Rows of a graph; None: all.
        seed: Of the audit.
    """
    if most is None or len(ids) <= most:
        return [np.arange(len(ids))]
    columns = np.column_stack([strata, favourable])
    _, cell, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
    cell, sizes = cell.ravel(), proportionally(counts.astype(np.int64), most)
    drawn_rows = []
    for draw in range(DRAWS):
        hashed = hashes(ids, seed, draw + 1)
        # a cell without anybody has the threshold 0, which a hash may be
        is_drawn = (hashed <= thresholds(hashed, cell, sizes)[cell]) & (sizes[cell] > 0)
        drawn_rows.append(np.flatnonzero(is_drawn))
    return drawn_rows


def decided(ids: list[str], applications: pa.Table) -> Bools:
    """``(n,)`` the lender's decisions on some of the applications."""
    places = pc.index_in(pa.array(ids, applications.schema.field("row_id").type), applications["row_id"])
    return np.asarray(applications["favourable"].take(places).to_numpy(), dtype=bool)


# --------------------------------------------------------------------------------------------------------------------
# Encoded rows as a feasibility graph: strata and rules from the tables, and the graph as tables again.


_DIRECTION = {Constraint.FREE: FREE, Constraint.UP: UP, Constraint.DOWN: DOWN, Constraint.IMMUTABLE: IMMUTABLE}


class Limits(Protocol):
    """How large a graph may be."""

    @property
    def graph(self) -> GraphSettings:
        """Rules of the graph."""

    @property
    def rows(self) -> int | None:
        """Rows of a graph at most; None: all."""

    @property
    def seed(self) -> int:
        """Of the draws of rows."""


def connected(
    features: pa.Table, encodings: pa.Table, memberships: pa.Table, applications: pa.Table, limits: Limits
) -> Produced:
    """Nodes, edges and facts of the graph, or of one graph for each draw of rows.

    Facts are those of the first draw, whose radius all draws have.
    """
    ids = features["row_id"].to_pylist()
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    rules, codes = rules_of(encoded, encodings)
    strata = strata_of(ids, memberships)
    chosen = draws(ids, strata, decided(ids, applications), limits.rows, limits.seed)
    distinct = collapse(encoded[chosen[0]], codes[chosen[0]], strata[chosen[0]], rules)
    epsilon = choose_epsilon(distinct, rules, limits.graph)
    built = build_graph(distinct, rules, epsilon.value, limits.graph)
    tables = {FEASIBILITY_FACTS.name: _facts(distinct, epsilon, built, limits.graph)}
    names, first, nodes, edges = np.array(ids, dtype=object), 0, [], []
    for draw, rows in enumerate(chosen):
        if draw:
            distinct = collapse(encoded[rows], codes[rows], strata[rows], rules)
            built = build_graph(distinct, rules, epsilon.value, limits.graph)
        graph, offset = built.graph, np.int32(first)  # nodes of all draws are numbered one after another
        nodes.append(FEASIBILITY_NODES.build(row_id=names[rows], node=distinct.node + offset, draw=[draw] * len(rows)))
        source = np.repeat(np.arange(graph.size, dtype=np.int32), np.diff(graph.indptr)) + offset
        edges.append(
            FEASIBILITY_EDGES.build(source=source, destination=graph.indices + offset, distance=graph.distances)
        )
        first += graph.size
    tables |= {FEASIBILITY_NODES.name: pa.concat_tables(nodes), FEASIBILITY_EDGES.name: pa.concat_tables(edges)}
    return Produced(tables, rows_in=sum(map(len, chosen)))


def strata_of(ids: list[str], memberships: pa.Table) -> NDArray[np.int32]:
    """``(n, attributes)`` group numbers: rows of two groups are never joined."""
    attributes = sorted(pc.unique(memberships["protected_attribute"]).to_pylist())
    return np.column_stack([codes for codes, _ in codes_of(memberships, ids, attributes)])


def rules_of(encoded: NDArray[np.float64], encodings: pa.Table) -> tuple[Rules, NDArray[np.int32]]:
    """The constraints by encoded column, and the category codes of the columns with allowed transitions."""
    rows = encodings.to_pandas()
    direction = np.array([_DIRECTION[Constraint(c)] for c in rows["constraint"]], dtype=np.int8)
    codes, transitions = [], []
    for _, members in rows[rows["transitions"].notna()].groupby("feature_index"):
        first = members.iloc[0]
        categories = json.loads(first["categories"])
        block = encoded[:, members.index]
        one_hot = first["kind"] == Kind.NOMINAL
        codes.append(
            encoding.decode_one_hot(block) if one_hot else encoding.decode_ordered(block[:, 0], len(categories))
        )
        moves = json.loads(first["transitions"])
        allowed = np.eye(len(categories), dtype=bool)
        for i, category in enumerate(categories):
            allowed[i] |= np.array([category not in moves or other in moves[category] for other in categories])
        transitions.append((len(codes) - 1, allowed))
    stacked = np.column_stack(codes) if codes else np.zeros((len(encoded), 0))
    return Rules(direction, tuple(transitions)), stacked.astype(np.int32)


def _facts(distinct: Distinct, epsilon: Epsilon, built: Built, settings: GraphSettings) -> pa.Table:
    rule = {
        "quantile": f"the {settings.epsilon_quantile:g} quantile, over distinct rows with a feasible neighbour, "
        "of the distance to the nearest one",
        "no_singleton": "the smallest value that leaves no row isolated that has a feasible neighbour at all",
        "given": "given in the audit spec",
    }[epsilon.rule]
    nodes = len(distinct.bucket)
    isolated = f"{built.isolated:,} distinct rows have no feasible step to or from any other"
    if built.isolated == nodes:
        isolated = (
            "no feasible step joins any two distinct rows: epsilon is too small or the constraints are too tight, and "
            "nobody has recourse but by an identical application"
        )
    capped = f"only the {settings.nearest} nearest feasible neighbours of a row were kept, as {built.expected_edges:,} "
    facts = [
        ("epsilon", epsilon.value, f"one feasible step reaches {epsilon.value:.3f} in encoded units: {rule}"),
        ("nodes", nodes, f"{nodes:,} distinct rows stand for {len(distinct.node):,} applications"),
        ("edges", built.edges, f"{built.edges:,} feasible steps between them"),
        ("isolated", built.isolated, isolated),
        (
            "without_neighbour",
            epsilon.without_neighbour,
            f"{epsilon.without_neighbour:,} of these have no feasible neighbour at any distance",
        ),
        (
            "capped",
            float(built.capped),
            capped + "edges were expected" if built.capped else "no neighbour was left out to save memory",
        ),
    ]
    names, values, words = zip(*facts, strict=True)
    return FEASIBILITY_FACTS.build(fact=names, value=values, words=words)
