"""Which candidates a factual can reach: directed paths inside the graph that a group's nodes induce.

A candidate is feasible for a factual iff a directed path of the induced graph leads to it (FGCE, section III). A path
of length 0 counts: an identical application is the cheapest counterfactual. The weakly connected components are the
paper's subgroups. Reach is computed once per group: strongly connected components are condensed, and candidates, as
bits, are passed backwards along the edges, sinks first.

Scope: induced graphs, components and reach. Costs: ``tasks.methods.fgce.algorithm.costs``.
"""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph

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
    kept, lengths = np.empty(most + 1, dtype=np.int32), np.empty(most + 1)
    slot = 0
    for new in range(nodes.shape[0]):
        for edge in range(indptr[nodes[new]], indptr[nodes[new] + 1]):
            # written whether it is kept or not, and overwritten if not: a branch that no processor guesses is dearer
            kept[slot] = position[indices[edge]]
            lengths[slot] = distances[edge]
            slot += position[indices[edge]] >= 0
        starts[new + 1] = slot
    return starts, kept[:slot].copy(), lengths[:slot].copy()


def components(graph: FeasibilityGraph) -> tuple[Ints, Ints]:
    """Weakly and strongly connected components, ``(m,)`` labels each.

    The strong labels are in reverse topological order: every edge between two of them leads to the smaller label.

    Raises:
        RuntimeError: If scipy does not number strong components so (it follows Pearce's algorithm, which does).
    """
    size = graph.size
    links = csr_array((graph.distances, graph.indices, graph.indptr), shape=(size, size))  # only where edges are counts
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
        one = _root(parent, node)
        for edge in range(indptr[node], indptr[node + 1]):
            if parent[indices[edge]] == one:
                continue
            other = _root(parent, indices[edge])
            if one != other:
                parent[max(one, other)] = min(one, other)
                one = min(one, other)
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
    place, per_part = _places(np.where(candidate & searched, weak, -1), parts)
    words = -(-per_part // 64)
    # the bits of a strong component start at its offset; components without a pair to find take no room
    blocks = int(strong.max(initial=-1)) + 1
    width = np.zeros(blocks, np.int64)
    width[strong[searched]] = words[weak[searched]]
    offset = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    order = np.argsort(strong, kind="stable")
    bits = _propagate(graph.indptr, graph.indices, strong, order, offset, place)
    return Reach(weak, tuple(_components(weak, strong, active, factual, candidate, offset, bits)))


def _places(label: Ints, parts: int) -> tuple[Longs, Longs]:
    """Number of each candidate among those of its component (-1 for other nodes), and how many each component has."""
    per_part = np.bincount(label[label >= 0], minlength=parts).astype(np.int64)
    order = np.argsort(label, kind="stable")[int((label < 0).sum()) :]
    starts = np.cumsum(per_part) - per_part
    place = np.full(len(label), -1, dtype=np.int64)
    place[order] = np.arange(len(order)) - starts[label[order]]
    return place, per_part


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _propagate(indptr: Longs, indices: Ints, strong: Ints, order: Longs, offset: Longs, place: Longs) -> Words:
    """Bits of the candidates that each strong component reaches, by the components' ``offset`` into one flat array.

    Strong components are taken sinks first. The successors of one are taken nearest first (largest label), so that most
    of the others are found to be covered already: once a candidate of a successor is reached, so is all it reaches.
    """
    bits = np.zeros(offset[-1], dtype=np.uint64)
    witness = np.full(offset.shape[0] - 1, -1, dtype=np.int64)
    seen = np.full(offset.shape[0] - 1, -1, dtype=np.int64)
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
                if target != block and seen[target] != block:
                    seen[target] = block
                    if count == successors.shape[0]:
                        successors = np.concatenate((successors, np.empty(count, dtype=np.int64)))
                    successors[count] = target
                    count += 1
        for target in np.sort(successors[:count])[::-1]:
            known = witness[target]
            if known >= 0 and (bits[offset[block] + known // 64] >> np.uint64(known % 64)) & np.uint64(1):
                continue
            for word in range(offset[block + 1] - offset[block]):
                bits[offset[block] + word] |= bits[offset[target] + word]
        first = last
    return bits


def _components(
    weak: Ints, strong: Ints, active: Bools, factual: Bools, candidate: Bools, offset: Longs, bits: Words
) -> list[Component]:
    """Cut the flat bits into one matrix per active component."""
    found, labels = [], np.flatnonzero(active)
    members = zip(labels, _members(weak, factual, labels), _members(weak, candidate, labels), strict=True)
    for label, factuals, candidates in members:
        words = np.arange(-(-len(candidates) // 64))
        matrix = bits[offset[strong[factuals]][:, None] + words]
        found.append(Component(int(label), factuals, candidates, matrix))
    return found


def _members(label: Ints, wanted: Bools, parts: Longs) -> list[Longs]:
    """Wanted nodes of each of the components ``parts``, ascending."""
    nodes = np.flatnonzero(wanted)
    nodes = nodes[np.argsort(label[nodes], kind="stable")]
    first, last = (np.searchsorted(label[nodes], parts, side) for side in ("left", "right"))
    return [nodes[start:stop] for start, stop in zip(first, last, strict=True)]
