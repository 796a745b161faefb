"""Generators of counterfactuals: the interface, nearest, SCM, and the choice among them."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.causal import CausalGraph, Edge
from schemas.audit.model import Model
from schemas.audit.spec import Protected
from schemas.errors import SpecError
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.algorithm import causal_model, nearest
from tasks.counterfactuals.algorithm.causal_checks import Check, GraphTest, check_model, compare_with_permuted
from tasks.counterfactuals.algorithm.causal_model import Fitted, Imagined, Roots
from tasks.counterfactuals.algorithm.nearest import Matches, Matching
from tasks.counterfactuals.stage_settings import CausalAssumptions, GeneratorAssumptions
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Counterfactuals, Regenerate, Saturated
from tasks.preprocessing.columns import Grouped, columns_of, groups_of
from tasks.scoring.decider import Decide, explainers, financial

# --------------------------------------------------------------------------------------------------------------------
# Interface of the generators of counterfactuals: the rows that they can serve, and their counterfactuals.
#
# Implementations are a structural causal model (``scm``) and a search among real applicants (``nearest``). Adversarial
# networks take long to train and have a stage of their own (``mediate``).


@dataclass(frozen=True)
class Made:
    """The members of one group as members of the reference group."""

    attribute: str
    group: str
    rows: int
    """Members of the group."""
    imagined: Imagined
    matches: Matches | None = None
    """The real applicants that they stand for, of ``imagined.row``; None of a generator that makes new ones."""


class Generator(Protocol):
    """Generates counterfactuals of applicants as members of the reference group."""

    @property
    def name(self) -> str:
        """Label of its counterfactuals."""

    @property
    def groups(self) -> Mapping[str, Grouped]:
        """Groups of the rows, by protected attribute."""

    def knows(self, attribute: str) -> bool:
        """Whether it has counterfactuals for this attribute."""

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """``rows``, ascending, which are the members of a group, as members of the reference group."""

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """A function that regenerates counterfactuals under other assumptions, with a model's decisions on them."""

    def edges(self, attribute: str) -> tuple[Edge, ...]:
        """The assumptions that can be left out, each separately."""

    def reached(self, *attributes: str) -> tuple[str, ...]:
        """The features that any of these attributes is taken to influence, in the order of the columns."""

    def checks(self) -> tuple[Check, ...]:
        """Checks of the assumptions against the data."""

    def graph_test(self, checks: tuple[Check, ...]) -> GraphTest | None:
        """Whether the data contradict the causal graph as a whole; None where none is assumed."""


def outside(generator: Generator, attribute: str, sample: Bools | None = None) -> Iterator[Made]:
    """Every group of an attribute but the reference group; of a ``sample`` its rows ``(n,)`` alone."""
    attribute_groups = generator.groups[attribute]
    for number in range(len(attribute_groups.groups)):
        if number != attribute_groups.reference:
            is_member = attribute_groups.group == number
            yield generator.members(
                attribute, number, np.flatnonzero(is_member if sample is None else is_member & sample)
            )


# --------------------------------------------------------------------------------------------------------------------
# The generator ``nearest``: matches an applicant with the most comparable real member of the reference group.
#
# A match is a similar person with the same outcome, not what this person would have been (Popoola and Sheppard 2026,
# Algorithm 1). If the outcome is the decision itself, both have the same decision, so that the lender's decisions never
# differ. Matches come from the training rows of the model that decides on the applicant, as in CEC; from all rows if no
# model was fitted here.


