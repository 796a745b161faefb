"""The feasibility graph: radius search under constraints, and which rows each row reaches."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from schemas.errors import DataQualityError
from tasks.feasibility_graph.settings import GraphSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph

# --------------------------------------------------------------------------------------------------------------------
# Radius search under constraints: pairs of distinct rows within epsilon that a permitted move joins.
#
# Fused loops compiled by numba: one pair of rows at a time, abandoned as soon as a constraint breaks or the squared
# distance is too large. No array is n x n (FGCE, section III). Trees and dense distances were slower on every data set
# tried, because equality constraints already cut the rows into small buckets.
#
# Scope: the kernels. The choice of epsilon: ``graph``.


class Space(NamedTuple):
    """Distinct rows, ordered by bucket, in the form the kernels read. A tuple, because numba takes tuples."""

    encoded: Floats
    """``(m, q)`` encoded values of the columns that are not immutable (the others are equal within a bucket)."""
    direction: Floats
    """``(q,)`` 1.0 only up, -1.0 only down, 0.0 free."""
    codes: Ints
    """``(m, t)`` category codes of the columns with a transition rule."""
    allowed: Bools
    """``(t, c, c)`` whether a move from one code to another is allowed."""
    start: Longs
    """``(m,)`` first row of the row's bucket."""
    stop: Longs
    """``(m,)`` one past the last row of the row's bucket."""


def early_exit(reach: float) -> float:
    """Squared distance beyond which a pair may be left unfinished.

    A little above ``reach`` squared, so that rounding never drops a pair which the comparison of the finished distance
    with ``reach`` would keep.
    """
    return max(reach, 0.0) ** 2 * (1 + 1e-9)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _move(space: Space, i: int, j: int, limit: float) -> float:
    """Squared distance of the move from row ``i`` to row ``j``; ``inf`` if it breaks a rule or passes ``limit``."""
    total = 0.0
    for column in range(space.encoded.shape[1]):
        delta = space.encoded[j, column] - space.encoded[i, column]
        if space.direction[column] * delta < 0.0:
            return np.inf
        total += delta * delta
        if total > limit:
            return np.inf
    for rule in range(space.codes.shape[1]):
        if not space.allowed[rule, space.codes[i, rule], space.codes[j, rule]]:
            return np.inf
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def nearest_move(space: Space) -> Floats:
    """Distance of every row to the nearest row joined to it by a feasible move, whichever way it goes.

    Returns:
        ``(m,)`` L2 distances; ``inf`` where no row of the bucket is joined at any distance.
    """
    size = space.encoded.shape[0]
    best = np.full(size, np.inf)
    for i in range(size):
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            squared = _move(space, i, j, max(best[i], best[j]))
            if squared < best[i]:
                best[i] = squared
            if squared < best[j]:
                best[j] = squared
    nearest: Floats = np.sqrt(best)
    return nearest


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def nearest_of(space: Space, factuals: Longs, candidates: Longs) -> Floats:
    """Distance of each factual node to the nearest candidate node of its bucket that one permitted move leads to."""
    best = np.full(factuals.shape[0], np.inf)
    for i in range(factuals.shape[0]):
        first = np.searchsorted(candidates, space.start[factuals[i]])
        last = np.searchsorted(candidates, space.stop[factuals[i]])
        for j in range(first, last):
            best[i] = min(best[i], _move(space, factuals[i], candidates[j], best[i]))
    nearest: Floats = np.sqrt(best)
    return nearest


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def out_degrees(space: Space, rows: Longs, reach: float, limit: float) -> Longs:
    """Number of feasible moves out of each of ``rows`` that are no longer than ``reach``."""
    degrees = np.zeros(rows.shape[0], dtype=np.int64)
    for position in range(rows.shape[0]):
        i = rows[position]
        for j in range(space.start[i], space.stop[i]):
            if j != i and np.sqrt(_move(space, i, j, limit)) <= reach:
                degrees[position] += 1
    return degrees


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def fill(space: Space, indptr: Longs, reach: float, limit: float) -> tuple[Ints, Floats]:
    """Destinations (ascending within a row) and distances of all feasible moves, where ``indptr`` left room for them.

    Returns:
        ``(edges,)`` destinations and ``(edges,)`` L2 distances.
    """
    indices = np.empty(indptr[-1], dtype=np.int32)
    distances = np.empty(indptr[-1])
    edge = 0
    for i in range(space.encoded.shape[0]):
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            distance = np.sqrt(_move(space, i, j, limit))
            if distance <= reach:
                indices[edge] = j
                distances[edge] = distance
                edge += 1
    return indices, distances


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _insert(keys: Floats, paired: Floats, count: int, key: float, other: float) -> None:
    """Put a pair into two arrays sorted by ``keys`` (``count`` entries in use), after equal keys; the last may fall."""
    slot = min(count, keys.shape[0] - 1)
    while slot > 0 and keys[slot - 1] > key:
        keys[slot] = keys[slot - 1]
        paired[slot] = paired[slot - 1]
        slot -= 1
    keys[slot] = key
    paired[slot] = other


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def fill_nearest(space: Space, keep: int, reach: float, limit: float) -> tuple[Longs, Ints, Floats]:
    """As ``fill``, but only the ``keep`` nearest feasible moves out of each row; ties go to the smaller row.

    Returns:
        ``(m,)`` moves kept per row; ``(m, keep)`` destinations, ascending; ``(m, keep)`` L2 distances.
    """
    size = space.encoded.shape[0]
    degrees = np.zeros(size, dtype=np.int64)
    indices = np.empty((size, keep), dtype=np.int32)
    distances = np.empty((size, keep))
    near, neighbours = np.empty(keep), np.empty(keep)
    by_row, how_far = np.empty(keep), np.empty(keep)
    for i in range(size):
        count, within = 0, limit
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            squared = _move(space, i, j, within)
            if np.sqrt(squared) <= reach and (count < keep or squared < near[keep - 1]):
                _insert(near, neighbours, count, squared, float(j))
                count = min(count + 1, keep)
                if count == keep:
                    within = near[keep - 1]
        for slot in range(count):
            _insert(by_row, how_far, slot, neighbours[slot], np.sqrt(near[slot]))
        degrees[i] = count
        for slot in range(count):
            indices[i, slot] = int(by_row[slot])
            distances[i, slot] = how_far[slot]
    return degrees, indices, distances


