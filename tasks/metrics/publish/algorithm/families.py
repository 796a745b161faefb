"""Families of statistics: which are withheld for their own size, and which because they add up with those.

Scope: numbers that methods make of populations. Counts of people themselves are held against linear programmes
(``suppression``). Exact counts decide whether a cell is small.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tasks.metrics.algorithm.measures import Family, Given, Statistic
from tasks.metrics.publish.algorithm.profiles import Policy, rounded, small
from tasks.numerics.arrays import Bools, Longs
from tasks.numerics.statistics.intervals import is_share

Cell = tuple[Family, str]
"""A family of statistics and a group."""


def coarsened(statistic: Statistic, policy: Policy, base: int = 0) -> Statistic:
    """A share by its counts as they are printed (``base`` 0: that of the profile); other statistics as they are."""
    if (base or policy.round_to) == 1 or not is_share(statistic.values):
        return statistic
    counts = np.array([rounded(policy, int(count), base) for count in statistic.counts], dtype=np.int64)
    return replace(statistic, counts=counts)


def withheld(
    statistics: Sequence[Statistic | Given], policy: Policy, partitions: Mapping[str, Collection[str]] | None = None
) -> set[Cell]:
    """The cells to withhold: small ones, and those by which they could be had from a total.

    Totals are those over the groups of a family, those over the parts of a group, and the shares of a group that add up
    to one: of the measures in ``partitions``, over the parameters named there. None under ``internal``.
    """
    if not policy.protects:
        return set()
    n = {(s.family, s.group): _units(s) for s in statistics}
    hidden = {(s.family, s.group) for s in statistics if _small(s, policy)}
    hidden |= _complements(n, hidden, lambda cell: cell[0], policy)
    parts, rest = _with_rest(n, hidden, policy)
    hidden |= _complements(parts, hidden | rest, _whole, policy) - rest
    for measure, over in (partitions or {}).items():
        counted = {(s.family, s.group): _having(s) for s in statistics if s.family.measure == measure}
        hidden |= _complements(counted, hidden, partial(_without, over), policy)
    return hidden | _sizes_of_parts(statistics, hidden)


def _having(s: Statistic | Given) -> int:
    """Units that a share counts."""
    return (s.events or 0) if isinstance(s, Given) else int(s.counts[s.values == 1].sum())


def _without(over: Collection[str], cell: Cell) -> Cell:
    """What several cells are shares of: the cell without the parameters that tell them apart."""
    rest = {name: value for name, value in json.loads(cell[0].parameters).items() if name not in over}
    return replace(cell[0], parameters=json.dumps(rest, sort_keys=True)), cell[1]


def _sizes_of_parts(statistics: Sequence[Statistic | Given], hidden: set[Cell]) -> set[Cell]:
    """Sizes of parts of which anything is withheld, for whichever decision maker: their differences would tell it."""
    touched = {(f.method, f.protected_attribute, group, f.subgroup) for f, group in hidden if f.subgroup}
    sizes = {(s.family, s.group) for s in statistics if isinstance(s, Given) and s.family.subgroup and s.events == s.n}
    return {(f, group) for f, group in sizes if (f.method, f.protected_attribute, group, f.subgroup) in touched}


def _whole(cell: Cell) -> Cell:
    """The group that a part belongs to."""
    return replace(cell[0], subgroup=0), cell[1]


def _with_rest(n: dict[Cell, int], hidden: set[Cell], policy: Policy) -> tuple[dict[Cell, int], set[Cell]]:
    """The parts of every group with what is left of it, which nobody prints; and where that counts as withheld.

    It does where it is small, and where it stands for more than one cell because some part is withheld.
    """
    parts = {cell: count for cell, count in n.items() if cell[0].subgroup}
    told: dict[Cell, int] = defaultdict(int)
    for cell, count in parts.items():
        told[_whole(cell)] += count
    left = {
        (replace(family, subgroup=-1), group): n.get((family, group), 0) - told[family, group] for family, group in told
    }
    left = {cell: count for cell, count in left.items() if count > 0}
    partly = {_whole(cell) for cell in parts if cell in hidden}
    return {**parts, **left}, {cell for cell, count in left.items() if small(policy, count) or _whole(cell) in partly}


def _units(s: Statistic | Given) -> int:
    return s.n if isinstance(s, Given) else int(s.counts.sum())


def _small(s: Statistic | Given, policy: Policy) -> bool:
    if isinstance(s, Given):
        counted = [s.events, s.n - s.events] if policy.events_too and s.events is not None else []
        return any(small(policy, count) for count in (s.n, *counted))
    n, defined = int(s.counts.sum()), int(s.counts[~np.isnan(s.values)].sum())
    counts = [n, defined]
    if policy.events_too and (s.share or is_share(s.values)):
        # how many have no value could be had from a share and its events, or from two shares of unlike denominators;
        # beside a mean stands nothing but its rounded n
        counts += [n - defined, *(s.counts.tolist() if is_share(s.values) else [])]
    return any(small(policy, count) for count in counts)


def _complements(
    n: dict[Cell, int], hidden: set[Cell], total_of: Callable[[Cell], Hashable], policy: Policy
) -> set[Cell]:
    """Further cells to withhold, where one cell of a printed total would be the only one withheld."""
    totals: dict[Hashable, list[Cell]] = defaultdict(list)
    for cell in n:
        totals[total_of(cell)].append(cell)
    out: set[Cell] = set()
    for cells in totals.values():
        flags = np.array([cell in hidden for cell in cells])
        more = complement(flags, np.array([n[cell] for cell in cells], dtype=np.int64), policy.smallest)
        out |= {cell for cell, gone in zip(cells, more, strict=True) if gone}
    return out


def complement(withheld: Bools, counts: Longs, smallest: int = 0) -> Bools:
    """Withhold more where what is withheld could be had by subtraction from the total of ``counts``.

    A single withheld count can be, and so can the sum of several, which must not be small either (below ``smallest``).
    The next smallest positive count goes with them, or a zero where there is no other; ``(n,)`` in, ``(n,)`` out.
    """
    out = withheld.copy()
    while out.any() and not out.all() and (out.sum() == 1 or 0 < counts[out].sum() < smallest):
        cost = np.where(counts > 0, counts, counts.max() + 1)
        out[np.argmin(np.where(out, counts.max() + 2, cost))] = True
    return out
