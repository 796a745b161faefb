"""Subsamples of the reference group at another group's size: drawn rows, and the nodes that remain.

A small group has fewer candidates and a thinner graph under any rules (specs of FGCE, 'Epsilon and size'). So each
measurement is repeated on subgraphs that subsamples of the reference group induce.

Scope: rows and nodes. Measurements: ``rules`` and ``connectivity``.
"""

from dataclasses import dataclass

import numpy as np

from tasks.feasibility_graph.algorithm.graph import Distinct
from tasks.numerics.arrays import Ints, Longs


@dataclass(frozen=True)
class Matched:
    """The reference group, subsampled to the size of a group."""

    group: int
    """The group whose size it is."""
    rows: tuple[Longs, ...]
    """For each draw ``(size,)`` rows of the reference group, ascending."""


def matched(group: Ints, groups: int, reference: int, draws: int, rng: np.random.Generator) -> list[Matched]:
    """Subsamples of the reference group, drawn without replacement, for every group that has rows and is smaller.

    Args:
        group: ``(n,)`` group of each row.
        groups: Number of groups.
        reference: The reference group.
        draws: Subsamples for each group; 0 for none.
        rng: One child generator is spawned per group, so that a group's draws do not depend on the other groups.
    """
    whole, sizes = np.flatnonzero(group == reference), np.bincount(group, minlength=groups)
    return [
        Matched(number, tuple(np.sort(child.choice(whole, size, replace=False)) for _ in range(draws)))
        for number, (size, child) in enumerate(zip(sizes, rng.spawn(groups), strict=True))
        if draws and 0 < size < len(whole)
    ]


def thinned(distinct: Distinct, rows: Longs) -> tuple[Distinct, Longs]:
    """The nodes that ``rows`` ``(r,)`` stand at, for these rows alone, and their numbers ``(m,)`` among all nodes.

    They keep their order, so that buckets stay slices and the subgraph induced by the numbers is theirs.
    """
    nodes, node, multiplicity = np.unique(distinct.node[rows], return_inverse=True, return_counts=True)
    left = Distinct(
        encoded=distinct.encoded[nodes],
        codes=distinct.codes[nodes],
        bucket=distinct.bucket[nodes],
        node=node.astype(np.int32),
        multiplicity=multiplicity.astype(np.int64),
    )
    return left, nodes.astype(np.int64)
