"""The fitted causal model: its nodes, abduction and counterfactual values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from schemas.audit.causal import CausalGraph, Form, Mechanism
from schemas.errors import DataQualityError, Location, SpecError, nearest
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.mechanisms import ALLOWED, AUTO, FittedMechanism, fit_mechanism, refit_mechanism
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns

# --------------------------------------------------------------------------------------------------------------------
# The nodes of a causal model: the graph of the audit spec, matched with the columns and groups of the data.
#
# A state is a matrix ``(n, p + r)``: the features as in ``Columns.values``, then the group numbers of the protected
# attributes. Every cause and effect is a column of it. Scope: what is known before a fit, i.e. columns in reach of the
# protected attributes, their causes, forms of mechanisms, and usable rows.


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
    """The state ``(n, p + r)`` of the factual world, with factual values rounded if the spec requires it."""
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
    names = [*columns.names, *roots.names]
    for i, edge in enumerate(graph.edges):
        place: Location = ("causal_graph", "edges", i)
        for name in edge:
            if name not in names:
                raise SpecError(f"{name!r} is no column of the causal model; {nearest(name, names)}", place)
        if edge[1] in roots.names:
            raise SpecError(
                f"{edge[0]} -> {edge[1]}: {edge[1]!r} is a protected attribute and nothing may cause it here; "
                "turn the edge round or remove it",
                place,
            )
    directed, causes = graph.directed, all_causes(columns, roots)
    reached = set().union(*(nx.descendants(directed, name) for name in roots.names if name in directed))
    return tuple(_node(name, graph, columns, causes) for name in nx.topological_sort(directed) if name in reached)


def _node(name: str, graph: CausalGraph, columns: Columns, causes_by_name: Mapping[str, Cause]) -> Node:
    place, setting = causes_by_name[name].place, graph.mechanisms.get(name, Mechanism())
    causes = tuple(causes_by_name[parent] for parent in graph.parents(name))
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


def unusable(nodes: tuple[Node, ...], state: Floats) -> NDArray[np.str_]:
    """``(n,)`` why a row cannot be used for fitting or counterfactuals; empty where it can."""
    reasons = np.full(len(state), "", dtype="U32")
    used = sorted({place for node in nodes for place in (node.place, *node.places)})
    reasons[~np.isfinite(state[:, used]).all(axis=1)] = Unimaginable.MISSING_VALUE
    for node in nodes:
        if node.form == "count":
            values = state[:, node.place]
            wrong = np.isfinite(values) & ((values < 0) | (values != np.round(values)))
            reasons[wrong & (reasons == "")] = Unimaginable.NOT_A_COUNT
    return reasons


# --------------------------------------------------------------------------------------------------------------------
# Structural causal model: counterfactual applicants by abduction, action and prediction.
#
# The three steps (Pearl 2009, section 7.1; CST, section 4.1) are separate. Abduction finds the noise of every column
# that the protected attributes can reach. Action sets protected attributes. Prediction recomputes these columns, causes
# first, from the new causes and the old noise.
#
# Mechanisms are fitted to all usable rows of all groups. A row with a missing value in the model is refused, never
# imputed. A column outside the graph, or out of reach of the action, keeps its factual value.


Noise = Mapping[str, Floats]
"""Column -> its noise, ``(r, d)``; ``d`` is 1, but for nominal columns one per category."""


@dataclass(frozen=True)
class Fitted:
    """A causal model with its parameters."""

    graph: CausalGraph
    roots: Mapping[str, Cause]
    """Protected attribute -> its column of the state and its groups."""
    nodes: tuple[Node, ...]
    mechanisms: Mapping[str, FittedMechanism]
    fitted_categories: Mapping[int, Bools]
    """Column of the state -> which of its categories, or groups, the fit has met."""
    rows: int
    """Rows that it was fitted to."""
    seed: int
    """Of the noise of categories and counts: a row's draw does not depend on the other rows that are imagined."""


@dataclass(frozen=True)
class Imagined:
    """Counterfactual rows, with the noise that was held fixed."""

    row: Longs
    """``(c,)`` ascending."""
    values: Floats
    """``(c, p)`` laid out as ``Columns.values``."""
    noise: Noise
    clipped: Mapping[str, int]
    """Column -> values that its bounds cut off."""
    refused: Longs
    """Rows that could not be imagined, ascending."""
    reason: NDArray[np.str_]
    """Why, in the words of ``Unimaginable``."""


