"""The covering problem: reductions, fewest counterfactuals, and most rows within a cost."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numba
import numpy as np
import pulp

from tasks.feasibility_graph.algorithm import Words
from tasks.methods.fgce.algorithm.solver import Solver, solve
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Covering a group's factuals with few counterfactuals: shapes of the problem and of its solution.
#
# FGCE asks three questions of the same table of costs (sections III and IV): how many rows k candidates can cover
# within a cost (``max_cover``), how few candidates cover all rows (``set_cover``), and at what largest cost k
# candidates cover a share of them (``least_cost``). Every answer is an ``Optimum``: exact, or a bound with the reason
# why it is only that.


Pick = tuple[int, int]
"""A chosen candidate: its part, and its column there."""

SLACK = 1e-9
"""Shares of rows are rounded up to rows; a share may be off by this much."""


@dataclass(frozen=True)
class Part:
    """One weakly connected component of a group: what each of its candidates costs each of its factuals."""

    cost: Floats
    """``(f, c)`` in encoded units; ``inf`` where the candidate is not feasible for the factual."""
    weight: Longs
    """``(f,)`` factual rows at each factual node, at least 1."""

    def __post_init__(self) -> None:
        """Refuse what is no table of costs: every number that follows would be wrong."""
        if self.cost.ndim != 2 or len(self.cost) != len(self.weight):
            raise ValueError(f"part: expected one weight per row of cost {self.cost.shape}, not {len(self.weight)}")
        if not (self.cost >= 0).all() or (self.weight < 1).any():
            raise ValueError("part: costs are at least 0 (inf where not feasible, never NaN) and weights at least 1")

    @property
    def rows(self) -> int:
        """Coverable rows: those with at least one feasible candidate."""
        return int(self.weight[np.isfinite(self.cost).any(axis=1)].sum())

    def within(self, limit: float) -> Bools:
        """Which candidates are feasible at a cost of at most ``limit``, ``(f, c)``."""
        return (self.cost <= limit) & np.isfinite(self.cost)


@dataclass(frozen=True)
class Optimum:
    """An optimal value, or a bound on it, or a refusal."""

    value: float
    """The best that was found; NaN where there is none."""
    bound: float
    """No selection does better: a lower bound on a cost or a count, an upper bound on a coverage."""
    exact: bool
    """Whether the value is proven optimal."""
    picks: tuple[Pick, ...]
    """A selection that attains the value, ascending."""
    reason: str = ""
    """Why the value is not exact, or why there is none; empty for an exact value."""


def d0(parts: Sequence[Part]) -> float:
    """Smallest cost at which all coverable rows are covered by as many candidates as it takes (FGCE, section V).

    Returns:
        In encoded units; NaN where no row is coverable.
    """
    cheapest = np.concatenate([np.zeros(0), *(part.cost.min(axis=1, initial=np.inf) for part in parts)])
    return float(max(cheapest[np.isfinite(cheapest)], default=float("nan")))


def rows_needed(share: float, rows: int) -> int:
    """Rows that make up a share of ``rows``, rounded up."""
    return math.ceil(share * rows - SLACK)


def refusal(reason: str) -> Optimum:
    """There is no selection as wanted."""
    return Optimum(float("nan"), float("nan"), False, (), reason)


def between(value: float, bound: float, picks: Sequence[Pick], note: str) -> Optimum:
    """The optimum as far as it is known: exact where value and bound meet, else with ``note`` as the reason."""
    chosen = tuple(sorted(picks))
    if value == bound:
        return Optimum(value, bound, True, chosen)
    low, high = sorted((value, bound))
    return Optimum(value, bound, False, chosen, f"a bound: {note}; the optimum lies between {low:g} and {high:g}")


# --------------------------------------------------------------------------------------------------------------------
# Dominance: removes candidates that another one replaces, and factuals that are covered along with another.
#
# The optimum stays, and most programmes become so small that they need no solver: on COMPAS and on Adult the reductions
# alone solve every set cover tried.


def undominated(sets: Bools) -> Longs:
    """Places of the sets, ``(m, n)``, that are contained in no other one; of equal sets the first."""
    order = np.argsort(-sets.sum(axis=1), kind="stable")
    return np.flatnonzero(_maximal(packed(sets), order))


def cheapest_candidates(cost: Floats) -> Longs:
    """Columns of ``(f, c)`` than which no other one is as cheap for every factual; of equal ones the first.

    An optimal selection, at whatever limit on cost, can be made of these.
    """
    offers = np.ascontiguousarray(cost.T)
    refused = np.isinf(offers)
    # a candidate comes after all that could replace it: those feasible for more factuals, then the cheaper ones
    order = np.lexsort((np.where(refused, 0.0, offers).sum(axis=1), refused.sum(axis=1)))
    return np.flatnonzero(_minimal(offers, order))


def packed(sets: Bools) -> Words:
    """The sets as bits, ``(m, ceil(n / 64))``."""
    packed = np.packbits(sets, axis=1, bitorder="little")
    padded = np.zeros((len(sets), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _maximal(bits: Words, order: Longs) -> Bools:
    """Which sets are no subset of one kept before them."""
    is_maximal = np.zeros(bits.shape[0], dtype=np.bool_)
    keepers = np.empty(bits.shape[0], dtype=np.int64)
    count = 0
    for row in order:
        for place in range(count):
            if _inside(bits[row], bits[keepers[place]]):
                break
        else:
            is_maximal[row] = True
            keepers[count] = row
            count += 1
    return is_maximal


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _inside(first: Words, other: Words) -> bool:
    """Whether the first set is a subset of the second."""
    for word in range(first.shape[0]):  # noqa: SIM110 numba knows no generators
        if first[word] & ~other[word]:
            return False
    return True


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _minimal(offers: Floats, order: Longs) -> Bools:
    """Which candidates, ``(c, f)``, are dearer for some factual than each of those kept before them."""
    is_minimal = np.zeros(offers.shape[0], dtype=np.bool_)
    keepers = np.empty(offers.shape[0], dtype=np.int64)
    count = 0
    for row in order:
        for place in range(count):
            if not _dearer(offers[keepers[place]], offers[row]):
                break
        else:
            is_minimal[row] = True
            keepers[count] = row
            count += 1
    return is_minimal


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _dearer(first: Floats, other: Floats) -> bool:
    """Whether the first candidate costs some factual more than the second does."""
    for i in range(first.shape[0]):  # noqa: SIM110 numba knows no generators
        if first[i] > other[i]:
            return True
    return False


# --------------------------------------------------------------------------------------------------------------------
# Decides whether k candidates cover everything, by branching on the factual with the fewest candidates.
#
# For small k this takes milliseconds where an integer programme takes seconds, because the relaxation of a set cover is
# weak. Its limit counts nodes, not seconds, so that the result is the same on every machine.


NODES = 300_000
"""Nodes after which the search gives up, some tenths of a second."""

FOUND, NONE, GAVE_UP = 1, 0, -1


def cover_of(cover: Bools, k: int) -> tuple[int, tuple[int, ...]]:
    """Look for ``k`` columns of ``(f, c)`` that hold a True in every row.

    Returns:
        ``FOUND`` and the columns; ``NONE`` if there are no such columns; ``GAVE_UP`` after ``NODES`` nodes.
    """
    ordered = cover[np.argsort(cover.sum(axis=1), kind="stable")]
    outcome, picks = _search(np.ascontiguousarray(ordered), packed(ordered.T), k, NODES)
    return outcome, tuple(picks.tolist()) if outcome == FOUND else ()


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search(cover: Bools, bits: Words, k: int, nodes: int) -> tuple[int, Longs]:
    """Depth first; a column tried at a node is not tried again below the node's later branches."""
    rows, columns = cover.shape
    open_ = np.zeros((k + 1, bits.shape[1]), dtype=np.uint64)
    for row in range(rows):
        open_[0, row // 64] |= np.uint64(1) << np.uint64(row % 64)
    barred = np.full(columns, k + 1, dtype=np.int64)
    branch, column, picks = np.full(k + 1, -1), np.zeros(k + 1, np.int64), np.full(k, -1)
    depth = 0
    while depth >= 0 and nodes > 0:
        if branch[depth] < 0:  # a new node
            nodes -= 1
            open_count, most = _gains(open_[depth], bits, barred, k)
            if open_count == 0:
                return FOUND, picks[:depth]
            # a row to branch on, or none where even the largest gains cannot cover what is left
            branch[depth] = _first_open(open_[depth]) if open_count <= most * (k - depth) else rows
            column[depth] = 0
        row, place = branch[depth], column[depth]
        while row < rows and place < columns and not (cover[row, place] and barred[place] > k):
            place += 1
        if row == rows or place == columns:
            for other in range(columns):
                if barred[other] == depth:
                    barred[other] = k + 1
            branch[depth] = -1
            depth -= 1
            continue
        column[depth], picks[depth], barred[place] = place + 1, place, depth
        for word in range(bits.shape[1]):
            open_[depth + 1, word] = open_[depth, word] & ~bits[place, word]
        depth += 1
    return (NONE if depth < 0 else GAVE_UP), picks[:0]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _gains(open_: Words, bits: Words, barred: Longs, k: int) -> tuple[int, int]:
    """Rows left open, and how many of them the best column that is not barred covers."""
    open_count, most = 0, 0
    for word in range(open_.shape[0]):
        open_count += _ones(open_[word])
    for column in range(bits.shape[0]):
        if barred[column] > k:
            gain = 0
            for word in range(open_.shape[0]):
                gain += _ones(open_[word] & bits[column, word])
            most = max(most, gain)
    return open_count, most


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _first_open(open_: Words) -> int:
    """The first open row."""
    word = 0
    while open_[word] == 0:
        word += 1
    low = open_[word] & (~open_[word] + np.uint64(1))
    return 64 * word + _ones(low - np.uint64(1))  # type: ignore[no-any-return]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _ones(word: np.uint64) -> int:
    """Number of bits that are set, counted in pairs, nibbles and bytes at once."""
    unit = np.uint64(1)
    word = word - ((word >> unit) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]


# --------------------------------------------------------------------------------------------------------------------
# The most rows that k counterfactuals cover within a cost: the exact optimum of FGCE's Algorithm 1.
#
# Each part has a frontier: lower and upper bounds on the rows that 0, 1, 2, ... of its candidates cover. The greedy
# choice gives the lower bound. The upper one is submodularity: j more candidates add no more than the j largest gains.
# A dynamic programme allots k to the parts, once by the lower and once by the upper bounds. While the two disagree, an
# integer programme settles one number of one part that the upper one uses.
#
# Scope: coverage at one limit on cost. The method's own greedy choice: ``tasks.methods.fgce.algorithm.recourse``.


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
    table, uncovered_weight = cover.astype(np.int64), weight
    picks: list[int] = []
    covered, upper = [0], np.full(cover.shape[1] + 1, weight.sum())
    while uncovered_weight.any():
        gain = uncovered_weight @ table
        cumulative_gain = np.cumsum(np.sort(gain)[::-1])
        upper[1:] = np.minimum(upper[1:], covered[-1] + cumulative_gain)
        best = int(gain.argmax())
        picks.append(best)
        covered.append(covered[-1] + int(gain[best]))
        uncovered_weight = np.where(cover[:, best], 0, uncovered_weight)
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
        """Solve for the optimum at ``k``, and carry its bounds over to fewer and to more candidates."""
        # fewest rows left open by at most k columns
        problem = pulp.LpProblem("max_cover", pulp.LpMinimize)
        names = [f"u{column}" for column in range(self.cover.shape[1])]
        use = [problem.add_variable(name, cat="Binary") for name in names]
        uncovered = [problem.add_variable(f"o{row}", 0, 1) for row in range(len(self.cover))]
        problem += pulp.lpSum(int(rows) * open_ for rows, open_ in zip(self.weight, uncovered, strict=True))
        problem += pulp.lpSum(use) <= k
        for open_, row in zip(uncovered, self.cover, strict=True):
            problem += open_ + pulp.lpSum(use[column] for column in np.flatnonzero(row)) >= 1
        solution = solve(problem, solver)
        chosen = tuple(j for j, name in enumerate(names) if solution.values.get(name, 0) > 0.5)
        covered = int(self.weight[self.cover[:, chosen].any(axis=1)].sum())
        for next_k in range(k, len(self.lower)):
            if len(chosen) <= k and covered > self.lower[next_k]:
                self.lower[next_k], self.picks[next_k] = covered, chosen
        if np.isfinite(solution.bound):
            # the programme minimises the rows left open
            most = int(np.floor(self.weight.sum() - solution.bound + 1e-6))
            self.upper[: k + 1] = np.minimum(self.upper[: k + 1], most)
        if self.lower[k] < self.upper[k]:
            self.stopped[k] = solution.note or "the solver gave no proof"


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
            for number, (front, part_k) in enumerate(zip(fronts, dealt, strict=True))
            for column in front.picks[part_k]
        )
        if low == high or enough(low, high):
            return Coverage(low, high, picks, "")
        doubt = [
            (front.upper[part_k] - front.lower[part_k], i)
            for i, (front, part_k) in enumerate(zip(fronts, hoped, strict=True))
        ]
        open_ = [(gap, i) for gap, i in doubt if gap and hoped[i] not in fronts[i].stopped]
        if not open_:
            notes = [
                front.stopped[part_k] for front, part_k in zip(fronts, hoped, strict=True) if part_k in front.stopped
            ]
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
    counts, remaining = [], k
    for choice in reversed(chosen):
        counts.append(int(choice[remaining]))
        remaining -= counts[-1]
    return int(best[k]), counts[::-1]


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
    count_bounds = coverage(fronts, k, solver, lambda low, high: low == high)
    return between(count_bounds.low, count_bounds.high, count_bounds.picks, count_bounds.note)


