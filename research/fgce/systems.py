"""Systems that FGCE is compared with: FACE, AReS, GLOBE-CE."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from research.fgce.group_explanations import EXPLANATIONS, GlobeCe, Proposals, Refused
from research.figures import ALL, Cell, Drawing, Value, curves
from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.algorithm import IMMUTABLE, Rules
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.methods.fgce.ablate.searches import freed
from tasks.methods.fgce.algorithm import optima, recourse
from tasks.methods.fgce.algorithm.ablation import Proposed, Variant, possible
from tasks.methods.fgce.algorithm.costs import Vector, feasible
from tasks.methods.fgce.algorithm.covering import Part, max_cover, rows_needed
from tasks.methods.fgce.algorithm.optima import Search, search
from tasks.methods.fgce.algorithm.recourse import Pricing
from tasks.methods.fgce.algorithm.solver import Solver
from tasks.methods.fgce.settings import EVERY, NOTHING, FgceSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import of_safetensors
from tasks.numerics.problem import Problem

# --------------------------------------------------------------------------------------------------------------------
# Compares the mean cost of FGCE's counterfactuals with each row's own optimum, by k (Figures 4 and 8).
#
# FACE (Poyiadzi, Sokol, Santos-Rodriguez, De Bie and Flach 2020) gives each factual the candidate of least cost that a
# feasible path leads to. FGCE gives a group k candidates: the coverage-constrained optimum (FGCE, section IV) over all
# rows that k candidates can cover, since the paper does not print the share that it asked for. Both groups are
# explained together, and candidates are chosen by the cost that is drawn.
#
# Scope: means and their ratio. Paths and densities: ``tasks.methods.fgce.algorithm.costs``.


FGCE_MEAN, FACE_MEAN, RATIO = "mean_cost", "mean_cost_face", "mean_cost_over_face"
COVERED = "rows_covered"

Kind = Literal["vector", "path"]

KINDS: Final[Mapping[Kind, str]] = {"vector": "L2 distance", "path": "sum of path weights"}
"""Costs that are compared, and what the drawings call them."""


@dataclass(frozen=True)
class Assigned:
    """What covered factual rows pay under one selection."""

    k: int
    rows: int
    """Factual rows that are covered."""
    fgce: float
    """Mean cost of the cheapest selected candidate, over the covered rows."""
    face: float
    """Mean cost of the same rows' own optimum."""

    @property
    def ratio(self) -> float:
        """The first mean over the second; 1 where both are 0."""
        return 1.0 if self.fgce == self.face else float(np.divide(self.fgce, self.face))


def by_k(parts: Sequence[Part], ks: Sequence[int], solver: Solver) -> list[Assigned]:
    """Means for every k.

    Args:
        parts: Costs of the components with factual rows, in units of the cost.
        ks: Candidates of a selection.
        solver: Of integer programmes.

    Raises:
        InfrastructureError: If the solver is not installed.
    """
    table = search(parts, solver)
    return [_assigned(table, parts, k, solver) for k in ks] if table.rows else []


def _assigned(table: Search, parts: Sequence[Part], k: int, solver: Solver) -> Assigned:
    """The selection that covers most rows, at the least largest cost, and what the covered rows pay."""
    need = int(max_cover(parts, k, np.inf, solver).value)
    optimum = table.least(k, need)
    paid = []
    for number, part in enumerate(parts):
        columns = [column for chosen, column in optimum.picks if chosen == number]
        paid.append(part.cost[:, columns].min(axis=1, initial=np.inf))
    covered = [np.isfinite(costs) & (costs <= optimum.value) for costs in paid]
    cheapest = [part.cost.min(axis=1, initial=np.inf) for part in parts]
    rows = sum(int(part.weight[mask].sum()) for part, mask in zip(parts, covered, strict=True))
    return Assigned(k, rows, _mean(paid, parts, covered), _mean(cheapest, parts, covered))


