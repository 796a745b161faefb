"""Targets of applicants under any decision maker: the boundary of a linear model, or another applicant's place.

A cross-fitted model is several models: every applicant goes to the boundary of the one that decided on it. A model
without a boundary, and a lender, have favoured other applicants: the nearest eligible one is the counterfactual point
(section 3.6). A model must first favour the applicant there with its immutable values.

Scope: counterfactual points, and reasons for having none. Their use: ``lists``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tasks.baselines.algorithm.sources.kind import SearchSpace
from tasks.baselines.algorithm.sources.registry import SOURCES
from tasks.counterfactuals.algorithm.recourse import targets
from tasks.counterfactuals.algorithm.recourse.actions import Actions
from tasks.counterfactuals.algorithm.recourse.permitted import NOBODY, Favours, nearest_favoured
from tasks.counterfactuals.algorithm.recourse.stepped import in_steps
from tasks.counterfactuals.algorithm.recourse.targets import OUT_OF_REACH, Boundary, Targets
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Floats, Ints, Longs

NO_CANDIDATE: Final = "no_candidate"


@dataclass(frozen=True)
class Found:
    """Of ``n`` rows the counterfactual points."""

    targets: Targets
    by: str
    """``boundary``, ``steps``, ``ar``, ``mace`` or ``nearest``."""
    refusal: NDArray[np.str_]
    """``(n,)`` empty, or the reason."""
    candidate: Longs
    """``(n,)`` the candidate whose place it is; -1 where it is nobody's."""
    boundary: Boundary | None = None
    """Where one boundary is that of all rows, and a record that was modified pays its way to it anew."""


def of_source(
    values: Floats, fold: Ints, boundaries: Mapping[int, Boundary], actions: Actions, observed: Floats, source: str
) -> Found:
    """The points that another paper's system finds below the boundary of the model that decided on each row.

    The cost stays RAGUEL's: the weighted distance to that point.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        fold: ``(n,)`` number of the model that decided.
        boundaries: Of the models, by number.
        actions: What may be done.
        observed: ``(m, d)`` rows whose values may be taken.
        source: Name in the registry of sources.
    """
    point, reached = values.copy(), np.zeros(len(values), np.bool_)
    for number, boundary in boundaries.items():
        own = np.flatnonzero(fold == number)
        there = SOURCES[source](SearchSpace(values[own], boundary, actions, observed))
        point[own], reached[own] = there.point, there.reached
    found = targets.given(values, np.where(reached[:, None], point, np.nan), actions)
    return Found(found, source, np.where(found.reached, "", OUT_OF_REACH), np.full(len(values), NOBODY))


def to_boundaries(
    values: Floats, fold: Ints, boundaries: Mapping[int, Boundary], actions: Actions, settings: RaguelSettings
) -> Found:
    """The nearest permitted point of the boundary of the model that decided on each row.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        fold: ``(n,)`` number of the model that decided.
        boundaries: Of the models, by number.
        actions: What may be done.
        settings: ``steps`` and ``most``.
    """
    found = Targets(values.copy(), np.full(len(values), np.nan), np.ones(len(values)))
    stepped = settings.steps or settings.most is not None
    for number, boundary in boundaries.items():
        own = np.flatnonzero(fold == number)
        if stepped:
            taken = actions if settings.steps else replace(actions, step=np.zeros_like(actions.step))
            there = in_steps(values[own], boundary, taken, settings.most).targets
        else:
            there = targets.to_boundary(values[own], boundary, actions)
        found.point[own], found.cost[own] = there.point, there.cost
    alone = next(iter(boundaries.values())) if len(boundaries) == 1 and not stepped else None
    refusal = np.where(found.reached, "", OUT_OF_REACH)
    return Found(found, "steps" if stepped else "boundary", refusal, np.full(len(values), NOBODY), alone)


def to_nearest(
    values: Floats, candidates: Floats, actions: Actions, asked: int = 1, favours: Favours | None = None
) -> Found:
    """The place of the nearest candidate that may be taken and, if a model can be asked, that it favours.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        candidates: ``(c, d)`` favourably decided rows.
        actions: What may be done.
        asked: Candidates that are tried for each row.
        favours: The model; None where nobody can be asked, and the nearest candidate has to do.
    """
    chosen = nearest_favoured(values, candidates, actions, asked, favours)
    reached = chosen != NOBODY
    points = values.copy()
    points[reached] = candidates[chosen[reached]]
    found = targets.given(values, points, actions)
    cost = np.where(reached, found.cost, np.nan)
    return Found(replace(found, cost=cost), "nearest", np.where(reached, "", NO_CANDIDATE), chosen)
