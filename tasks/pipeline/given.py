"""Input tables of the problems of methods."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import IntegrityError
from schemas.table import Table
from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS, MEDIATED, MEDIATED_DECISIONS
from schemas.tables.feasibility import FEASIBILITY_EDGES, FEASIBILITY_NODES

READS = (
    FEATURES,
    ENCODINGS,
    DECISIONS,
    MEMBERSHIPS,
    FEASIBILITY_NODES,
    FEASIBILITY_EDGES,
    APPLICANTS,
    MODELS,
    COUNTERFACTUALS,
    COUNTERFACTUAL_DECISIONS,
    MEDIATED,
    MEDIATED_DECISIONS,
)
"""The tables that detection makes problems of, whatever the method, in the order of ``ProblemTables``."""


@dataclass(frozen=True)
class ProblemTables:
    """Input tables of problems; those that no method of the audit reads are empty."""

    by_name: Mapping[str, pa.Table]
    """All that was given."""
    features: pa.Table
    encodings: pa.Table
    decisions: pa.Table
    memberships: pa.Table
    nodes: pa.Table
    edges: pa.Table
    applicants: pa.Table
    models: pa.Table
    counterfactuals: pa.Table
    reconsidered: pa.Table
    mediated: pa.Table
    mediated_decisions: pa.Table

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> "ProblemTables":
        """From tables by name."""
        return cls(tables, *(tables.get(table.name, table.empty()) for table in READS))

    def of_method(self, table: Table) -> pa.Table:
        """A table that one method alone reads."""
        return self.by_name.get(table.name, table.empty())

    def __post_init__(self) -> None:
        """Hold the rows together: applicants, where there are any, are in the order of the features."""
        if self.applicants.num_rows and not self.applicants["row_id"].equals(self.features["row_id"]):
            raise IntegrityError("applicants and features are not the same rows in the same order; run preprocess anew")

    @property
    def draws(self) -> int:
        """How many draws of rows the graph is of; 1 where it is of all rows, or where there is none."""
        return int(pc.max(self.nodes["draw"]).as_py()) + 1 if self.nodes.num_rows else 1

    def of_draw(self, draw: int) -> "ProblemTables":
        """The rows of one draw, with their graph; decisions and groups of all rows stay."""
        nodes = self.nodes.filter(pc.equal(self.nodes["draw"], draw))
        number = nodes["node"].to_numpy()
        first, last = int(number.min()), int(number.max())
        start, stop = np.searchsorted(self.edges["source"].to_numpy(), (first, last + 1)).tolist()
        edges = self.edges.slice(start, stop - start)
        for name in ("source", "destination"):
            column = pa.array(edges[name].to_numpy() - np.int32(first))
            edges = edges.set_column(edges.schema.get_field_index(name), edges.schema.field(name), column)
        node = nodes.schema.get_field_index("node")
        nodes = nodes.set_column(node, nodes.schema.field(node), pa.array(number - np.int32(first)))
        there = nodes["row_id"].combine_chunks()
        features, applicants = (
            table.filter(pc.is_in(table["row_id"], there)) for table in (self.features, self.applicants)
        )
        return replace(self, features=features, applicants=applicants, nodes=nodes, edges=edges)

    @property
    def ids(self) -> "np.ndarray[Any, Any]":
        """``(n,)`` identifiers of the rows."""
        ids: np.ndarray[Any, Any] = self.features["row_id"].to_numpy()
        return ids
