"""Figures of trained models over the folds: mean and standard deviation of each, as aggregates.

If a fold lacks a figure, such as the AUC of a model without scores, its mean is null with the reason: a mean over fewer
folds is not comparable with the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from tasks.methods.cec.algorithm.score import REGIMES
from tasks.methods.cec.algorithm.training.frontier import non_dominated
from tasks.methods.cec.algorithm.training.held_out import Consistency
from tasks.methods.cec.algorithm.training.models import Model, Trial
from tasks.metrics.compare.algorithm.performance import Performance
from tasks.numerics.results import Aggregate
from tasks.numerics.statistics.distributions import Parameters

Name = tuple[str, str]
"""A measure, and the regime that it is of, if any."""

OF_DECISIONS = tuple(field.name for field in fields(Performance))
OF_REASONS = ("cec", "cec_floor", "cec_above_floor")

NO_SCORES = "the model gives decisions without scores"
NO_ROWS = "a group, or a label, has no held-out row in a fold"
NO_PAIRS = "no held-out row of a fold has a pair whose reasons could be compared"


@dataclass(frozen=True)
class Figure:
    """One number of one model on one fold."""

    value: float
    """NaN where it has none."""
    n: int
    """Held-out rows, or pairs, that it is about."""
    events: int | None = None
    """Those that it counts, where it is a share of them."""
    reason: str = ""
    """Why there is no value."""


def aggregates(trials: Sequence[Trial], group: int) -> Iterator[Aggregate]:
    """Every figure of every model: its mean over the folds and the standard deviation, with n of all folds.

    ``trained_collapsed`` and ``trained_non_dominated`` are shares of the folds, and have no deviation. The latter is
    said of models that are no part of the grid, against each other.

    Args:
        trials: Of all models on all folds.
        group: Number of the group that is held against the reference group.
    """
    best = _non_dominated(trials)
    for model, own in _by_model(trials).items():
        said = {name: [_figures(trial)[name] for trial in own] for name in _figures(own[0])}
        for (measure, regime), figures in said.items():
            of: Parameters = {"regime": regime} if regime else {}
            yield _over_folds(group, measure, {**_named(model), **of}, figures, "mean")
            yield _over_folds(group, measure, {**_named(model), **of}, figures, "sd")
        yield _over_folds(group, "trained_collapsed", _named(model), [_collapsed(trial) for trial in own], "mean")
        if not model.grid:
            on_frontier = [best[trial.fold, model] for trial in own]
            yield _over_folds(group, "trained_non_dominated", _named(model), on_frontier, "mean")


def refused(models: Iterable[Model], group: int, rows: int, reason: str) -> Iterator[Aggregate]:
    """The models that nobody could train for a group of so many rows, reference group included, and why."""
    for model in models:
        if not model.grid:
            yield _over_folds(group, "trained_cec", _named(model), [Figure(np.nan, rows, reason=reason)], "mean")


def _by_model(trials: Sequence[Trial]) -> dict[Model, list[Trial]]:
    of: dict[Model, list[Trial]] = {}
    for trial in trials:
        of.setdefault(trial.model, []).append(trial)
    return of


def _named(model: Model) -> Parameters:
    if model.lambdas is None:
        return {"model": model.name}
    return {"model": model.name, "lambda_eo": model.lambdas[0], "lambda_cec": model.lambdas[1]}


def _over_folds(group: int, measure: str, of: Parameters, figures: Sequence[Figure], over: str) -> Aggregate:
    values = np.array([figure.value for figure in figures])
    value = values.mean() if over == "mean" else values.std(ddof=1)
    counted = [figure.events for figure in figures if figure.events is not None]
    return Aggregate(
        group,
        0,
        measure,
        {**of, "over_folds": over},
        float(value),
        n=sum(figure.n for figure in figures),
        compared=False,
        events=sum(counted) if len(counted) == len(figures) else None,
        reason=next((figure.reason for figure in figures if figure.reason), ""),
    )


def _figures(trial: Trial) -> dict[Name, Figure]:
    return {**_of_decisions(trial), **_of_reasons(trial)}


def _of_decisions(trial: Trial) -> dict[Name, Figure]:
    out: dict[Name, Figure] = {}
    for name in OF_DECISIONS:
        value = np.nan if trial.performance is None else float(getattr(trial.performance, name))
        missing = NO_SCORES if name == "auc" else NO_ROWS
        reason = "" if not np.isnan(value) else trial.reason if trial.performance is None else missing
        events = round(value * trial.rows) if name == "positive_rate" and not reason else None
        out[f"trained_{name}", ""] = Figure(value, trial.rows, events, reason)
    return out


def _of_reasons(trial: Trial) -> dict[Name, Figure]:
    found, shares = trial.consistency, [("trained_flip_share", ""), *(("trained_regime_share", r) for r in REGIMES)]
    if found is None or not found.pairs:
        names = [*((f"trained_{name}", "") for name in OF_REASONS), *shares]
        missing = Figure(np.nan, trial.rows, reason=trial.reason if found is None else NO_PAIRS)
        return dict.fromkeys(names, missing)
    means = {(f"trained_{name}", ""): _mean(getattr(found, name), found) for name in OF_REASONS}
    counts = zip(shares, (found.flips, *found.regimes), strict=True)
    return means | {name: Figure(count / found.pairs, found.pairs, count) for name, count in counts}


def _mean(value: float, found: Consistency) -> Figure:
    """The floor is not defined where the reference has no direction for any pair."""
    return Figure(value, found.pairs, reason=NO_PAIRS if np.isnan(value) else "")


def _collapsed(trial: Trial) -> Figure:
    if trial.performance is None:
        return Figure(np.nan, trial.rows, reason=trial.reason)
    return Figure(float(trial.performance.collapsed), trial.rows)


def _non_dominated(trials: Sequence[Trial]) -> dict[tuple[int, Model], Figure]:
    """Whether no other model beats it on its fold in F1, odds gap and CEC at once; of models that have all three."""
    out: dict[tuple[int, Model], Figure] = {}
    for fold in sorted({trial.fold for trial in trials}):
        own = [trial for trial in trials if trial.fold == fold and not trial.model.grid]
        figures = [_figures(trial) for trial in own]
        names = ("trained_f1", "trained_eo_gap", "trained_cec")
        f1, eo_gap, cec = ([each[name, ""] for each in figures] for name in names)
        best = non_dominated(*(np.array([figure.value for figure in column]) for column in (f1, eo_gap, cec)))
        for trial, on_frontier, *three in zip(own, best.tolist(), f1, eo_gap, cec, strict=True):
            reason = next((figure.reason for figure in three if figure.reason), "")
            out[fold, trial.model] = Figure(np.nan if reason else float(on_frontier), trial.rows, reason=reason)
    return out
