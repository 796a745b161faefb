"""The ratio of recourse costs of a decision maker: costs of the audit's model, and of models fitted to resamples.

Scope: decision makers, resamples and boundaries. The ratio and its interval: ``algorithm.cost_ratio``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from schemas.audit.model import Model
from tasks.counterfactuals.algorithm.recourse.targets import Boundary
from tasks.methods.raguel.algorithm import cost_ratio
from tasks.methods.raguel.algorithm import targets as raguel_targets
from tasks.methods.raguel.algorithm.cost_ratio import Costs
from tasks.methods.raguel.algorithm.units import Space
from tasks.methods.raguel.rerank.recourse import above
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions.linear import Linear
from tasks.numerics.results import Aggregate
from tasks.preprocessing.groups import Grouped
from tasks.scoring.refitting import Refits

NO_BOUNDARY = "costs are to other applicants, as there is no linear boundary to go to"
OTHER_SOURCE = "methods.raguel.source is {source}, whose points are not found again in resamples"
NOT_ASKED = "methods.raguel.refits is 0"
NOT_FITTED = "a model of the kind {kind} is not fitted again"


@dataclass(frozen=True)
class Priced:
    """Who is denied in a resample."""

    row: Longs
    """``(r,)`` numbers of rows that are in it."""
    cost: Floats
    """``(r,)`` recourse costs; NaN where there is no way."""
    count: Floats
    """``(r,)`` how often each is in it."""


@dataclass(frozen=True)
class Decided:
    """What one decision maker decided. Arrays are aligned by row."""

    x: Floats
    """``(n, d)`` inputs."""
    denied: Bools
    """``(n,)`` rows that are explained and were decided on unfavourably."""
    asked: Bools
    """``(n,)`` rows that would be explained, were they denied."""
    linear: bool
    """Whether costs lead to a linear boundary."""
    refits: Refits | None
    known: dict[bytes, tuple[Priced, ...]] = field(default_factory=dict)
    """Resamples by what may be changed: protected attributes over no feature share them."""


def ratios(
    decided: Decided,
    cost: Floats,
    space: Space,
    grouped: Grouped,
    model: Model,
    settings: RaguelSettings,
    level: float,
) -> list[Aggregate]:
    """The reference group's mean cost over that of each group with rows.

    Args:
        decided: Decisions, and the models of resamples.
        cost: ``(n,)`` recourse costs by the decision maker itself; NaN where there is none.
        space: In which costs are measured; that of the audit's rows in all resamples.
        grouped: The groups.
        model: That of the audit.
        settings: ``steps``, ``most`` and ``refits``.
        level: Of the intervals.
    """
    own, size = Costs.of(cost, grouped.group, decided.denied), len(grouped.groups)
    errors: Floats | str = _why(decided, model, settings)
    if not errors and decided.refits is not None:
        found = means(decided, decided.refits, space, grouped.group, size, settings)
        errors = cost_ratio.errors_of_draws(found, grouped.reference)
    elif not errors:
        errors = cost_ratio.errors_of_rows(own, size, grouped.reference)
    present = np.unique(grouped.group).tolist()
    return cost_ratio.aggregates(own, present, grouped.reference, errors, level)


def _why(decided: Decided, model: Model, settings: RaguelSettings) -> str:
    """Why there is no honest interval; empty where there is one."""
    if not settings.refits:
        return NOT_ASKED
    if not decided.linear:
        return NO_BOUNDARY
    if settings.source != "exact":
        return OTHER_SOURCE.format(source=settings.source)
    fitted_here = model.rule is None and model.file is None
    return NOT_FITTED.format(kind=model.kind) if fitted_here and decided.refits is None else ""


def means(decided: Decided, refits: Refits, space: Space, group: Ints, groups: int, settings: RaguelSettings) -> Floats:
    """``(draws, groups)`` mean costs on each resample, to the boundary of the model that was fitted to it."""
    key = space.actions.changeable.tobytes()  # all else that protected attributes have in common
    if key not in decided.known:
        decided.known[key] = tuple(_priced(decided, refits, space, settings))
    return np.array([Costs.of(each.cost, group[each.row], each.count).means(groups) for each in decided.known[key]])


def _priced(decided: Decided, refits: Refits, space: Space, settings: RaguelSettings) -> Iterator[Priced]:
    values, denied = space.values(decided.x), ~refits.favourable(decided.x) & decided.asked[:, None]
    for draw, cut in enumerate(refits.cut.tolist()):
        rows = np.flatnonzero(denied[:, draw] & (refits.counts[:, draw] > 0))
        form = above(Linear(refits.coefficients[:, draw], float(refits.intercept[draw])), cut)
        boundary = {0: Boundary(form.coefficients * space.unit, form.intercept)}
        nowhere = np.zeros(len(rows), np.int32)
        there = raguel_targets.to_boundaries(values[rows], nowhere, boundary, space.actions, settings)
        yield Priced(rows, there.targets.cost, refits.counts[rows, draw].astype(np.float64))