# --------------------------------------------------------------------------------------------------------------------
# The feasibility graph: which applicants are one feasible step apart, and how long a step may be.
#
# Equal rows form one node. Columns that must stay equal split the nodes into independent buckets. Within a bucket, an
# edge joins two nodes at a distance of at most epsilon if no constraint is broken (FGCE, section III). Epsilon follows
# our rule: the paper's smallest value without an isolated row need not exist under constraints (docs/methods/fgce.md).
#
# Scope: rules, collapse, epsilon and graph. Loops over pairs: ``radius``.


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
    nearest = nearest_move(space_of(distinct, rules))
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
    limit = early_exit(reach)
    space = _window(space, distinct.bucket, reach)
    size = len(space.start)
    sampled = np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64)) if size else np.zeros(0, np.int64)
    degrees = out_degrees(space, sampled, reach, limit)
    expected = round(int(degrees.sum()) * len(space.start) / max(len(sampled), 1))
    if expected > settings.max_edges:
        return _report(_nearest_only(space, settings.nearest, reach, limit), True, expected)
    if len(sampled) < len(space.start):
        degrees = out_degrees(space, np.arange(len(space.start)), reach, limit)
    indptr = _indptr(degrees)
    if indptr[-1] > settings.max_edges:
        return _report(_nearest_only(space, settings.nearest, reach, limit), True, int(indptr[-1]))
    graph = FeasibilityGraph(indptr, *fill(space, indptr, reach, limit))
    return _report(graph, False, expected)


def space_of(distinct: Distinct, rules: Rules) -> Space:
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
    return Space(
        encoded=np.ascontiguousarray(distinct.encoded[:, mutable]),
        direction=rules.direction[mutable].astype(np.float64),
        codes=codes,
        allowed=allowed,
        start=np.searchsorted(distinct.bucket, distinct.bucket, side="left").astype(np.int64),
        stop=np.searchsorted(distinct.bucket, distinct.bucket, side="right").astype(np.int64),
    )


def _window(space: Space, bucket: Ints, reach: float) -> Space:
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


def _nearest_only(space: Space, keep: int, reach: float, limit: float) -> FeasibilityGraph:
    """The graph with only the ``keep`` nearest feasible out-edges of each node."""
    degrees, indices, distances = fill_nearest(space, keep, reach, limit)
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


