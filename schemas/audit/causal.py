"""The causal graph of an audit spec: assumed causes, and the kind of mechanism of each column.

Scope: the shape of the graph, and checks that need the graph alone. Checks against the columns of the data:
``tasks.counterfactuals.algorithm.causal_model``.
"""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.bounds import Strict
from schemas.errors import nearest

if TYPE_CHECKING:
    from networkx import DiGraph

Edge = tuple[str, str]
Order = tuple[tuple[str, ...], ...]
"""Tiers of columns, causes first. Columns of one tier have no edge, and may go together for reasons of their own."""
Form = Literal["linear", "forest", "boosting", "count", "ordinal", "nominal"]


def is_order(value: Any) -> bool:
    """Whether a value of a spec has the shape of tiers of columns."""
    lists = (list, tuple)
    return isinstance(value, lists) and all(
        isinstance(tier, lists) and all(isinstance(name, str) for name in tier) for tier in value
    )


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
        None, ge=-9, le=9, description="digits to which factual values are rounded before the fit, to reproduce a paper"
    )
    noise_decimals: int | None = Field(
        None, ge=-9, le=9, description="digits to which the noise is rounded, to reproduce a paper"
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

    order: Order = Field(
        (),
        description="tiers of a saturated graph, filled in from `methods.cst.causal_order`; its edges lead from every "
        "column to every column of a later tier",
    )
    edges: tuple[Edge, ...] = Field((), description="pairs of cause and effect")
    mechanisms: dict[str, Mechanism] = Field({}, description="column -> how it comes about from its causes")

    @model_validator(mode="before")
    @classmethod
    def _saturated_by_its_order(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or not raw.get("order"):
            return raw
        tiers = raw["order"]
        if not is_order(tiers):
            return raw  # the field says what is wrong with it
        firsts: dict[str, int] = {}
        for i, tier in enumerate(tiers):
            for name in tier:
                firsts.setdefault(name, i)
        by_tier = [[name for name in firsts if firsts[name] == i] for i in range(len(tiers))]
        edges = [edge for tier, later in combinations(by_tier, 2) for edge in product(tier, later)]
        against = [edge for edge in raw.get("edges") or () if tuple(edge) not in edges]
        if against:
            cause, effect = against[0]
            raise ValueError(f"the edge {cause} -> {effect} goes against the causal order; correct one of the two")
        return {**raw, "edges": edges}

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
        for name in mechanisms if not info.data.get("order") else ():
            if effects and name not in effects:
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

    def tier(self, name: str) -> int | None:
        """The tier of a column of a saturated graph; None of a graph of edges."""
        return next((i for i, tier in enumerate(self.order) if name in tier), None)

    def saturated(self, columns: Sequence[str], roots: Sequence[str]) -> "CausalGraph":
        """The graph of the same causal order with every edge that the order allows.

        It implies no independence that data could refute. Roots come first. A column without a cause here may be moved
        by them, and comes next; every other column follows its causes.

        Args:
            columns: All features, those outside the graph among them.
            roots: The protected attributes.
        """
        place: dict[str, int] = dict.fromkeys(roots, 0)
        remaining = [name for name in columns if name not in roots]
        while remaining:
            ready = [name for name in remaining if all(cause in place for cause in self.parents(name))]
            tier = max(place.values()) + 1
            place |= dict.fromkeys(ready, tier)
            remaining = [name for name in remaining if name not in place]
        tiers = [tuple(name for name in place if place[name] == i) for i in range(max(place.values()) + 1)]
        mechanisms = {name: mechanism.model_dump() for name, mechanism in self.mechanisms.items()}
        return CausalGraph.model_validate({"order": tiers, "mechanisms": mechanisms})

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
        if self.order:
            tiers = tuple(tier for names in self.order if (tier := tuple(n for n in names if n != name)))
            mechanisms = {
                n: m.model_dump() for n, m in self.mechanisms.items() if n in {c for t in tiers[1:] for c in t}
            }
            return CausalGraph.model_validate({"order": tiers, "mechanisms": mechanisms})
        return self._of(e for e in self.edges if name not in e)

    def _of(self, edges: Iterable[Edge]) -> "CausalGraph":
        """The graph of fewer edges; a column without a cause left loses its mechanism."""
        kept_edges = tuple(edges)
        effects = {effect for _, effect in kept_edges}
        return CausalGraph(edges=kept_edges, mechanisms={n: m for n, m in self.mechanisms.items() if n in effects})
