"""Infeasible share of a group against sets of its own size whose labels were drawn within propensity strata.

The share depends on the number of rows and on their finances, so that it has no value to cover. The null is instead:
given the propensity of being in the group, labels do not matter. A draw relabels as many applicants of the group and
the reference group as the group has, stratum by stratum, and counts who has no feasible candidate in the graph that
these rows induce. The mean over draws, not 0, is what the group's own share is held against.

Scope: labels, shares of all draws at once, and the test. The graph of both groups: ``tasks.methods.fgce.ablate``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
from scipy.sparse import csr_array

from tasks.feasibility_graph.algorithm.reachability import Words
from tasks.methods.fgce.algorithm.ablation.cheapest import Asked
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph
from tasks.numerics.results import Aggregate, Inference
from tasks.numerics.statistics import propensity

DIFFERENCE, MEAN = "infeasible_share_relabelled", "infeasible_share_under_relabelling"

NO_FACTUAL = "no factual: nobody has anything to be explained"
NOBODY_ELSE = "the reference group has no rows, from whom labels could be exchanged"

WORD = 64
"""Draws that one word holds."""


@dataclass(frozen=True)
class Labels:
    """Who counts as a member: the group as it is, and as it was relabelled."""

    member: Bools
    """``(draws + 1, n)``; the group itself first."""
    alone: int
    """Members of the group in strata without anybody of the reference group: every draw keeps them."""


def design(encoded: Floats, strata: Ints) -> Floats:
    """``(n, d)`` rows for the propensity: 1, encoded columns, squares of those that are no indicators, and strata.

    Args:
        encoded: ``(n, p)`` features in [0, 1], without those that the group is made of.
        strata: ``(n, s)`` integers that no step crosses.
    """
    numbers = [column for column in encoded.T if len(np.unique(column)) > 1]
    squares = [column**2 for column in numbers if len(np.unique(column)) > 2]
    kinds = [each == code for each in strata.T for code in np.unique(each)[1:]]
    columns = [np.asarray(column, np.float64) for column in (*numbers, *squares, *kinds)]
    scaled = [(column - column.mean()) / column.std() for column in columns]
    return np.column_stack([np.ones(len(encoded)), *scaled])


def labels(rows: Floats, member: Bools, draws: int, rng: np.random.Generator) -> Labels:
    """Labels permuted within 30 strata of the propensity of the group.

    Args:
        rows: ``(n, d)`` as ``design`` makes them.
        member: ``(n,)`` who is of the group; all others are of the reference group.
        draws: Times that labels are permuted.
        rng: Permutes them.
    """
    stratum = propensity.strata(propensity.propensity(rows, member))
    found, alone = np.tile(member, (draws + 1, 1)), 0
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        found[1:, inside] = rng.permuted(found[1:, inside], axis=1)
        alone += len(inside) if member[inside].all() else 0
    return Labels(found, alone)


@dataclass(frozen=True)
class Backwards:
    """A graph by its edges into each node."""

    starts: Longs
    """``(m + 1,)`` start of each node's in-edges."""
    sources: Longs
    """Where these come from."""
    node: Ints
    """``(n,)`` node of each row."""

    @classmethod
    def of(cls, graph: FeasibilityGraph, node: Ints) -> "Backwards":
        """The graph of some rows, turned round."""
        edges = np.ones(len(graph.indices), np.int8), graph.indices, graph.indptr
        into = csr_array(edges, shape=(graph.size, graph.size)).tocsc()
        return cls(into.indptr.astype(np.int64), into.indices.astype(np.int64), node)

    def rows(self, chosen: Longs) -> "Backwards":
        """The same for some of the rows only, ``(r,)``; nodes stay where they are."""
        return Backwards(self.starts, self.sources, self.node[chosen])


