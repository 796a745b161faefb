"""Trains the baselines of the CEC paper: the same net, on the same rows of the same folds.

Nothing here is held against the paper: it does not say how its baselines were made, and explains some that have no
logit. Scope: the mitigation for each column of Table 2, and its figures.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from tasks.methods.cec.algorithm.training import folds, mitigations
from tasks.methods.cec.algorithm.training.folds import Fold, Population
from tasks.methods.cec.algorithm.training.held_out import Bridge, Lending
from tasks.methods.cec.algorithm.training.mitigations import Mitigated, Split
from tasks.methods.cec.reproduction.obtained import FOLDS, ByModel, Course, Told, means
from tasks.methods.cec.reproduction.printed import QUANTITIES
from tasks.metrics.compare.algorithm.performance import performance
from tasks.numerics.networks.settings import TrainingSettings
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

ADVERSARY_WEIGHT: Final = 0.3
"""Of the adversary's gradient. At the library's own, 1, a net for synthetic applicants came to decide by group."""

MITIGATION_OF: Final[Mapping[str, Callable[[Split, TrainingSettings], Mitigated]]] = {
    "Hardt": mitigations.threshold_optimizer,
    "adversarial": partial(mitigations.adversarial, weight=ADVERSARY_WEIGHT),
    "Lagrangian": mitigations.grid_search,
    "Agarwal": mitigations.exponentiated_gradient,
    "DIR": mitigations.disparate_impact_remover,
}
"""By the column of Table 2."""

NO_SCORES, NO_LOGIT, NO_MODEL = "no scores", "no logit", "no model"
"""Stand where a model on some fold has no figure: a mean over fewer folds would stand beside means over all."""


def told(rows: Lending, columns: Iterable[str], course: Course) -> ByModel:
    """Trains mitigations, by their columns in Table 2, on the first folds of five."""
    bridge, found = Bridge(rows), {column: list[Told | None]() for column in columns}
    for fold in islice(folds.split(rows.population, FOLDS, course.settings.seed), course.folds):
        for column, of_column in found.items():
            of_column.append(_told(bridge, fold, column, course.settings))
            log.info("fold %d of %d, %s", fold.number + 1, course.folds, column)
    return found


def cells(found: ByModel) -> Mapping[Cell, Value]:
    """Returns means of mitigations over their folds, or a word where there is none."""
    return {Cell(name, column): value for column, several in found.items() for name, value in _figures(several)}


def _told(bridge: Bridge, fold: Fold, column: str, settings: TrainingSettings) -> Told | None:
    """A mitigation on one fold; None where it leaves no model."""
    people, held = bridge.rows.population, fold.test
    made = MITIGATION_OF[column](_split(people, fold), settings)
    if made.predicted is None:
        return None
    measured = performance(people.favourable[held], people.protected[held], made.predicted, made.scores)
    seen = fold if made.repair is None else replace(fold, inputs=made.repair.of(fold.inputs, people.protected))
    return Told(measured, bridge.score(made.net, seen) if made.net else {})


def _split(people: Population, fold: Fold) -> Split:
    fitted, held = fold.train, fold.test
    label, group = people.favourable, people.protected
    return Split(fold.inputs[fitted], label[fitted], group[fitted], fold.inputs[held], group[held])


def _figures(several: Sequence[Told | None]) -> Iterator[tuple[str, Value]]:
    """Means by the name of a quantity, and a word for each quantity of Table 2 that has none."""
    there = [each for each in several if each is not None]
    if len(there) < len(several):
        yield from dict.fromkeys(QUANTITIES, NO_MODEL).items()
        return
    found = means(there)
    known = {name: value for name, value in found.items() if np.isfinite(value)}
    yield from {name: NO_SCORES if name in found else NO_LOGIT for name in QUANTITIES if name not in known}.items()
    yield from known.items()