def _mean(costs: Sequence[Floats], parts: Sequence[Part], covered: Sequence[Bools]) -> float:
    """Mean over covered factual rows."""
    paid = np.concatenate([cost[mask] for cost, mask in zip(costs, covered, strict=True)])
    rows = np.concatenate([part.weight[mask] for part, mask in zip(parts, covered, strict=True)])
    return float(np.average(paid, weights=rows)) if len(paid) else float("nan")


def cells(assignments: Mapping[Kind, Sequence[Assigned]]) -> Iterator[tuple[Cell, Value]]:
    """Yields the means and their ratio; ``assignments`` is by kind of cost."""
    for kind, by_number in assignments.items():
        for assignment in by_number:
            quantities = {
                COVERED: assignment.rows,
                FGCE_MEAN: assignment.fgce,
                FACE_MEAN: assignment.face,
                RATIO: assignment.ratio,
            }
            yield from (
                (Cell(quantity, ALL, (kind, float(assignment.k))), float(value))
                for quantity, value in quantities.items()
            )


def face_drawings(assignments: Mapping[Kind, Sequence[Assigned]]) -> tuple[Drawing, ...]:
    """The figure of the paper, each curve divided by its maximum, and the ratio that this hides."""
    kinds = {kind: by_number for kind, by_number in assignments.items() if by_number}
    if not kinds:
        return ()
    ks = [float(assignment.k) for assignment in next(iter(kinds.values()))]
    scaled, ratios = {}, {}
    for kind, by_number in kinds.items():
        scaled[f"FGCE, {KINDS[kind]}"] = _scaled([assignment.fgce for assignment in by_number])
        scaled[f"FACE, {KINDS[kind]}"] = _scaled([assignment.face for assignment in by_number])
        ratios[KINDS[kind]] = [assignment.ratio for assignment in by_number]
    title = "Mean cost of FGCE's candidates and of everyone's own optimum (FACE)"
    x, y = "candidates k", "mean cost, as a share of the curve's largest"
    return (
        Drawing("fgce-and-face-by-k", "Figures 4 and 8", title, x, y, curves(ks, scaled)),
        Drawing(
            "fgce-over-face-by-k", "Figures 4 and 8", f"{title}: ratio", x, "ratio of the means", curves(ks, ratios)
        ),
    )


def _scaled(values: Sequence[float]) -> list[float]:
    """Values as shares of the largest; 0 where all are 0."""
    most = max(values)
    return [value / most if most else 0.0 for value in values]


# --------------------------------------------------------------------------------------------------------------------
# Compares the feasibility of AReS and GLOBE-CE proposals with FGCE (Table VI of the paper).
#
# The table is repeated with a rule lifted, with all lifted, and without the limit on a step. Two numbers describe a
# system: the share of false negatives whose decision the proposal changes, and of those to whom a feasible path leads,
# too. FGCE selects as many candidates, for the share, as the paper prints, both groups together.
#
# Scope: cells of the table. Systems: ``research.fgce.group_explanations``. Paths: ``algorithm.ablation.proposals``.


VALID, VALID_COST, GROUP_EXPLANATIONS_EXPLANATIONS = "valid_share", "valid_mean_cost", "explanations"
FEASIBLE, FEASIBLE_COST = "feasible_share", "feasible_mean_cost"

LEAST, LARGEST = "least_feasible_share", "largest_feasible_share"
"""Of several draws."""

FGCE = "FGCE"
PRINTED: Final[Mapping[str, tuple[int, float]]] = {"compas": (9, 0.9), "student": (5, 0.8)}
"""Candidates and share of the false negatives, as Table VI prints them."""

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
class Request:
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
                stratum_columns = strata[:, :0] if removed == EVERY else strata
                epsilon_label = f"{epsilon:g}" if math.isfinite(epsilon) else NO_EPSILON
                yield Relaxed(
                    epsilon_label, removed, Variant(removed, rules, codes, epsilon), encodings, stratum_columns
                )


