"""Rows of the linear probability model: coefficient of the group, and what an unseen column could do to it.

It takes curvature for an effect where controls differ between groups, so it stands beside the logit and never decides.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.effect import Effect
from tasks.methods.adjusted.algorithm.ladder.estimators.rung import Rung
from tasks.methods.adjusted.algorithm.ladder.estimators.wild import wild_interval
from tasks.methods.adjusted.algorithm.ladder.linear import CollinearError, LinearFit, fit_linear
from tasks.methods.adjusted.algorithm.sensitivity.unseen import Sensitivity, sensitivity
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.influence import Estimate, estimate


@dataclass(frozen=True)
class Membership:
    """Least squares fit of one column of a design on the others, got from (X'X)^-1 without another pass."""

    coefficients: Floats
    """``(p - 1,)``."""
    classical: Floats
    """``(p - 1, p - 1)``."""
    df: int


def membership(bread: Floats, column: int, n: int) -> Membership:
    """The fit of a column on the others by the block inverse of ``bread``, (X'X)^-1 ``(p, p)``.

    With B its inverse: coefficients -B_od / B_dd, squared residuals 1 / B_dd, inverse of the others' cross products
    B_oo - B_od B_do / B_dd (Frisch, Waugh and Lovell).
    """
    others = np.delete(np.arange(len(bread)), column)
    own, beside = float(bread[column, column]), bread[others, column]
    df = n - len(others)
    left = bread[np.ix_(others, others)] - np.outer(beside, beside) / own
    return Membership(-beside / own, left / own / df, df)


def linear_rows(
    rung: Rung, names: tuple[str, ...], rng: np.random.Generator, *, bootstrap: bool
) -> dict[int, list[Effect]]:
    """Coefficients with HC1, or CR1 with clusters; a wild cluster bootstrap's interval where it is asked for.

    Args:
        rung: Its rows and columns.
        names: Names of the controls, as the design counts them.
        rng: For the bootstrap.
        bootstrap: Whether intervals with clusters are the bootstrap's.
    """
    design = rung.design
    try:
        fit = fit_linear(design.y, rung.x, design.cluster)
    except CollinearError as error:
        return {g: [rung.row(g, "lpm", "all", Estimate(reason=str(error)))] for g in rung.groups}
    return {g: [_row(rung, g, fit, names, rng, bootstrap)] for g in rung.groups}


def _row(
    rung: Rung, group: int, fit: LinearFit, names: tuple[str, ...], rng: np.random.Generator, bootstrap: bool
) -> Effect:
    """One group's coefficient with its robustness values."""
    design, column = rung.design, rung.design.indicators[group]
    found = estimate(float(fit.coefficients[column]), float(fit.se[column]), rung.level, design.cluster)
    if bootstrap and design.cluster is not None:
        low, high = wild_interval(rung.x, design.y, fit, column, design.cluster, rung.level, rng)
        reason = "interval by wild cluster bootstrap"
        found = found._replace(low=low, high=high, reason=reason if low <= high else f"{reason}: no bound")
    if not fit.classical[column, column] > 0:
        return rung.row(group, "lpm", "all", found)
    unseen = _unseen(rung, column, fit, names)
    strongest = unseen.adjusted_by_strongest
    return rung.row(
        *(group, "lpm", "all", found),
        unseen=unseen,
        rv=unseen.rv,
        rv_alpha=unseen.rv_alpha,
        strongest=unseen.strongest,
        adjusted_by_strongest=math.nan if strongest is None else strongest.value,
    )


def _unseen(rung: Rung, column: int, fit: LinearFit, names: tuple[str, ...]) -> Sensitivity:
    """Robustness values and benchmarks, a control being all its columns; a product is one of both its own."""
    places: dict[str, list[int]] = {}
    for place, control in enumerate(rung.design.control[: rung.x.shape[1]]):
        if control >= 0:
            places.setdefault(names[control], []).append(place)
    for place, control in rung.design.partners.items():
        places.setdefault(names[control], []).append(place)
    residual = float(np.square(rung.design.y - rung.x @ fit.coefficients).sum())
    bread = fit.classical * fit.df / residual
    return sensitivity(fit, membership(bread, column, len(rung.design.y)), column, places, 1 - rung.level)