@dataclass(frozen=True)
class Lookalikes:
    """``n`` rows with the features for comparing them."""

    columns: Columns
    groups: Mapping[str, Grouped]
    label: Bools
    """``(n,)`` true outcomes."""
    financial: tuple[Floats, tuple[str, ...]]
    """``(n, f)`` and names: what makes applicants comparable."""
    pool_of: Ints
    """``(n,)`` number of the pool that a row is matched with."""
    pools: tuple[Bools, ...]
    """``(n,)`` who belongs to each pool."""
    matching: Matching
    name: str = "nearest"

    @classmethod
    def of(
        cls, applicants: tuple[pa.Table, pa.Table, pa.Table], decisions: pa.Table, asked: GeneratorAssumptions
    ) -> "Lookalikes":
        """From the tables ``applicants``, ``encodings`` and ``memberships``, and the decisions on the applicants.

        Raises:
            SpecError: no column has the role ``financial``.
        """
        handed_in, encodings, memberships = applicants
        columns, ids = columns_of(handed_in, encodings), handed_in["row_id"].to_numpy()
        frame = decisions.to_pandas()
        makers = set(frame["decision_maker"])
        maker = DecisionMaker.MODEL if DecisionMaker.MODEL in makers else DecisionMaker.LENDER
        decision_frame = frame[frame["decision_maker"] == maker].set_index("row_id").loc[ids]
        pool_of, pools = _pools(decision_frame, asked.model)
        return cls(
            columns,
            groups_of(memberships, ids, asked.protected),
            decision_frame["outcome"].to_numpy(dtype=bool),
            financial(columns, encodings),
            pool_of,
            pools,
            Matching.of(asked.matching),
        )

    def knows(self, attribute: str) -> bool:
        """Everybody can be compared with members of any group that has some."""
        return attribute in self.groups and self.groups[attribute].compared

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """Rows of a group, each as the member of the reference group who is most like it."""
        attribute_groups = self.groups[attribute]
        matches = self._matches(attribute_groups.group, rows, attribute_groups.reference)
        matched = np.flatnonzero(matches.matched)
        imagined = Imagined(
            row=rows[matched],
            values=self.columns.values[matches.match[matched]],
            noise={},
            clipped={},
            refused=rows[~matches.matched],
            reason=matches.reason[~matches.matched],
        )
        matched_pairs = Matches(
            rows[matched], matches.match[matched], matches.distance[matched], matches.reason[matched]
        )
        return Made(attribute, attribute_groups.groups[group], len(rows), imagined, matched_pairs)

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """A function that matches again with permuted labels; there is no causal graph to leave an edge out of."""

        def again(
            rows: Longs,
            group: Ints,
            change: Edge | Saturated | None,  # noqa: ARG001
            sample: Longs | None = None,  # noqa: ARG001
        ) -> Counterfactuals:
            matches = self._matches(group, rows, self.groups[attribute].reference)
            counterfactuals = nearest.counterfactuals(matches, self.columns, None)
            imagined_columns = replace(self.columns, values=counterfactuals.values)
            return replace(
                counterfactuals, favourable=decide(imagined_columns, counterfactuals.row)[0] if decide else None
            )

        return again

    def edges(self, attribute: str) -> tuple[Edge, ...]:  # noqa: ARG002
        """None: no cause is assumed."""
        return ()

    def reached(self, *attributes: str) -> tuple[str, ...]:  # noqa: ARG002
        """None: no cause is assumed."""
        return ()

    def checks(self) -> tuple[Check, ...]:
        """None: there is nothing assumed that data could contradict."""
        return ()

    def graph_test(self, checks: tuple[Check, ...]) -> None:
        """None: there is no graph."""

    def _matches(self, group: Ints, rows: Longs, reference: int) -> Matches:
        """Rows ``(r,)`` matched with the members of the reference group, pool by pool."""
        n = len(rows)
        nothing = np.full(n, nearest.UNMATCHED), np.full(n, np.nan), np.full(n, nearest.EMPTY_CELL, dtype="<U32")
        matches = Matches(rows, *nothing)
        for number, (pool, at) in enumerate(zip(self.pools, self._standardised, strict=True)):
            index = nearest.index(at, self.label, group, pool & (group == reference), self.matching)
            pool_rows = np.flatnonzero(self.pool_of[rows] == number)
            of_pool = nearest.match_nearest(index, rows[pool_rows], reference)
            matches.match[pool_rows], matches.distance[pool_rows] = of_pool.match, of_pool.distance
            matches.reason[pool_rows] = of_pool.reason
        return matches

    @cached_property
    def _standardised(self) -> tuple[Floats, ...]:
        values, names = self.financial
        return tuple(nearest.standardise(values, names, pool, self.matching.winsorise) for pool in self.pools)


def _pools(decision_frame: pd.DataFrame, model: Model | None) -> tuple[Ints, tuple[Bools, ...]]:
    """Which pool each row is matched with, and the rows of each; one of everybody where nothing was fitted here."""
    if model is None or model.kind in ("none", "rule", "file", "object") or decision_frame["fold"].isna().all():
        return np.zeros(len(decision_frame), np.int32), (np.ones(len(decision_frame), dtype=bool),)
    explainer, pools = explainers(
        decision_frame["fold"].to_numpy(np.int32), decision_frame["explained"].to_numpy(dtype=bool)
    )
    return np.maximum(explainer, 0), pools