def proposed_cells(
    name: str, proposals: Proposals, request: Request, relaxed: Sequence[Relaxed]
) -> Iterator[tuple[Cell, Value]]:
    """Yields the cells of one system's proposals: validity, and what is possible under each set of rules."""
    yield Cell(VALID, name), float(proposals.valid.mean())
    yield Cell(VALID_COST, name), _group_explanations_mean(proposals.cost[proposals.valid])
    yield Cell(GROUP_EXPLANATIONS_EXPLANATIONS, name), float(proposals.explanations)
    for relaxation in relaxed:
        served = _served(proposals, request, relaxation)
        yield Cell(FEASIBLE, name, relaxation.at), float(served.mean())
        yield Cell(FEASIBLE_COST, name, relaxation.at), _group_explanations_mean(proposals.cost[served])


def drawn_cells(
    name: str, draws: Sequence[Proposals], request: Request, relaxed: Relaxed
) -> Iterator[tuple[Cell, Value]]:
    """Yields the least and the largest feasible share of several draws of one system: how far chance decides."""
    shares = [float(_served(proposals, request, relaxed).mean()) for proposals in draws]
    yield Cell(LEAST, name, relaxed.at), min(shares)
    yield Cell(LARGEST, name, relaxed.at), max(shares)


def _served(proposals: Proposals, request: Request, relaxed: Relaxed) -> Bools:
    """``(f,)`` whether the proposal changes the decision, and is possible.

    Proposals are in the strata of their applicants: a rule of its own keeps the attribute fixed.
    """
    rows = request.factuals
    encoded = np.vstack([request.problem.encoded, proposals.point])
    proposed = Proposed(encoded, np.vstack([relaxed.strata, relaxed.strata[rows]]), rows)
    rules, codes = rules_of(encoded, relaxed.encodings)
    variant = replace(relaxed.variant, rules=rules, codes=codes)
    return proposals.valid & possible(proposed, variant, request.settings)


def fgce_cells(
    request: Request, relaxed: Sequence[Relaxed], k: int, share: float, solver: Solver
) -> Iterator[tuple[Cell, Value]]:
    """Yields coverage and mean cost of FGCE's ``k`` candidates for a share of the false negatives, by the rules."""
    for relaxation in relaxed:
        parts = parts_of(request, relaxation)
        optimum = search(parts, solver).least(k, rows_needed(share, len(request.factuals)))
        columns = [[column for part, column in optimum.picks if part == number] for number in range(len(parts))]
        paid = np.concatenate(
            [
                np.repeat(part.cost[:, pick_columns].min(axis=1, initial=np.inf), part.weight)
                for part, pick_columns in zip(parts, columns, strict=True)
            ]
        )
        served = paid[paid <= optimum.value]
        yield Cell(FEASIBLE, FGCE, relaxation.at), len(served) / len(request.factuals)
        yield Cell(FEASIBLE_COST, FGCE, relaxation.at), _group_explanations_mean(served)


def parts_of(request: Request, relaxed: Relaxed) -> list[Part]:
    """Returns costs of the feasible pairs under some rules, by component; without epsilon in one part."""
    problem, variant = request.problem, relaxed.variant
    if not math.isfinite(variant.epsilon):
        factual, candidate = request.factuals, np.flatnonzero(problem.candidate)
        delta = problem.encoded[candidate][None] - problem.encoded[factual][:, None]
        direction, codes = variant.rules.direction, variant.codes
        fixed = direction == IMMUTABLE
        allowed = (delta[..., fixed] == 0).all(axis=2) & (delta[..., ~fixed] * direction[~fixed] >= 0).all(axis=2)
        allowed &= (relaxed.strata[candidate][None] == relaxed.strata[factual][:, None]).all(axis=2)
        for column, moves in variant.rules.transitions:
            allowed &= moves[codes[factual, column][:, None], codes[candidate, column][None]]
        costs = np.where(allowed, np.sqrt((delta**2).sum(axis=2)), np.inf)
        return [Part(costs, np.ones(len(factual), np.int64))]
    distinct = feasibility.collapse(problem.encoded, variant.codes, relaxed.strata, variant.rules)
    built = feasibility.build(distinct, variant.rules, variant.epsilon, request.settings)
    joined = replace(problem, node=distinct.node, graph=built.graph)
    search_result = recourse.search(joined, np.arange(len(problem.group)), lambda _, points, __: Vector(points))
    return [
        Part(feasible(search_result.costs, part), search_result.weight[part.factuals])
        for part in search_result.reach.active
    ]


