"""Feasible group counterfactual explanations (FGCE; Fragkathoulas, Papanikou, Pitoura and Terzi): the method.

For every group: which of its unfavourable decisions have a feasible counterfactual inside the group, how dear the
cheapest one is, and how many are covered by k of them. Everything is then recomputed on the reference group, subsampled
to the size of each other group: a small group has fewer candidates and a thinner graph, and that alone makes its
factuals look worse off (specs, 'Epsilon and size'; the paper does not do this).

Limits on cost follow the paper's grid: from 0.1 up to, and short of, the square root of the number of features, in
steps of a tenth of the way rounded to 0.1. A change of category costs sqrt(2), so that feasible costs may exceed that
end; what is said of k alone (``coverage_at_k``, ``burden_at_k``) is therefore said without any limit on cost.

Here belongs the order of the method. Its parts are in ``reachability`` and ``selection``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.methods import FgceSettings
from schemas.terms import Refusal
from tasks.algorithms import reachability, selection
from tasks.algorithms.detector import Detected, Draws, Evidence, Findings, Floats, Ints, Longs, Problem, Tally

CHEAPEST, ASSIGNED = "cheapest", "assigned"
"""Roles in the evidence: the cheapest feasible candidate, and the nearest of the ``k`` selected."""

SUBGROUPS = 10
"""Subgroups with tallies of their own: those with most factuals."""

_SHARE = np.array([0.0, 1.0])
_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class Explained:
    """What FGCE finds on a set of rows. Node ids are places in ``nodes``."""

    factuals: Longs
    """``(f,)`` rows to explain, ascending."""
    at: Longs
    """``(f,)`` node of each."""
    subgroup: Ints
    """``(m,)`` subgroup of each node: 1, 2, ... by falling number of factual rows, 0 where a component has none."""
    candidate: Longs
    """``(m,)`` smallest candidate row at each node, -1 where there is none."""
    cheapest: Floats
    """``(m,)`` cost of the cheapest feasible candidate of a factual node, NaN where there is none."""
    choice: Longs
    """``(m,)`` its node, or -1."""
    assigned: Floats
    """``(m,)`` cost of the nearest selected candidate, without limit on cost, NaN where there is none."""
    rank: Longs
    """``(m,)`` its place in the order of selection, from 0, or -1."""
    selected: selection.Selection


def detect(problem: Problem, settings: FgceSettings, rng: np.random.Generator) -> Detected:
    """Explain every group's factuals, and redraw the reference group at every other group's size.

    Args:
        problem: One decision maker and one protected attribute.
        settings: ``k`` and ``size_matched_draws`` are used here; the rest shaped the graph and the problem.
        rng: One child generator is spawned per group, so that a group's draws do not depend on the other groups.

    Returns:
        Findings and evidence by ascending row. A group without factuals has neither tallies nor findings. Draws repeat
        every tally of the whole group, as its mean, for groups smaller than the reference group.
    """
    grid = cost_grid(problem)
    members = [np.flatnonzero(problem.group == group) for group in range(len(problem.groups))]
    explained = [explain(problem, rows, grid, settings.k) for rows in members]
    tallies = [tally for group, found in enumerate(explained) for tally in _tallies(group, found, grid)]
    draws: list[Draws] = []
    for group, child in enumerate(rng.spawn(len(members))):
        if group != problem.reference:
            draws += _draws(problem, members[problem.reference], group, len(members[group]), settings, child)
    return Detected(_findings(explained), _evidence(explained), tuple(tallies), tuple(draws))


def cost_grid(problem: Problem) -> Floats:
    """The paper's limits on cost: 0.1, ... below D = sqrt(features), a one-hot set counted once."""
    end = float(np.sqrt(len(np.unique(problem.feature_of_column))))
    step = max(round((end - 0.1) / 10, 1), 0.1)
    return np.round(np.arange(0.1, end, step), 10)


