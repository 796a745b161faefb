"""Input tables of the problems of methods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

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
    def ids(self) -> "np.ndarray[Any, Any]":
        """``(n,)`` identifiers of the rows."""
        ids: np.ndarray[Any, Any] = self.features["row_id"].to_numpy()
        return ids