def _group_explanations_mean(costs: Floats) -> float:
    return float(costs.mean()) if len(costs) else math.nan


# --------------------------------------------------------------------------------------------------------------------
# Runs the systems that FGCE is compared with on one data set: cells and drawings.
#
# Scope: which system, on which data set. Cells: ``face`` and ``group_explanations``.


FACE: Final = "face"
NAMES: Final[Mapping[str, str]] = {
    "ares": "AReS",
    "globe_ce": "GLOBE-CE",
    "globe_ce_told": "GLOBE-CE, told the rules",
    "globe_ce_dense": "GLOBE-CE, every feature",
}
"""Systems of the registry, as the table names them."""

KNOWN: Final = (FACE, *NAMES)

KS: Final = range(1, 13)
"""Numbers of candidates for which FACE is compared; 12 is k0 of COMPAS, both groups together."""

SEEDS: Final = 10
"""Draws of each system for the least and the largest feasible share."""

LIFTED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "compas": {"age": ("age",), "prc": ("priors_count",)},
    "student": {"age": ("age",), "health": ("health",)},
}
"""By data set the rules that Table VI removes, by the table's names."""


@dataclass(frozen=True)
class Systems:
    """What is run, and at which size."""

    chosen: frozenset[str]
    """Names of ``KNOWN``."""
    translations: int
    """Directions that GLOBE-CE draws."""
    seed: int
    kinds: Sequence[Kind] = tuple(KINDS)
    """Costs by which FGCE and FACE are compared."""


def obtained(dataset: str, request: Request, systems: Systems) -> tuple[dict[Cell, Value], tuple[Drawing, ...]]:
    """Returns the cells of the chosen systems and of FGCE, and the drawings."""
    values: dict[Cell, Value] = {}
    drawings: tuple[Drawing, ...] = ()
    if FACE in systems.chosen:
        problem, settings = request.problem, request.settings
        pricing = Pricing(problem, settings, np.random.default_rng(systems.seed))
        searched = recourse.search(problem, np.arange(len(problem.group)), pricing.costs)
        by_kind: dict[Kind, list[Assigned]] = {}
        for kind in systems.kinds:
            costs = pricing.by(kind, searched.graph, searched.points, searched.reach)
            tables = [(part.factuals, feasible(costs, part)) for part in searched.reach.active]
            by_kind[kind] = by_k(optima.parts_of(tables, searched.weight), KS, optima.solver_of(settings))
        values |= dict(cells(by_kind))
        drawings = face_drawings(by_kind)
    if dataset in LIFTED:
        values |= dict(_table(request, systems, list(request.relaxed(LIFTED[dataset])), PRINTED[dataset]))
    return values, drawings


def _table(
    request: Request, systems: Systems, relaxed: Sequence[Relaxed], printed: tuple[int, float]
) -> Iterator[tuple[Cell, Value]]:
    """Cells of Table VI: of the chosen systems, and of FGCE."""
    chosen = [name for name in NAMES if name in systems.chosen]
    if not chosen:
        return
    audit_rules = next(relaxation for relaxation in relaxed if relaxation.removed == NOTHING)
    for name in chosen:
        proposals = _proposals(name, request, systems, audit_rules)
        yield from proposed_cells(NAMES[name], proposals, request, relaxed)
        draws = [_proposals(name, request, replace(systems, seed=seed), audit_rules) for seed in range(SEEDS)]
        yield from drawn_cells(NAMES[name], draws, request, audit_rules)
    yield from fgce_cells(request, relaxed, *printed, optima.solver_of(request.settings))


def _proposals(name: str, request: Request, systems: Systems, audit_rules: Relaxed) -> Proposals:
    """The proposals of a system; one that uses the rules gets those of the audit, with none lifted."""
    system = EXPLANATIONS[name]
    if isinstance(system, GlobeCe):
        system = replace(system, translations=systems.translations)
    return system(request.refused(audit_rules.variant.rules), np.random.default_rng(systems.seed))
