"""Runs the systems that FGCE is compared with on one data set: cells and drawings.

Scope: which system, on which data set. Cells: ``face`` and ``group_explanations``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tasks.baselines.algorithm.explanations.globe_ce import GlobeCe
from tasks.baselines.algorithm.explanations.kind import Proposals
from tasks.baselines.algorithm.explanations.registry import EXPLANATIONS
from tasks.methods.fgce.algorithm import optima, recourse
from tasks.methods.fgce.algorithm.ablation.names import NOTHING
from tasks.methods.fgce.algorithm.costs.distances import feasible
from tasks.methods.fgce.algorithm.pricing import Pricing
from tasks.methods.fgce.reproduction.baselines import face, group_explanations
from tasks.methods.fgce.reproduction.baselines.group_explanations import Asked, Relaxed
from tasks.proof.drawings import Drawing
from tasks.proof.lines import Cell, Value

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

PATHS: Final = frozenset({"german", "compas"})
"""Data sets with path costs: the weights of Adult's 3.3 million steps take a kernel sum over 40,704 points each."""

SEEDS: Final = 10
"""Draws of each system whose least and largest feasible share is told."""

LIFTED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {"compas": {"age": ("age",), "prc": ("priors_count",)}}
"""By data set the rules that Table VI removes, by the table's names."""


@dataclass(frozen=True)
class Systems:
    """What is run, and at which size."""

    chosen: frozenset[str]
    """Names of ``KNOWN``."""
    translations: int
    """Directions that GLOBE-CE draws."""
    seed: int


def obtained(dataset: str, asked: Asked, systems: Systems) -> tuple[dict[Cell, Value], tuple[Drawing, ...]]:
    """Returns the cells of the chosen systems and of FGCE beside them, and the drawings."""
    found: dict[Cell, Value] = {}
    drawings: tuple[Drawing, ...] = ()
    if FACE in systems.chosen:
        by_kind = _face(dataset, asked, systems.seed)
        found |= dict(face.cells(by_kind))
        drawings = face.drawings(by_kind)
    if dataset in LIFTED:
        found |= dict(_table(asked, systems, list(asked.relaxed(LIFTED[dataset]))))
    return found, drawings


def _face(dataset: str, asked: Asked, seed: int) -> dict[str, list[face.Assigned]]:
    """Means by k, for each kind of cost."""
    problem, settings = asked.problem, asked.settings
    pricing = Pricing(problem, settings, np.random.default_rng(seed))
    searched = recourse.search(problem, np.arange(len(problem.group)), pricing.costs)
    out = {}
    for kind in ("vector", "path") if dataset in PATHS else ("vector",):
        costs = pricing.by(kind, searched.graph, searched.points, searched.reach)
        tables = [(part.factuals, feasible(costs, part)) for part in searched.reach.active]
        out[kind] = face.by_k(optima.parts_of(tables, searched.weight), KS, optima.solver_of(settings))
    return out


def _table(asked: Asked, systems: Systems, relaxed: Sequence[Relaxed]) -> Iterator[tuple[Cell, Value]]:
    """Cells of Table VI: of the chosen systems, and of FGCE."""
    chosen = [name for name in NAMES if name in systems.chosen]
    if not chosen:
        return
    given = next(each for each in relaxed if each.removed == NOTHING)
    for name in chosen:
        found = _proposals(name, asked, systems, given)
        yield from group_explanations.proposed_cells(NAMES[name], found, asked, relaxed)
        drawn = [_proposals(name, asked, replace(systems, seed=seed), given) for seed in range(SEEDS)]
        yield from group_explanations.drawn_cells(NAMES[name], drawn, asked, given)
    yield from group_explanations.fgce_cells(asked, relaxed, optima.solver_of(asked.settings))


def _proposals(name: str, asked: Asked, systems: Systems, given: Relaxed) -> Proposals:
    """What a system proposes; one that is told the rules is told those of the audit, with none lifted."""
    system = EXPLANATIONS[name]
    if isinstance(system, GlobeCe):
        system = replace(system, translations=systems.translations)
    return system(asked.refused(given.variant.rules), np.random.default_rng(systems.seed))
