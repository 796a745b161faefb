"""Draws the figures of the FGCE paper that have no numbers: connectivity, components, and changed attributes.

Scope: points of the curves, and the counts behind them. FACE's curves: ``baselines.face``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tasks.feasibility_graph.algorithm.graph import collapse
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm import recourse
from tasks.methods.fgce.algorithm.ablation import connectivity
from tasks.methods.fgce.algorithm.costs.distances import Vector
from tasks.numerics.arrays import Longs
from tasks.numerics.problem import Problem
from tasks.proof.drawings import MOST_POINTS, Curve, Drawing, curves
from tasks.proof.lines import ALL, Cell, Value

MULTIPLES: Final = (0.25, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Limits on a step to draw, as multiples of the paper's."""

FACTUALS, CANDIDATES, ACTIVE = "factuals_in_component", "candidates_in_component", "active_components"

WORDS: Final = {
    connectivity.COMPONENTS: "weakly connected components",
    connectivity.STRONG_COMPONENTS: "strongly connected components",
    connectivity.SINGLETONS: "singletons",
    connectivity.DENSITY: "density in percent",
}


@dataclass(frozen=True)
class Shown:
    """What the figures of one data set show."""

    found: dict[Cell, Value]
    drawings: tuple[Drawing, ...]


def connected(problem: Problem, tables: Mapping[str, pa.Table], settings: GraphSettings, epsilon: float) -> Shown:
    """Components, singletons and density of each group by the limit on a step (Figures 1 and 5)."""
    rules, codes = rules_of(problem.encoded, tables["encodings"])
    strata = strata_of(tables["features"]["row_id"].to_pylist(), tables["memberships"])
    distinct = collapse(problem.encoded, codes, strata, rules)
    epsilons = [multiple * epsilon for multiple in MULTIPLES]
    graphs = connectivity.connections(connectivity.nested(distinct, rules, epsilons, settings))
    found: dict[Cell, Value] = {}
    for each in connectivity.aggregates(graphs, distinct, problem.group, len(problem.groups), epsilons):
        percent = 100.0 if each.measure == connectivity.DENSITY else 1.0
        at = (round(float(each.parameters["epsilon"]), 6),)
        found[Cell(f"{each.measure}_by_epsilon", problem.groups[each.group], at)] = percent * each.value
    drawn = tuple(_connectivity(found, problem.groups))
    alone = f"{connectivity.SINGLETONS}_by_epsilon"
    last = round(epsilons[-1], 6)
    found[Cell(connectivity.SINGLETONS, ALL)] = sum(float(found[Cell(alone, each, (last,))]) for each in problem.groups)
    return Shown(found, drawn)


def _connectivity(found: Mapping[Cell, Value], groups: Sequence[str]) -> Iterator[Drawing]:
    for measure, words in WORDS.items():
        of_measure = {cell: value for cell, value in found.items() if cell.quantity == f"{measure}_by_epsilon"}
        x = sorted({float(cell.at[0]) for cell in of_measure})
        lines = {
            group: [float(of_measure[Cell(f"{measure}_by_epsilon", group, (each,))]) for each in x] for group in groups
        }
        name = f"{measure.replace('_', '-')}-by-epsilon"
        title = f"{words.capitalize()} of the feasibility graph"
        yield Drawing(name, "Figures 1 and 5", title, "epsilon, in encoded units", words, curves(x, lines))


def components(problem: Problem) -> Shown:
    """Factual and candidate rows in each component that has both, most factuals first (Figures 2 and 6)."""
    found: dict[Cell, Value] = {}
    drawn: list[Curve] = []
    for number, name in enumerate(problem.groups):
        counted = _counted(problem, np.flatnonzero(problem.group == number))
        found[Cell(ACTIVE, name)] = float(len(counted))
        for quantity, values in zip((FACTUALS, CANDIDATES), counted.T, strict=True):
            places = range(1, len(values) + 1)
            found |= {Cell(quantity, name, (float(at),)): float(v) for at, v in zip(places, values, strict=True)}
            if len(values):
                label = f"{name}, {'factuals' if quantity == FACTUALS else 'candidates'}"
                drawn += curves(places[:MOST_POINTS], {label: values[:MOST_POINTS].tolist()})
    title = "Factuals and candidates in each weakly connected component that has both"
    x = "component, most factuals first"
    return Shown(found, (Drawing("rows-by-component", "Figures 2 and 6", title, x, "rows", tuple(drawn)),))


def _counted(problem: Problem, rows: Longs) -> Longs:
    """``(components, 2)`` factual and candidate rows of a group's active components."""
    searched = recourse.search(problem, rows, lambda _, points, __: Vector(points))
    component = searched.reach.component
    nodes = np.unique(problem.node[rows])
    of_row = component[np.searchsorted(nodes, problem.node[rows])]
    size = int(component.max(initial=-1)) + 1
    counts = [np.bincount(of_row[chosen[rows]], minlength=size) for chosen in (problem.factual, problem.candidate)]
    both = np.column_stack(counts)
    both = both[(both > 0).all(axis=1)]
    return both[np.lexsort((-both[:, 1], -both[:, 0]))].astype(np.int64)


def changed(found: Mapping[Cell, Value], problem: Problem) -> Shown:
    """Share of the covered rows whose attribute changes, a place for each attribute (Figures 3 and 7).

    As in the paper, attributes are left out that change for at most half of the rows of every group.
    """
    shares = {
        name: [float(found[Cell("acf", group, (name,))]) for group in problem.groups] for name in problem.features
    }
    kept = {name: values for name, values in shares.items() if max(values) > 0.5}
    if not kept:
        return Shown({}, ())
    words = ", ".join(f"{at} {name}" for at, name in enumerate(kept, start=1))
    lines = {group: [values[number] for values in kept.values()] for number, group in enumerate(problem.groups)}
    title = "Attribute change frequency"
    places = curves(range(1, len(kept) + 1), lines)
    return Shown({}, (Drawing("attribute-change-frequency", "Figures 3 and 7", title, words, "share of rows", places),))