def fit(graph: CausalGraph, columns: Columns, roots: Roots, rng: np.random.Generator) -> Fitted:
    """Fit a mechanism to every column that a protected attribute can reach.

    Args:
        graph: Edges among features and protected attributes, and what is declared of the mechanisms.
        columns: ``n`` applicants.
        roots: The protected attributes of the same rows.
        rng: Seeds what is drawn.

    Raises:
        SpecError: The graph does not fit the columns (``nodes.nodes_of``).
        DataQualityError: No row can be used.
    """
    nodes, state = nodes_of(graph, columns, roots), state_of(columns, roots, graph)
    usable = unusable(nodes, state) == ""
    if not usable.any():
        raise DataQualityError("no row has a value in every column of the causal model; give it fewer columns")
    seed, complete_rows = int(rng.integers(2**31)), state[usable]
    mechanisms = {node.name: fit_node(node, complete_rows, seed) for node in nodes}
    return Fitted(
        graph,
        root_causes(columns, roots),
        nodes,
        mechanisms,
        _seen(columns, roots, complete_rows),
        len(complete_rows),
        seed,
    )


def refit(full_model: Fitted, columns: Columns, roots: Roots) -> Fitted:
    """The same model fitted to other rows, such as a resample, from where the fit to the whole ended.

    Args:
        full_model: The model of all rows; its noise is drawn by the same seed.
        columns: ``n`` applicants.
        roots: The protected attributes of the same rows.

    Raises:
        DataQualityError: No row can be used.
    """
    state = state_of(columns, roots, full_model.graph)
    complete_rows = state[unusable(full_model.nodes, state) == ""]
    if not len(complete_rows):
        raise DataQualityError("no row of a resample has a value in every column of the causal model")
    mechanisms = {
        node.name: refit_mechanism(
            full_model.mechanisms[node.name],
            node.form,
            node.setting,
            node.encode(complete_rows),
            complete_rows[:, node.place],
            node.categories,
            full_model.seed,
        )
        for node in full_model.nodes
    }
    return replace(
        full_model,
        mechanisms=mechanisms,
        fitted_categories=_seen(columns, roots, complete_rows),
        rows=len(complete_rows),
    )


def _seen(columns: Columns, roots: Roots, complete_rows: Floats) -> dict[int, Bools]:
    """Which categories and groups the rows of a state hold, by column of the state."""
    labels = [*(len(names) for names in columns.categories), *(len(names) for names in roots.groups)]
    return {place: np.isin(np.arange(size), complete_rows[:, place]) for place, size in enumerate(labels) if size}


def fit_node(node: Node, state: Floats, seed: int) -> FittedMechanism:
    """Fit one mechanism to the rows of a state that can be used."""
    causes, values = node.encode(state), state[:, node.place]
    return fit_mechanism(node.form, node.setting, causes, values, node.categories, seed)


def counterfactuals(fitted: Fitted, columns: Columns, roots: Roots, rows: Longs, action: Mapping[str, int]) -> Imagined:
    """Counterfactuals of ``rows`` under an action: abduction, action, prediction.

    Args:
        fitted: The model; of the same columns, though perhaps of other rows.
        columns: ``n`` applicants.
        roots: The protected attributes of the same rows.
        rows: ``(r,)`` rows to imagine, ascending.
        action: Protected attribute -> number of the group that it is set to. Several are set at once.

    Raises:
        SpecError: The action names no protected attribute, or a group that no row of the fit belongs to.
    """
    reached = affected(fitted, action)
    factual = state_of(columns.rows(rows), replace(roots, codes=roots.codes[rows]), fitted.graph)
    reasons = unusable(reached.nodes, factual)
    is_unseen = np.zeros(len(factual), dtype=np.bool_)
    for place in {place for node in reached.nodes for place in (node.place, *node.places)} & set(
        reached.fitted_categories
    ):
        codes = np.nan_to_num(factual[:, place]).astype(np.int64)
        is_unseen |= ~reached.fitted_categories[place][codes]
    reasons[(reasons == "") & is_unseen] = Unimaginable.UNSEEN_CATEGORY
    trusted = np.flatnonzero(reasons == "")
    noise = abduct(reached, factual[trusted], rows[trusted])
    finite = np.all(
        [np.isfinite(node_noise).all(axis=1) for node_noise in noise.values()] or [np.ones(len(trusted), bool)], axis=0
    )
    reasons[trusted[~finite]] = Unimaginable.IMPROBABLE_VALUE
    noise, reachable = {name: node_noise[finite] for name, node_noise in noise.items()}, trusted[finite]
    imagined, clipped = predict(reached, factual[reachable], act(fitted, factual[reachable], action), noise)
    refused = reasons != ""
    return Imagined(rows[reachable], imagined[:, : len(columns.names)], noise, clipped, rows[refused], reasons[refused])


