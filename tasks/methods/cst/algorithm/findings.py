"""Findings of CST: the test and verdict of each complainant, and the rows that it was compared with.

Scope: rows of findings and evidence. Means over them: ``tallies``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.terms import Refusal
from tasks.methods.cst.algorithm.comparisons import Comparison
from tasks.methods.cst.algorithm.significance import Tests
from tasks.methods.cst.algorithm.situations import NOBODY, Members
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Evidence, Findings, Tested

CONTROL, TEST = "control", "test"
"""Roles in the evidence."""

PIECE = 2**20
"""Rows of evidence that are made at a time, about."""

DETECTED, NOT_DETECTED, NOT_TESTED = "detected", "not_detected", "not_tested"
"""Verdicts; a complainant who was refused was not tested."""


def findings(of_groups: Sequence[tuple[Comparison, Tests]], settings: CstSettings) -> Findings:
    """One entry per complainant of any group, by row: the test at ``settings.k``, or why there is none."""
    at = settings.ks.index(settings.k)
    row = np.concatenate([np.zeros(0, np.int64), *(compared.row for compared, _ in of_groups)])
    order = np.argsort(row)

    def of_all(values: Sequence[Floats]) -> Floats:
        return np.concatenate([np.zeros(0), *(each[at] for each in values)])[order]

    judged = [tests for _, tests in of_groups]
    delta = of_all([tests.delta for tests in judged])
    refusal = [_refusal(compared, tests.delta[at]) for compared, tests in of_groups]
    return Findings(
        row=row[order],
        subgroup=np.zeros(len(row), np.int32),
        verdict=np.where(np.isnan(delta), NOT_TESTED, np.where(delta > settings.tau, DETECTED, NOT_DETECTED)),
        statistic=delta,
        refusal=np.concatenate([np.zeros(0, dtype=str), *refusal])[order],
        tested=Tested(
            control=of_all([tests.pair.control_share for tests in judged]),
            test=of_all([tests.pair.test_share for tests in judged]),
            low=of_all([tests.low for tests in judged]),
            high=of_all([tests.high for tests in judged]),
            p=of_all([tests.p for tests in judged]),
            q=of_all([tests.q for tests in judged]),
        ),
    )


def _refusal(compared: Comparison, delta: Floats) -> NDArray[np.str_]:
    """Why each of ``(c,)`` complainants was not tested; empty for those who were."""
    imagined = np.zeros(len(delta), dtype=bool)
    imagined[compared.tested] = True
    reason = np.where(imagined, str(Refusal.TOO_FEW_NEIGHBOURS), str(Refusal.NO_COUNTERFACTUAL))
    return np.where(np.isnan(delta), reason, "")


class Groups(NamedTuple):
    """The control and test groups of ``c`` complainants of one group: what its evidence is made of."""

    row: Longs
    """``(c,)`` complainants, ascending."""
    control: Members
    """``(c, k + 1)``"""
    tested: Longs
    """``(t,)`` complainants who have a test group, ascending."""
    test: Members
    """``(t, k + 1)``"""

    @classmethod
    def of(cls, compared: Comparison) -> "Groups":
        """Those of a comparison."""
        tested = compared.row[compared.tested]
        return cls(compared.row, compared.control.members, tested, compared.test.members)

    def between(self, first: int, last: int) -> "Groups":
        """Those of the complainants from one row to another, which is among them."""
        ours, theirs = (slice(*np.searchsorted(of, (first, last + 1))) for of in (self.row, self.tested))
        return Groups(self.row[ours], self.control.of(ours), self.tested[theirs], self.test.of(theirs))


@dataclass(frozen=True)
class Surroundings:
    """The evidence: control and test group of every complainant of any group, made piece by piece.

    Neighbours are kept as 12 bytes; their rows of evidence, of which a year has tens of millions, are not.
    """

    groups: tuple[Groups, ...]

    def pieces(self) -> Iterator[Evidence]:
        """By row and role; complainants of all groups by turns, as their rows come."""
        row = np.sort(np.concatenate([np.zeros(0, np.int64), *(each.row for each in self.groups)]))
        width = max((each.control.rows.shape[1] for each in self.groups), default=1)
        size = max(1, PIECE // (2 * width))
        for start in range(0, max(len(row), 1), size):
            some = row[start : start + size]
            yield _evidence([each.between(some[0], some[-1]) for each in self.groups] if len(some) else [])


def _evidence(of_groups: Sequence[Groups]) -> Evidence:
    """Control and test group of every complainant at ``settings.k``, by row and role. Ranks count from 1."""
    nobody = Members(np.zeros((0, 1), np.int32), np.zeros((0, 1)))
    parts = [_listed(np.zeros(0, np.int64), CONTROL, nobody)]
    for each in of_groups:
        parts.append(_listed(each.row, CONTROL, each.control))
        parts.append(_listed(each.tested, TEST, each.test))
    row, role, rank, other, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((rank, role == TEST, row))
    return Evidence(row[order], role[order], rank[order], other[order], value[order])


def _listed(
    row: Longs, role: str, members: Members
) -> tuple[Longs, NDArray[np.str_], NDArray[np.int32], Longs, Floats]:
    """The members of each complainant's group, one after the other."""
    who, rank = np.nonzero(members.rows != NOBODY)
    other, value = members.rows[who, rank].astype(np.int64), members.distances[who, rank]
    return row[who], np.full(len(who), role), rank.astype(np.int32) + 1, other, value
