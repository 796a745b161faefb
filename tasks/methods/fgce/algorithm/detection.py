"""Feasible group counterfactual explanations (FGCE; Fragkathoulas, Papanikou, Pitoura and Terzi): the method.

Results for every group: the unfavourable decisions with a feasible counterfactual inside the group, the cost of the
cheapest one, coverage by k of them within a limit on cost, and the fewest that suffice at the least cost. All is
recomputed on the reference group, subsampled to the size of each other group: a small group has fewer candidates and a
thinner graph, which alone makes its factuals look worse off (specs, 'Epsilon and size'; not in the paper).

Limits on cost follow the paper's grid, which ends short of the square root of the number of features. A change of
category costs sqrt(2), so that feasible costs may exceed that end; ``coverage_at_k`` and ``burden_at_k`` therefore have
no limit on cost.

Scope: the order of the method. One group: ``recourse``. Statistics: ``tallies`` (means over rows) and ``aggregates``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from schemas.terms import Refusal
from tasks.methods.fgce.algorithm import aggregates, curves, optima, pairs, recourse, tallies
from tasks.methods.fgce.algorithm.aggregates import Solved
from tasks.methods.fgce.algorithm.curves import Limits, Resampled
from tasks.methods.fgce.algorithm.optima import Scale
from tasks.methods.fgce.algorithm.pricing import Kind, Pricing
from tasks.methods.fgce.algorithm.recourse import Explained, Searched
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Draws, Evidence, Findings, Tally

CHEAPEST, ASSIGNED = "cheapest", "assigned"
"""Roles in the evidence: the cheapest feasible candidate, and the nearest of the ``k`` selected."""

SUBGROUPS = 5
"""Subgroups with statistics of their own: those with most factuals."""


Said = tuple[str, Mapping[str, float | str], float, str]
"""A measure by name, its parameters, its value, and why that is a bound or missing."""


@dataclass(frozen=True)
class Frame:
    """What all groups of a problem share."""

    problem: Problem
    settings: FgceSettings
    pricing: Pricing
    limits: Limits
    scale: Scale


def units(problem: Problem) -> Bools:
    """``(n,)`` the rows that get a finding: the factuals."""
    return problem.factual


def detect(problem: Problem, settings: FgceSettings, rng: np.random.Generator) -> Detected:
    """Explain every group's factuals, and redraw the reference group at every other group's size.

    Args:
        problem: One decision maker and one protected attribute.
        settings: All but what shaped the graph.
        rng: One child generator is spawned per group, so that a group's draws do not depend on the other groups.

    Returns:
        Findings and evidence by ascending row. A group without factuals has neither tallies nor findings. Draws repeat
        every statistic of the whole group, for groups smaller than the reference group.
    """
    *children, own = rng.spawn(len(problem.groups) + 1)
    pricing = Pricing(problem, settings, own)
    members = [np.flatnonzero(problem.group == group) for group in range(len(problem.groups))]
    searched = [recourse.search(problem, rows, pricing.costs) for rows in members]
    limits = curves.limits(pricing.dearest(searched), _needed(searched, settings))
    explained = [recourse.explain(found, limits.levels, settings.k) for found in searched]
    curve = [_resampled(*pair, problem.resamples) for pair in zip(explained, children, strict=True)]
    solved = [
        aggregates.solve(found, limits, settings, at, child)
        for found, at, child in zip(explained, curve, children, strict=True)
    ]
    frame = Frame(problem, settings, pricing, limits, optima.scale([s.least for s in solved if s.full.n]))
    tallied: list[Tally] = []
    others: list[Aggregate] = []
    draws: list[Draws] = []
    for group, child in enumerate(children):
        if not len(searched[group].factuals):
            others += [replace(a, group=group) for a in aggregates.of_nobody()]
            continue
        if group != problem.reference:
            draws += _draws(frame, members[problem.reference], group, len(members[group]), child.spawn(1)[0])
        tallied += [replace(t, group=group) for t in _tallies(explained[group], frame)]
        others += [replace(a, group=group) for a in _aggregates(explained[group], curve[group], solved[group], frame)]
        others += [replace(a, group=group) for a in _of_subgroups(explained[group], frame, child)]
        if settings.exact:
            others += [replace(a, group=group) for a in aggregates.of_gap(explained[group], limits, settings)]
    return Detected(_findings(explained), _evidence(explained), tuple(tallied), tuple(draws), tuple(others))


def _needed(searched: list[Searched], settings: FgceSettings) -> float | None:
    """Where kAUC begins at what covering everyone needs: the dearest d0 at k0, or d0 where that is unproven."""
    if settings.kauc == "all":
        return None
    solver = optima.solver_of(settings)
    tables = [(optima.tables_of(found, settings), found.weight) for found in searched]
    parts = [optima.parts_of(each, weight) for each, weight in tables if each is not None]
    solved = [optima.full(each, solver) for each in parts]
    needed = [s.d0.value if s.d0_at_k0.reason else s.d0_at_k0.value for s in solved]
    return max((value for value in needed if np.isfinite(value)), default=None)


def _resampled(found: Explained, rng: np.random.Generator, draws: int) -> Resampled:
    return curves.resampled(found.turn, found.feasible, found.paid.shape[1], draws, rng)


def _tallies(found: Explained, frame: Frame) -> Iterator[Tally]:
    """Means over the rows of a group and of its largest subgroups."""
    yield from _of_group(found, frame)
    for number, alone in _subgroups(found, frame):
        yield from (replace(t, subgroup=number, headline=False) for t in _of_rows(alone, frame))


def _of_group(found: Explained, frame: Frame) -> Iterator[Tally]:
    """Every mean over a whole group's rows, always the same ones in the same order."""
    yield from _of_rows(found, frame)
    yield from tallies.coverage(found, frame.limits)
    for cost in frame.settings.face:
        yield from tallies.face(cost, *_in_cost(found, cost, frame))


