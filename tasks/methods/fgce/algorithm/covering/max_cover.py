"""The most rows that k counterfactuals cover within a cost: the exact optimum of FGCE's Algorithm 1.

Each part has a frontier: lower and upper bounds on the rows that 0, 1, 2, ... of its candidates cover. The greedy
choice gives the lower bound. The upper one is submodularity: j more candidates add no more than the j largest gains. A
dynamic programme allots k to the parts, once by the lower and once by the upper bounds. While the two disagree, an
integer programme settles one number of one part that the upper one uses.

Scope: coverage at one limit on cost. The method's own greedy choice: ``tasks.methods.fgce.algorithm.selection``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pulp

from tasks.methods.fgce.algorithm.covering.dominance import undominated
from tasks.methods.fgce.algorithm.covering.problem import Optimum, Part, Pick, between, refusal
from tasks.methods.fgce.algorithm.covering.solver import Solver, solve
from tasks.numerics.arrays import Bools, Longs


@dataclass(frozen=True)
class Greedy:
    """The greedy choice until nothing more can be covered."""

    picks: tuple[int, ...]
    covered: Longs
    """``(picks + 1,)`` rows covered by the first 0, 1, ... of them."""
    upper: Longs
    """``(picks + 1,)`` rows that no as many candidates exceed."""


def greedy(cover: Bools, weight: Longs) -> Greedy:
    """Choose columns of ``(f, c)``, each time the one that newly covers most; ties go to the smaller column."""
    table, left = cover.astype(np.int64), weight
    picks: list[int] = []
    covered, upper = [0], np.full(cover.shape[1] + 1, weight.sum())
    while left.any():
        gain = left @ table
        more = np.cumsum(np.sort(gain)[::-1])
        upper[1:] = np.minimum(upper[1:], covered[-1] + more)
        best = int(gain.argmax())
        picks.append(best)
        covered.append(covered[-1] + int(gain[best]))
        left = np.where(cover[:, best], 0, left)
    upper[0] = 0
    return Greedy(tuple(picks), np.array(covered), upper[: len(picks) + 1])


@dataclass
class Frontier:
    """Bounds on what k candidates of one part cover, tightened on demand; beyond the last k all is covered."""

    cover: Bools
    """``(f', c')``, without equal rows, empty rows and dominated columns."""
    weight: Longs
    """``(f',)`` factual rows."""
    columns: Longs
    """``(c',)`` places of the columns in the part."""
    picks: list[tuple[int, ...]]
    """A selection of k that attains ``lower[k]``, as columns of ``cover``."""
    lower: Longs
    upper: Longs
    stopped: dict[int, str] = field(default_factory=dict)
    """The k at which a solver was stopped, and the note it left."""

    def settle(self, k: int, solver: Solver) -> None:
        """Ask the solver for the optimum at ``k``, and carry over what it says of fewer and of more candidates."""
        problem, names = _programme(self.cover, self.weight, k)
        found = solve(problem, solver)
        chosen = tuple(j for j, name in enumerate(names) if found.values.get(name, 0) > 0.5)
        covered = int(self.weight[self.cover[:, chosen].any(axis=1)].sum())
        for more in range(k, len(self.lower)):
            if len(chosen) <= k and covered > self.lower[more]:
                self.lower[more], self.picks[more] = covered, chosen
        if np.isfinite(found.bound):
            # the programme minimises the rows left open
            most = int(np.floor(self.weight.sum() - found.bound + 1e-6))
            self.upper[: k + 1] = np.minimum(self.upper[: k + 1], most)
        if self.lower[k] < self.upper[k]:
            self.stopped[k] = found.note or "the solver gave no proof"


def frontier(part: Part, limit: float) -> Frontier:
    """What the candidates of a part cover at a cost of at most ``limit``, as far as bounds can say."""
    cover = part.within(limit)
    served = cover.any(axis=1)
    cover, weight = cover[served], part.weight[served]
    columns = undominated(cover.T)
    cover, same = np.unique(cover[:, columns], axis=0, return_inverse=True)
    weight = np.bincount(same.reshape(-1), weight, minlength=len(cover)).astype(np.int64)
    start = greedy(cover, weight)
    prefixes = [start.picks[:k] for k in range(len(start.picks) + 1)]
    return Frontier(cover, weight, columns, prefixes, start.covered, start.upper)


def _programme(cover: Bools, weight: Longs, k: int) -> tuple[pulp.LpProblem, list[str]]:
    """Fewest rows left open by at most ``k`` columns, and the names of the columns' variables."""
    problem = pulp.LpProblem("max_cover", pulp.LpMinimize)
    names = [f"u{column}" for column in range(cover.shape[1])]
    use = [problem.add_variable(name, cat="Binary") for name in names]
    left = [problem.add_variable(f"o{row}", 0, 1) for row in range(len(cover))]
    problem += pulp.lpSum(int(rows) * open_ for rows, open_ in zip(weight, left, strict=True))
    problem += pulp.lpSum(use) <= k
    for open_, row in zip(left, cover, strict=True):
        problem += open_ + pulp.lpSum(use[column] for column in np.flatnonzero(row)) >= 1
    return problem, names


@dataclass(frozen=True)
class Coverage:
    """What is known of the most rows that k candidates of several parts cover."""

    low: int
    high: int
    picks: tuple[Pick, ...]
    """A selection that covers ``low`` rows."""
    note: str
    """Why no more is known; empty where enough was known."""


def coverage(fronts: Sequence[Frontier], k: int, solver: Solver, enough: Callable[[int, int], bool]) -> Coverage:
    """Tighten the frontiers until the bounds on the joint coverage are ``enough``, or nothing more can be settled."""
    while True:
        low, dealt = deal([front.lower for front in fronts], k)
        high, hoped = deal([front.upper for front in fronts], k)
        picks = tuple(
            (number, int(front.columns[column]))
            for number, (front, own) in enumerate(zip(fronts, dealt, strict=True))
            for column in front.picks[own]
        )
        if low == high or enough(low, high):
            return Coverage(low, high, picks, "")
        doubt = [
            (front.upper[own] - front.lower[own], i) for i, (front, own) in enumerate(zip(fronts, hoped, strict=True))
        ]
        open_ = [(gap, i) for gap, i in doubt if gap and hoped[i] not in fronts[i].stopped]
        if not open_:
            notes = [front.stopped[own] for front, own in zip(fronts, hoped, strict=True) if own in front.stopped]
            return Coverage(low, high, picks, notes[0])
        widest = max(open_)[1]
        fronts[widest].settle(hoped[widest], solver)


def deal(values: Sequence[Longs], k: int) -> tuple[int, list[int]]:
    """Deal at most ``k`` candidates out to parts so that the sum of their values is largest.

    Args:
        values: For each part the value of 0, 1, 2, ... candidates, none smaller than the one before.
        k: Candidates to deal out; a part is given 0 of them where others have more use for them.

    Returns:
        The largest sum, and how many each part is given.
    """
    best, chosen = np.zeros(k + 1, dtype=np.int64), []
    for value in values:
        # sums[j, t]: this part is given j of t candidates
        sums = np.full((min(k + 1, len(value)), k + 1), -1)
        for j in range(len(sums)):
            sums[j, j:] = value[j] + best[: k + 1 - j]
        chosen.append(sums.argmax(axis=0))
        best = sums.max(axis=0)
    given, left = [], k
    for choice in reversed(chosen):
        given.append(int(choice[left]))
        left -= given[-1]
    return int(best[k]), given[::-1]


def max_cover(parts: Sequence[Part], k: int, limit: float, solver: Solver) -> Optimum:
    """Most coverable rows that at most ``k`` candidates cover at a cost of at most ``limit`` (FGCE, Algorithm 1).

    Returns:
        Rows; a refusal if no row is coverable.

    Raises:
        InfrastructureError: If the solver is not installed.
    """
    if not any(part.rows for part in parts):
        return refusal("no row has a feasible counterfactual")
    fronts = [frontier(part, limit) for part in parts]
    found = coverage(fronts, k, solver, lambda low, high: low == high)
    return between(found.low, found.high, found.picks, found.note)
