"""Who is asked in a large problem: a seeded sample of the complainants of each group, the same for every method.

Scope: from the settings of an audit to ``Asked`` of each attribute. Drawing: ``tasks.numerics.statistics.sampling``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from schemas.audit.partition import Sampling, as_sampled
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.statistics.sampling import FLOOR, Asked, allotted, hashes
from tasks.preprocessing.groups import Grouped


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
