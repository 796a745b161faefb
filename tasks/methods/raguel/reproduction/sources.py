"""Points of the counterfactual sources that the paper compares itself with, and lists by the distance to them.

All sources look for points of the same people below the same boundary. Attributes that can be changed may go either
way, as in the paper's Equation 2. AR and MACE choose among values that somebody has: the paper's MACE leaves the range
of the data, and its closeness shows that.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from scipy.spatial import cKDTree

from tasks.baselines.algorithm.sources.kind import SearchSpace
from tasks.baselines.algorithm.sources.registry import SOURCES
from tasks.counterfactuals.algorithm.recourse import targets
from tasks.methods.raguel.algorithm.ranking.records import make_records
from tasks.methods.raguel.reproduction import lists
from tasks.methods.raguel.reproduction.lists import Judged, Ranked
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import ASKED

OURS: Final = "RAGUEL-CF"
NAMES: Final[Mapping[str, str]] = {"MACE": "mace", "AR": "ar", OURS: "exact"}
"""The paper's sources, and their names in the registry."""


def known(systems: frozenset[str]) -> tuple[str, ...]:
    """The paper's names of the sources that are run; ours always is."""
    return tuple(name for name, system in NAMES.items() if name == OURS or system in systems)


def counterfactuals(judged: Judged, name: str) -> Iterator[tuple[Cell, Value]]:
    """Yields what Table 4 has of a source: closeness, attributes changed, seconds; and closeness standardised.

    Closeness is the distance to the nearest person. In the units of the file the largest attribute drowns all others,
    as it does in the paper; in standard deviations it does not.
    """
    people, space = judged.people, _space(judged)
    source = SOURCES[NAMES[name]]
    source(SearchSpace(space.values[:2], space.boundary, space.actions, space.observed))  # compiles
    start = time.process_time()
    found = source(space)
    took = (time.process_time() - start) / max(len(space.values), 1)
    reached = found.reached
    moved = (found.point - space.values)[reached]
    in_units = people.values[~judged.favourable][reached] + moved * judged.scale
    yield Cell("closeness", name), _closeness(people.values, in_units)
    yield Cell("attributes_changed", name), float((moved != 0).sum(axis=1).mean())
    yield Cell("seconds_each", name), took
    yield Cell("closeness_standardised", name), _closeness(judged.values, found.point[reached])
    yield Cell("cost_by_its_own_measure", name), float(found.cost[reached].mean())
    yield Cell("out_of_reach", name), float((~reached).sum())
    yield Cell("not_proven", name), float((~found.proven).sum())


def closer(found: Mapping[Cell, Value]) -> Iterator[Figure]:
    """Yields the requirement that MACE's points lie closer to people than AR's."""
    limit = found.get(Cell("closeness_standardised", "AR"))
    if isinstance(limit, float) and Cell("closeness_standardised", "MACE") in found:
        yield Figure(ASKED, False, Cell("closeness_standardised", "MACE"), limit, 0.0, at_most=True)


def ranked(judged: Judged, name: str) -> Ranked:
    """Ranks those refused by the weighted distance to the points of a source; our own are in closed form, as before."""
    if name == OURS:
        return lists.ranked(judged, lists.UNFAVOURABLE)
    space, rows = _space(judged), np.flatnonzero(~judged.favourable)
    points = SOURCES[NAMES[name]](space)
    found = targets.given(space.values, np.where(points.reached[:, None], points.point, np.nan), space.actions)
    kept = np.flatnonzero(found.reached)
    reached = targets.Targets(found.point[kept], found.cost[kept], found.rate[kept])
    records = make_records(space.values[kept], reached, judged.people.group[rows[kept]], space.actions)
    return Ranked(records, rows[kept], len(rows) - len(kept), judged.people.reference)


def _space(judged: Judged) -> SearchSpace:
    actions = lists.actions(judged, bounded=False)
    return SearchSpace(judged.values[~judged.favourable], judged.boundary, actions, judged.values)


def _closeness(people: Floats, points: Floats) -> float:
    apart, _ = cKDTree(people).query(points)
    return float(np.mean(apart))
