"""Runs the relabelled draws of ``ablate``: the graph of each group together with the reference group, and its shares.

Both groups stand in one graph here, which the protected attribute does not divide: columns that it is made of are left
out, and so are other attributes that share some of them. All other rules and strata are those of the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    strata = _strata(attributes, at, len(shared.encoded))
    own = np.isin(freed["feature"].to_numpy(zero_copy_only=False), list(one.protected.columns))
    encoded = np.where(own, 0.0, shared.encoded)
    found: dict[str, list[Aggregate]] = {maker: [] for maker in asked}
    for number, name in enumerate(one.groups):
        if number == one.reference:
            continue
        rows = np.flatnonzero(np.isin(one.group, (number, one.reference)))
        rng = np.random.default_rng([shared.seed, crc32(f"relabel|{one.protected.name}|{name}".encode())])
        member = one.group[rows] == number
        for maker, each in _of_group(shared, encoded, strata, freed, rows, member, asked, number, rng):
            found[maker] += each
    yield from found.items()


def _strata(attributes: Sequence[Grouped], at: int, n: int) -> Ints:
    """``(n, s)`` groups of the attributes that share no column with this one."""
    own = set(attributes[at].protected.columns)
    kept = [each.group for each in attributes if not own & set(each.protected.columns)]
    return np.column_stack(kept).astype(np.int32) if kept else np.zeros((n, 0), np.int32)


def _of_group(
    shared: Shared,
    encoded: Floats,
    strata: Ints,
    freed: pa.Table,
    rows: Longs,
    member: Bools,
    asked: Mapping[str, Asked],
    number: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, list[Aggregate]]]:
    """The draws of one group, for every decision maker; the graph is built once."""
    counts = {maker: int((each.factual[rows] & member).sum()) for maker, each in asked.items()}
    if member.all() or not any(counts.values()):
        for maker, n in counts.items():
            yield maker, list(relabelled.refused(number, relabelled.NOBODY_ELSE if n else relabelled.NO_FACTUAL, n))
        return
    rules, codes = rules_of(encoded[rows], freed)
    distinct = graph.collapse(encoded[rows], codes, strata[rows], rules)
    built = graph.build(distinct, rules, shared.epsilon, shared.settings).graph
    labels = relabelled.labels(relabelled.design(encoded[rows], strata[rows]), member, shared.draws, rng)
    for maker, each in asked.items():
        if counts[maker]:
            share = relabelled.shares(built, distinct.node, labels, each.of(rows))
            yield maker, list(relabelled.aggregates(number, share, labels.alone, counts[maker]))
        else:
            yield maker, list(relabelled.refused(number, relabelled.NO_FACTUAL))