def shares(graph: Backwards, found: Labels, asked: Asked) -> Floats:
    """Infeasible share of each set of members in the graph that its rows induce, ``(draws + 1,)``; NaN without factual.

    Args:
        graph: Its edges may join the groups.
        found: The sets.
        asked: Rows to explain, and candidates.
    """
    firsts = range(0, len(found.member), WORD)
    return np.concatenate([_shares(graph, found.member[first : first + WORD], asked) for first in firsts])


def _shares(graph: Backwards, member: Bools, asked: Asked) -> Floats:
    """The same of at most ``WORD`` sets, each of them one bit."""
    bits, node = _packed(member), graph.node
    inside, reached = (np.zeros(len(graph.starts) - 1, np.uint64) for _ in range(2))
    np.bitwise_or.at(inside, node, bits)
    np.bitwise_or.at(reached, node[asked.candidate], bits[asked.candidate])
    _spread(graph.starts, graph.sources, inside, reached)
    refused = bits[asked.factual] & ~reached[node[asked.factual]]
    count, every = (_counted(each, len(member)) for each in (refused, bits[asked.factual]))
    found: Floats = np.divide(count, every, out=np.full(len(member), np.nan), where=every > 0)
    return found


def _packed(member: Bools) -> Words:
    """``(n,)`` bit ``k`` says whether a row is in set ``k``."""
    found = np.zeros(member.shape[1], np.uint64)
    for bit, each in enumerate(member):
        found |= each.astype(np.uint64) << np.uint64(bit)
    return found


def _counted(bits: Words, sets: int) -> Floats:
    """Rows whose bit is set, by set."""
    return np.array([float(((bits >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(sets)])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _spread(starts: Longs, sources: Longs, inside: Words, reached: Words) -> None:
    """Pass what is reached backwards along the edges, within the sets that a node is in, until nothing changes.

    Args:
        starts: ``(m + 1,)`` start of each node's in-edges.
        sources: Where these come from.
        inside: ``(m,)`` the sets that a node is in.
        reached: ``(m,)`` the sets in which it reaches a candidate; written to.
    """
    size = inside.shape[0]
    queue, waits = np.empty(size, np.int64), np.zeros(size, np.bool_)
    first, count = 0, 0
    for node in range(size):
        if reached[node]:
            queue[count] = node
            waits[node] = True
            count += 1
    while count:
        node = queue[first]
        first = (first + 1) % size
        count -= 1
        waits[node] = False
        for edge in range(starts[node], starts[node + 1]):
            source = sources[edge]
            more = reached[source] | (reached[node] & inside[source])
            if more != reached[source]:
                reached[source] = more
                if not waits[source]:
                    queue[(first + count) % size] = source
                    waits[source] = True
                    count += 1


def aggregates(group: int, share: Floats, alone: int, n: int) -> Iterator[Aggregate]:
    """How far the group's share lies above the mean of its draws, with the p of that, and the mean.

    Args:
        group: Its number.
        share: ``(draws + 1,)`` infeasible shares, its own first.
        alone: Members whom every draw keeps (``Labels.alone``).
        n: Its factual rows.
    """
    drawn = share[1:][np.isfinite(share[1:])]
    note = f"{alone:,} applicants of the group are like nobody of the reference group, and are in every draw"
    mean = float(drawn.mean()) if len(drawn) else float("nan")
    reason = (note if alone else "") if len(drawn) else "no draw has a factual"
    p = propensity.p_of(float(share[0]), drawn) if len(drawn) else float("nan")
    value = float(share[0]) - mean
    yield Aggregate(group, 0, DIFFERENCE, {}, value, n, compared=False, reason=reason, inference=Inference(p=p))
    yield Aggregate(group, 0, MEAN, {}, mean, n, compared=False, reason=reason)


def refused(group: int, reason: str, n: int = 0) -> Iterator[Aggregate]:
    """The same of a group that nothing can be drawn for."""
    for measure in (DIFFERENCE, MEAN):
        yield Aggregate(group, 0, measure, {}, float("nan"), n, compared=False, reason=reason)
