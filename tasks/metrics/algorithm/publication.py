"""Disclosure control of measures: withholds small cells and what would reveal them, and coarsens counts.

Exact counts decide whether a cell is small. Under a policy that rounds, every share, interval and p-value is recomputed
from rounded counts, so that no printed number reveals an exact count.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from schemas.terms import State
from tasks.metrics.algorithm.disclosure import Policy, complement, rounded, small
from tasks.metrics.algorithm.measures import Family, Given, Measure, Statistic, base_name
from tasks.numerics.statistics.intervals import is_share

Cell = tuple[Family, str]
"""A family of statistics and a group."""


def coarsened(statistic: Statistic, policy: Policy) -> Statistic:
    """A share by its rounded counts; other statistics as they are, since their n alone is rounded."""
    if policy.round_to == 1 or not is_share(statistic.values):
        return statistic
    counts = np.array([rounded(policy, int(count)) for count in statistic.counts], dtype=np.int64)
    return replace(statistic, counts=counts)


def coarsened_given(given: Given, policy: Policy) -> Given:
    """An aggregate that is neither a count nor a quotient of its counts, such as a mean of shares: to two decimals."""
    if policy.round_to == 1 or given.events is None or given.value in (given.events, given.events / max(given.n, 1)):
        return given
    return replace(given, value=round(given.value, 2), replicates=np.round(given.replicates, 2))


def withheld(
    statistics: Sequence[Statistic | Given], policy: Policy, partitions: Mapping[str, Collection[str]] | None = None
) -> set[Cell]:
    """The cells to withhold: small ones, and those by which they could be had from a total.

    Totals are those over the groups of a family, those over the parts of a group, and the shares of a group that add up
    to one: of the measures in ``partitions``, over the parameters named there.
    """
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


def published(measures: Iterable[Measure], hidden: set[Cell], policy: Policy) -> list[Measure]:
    """The measures with the withheld ones blank, those that compare them too, and the other counts rounded."""
    return [_blank(m) if _is_hidden(m, hidden) else _rounded(m, policy) for m in measures]


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


def _is_hidden(m: Measure, hidden: set[Cell]) -> bool:
    base = replace(m.family, measure=base_name(m.family.measure))
    compared = [m.group] + ([m.reference_group] if m.reference_group else [])
    return any((base, group) in hidden for group in compared)


def _blank(m: Measure) -> Measure:
    nan = math.nan
    held = m.state in (State.BREACH, State.WITHIN, State.INSUFFICIENT_EVIDENCE)
    state = State.INSUFFICIENT_EVIDENCE if held else m.state
    reason = "withheld: a small cell, or one that would give a small cell away"
    return replace(
        m, value=nan, low=nan, high=nan, n=None, events=None, p=nan, q=nan, state=state, reason=reason, note=""
    )


def _rounded(m: Measure, policy: Policy) -> Measure:
    """The measure as published: counts rounded, and under a policy that rounds no value finer than its counts allow."""
    if m.family.measure.endswith(("_size_matched", "_null")) and m.n is not None:
        return _steps(m, policy) if m.counted else _coarse(m, policy)  # its n counts draws, not people
    events = None if m.events is None else rounded(policy, m.events)
    m = replace(m, n=None if m.n is None else rounded(policy, m.n), events=events, value=_counted(m, policy))
    return m if m.events is not None else _coarse(m, policy)


def _counted(m: Measure, policy: Policy) -> float:
    """The value, rounded like other counts if it is one; shares are made from rounded counts already."""
    if policy.round_to == 1 or m.events is None or not m.n or not math.isfinite(m.value):
        return m.value
    if m.value == m.events:
        return float(rounded(policy, m.events))
    return m.value


def _steps(m: Measure, policy: Policy) -> Measure:
    """A count that was drawn, as counts are published: where every row drawn counts, it is the size of the group."""
    if policy.round_to == 1:
        return m
    value, low, high = np.round(np.array([m.value, m.low, m.high]) / policy.round_to) * policy.round_to
    return replace(m, value=float(value), low=float(low), high=float(high))


def _coarse(m: Measure, policy: Policy) -> Measure:
    """To two decimals: a mean to many digits tells the number of rows that it is over."""
    if policy.round_to == 1:
        return m
    low, high = round(m.low, 2), round(m.high, 2)
    if low == high and m.low < m.high:  # rounding takes no interval its width
        low, high = math.floor(100 * m.low) / 100, math.ceil(100 * m.high) / 100
    return replace(m, value=round(m.value, 2), low=low, high=high)
