"""Feasibility of what AReS and GLOBE-CE propose, beside FGCE (Table VI of the paper).

The table is repeated with a rule lifted, with all lifted, and without the limit on a step. Two numbers tell of a
system: the share of false negatives whose decision the proposal changes, and of those to whom a feasible path leads,
too. FGCE selects k = 9 candidates for the share of 0.9 that the paper prints, both groups together.

Scope: cells of the table. Systems: ``tasks.baselines.algorithm.explanations``. Paths: ``algorithm.ablation.proposals``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tasks.baselines.algorithm.explanations.kind import Proposals, Refused
from tasks.feasibility_graph.algorithm import graph as feasibility
from tasks.feasibility_graph.algorithm.graph import IMMUTABLE, Rules
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.methods.fgce.ablate.searches import freed
from tasks.methods.fgce.algorithm import recourse
from tasks.methods.fgce.algorithm.ablation.names import EVERY, NOTHING
from tasks.methods.fgce.algorithm.ablation.proposals import Proposed, possible
from tasks.methods.fgce.algorithm.ablation.rules import Variant
from tasks.methods.fgce.algorithm.costs.distances import Vector, feasible
from tasks.methods.fgce.algorithm.covering.least_cost import search
from tasks.methods.fgce.algorithm.covering.problem import Part, rows_needed
from tasks.methods.fgce.algorithm.covering.solver import Solver
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions.linear import of_safetensors
from tasks.numerics.problem import Problem
from tasks.proof.lines import Cell, Value

VALID, VALID_COST, EXPLANATIONS = "valid_share", "valid_mean_cost", "explanations"
FEASIBLE, FEASIBLE_COST = "feasible_share", "feasible_mean_cost"

LEAST, LARGEST = "least_feasible_share", "largest_feasible_share"
"""Of several draws."""

FGCE = "FGCE"
K, SHARE = 9, 0.9
"""Candidates and share of the false negatives, as Table VI prints them for COMPAS."""

NO_EPSILON = "none"
"""Stands for the limit on a step where there is none."""


@dataclass(frozen=True)
class Relaxed:
    """The rules with some lifted, at one limit on a step."""

    epsilon: str
    """As the table writes it: a number, or ``none``."""
    removed: str
    variant: Variant
    encodings: pa.Table
    strata: Ints
    """``(n, s)`` of the rows; without a column where every rule is lifted."""

    @property
    def at(self) -> tuple[Value, ...]:
        """What its cells are at."""
        return self.epsilon, self.removed


@dataclass(frozen=True)
class Asked:
    """False negatives of both groups, and the graph's material."""

    problem: Problem
    tables: Mapping[str, pa.Table]
    settings: FgceSettings

    @property
    def epsilon(self) -> float:
        """Radius of one step, as the paper gives it.

        Raises:
            ValueError: The settings have a rule for it instead.
        """
        if not isinstance(self.settings.epsilon, float):
            raise ValueError(f"epsilon is {self.settings.epsilon}; expected a number, as the paper has one")
        return self.settings.epsilon

    @property
    def factuals(self) -> Longs:
        """``(f,)`` rows to explain."""
        return np.flatnonzero(self.problem.factual)

    def refused(self, rules: Rules) -> Refused:
        """The false negatives, as a system is given them."""
        model = of_safetensors(self.tables["models"]["content"][0].as_py())
        return Refused(
            self.problem.encoded[self.factuals],
            self.problem.encoded,
            self.problem.feature_of_column.astype(np.int32),
            model.logit,
            rules.direction.astype(np.int32),
        )

    def relaxed(self, lifted: Mapping[str, Sequence[str]]) -> Iterator[Relaxed]:
        """The rules as they are, with each of ``lifted`` removed, and with all removed; with and without epsilon."""
        features = self.tables["features"]["row_id"].to_pylist()
        strata = strata_of(features, self.tables["memberships"])
        names = {NOTHING: (), **lifted, EVERY: self.problem.features}
        for epsilon in (self.epsilon, math.inf):
            for removed, columns in names.items():
                encodings = freed(self.tables["encodings"], columns)
                rules, codes = rules_of(self.problem.encoded, encodings)
                own = strata[:, :0] if removed == EVERY else strata
                said = f"{epsilon:g}" if math.isfinite(epsilon) else NO_EPSILON
                yield Relaxed(said, removed, Variant(removed, rules, codes, epsilon), encodings, own)


