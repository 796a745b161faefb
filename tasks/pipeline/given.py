"""What the problems of methods are made of: tables, and what of the settings decides them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.audit.methods.matching import MatchingSettings
from schemas.audit.model import Model
from schemas.audit.spec import Bootstrap, Decision, Explain, Protected
from schemas.errors import IntegrityError
from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS, MEDIATED, MEDIATED_DECISIONS
from schemas.tables.feasibility import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.tables.reranking import RERANKED

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
    RERANKED,
)
"""The tables of ``ProblemTables``, in its order."""


Generator = Literal["scm", "nearest", "gan", "quantile"]
"""What makes the counterfactuals that a method is given."""


class GeneratorAssumptions(Protocol):
    """What of the settings decides who applicants would have been, and who decides on that."""

    @property
    def protected(self) -> tuple[Protected, ...]:
        """Protected attributes and their groups."""

    @property
    def decision(self) -> Decision | None:
        """The decision column."""

    @property
    def model(self) -> Model | None:
        """The model; None without one."""

    @property
    def causal_graph(self) -> CausalGraph:
        """The causal graph."""

    @property
    def generator(self) -> Generator | None:
        """Settings of the generators of mediators."""

    @property
    def matching(self) -> MatchingSettings:
        """Settings of the search for nearest neighbours."""

    @property
    def seed(self) -> int:
        """Seed of all draws."""


class ProblemSettings(GeneratorAssumptions, Protocol):
    """What of the settings decides the problems."""

    @property
    def explain(self) -> Explain:
        """Whose decisions are explained."""

    @property
    def bootstrap(self) -> Bootstrap:
        """Draws of the intervals."""


@dataclass(frozen=True)
class ProblemTables:
    """The tables that problems are made of; those that no method of the audit reads are empty."""

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
    reranked: pa.Table

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> "ProblemTables":
        """From tables by name."""
        return cls(*(tables.get(table.name, table.empty()) for table in READS))

    def __post_init__(self) -> None:
        """Hold the rows together: applicants, where there are any, are in the order of the features."""
        if self.applicants.num_rows and not self.applicants["row_id"].equals(self.features["row_id"]):
            raise IntegrityError("applicants and features are not the same rows in the same order; run preprocess anew")

    @property
    def ids(self) -> "np.ndarray[Any, Any]":
        """``(n,)`` identifiers of the rows."""
        ids: np.ndarray[Any, Any] = self.features["row_id"].to_numpy()
        return ids
