"""Compares models by accuracy, CF and utility over runs: the paper's Figures 3 and 10 to 13, and what is asked of them.

The paper draws utilities and prints none. So the verdicts are on directions, and on the figures of a trial with the
quantile map in the place of the networks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from tasks.methods.gcfn.reproduction.printed import FAIR, TITLES
from tasks.methods.gcfn.reproduction.rivals import HSCIC_SWEEP, hscic_title
from tasks.methods.gcfn.reproduction.tradeoff import SWEEP, Told
from tasks.proof.drawings import Drawing, curves
from tasks.proof.lines import Cell, Value
from tasks.proof.published import NOT_RUN

GAMMAS: Final = tuple(round(0.1 * step, 1) for step in range(1, 11))
SHOWN_GAMMAS: Final = (0.1, 0.5, 1.0)

FROM, TO = (next(variant.name for variant in SWEEP if variant.fairness == value) for value in (0.0, 0.5))
"""Between these the paper says in which direction accuracy and CF go."""

FEWEST_RUNS: Final = 3
"""Fewer say too little of a mean utility: on 2,000 rows its standard deviation is 0.009."""
TOO_FEW: Final = f"{NOT_RUN}: fewer than {FEWEST_RUNS} runs"

FALLS, FALLS_NOT, RISES, RISES_NOT = "falls", "does not fall", "rises", "does not rise"
STEADILY, UNSTEADILY = "falls at every step", "does not fall at every step"

Runs = Sequence[Mapping[str, Told]]
"""For each run its models by name, the same in all."""


def means(several: Runs) -> Mapping[str, Told]:
    """Means over runs by model."""
    return {name: Told(*np.mean([each[name] for each in several], axis=0)) for name in several[0]}


def cells(several: Runs) -> Mapping[Cell, Value]:
    """Returns the figures of each model, means over runs, the directions, and GCFN beside the others."""
    told = means(several)
    found: dict[Cell, Value] = {}
    for name, mean in told.items():
        found |= {Cell(quantity, name): float(value) for quantity, value in mean._asdict().items()}
        found |= {Cell(f"utility_gamma_{gamma:g}", name): mean.utility(gamma) for gamma in SHOWN_GAMMAS}
        found[Cell("mean_utility", name)] = mean.mean_utility if len(several) >= FEWEST_RUNS else TOO_FEW
        if len(several) > 1:
            found[Cell("mean_utility_sd", name)] = _sd(several, name)
    found[Cell("largest_mean_utility", "all models")] = max(told, key=lambda name: told[name].mean_utility)
    return {**found, **directions(told, len(several)), **dict(_beside_others(several, told))}


def directions(told: Mapping[str, Told], runs: int) -> Mapping[Cell, Value]:
    """Returns which way accuracy, CF and mean utility go with lambda: in words, since the paper gives no figure."""
    found: dict[Cell, Value] = {}
    for quantity in ("accuracy", "cf_true"):
        change = getattr(told[TO], quantity) - getattr(told[FROM], quantity)
        found[Cell(f"{quantity}_from_lambda_0_to_0.5", FAIR)] = FALLS if change < 0 else FALLS_NOT
    better = told[TO].mean_utility > told[FROM].mean_utility
    risen = RISES if better else RISES_NOT
    found[Cell("mean_utility_from_lambda_0_to_0.5", FAIR)] = risen if runs >= FEWEST_RUNS else TOO_FEW
    found[Cell("cf_true_along_lambda", FAIR)] = _steadily([told[variant.name].cf_true for variant in SWEEP])
    swept = [hscic_title(weight) for weight in HSCIC_SWEEP]
    along = _steadily([told[name].cf_true for name in swept]) if swept[0] in told else NOT_RUN
    return {**found, Cell("cf_true_along_lambda", TITLES["hscic"]): along}


def drawings(several: Runs, figures: tuple[str, str]) -> tuple[Drawing, ...]:
    """Draws utility by gamma and mean utility by lambda.

    Args:
        several: The runs.
        figures: The paper's numbers of the two drawings.
    """
    told = means(several)
    by_gamma = {name: [mean.utility(gamma) for gamma in GAMMAS] for name, mean in _shown(told).items()}
    title = "Utility of each predictor, mean over runs"
    gammas = Drawing("utility-by-gamma", figures[0], title, "gamma", "accuracy - gamma CF", curves(GAMMAS, by_gamma))
    weights = [variant.fairness for variant in SWEEP]
    along = np.array([told[variant.name].mean_utility for variant in SWEEP])
    spread = np.array([_sd(several, variant.name) for variant in SWEEP])
    flat = {name: [told[name].mean_utility] * len(weights) for name in TITLES.values() if name in told}
    own = {FAIR: along, "GCFN less one sd": along - spread, "GCFN plus one sd": along + spread}
    series = {name: values.tolist() for name, values in own.items()}
    title = "Mean utility over ten gamma by lambda; the others have no lambda"
    drawn = curves(weights, {**series, **flat})
    return (gammas, Drawing("mean-utility-by-lambda", figures[1], title, "lambda", "mean utility", drawn))


def _shown(told: Mapping[str, Told]) -> Mapping[str, Told]:
    """The models without a weight, and of GCFN and HSCIC those of the weights 0, 0.5 and 5."""
    return {name: told[name] for name in (FROM, TO, hscic_title(5.0), *TITLES.values()) if name in told}


def _beside_others(several: Runs, told: Mapping[str, Told]) -> Iterator[tuple[Cell, Value]]:
    """How far GCFN's mean utility at lambda 0.5 is above each of the others', and whether it is not below by an sd."""
    gcfn, own = told[TO].mean_utility, _sd(several, TO)
    for name in TITLES.values():
        best = _best(told, name)
        if best is None:
            yield Cell("mean_utility_above", f"GCFN over {name}"), NOT_RUN
            yield Cell("mean_utility_below_by_more_than_one_sd", f"GCFN under {name}"), NOT_RUN
            continue
        yield Cell("mean_utility_above", f"GCFN over {name}"), gcfn - told[best].mean_utility
        below = told[best].mean_utility - gcfn > max(own, _sd(several, best))
        said = ("yes" if below else "no") if len(several) >= FEWEST_RUNS else TOO_FEW
        yield Cell("mean_utility_below_by_more_than_one_sd", f"GCFN under {name}"), said


def _best(told: Mapping[str, Told], name: str) -> str | None:
    """The model of a system with the largest mean utility; None where the system was not run."""
    models = [model for model in told if model.split(", ")[0] == name]
    return max(models, key=lambda model: told[model].mean_utility, default=None)


def _sd(several: Runs, name: str) -> float:
    """Standard deviation of the mean utility over runs, as the paper's figures have it; NaN of a single run."""
    values = [each[name].mean_utility for each in several]
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def _steadily(values: Sequence[float]) -> str:
    return STEADILY if all(after < before for before, after in pairwise(values)) else UNSTEADILY
