"""Trains the models and baselines of the CEC paper."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from research.cec.data import CEC_MODEL, FOLDS, QUANTITIES, UNCONSTRAINED
from research.figures import Cell, Drawing, Spread, Value, curves
from tasks.methods.cec.algorithm import mitigations as cv_mitigations
from tasks.methods.cec.algorithm.mitigations import (
    Mitigated,
    Outcome,
    Split,
    Variant,
    ablation,
    non_dominated,
)
from tasks.methods.cec.algorithm.models import Bridge, Lending
from tasks.metrics.compare.algorithm import Performance, performance
from tasks.numerics.networks.network import PAPER, TrainingSettings

# --------------------------------------------------------------------------------------------------------------------
# Trains the CEC paper's models on folds and averages their figures on held-out rows over the folds.
#
# Scope: the settings of the paper and the cells. Matching and scoring:
# ``tasks.methods.cec.algorithm.models``.


log = logging.getLogger("evenhand")

SETTINGS: Final = replace(TrainingSettings(device="cpu"), **PAPER)
"""The paper's; always on the CPU, so that figures do not depend on the machine."""

TABLE_2: Final = {"pred": UNCONSTRAINED, "full": CEC_MODEL}
"""What Table 2 calls two of the variants of Table 4."""


@dataclass(frozen=True)
class Course:
    """How models are trained."""

    folds: int = 1
    """The first so many of the paper's five."""
    settings: TrainingSettings = SETTINGS

    @property
    def sparing(self) -> "Course":
        """The same with attributions by 8 midpoints on half of the pairs, as audits have them by default."""
        audit = TrainingSettings()
        return replace(self, settings=replace(self.settings, steps=audit.steps, pair_share=audit.pair_share))


@dataclass(frozen=True)
class FoldOutcome:
    """Figures of one model on one fold."""

    performance: Performance
    consistency: Mapping[str, float]
    """Empty where there is no logit to explain."""


ByModel = Mapping[str, Sequence[FoldOutcome | None]]
"""By the name of a model: its figures on each fold, in order; None where it leaves no model."""


def outcomes(rows: Lending, variants: Sequence[Variant], course: Course) -> list[Outcome]:
    """Trains the variants on the first folds of five."""
    bridge, outcome_list, settings = Bridge(rows), list[Outcome](), course.settings
    for fold in islice(cv_mitigations.split(rows.population, FOLDS, settings.seed), course.folds):
        for outcome in cv_mitigations.evaluate(rows.population, fold, variants, settings, bridge.match, bridge.score):
            cec = outcome.consistency["cec"]
            log.info("fold %d of %d, %s: CEC %.3f", fold.number + 1, course.folds, outcome.variant.name, cec)
            outcome_list.append(outcome)
    return outcome_list


def variants(all_variants: bool) -> tuple[Variant, ...]:
    """Returns all variants of Table 4, or the two of Table 2."""
    every = ablation(SETTINGS)
    return every if all_variants else tuple(variant for variant in every if variant.name in TABLE_2)


def by_model(variant_outcomes: Iterable[Outcome], suffix: str = "") -> ByModel:
    """Returns the figures by the names of the variants in Table 4 and, with the suffix, in Table 2."""
    of: dict[str, list[FoldOutcome]] = {}
    for outcome in variant_outcomes:
        variant = outcome.variant.name
        for name in dict.fromkeys((variant, TABLE_2.get(variant, variant))):
            of.setdefault(name + suffix, []).append(FoldOutcome(outcome.performance, outcome.consistency))
    return of


def cells(outcomes_of_model: ByModel) -> Mapping[Cell, Value]:
    """Returns means over folds of models that every fold has."""
    values: dict[Cell, Value] = {}
    for model, several in outcomes_of_model.items():
        known_outcomes = [outcome for outcome in several if outcome is not None]
        values |= {Cell(quantity, model): value for quantity, value in means(known_outcomes).items()}
    return values


def means(several: Sequence[FoldOutcome]) -> dict[str, float]:
    """Returns means of the quantities that every fold has, and the number of folds with a collapsed model."""
    by_fold = [{**vars(outcome.performance), **outcome.consistency} for outcome in several]
    common = [name for name in by_fold[0] if all(name in fold_values for fold_values in by_fold)]
    mean_values = {name: float(np.mean([fold_values[name] for fold_values in by_fold])) for name in common}
    return mean_values | {"collapsed_folds": float(sum(outcome.performance.collapsed for outcome in several))}