# --------------------------------------------------------------------------------------------------------------------
# Which candidates a factual can reach: directed paths inside the graph that a group's nodes induce.
#
# A candidate is feasible for a factual iff a directed path of the induced graph leads to it (FGCE, section III). A path
# of length 0 counts: an identical application is the cheapest counterfactual. The weakly connected components are the
# paper's subgroups. Reach is computed once per group: strongly connected components are condensed, and candidates, as
# bits, are passed backwards along the edges, sinks first.
#
# Scope: induced graphs, components and reach. Costs: ``tasks.methods.fgce.algorithm.costs``.


Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Component:
    """A weakly connected component with a factual and a candidate in it. Node ids are those of the induced graph."""

    label: int
    """As in ``Reach.component``."""
    factuals: Longs
    """``(f,)`` ascending."""
    candidates: Longs
    """``(c,)`` ascending."""
    bits: Words
    """``(f, ceil(c / 64))``: bit ``j % 64`` of word ``j // 64`` is set iff candidate ``j`` is feasible."""

    def reach(self, rows: slice = slice(None)) -> Bools:
        """The bits of some factuals as a matrix, ``(f, c)``: 8 times the size."""
        bits = np.unpackbits(np.ascontiguousarray(self.bits[rows]).view(np.uint8), axis=1, bitorder="little")
        return bits[:, : len(self.candidates)].astype(np.bool_)


@dataclass(frozen=True)
class Reach:
    """The components of an induced graph and what can be reached in the active ones."""

    component: Ints
    """``(m,)`` weakly connected component of each node."""
    active: tuple[Component, ...]
    """The components that hold both a factual and a candidate, by label."""


def induced(graph: FeasibilityGraph, nodes: Longs) -> FeasibilityGraph:
    """The subgraph of ``nodes`` (ascending, without repeats) and the edges between them, renumbered in their order."""
    position = np.full(graph.size, -1, dtype=np.int32)
    position[nodes] = np.arange(len(nodes), dtype=np.int32)
    return FeasibilityGraph(*_induced(graph.indptr, graph.indices, graph.distances, nodes, position))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _induced(
    indptr: Longs, indices: Ints, distances: Floats, nodes: Longs, position: Ints
) -> tuple[Longs, Ints, Floats]:
    """CSR arrays of the subgraph; ``position`` is the new number of each node, -1 where it is left out."""
    most = 0
    for node in nodes:
        most += indptr[node + 1] - indptr[node]
    starts = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
    targets, lengths = np.empty(most + 1, dtype=np.int32), np.empty(most + 1)
    slot = 0
    for new in range(nodes.shape[0]):
        for edge in range(indptr[nodes[new]], indptr[nodes[new] + 1]):
            # written whether it is kept or not, and overwritten if not: a branch that no processor guesses is dearer
            targets[slot] = position[indices[edge]]
            lengths[slot] = distances[edge]
            slot += position[indices[edge]] >= 0
        starts[new + 1] = slot
    return starts, targets[:slot].copy(), lengths[:slot].copy()


