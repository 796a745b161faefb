"""Checks of generated mediators without the truth: how much of a person they keep, and leaks of the category.

A generator that returns the conditional mean passes every check of its distribution and says nothing about the person.
So results are compared with the mean and, for continuous mediators, with the map of conditional quantiles. Scope: the
numbers, and the limits beyond which they are doubtful.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional.moments import fit_mean, residuals
from tasks.counterfactuals.algorithm.conditional.quantiles import fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics.convergence import (
    SETTLED_ADVANTAGE,
    SETTLED_RECONSTRUCTION,
    Convergence,
)
from tasks.counterfactuals.algorithm.diagnostics.quality import WIDE, kept, others
from tasks.counterfactuals.algorithm.gan.groups import some
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.mediation import LEAKS, Mediation, leaks

HALF: Final = 0.5
"""Of what tells a person from people alike: a generator that keeps less is doubted. Our choice."""


class Check(NamedTuple):
    """One number about generators."""

    check: str
    network: int | None
    column: str | None
    value: float
    n: int
    doubtful: bool


def of_networks(imagined: Floats, rows: Mediation, trained: Longs, seed: int) -> Iterator[Check]:
    """By network and numeric mediator: what is left of the person, beside the conditional mean and quantiles.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        trained: Those of them that the generators learnt from; regressions learn from the same.
        seed: Of the regressions.
    """
    mean = fit_mean(rows.rows(trained), seed).potential(rows.covariates)
    numeric = [name for name, number in zip(rows.mediators.names, rows.numeric, strict=True) if number]
    for check, found in (("kept", kept(imagined, rows, mean)), ("beyond_mean", beyond_mean(imagined, rows, mean))):
        yield from _by_network(check, found, numeric, len(rows), found < HALF)
    continuous = np.array([kind is Kind.CONTINUOUS for kind in rows.mediators.kinds], dtype=np.bool_)
    if continuous.any():
        apart = apart_from_quantiles(imagined, rows, trained, continuous, seed)
        names = [name for name, number in zip(rows.mediators.names, continuous, strict=True) if number]
        yield from _by_network("apart_from_quantiles", apart, names, len(rows), apart > WIDE)


def of_training(found: Convergence, n: int) -> Iterator[Check]:
    """By network, whether its training came to rest; ``n`` rows were learnt from."""
    doubtful = {
        "reconstruction": found.reconstruction > SETTLED_RECONSTRUCTION,
        "advantage": np.abs(found.advantage) > SETTLED_ADVANTAGE,
        "accuracy": np.zeros(len(found.accuracy), np.bool_),
        "converged": ~found.converged,
    }
    for check, flags in doubtful.items():
        for network, value in enumerate(getattr(found, check).astype(np.float64).tolist()):
            yield Check(check, network, None, value, n, bool(flags[network]))


def of_covariates(rows: Mediation, seed: int) -> Iterator[Check]:
    """Whether covariates give the category away."""
    for leak in leaks(rows, seed):
        yield Check("leak", None, leak.covariate, leak.auc, len(rows), leak.auc > LEAKS)


def beyond_mean(imagined: Floats, rows: Mediation, mean: Floats) -> Floats:
    """``(s, q)`` deviation of what is imagined about E[M | x, a'], over that of what is observed about E[M | x, a].

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        mean: ``(k, n, q)`` estimated means of the numeric mediators.
    """
    other, numeric = others(rows.category, len(rows.categories)), rows.numeric
    own = residuals(mean, rows.category, rows.mediators.values[:, numeric])
    found: Floats = (imagined[:, other][..., numeric] - mean[other]).std(axis=1) / own.std(axis=0)
    return found


def apart_from_quantiles(imagined: Floats, rows: Mediation, trained: Longs, continuous: Bools, seed: int) -> Floats:
    """``(s, c)`` root mean square distance to the quantile map, in deviations of the mediator.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        trained: Those that quantiles are fitted to.
        continuous: ``(p,)`` the mediators that have quantiles.
        seed: Of the regressions.
    """
    own = Mediation(
        rows.covariates, rows.category, rows.categories, some(rows.mediators, np.flatnonzero(continuous).tolist())
    )
    mapped = fit_quantiles(own.rows(trained), seed).imagine(own)
    other = others(rows.category, len(rows.categories))
    apart = imagined[:, other][..., continuous] - mapped[:, other]
    found: Floats = np.sqrt(np.square(apart).mean(axis=1)) / own.mediators.values.std(axis=0)
    return found


def typical(imagined: Floats, rows: Mediation, deviation: Floats) -> Longs:
    """``(n,)`` the network whose mediators lie nearest to those of all networks, for one category.

    Args:
        imagined: ``(s, n, p)``.
        rows: The applicants.
        deviation: ``(p,)`` of the mediators; not read of those with categories, which are 0 or 1 apart.
    """
    scale = np.where(rows.numeric & (deviation > 0), deviation, 1.0)
    apart = [_apart(imagined, network, rows.numeric, scale) for network in imagined]
    found: Longs = np.array(apart).sum(axis=1).argmin(axis=0)
    return found


def _apart(imagined: Floats, network: Floats, numeric: Bools, scale: Floats) -> Floats:
    """``(s, n)`` distance of every network from one."""
    moved = (imagined - network) / scale
    found: Floats = np.sqrt(np.where(numeric, np.square(moved), moved != 0).sum(axis=-1))
    return found


def _by_network(check: str, found: Floats, names: list[str], n: int, doubtful: Bools) -> Iterator[Check]:
    for network, at in np.ndindex(found.shape):
        value = float(found[network, at])
        yield Check(check, network, names[at], value, n, bool(doubtful[network, at]) or not np.isfinite(value))
