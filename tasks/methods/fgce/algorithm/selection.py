"""Few counterfactuals for many factuals: Algorithm 1 of FGCE, maximum coverage under a limit on cost.

At most k candidates are chosen. Each newly covers most factual rows at a cost of at most d; ties go to the smaller
total cost over all factuals it covers within d, covered before or not, then to the smaller node. The choices for k are
the first k of those for k + 1, so one run per d serves every k.

Scope: the greedy choice. Candidates: ``pairs``. Exact optima: ``covering``.
"""

from dataclasses import dataclass

import numba
import numpy as np

from tasks.methods.fgce.algorithm.pairs import Bytes, Offers
from tasks.numerics.arrays import Floats, Ints, Longs

Turns = Ints


@dataclass(frozen=True)
class Selection:
    """The greedy choice at every level."""

    picks: Longs
    """``(L, k)`` nodes in the order of choice; -1 once nothing more can be covered."""
    turn: Turns
    """``(L, f)`` the turn, from 0, in which each factual of the offers was covered, or -1."""

    def covered(self, weight: Longs) -> Longs:
        """``(L, k)`` factual rows covered by the first 1, 2, ... k candidates; ``weight`` ``(f,)`` rows at each."""
        turns = np.arange(self.picks.shape[1])
        return np.stack([(weight * (turn >= 0)) @ (turn[:, None] <= turns) for turn in self.turn])


def greedy(offers: Offers, k: int) -> Selection:
    """Choose up to ``k`` candidates at every level, pooled over the components (FGCE, Algorithm 1).

    Total costs are compared to 9 decimals, so that the order of summation breaks no tie.
    """
    total = np.round(offers.total, 9)
    picks, turn = _greedy(offers.level, offers.cuts, offers.weight, offers.candidate, offers.gain, total, k, 0)
    return Selection(np.append(offers.candidate, -1)[picks], turn)


def cover(offers: Offers) -> Longs:
    """Nodes chosen greedily, without limit on cost, until every factual of the offers that can be covered is."""
    total, most = np.round(offers.total, 9), len(offers.factual)
    last = offers.gain.shape[1] - 1
    picks, _ = _greedy(offers.level, offers.cuts, offers.weight, offers.candidate, offers.gain, total, most, last)
    nodes: Longs = offers.candidate[picks[-1][picks[-1] >= 0]]
    return nodes


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _greedy(
    level: Bytes, cuts: Longs, weight: Longs, node: Longs, gain: Longs, total: Floats, k: int, first: int
) -> tuple[Longs, Turns]:
    """Places of the chosen candidates (-1: none), ``(L, k)``, and the turn that covered each factual, ``(L, f)``.

    Levels before ``first`` are left out.
    """
    levels = gain.shape[1]
    picks = np.full((levels, k), -1, dtype=np.int64)
    turns = np.full((levels, weight.shape[0]), -1, dtype=np.int32)
    for limit in range(first, levels):
        if limit > first and (gain[:, limit] == gain[:, limit - 1]).all():
            picks[limit] = picks[limit - 1]  # no pair costs what lies between the two limits
            turns[limit] = turns[limit - 1]
            continue
        left = gain[:, limit].copy()
        for turn in range(k):
            best = _best(left, total[:, limit], node)
            if best < 0:
                break
            picks[limit, turn] = best
            _cover(level, cuts, weight, left, turns[limit], best, limit, turn)
    return picks, turns


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _best(left: Longs, total: Floats, node: Longs) -> int:
    """Place of the candidate that covers most rows still open, ties as in Algorithm 1; -1 if none covers any."""
    best = -1
    for j in range(left.shape[0]):
        if left[j] == 0 or (best >= 0 and left[j] < left[best]):
            continue
        if (
            best < 0
            or left[j] > left[best]
            or total[j] < total[best]
            or (total[j] == total[best] and node[j] < node[best])
        ):
            best = j
    return best


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cover(
    level: Bytes, cuts: Longs, weight: Longs, left: Longs, turns: Turns, pick: int, limit: int, turn: int
) -> None:
    """Close the factuals that ``pick`` covers within the level, and take their rows from every other candidate."""
    part = np.searchsorted(cuts[:, 1], pick, side="right") - 1
    first, start, width = cuts[part, 0], cuts[part, 1], cuts[part + 1, 1] - cuts[part, 1]
    for i in range(first, cuts[part + 1, 0]):
        pairs = cuts[part, 2] + (i - first) * width
        if turns[i] >= 0 or level[pairs + pick - start] > limit:
            continue
        turns[i] = turn
        for j in range(width):
            if level[pairs + j] <= limit:
                left[start + j] -= weight[i]
