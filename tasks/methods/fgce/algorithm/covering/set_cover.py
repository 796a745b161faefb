"""The fewest counterfactuals that cover every factual: k0 of FGCE (section V), by reductions first, a solver last.

Dominated candidates, factuals covered along with others, and indispensable candidates are removed until nothing
changes. Factuals without a common candidate bound the rest from below, the greedy choice from above. Where the bounds
differ a search decides, and after its limit an integer programme.

Scope: full coverage at one limit on cost. The least such limit: ``least_cost``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pulp

from tasks.methods.fgce.algorithm.covering.cover_search import FOUND, NONE, cover_of
from tasks.methods.fgce.algorithm.covering.dominance import undominated
from tasks.methods.fgce.algorithm.covering.max_cover import greedy
from tasks.methods.fgce.algorithm.covering.problem import Optimum, Part, Pick, between, refusal
from tasks.methods.fgce.algorithm.covering.solver import Solver, solve
from tasks.numerics.arrays import Bools, Longs


@dataclass(frozen=True)
class Fewest:
    """How few candidates cover every factual of one part, as far as it is known."""

    low: int
    """No fewer do."""
    needed: tuple[int, ...]
    """Columns taken out by the reductions."""
    left: Bools
    """``(f', c')`` what they leave."""
    columns: Longs
    """``(c',)`` places of its columns in the part."""
    chosen: tuple[int, ...]
    """Columns that cover ``left``."""
    note: str = ""
    """What stopped the solver."""

    @property
    def picks(self) -> tuple[int, ...]:
        """Columns of the part that cover it; as many as ``low`` once the number is exact."""
        return (*self.needed, *self.columns[list(self.chosen)].tolist())


def least_count(parts: Sequence[Part], solver: Solver, limit: float = np.inf) -> Optimum:
    """Smallest number of candidates that cover all coverable rows, over all parts: k0 (FGCE, section V).

    Args:
        parts: The components of a group.
        solver: For parts that the reductions do not settle.
        limit: Largest cost that a factual may be asked to pay, in encoded units.

    Returns:
        The number; the picks of each part are as many as that part needs. A refusal if no row is coverable, or if some
        coverable row has no candidate within the limit.
    """
    picks: list[Pick] = []
    bound, note = 0, ""
    for number, part in enumerate(parts):
        cover = part.within(limit)[np.isfinite(part.cost).any(axis=1)]
        if not cover.any(axis=1).all():
            return refusal(f"a cost of at most {limit:g} cannot cover all of {sum(p.rows for p in parts)} rows")
        found = settled(fewest(cover), solver, most=len(cover))
        picks += [(number, column) for column in found.picks]
        bound, note = bound + found.low, note or found.note
    if not picks:
        return refusal("no row has a feasible counterfactual")
    return between(len(picks), bound, picks, note)


def fewest(cover: Bools) -> Fewest:
    """Fewest columns of ``(f, c)`` that hold a True in every row, as far as bounds can say; every row must have one."""
    needed, left, columns = reduced(cover)
    chosen = greedy(left, np.ones(len(left), dtype=np.int64)).picks
    return Fewest(len(needed) + _unrelated(left), tuple(needed), left, columns, chosen)


def settled(known: Fewest, solver: Solver, most: int) -> Fewest:
    """Raise ``low`` until it is the number of picks or exceeds ``most``: larger numbers are equivalent."""
    while known.low < len(known.picks) and known.low <= most and not known.note:
        outcome, chosen = cover_of(known.left, known.low - len(known.needed))
        if outcome == FOUND:
            known = replace(known, chosen=chosen)
        elif outcome == NONE:
            known = replace(known, low=known.low + 1)
        else:
            known = _solved(known, solver)
    return known


def reduced(cover: Bools) -> tuple[list[int], Bools, Longs]:
    """Take out what dominance decides.

    Returns:
        Columns that every smallest cover may be made to hold; the rows and columns that remain, ``(f', c')``, none of
        them dominated; ``(c',)`` the columns' places in ``cover``.
    """
    needed: list[int] = []
    columns, size = np.arange(cover.shape[1]), -1
    while cover.size not in (0, size):
        size = cover.size
        keep = undominated(cover.T)
        cover, columns = cover[:, keep], columns[keep]
        # a factual whose candidates include all those of another one is covered with it
        cover = cover[undominated(~cover)]
        alone = cover[cover.sum(axis=1) == 1].any(axis=0)
        needed += columns[alone].tolist()
        cover, columns = cover[~cover[:, alone].any(axis=1)][:, ~alone], columns[~alone]
    return needed, cover, columns


def _unrelated(cover: Bools) -> int:
    """Rows found, one after the other, that share no column with those found before: each needs a column of its own."""
    taken, found = np.zeros(cover.shape[1], dtype=np.bool_), 0
    for row in cover[np.argsort(cover.sum(axis=1), kind="stable")]:
        if not (row & taken).any():
            taken |= row
            found += 1
    return found


def _solved(known: Fewest, solver: Solver) -> Fewest:
    """The same after the solver has had its turn."""
    problem = pulp.LpProblem("set_cover", pulp.LpMinimize)
    use = [problem.add_variable(f"u{column}", cat="Binary") for column in range(known.left.shape[1])]
    problem += pulp.lpSum(use)
    for row in known.left:
        problem += pulp.lpSum(use[column] for column in np.flatnonzero(row)) >= 1
    found = solve(problem, solver)
    chosen = tuple(column for column in range(len(use)) if found.values.get(f"u{column}", 0) > 0.5)
    if len(chosen) >= len(known.chosen) or not known.left[:, chosen].any(axis=1).all():
        chosen = known.chosen
    # a bound on a whole number, to the solver's tolerance
    low = len(known.needed) + int(np.ceil(found.bound - 1e-6)) if np.isfinite(found.bound) else 0
    known = replace(known, low=max(known.low, low), chosen=chosen)
    return known if known.low == len(known.picks) else replace(known, note=found.note or "the solver gave no proof")
