"""The overlap-weighted difference on planted lenders of ``python -m benches verdicts``, against its own estimand.

The estimand is the mean effect over the members of the group, each weighted by its chance of being of the reference
group, in the population that applicants are drawn from. Run by itself it prints a line for each scenario:
``PYTHONPATH=. python tests/tasks/methods/adjusted/algorithm/overlap_lenders.py ROWS RUNS``.
"""

import sys

import numpy as np
from benches.planted import HARMED, LOGGED, columns
from benches.planted_lenders import Applied, Scenario, draw, overlap_weighted
from benches.verdicts import LENDER, only

from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats

SCENARIOS = (
    Scenario("no effect, equal finances"),
    Scenario("no effect, finances worse by 0.6", mediated=only(0.6)),
    Scenario("log odds +0.5", log_odds=only(0.5)),
    Scenario("log odds +0.8, better qualified by 0.55", log_odds=only(0.8), mediated=only(-0.55)),
    Scenario("log odds +0.5, finances worse by 0.6", log_odds=only(0.5), mediated=only(0.6)),
)
SETTINGS = AdjustedSettings(estimators=("overlap",), form="squared")


def estimated(applied: Applied) -> Effect:
    """The difference of the harmed group on the last rung."""
    found = columns(applied)
    controls = tuple(
        Control(name, "category" if known else "number", values, known, scale="log" if name == LOGGED else "linear")
        for name, known, values in zip(found.names, found.categories, found.values.T, strict=True)
    )
    given = Applications(applied.denied, applied.group, applied.scenario.groups, 0, (Block("all", controls),))
    effects = climb(given, SETTINGS, 0.95, np.random.default_rng(0)).effects
    (one,) = (each for each in effects if (each.rung, each.group, each.estimator) == (1, HARMED, "overlap"))
    return one


def coverage(scenario: Scenario, rows: int, runs: int) -> Floats:
    """Truth, bias, standard deviation, mean standard error, and coverage of the 95 % interval."""
    truth = overlap_weighted(LENDER, scenario)[HARMED]
    seeds = (np.random.default_rng([8, rows, run]) for run in range(runs))
    found = [estimated(draw(LENDER, scenario, rows, rng)) for rng in seeds]
    values, covered = np.array([each.value for each in found]), [each.low <= truth <= each.high for each in found]
    errors = np.mean([each.se for each in found])
    return np.array([truth, values.mean() - truth, values.std(ddof=1), errors, np.mean(covered)])


def main(rows: str, runs: str) -> None:
    """Print the coverage."""
    for scenario in SCENARIOS:
        truth, bias, sd, se, covered = coverage(scenario, int(rows), int(runs))
        numbers = f"truth {truth:.4f}, bias {bias:+.4f}, sd {sd:.4f}, mean se {se:.4f}, coverage {covered:.3f}"
        sys.stdout.write(f"{scenario.name}, {rows} rows, {runs} runs: {numbers}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