# --------------------------------------------------------------------------------------------------------------------
# The fewest counterfactuals that cover every factual: k0 of FGCE (section V), by reductions first, a solver last.
#
# Dominated candidates, factuals covered along with others, and indispensable candidates are removed until nothing
# changes. Factuals without a common candidate bound the rest from below, the greedy choice from above. Where the bounds
# differ a search decides, and after its limit an integer programme.
#
# Scope: full coverage at one limit on cost. The least such limit: ``least_cost``.


@dataclass(frozen=True)
class Fewest:
    """How few candidates cover every factual of one part, as far as it is known."""

    low: int
    """No fewer do."""
    required: tuple[int, ...]
    """Columns taken out by the reductions."""
    remaining: Bools
    """``(f', c')`` what they leave."""
    columns: Longs
    """``(c',)`` places of its columns in the part."""
    chosen: tuple[int, ...]
    """Columns that cover ``remaining``."""
    note: str = ""
    """What stopped the solver."""

    @property
    def picks(self) -> tuple[int, ...]:
        """Columns of the part that cover it; as many as ``low`` once the number is exact."""
        return (*self.required, *self.columns[list(self.chosen)].tolist())


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
        part_cover = settled(fewest(cover), solver, most=len(cover))
        picks += [(number, column) for column in part_cover.picks]
        bound, note = bound + part_cover.low, note or part_cover.note
    if not picks:
        return refusal("no row has a feasible counterfactual")
    return between(len(picks), bound, picks, note)


