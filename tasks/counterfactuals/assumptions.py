"""Assumptions of an audit's generators of counterfactuals, from its settings."""

from typing import Literal, Protocol

from schemas.audit.causal import CausalGraph
from schemas.audit.model import Model
from schemas.audit.spec import Decision, Protected
from tasks.counterfactuals.settings import MatchingSettings

Generator = Literal["scm", "nearest", "gan", "quantile"]
"""What makes the counterfactuals that a method is given."""


class CausalAssumptions(Protocol):
    """Settings of a structural causal model."""

    @property
    def protected(self) -> tuple[Protected, ...]:
        """Protected attributes and their groups."""

    @property
    def decision(self) -> Decision | None:
        """The decision column."""

    @property
    def causal_graph(self) -> CausalGraph:
        """The causal graph."""

    @property
    def seed(self) -> int:
        """Seed of all draws."""


class GeneratorAssumptions(CausalAssumptions, Protocol):
    """Settings of the generators of counterfactuals, and of the decisions on these."""

    @property
    def model(self) -> Model | None:
        """The model; None without one."""

    @property
    def generator(self) -> Generator | None:
        """Settings of the generators of mediators."""

    @property
    def matching(self) -> MatchingSettings:
        """Settings of the search for nearest neighbours."""
