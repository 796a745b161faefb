"""Solves a model file with HiGHS: reads it, solves it to the end or to the limit, and reports what is known.

It runs as a process of its own (``python -P highs.py model.mps answer.json seconds``) that can be killed: a library
cannot be stopped from outside, and its own limit is only looked at between steps. Nothing of the project is imported
here, so that the process starts quickly.
"""

import json
import sys
from pathlib import Path
from typing import Any

import highspy


def answer(model: str, seconds: float) -> dict[str, Any]:
    """Minimise the model of an MPS file.

    Returns:
        ``status`` (``proven``, ``stopped`` or ``infeasible``), ``bound`` (lower, on the objective), ``objective`` (None
        without a solution) and ``values`` by name of variable (empty without a solution).
    """
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("mip_rel_gap", 0.0)  # 1e-4 by default, which is no proof
    highs.readModel(model)
    highs.run()
    status, info = highs.getModelStatus(), highs.getInfo()
    infeasible = highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible
    if status in infeasible:
        return {"status": "infeasible", "bound": float("inf"), "objective": None, "values": {}}
    proven = status == highspy.HighsModelStatus.kOptimal
    objective = info.objective_function_value
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return {"status": "stopped", "bound": info.mip_dual_bound, "objective": None, "values": {}}
    return {
        "status": "proven" if proven else "stopped",
        "bound": objective if proven else info.mip_dual_bound,
        "objective": objective,
        "values": dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True)),
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(answer(sys.argv[1], float(sys.argv[3]))))
