"""Compares the COMPAS score with a predictor that is trained to be fair: rates, and who is treated differently.

Fairness is between Black and white defendants. Each of five parts of the rows is held out of one training. Rates are of
Black defendants, as the paper's Table 2; a positive is a defendant who is foretold to be charged anew.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from tasks.counterfactuals.algorithm.gan import training
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Scales
from tasks.methods.gcfn.algorithm.fair_prediction.settings import PredictorSettings
from tasks.methods.gcfn.algorithm.fair_prediction.training import train
from tasks.methods.gcfn.reproduction import measures
from tasks.methods.gcfn.reproduction.people import Defendants
from tasks.methods.gcfn.reproduction.printed import FAIR, SCORE, WHOLE_FILE
from tasks.metrics.publish.algorithm.families import complement
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.proof.drawings import Curve, Drawing
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

PARTS: Final = 5
HIGH_RISK: Final = 5
"""Decile from which the score is read as foretelling a new charge."""

PRIORS: Final = (0, 1, 2, 3, 5, 10)
"""First of each range of prior offences; there are few people with each of the higher counts."""

WITHHELD: Final = "withheld"
SMALLEST: Final = POLICIES["public"].smallest
"""Count of people that is told."""

DRAWN: Final = (
    *(("Black", by, "Figure 6") for by in ("score", "priors from")),
    *(("white", by, "Figure 18") for by in ("score", "priors from")),
)
"""Race, what people are sorted by, and the paper's figure."""

_RATES: Final = ("accuracy", "ppv", "fpr", "fnr")


def obtained(people: Defendants, size: GanSettings, seeds: int) -> tuple[dict[Cell, Value], tuple[Drawing, ...]]:
    """Returns all cells of COMPAS, and Figures 6 and 18 (``cells``, ``drawings``)."""
    found = cells(people, size, seeds)
    return found, drawings(found)


def cells(people: Defendants, size: GanSettings, seeds: int) -> dict[Cell, Value]:
    """Returns all cells of COMPAS.

    Args:
        people: Everybody.
        size: How many networks are trained, and for how many epochs.
        seeds: Of the five parts, how many are held out in turn.
    """
    high = people.score >= HIGH_RISK
    found = _rates([people.black], people, high, SCORE + WHOLE_FILE)
    parts = np.array_split(np.random.default_rng(0).permutation(len(people.score)), PARTS)[:seeds]
    foretold = high.copy()
    for number, part in enumerate(parts):
        foretold[part] = _foretold(people, part, replace(size, seed=number))
        log.info("part %d of %d held out: networks and predictor trained", number + 1, len(parts))
    members = [np.isin(np.arange(len(high)), part) & people.black for part in parts]
    found |= _rates(members, people, high, SCORE) | _rates(members, people, foretold, FAIR)
    held = np.concatenate(parts)
    for race, of in (("Black", people.black[held]), ("white", ~people.black[held])):
        rows = held[of]
        found |= dict(_differently(f"{race}, score", people.score[rows], high[rows], foretold[rows]))
        first = np.array(PRIORS)[np.searchsorted(PRIORS, people.priors[rows], side="right") - 1]
        found |= dict(_differently(f"{race}, priors from", first.astype(float), high[rows], foretold[rows]))
    return found


def drawings(found: Mapping[Cell, Value]) -> tuple[Drawing, ...]:
    """Draws how many defendants are treated differently, by score and by priors; what is withheld has no value."""
    return tuple(_drawing(found, *each) for each in DRAWN)


def _drawing(found: Mapping[Cell, Value], race: str, by: str, figure: str) -> Drawing:
    group = f"{race}, {by}"
    shown = {cell.group[len(group) + 1 :]: str(value) for cell, value in found.items() if cell.group.startswith(group)}
    places = tuple(float(place) for place in shown)
    counts = tuple(float(said.split()[0]) if said != WITHHELD else np.nan for said in shown.values())
    of = tuple(float(said.split()[-1]) if said != WITHHELD else np.nan for said in shown.values())
    name = f"treated-differently-{race.lower()}-{by.split()[0]}"
    title = f"{race} defendants whom the fair predictor treats otherwise than the COMPAS score"
    curves = (Curve("treated differently", places, counts), Curve("all", places, of))
    return Drawing(name, figure, title, "COMPAS score" if by == "score" else by, "defendants", curves)


def _foretold(people: Defendants, part: Longs, settings: GanSettings) -> Bools:
    """Of a part of the rows, who is foretold to be charged anew by a fair predictor that has not seen it."""
    fitted = np.setdiff1d(np.arange(len(people.score)), part)
    rows, held = people.mediation.rows(fitted), people.mediation.rows(part)
    imaginer, scales = training.train(rows, settings).imaginer, Scales.of(rows)
    told = PredictorSettings(device="cpu", seed=settings.seed)
    predictor = train(scales.applicants(rows, imaginer.imagine(rows), people.offended[fitted]), told)
    found: Bools = predictor.scores(scales.applicants(held, imaginer.imagine(held), people.offended[part])) >= 0.5
    return found


def _rates(several: list[Bools], people: Defendants, positive: Bools, name: str) -> dict[Cell, Value]:
    """Means over parts of the rows."""
    told = [measures.rates(people.offended[of], positive[of]) for of in several]
    return {Cell(rate, name): float(np.mean([getattr(each, rate) for each in told])) for rate in _RATES}


def _differently(name: str, by: Floats, given: Bools, fair: Bools) -> Iterator[tuple[Cell, Value]]:
    """How many are treated differently by the score and the predictor, for each value.

    A small number of people, of either treatment, is withheld, with another where its total would tell it.
    """
    values, rows, differing = measures.treated_differently(given, fair, by)
    counts = np.column_stack([differing, rows - differing, rows])
    few = (counts > 0) & (counts < SMALLEST)
    hidden = few[:, 0] | few[:, 1] | few[:, 2]
    for column in counts.T[:2]:
        hidden = complement(hidden, column, SMALLEST)
    for value, n, count, withheld in zip(values, rows, differing, hidden, strict=True):
        said = WITHHELD if withheld else f"{count} of {n}"
        yield Cell("treated_differently", f"{name} {value:.0f}"), said
