"""The least cost at which k counterfactuals cover a share of the factuals: FGCE's coverage-constrained problem.

The objective is the largest cost that any covered factual pays (section IV; the paper's recursion over components
prints a sum). It is one of the costs in the table and found by bisection: at each cost, do k candidates cover enough?
For all rows that is a set cover per part, for fewer a maximum cover over all parts. The paper's single programme,
``tasks.methods.fgce.reproduction.printed_mip``, agrees.

Scope: the bisection. A search that ends without an optimum says so, and never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.methods.fgce.algorithm.covering.dominance import cheapest_candidates
from tasks.methods.fgce.algorithm.covering.max_cover import Frontier, coverage, frontier
from tasks.methods.fgce.algorithm.covering.problem import Optimum, Part, Pick, between, refusal, rows_needed
from tasks.methods.fgce.algorithm.covering.set_cover import Fewest, fewest, least_count, settled
from tasks.methods.fgce.algorithm.covering.solver import Solver
from tasks.numerics.arrays import Floats, Longs

NONE_COVERABLE = "no row has a feasible counterfactual"


@dataclass(frozen=True)
class Judged:
    """Whether k candidates cover enough rows at one cost; neither where a solver was stopped."""

    possible: bool
    impossible: bool
    picks: tuple[Pick, ...]
    note: str


@dataclass
class Search:
    """One group's table of costs, and all that has been found out about it at the costs tried so far."""

    parts: tuple[Part, ...]
    """Without rows that nothing covers, and without candidates that another one replaces at every cost."""
    columns: tuple[Longs, ...]
    """Where each part's candidates were before."""
    costs: Floats
    """Distinct finite costs, ascending."""
    solver: Solver
    fronts: dict[int, list[Frontier]] = field(default_factory=dict)
    """By place in ``costs``."""
    counts: dict[int, list[Fewest]] = field(default_factory=dict)
    """By place in ``costs``; none where some row has no candidate."""

    @property
    def rows(self) -> int:
        """Coverable rows."""
        return sum(part.rows for part in self.parts)

    def least(self, k: int, need: int, impossible: int = -1, possible: int | None = None) -> Optimum:
        """Least cost at which at most ``k`` candidates cover ``need`` rows.

        Args:
            k: Candidates.
            need: Rows, at least 1.
            impossible: A place in ``costs`` known to be too cheap; -1 if none is.
            possible: A place known to be enough, if any is.
        """
        if not self.rows:
            return refusal(NONE_COVERABLE)
        top = len(self.costs) - 1
        low, high, proven = impossible, top + 1, impossible
        best, note = Judged(False, False, (), ""), ""
        step = top if possible is None else possible
        while high - low > 1:
            judged = self.judge(step, k, need)
            if judged.possible:
                high, best = step, judged
            else:
                low = step
                proven = max(proven, step) if judged.impossible else proven
                note = note or judged.note
            step = (low + high) // 2
        if proven == top:
            return refusal(f"k = {k} counterfactuals cannot cover {need} of {self.rows} rows")
        bound = float(self.costs[proven + 1])
        if high > top:
            return _open(k, need, self.rows, bound, note)
        return between(float(self.costs[high]), bound, self.original(best.picks), note)

    def judge(self, step: int, k: int, need: int) -> Judged:
        """Whether at most ``k`` candidates cover ``need`` rows at the cost ``costs[step]``."""
        if need >= self.rows:
            return self._judge_all(step, k) if need == self.rows else Judged(False, True, (), "")
        if step not in self.fronts:
            self.fronts[step] = [frontier(part, self.costs[step]) for part in self.parts]
        found = coverage(self.fronts[step], k, self.solver, lambda low, high: low >= need or high < need)
        return Judged(found.low >= need, found.high < need, found.picks, found.note)

    def _judge_all(self, step: int, k: int) -> Judged:
        """The same for all rows, by the fewest candidates that cover each part."""
        if step not in self.counts:
            covers = [part.within(self.costs[step]) for part in self.parts]
            served = all(cover.any(axis=1).all() for cover in covers)
            self.counts[step] = [fewest(cover) for cover in covers] if served else []
        counts = self.counts[step]
        if not counts:
            return Judged(False, True, (), "")
        for part, found in enumerate(counts):
            spare = k - sum(other.low for other in counts)
            if spare < 0 or sum(len(other.picks) for other in counts) <= k:
                break
            counts[part] = settled(found, self.solver, found.low + spare)
        picks = tuple((part, column) for part, found in enumerate(counts) for column in found.picks)
        note = next((found.note for found in counts if found.note), "")
        return Judged(len(picks) <= k, sum(found.low for found in counts) > k, picks, note)

    def original(self, picks: Sequence[Pick]) -> list[Pick]:
        """Picks by the columns of the parts as they were given."""
        return [(part, int(self.columns[part][column])) for part, column in picks]


