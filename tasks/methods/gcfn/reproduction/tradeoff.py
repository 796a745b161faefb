"""Compares accuracy and CF of predictors with and without regularisation, where counterfactual mediators are known.

Scope: the models and their figures. Generators: ``truth``.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from tasks.counterfactuals.algorithm.conditional.moments import fit_mean, residuals
from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Scales, seen_by
from tasks.methods.gcfn.algorithm.fair_prediction.settings import CFAN, CFUA, PredictorSettings, sweep
from tasks.methods.gcfn.algorithm.fair_prediction.training import train
from tasks.methods.gcfn.reproduction import measures
from tasks.methods.gcfn.reproduction.printed import DEFAULT, FAIR
from tasks.methods.gcfn.reproduction.truth import Run
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

SWEEP: Final = sweep()
FROM, TO = (next(variant.name for variant in SWEEP if variant.fairness == value) for value in (0.0, 0.5))
"""Between these the paper says in which direction accuracy and CF go."""


class Told(NamedTuple):
    """Figures of one model, on held-out rows."""

    accuracy: float
    cf_true: float
    """By the true counterfactuals."""
    cf_worst_generated: float
    """By the worst of the generators, as it would be where the truth is not known."""


def cells(several: Sequence[Run]) -> Mapping[Cell, Value]:
    """Returns means over runs by model, and the directions."""
    told = [compared(run) for run in several]
    means = {name: Told(*np.mean([each[name] for each in told], axis=0)) for name in told[0]}
    found: dict[Cell, Value] = {
        Cell(quantity, name): float(value) for name, mean in means.items() for quantity, value in mean._asdict().items()
    }
    return {**found, **directions(means)}


def directions(means: Mapping[str, Told]) -> Mapping[Cell, Value]:
    """Returns whether accuracy and CF fall as lambda goes from 0 to 0.5: in words, since the paper gives no figure."""
    found = {}
    for quantity in ("accuracy", "cf_true"):
        change = getattr(means[TO], quantity) - getattr(means[FROM], quantity)
        found[Cell(f"{quantity}_from_lambda_0_to_0.5", FAIR)] = "falls" if change < 0 else "does not fall"
    return found


def compared(run: Run) -> Mapping[str, Told]:
    """Trains the models along the sweep and those that see no mediators, and measures them."""
    fitted, held, scales = run.train.mediation(), run.test.mediation(), Scales.of(run.train.mediation())
    generator = run.generators[DEFAULT]
    given = scales.applicants(fitted, generator.imagine(fitted), run.train.favourable)
    by_generators = scales.applicants(held, generator.imagine(held), run.test.favourable)
    by_truth = scales.applicants(held, run.test.potential[None], run.test.favourable)
    noise_of_fitted, noise_of_held = _noise(run)
    told = {}
    for variant in (*SWEEP, CFUA, CFAN):
        settings = replace(PredictorSettings(device="cpu", seed=run.seed), fairness=variant.fairness)
        model = train(seen_by(variant.sees, given, noise_of_fitted), settings)
        seen, truly = (seen_by(variant.sees, rows, noise_of_held) for rows in (by_generators, by_truth))
        scores = model.scores(truly)
        told[variant.name] = Told(
            float(((scores >= 0.5) == run.test.favourable).mean()),
            float(measures.unfairness(scores, model.imagined_scores(truly)).max()),
            float(measures.unfairness(scores, model.imagined_scores(seen)).max()),
        )
    log.info("run %d: %d models compared", run.seed + 1, len(told))
    return told


def _noise(run: Run) -> tuple[Floats, Floats]:
    """Mediators less their conditional mean, standardised by the training rows: what CFAN sees of both parts."""
    fitted, held = run.train.mediation(), run.test.mediation()
    mean = fit_mean(fitted, run.seed)
    left = [residuals(mean.potential(p.covariates), p.category, p.mediators.values) for p in (fitted, held)]
    deviation = left[0].std(axis=0)
    return left[0] / deviation, left[1] / deviation
