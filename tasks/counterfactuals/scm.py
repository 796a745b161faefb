"""The generator ``scm``: the causal graph of an audit, its protected attributes as roots, and counterfactual rows.

Edges of the audit spec name a protected attribute or its column. A crossed attribute is a root of its own where an edge
names it; otherwise a change of it sets the single attributes that it crosses.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa

from schemas.audit.causal import CausalGraph, Edge
from schemas.audit.spec import Protected
from schemas.errors import SpecError
from tasks.counterfactuals.algorithm.scm import abduction
from tasks.counterfactuals.algorithm.scm.abduction import Fitted, Imagined, Roots
from tasks.counterfactuals.algorithm.scm.checks import Check, check_model
from tasks.counterfactuals.assumptions import CausalAssumptions
from tasks.counterfactuals.generator import Made
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Counterfactuals, Regenerate
from tasks.preprocessing.groups import Grouped, groups_of
from tasks.scoring.decider import Decide

PERMUTED_ROWS = 10_000
"""Rows that mechanisms are fitted to where the labels are permuted; with fewer rows their effects are larger by
chance, so that the calibration errs on the side of caution."""


@dataclass(frozen=True)
class World:
    """Rows, their groups, and the assumed causal graph."""

    columns: Columns
    protected: tuple[Protected, ...]
    groups: Mapping[str, Grouped]
    graph: CausalGraph
    """Among features and protected attributes, these by the name of the attribute."""
    seed: int
    name: str = "scm"
    fits: dict[tuple[object, ...], Fitted] = field(default_factory=dict, repr=False, compare=False)
    """What was fitted already: both decision makers ask for the same."""
    moved: dict[tuple[object, ...], Counterfactuals] = field(default_factory=dict, repr=False, compare=False)
    """Likewise, who was moved by a model of a resample."""

    @classmethod
    def of(
        cls, columns: Columns, memberships: pa.Table, ids: "np.ndarray[Any, Any]", settings: CausalAssumptions
    ) -> "World":
        """The world of an audit's rows.

        Raises:
            SpecError: an edge leads out of a column of which there is no single protected attribute.
        """
        decision, protected = settings.decision.column if settings.decision else "", settings.protected
        graph = _named(settings.causal_graph, protected).without_node(decision)
        return cls(columns, protected, groups_of(memberships, ids, protected), graph, settings.seed)

    def knows(self, attribute: str) -> bool:
        """Whether an edge leads out of the attribute, and somebody belongs to its reference group."""
        return bool(self.roots(attribute)) and self.groups[attribute].compared

    def roots(self, attribute: str) -> tuple[str, ...]:
        """The nodes that are set when somebody is imagined as a member of another group; none if nothing is assumed."""
        nodes = {cause for cause, _ in self.graph.edges}
        if attribute in nodes:
            return (attribute,)
        return tuple(p.name for p in self._crossed(attribute) if p.name in nodes)

    def reached(self, *attributes: str) -> tuple[str, ...]:
        """The features that any of these protected attributes can reach, in the order of the columns."""
        directed, roots = self.graph.directed, [root for name in attributes for root in self.roots(name)]
        found = set().union(*(nx.descendants(directed, root) for root in roots))
        return tuple(name for name in self.columns.names if name in found)

    def edges(self, attribute: str) -> tuple[Edge, ...]:
        """The edges out of an attribute."""
        return tuple(edge for edge in self.graph.edges if edge[0] in self.roots(attribute))

    def fit(self, attribute: str, group: Ints, without: Edge | None = None) -> tuple[Fitted, Roots]:
        """Fit the mechanisms to all rows; with labels that are not the rows' own, to as many of them as will do."""
        roots = self._rooted(self._labels(attribute, group))
        known = (attribute, without, hashlib.sha256(group.tobytes()).hexdigest())
        if known not in self.fits:
            graph, rng = (self.graph.without(without) if without else self.graph), np.random.default_rng(self.seed)
            columns, some = self.columns, roots
            if not np.array_equal(group, self.groups[attribute].group) and len(group) > PERMUTED_ROWS:
                rows = np.sort(rng.choice(len(group), PERMUTED_ROWS, replace=False))
                columns, some = columns.rows(rows), replace(roots, codes=roots.codes[rows])
            self.fits[known] = abduction.fit(graph, columns, some, rng)
        return self.fits[known], roots

    def checks(self) -> tuple[Check, ...]:
        """What the data say of the causal graph and its mechanisms."""
        return check_model(self.graph, self.columns, self._rooted({}), np.random.default_rng(self.seed))

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """Rows of a group as members of the reference group."""
        known = self.groups[attribute]
        fitted, roots = self.fit(attribute, known.group)
        return Made(attribute, known.groups[group], len(rows), self.imagined(attribute, fitted, roots, rows))

    def noise(self, attribute: str) -> dict[str, Floats]:
        """The noise behind every feature that an attribute reaches, ``(n, d)``; none if nothing is assumed of it.

        It is what imagining keeps of an applicant. NaN for whom it cannot be found of all of these features.
        """
        if not self.knows(attribute):
            return {}
        fitted, roots = self.fit(attribute, self.groups[attribute].group)
        made = self.imagined(attribute, fitted, roots, np.arange(len(self.columns.values)))
        found = {name: np.full((len(self.columns.values), own.shape[1]), np.nan) for name, own in made.noise.items()}
        for name, own in made.noise.items():
            found[name][made.row] = own
        return found

    def imagined(self, attribute: str, fitted: Fitted, roots: Roots, rows: Longs) -> Imagined:
        """Rows as members of the reference group of an attribute, with the columns of the attribute itself changed."""
        own = self.groups[attribute]
        labels = self._labels(attribute, np.array([own.reference]))
        action = {name: int(codes[0]) for name, codes in labels.items() if name in roots.names}
        made = abduction.counterfactuals(fitted, self.columns, roots, rows, action)
        return replace(made, values=self._relabelled(attribute, made.values))

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """What makes counterfactuals again for a method that asks how much its results owe to the assumptions."""

        def again(rows: Longs, group: Ints, without: Edge | None, sample: Longs | None = None) -> Counterfactuals:
            if sample is not None:
                return self._refitted(attribute, rows, group, without, sample)
            fitted, roots = self.fit(attribute, group, without)
            made = self.imagined(attribute, fitted, roots, rows)
            there = replace(self.columns, values=made.values)
            return Counterfactuals(made.row, made.values, decide(there, made.row)[0] if decide else None)

        return again

    def _refitted(
        self, attribute: str, rows: Longs, group: Ints, without: Edge | None, sample: Longs
    ) -> Counterfactuals:
        """Counterfactuals by a model fitted to a sample of rows, with the draws of the model of all rows."""
        asked = hashlib.sha256(group.tobytes() + sample.tobytes() + rows.tobytes()).hexdigest()
        known = (attribute, without, len(sample), asked)
        if known not in self.moved:
            whole, roots = self.fit(attribute, group, without)
            some = replace(roots, codes=roots.codes[sample])
            fitted = abduction.refit(whole, self.columns.rows(sample), some)
            made = self.imagined(attribute, fitted, roots, rows)
            self.moved[known] = Counterfactuals(made.row, made.values, None)
        return self.moved[known]

    def _rooted(self, instead: Mapping[str, Ints]) -> Roots:
        """The protected attributes that cause something, some of them with other labels."""
        causes = {cause for cause, _ in self.graph.edges}
        names = tuple(name for name in self.groups if name in causes)
        codes = np.column_stack([instead.get(name, self.groups[name].group) for name in names])
        return Roots(names, codes, tuple(self.groups[name].groups for name in names))

    def _crossed(self, attribute: str) -> list[Protected]:
        """The single attributes that an attribute crosses, in the order of its columns."""
        columns = next(p.columns for p in self.protected if p.name == attribute)
        if len(columns) == 1:
            return []
        single = {p.columns[0]: p for p in reversed(self.protected) if len(p.columns) == 1}
        return [single[c] for c in columns if c in single]

    def _labels(self, attribute: str, group: Ints) -> dict[str, Ints]:
        """Labels of an attribute, as labels of the roots that stand for it."""
        roots, known = self.roots(attribute), self.groups[attribute]
        if roots == (attribute,):
            return {attribute: group}
        _, first = np.unique(known.group, return_index=True)
        return {name: self.groups[name].group[first][group] for name in roots}

    def _relabelled(self, attribute: str, values: Floats) -> Floats:
        """Features that the attribute is made of, set to what is commonest in the reference group."""
        known, out = self.groups[attribute], values.copy()
        for name in next(p.columns for p in self.protected if p.name == attribute):
            if name in self.columns.names:
                place = self.columns.names.index(name)
                there, counts = np.unique(
                    self.columns.values[known.group == known.reference, place], return_counts=True
                )
                out[:, place] = there[counts.argmax()]
        return out


def _named(graph: CausalGraph, protected: Sequence[Protected]) -> CausalGraph:
    """The graph with columns of protected attributes replaced by the attributes."""
    attributes = {p.name for p in protected}
    single = {p.columns[0]: p.name for p in protected if len(p.columns) == 1}
    shared = Counter(p.columns[0] for p in protected if len(p.columns) == 1)
    of_several = {column for p in protected for column in p.columns} - set(single) - attributes
    edges = []
    for i, (cause, effect) in enumerate(graph.edges):
        if cause in of_several:
            message = f"{cause!r} is only crossed with others; give it a protected attribute of its own"
            raise SpecError(message, ("causal_graph", "edges", i))
        if cause not in attributes and shared[cause] > 1:
            names = " and ".join(p.name for p in protected if p.columns == (cause,))
            message = f"several attributes are made of {cause!r}: {names}; name the one that is meant"
            raise SpecError(message, ("causal_graph", "edges", i))
        edges.append((cause if cause in attributes else single.get(cause, cause), effect))
    return CausalGraph(edges=tuple(edges), mechanisms=graph.mechanisms)