# --------------------------------------------------------------------------------------------------------------------
# The generator ``scm``: the causal graph of an audit, its protected attributes as roots, and counterfactual rows.
#
# Edges of the audit spec name a protected attribute or its column. A crossed attribute is a root of its own where an
# edge names it; otherwise a change of it sets the single attributes that it crosses.


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
    """What was fitted already: decision makers, and attributes with their own labels, ask for the same."""
    counterfactuals: dict[tuple[object, ...], Counterfactuals] = field(default_factory=dict, repr=False, compare=False)
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
        """Whether an edge leads out of the attribute, and its reference group has members."""
        return bool(self.roots(attribute)) and self.groups[attribute].compared

    def roots(self, attribute: str) -> tuple[str, ...]:
        """The nodes that are set for a counterfactual membership in another group; none if nothing is assumed."""
        nodes = {cause for cause, _ in self.graph.edges}
        if attribute in nodes:
            return (attribute,)
        return tuple(p.name for p in self._crossed(attribute) if p.name in nodes)

    def reached(self, *attributes: str) -> tuple[str, ...]:
        """The features that any of these protected attributes can reach, in the order of the columns."""
        directed, roots = self.graph.directed, [root for name in attributes for root in self.roots(name)]
        descendants = set().union(*(nx.descendants(directed, root) for root in roots))
        return tuple(name for name in self.columns.names if name in descendants)

    def edges(self, attribute: str) -> tuple[Edge, ...]:
        """The edges out of an attribute that somebody assumed: none of an order, which allows them all."""
        return () if self.graph.order else tuple(edge for edge in self.graph.edges if edge[0] in self.roots(attribute))

    def fit(self, attribute: str, group: Ints, change: Edge | Saturated | None = None) -> tuple[Fitted, Roots]:
        """Fit the mechanisms to all rows; with labels that are not the rows' own, to as many of them as will do."""
        roots = self._rooted(self._labels(attribute, group))
        fit_key = (change, hashlib.sha256(roots.codes.tobytes()).hexdigest())  # one for all attributes' own labels
        if fit_key not in self.fits:
            graph, rng = self.graph, np.random.default_rng(self.seed)
            if isinstance(change, tuple):
                graph = graph.without(change)
            elif change is not None:
                protected = {column for p in self.protected for column in p.columns}
                features = [name for name in self.columns.names if name not in protected]
                graph = _within_range(graph.saturated(features, roots.names), self.columns)
            columns, some, labels = self.columns, roots, self.groups[attribute].group
            if np.array_equal(group, labels):
                self.fits[fit_key] = causal_model.fit(graph, columns, some, rng)
            else:  # from where the fit to the rows' own labels ended
                if len(group) > PERMUTED_ROWS:
                    rows = np.sort(rng.choice(len(group), PERMUTED_ROWS, replace=False))
                    columns, some = columns.rows(rows), replace(roots, codes=roots.codes[rows])
                own_fit, _ = self.fit(attribute, labels, change)
                seeded = replace(own_fit, seed=int(rng.integers(2**31)))
                self.fits[fit_key] = causal_model.refit(seeded, columns, some)
        return self.fits[fit_key], roots

    def checks(self) -> tuple[Check, ...]:
        """What the data say of the causal graph and its mechanisms."""
        return check_model(self.graph, self.columns, self._rooted({}), np.random.default_rng(self.seed))

    def graph_test(self, checks: tuple[Check, ...]) -> GraphTest:
        """Whether the data contradict the graph as a whole."""
        p = np.array([check.p for check in checks if check.name == "independence"])
        rng = np.random.default_rng(self.seed)
        return compare_with_permuted(self.graph, self.columns, self._rooted({}), p, rng)

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """Rows of a group as members of the reference group."""
        attribute_groups = self.groups[attribute]
        fitted, roots = self.fit(attribute, attribute_groups.group)
        return Made(attribute, attribute_groups.groups[group], len(rows), self.imagined(attribute, fitted, roots, rows))

    def noise(self, attribute: str) -> dict[str, Floats]:
        """The noise behind every feature that an attribute reaches, ``(n, d)``; none if nothing is assumed of it.

        It is what imagining keeps of an applicant. NaN for whom it cannot be found of all of these features.
        """
        if not self.knows(attribute):
            return {}
        fitted, roots = self.fit(attribute, self.groups[attribute].group)
        imagined = self.imagined(attribute, fitted, roots, np.arange(len(self.columns.values)))
        noise_by_name = {
            name: np.full((len(self.columns.values), values.shape[1]), np.nan)
            for name, values in imagined.noise.items()
        }
        for name, values in imagined.noise.items():
            noise_by_name[name][imagined.row] = values
        return noise_by_name

    def imagined(self, attribute: str, fitted: Fitted, roots: Roots, rows: Longs) -> Imagined:
        """Rows as members of the reference group of an attribute, with the columns of the attribute itself changed."""
        attribute_groups = self.groups[attribute]
        labels = self._labels(attribute, np.array([attribute_groups.reference]))
        action = {name: int(codes[0]) for name, codes in labels.items() if name in roots.names}
        counterfactuals = causal_model.counterfactuals(fitted, self.columns, roots, rows, action)
        return replace(counterfactuals, values=self._relabelled(attribute, counterfactuals.values))

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """A function that makes counterfactuals again, for a method that varies the assumptions behind its results."""

        def again(
            rows: Longs, group: Ints, change: Edge | Saturated | None, sample: Longs | None = None
        ) -> Counterfactuals:
            if sample is not None:
                return self._refitted(attribute, rows, group, change, sample)
            fitted, roots = self.fit(attribute, group, change)
            imagined = self.imagined(attribute, fitted, roots, rows)
            imagined_columns = replace(self.columns, values=imagined.values)
            return Counterfactuals(
                imagined.row, imagined.values, decide(imagined_columns, imagined.row)[0] if decide else None
            )

        return again

    def _refitted(
        self, attribute: str, rows: Longs, group: Ints, change: Edge | Saturated | None, sample: Longs
    ) -> Counterfactuals:
        """Counterfactuals by a model fitted to a sample of rows, with the draws of the model of all rows."""
        digest = hashlib.sha256(group.tobytes() + sample.tobytes() + rows.tobytes()).hexdigest()
        cache_key = (attribute, change, len(sample), digest)
        if cache_key not in self.counterfactuals:
            full_fit, roots = self.fit(attribute, group, change)
            some = replace(roots, codes=roots.codes[sample])
            fitted = causal_model.refit(full_fit, self.columns.rows(sample), some)
            imagined = self.imagined(attribute, fitted, roots, rows)
            self.counterfactuals[cache_key] = Counterfactuals(imagined.row, imagined.values, None)
        return self.counterfactuals[cache_key]

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
        """Labels of an attribute, as labels of the roots that represent it."""
        roots, attribute_groups = self.roots(attribute), self.groups[attribute]
        if roots == (attribute,):
            return {attribute: group}
        _, first = np.unique(attribute_groups.group, return_index=True)
        return {name: self.groups[name].group[first][group] for name in roots}

    def _relabelled(self, attribute: str, values: Floats) -> Floats:
        """Features that the attribute is made of, set to what is commonest in the reference group."""
        attribute_groups, out = self.groups[attribute], values.copy()
        for name in next(p.columns for p in self.protected if p.name == attribute):
            if name in self.columns.names:
                place = self.columns.names.index(name)
                reference_values, counts = np.unique(
                    self.columns.values[attribute_groups.group == attribute_groups.reference, place], return_counts=True
                )
                out[:, place] = reference_values[counts.argmax()]
        return out


