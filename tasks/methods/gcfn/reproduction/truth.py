"""Compares generators with known counterfactual mediators: the paper's Table 3, and the slope that it lacks.

Each run draws the data anew, trains on four fifths of the rows and looks at the rest. Figures are means over runs,
networks and mediators.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from tasks.counterfactuals.algorithm.conditional.quantiles import fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics.quality import AgainstTruth, against_truth
from tasks.counterfactuals.algorithm.gan import settings as gan
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.ingest.synthetic.algorithm.mediated_lending import MediatedRows
from tasks.methods.gcfn.reproduction.printed import DEFAULT, MEAN, PAPER, QUANTILES
from tasks.numerics.arrays import Floats
from tasks.numerics.mediation import Mediation
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

HELD_OUT: Final = 0.2
"""Of the rows, as in the paper."""

ERROR: Final = "mse_counterfactual_generated"
"""Normalised, as the other one."""


class Generator(Protocol):
    """A generator of counterfactual mediators."""

    def imagine(self, rows: Mediation) -> Floats:
        """Generates mediators ``(s, k, n, p)``."""
        ...


@dataclass(frozen=True)
class Run:
    """One drawing of a data set, and what was trained on its training rows."""

    seed: int
    train: MediatedRows
    test: MediatedRows
    generators: Mapping[str, Generator]

    def at_most(self, rows: int) -> "Run":
        """The same with so many training rows at most; generators keep what they learnt from all."""
        return replace(self, train=self.train.rows(np.arange(min(rows, len(self.train.category)))))


def runs(draw: Callable[[np.random.Generator], MediatedRows], size: GanSettings, seeds: int) -> Iterator[Run]:
    """Trains networks with the default settings and with the paper's, and the quantile map, for each seed.

    Args:
        draw: Draws the data set.
        size: How many networks are trained, and for how many epochs.
        seeds: Number of runs.
    """
    variants = {PAPER: replace(size, **gan.PAPER), DEFAULT: size}
    for seed in range(seeds):
        rows = draw(np.random.default_rng(seed))
        order = np.random.default_rng((seed, 1)).permutation(len(rows.category))
        cut = round(HELD_OUT * len(order))
        fitted = rows.rows(order[cut:])
        generators: dict[str, Generator] = {}
        for name, settings in variants.items():
            generators[name] = train(fitted.mediation(), replace(settings, seed=seed)).imaginer
            log.info("run %d of %d: %s, %d networks trained", seed + 1, seeds, name, settings.networks)
        generators[QUANTILES] = fit_quantiles(fitted.mediation(), seed)
        yield Run(seed, fitted, rows.rows(order[:cut]), generators)


def cells(several: Sequence[Run]) -> Mapping[Cell, Value]:
    """Returns Table 3 and the slopes, by generator."""
    found: dict[Cell, Value] = {}
    for name in several[0].generators:
        told = [against(run, name) for run in several]
        errors, slopes = np.stack([each.counterfactual_generated for each in told]), np.stack([t.slope for t in told])
        found |= {
            Cell("mse_factual_generated", name): float(np.mean([each.factual_generated for each in told])),
            Cell(ERROR, name): float(errors.mean()),
            Cell("slope_on_true_noise", name): float(slopes.mean()),
            Cell(f"{ERROR}_worst_network", name): float(errors.max()),
            Cell("slope_on_true_noise_worst_network", name): float(slopes.mean(axis=2).min()),
        }
    return found | {Cell(ERROR, MEAN): float(np.mean([each.counterfactual_mean for each in told]))}


def against(run: Run, name: str) -> AgainstTruth:
    """Measures one generator on the held-out rows of one run."""
    rows = run.test.mediation()
    return against_truth(run.generators[name].imagine(rows), rows, run.test.potential, run.test.mean)
