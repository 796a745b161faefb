"""The causal graph of an audit spec: assumed causes, and the kind of mechanism of each column.

Scope: the shape of the graph, and checks that need the graph alone. Checks against the columns of the data:
``tasks.counterfactuals.algorithm.causal_model``.
"""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.bounds import Strict
from schemas.errors import nearest

if TYPE_CHECKING:
    from networkx import DiGraph

Edge = tuple[str, str]
Form = Literal["linear", "forest", "boosting", "count", "ordinal", "nominal"]


class Mechanism(Strict):
    """Mechanism of a column: a function of its causes and its own noise, and its range of values."""

    kind: Literal["auto"] | Form = Field(
        "auto",
        description="linear, forest or boosting regression with additive noise; Poisson count; ordinal with monotone "
        "or nominal with Gumbel-max coupling; `auto` takes linear, ordinal (binary too) or nominal by column type",
    )
    bounds: tuple[float | None, float | None] = Field(
        (None, None), description="counterfactual values outside are clipped, and counted"
    )
    decimals: int | None = Field(None, ge=-9, le=9, description="digits to which counterfactual values are rounded")
    factual_decimals: int | None = Field(
        None, ge=-9, le=9, description="digits to which factual values are rounded before the fit and before imagining"
    )
    noise_decimals: int | None = Field(
        None, ge=-9, le=9, description="digits to which the noise is rounded (authors of CST, loan data)"
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        low, high = self.bounds
        if low is not None and high is not None and low >= high:
            raise ValueError(f"bounds are [{low:g}, {high:g}]; expected the lower one first")
        if self.kind in ("ordinal", "nominal") and (self.bounds != (None, None) or self.rounds):
            raise ValueError(f"bounds and decimals belong to numbers, not to the categories of kind {self.kind!r}")
        if self.kind == "count" and self.noise_decimals is not None:
            raise ValueError("`noise_decimals` belongs to additive noise, not to kind 'count'")
        return self

    @property
    def rounds(self) -> bool:
        """Whether anything is rounded."""
        return any(digits is not None for digits in (self.decimals, self.factual_decimals, self.noise_decimals))


class CausalGraph(Strict):
    """Assumed causes and effects; always checked, used by the methods that need them."""

    edges: tuple[Edge, ...] = Field((), description="pairs of cause and effect")
    mechanisms: dict[str, Mechanism] = Field({}, description="column -> how it comes about from its causes")

    @field_validator("edges")
    @classmethod
    def _acyclic(cls, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        ordered = TopologicalSorter[str]()
        for cause, effect in edges:
            ordered.add(effect, cause)
        try:
            ordered.prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise ValueError(f"the causal graph has a cycle: {cycle}; remove one edge of it") from error
        return edges

    @field_validator("mechanisms")
    @classmethod
    def _of_effects(cls, mechanisms: dict[str, Mechanism], info: ValidationInfo) -> dict[str, Mechanism]:
        effects = sorted({effect for _, effect in info.data.get("edges", ())})
        for name in mechanisms:
            if "edges" in info.data and name not in effects:
                raise ValueError(f"no edge leads to {name!r}, so it has no mechanism; {nearest(name, effects)}")
        return mechanisms

    @property
    def directed(self) -> "DiGraph":
        """The same for networkx."""
        from networkx import DiGraph  # a tenth of a second to import, and a plan follows no path

        return DiGraph(list(self.edges))

    def parents(self, name: str) -> tuple[str, ...]:
        """Direct causes, in the order of the edges."""
        return tuple(dict.fromkeys(cause for cause, effect in self.edges if effect == name))

    def without(self, edge: Edge) -> "CausalGraph":
        """The graph without one of its edges.

        Raises:
            ValueError: If the graph has no such edge.
        """
        if edge not in self.edges:
            raise ValueError(f"the causal graph has no edge {edge[0]} -> {edge[1]}")
        return self._of(e for e in self.edges if e != edge)

    def without_node(self, name: str) -> "CausalGraph":
        """The graph without a node, such as the decision that the others lead to."""
        return self._of(e for e in self.edges if name not in e)

    def _of(self, edges: Iterable[Edge]) -> "CausalGraph":
        """The graph of fewer edges; a column without a cause left loses its mechanism."""
        kept_edges = tuple(edges)
        effects = {effect for _, effect in kept_edges}
        return CausalGraph(edges=kept_edges, mechanisms={n: m for n, m in self.mechanisms.items() if n in effects})