def _named(graph: CausalGraph, protected: Sequence[Protected]) -> CausalGraph:
    """The graph with columns of protected attributes replaced by the attributes."""
    attributes = {p.name for p in protected}
    single = {p.columns[0]: p.name for p in protected if len(p.columns) == 1}
    shared = Counter(p.columns[0] for p in protected if len(p.columns) == 1)
    of_several = {column for p in protected for column in p.columns} - set(single) - attributes
    if graph.order:
        named = {column: name for column, name in single.items() if column not in attributes}
        tiers = [[named.get(name, name) for name in tier] for tier in graph.order]
        mechanisms = {name: mechanism.model_dump() for name, mechanism in graph.mechanisms.items()}
        return CausalGraph.model_validate({"order": tiers, "mechanisms": mechanisms})
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


def _within_range(graph: CausalGraph, columns: Columns) -> CausalGraph:
    """The graph with numbers of undeclared mechanisms kept within the file: one outlier moves a mean far."""
    mechanisms = {name: mechanism.model_dump() for name, mechanism in graph.mechanisms.items()}
    for name, kind, values in zip(columns.names, columns.kinds, columns.values.T, strict=True):
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        if kind is Kind.CONTINUOUS and name not in mechanisms and graph.tier(name) and low < high:
            mechanisms[name] = {"bounds": (low, high)}
    return CausalGraph.model_validate({"order": graph.order, "mechanisms": mechanisms})


# --------------------------------------------------------------------------------------------------------------------
# Chooses the generator of an audit's counterfactuals by its settings.


def generator_of(
    applicants: tuple[pa.Table, pa.Table, pa.Table], decisions: pa.Table, assumptions: GeneratorAssumptions
) -> Generator | None:
    """The generator of the settings; None if they assume nothing, or it cannot generate further counterfactuals.

    Args:
        applicants: the tables ``applicants``, ``encodings`` and ``memberships``.
        decisions: on the same rows.
        assumptions: the generator, and what it needs.
    """
    handed_in, encodings, memberships = applicants
    if assumptions.generator == "nearest":
        return Lookalikes.of(applicants, decisions, assumptions)
    if assumptions.generator == "scm" and assumptions.causal_graph.edges:
        return World.of(columns_of(handed_in, encodings), memberships, handed_in["row_id"].to_numpy(), assumptions)
    return None
