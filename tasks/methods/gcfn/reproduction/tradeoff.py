"""Trains predictors along the sweep of lambda where counterfactual mediators are known, and measures them.

Scope: GCFN's own models on one run. Other systems: ``rivals``. Utilities: ``utilities``. Generators: ``truth``.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Scales
from tasks.methods.gcfn.algorithm.fair_prediction.settings import PredictorSettings, Variant, sweep
from tasks.methods.gcfn.algorithm.fair_prediction.training import train
from tasks.methods.gcfn.reproduction import measures
from tasks.methods.gcfn.reproduction.printed import DEFAULT
from tasks.methods.gcfn.reproduction.truth import Run
from tasks.numerics.arrays import Bools, Floats

log = logging.getLogger("evenhand")

SWEEP: Final = sweep()

MEAN_GAMMA: Final = 0.55
"""Mean of the ten weights 0.1, 0.2, ..., 1 of CF in the utility."""


class Told(NamedTuple):
    """Figures of one model, on held-out rows."""

    accuracy: float
    cf_true: float
    """By the true counterfactuals."""
    cf_worst_generated: float
    """By the worst of the generators, as it would be where the truth is not known."""

    def utility(self, gamma: float) -> float:
        """U = accuracy - gamma CF by the truth (section 5.1)."""
        return self.accuracy - gamma * self.cf_true

    @property
    def mean_utility(self) -> float:
        """Mean of U over gamma 0.1, 0.2, ..., 1 (Figures 11 to 13)."""
        return self.utility(MEAN_GAMMA)


@dataclass(frozen=True)
class Scored:
    """Scores of one model on the ``n`` held-out rows."""

    own: Floats
    """``(n,)``."""
    truly: Floats
    """``(1, 1, n)`` with the true mediators of the other category."""
    generated: Floats
    """``(s, 1, n)`` with those of each generator."""

    def told(self, label: Bools) -> Told:
        """Its figures, by labels ``(n,)``."""
        return Told(
            float(((self.own >= 0.5) == label).mean()),
            float(measures.unfairness(self.own, self.truly).max()),
            float(measures.unfairness(self.own, self.generated).max()),
        )


def compared(run: Run, variants: tuple[Variant, ...] = SWEEP) -> Mapping[str, Told]:
    """Trains a model for each weight and measures it."""
    fitted, held, scales = run.train.mediation(), run.test.mediation(), Scales.of(run.train.mediation())
    generator = run.generators[DEFAULT]
    given = scales.applicants(fitted, generator.imagine(fitted), run.train.favourable)
    seen = scales.applicants(held, generator.imagine(held), run.test.favourable)
    truly = scales.applicants(held, run.test.potential[None], run.test.favourable)
    told = {}
    for variant in variants:
        settings = replace(PredictorSettings(device="cpu", seed=run.seed), fairness=variant.fairness)
        model = train(given, settings)
        scored = Scored(model.scores(truly), model.imagined_scores(truly), model.imagined_scores(seen))
        told[variant.name] = scored.told(run.test.favourable)
    log.info("run %d: %d models compared", run.seed + 1, len(told))
    return told