def affected(fitted: Fitted, action: Mapping[str, int]) -> Fitted:
    """The model with only the columns that the action can reach."""
    for name, group in action.items():
        if name not in fitted.roots:
            raise SpecError(f"{name!r} is no protected attribute; {nearest(name, list(fitted.roots))}")
        place, labels = fitted.roots[name].place, fitted.roots[name].labels
        if not 0 <= group < len(labels) or not fitted.fitted_categories[place][group]:
            label = labels[group] if 0 <= group < len(labels) else group
            raise SpecError(f"no applicant in the data is {label!r} by {name}; an action needs a group that has rows")
    directed = fitted.graph.directed
    reached = set().union(*(nx.descendants(directed, name) for name in action if name in directed))
    return replace(fitted, nodes=tuple(node for node in fitted.nodes if node.name in reached))


def abduct(fitted: Fitted, factual: Floats, rows: Longs) -> Noise:
    """The noise behind every column of the model.

    Args:
        fitted: The model.
        factual: ``(r, p + r)`` state of the rows.
        rows: ``(r,)`` their numbers, which seed the noise of categories and counts.
    """
    noise = {}
    for node in fitted.nodes:
        mechanism = fitted.mechanisms[node.name]
        uniforms = _uniforms(fitted.seed, node.place, rows, mechanism.draws)
        noise[node.name] = mechanism.abduct(node.encode(factual), factual[:, node.place], uniforms)
    return noise


def act(fitted: Fitted, state: Floats, action: Mapping[str, int]) -> Floats:
    """A copy of the state in which protected attributes are set and nothing else is changed yet."""
    acted = state.copy()
    for name, group in action.items():
        acted[:, fitted.roots[name].place] = group
    return acted


def predict(fitted: Fitted, factual: Floats, acted: Floats, noise: Noise) -> tuple[Floats, dict[str, int]]:
    """Make every column of the model again, causes first, from the causes as they now are and the noise.

    A value none of whose causes has changed is the factual one to the last digit. Rounding and bounds are applied to
    all values, the clip last, before a value becomes a cause of others.

    Returns:
        ``(r, p + r)`` state; and how many values of each column were clipped.
    """
    state, clipped = acted.copy(), {}
    for node in fitted.nodes:
        values = factual[:, node.place].copy()
        changed = (state[:, node.places] != factual[:, node.places]).any(axis=1)
        if node.setting.noise_decimals is not None:
            # rounded noise no longer makes the factual value: in the authors' data it is made anew for everybody
            changed[:] = True
        if changed.any():
            causes, node_noise = node.encode(state[changed]), noise[node.name][changed]
            values[changed] = fitted.mechanisms[node.name].predict(causes, node_noise)
        rounded = values if node.setting.decimals is None else np.round(values, node.setting.decimals)
        low, high = node.setting.bounds
        inside = np.clip(rounded, -np.inf if low is None else low, np.inf if high is None else high)
        state[:, node.place], clipped[node.name] = inside, int((inside != rounded).sum())
    return state, clipped


def terms(fitted: Fitted) -> dict[str, dict[str, float]]:
    """Intercept and coefficients of the mechanisms that are linear in their causes, by column and term."""
    terms_by_node = {}
    for node in fitted.nodes:
        regressor: Any = getattr(fitted.mechanisms[node.name], "regressor", None)
        if hasattr(regressor, "coef_"):
            names = ["intercept", *(term for cause in node.causes for term in cause.terms)]
            terms_by_node[node.name] = dict(
                zip(names, [float(regressor.intercept_), *map(float, regressor.coef_)], strict=True)
            )
    return terms_by_node


def _uniforms(seed: int, place: int, rows: Longs, draws: int) -> Floats:
    """Uniform numbers ``(r, draws)`` that depend on the row and the column, but not on the other rows."""
    if not draws or not len(rows):
        return np.zeros((len(rows), draws))
    return np.random.default_rng([seed, place]).random((int(rows.max()) + 1, draws))[rows]