def search(parts: Sequence[Part], solver: Solver) -> Search:
    """Make a group's table of costs ready for searching."""
    columns = tuple(cheapest_candidates(part.cost) for part in parts)
    served = [np.isfinite(part.cost).any(axis=1) for part in parts]
    kept = tuple(
        Part(part.cost[rows][:, own], part.weight[rows]) for part, rows, own in zip(parts, served, columns, strict=True)
    )
    costs = np.unique(np.concatenate([np.zeros(0), *(part.cost.ravel() for part in kept)]))
    return Search(kept, columns, costs[np.isfinite(costs)], solver)


def _open(k: int, need: int, rows: int, bound: float, note: str) -> Optimum:
    """Nothing was found, and nothing proven either."""
    reason = f"undecided: {note}; whether k = {k} counterfactuals cover {need} of {rows} rows is not known"
    return Optimum(float("nan"), bound, False, (), reason)


def cost_by_k(
    parts: Sequence[Part], ks: Sequence[int], shares: Sequence[float], solver: Solver
) -> Mapping[tuple[int, float], Optimum]:
    """``least_cost`` for every k and every share of the coverable rows, by (k, share).

    The cost falls with k and rises with the share, so that every search starts between its neighbours; what has been
    found out at a cost is used again.
    """
    table = search(parts, solver)
    found: dict[tuple[int, float], Optimum] = {}
    for place, k in enumerate(sorted(ks)):
        impossible = -1
        for share in sorted(shares):
            fewer = found.get((sorted(ks)[place - 1], share)) if place else None
            possible = None if fewer is None or np.isnan(fewer.value) else _place(table.costs, fewer.value)
            optimum = table.least(k, rows_needed(share, table.rows), impossible, possible)
            found[k, share] = optimum
            # a refusal has no bound: at this k, no cost is enough for a larger share either
            impossible = len(table.costs) - 1 if np.isnan(optimum.bound) else _place(table.costs, optimum.bound) - 1
    return found


def _place(costs: Floats, value: float) -> int:
    return int(np.searchsorted(costs, value))


def d0_at_k0(parts: Sequence[Part], solver: Solver) -> Optimum:
    """The largest of the parts' least costs at which as few candidates as can cover all of a part do so.

    This is what the authors' code calls d0; the paper's d0, without a limit on the number, is ``problem.d0``.

    Returns:
        In encoded units. Where a part's least count is itself only a bound, so is the cost, and the reason says so.
    """
    picks: list[Pick] = []
    found, notes = [], []
    for number, part in enumerate(parts):
        if not part.rows:
            continue
        count = least_count([part], solver)
        optimum = search([part], solver).least(len(count.picks), part.rows)
        found.append(optimum)
        picks += [(number, column) for _, column in optimum.picks]
        notes += [note for note in (count.reason, optimum.reason) if note]
    if not found:
        return refusal(NONE_COVERABLE)
    value, bound = max(one.value for one in found), max(one.bound for one in found)
    return Optimum(value, bound, not notes, tuple(picks), "; ".join(notes[:1]))
