"""Runs integer programmes in a process of the solver, with a time limit that is enforced from outside.

CBC is known to exceed its own limit several times over, and to call the incumbent at a stop optimal. So it runs as a
process on a model file, with nine tenths of the limit, and is killed at the limit.

Scope: how a programme is solved. Programmes: ``set_cover``, ``max_cover``,
``research.fgce.cells``.
"""

import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pulp

from schemas.errors import InfrastructureError


@dataclass(frozen=True)
class Solver:
    """How long CBC may take over one programme."""

    seconds: float = 30.0


@dataclass(frozen=True)
class Solution:
    """What a solver found out about one programme that is to be minimised."""

    status: Literal["proven", "stopped", "infeasible"]
    """``proven``: the values are optimal. ``stopped``: they are feasible, if there are any."""
    values: Mapping[str, float]
    """By name of variable; empty where no solution is known."""
    objective: float
    """NaN where no solution is known."""
    bound: float
    """No solution has a smaller objective; ``-inf`` where nothing is proven."""
    note: str = ""
    """What stopped the solver, in words."""


def solve(problem: pulp.LpProblem, solver: Solver) -> Solution:
    """Minimise a programme.

    A solver that is stopped by the limit, crashes or is killed by someone else gives a ``stopped`` solution with a
    note. Temporary files are removed in every case.

    Args:
        problem: To be minimised; names of variables are short and without blanks.
        solver: Its limit in seconds of wall-clock time.

    Raises:
        ValueError: If the problem maximises (bounds would change sides).
        InfrastructureError: If the solver is not installed.
    """
    if problem.sense != pulp.LpMinimize:
        raise ValueError(f"programme {problem.name!r} maximises; negate its objective and minimise")
    with TemporaryDirectory(prefix="evenhand-") as place:
        model = Path(place) / "model.mps"
        problem.writeMPS(str(model))
        return _cbc(model, solver.seconds)


def cbc_path() -> str:
    """The CBC that came with PuLP (in its own wheel, or as cbcbox from PuLP 4 on), else the one on the path.

    Raises:
        InfrastructureError: If there is none.
    """
    bundled = getattr(getattr(pulp, "PULP_CBC_CMD", None), "pulp_cbc_path", "cbc")
    executable = shutil.which(bundled) or shutil.which(pulp.COIN_CMD().path)
    if executable is None:
        raise InfrastructureError(
            f"CBC was not found at {bundled} or on the path; reinstall PuLP, which ships it "
            "(`pip install --force-reinstall 'pulp>=3.3,<4'`)"
        )
    return executable


def _cbc(model: Path, seconds: float) -> Solution:
    """Run CBC on a model file."""
    answer = model.with_suffix(".sol")
    limits = ["-sec", f"{0.9 * seconds:g}", "-timeMode", "elapsed", "-ratio", "0"]
    log, note = _run(
        [cbc_path(), str(model), *limits, "-solve", "-printingOptions", "all", "-solution", str(answer)], seconds
    )
    bounds = [float(bound) for bound in re.findall(r"(?:Lower bound:|best possible)\s+(-?[\d.]+(?:e[+-]?\d+)?)", log)]
    # an answer that was being written when the program was killed is none
    answer_lines = answer.read_text().splitlines() if answer.exists() and not note else []
    head, *lines = answer_lines or ["Stopped (no integer solution)"]
    if head.startswith(("Infeasible", "Integer infeasible")):
        return Solution("infeasible", {}, float("nan"), float("inf"))
    has_solution = "no integer solution" not in head and "objective value" in head
    values = (
        {name: float(value) for name, value in (line.lstrip("* ").split()[1:3] for line in lines)}
        if has_solution
        else {}
    )
    objective = float(head.split()[-1]) if has_solution else float("nan")
    if head.startswith("Optimal"):
        return Solution("proven", values, objective, objective)
    return Solution("stopped", values, objective, max(bounds[-1:], default=float("-inf")), note or _stopped(seconds))


def _run(command: list[str], seconds: float) -> tuple[str, str]:
    """Run a command, killed at the limit; give what it printed, and a note if it did not end by itself and well."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # noqa: S603 our own words
        try:
            log, note = process.communicate(timeout=seconds)[0], ""
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0], _stopped(seconds)
    if process.returncode < 0:
        note = f"the solver was ended by {signal.Signals(-process.returncode).name}"
    elif process.returncode > 0:
        note = f"the solver failed with exit code {process.returncode}"
    return log, note


def _stopped(seconds: float) -> str:
    return f"the solver was stopped after {seconds:g} s"
