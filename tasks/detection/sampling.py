"""Sampled complainants of large problems, and results over repeated draws."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from schemas.audit.partition import as_sampled
from schemas.terms import Note
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Tally
from tasks.preprocessing.columns import Grouped

# --------------------------------------------------------------------------------------------------------------------
# The sample of a problem, and who stands for how many: ``tasks.preprocessing.columns`` draws it.


def drawn(several: Iterable[Problem]) -> Bools | None:
    """``(n,)`` the rows in the sample of any of some problems on the same rows; None if one problem uses all rows."""
    masks: list[Bools] = []
    for problem in several:
        if problem.sample is None:
            return None
        masks.append(problem.sample.drawn)
    return np.logical_or.reduce(masks) if masks else None


def said(problem: Problem) -> dict[int, str]:
    """By number of the group the size of its sample and of the group; only where the sample is smaller."""
    if problem.sample is None:
        return {}
    parts = {group: problem.sample.part(group) for group in range(len(problem.groups))}
    return {group: as_sampled(*part) for group, part in parts.items() if part[0] < part[1]}


def weights(problem: Problem, all_groups: Grouped) -> Floats:
    """``(n,)`` how many rows of the audit each row of a draw represents: N/m of its group."""
    counts = dict(zip(all_groups.groups, all_groups.sizes.tolist(), strict=True))
    of = np.array([counts[name] for name in problem.groups], dtype=np.float64)
    sampled_counts = np.bincount(problem.group, minlength=len(problem.groups))
    row_weights: Floats = (of / np.maximum(sampled_counts, 1))[problem.group]
    return row_weights


# --------------------------------------------------------------------------------------------------------------------
# What a method found on several draws of the rows, as one: means over draws, with their spread as a range.
#
# A measure that depends on how many rows there are has no sampling error to speak of; it has a value at so many rows,
# and a spread over draws (verdicts.md 4). So no interval is made of it.
#
# Scope: measures of the draws. Which rows a draw has: ``tasks.feasibility_graph.rows``.


Key = tuple[str, int, str, str]
"""Group, subgroup, measure, parameters."""
Found = tuple[tuple[str, ...], Detected]
"""The names of the groups of a problem, and what was found in it."""


def over_draws(first: Found, later_draws: Sequence[Found]) -> Detected:
    """Findings, evidence and draws of the first; every measure of it as an aggregate over all draws."""
    values: dict[Key, list[float]] = {}
    for names, detected in (first, *later_draws):
        for aggregate in _aggregates(detected):
            values.setdefault(_key(names, aggregate), []).append(aggregate.value)
    names, detected = first
    ranged = tuple(_ranged(aggregate, values[_key(names, aggregate)]) for aggregate in _aggregates(detected))
    return replace(detected, tallies=(), aggregates=ranged)


def _aggregates(detected: Detected) -> Iterator[Aggregate]:
    yield from map(_mean, detected.tallies)
    yield from detected.aggregates


def _key(names: tuple[str, ...], aggregate: Aggregate) -> Key:
    return (
        names[aggregate.group],
        aggregate.subgroup,
        aggregate.measure,
        json.dumps(dict(aggregate.parameters), sort_keys=True),
    )


def _mean(tally: Tally) -> Aggregate:
    """The mean of a tally; of a share the units that it counts."""
    is_defined = ~np.isnan(tally.values)
    defined = int(tally.counts[is_defined].sum())
    value = float(tally.counts[is_defined] @ tally.values[is_defined] / defined) if defined else np.nan
    is_share = tally.share and bool(np.isin(tally.values[is_defined], (0.0, 1.0)).all())
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


def _ranged(aggregate: Aggregate, values: list[float]) -> Aggregate:
    """The mean over the draws that have a value, between the smallest and the largest.

    Subgroups are those of one draw: they are other people in another.
    """
    finite_values = [value for value in values if np.isfinite(value)] if not aggregate.subgroup else []
    bare = replace(aggregate, replicates=np.zeros(0), interval=None)
    if len(finite_values) < 2 or not np.isfinite(aggregate.value):
        return bare
    reason = "; ".join(filter(None, (aggregate.reason, str(Note.RANGE))))
    return replace(
        bare, value=float(np.mean(finite_values)), interval=(min(finite_values), max(finite_values)), reason=reason
    )