def explain(problem: Problem, rows: Longs, grid: Floats, k: int) -> Explained:
    """Run FGCE on some rows of one group: their induced graph, reach, prices and selection.

    ``rows`` ``(r,)`` are ascending; ``grid`` holds the limits on cost; at most ``k`` candidates are selected.
    """
    nodes, first, local = np.unique(problem.node[rows].astype(np.int64), return_index=True, return_inverse=True)
    points = problem.encoded[rows[first]]
    factual, candidates = problem.factual[rows], np.flatnonzero(problem.candidate[rows])
    weight = np.bincount(local[factual], minlength=len(nodes)).astype(np.int64)
    candidate = np.full(len(nodes), -1, dtype=np.int64)
    candidate[local[candidates[::-1]]] = rows[candidates[::-1]]  # the smallest row is written last
    reach = reachability.reachable(reachability.induced(problem.graph, nodes), weight > 0, candidate >= 0)
    offers = selection.price(reach, points, weight, grid)
    selected = selection.greedy(offers, k)
    assigned, rank = selection.assign(offers, points, selected.picks[-1])
    return Explained(
        factuals=rows[factual],
        at=local[factual],
        subgroup=_number(reach.component, weight),
        candidate=candidate,
        cheapest=_spread(offers.cheapest, offers.factual, len(nodes), np.nan),
        choice=_spread(offers.choice, offers.factual, len(nodes), -1),
        assigned=_spread(assigned, offers.factual, len(nodes), np.nan),
        rank=_spread(rank, offers.factual, len(nodes), -1),
        selected=selected,
    )


def _spread(values: NDArray[_Scalar], nodes: Longs, size: int, missing: float) -> NDArray[_Scalar]:
    """Values of some nodes as an array over all of them."""
    out = np.full(size, missing, dtype=values.dtype)
    out[nodes] = values
    return out


def _number(component: Ints, weight: Longs) -> Ints:
    """Number components from 1 by falling number of factual rows, then by smallest node; 0 without factuals."""
    labels, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    rows = np.bincount(inverse, weight, minlength=len(labels))
    order = np.lexsort((first, -rows))
    number = np.empty(len(labels), dtype=np.int32)
    number[order] = np.arange(1, len(labels) + 1)
    return np.where(rows > 0, number, 0).astype(np.int32)[inverse]


def statistics(found: Explained, grid: Floats) -> Iterator[Tally]:
    """Every statistic of a whole group, always the same ones in the same order; the group's number is still open."""
    n, k = len(found.factuals), found.selected.picks.shape[1]
    yield from _costs(found.cheapest[found.at])
    yield Tally(0, 0, "burden_at_k", {"k": k}, *_distribution(found.assigned[found.at]), True)
    refused = int(np.isnan(found.cheapest[found.at]).sum())
    for chosen in range(1, k + 1):
        *by_limit, free = found.selected.covered[:, chosen - 1].tolist()
        yield _share("coverage_at_k", {"k": chosen}, free, n, headline=chosen == k)
        for limit, covered in zip(grid.tolist(), by_limit, strict=True):
            at = {"k": chosen, "d": round(limit, 10)}
            yield _share("coverage", at | {"denominator": "all"}, covered, n)
            yield _share("coverage", at | {"denominator": "feasible"}, covered, n - refused, undefined=refused)


def _costs(costs: Floats) -> Iterator[Tally]:
    """Share of factual rows without a feasible counterfactual, and the cost of the cheapest one of the others."""
    yield _share("infeasible_share", {}, int(np.isnan(costs).sum()), len(costs), headline=True)
    yield Tally(0, 0, "burden", {}, *_distribution(costs), True)


def _share(
    measure: str, parameters: Mapping[str, float | str], yes: int, n: int, undefined: int = 0, headline: bool = False
) -> Tally:
    """A share as a distribution of 0 and 1, and of NaN over the ``undefined`` rows on which it says nothing."""
    if not undefined:
        return Tally(0, 0, measure, parameters, _SHARE, np.array([n - yes, yes]), headline)
    return Tally(0, 0, measure, parameters, np.append(_SHARE, np.nan), np.array([n - yes, yes, undefined]), headline)


