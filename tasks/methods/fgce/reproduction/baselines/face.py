"""Mean cost of FGCE's counterfactuals beside everyone's own optimum, by k (Figures 4 and 8).

FACE (Poyiadzi, Sokol, Santos-Rodriguez, De Bie and Flach 2020) gives each factual the candidate of least cost that a
feasible path leads to. FGCE gives a group k candidates: the coverage-constrained optimum (FGCE, section IV) over all
rows that k candidates can cover, since the paper does not print the share that it asked for. Both groups are explained
together, and candidates are chosen by the cost that is drawn.

Scope: means and their ratio. Paths and densities: ``tasks.methods.fgce.algorithm.costs``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.methods.fgce.algorithm.covering.least_cost import Search, search
from tasks.methods.fgce.algorithm.covering.max_cover import max_cover
from tasks.methods.fgce.algorithm.covering.problem import Part, Pick
from tasks.methods.fgce.algorithm.covering.solver import Solver
from tasks.numerics.arrays import Bools, Floats
from tasks.proof.drawings import Drawing, curves
from tasks.proof.lines import ALL, Cell, Value

FGCE_MEAN, FACE_MEAN, RATIO = "mean_cost", "mean_cost_face", "mean_cost_over_face"
COVERED = "rows_covered"

KINDS = {"vector": "L2 distance", "path": "sum of path weights"}
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
    paid = [_paid(part, number, optimum.picks) for number, part in enumerate(parts)]
    covered = [np.isfinite(each) & (each <= optimum.value) for each in paid]
    own = [part.cost.min(axis=1, initial=np.inf) for part in parts]
    rows = sum(int(part.weight[here].sum()) for part, here in zip(parts, covered, strict=True))
    return Assigned(k, rows, _mean(paid, parts, covered), _mean(own, parts, covered))


def _paid(part: Part, number: int, picks: Sequence[Pick]) -> Floats:
    """``(f,)`` cost of the cheapest candidate that was picked in a part; ``inf`` where none is feasible."""
    columns = [column for chosen, column in picks if chosen == number]
    paid: Floats = part.cost[:, columns].min(axis=1, initial=np.inf)
    return paid


def _mean(costs: Sequence[Floats], parts: Sequence[Part], covered: Sequence[Bools]) -> float:
    """Mean over covered factual rows."""
    paid = np.concatenate([cost[here] for cost, here in zip(costs, covered, strict=True)])
    rows = np.concatenate([part.weight[here] for part, here in zip(parts, covered, strict=True)])
    return float(np.average(paid, weights=rows)) if len(paid) else float("nan")


def cells(found: Mapping[str, Sequence[Assigned]]) -> Iterator[tuple[Cell, Value]]:
    """Yields the means and their ratio; ``found`` is by kind of cost."""
    for kind, by_number in found.items():
        for each in by_number:
            said = {COVERED: each.rows, FGCE_MEAN: each.fgce, FACE_MEAN: each.face, RATIO: each.ratio}
            yield from ((Cell(quantity, ALL, (kind, float(each.k))), float(value)) for quantity, value in said.items())


def drawings(found: Mapping[str, Sequence[Assigned]]) -> tuple[Drawing, ...]:
    """The figure of the paper, each curve divided by its maximum, and the ratio that this hides."""
    kinds = {kind: by_number for kind, by_number in found.items() if by_number}
    if not kinds:
        return ()
    ks = [float(each.k) for each in next(iter(kinds.values()))]
    scaled, ratios = {}, {}
    for kind, by_number in kinds.items():
        scaled[f"FGCE, {KINDS[kind]}"] = _scaled([each.fgce for each in by_number])
        scaled[f"FACE, {KINDS[kind]}"] = _scaled([each.face for each in by_number])
        ratios[KINDS[kind]] = [each.ratio for each in by_number]
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