def fewest(cover: Bools) -> Fewest:
    """Fewest columns of ``(f, c)`` that hold a True in every row, as far as bounds can say; every row must have one."""
    required, rows, columns, chosen, unrelated = _fewest(cover)
    remaining = cover[np.ix_(rows, columns)]
    return Fewest(len(required) + unrelated, tuple(required.tolist()), remaining, columns, tuple(chosen.tolist()))


def settled(state: Fewest, solver: Solver, most: int) -> Fewest:
    """Raise ``low`` until it is the number of picks or exceeds ``most``: larger numbers are equivalent."""
    while state.low < len(state.picks) and state.low <= most and not state.note:
        outcome, chosen = cover_of(state.remaining, state.low - len(state.required))
        if outcome == FOUND:
            state = replace(state, chosen=chosen)
        elif outcome == NONE:
            state = replace(state, low=state.low + 1)
        else:
            state = _solved(state, solver)
    return state


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fewest(cover: Bools) -> tuple[Longs, Longs, Longs, Longs, int]:
    """Reductions and both bounds of one set cover, on bits: a group has thousands of small ones.

    Returns:
        Columns that every smallest cover may be made to hold; ``(f',)`` rows and ``(c',)`` columns that remain, none of
        them dominated; the greedy choice among these columns, by their places there, ties to the smaller; and how many
        of the rows, those with fewest columns first, have no column in common.
    """
    bits, turned = _packed(cover), _packed(cover.T)
    rows, columns = np.arange(cover.shape[0]), np.arange(cover.shape[1])
    required, count, size = np.empty(len(columns), dtype=np.int64), 0, -1
    while len(rows) * len(columns) not in (0, size):
        size = len(rows) * len(columns)
        columns = _without_dominated(turned, columns, _mask(rows, turned.shape[1]), False)
        # a factual whose candidates include all those of another one is covered with it
        open_columns = _mask(columns, bits.shape[1])
        rows = _without_dominated(bits, rows, open_columns, True)
        alone = np.zeros_like(open_columns)
        for row in rows:
            if _common(bits[row], open_columns) == 1:
                alone |= bits[row] & open_columns
        is_alone = np.array([_holds(alone, column) for column in columns])
        required[count : count + is_alone.sum()] = columns[is_alone]
        count += is_alone.sum()
        columns = columns[~is_alone]
        rows = rows[np.array([_common(bits[row], alone) == 0 for row in rows])]
    chosen = _greedy(turned, columns, _mask(rows, turned.shape[1]))
    return required[:count], rows, columns, chosen, _unrelated(bits, rows, _mask(columns, bits.shape[1]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _without_dominated(bits: Words, members: Longs, mask: Words, least: bool) -> Longs:
    """Sets of ``members`` that are contained in no other one, or, with ``least``, that contain none; ascending.

    Only elements of the mask count; of equal sets the first stays.
    """
    sizes = np.array([_common(bits[member], mask) for member in members])
    order = np.argsort(sizes if least else -sizes, kind="mergesort")  # stable
    keepers = np.empty(len(members), dtype=np.int64)
    count = 0
    for member in members[order]:
        for place in range(count):
            inner, outer = (keepers[place], member) if least else (member, keepers[place])
            if _inside_mask(bits[inner], bits[outer], mask):
                break
        else:
            keepers[count] = member
            count += 1
    return np.sort(keepers[:count])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _greedy(turned: Words, columns: Longs, open_rows: Words) -> Longs:
    """Places of the columns that cover all open rows, each time the one that newly covers most."""
    chosen, count = np.empty(len(columns), dtype=np.int64), 0
    while open_rows.any():
        best, most = 0, 0
        for place in range(len(columns)):
            gain = _common(turned[columns[place]], open_rows)
            if gain > most:
                best, most = place, gain
        if most == 0:
            raise ValueError("a row has no column")
        open_rows = open_rows & ~turned[columns[best]]
        chosen[count] = best
        count += 1
    return chosen[:count]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _unrelated(bits: Words, rows: Longs, mask: Words) -> int:
    """How many rows have no column of the mask in common: rows with fewest columns first."""
    used, count = np.zeros_like(mask), 0
    for row in rows[np.argsort(np.array([_common(bits[row], mask) for row in rows]), kind="mergesort")]:
        if _common(bits[row], used) == 0:
            used |= bits[row] & mask
            count += 1
    return count


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _packed(sets: Bools) -> Words:
    """As ``packed``."""
    bits = np.zeros((sets.shape[0], -(-sets.shape[1] // 64)), dtype=np.uint64)
    for row in range(sets.shape[0]):
        for place in range(sets.shape[1]):
            if sets[row, place]:
                bits[row, place // 64] |= np.uint64(1) << np.uint64(place % 64)
    return bits


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _mask(places: Longs, words: int) -> Words:
    """The set of some places."""
    mask = np.zeros(words, dtype=np.uint64)
    for place in places:
        mask[place // 64] |= np.uint64(1) << np.uint64(place % 64)
    return mask


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _holds(words: Words, place: int) -> bool:
    """Whether a set has a place."""
    return (words[place // 64] >> np.uint64(place % 64)) & np.uint64(1) == np.uint64(1)  # type: ignore[no-any-return]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _common(first: Words, other: Words) -> int:
    """How many elements two sets have in common."""
    count = 0
    for word in range(first.shape[0]):
        count += _ones(first[word] & other[word])
    return count


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _inside_mask(first: Words, other: Words, mask: Words) -> bool:
    """Whether the first set, as far as the mask goes, is a subset of the second."""
    for word in range(first.shape[0]):  # noqa: SIM110 numba knows no generators
        if first[word] & mask[word] & ~other[word]:
            return False
    return True


def _solved(state: Fewest, solver: Solver) -> Fewest:
    """The same after the solver has had its turn."""
    problem = pulp.LpProblem("set_cover", pulp.LpMinimize)
    use = [problem.add_variable(f"u{column}", cat="Binary") for column in range(state.remaining.shape[1])]
    problem += pulp.lpSum(use)
    for row in state.remaining:
        problem += pulp.lpSum(use[column] for column in np.flatnonzero(row)) >= 1
    solution = solve(problem, solver)
    chosen = tuple(column for column in range(len(use)) if solution.values.get(f"u{column}", 0) > 0.5)
    if len(chosen) >= len(state.chosen) or not state.remaining[:, chosen].any(axis=1).all():
        chosen = state.chosen
    # a bound on a whole number, to the solver's tolerance
    low = len(state.required) + int(np.ceil(solution.bound - 1e-6)) if np.isfinite(solution.bound) else 0
    state = replace(state, low=max(state.low, low), chosen=chosen)
    return state if state.low == len(state.picks) else replace(state, note=solution.note or "the solver gave no proof")
