"""Computes cells that no table of an audit holds: coverage at the reference's limits, attributes changed at (k, d).

The reference's grid for kAUC begins at 0.7 of a d0 that is cut off to two decimals, ours at 0.7 of d0 itself. Coverage
is therefore also computed at the reference's limits, where it must be equal.

Scope: the problem rebuilt from tables. Selection: ``tasks.methods.fgce.algorithm.recourse``.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from schemas.audit.spec import AuditSpec
from tasks.detection import stage as detect
from tasks.detection.problems import cases as problems
from tasks.methods.fgce.algorithm import optima, recourse
from tasks.methods.fgce.algorithm.pricing import Pricing
from tasks.methods.fgce.algorithm.recourse import Explained, Searched
from tasks.methods.fgce.reproduction import printed_mip
from tasks.methods.fgce.reproduction.golden import PRINTED, Golden
from tasks.methods.fgce.reproduction.obtained import Tables
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Longs
from tasks.numerics.problem import Problem
from tasks.pipeline.given import ProblemTables
from tasks.proof.lines import Cell, Value

SMALL = 5_000
"""Pairs of factual and candidate up to which the programme is solved as the paper prints it."""

SLACK = 1e-9
"""The reference's d is at times the very cost that it is to admit."""


def settings_of(spec: AuditSpec) -> FgceSettings:
    """Returns the settings of FGCE.

    Raises:
        ValueError: The audit spec does not ask for FGCE.
    """
    fgce = spec.methods.of(FgceSettings)
    if fgce is None:
        raise ValueError("the audit spec does not ask for FGCE")
    return fgce


def cells(problem: Problem, spec: AuditSpec, golden: Golden) -> Mapping[Cell, Value]:
    """Computes coverage by k on the reference's grid for kAUC, changes of attributes, and counts of explained rows."""
    fgce = settings_of(spec)
    pricing = Pricing(problem, fgce, np.random.default_rng(spec.seed))
    found: dict[Cell, Value] = {}
    for number, name in enumerate(problem.groups):
        rows = np.flatnonzero(problem.group == number)
        found[Cell("false_negatives", name)] = float(problem.factual[rows].sum())
        found[Cell("candidates", name)] = float(problem.candidate[rows].sum())
        searched = recourse.search(problem, rows, pricing.costs)
        found |= {Cell(quantity, name, at): value for quantity, at, value in _covered(searched, golden.grid, fgce.k)}
        found |= {Cell(quantity, name): value for quantity, value in _printed(searched, fgce)}
        found |= {Cell("acf", name, (a,)): v for a, v in _changed(searched, *golden.attribution, problem)}
    return found


def problem_of(tables: Tables, spec: AuditSpec) -> Problem:
    """Returns the model's decisions by the paper's one protected attribute, as detection sees them."""
    (case,) = problems(ProblemTables.of(tables), detect.settings_of(spec, "fgce"))
    return case.problem


def _covered(searched: Searched, grid: list[float], most: int) -> Iterator[tuple[str, tuple[Value, ...], float]]:
    """Share of the coverable rows that k selected candidates cover, at every limit; and the highest of any limit."""
    found = recourse.explain(searched, np.array(grid), most)
    n = int(found.feasible.sum())
    for k in range(1, most + 1):
        turn = found.turn[: len(grid)]
        shares = ((turn >= 0) & (turn < k)).sum(axis=1) / n
        yield "kauc_coverage", (float(k),), float(shares.max())
        for d, share in zip(grid, shares.tolist(), strict=True):
            yield "coverage_on_kauc_grid", (round(d, 6), float(k)), share


def _printed(searched: Searched, settings: FgceSettings) -> Iterator[tuple[str, float]]:
    """The least cost at k0 by the paper's integer programme, of small groups only."""
    tables = optima.tables_of(searched, settings.model_copy(update={"exact_pairs": SMALL}))
    if not tables:
        return
    parts = optima.parts_of(tables, searched.weight)
    k0 = int(optima.full(parts, optima.solver_of(settings)).k0.value)
    need = sum(part.rows for part in parts)
    yield PRINTED, printed_mip.printed_mip(parts, k0, need, optima.solver_of(settings)).value


def _changed(searched: Searched, k: int, d: float, problem: Problem) -> Iterator[tuple[str, float]]:
    """Share of the covered rows whose attribute differs from that of their nearest of the k selected within d."""
    found = recourse.explain(searched, np.array([d + SLACK]), k)
    row, node = _assigned(found)
    differs = searched.points[searched.at[row]] != searched.points[node]
    for number, name in enumerate(problem.features):
        columns = problem.feature_of_column == number
        yield name, float(differs[:, columns].any(axis=1).mean())


def _assigned(found: Explained) -> tuple[Longs, Longs]:
    """The rows covered at the first limit, by their place, and the node that each is assigned to."""
    picks = found.selected.picks[0]
    picks = picks[picks >= 0]
    paid = np.column_stack([found.pays(np.array([pick])) for pick in picks])
    covered = np.flatnonzero(found.turn[0] >= 0)
    return covered, picks[np.nanargmin(paid[covered], axis=1)]
