"""What our code obtains of table 11.2 of Stock and Watson: denial of Black against white applicants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.stats import chi2

from tasks.methods.adjusted.algorithm.ladder.linear import fit_linear
from tasks.methods.adjusted.reproduction.binary import Link, fit_binary
from tasks.methods.adjusted.reproduction.samples import Sample, aer_hmda
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Value

BLACK = "Black"
RATIOS = ("pirat", "hirat")
TERMS = (*RATIOS, "medium", "high", "chist", "mhist", "phist", "insurance", "selfemp")
PERSON = (*TERMS, "single", "hschool", "unemp")
LEVELS = ("condomin", *(f"mhist = {level}" for level in (3, 4)), *(f"chist = {level}" for level in (3, 4, 5, 6)))
INTERACTIONS = tuple(f"afam x {ratio}" for ratio in RATIOS)


@dataclass(frozen=True)
class Column:
    """A column of the table; every one has ``afam`` first."""

    form: Literal["linear"] | Link
    names: tuple[str, ...]


COLUMNS: Mapping[str, Column] = {
    "column 1": Column("linear", TERMS),
    "column 2": Column("logit", TERMS),
    "column 3": Column("probit", TERMS),
    "column 4": Column("probit", PERSON),
    "column 5": Column("probit", (*PERSON, *LEVELS)),
    "column 6": Column("probit", (*PERSON, *INTERACTIONS)),
}


def cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """All that the table prints of race, and the simple regressions before it."""
    sample = aer_hmda(data)
    for name, column in COLUMNS.items():
        for quantity, value in _column(sample, column).items():
            yield Cell(quantity, BLACK, (name,)), value
    for name, regressors in (("deny on pirat", ("pirat",)), ("deny on pirat, afam", ("pirat", "afam"))):
        fit = fit_linear(sample.column("deny"), sample.design(regressors))
        for regressor, value in zip(regressors, fit.coefficients[1:], strict=True):
            yield Cell("estimate", "all", (name, regressor)), float(value)


def _column(sample: Sample, column: Column) -> dict[str, Value]:
    names = ("afam", *column.names)
    y, x = sample.column("deny"), sample.design(names)
    if column.form == "linear":
        fit = fit_linear(y, x)
        change, error = float(fit.coefficients[1]), float(np.sqrt(fit.hc1[1, 1]))
        return {"estimate": change, "standard_error": error, "difference_at_means": change}
    found = fit_binary(y, x, column.form)
    black, white = (_at_means(sample, names, x, afam) @ found.coefficients for afam in (1.0, 0.0))
    told: dict[str, Value] = {
        "estimate": float(found.coefficients[1]),
        "standard_error": float(np.sqrt(found.robust[1, 1])),
        "difference_at_means": float(found.distribution(black) - found.distribution(white)),
    }
    if set(INTERACTIONS) <= set(names):
        interactions = [1 + names.index(name) for name in INTERACTIONS]
        told["p_race_and_interactions"] = _wald(found.coefficients, found.robust, [1, *interactions])
        told["p_interactions"] = _wald(found.coefficients, found.robust, interactions)
    return told


def _at_means(sample: Sample, names: Sequence[str], x: Floats, afam: float) -> Floats:
    """``(p,)`` the means of all columns, dummies too, with race set and interactions that follow from it."""
    at: Floats = x.mean(axis=0)
    at[1] = afam
    for ratio, name in zip(RATIOS, INTERACTIONS, strict=True):
        if name in names:
            at[1 + names.index(name)] = afam * sample.column(ratio).mean()
    return at


def _wald(coefficients: Floats, covariance: Floats, chosen: Sequence[int]) -> float:
    """p-value of the hypothesis that coefficients are all zero."""
    at = np.asarray(chosen)
    of = coefficients[at]
    return float(chi2.sf(of @ np.linalg.solve(covariance[np.ix_(at, at)], of), len(at)))