def spreads(outcomes_of_model: ByModel) -> Mapping[Cell, Spread]:
    """Returns the standard deviations over folds of models that every fold has."""
    spread_of_cell: dict[Cell, Spread] = {}
    for model, several in outcomes_of_model.items():
        known_outcomes = [outcome for outcome in several if outcome is not None]
        if 1 < len(known_outcomes) == len(several):
            by_fold = [{**vars(outcome.performance), **outcome.consistency} for outcome in known_outcomes]
            for name in QUANTITIES:
                values = [fold_values.get(name, np.nan) for fold_values in by_fold]
                spread_of_cell[Cell(name, model)] = Spread(float(np.std(values, ddof=1)), len(values))
    return spread_of_cell


# --------------------------------------------------------------------------------------------------------------------
# Trains the baselines of the CEC paper: the same net, on the same rows of the same folds.
#
# Nothing here is held against the paper: it does not say how its baselines were made, and explains some that have no
# logit. Scope: the mitigation for each column of Table 2, and its figures.


ADVERSARY_WEIGHT: Final = 0.3
"""Of the adversary's gradient. At the library's own, 1, a net for synthetic applicants came to decide by group."""

MITIGATION_OF: Final[Mapping[str, Callable[[Split, TrainingSettings], Mitigated]]] = {
    "Hardt": cv_mitigations.threshold_optimizer,
    "adversarial": partial(cv_mitigations.adversarial, weight=ADVERSARY_WEIGHT),
    "Lagrangian": cv_mitigations.grid_search,
    "Agarwal": cv_mitigations.exponentiated_gradient,
    "DIR": cv_mitigations.disparate_impact_remover,
}
"""By the column of Table 2."""

NO_SCORES, NO_LOGIT, NO_MODEL = "no scores", "no logit", "no model"
"""Stand where a model on some fold has no figure: a mean over fewer folds cannot be compared with means over all."""


def mitigation_outcomes(rows: Lending, columns: Iterable[str], course: Course) -> ByModel:
    """Trains mitigations, by their columns in Table 2, on the first folds of five; None where one leaves no model."""
    bridge, outcomes_of_column = Bridge(rows), {column: list[FoldOutcome | None]() for column in columns}
    people = rows.population
    label, group = people.favourable, people.protected
    for fold in islice(cv_mitigations.split(people, FOLDS, course.settings.seed), course.folds):
        fitted, held_out = fold.train, fold.test
        split = Split(fold.inputs[fitted], label[fitted], group[fitted], fold.inputs[held_out], group[held_out])
        for column, of_column in outcomes_of_column.items():
            mitigated, outcome = MITIGATION_OF[column](split, course.settings), None
            if mitigated.predicted is not None:
                measured = performance(label[held_out], group[held_out], mitigated.predicted, mitigated.scores)
                repaired = fold
                if mitigated.repair is not None:
                    repaired = replace(fold, inputs=mitigated.repair.of(fold.inputs, group))
                outcome = FoldOutcome(measured, bridge.score(mitigated.net, repaired) if mitigated.net else {})
            of_column.append(outcome)
            log.info("fold %d of %d, %s", fold.number + 1, course.folds, column)
    return outcomes_of_column


def baselines_cells(outcomes_of_model: ByModel) -> Mapping[Cell, Value]:
    """Returns means of mitigations over their folds, or a word where there is none."""
    return {
        Cell(name, column): value for column, several in outcomes_of_model.items() for name, value in _figures(several)
    }


def _figures(several: Sequence[FoldOutcome | None]) -> Iterator[tuple[str, Value]]:
    """Means by the name of a quantity, and a word for each quantity of Table 2 that has none."""
    known_outcomes = [outcome for outcome in several if outcome is not None]
    if len(known_outcomes) < len(several):
        yield from dict.fromkeys(QUANTITIES, NO_MODEL).items()
        return
    figures = means(known_outcomes)
    finite_figures = {name: value for name, value in figures.items() if np.isfinite(value)}
    yield from {
        name: NO_SCORES if name in figures else NO_LOGIT for name in QUANTITIES if name not in finite_figures
    }.items()
    yield from finite_figures.items()


# --------------------------------------------------------------------------------------------------------------------
# Trains the grid of both lambdas on German credit (Figure 6) and computes the figures in the paper's text.
#
# The paper draws six heat maps without numbers; the requirements on ours are their reading in its text. Scope: the
# figures and the drawings of the grid. Its variants: ``algorithm.training.frontier``.


Grid = Mapping[tuple[float, float], Mapping[str, float]]
"""By lambda_EO and lambda_CEC: means over folds, and the number of collapsed folds."""

DRAWN: Final = {
    "f1": ("lambda-grid-f1", "F1"),
    "eo_gap": ("lambda-grid-eo-gap", "EO gap"),
    "cec": ("lambda-grid-cec", "CEC"),
    "flip_percent": ("lambda-grid-flips", "pairs with other predictions, percent"),
    "regime_a_percent": ("lambda-grid-regime-a", "pairs in regime A, percent"),
    "regime_b_percent": ("lambda-grid-regime-b", "pairs in regime B, percent"),
    "collapsed_folds": ("lambda-grid-collapsed-folds", "collapsed folds"),
}
"""Of a quantity: the name of its drawing, and the title of what is drawn."""