def components(graph: FeasibilityGraph) -> tuple[Ints, Ints]:
    """Weakly and strongly connected components, ``(m,)`` labels each.

    The strong labels are in reverse topological order: every edge between two of them leads to the smaller label.

    Raises:
        RuntimeError: If scipy does not number strong components so (it follows Pearce's algorithm, which does).
    """
    size = graph.size
    # only where edges are counts; starts as wide as indices, or scipy widens all edges, and narrows them again
    starts = graph.indptr.astype(np.int32) if len(graph.indices) < np.iinfo(np.int32).max else graph.indptr
    links = csr_array((graph.distances, graph.indices, starts), shape=(size, size))
    weak = _weak(graph.indptr, graph.indices)
    strong = connected_components(links, directed=True, connection="strong")[1].astype(np.int32)
    if (np.repeat(strong, np.diff(graph.indptr)) < strong[graph.indices]).any():
        raise RuntimeError("scipy's strong components are not numbered sinks first; sort them before propagating")
    return weak, strong


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _weak(indptr: Longs, indices: Ints) -> Ints:
    """Weakly connected components ``(m,)``, numbered by their smallest node: union and find, where scipy transposes."""
    size = indptr.shape[0] - 1
    parent = np.arange(size)
    for node in range(size):
        root = _root(parent, node)
        for edge in range(indptr[node], indptr[node + 1]):
            if parent[indices[edge]] == root:
                continue
            other = _root(parent, indices[edge])
            if root != other:
                parent[max(root, other)] = min(root, other)
                root = min(root, other)
    label = np.empty(size, dtype=np.int32)
    parts = 0
    for node in range(size):
        if parent[node] == node:
            label[node] = parts
            parts += 1
        else:
            label[node] = label[_root(parent, node)]
    return label


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _root(parent: Longs, node: int) -> int:
    """The smallest node known to be connected with ``node``; the way to it is halved."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def reachable(graph: FeasibilityGraph, factual: Bools, candidate: Bools) -> Reach:
    """Feasible candidates of every factual node of an induced graph.

    Args:
        graph: The graph that the group's nodes induce.
        factual: ``(m,)`` nodes with at least one row to explain.
        candidate: ``(m,)`` nodes with at least one candidate row.
    """
    weak, strong = components(graph)
    parts = int(weak.max(initial=-1)) + 1
    active = (np.bincount(weak[factual], minlength=parts) > 0) & (np.bincount(weak[candidate], minlength=parts) > 0)
    searched = active[weak]
    label = np.where(candidate & searched, weak, -1)
    per_part = np.bincount(label[label >= 0], minlength=parts).astype(np.int64)
    ranked = np.argsort(label, kind="stable")[int((label < 0).sum()) :]
    starts = np.cumsum(per_part) - per_part
    place = np.full(len(label), -1, dtype=np.int64)
    place[ranked] = np.arange(len(ranked)) - starts[label[ranked]]
    words = -(-per_part // 64)
    # the bits of a strong component start at its offset; components without a pair to find take no room
    blocks = int(strong.max(initial=-1)) + 1
    width = np.zeros(blocks, np.int64)
    width[strong[searched]] = words[weak[searched]]
    offset = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    order = np.argsort(strong, kind="stable")
    bits = _propagate(graph.indptr, graph.indices, strong, order, offset, place)
    # cut the flat bits into one matrix per active component
    active_components, labels = [], np.flatnonzero(active)
    members = zip(labels, _members(weak, factual, labels), _members(weak, candidate, labels), strict=True)
    for part, factuals, candidates in members:
        columns = np.arange(-(-len(candidates) // 64))
        matrix = bits[offset[strong[factuals]][:, None] + columns]
        active_components.append(Component(int(part), factuals, candidates, matrix))
    return Reach(weak, tuple(active_components))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _propagate(indptr: Longs, indices: Ints, strong: Ints, order: Longs, offset: Longs, place: Longs) -> Words:
    """Bits of the candidates that each strong component reaches, by the components' ``offset`` into one flat array.

    Strong components are taken sinks first. The successors of one are taken nearest first (largest label), so that most
    of the others are found to be covered already: once a candidate of a successor is reached, so is all it reaches.
    """
    bits = np.zeros(offset[-1], dtype=np.uint64)
    witness = np.full(offset.shape[0] - 1, -1, dtype=np.int64)
    last_block = np.full(offset.shape[0] - 1, -1, dtype=np.int64)
    first = 0
    while first < order.shape[0]:
        block = strong[order[first]]
        last = first
        count = 0
        successors = np.empty(16, dtype=np.int64)
        while last < order.shape[0] and strong[order[last]] == block:
            node = order[last]
            last += 1
            if offset[block + 1] == offset[block]:
                continue
            if place[node] >= 0:
                witness[block] = place[node]
                bits[offset[block] + place[node] // 64] |= np.uint64(1) << np.uint64(place[node] % 64)
            for edge in range(indptr[node], indptr[node + 1]):
                target = strong[indices[edge]]
                if target != block and last_block[target] != block:
                    last_block[target] = block
                    if count == successors.shape[0]:
                        successors = np.concatenate((successors, np.empty(count, dtype=np.int64)))
                    successors[count] = target
                    count += 1
        for target in np.sort(successors[:count])[::-1]:
            node_place = witness[target]
            if node_place >= 0 and (bits[offset[block] + node_place // 64] >> np.uint64(node_place % 64)) & np.uint64(
                1
            ):
                continue
            for word in range(offset[block + 1] - offset[block]):
                bits[offset[block] + word] |= bits[offset[target] + word]
        first = last
    return bits


def _members(label: Ints, is_member: Bools, parts: Longs) -> list[Longs]:
    """Wanted nodes of each of the components ``parts``, ascending."""
    nodes = np.flatnonzero(is_member)
    nodes = nodes[np.argsort(label[nodes], kind="stable")]
    first, last = (np.searchsorted(label[nodes], parts, side) for side in ("left", "right"))
    return [nodes[start:stop] for start, stop in zip(first, last, strict=True)]
