"""Scores of women and men of Adult by the weight of the regularisation: the paper's Figures 4, 5 and 14 to 17.

One fifth of the rows is held out of one training. The true counterfactuals are not known: CF is by the worst generator.
The paper draws densities and prints none. One number stands for two of them: the area between the curves, 0 where they
are the same and 2 where they do not overlap.
"""

import logging
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from tasks.counterfactuals.algorithm.gan import training
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Applicants, Scales
from tasks.methods.gcfn.algorithm.fair_prediction.settings import PredictorSettings
from tasks.methods.gcfn.algorithm.fair_prediction.training import train
from tasks.methods.gcfn.reproduction import measures
from tasks.methods.gcfn.reproduction.people import Earners
from tasks.methods.gcfn.reproduction.printed import FAIR
from tasks.methods.gcfn.reproduction.truth import HELD_OUT
from tasks.methods.gcfn.reproduction.utilities import FALLS, FALLS_NOT, STEADILY, UNSTEADILY
from tasks.numerics.arrays import Bools, Floats
from tasks.proof.drawings import Curve, Drawing, curves
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

DENSITIES: Final = (0.0, 0.5, 1.0, 5.0, 10.0, 100.0, 500.0, 1000.0)
"""Weights of Figures 4 and 14 to 17."""
TRADED: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of Figure 5, which goes from 0 to 1."""

BINS: Final = 25
"""Even intervals of the score from 0 to 1."""

NO_MORE: Final = 0.005
"""By which an accuracy that stays may rise: the standard error on 9,000 rows is 0.004."""
STAYS, STAYS_NOT = "falls or stays", "rises"


class Scored(NamedTuple):
    """Held-out rows under one weight."""

    accuracy: float
    cf: float
    """By the worst generator."""
    women: Floats
    """Scores of the women."""
    men: Floats

    @property
    def area(self) -> float:
        """Between the two densities."""
        return float(np.abs(density(self.women) - density(self.men)).sum() / BINS)


def obtained(people: Earners, size: GanSettings, rows: int) -> tuple[dict[Cell, Value], tuple[Drawing, ...]]:
    """Returns all cells and drawings of Adult.

    Args:
        people: Everybody.
        size: How many networks are trained, and for how many epochs.
        rows: Most training rows of a predictor.
    """
    found = scored(people, size, rows)
    return cells(found), drawings(found)


def scored(people: Earners, size: GanSettings, rows: int) -> Mapping[float, Scored]:
    """Trains networks, and a predictor for each weight; scores of the held-out rows by weight."""
    order = np.random.default_rng(size.seed).permutation(len(people.rich))
    cut = round(HELD_OUT * len(order))
    held, fitted = order[:cut], order[cut:]
    imaginer = training.train(people.mediation.rows(fitted), size).imaginer
    log.info("adult: %d networks trained", size.networks)
    scales, some = Scales.of(people.mediation.rows(fitted)), fitted[:rows]
    learnt, test = (
        scales.applicants(people.mediation.rows(part), imaginer.imagine(people.mediation.rows(part)), people.rich[part])
        for part in (some, held)
    )
    found = {}
    for weight in sorted({*DENSITIES, *TRADED}):
        settings = PredictorSettings(device="cpu", seed=size.seed, fairness=weight)
        found[weight] = _scored(learnt, test, people.women[held], settings)
        log.info("adult: predictor of lambda %g trained", weight)
    return found


def cells(found: Mapping[float, Scored]) -> dict[Cell, Value]:
    """Returns accuracy, CF and the area between the densities by weight, and which way they go."""
    told: dict[Cell, Value] = {}
    for weight, each in found.items():
        name = f"{FAIR}, lambda {weight:g}"
        told[Cell("accuracy", name)], told[Cell("cf_worst_generated", name)] = each.accuracy, each.cf
        told[Cell("area_between_densities", name)] = each.area
        told[Cell("mean_score_difference", name)] = float(each.men.mean() - each.women.mean())
    first, last = found[TRADED[0]], found[TRADED[-1]]
    stays = last.accuracy - first.accuracy <= NO_MORE
    told[Cell("accuracy_from_lambda_0_to_1", FAIR)] = STAYS if stays else STAYS_NOT
    told[Cell("cf_worst_generated_from_lambda_0_to_1", FAIR)] = FALLS if last.cf < first.cf else FALLS_NOT
    steady = all(found[after].area < found[before].area for before, after in pairwise(DENSITIES))
    told[Cell("area_between_densities_along_lambda", FAIR)] = STEADILY if steady else UNSTEADILY
    falls = found[DENSITIES[-1]].area < found[DENSITIES[0]].area
    told[Cell("area_between_densities_from_lambda_0_to_1000", FAIR)] = FALLS if falls else FALLS_NOT
    return told


def drawings(found: Mapping[float, Scored]) -> tuple[Drawing, ...]:
    """Draws the densities of both sexes at each weight, and accuracy and CF from 0 to 1."""
    middles = tuple((np.arange(BINS) + 0.5) / BINS)
    by_sex = tuple(
        Curve(f"{sex}, lambda {weight:g}", middles, tuple(density(getattr(found[weight], sex)).tolist()))
        for weight in DENSITIES
        for sex in ("women", "men")
    )
    title = "Density of the score of women and men"
    density_drawing = Drawing("score-densities-by-lambda", "Figures 4 and 14 to 17", title, "score", "density", by_sex)
    traded = {
        "accuracy": [found[weight].accuracy for weight in TRADED],
        "CF by the worst network": [found[weight].cf for weight in TRADED],
    }
    title = "Accuracy and CF on held-out rows"
    tradeoff = Drawing("accuracy-and-cf-by-lambda", "Figure 5", title, "lambda", "accuracy; CF", curves(TRADED, traded))
    return density_drawing, tradeoff


def density(scores: Floats) -> Floats:
    """``(BINS,)`` density of scores between 0 and 1, which integrates to 1."""
    return np.histogram(scores, bins=BINS, range=(0.0, 1.0))[0] * BINS / len(scores)


def _scored(learnt: Applicants, test: Applicants, women: Bools, settings: PredictorSettings) -> Scored:
    model = train(learnt, settings)
    scores = model.scores(test)
    return Scored(
        float(((scores >= 0.5) == test.label).mean()),
        float(measures.unfairness(scores, model.imagined_scores(test)).max()),
        scores[women],
        scores[~women],
    )