def _of_rows(found: Explained, frame: Frame) -> Iterator[Tally]:
    yield from tallies.costs(found.cheapest)
    yield from tallies.selection(found)
    yield from tallies.areas(found, frame.limits)
    yield from tallies.changes(found, frame.problem)


def _in_cost(found: Explained, cost: Kind, frame: Frame) -> tuple[Floats, Floats]:
    """What the selected candidates and the cheapest one cost each row, by a cost that need not have selected them."""
    if cost == frame.settings.cost:
        return found.paid, found.cheapest
    searched = found.searched
    return found.in_cost(frame.pricing.by(cost, searched.graph, searched.points, searched.reach))


def _subgroups(found: Explained, frame: Frame) -> Iterator[tuple[int, Explained]]:
    """The largest subgroups, each with candidates selected for it alone."""
    most = int(found.searched.subgroup.max(initial=0))
    for number in range(1, min(most, SUBGROUPS) + 1):
        yield number, recourse.of_subgroup(found, number, frame.settings.k)


def _aggregates(found: Explained, at: Resampled, solved: Solved, frame: Frame) -> Iterator[Aggregate]:
    """What is no mean, of any rows of a group."""
    yield from aggregates.of_full(solved)
    yield from aggregates.of_least(solved, frame.scale)
    yield from aggregates.of_curves(at, frame.limits, len(found.cheapest))


def _of_subgroups(found: Explained, frame: Frame, rng: np.random.Generator) -> Iterator[Aggregate]:
    """The same for a group's largest subgroups, and their sizes; optima get no intervals."""
    for number, alone in _subgroups(found, frame):
        at = _resampled(alone, rng, frame.problem.resamples)
        solved = aggregates.solve(alone, frame.limits, _once(frame.settings), at, rng)
        gap = aggregates.of_gap(alone, frame.limits, frame.settings) if frame.settings.exact else ()
        for each in (*_aggregates(alone, at, solved, frame), *aggregates.of_sizes(alone), *gap):
            yield replace(each, subgroup=number, headline=False)