LEAST, HALF, ONE = 0.1, 0.5, 1.0
"""The values of lambda_CEC that the paper's text is about."""


def grid_of(outcomes: Sequence[Outcome]) -> Grid:
    """Returns means over folds of every pair of lambdas."""
    of: dict[Variant, list[FoldOutcome]] = {}
    for outcome in outcomes:
        of.setdefault(outcome.variant, []).append(FoldOutcome(outcome.performance, outcome.consistency))
    return {(variant.lambda_eo, variant.lambda_cec): means(several) for variant, several in of.items()}


def lambda_grid_cells(grid: Grid) -> Mapping[Cell, Value]:
    """Returns the compared values of the grid, each at its worst lambda_EO, and the collapsed folds of every pair."""
    values: dict[Cell, Value] = {
        Cell("cec_fall", f"lambda_EO {eo:g}"): grid[eo, LEAST]["cec"] - grid[eo, HALF]["cec"]
        for eo in dict.fromkeys(eo for eo, _ in grid)
    }
    little = [figures["regime_b_percent"] for (_, cec), figures in grid.items() if cec == LEAST]
    much = [figures["regime_b_percent"] for (_, cec), figures in grid.items() if cec >= ONE]
    moderate = [figures["f1"] for (_, cec), figures in grid.items() if cec <= ONE]
    values[Cell("least_regime_b_percent", "lambda_CEC 0.1")] = min(little)
    values[Cell("most_regime_b_percent", "lambda_CEC from 1")] = max(much)
    values[Cell("least_f1", "lambda_CEC to 1")] = min(moderate)
    for (eo, cec), figures in grid.items():
        values[Cell("collapsed_folds", f"lambda_EO {eo:g}, lambda_CEC {cec:g}")] = figures["collapsed_folds"]
    return values


def drawings(grid: Grid) -> Iterator[Drawing]:
    """Yields a drawing for each quantity: a curve over lambda_CEC for each lambda_EO."""
    places = list(dict.fromkeys(cec for _, cec in grid))
    for quantity, (name, title) in DRAWN.items():
        series = {
            f"lambda_EO {eo:g}": [grid[eo, cec][quantity] for cec in places]
            for eo in dict.fromkeys(eo for eo, _ in grid)
        }
        heading = f"{title} by the weights of both terms, German credit"
        yield Drawing(name, "Figure 6", heading, "lambda_CEC", title, curves(places, series))


# --------------------------------------------------------------------------------------------------------------------
# Counts the folds on which no other model is better than a model (Table 3).
#
# The paper's count is on F1, EO gap and CEC together, where the model with the lowest CEC of a fold cannot lose. Two
# more counts are reported: on F1 and EO gap alone, of models without a logit, too, and on all three without collapsed
# models. Scope: the counts, in percent of the folds. The frontier of one fold: ``algorithm.training.frontier``.


ON_ALL_THREE: Final = "non_dominated_percent"
ON_DECISIONS: Final = "non_dominated_f1_eo_percent"
UNCOLLAPSED: Final = "non_dominated_uncollapsed_percent"

NON_DOMINATION_NO_LOGIT: Final = "no logit"
"""Stands in the counts with CEC for models that have none."""


def non_domination_cells(outcomes_of_model: ByModel) -> Mapping[Cell, Value]:
    """Returns the three counts of every model. Models missing in a fold have no counts and are not compared."""
    complete = {
        model: [outcome for outcome in several if outcome]
        for model, several in outcomes_of_model.items()
        if all(several)
    }
    percentages: dict[Cell, Value] = {}
    for name in (ON_ALL_THREE, ON_DECISIONS, UNCOLLAPSED):
        # F1, EO gap and CEC by model and fold; NaN keeps a model out of a fold's comparison
        points = []
        for outcome in (outcome for several in complete.values() for outcome in several):
            cec = 0.0 if name == ON_DECISIONS else outcome.consistency.get("cec", np.nan)
            left_out = name == UNCOLLAPSED and outcome.performance.collapsed
            points.append([np.nan] * 3 if left_out else [outcome.performance.f1, outcome.performance.eo_gap, cec])
        by_fold = np.array(points).reshape(len(complete), -1, 3)
        best = np.column_stack([non_dominated(*by_fold[:, fold].T) for fold in range(by_fold.shape[1])])
        for (model, several), folds in zip(complete.items(), best, strict=True):
            explained = name == ON_DECISIONS or all("cec" in outcome.consistency for outcome in several)
            percentages[Cell(name, model)] = float(100 * folds.mean()) if explained else NON_DOMINATION_NO_LOGIT
    return percentages
