"""Solves FGCE's coverage-constrained problem as one integer programme, as the paper prints it (section IV).

One variable per feasible pair, so it is for small groups and for checking
``tasks.methods.fgce.algorithm.covering.least_cost``, which gives the same optimum.
"""

from collections.abc import Sequence

import numpy as np
import pulp

from tasks.methods.fgce.algorithm.covering.problem import Optimum, Part, Pick, between, refusal
from tasks.methods.fgce.algorithm.covering.solver import Solver, solve


def printed_mip(parts: Sequence[Part], k: int, need: int, solver: Solver) -> Optimum:
    """Returns the least largest cost at which at most ``k`` candidates cover at least ``need`` rows.

    Returns:
        In encoded units, to the solver's tolerance; a refusal where the programme is infeasible.

    Raises:
        InfrastructureError: If the solver is not installed.
    """
    problem, names = _programme(parts, k, need)
    found = solve(problem, solver)
    if found.status == "infeasible":
        return refusal(f"k = {k} counterfactuals cannot cover {need} of {sum(part.rows for part in parts)} rows")
    picks = [pick for pick, name in names.items() if found.values.get(name, 0) > 0.5]
    if found.status == "stopped" and not found.values:
        return Optimum(float("nan"), found.bound, False, (), f"undecided: {found.note}; no solution was found")
    return between(found.values["d"], found.bound, picks, found.note)


def _programme(parts: Sequence[Part], k: int, need: int) -> tuple[pulp.LpProblem, dict[Pick, str]]:
    """The programme, and the name of each candidate's variable."""
    problem = pulp.LpProblem("coverage_constrained", pulp.LpMinimize)
    limit = problem.add_variable("d", 0)
    problem += limit
    use, rows = {}, []
    for number, part in enumerate(parts):
        for column in np.flatnonzero(np.isfinite(part.cost).any(axis=0)).tolist():
            use[number, column] = problem.add_variable(f"u{number}_{column}", cat="Binary")
        for factual in range(len(part.cost)):
            served = {
                column: problem.add_variable(f"r{number}_{factual}_{column}", cat="Binary")
                for column in np.flatnonzero(np.isfinite(part.cost[factual])).tolist()
            }
            problem += pulp.lpSum(float(part.cost[factual, column]) * r for column, r in served.items()) <= limit
            problem += pulp.lpSum(served.values()) <= 1
            for column, r in served.items():
                problem += r <= use[number, column]
            rows += [int(part.weight[factual]) * r for r in served.values()]
    problem += pulp.lpSum(use.values()) <= k
    problem += pulp.lpSum(rows) >= need
    return problem, {pick: variable.name for pick, variable in use.items()}
