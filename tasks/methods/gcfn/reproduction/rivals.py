"""Trains the systems that the GCFN paper compares itself with, on the rows of one run, and measures them.

Scope: one run. The systems: ``tasks.baselines.algorithm.predictors``. They never see the true counterfactuals: a row is
scored anew as a member of the other category, with the mediators that it would have there.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from tasks.baselines.algorithm.predictors.kind import FittingSettings, moved_scores
from tasks.baselines.algorithm.predictors.registry import PREDICTORS
from tasks.baselines.algorithm.predictors.variational.predictor import Abducting
from tasks.baselines.algorithm.predictors.variational.training import change_over_last_epochs
from tasks.counterfactuals.algorithm.diagnostics.quality import against_truth
from tasks.methods.gcfn.reproduction.printed import DEFAULT, TITLES
from tasks.methods.gcfn.reproduction.tradeoff import Scored, Told
from tasks.methods.gcfn.reproduction.truth import Run
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")


class Imagined(NamedTuple):
    """Counterfactual mediators of an autoencoder on held-out rows, as Table 3 has those of the networks."""

    mse_counterfactual_generated: float
    mse_factual_generated: float
    slope_on_true_noise: float
    elbo_change_over_last_ten_epochs: float
    """As a share of the evidence lower bound."""


HSCIC: Final = "hscic"
HSCIC_SWEEP: Final = (0.1, 1.0, 5.0, 20.0)
"""Of the GCFN paper's grid 0.1, 0.5, 1, 5, 10, 15, 20 (appendix 14.3)."""

HSCIC_EPOCHS: Final = 15
"""Each takes the time of several epochs without the penalty."""


class Rivals(NamedTuple):
    """The systems of one run."""

    told: Mapping[str, Told]
    """By title."""
    imagined: Mapping[str, Imagined]
    """Of the systems that imagine mediators, by title."""


def compared(run: Run, names: Sequence[str]) -> Rivals:
    """Trains the systems of these names, HSCIC for each weight, and measures them."""
    held = run.test.mediation()
    generated = run.generators[DEFAULT].imagine(held)
    told, imagined = {}, {}
    for name in names:
        for title, settings in _variants(name, run.seed):
            model = PREDICTORS[name](run.train.mediation(), run.train.favourable, settings)
            truly = moved_scores(model, held, run.test.potential[None])
            scored = Scored(model.scores(held), truly, moved_scores(model, held, generated))
            told[title] = scored.told(run.test.favourable)
            if isinstance(model, Abducting):
                imagined[title] = _imagined(model, run)
        log.info("run %d: %s trained", run.seed + 1, TITLES[name])
    return Rivals(told, imagined)


def cells(several: Sequence[Rivals]) -> Mapping[Cell, Value]:
    """Returns what is told of the mediators that systems imagine, and of their training: means over runs."""
    found: dict[Cell, Value] = {}
    for title in several[0].imagined:
        means = np.mean([each.imagined[title] for each in several], axis=0)
        found |= {Cell(name, title): float(value) for name, value in zip(Imagined._fields, means, strict=True)}
    return found


def hscic_title(weight: float) -> str:
    """The row of HSCIC with a weight of its penalty."""
    return f"{TITLES[HSCIC]}, lambda {weight:g}"


def _imagined(model: Abducting, run: Run) -> Imagined:
    found = against_truth(model.imagine(run.test.mediation()), run.test.mediation(), run.test.potential, run.test.mean)
    errors = float(found.counterfactual_generated.mean()), float(found.factual_generated.mean())
    return Imagined(*errors, float(found.slope.mean()), change_over_last_epochs(model.history))


def _variants(name: str, seed: int) -> Iterator[tuple[str, FittingSettings]]:
    """Title and settings of each model of a system."""
    if name == HSCIC:
        for weight in HSCIC_SWEEP:
            yield hscic_title(weight), FittingSettings(epochs=HSCIC_EPOCHS, fairness=weight, seed=seed)
    else:
        yield TITLES[name], FittingSettings(seed=seed)