def _distribution(values: Floats) -> tuple[Floats, Longs]:
    """Distinct values, NaN last, and their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts.astype(np.int64)


def _tallies(group: int, found: Explained, grid: Floats) -> Iterator[Tally]:
    """Tallies of a group and of its largest subgroups."""
    if not len(found.factuals):
        return
    for each in statistics(found, grid):
        yield replace(each, group=group)
    of_row = found.subgroup[found.at]
    for subgroup in range(1, min(int(of_row.max()), SUBGROUPS) + 1):
        for each in _costs(found.cheapest[found.at[of_row == subgroup]]):
            yield replace(each, group=group, subgroup=subgroup, headline=False)
        inside = found.subgroup == subgroup
        sizes = {"component_nodes": inside.sum(), "component_candidates": (inside & (found.candidate >= 0)).sum()}
        for measure, size in sizes.items():
            # every node is a unit whose component has that size: the mean is the size, and n is the size too
            yield Tally(group, subgroup, measure, {}, np.array([float(size)]), np.array([size]), False)


def _draws(
    problem: Problem, reference: Longs, group: int, size: int, settings: FgceSettings, rng: np.random.Generator
) -> list[Draws]:
    """Every statistic on ``size`` rows of the reference group, drawn without replacement, draw by draw."""
    if not 0 < size < len(reference) or not settings.size_matched_draws:
        return []
    grid, drawn = cost_grid(problem), []
    for _ in range(settings.size_matched_draws):
        rows = np.sort(rng.choice(reference, size, replace=False))
        drawn.append(list(statistics(explain(problem, rows, grid, settings.k), grid)))
    return [
        Draws(group, each[0].measure, each[0].parameters, np.array([_mean(one.values, one.counts) for one in each]))
        for each in zip(*drawn, strict=True)
    ]


def _mean(values: Floats, counts: Longs) -> float:
    """Mean over the units that have a value, as it is printed; NaN if none has."""
    defined = ~np.isnan(values)
    n = int(counts[defined].sum())
    return float(counts[defined] @ values[defined] / n) if n else float("nan")


def _findings(explained: list[Explained]) -> Findings:
    """One entry per factual row of any group, by row."""
    row = np.concatenate([found.factuals for found in explained])
    cost = np.concatenate([found.cheapest[found.at] for found in explained])
    reason = np.concatenate([np.full(len(found.at), _reason(found)) for found in explained])
    order = np.argsort(row)
    return Findings(
        row=row[order],
        subgroup=np.concatenate([found.subgroup[found.at] for found in explained])[order],
        verdict=np.where(np.isnan(cost), "infeasible", "feasible")[order],
        statistic=cost[order],
        refusal=np.where(np.isnan(cost), reason, "")[order],
    )


def _reason(found: Explained) -> str:
    """Why a factual of this group has no counterfactual, where it has none."""
    return str(Refusal.NO_FEASIBLE_PATH if (found.candidate >= 0).any() else Refusal.NO_CANDIDATE)


def _evidence(explained: list[Explained]) -> Evidence:
    """Pairs of a factual row and a candidate row: the cheapest, then the assigned one. Ranks count from 1."""
    pairs = []
    for found in explained:
        picks = np.append(found.selected.picks[-1], -1)
        for role, node, rank, cost in (
            (CHEAPEST, found.choice, np.zeros_like(found.rank), found.cheapest),
            (ASSIGNED, picks[found.rank], found.rank, found.assigned),
        ):
            has = node[found.at] >= 0
            at = found.at[has]
            pairs.append(
                (found.factuals[has], np.full(len(at), role), rank[at] + 1, found.candidate[node[at]], cost[at])
            )
    row, roles, rank, other, value = (np.concatenate(column) for column in zip(*pairs, strict=True))
    order = np.lexsort((roles == ASSIGNED, row))
    return Evidence(row[order], roles[order], rank[order].astype(np.int32), other[order], value[order])
