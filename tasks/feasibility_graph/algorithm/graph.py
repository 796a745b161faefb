"""The feasibility graph: which applicants are one feasible step apart, and how long a step may be.

Equal rows form one node. Columns that must stay equal split the nodes into independent buckets. Within a bucket, an
edge joins two nodes at a distance of at most epsilon if no constraint is broken (FGCE, section III). Epsilon follows
our rule: the paper's smallest value without an isolated row need not exist under constraints (docs/methods/fgce.md).

Scope: rules, collapse, epsilon and graph. Loops over pairs: ``radius``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataQualityError
from tasks.feasibility_graph.algorithm import radius
from tasks.feasibility_graph.settings import GraphSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph

FREE, UP, DOWN, IMMUTABLE = 0, 1, -1, 2

SAMPLE = 2_000
"""Rows whose edges are counted to estimate the size of the graph before it is built."""


@dataclass(frozen=True)
class Rules:
    """How an applicant may change on the way to a favourable decision."""

    direction: NDArray[np.int8]
    """``(p,)`` per encoded column: ``FREE``, ``UP`` (delta >= 0), ``DOWN`` (delta <= 0), ``IMMUTABLE`` (delta = 0)."""
    transitions: tuple[tuple[int, Bools], ...] = ()
    """For a categorical column: its column in ``codes``, and the ``(c, c)`` allowed moves from code to code."""


@dataclass(frozen=True)
class Distinct:
    """The distinct rows, ordered by bucket: a bucket is a contiguous slice. Node ids depend on values, not on order."""

    encoded: Floats
    """``(m, p)`` features in [0, 1]."""
    codes: Ints
    """``(m, t)`` category codes of the columns with a transition rule."""
    bucket: Ints
    """``(m,)`` ascending; nodes of two buckets are never joined."""
    node: Ints
    """``(n,)`` node of each row."""
    multiplicity: Longs
    """``(m,)`` rows at each node."""


@dataclass(frozen=True)
class Epsilon:
    """The radius of one feasible step."""

    value: float
    """In encoded units (L2)."""
    rule: str
    """``quantile``, ``no_singleton`` or ``given``."""
    without_neighbour: int
    """Distinct rows that no feasible move joins to any other, at whatever distance."""


@dataclass(frozen=True)
class Built:
    """A feasibility graph, with facts about its construction."""

    graph: FeasibilityGraph
    edges: int
    isolated: int
    """Nodes with no edge in or out."""
    capped: bool
    """Whether only the nearest out-edges of each node were kept."""
    expected_edges: int
    """Edges expected without the cap: the estimate from a sample, or the count where it was made."""


def collapse(encoded: Floats, codes: Ints, strata: Ints, rules: Rules) -> Distinct:
    """Make one node of equal rows, and one bucket of the nodes that share strata and immutable values.

    Args:
        encoded: ``(n, p)`` features in [0, 1].
        codes: ``(n, t)`` category codes of the columns with a transition rule.
        strata: ``(n, s)`` integers that must be equal on both ends of an edge.
        rules: The constraints; ``IMMUTABLE`` columns are strata too.

    Raises:
        ValueError: If lengths differ.
        DataQualityError: If an encoded value is not finite.
    """
    if not (len(encoded) == len(codes) == len(strata)) or encoded.shape[1] != len(rules.direction):
        raise ValueError(f"rows differ: encoded {encoded.shape}, codes {codes.shape}, strata {strata.shape}, rules")
    if not np.isfinite(encoded).all():
        raise DataQualityError("encoded holds a value that is not finite; refuse such rows before the graph is built")
    fixed = rules.direction == IMMUTABLE
    bucket = _rank(np.zeros(len(encoded), np.int64), [*strata.T, *encoded[:, fixed].T])
    key = _rank(bucket, [*encoded[:, ~fixed].T, *codes.T])
    _, first, node, multiplicity = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return Distinct(
        encoded=np.ascontiguousarray(encoded[first], dtype=np.float64),
        codes=np.ascontiguousarray(codes[first], dtype=np.int32),
        bucket=bucket[first].astype(np.int32),
        node=node.astype(np.int32),
        multiplicity=multiplicity.astype(np.int64),
    )


def _rank(rank: Longs, columns: Iterable[NDArray[np.generic]]) -> Longs:
    """Rank of the rows under ``rank`` and then ``columns``, in lexical order; equal rows share a rank."""
    keys = (rank, *columns)
    order = np.lexsort(keys[::-1])
    differs = np.zeros(len(order), dtype=np.bool_)
    for key in keys:
        differs[1:] |= key[order[1:]] != key[order[:-1]]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks


def choose_epsilon(distinct: Distinct, rules: Rules, settings: GraphSettings) -> Epsilon:
    """Radius of one step: as given, or from the distances of the nodes to their nearest feasible neighbour.

    Nodes without a feasible neighbour at any distance are left out of the rule and counted. If there are only such
    nodes the rules give 0.0. Under ``strict`` a rule's value is the next larger number, so that the node which sets it
    keeps its edge.
    """
    nearest = radius.nearest_move(space_of(distinct, rules))
    joined = nearest[np.isfinite(nearest)]
    alone = len(nearest) - len(joined)
    if isinstance(settings.epsilon, float):
        return Epsilon(settings.epsilon, "given", alone)
    if not len(joined):
        return Epsilon(0.0, settings.epsilon, alone)
    share = settings.epsilon_quantile if settings.epsilon == "quantile" else 1.0
    value = float(np.quantile(joined, share))
    return Epsilon(float(np.nextafter(value, np.inf)) if settings.strict else value, settings.epsilon, alone)


def build(distinct: Distinct, rules: Rules, epsilon: float, settings: GraphSettings) -> Built:
    """Join the nodes of each bucket that lie within ``epsilon`` and break no rule.

    Args:
        distinct: The nodes.
        rules: The constraints.
        epsilon: Radius of one step in encoded units; ``settings.strict`` says whether it is itself within reach.
        settings: ``max_edges`` bounds the graph; beyond it each node keeps its ``nearest`` feasible out-edges.

    Raises:
        DataQualityError: If a transition rule does not know a code.
    """
    space = space_of(distinct, rules)
    # d < epsilon is d <= the number just below epsilon: one comparison serves both conventions
    reach = float(np.nextafter(epsilon, -np.inf)) if settings.strict else float(epsilon)
    limit = radius.early_exit(reach)
    space = _window(space, distinct.bucket, reach)
    sampled = _sample(len(space.start))
    degrees = radius.out_degrees(space, sampled, reach, limit)
    expected = round(int(degrees.sum()) * len(space.start) / max(len(sampled), 1))
    if expected > settings.max_edges:
        return _report(_nearest_only(space, settings.nearest, reach, limit), True, expected)
    if len(sampled) < len(space.start):
        degrees = radius.out_degrees(space, np.arange(len(space.start)), reach, limit)
    indptr = _indptr(degrees)
    if indptr[-1] > settings.max_edges:
        return _report(_nearest_only(space, settings.nearest, reach, limit), True, int(indptr[-1]))
    graph = FeasibilityGraph(indptr, *radius.fill(space, indptr, reach, limit))
    return _report(graph, False, expected)


def space_of(distinct: Distinct, rules: Rules) -> radius.Space:
    """Lay the nodes and the rules out for the kernels."""
    mutable = rules.direction != IMMUTABLE
    columns = [column for column, _ in rules.transitions]
    codes = np.ascontiguousarray(distinct.codes[:, columns], dtype=np.int32)
    width = max((len(matrix) for _, matrix in rules.transitions), default=0)
    allowed = np.zeros((len(columns), width, width), dtype=np.bool_)
    for rule, (column, matrix) in enumerate(rules.transitions):
        if len(codes) and not (codes[:, rule].min() >= 0 and codes[:, rule].max() < len(matrix)):
            raise DataQualityError(f"codes column {column}: expected 0..{len(matrix) - 1}, as in its transition rule")
        allowed[rule, : len(matrix), : len(matrix)] = matrix
    return radius.Space(
        encoded=np.ascontiguousarray(distinct.encoded[:, mutable]),
        direction=rules.direction[mutable].astype(np.float64),
        codes=codes,
        allowed=allowed,
        start=np.searchsorted(distinct.bucket, distinct.bucket, side="left").astype(np.int64),
        stop=np.searchsorted(distinct.bucket, distinct.bucket, side="right").astype(np.int64),
    )


def _window(space: radius.Space, bucket: Ints, reach: float) -> radius.Space:
    """Narrow each node's slice of its bucket to the nodes within reach by the first mutable column alone.

    Nodes are sorted by that column within their bucket (``collapse``), so that these are a slice again.
    """
    if not space.encoded.shape[1]:
        return space
    values, code = np.unique(space.encoded[:, 0], return_inverse=True)
    far = reach * (1 + 1e-9)  # the kernels compare the distance itself
    low = values if space.direction[0] > 0 else values - far
    high = values if space.direction[0] < 0 else values + far
    first, key = bucket.astype(np.int64) * len(values), bucket.astype(np.int64) * len(values) + code
    return space._replace(
        start=np.searchsorted(key, first + np.searchsorted(values, low)[code]),
        stop=np.searchsorted(key, first + np.searchsorted(values, high, side="right")[code]),
    )


def _sample(size: int) -> Longs:
    """Rows at equal steps (buckets in proportion to size), all of them if there are few."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64)) if size else np.zeros(0, np.int64)


def _nearest_only(space: radius.Space, keep: int, reach: float, limit: float) -> FeasibilityGraph:
    """The graph with only the ``keep`` nearest feasible out-edges of each node."""
    degrees, indices, distances = radius.fill_nearest(space, keep, reach, limit)
    used = np.arange(keep) < degrees[:, None]
    return FeasibilityGraph(_indptr(degrees), indices[used], distances[used])


def _indptr(degrees: Longs) -> Longs:
    """Start of each node's out-edges, ``(m + 1,)``."""
    return np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)


def _report(graph: FeasibilityGraph, capped: bool, expected: int) -> Built:
    """The graph with its facts."""
    touched = np.diff(graph.indptr) > 0
    touched[graph.indices] = True
    return Built(graph, len(graph.indices), int((~touched).sum()), capped, expected)
