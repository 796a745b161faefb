"""What a method found on several draws of the rows, as one: means over draws, with their spread as a range.

A measure that depends on how many rows there are has no sampling error to speak of; it has a value at so many rows, and
a spread over draws (verdicts.md 4). So no interval is made of it.

Scope: measures of the draws. Which rows a draw has: ``tasks.feasibility_graph.draws``.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from schemas.terms import Note
from tasks.numerics.results import Aggregate, Detected, Tally

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
