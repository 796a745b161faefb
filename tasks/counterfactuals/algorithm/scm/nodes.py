"""The nodes of a causal model: the graph of the audit spec, matched with the columns and groups of the data.

A state is a matrix ``(n, p + r)``: the features as in ``Columns.values``, then the group numbers of the protected
attributes. Every cause and effect is a column of it. Scope: what is known before a fit, i.e. columns in reach of the
protected attributes, their causes, forms of mechanisms, and usable rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from schemas.audit.causal import CausalGraph, Form, Mechanism
from schemas.errors import Location, SpecError, nearest
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.scm.mechanisms import ALLOWED, AUTO
from tasks.numerics.arrays import Floats, Ints
from tasks.numerics.columns import Columns


class Unimaginable(StrEnum):
    """Why a row has no counterfactual."""

    MISSING_VALUE = "missing_value"
    NOT_A_COUNT = "not_a_count"
    UNSEEN_CATEGORY = "unseen_category"
    IMPROBABLE_VALUE = "improbable_value"


@dataclass(frozen=True)
class Roots:
    """The protected attributes: causes that nothing in the graph causes, and all that an action can set."""

    names: tuple[str, ...]
    codes: Ints
    """``(n, r)`` group of every row."""
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Cause:
    """A column of the state as it enters a mechanism."""

    name: str
    place: int
    labels: tuple[str, ...]
    """Groups or categories that get an indicator each, but for the first; none for what enters as a number."""

    def encode(self, state: Floats) -> Floats:
        """Columns ``(n, 1)`` or ``(n, groups - 1)`` of the mechanism's causes."""
        column = state[:, [self.place]]
        return (column == np.arange(1, len(self.terms) + 1)).astype(np.float64) if self.labels else column

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(f"{self.name}={label}" for label in self.labels[1:] or self.labels) or (self.name,)


@dataclass(frozen=True)
class Node:
    """A column that a protected attribute can reach."""

    name: str
    place: int
    causes: tuple[Cause, ...]
    form: Form
    setting: Mechanism
    categories: int
    """0 for numbers."""

    @property
    def places(self) -> list[int]:
        """Columns of the state that the node directly depends on."""
        return [cause.place for cause in self.causes]

    def encode(self, state: Floats) -> Floats:
        """Its causes as ``(n, q)`` numbers: indicators of groups and nominal categories, ranks of ordered ones."""
        return np.hstack([cause.encode(state) for cause in self.causes])


def state_of(columns: Columns, roots: Roots, graph: CausalGraph) -> Floats:
    """The state ``(n, p + r)`` of the factual world, with factual values rounded where the spec says so."""
    state = np.column_stack([columns.values, roots.codes]).astype(np.float64)
    for name, setting in graph.mechanisms.items():
        if setting.factual_decimals is not None and name in columns.names:
            place = columns.names.index(name)
            state[:, place] = np.round(state[:, place], setting.factual_decimals)
    return state


def root_causes(columns: Columns, roots: Roots) -> dict[str, Cause]:
    """The protected attributes as columns of the state."""
    first = len(columns.names)
    named = enumerate(zip(roots.names, roots.groups, strict=True), first)
    return {name: Cause(name, place, groups) for place, (name, groups) in named}


def all_causes(columns: Columns, roots: Roots) -> dict[str, Cause]:
    """Every column of the state by name; of a feature and a protected attribute of one name, the attribute.

    The order of an ordered column makes it a number, so that its effects go one way unless the mechanism bends.
    """
    features = {}
    for place, (name, kind) in enumerate(zip(columns.names, columns.kinds, strict=True)):
        features[name] = Cause(name, place, columns.categories[place] if kind is Kind.NOMINAL else ())
    return features | root_causes(columns, roots)


def nodes_of(graph: CausalGraph, columns: Columns, roots: Roots) -> tuple[Node, ...]:
    """The columns that a protected attribute can reach, causes first.

    Raises:
        SpecError: A node of the graph is no column, a protected attribute has a cause, or a mechanism does not fit the
            type of its column.
    """
    _check(graph, columns, roots)
    directed, causes = graph.directed, all_causes(columns, roots)
    reached = set().union(*(nx.descendants(directed, name) for name in roots.names if name in directed))
    return tuple(_node(name, graph, columns, causes) for name in nx.topological_sort(directed) if name in reached)


def _node(name: str, graph: CausalGraph, columns: Columns, known: Mapping[str, Cause]) -> Node:
    place, setting = known[name].place, graph.mechanisms.get(name, Mechanism())
    causes = tuple(known[parent] for parent in graph.parents(name))
    form = _form(name, columns.kinds[place], setting)
    return Node(name, place, causes, form, setting, len(columns.categories[place]))


def _form(name: str, kind: Kind, setting: Mechanism) -> Form:
    if setting.kind == "auto":
        if setting != Mechanism() and kind is not Kind.CONTINUOUS:
            raise SpecError(f"{name!r} is {kind}: bounds and decimals belong to numbers", _of(name))
        return AUTO[kind]
    if setting.kind not in ALLOWED[kind]:
        fitting = " or ".join(repr(form) for form in ALLOWED[kind])
        raise SpecError(f"{name!r} is {kind} and cannot have a mechanism {setting.kind!r}; take {fitting}", _of(name))
    return setting.kind


def _of(name: str) -> Location:
    return ("causal_graph", "mechanisms", name)


def _check(graph: CausalGraph, columns: Columns, roots: Roots) -> None:
    known = [*columns.names, *roots.names]
    for i, edge in enumerate(graph.edges):
        place: Location = ("causal_graph", "edges", i)
        for name in edge:
            if name not in known:
                raise SpecError(f"{name!r} is no column of the causal model; {nearest(name, known)}", place)
        if edge[1] in roots.names:
            raise SpecError(
                f"{edge[0]} -> {edge[1]}: {edge[1]!r} is a protected attribute and nothing may cause it here; "
                "turn the edge round or remove it",
                place,
            )


def unusable(nodes: tuple[Node, ...], state: Floats) -> NDArray[np.str_]:
    """``(n,)`` why a row can be neither fitted to nor imagined; empty where it can."""
    reasons = np.full(len(state), "", dtype="U32")
    used = sorted({place for node in nodes for place in (node.place, *node.places)})
    reasons[~np.isfinite(state[:, used]).all(axis=1)] = Unimaginable.MISSING_VALUE
    for node in nodes:
        if node.form == "count":
            values = state[:, node.place]
            wrong = np.isfinite(values) & ((values < 0) | (values != np.round(values)))
            reasons[wrong & (reasons == "")] = Unimaginable.NOT_A_COUNT
    return reasons
