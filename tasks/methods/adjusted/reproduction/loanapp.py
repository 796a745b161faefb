"""What our code obtains of Wooldridge's exercises on LOANAPP: approval of white against other applicants."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import t as student

from tasks.methods.adjusted.algorithm.ladder.linear import LinearFit, fit_linear
from tasks.methods.adjusted.algorithm.sensitivity.robustness import Estimate, robustness_value
from tasks.methods.adjusted.reproduction.binary import Link, average_change, average_derivative, fit_binary
from tasks.methods.adjusted.reproduction.samples import Sample, loanapp
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Value

WHITE = "white"
CONTROLS = (
    *("hrat", "obrat", "loanprc", "unem", "male", "married", "dep", "sch", "cosign", "chist", "pubrec"),
    *("mortlat1", "mortlat2", "vr"),
)
AT_OBRAT = 32.0
"""Other obligations, in percent of income, at which the effect of the interaction is told."""

Cells = Iterator[tuple[Cell, Value]]


def cells() -> Cells:
    """All that the exercises print."""
    everyone = loanapp()
    complete = everyone.complete(["approve", WHITE, *CONTROLS])
    for sample, controls, suffix in ((everyone, (), ""), (complete, CONTROLS, ", X")):
        fit = fit_linear(sample.column("approve"), sample.design([WHITE, *controls]))
        yield from _told(f"OLS{suffix}", n=len(sample.frame), **_linear(fit))
        for link in ("probit", "logit"):
            yield from _binary(sample, controls, link, f"{link}{suffix}")
    yield from _interaction(complete)


def _told(specification: str, **figures: float) -> Cells:
    for quantity, value in figures.items():
        yield Cell(quantity, WHITE, (specification,)), float(value)


def _linear(fit: LinearFit) -> dict[str, float]:
    """Coefficient of white, errors and robustness values."""
    se = float(np.sqrt(fit.classical[1, 1]))
    estimate = Estimate(float(fit.coefficients[1]), se, fit.df)
    values = {"robustness_value": robustness_value(estimate), "robustness_value_at_5": robustness_value(estimate, 0.05)}
    return {"estimate": estimate.value, "standard_error": se, "hc1_error": float(np.sqrt(fit.hc1[1, 1])), **values}


def _binary(sample: Sample, controls: Sequence[str], link: Link, name: str) -> Cells:
    x = sample.design([WHITE, *controls])
    fit = fit_binary(sample.column("approve"), x, link)
    change, se = average_change(fit, x, 1)
    effects = {
        "average_change": change,
        "average_change_error": se,
        "average_derivative": average_derivative(fit, x, 1),
    }
    estimate = float(fit.coefficients[1])
    yield from _told(name, estimate=estimate, standard_error=np.sqrt(fit.classical[1, 1]), **effects)
    if link == "logit":
        yield from _told(name, odds_ratio=np.exp(estimate))


def _interaction(sample: Sample) -> Cells:
    """With white x obrat: its coefficient, and the effect of white at one value of obrat."""
    names = [WHITE, *CONTROLS]
    x = np.column_stack([sample.design(names), sample.column(WHITE) * sample.column("obrat")])
    fit = fit_linear(sample.column("approve"), x)
    at: Floats = np.zeros(x.shape[1])
    at[1], at[-1] = 1, AT_OBRAT
    value, half = float(at @ fit.coefficients), student.ppf(0.975, fit.df) * np.sqrt(at @ fit.classical @ at)
    yield from _told("OLS, X, white x obrat", estimate=fit.coefficients[-1], t=fit.t[-1])
    yield from _told("white at obrat 32", estimate=value, interval_low=value - half, interval_high=value + half)