def _draws(frame: Frame, reference: Longs, group: int, size: int, rng: np.random.Generator) -> Iterator[Draws]:
    """Every measure on ``size`` rows of the reference group, drawn without replacement, draw by draw."""
    settings = frame.settings
    if not 0 < size < len(reference) or not settings.size_matched_draws:
        return
    drawn = []
    for _ in range(settings.size_matched_draws):
        rows = np.sort(rng.choice(reference, size, replace=False))
        searched = recourse.search(frame.problem, rows, frame.pricing.costs)
        found = recourse.explain(searched, frame.limits.levels, settings.k)
        drawn.append(list(_values(found, frame, rng)))
    for each in zip(*drawn, strict=True):
        measure, parameters, *_ = each[0]
        bounds = sum(bool(reason) and np.isfinite(value) for _, _, value, reason in each)
        reason = f"{bounds} of {len(each)} subsamples have a bound only" if bounds else ""
        yield Draws(group, measure, parameters, np.array([value for _, _, value, _ in each]), reason)


def _values(found: Explained, frame: Frame, rng: np.random.Generator) -> Iterator[Said]:
    """Every measure of a whole group by name and parameters, always in the same order."""
    for t in _of_group(found, frame):
        yield t.measure, t.parameters, _average(t.values, t.counts), ""
    at = _resampled(found, rng, 0)
    solved = aggregates.solve(found, frame.limits, _once(frame.settings), at, rng)
    for a in _aggregates(found, at, solved, frame):
        yield a.measure, a.parameters, a.value, a.reason


def _once(settings: FgceSettings) -> FgceSettings:
    return settings.model_copy(update={"resolves": 0})


def _average(values: Floats, counts: Longs) -> float:
    """Mean over the units that have a value, as it is printed; NaN if none has."""
    defined = ~np.isnan(values)
    n = int(counts[defined].sum())
    return float(counts[defined] @ values[defined] / n) if n else float("nan")


def _findings(explained: list[Explained]) -> Findings:
    """One entry per factual row of any group, by row."""
    row = np.concatenate([found.searched.factuals for found in explained])
    cost = np.concatenate([found.cheapest for found in explained])
    subgroup = np.concatenate([found.searched.subgroup[found.searched.at] for found in explained])
    reason = np.concatenate([np.full(len(found.cheapest), _reason(found)) for found in explained])
    order = np.argsort(row)
    return Findings(
        row=row[order],
        subgroup=subgroup[order],
        verdict=np.where(np.isnan(cost), "infeasible", "feasible")[order],
        statistic=cost[order],
        refusal=np.where(np.isnan(cost), reason, "")[order],
    )


def _reason(found: Explained) -> str:
    """Why a factual of this group has no counterfactual, where it has none."""
    return str(Refusal.NO_FEASIBLE_PATH if (found.searched.candidate >= 0).any() else Refusal.NO_CANDIDATE)


def _evidence(explained: list[Explained]) -> Evidence:
    """Pairs of a factual row and a candidate row: the cheapest, then the assigned one. Ranks count from 1."""
    found_pairs = []
    for found in explained:
        assigned, rank = pairs.nearest(found.paid)
        for role, node, place, cost in (
            (CHEAPEST, found.choice, np.zeros_like(rank), found.cheapest),
            (ASSIGNED, np.append(found.picks, -1)[rank], rank, assigned),
        ):
            has = node >= 0
            row, other = found.searched.factuals[has], found.searched.candidate[node[has]]
            found_pairs.append((row, np.full(len(row), role), place[has] + 1, other, cost[has]))
    row, roles, rank, other, value = (np.concatenate(column) for column in zip(*found_pairs, strict=True))
    order = np.lexsort((roles == ASSIGNED, row))
    return Evidence(row[order], roles[order], rank[order].astype(np.int32), other[order], value[order])