def proposed_cells(
    name: str, found: Proposals, asked: Asked, relaxed: Sequence[Relaxed]
) -> Iterator[tuple[Cell, Value]]:
    """Yields the cells of one system's proposals: validity, and what is possible under each set of rules."""
    yield Cell(VALID, name), float(found.valid.mean())
    yield Cell(VALID_COST, name), _mean(found.cost[found.valid])
    yield Cell(EXPLANATIONS, name), float(found.explanations)
    for each in relaxed:
        served = _served(found, asked, each)
        yield Cell(FEASIBLE, name, each.at), float(served.mean())
        yield Cell(FEASIBLE_COST, name, each.at), _mean(found.cost[served])


def drawn_cells(name: str, drawn: Sequence[Proposals], asked: Asked, relaxed: Relaxed) -> Iterator[tuple[Cell, Value]]:
    """Yields the least and the largest feasible share of several draws of one system: how far chance decides."""
    shares = [float(_served(found, asked, relaxed).mean()) for found in drawn]
    yield Cell(LEAST, name, relaxed.at), min(shares)
    yield Cell(LARGEST, name, relaxed.at), max(shares)


def _served(found: Proposals, asked: Asked, relaxed: Relaxed) -> Bools:
    """``(f,)`` whose proposal changes the decision, and is possible."""
    return found.valid & possible(_joined(found, asked, relaxed), _over(found, asked, relaxed), asked.settings)


def _joined(found: Proposals, asked: Asked, relaxed: Relaxed) -> Proposed:
    """The proposals among the rows, in the strata of their applicants: a rule of its own keeps the attribute fixed."""
    rows = asked.factuals
    encoded = np.vstack([asked.problem.encoded, found.point])
    return Proposed(encoded, np.vstack([relaxed.strata, relaxed.strata[rows]]), rows)


def _over(found: Proposals, asked: Asked, relaxed: Relaxed) -> Variant:
    """The rules with the codes of rows and proposals."""
    rules, codes = rules_of(np.vstack([asked.problem.encoded, found.point]), relaxed.encodings)
    return replace(relaxed.variant, rules=rules, codes=codes)


def fgce_cells(asked: Asked, relaxed: Sequence[Relaxed], solver: Solver) -> Iterator[tuple[Cell, Value]]:
    """Yields coverage and mean cost of FGCE's ``K`` candidates for ``SHARE`` of the false negatives, by the rules."""
    for each in relaxed:
        parts = parts_of(asked, each)
        optimum = search(parts, solver).least(K, rows_needed(SHARE, len(asked.factuals)))
        columns = [[column for part, column in optimum.picks if part == number] for number in range(len(parts))]
        paid = np.concatenate(
            [
                np.repeat(part.cost[:, own].min(axis=1, initial=np.inf), part.weight)
                for part, own in zip(parts, columns, strict=True)
            ]
        )
        served = paid[paid <= optimum.value]
        yield Cell(FEASIBLE, FGCE, each.at), len(served) / len(asked.factuals)
        yield Cell(FEASIBLE_COST, FGCE, each.at), _mean(served)


def parts_of(asked: Asked, relaxed: Relaxed) -> list[Part]:
    """Returns costs of the feasible pairs under some rules, by component; without epsilon in one part."""
    problem, variant = asked.problem, relaxed.variant
    if not math.isfinite(variant.epsilon):
        rows = asked.factuals
        return [Part(_step_costs(problem, relaxed), np.ones(len(rows), np.int64))]
    distinct = feasibility.collapse(problem.encoded, variant.codes, relaxed.strata, variant.rules)
    built = feasibility.build(distinct, variant.rules, variant.epsilon, asked.settings)
    joined = replace(problem, node=distinct.node, graph=built.graph)
    found = recourse.search(joined, np.arange(len(problem.group)), lambda _, points, __: Vector(points))
    return [Part(feasible(found.costs, part), found.weight[part.factuals]) for part in found.reach.active]


def _step_costs(problem: Problem, relaxed: Relaxed) -> Floats:
    """``(f, c)`` L2 distance of each false negative to each candidate, ``inf`` where a rule forbids the step."""
    factual, candidate = np.flatnonzero(problem.factual), np.flatnonzero(problem.candidate)
    delta = problem.encoded[candidate][None] - problem.encoded[factual][:, None]
    direction, codes = relaxed.variant.rules.direction, relaxed.variant.codes
    fixed = direction == IMMUTABLE
    allowed = (delta[..., fixed] == 0).all(axis=2) & (delta[..., ~fixed] * direction[~fixed] >= 0).all(axis=2)
    allowed &= (relaxed.strata[candidate][None] == relaxed.strata[factual][:, None]).all(axis=2)
    for column, moves in relaxed.variant.rules.transitions:
        allowed &= moves[codes[factual, column][:, None], codes[candidate, column][None]]
    return np.where(allowed, np.sqrt((delta**2).sum(axis=2)), np.inf)


def _mean(costs: Floats) -> float:
    return float(costs.mean()) if len(costs) else math.nan
