"""Sampled complainants of large problems, and results over repeated draws."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from schemas.audit.partition import Sampling, as_sampled
from schemas.terms import Note
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Tally
from tasks.numerics.statistics.sampling import FLOOR, Asked, allotted, hashes
from tasks.preprocessing.columns import Grouped

# --------------------------------------------------------------------------------------------------------------------
# Who is asked in a large problem: a seeded sample of the complainants of each group, the same for every method.
#
# Scope: from the settings of an audit to ``Asked`` of each attribute. Drawing: ``tasks.numerics.statistics.sampling``.


def asked_of(
    groups: Mapping[str, Grouped], ids: "np.ndarray[Any, Any]", sampling: Sampling | None, seed: int
) -> dict[str, Asked]:
    """By protected attribute who is asked, where that is not everybody.

    All groups but the reference group share ``sampling.queries``; of the reference group, of which some methods ask as
    well, so many are asked at most. Which rows these are follows from their ids, and not from the decision maker.
    """
    sizes = {name: _sizes(each, sampling) for name, each in groups.items()} if sampling is not None else {}
    partly = {name: size for name, size in sizes.items() if (size < _members(groups[name])).any()}
    if not partly:
        return {}
    hashed = hashes(ids.tolist(), seed)
    return {name: Asked.of(hashed, groups[name].group, size) for name, size in partly.items()}


def _members(grouped: Grouped) -> Longs:
    return np.bincount(grouped.group, minlength=len(grouped.groups))


def _sizes(grouped: Grouped, sampling: Sampling) -> Longs:
    """``(g,)`` how many of each group are asked."""
    counts = _members(grouped)
    others = np.arange(len(counts)) != grouped.reference
    sizes = np.minimum(counts, sampling.queries)
    sizes[others] = allotted(counts[others], sampling.queries, min(FLOOR, sampling.queries))
    return sizes.astype(np.int64)


def drawn(several: Iterable[Problem]) -> Bools | None:
    """``(n,)`` the rows that are asked in any of some problems on the same rows; None where one asks everybody."""
    found: list[Bools] = []
    for each in several:
        if each.asked is None:
            return None
        found.append(each.asked.drawn)
    return np.logical_or.reduce(found) if found else None


def said(problem: Problem) -> dict[int, str]:
    """By number of the group how many of its members are asked, of how many; nothing of one that is asked whole."""
    if problem.asked is None:
        return {}
    parts = {group: problem.asked.part(group) for group in range(len(problem.groups))}
    return {group: as_sampled(*part) for group, part in parts.items() if part[0] < part[1]}


def weights(problem: Problem, whole: Grouped) -> Floats:
    """``(n,)`` how many rows of all the audit each row of a draw stands for: N/m of its group."""
    counts = dict(zip(whole.groups, _members(whole).tolist(), strict=True))
    of = np.array([counts[name] for name in problem.groups], dtype=np.float64)
    drawn = np.bincount(problem.group, minlength=len(problem.groups))
    found: Floats = (of / np.maximum(drawn, 1))[problem.group]
    return found


# --------------------------------------------------------------------------------------------------------------------
# What a method found on several draws of the rows, as one: means over draws, with their spread as a range.
#
# A measure that depends on how many rows there are has no sampling error to speak of; it has a value at so many rows,
# and
# a spread over draws (verdicts.md 4). So no interval is made of it.
#
# Scope: measures of the draws. Which rows a draw has: ``tasks.feasibility_graph.rows``.


Key = tuple[str, int, str, str]
"""Group, subgroup, measure, parameters."""
Found = tuple[tuple[str, ...], Detected]
"""The names of the groups of a problem, and what was found in it."""


def over_draws(first: Found, others: Sequence[Found]) -> Detected:
    """Findings, evidence and draws of the first; every measure of it as an aggregate over all draws."""
    values: dict[Key, list[float]] = {}
    for names, found in (first, *others):
        for each in _aggregates(found):
            values.setdefault(_key(names, each), []).append(each.value)
    names, found = first
    said = tuple(_ranged(each, values[_key(names, each)]) for each in _aggregates(found))
    return replace(found, tallies=(), aggregates=said)


def _aggregates(found: Detected) -> Iterator[Aggregate]:
    yield from map(_mean, found.tallies)
    yield from found.aggregates


def _key(names: tuple[str, ...], each: Aggregate) -> Key:
    return names[each.group], each.subgroup, each.measure, json.dumps(dict(each.parameters), sort_keys=True)


def _mean(tally: Tally) -> Aggregate:
    """The mean of a tally; of a share the units that it counts."""
    known = ~np.isnan(tally.values)
    defined = int(tally.counts[known].sum())
    value = float(tally.counts[known] @ tally.values[known] / defined) if defined else np.nan
    is_share = tally.share and bool(np.isin(tally.values[known], (0.0, 1.0)).all())
    return Aggregate(
        tally.group,
        tally.subgroup,
        tally.measure,
        tally.parameters,
        value,
        int(tally.counts.sum()),
        headline=tally.headline,
        compared=tally.compared,
        events=int(tally.counts[tally.values == 1].sum()) if is_share else None,
    )


def _ranged(each: Aggregate, values: list[float]) -> Aggregate:
    """The mean over the draws that have a value, between the smallest and the largest.

    Subgroups are those of one draw: they are other people in another.
    """
    known = [value for value in values if np.isfinite(value)] if not each.subgroup else []
    bare = replace(each, replicates=np.zeros(0), interval=None)
    if len(known) < 2 or not np.isfinite(each.value):
        return bare
    reason = "; ".join(filter(None, (each.reason, str(Note.RANGE))))
    return replace(bare, value=float(np.mean(known)), interval=(min(known), max(known)), reason=reason)
