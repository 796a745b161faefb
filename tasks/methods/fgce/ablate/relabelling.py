"""Runs the relabelled draws of ``ablate``: the graph of all groups together, and the shares of sets of its rows.

All groups stand in one graph here, which the protected attribute does not divide: columns that it is made of are left
out, and so are other attributes that share some of them. All other rules and strata are those of the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.spec import Protected
from tasks.feasibility_graph.algorithm import graph
from tasks.feasibility_graph.rows import rules_of
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm.ablation import relabelled
from tasks.methods.fgce.algorithm.ablation.cheapest import Asked
from tasks.methods.fgce.algorithm.ablation.relabelled import Backwards
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.results import Aggregate


@dataclass(frozen=True)
class Grouped:
    """A protected attribute."""

    protected: Protected
    group: NDArray[np.int32]
    """``(n,)`` number of each row's group."""
    groups: tuple[str, ...]

    @property
    def reference(self) -> int:
        """Number of the reference group; -1 where nobody belongs to it."""
        return self.groups.index(self.protected.reference) if self.protected.reference in self.groups else -1


@dataclass(frozen=True)
class Shared:
    """What all draws have in common."""

    encoded: Floats
    """``(n, p)`` features in [0, 1]."""
    encodings: pa.Table
    epsilon: float
    """Radius of one step in encoded units, as the audit chose it."""
    settings: GraphSettings
    draws: int
    seed: int


def aggregates(
    shared: Shared, attributes: Sequence[Grouped], asked: Mapping[str, Asked], freed: pa.Table, at: int
) -> Iterator[tuple[str, list[Aggregate]]]:
    """By decision maker, what is measured of the groups of one attribute.

    Args:
        shared: Rows and rules.
        attributes: All protected attributes.
        asked: By decision maker, whose recourse is searched for.
        freed: The encodings without rules on the columns of the attribute.
        at: Which of the attributes it is.
    """
    one = attributes[at]
    joined = _joined(shared, _strata(attributes, at, len(shared.encoded)), freed, one.protected.columns)
    for number, name in enumerate(one.groups):
        if number == one.reference:
            continue
        rows = np.flatnonzero(np.isin(one.group, (number, one.reference)))
        rng = np.random.default_rng([shared.seed, crc32(f"relabel|{one.protected.name}|{name}".encode())])
        of_rows = {maker: each.of(rows) for maker, each in asked.items()}
        for maker, found in _of_group(joined.rows(rows), one.group[rows] == number, of_rows, shared.draws, rng):
            yield maker, [replace(each, group=number) for each in found]


@dataclass(frozen=True)
class _Joined:
    """Rows in a graph that the attribute does not divide."""

    encoded: Floats
    """``(n, p)`` features in [0, 1], without those that the attribute is made of."""
    strata: Ints
    """``(n, s)`` other attributes, which no step crosses."""
    graph: Backwards

    def rows(self, chosen: Longs) -> "_Joined":
        """The same of some rows, ``(r,)``."""
        return _Joined(self.encoded[chosen], self.strata[chosen], self.graph.rows(chosen))


def _strata(attributes: Sequence[Grouped], at: int, n: int) -> Ints:
    """``(n, s)`` groups of the attributes that share no column with this one."""
    own = set(attributes[at].protected.columns)
    kept = [each.group for each in attributes if not own & set(each.protected.columns)]
    return np.column_stack(kept).astype(np.int32) if kept else np.zeros((n, 0), np.int32)


def _joined(shared: Shared, strata: Ints, freed: pa.Table, own: Sequence[str]) -> _Joined:
    """The graph of all rows under the rules and strata that are left."""
    encoded = np.where(np.isin(freed["feature"].to_numpy(zero_copy_only=False), list(own)), 0.0, shared.encoded)
    rules, codes = rules_of(shared.encoded, freed)
    distinct = graph.collapse(encoded, codes, strata, rules)
    built = graph.build(distinct, rules, shared.epsilon, shared.settings).graph
    return _Joined(encoded, strata, Backwards.of(built, distinct.node))


def _of_group(
    joined: _Joined, member: Bools, asked: Mapping[str, Asked], draws: int, rng: np.random.Generator
) -> Iterator[tuple[str, list[Aggregate]]]:
    """The draws of one group, the same for every decision maker."""
    counts = {maker: int((each.factual & member).sum()) for maker, each in asked.items()}
    labels = None
    for maker, each in asked.items():
        n = counts[maker]
        if not n or member.all():
            yield maker, list(relabelled.refused(0, relabelled.NOBODY_ELSE if n else relabelled.NO_FACTUAL, n))
            continue
        if labels is None:
            labels = relabelled.labels(relabelled.design(joined.encoded, joined.strata), member, draws, rng)
        share = relabelled.shares(joined.graph, labels, each)
        yield maker, list(relabelled.aggregates(0, share, labels.alone, n))
