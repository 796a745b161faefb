"""Effects on every group of an audit, from the searches that it made already.

Scope: contrasts of each group and the variance of the causal model. Aggregates: ``aggregates``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CST, ST, Comparison, SearchSpace
from tasks.methods.cst.algorithm.effect.contrast import Contrast, Lists, Sides, contrast, designs_of, sides_of
from tasks.methods.cst.algorithm.effect.effects import TOO_FEW_COMPLAINANTS, TOO_FEW_FOR_ADJUSTMENT
from tasks.methods.cst.algorithm.effect.refits import Mover, structural_variances
from tasks.methods.cst.algorithm.neighbours import distance
from tasks.methods.cst.algorithm.situations import NOBODY
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Counterfactuals
from tasks.numerics.statistics.design import DesignRows
from tasks.numerics.statistics.sampling import Asked

MATCHED = 0.5
"""Share of a group that must have neighbours on both sides (ours)."""


@dataclass(frozen=True)
class Frame:
    """The rows of an audit as the effects of all its groups see them."""

    ground: SearchSpace
    asked: Asked | None = None
    """Who is asked of a large problem; None: everybody."""

    @property
    def settings(self) -> CstSettings:
        """Settings of the method."""
        return self.ground.settings

    @cached_property
    def columns(self) -> Columns:
        """What equals are alike in: the columns of the distance."""
        applicants = self.ground.applicants
        return distance.looked_at(applicants.columns, self.settings, applicants.attribute_columns)

    @cached_property
    def imagined(self) -> Counterfactuals | None:
        """Counterfactuals with these columns alone."""
        made = self.ground.applicants.counterfactuals
        return None if made is None else self.of_columns(made)

    @cached_property
    def designs(self) -> tuple[DesignRows, DesignRows]:
        """Design rows with squares and without."""
        return designs_of(self.columns)

    @cached_property
    def denied(self) -> Floats:
        """``(n,)`` 1 for an unfavourable decision."""
        return self.ground.refused.astype(np.float64)

    def of_columns(self, made: Counterfactuals) -> Counterfactuals:
        """Counterfactuals with the columns of the distance alone."""
        applicants = self.ground.applicants
        columns = replace(applicants.columns, values=made.values)
        values = distance.looked_at(columns, self.settings, applicants.attribute_columns).values
        return replace(made, values=values)

    def rows(self, group: int) -> tuple[Longs, Longs]:
        """The rows of a group, and of whom it is compared with."""
        labels, crossed = self.ground.group, self.ground.applicants.crossed
        other = labels != group if crossed else labels == self.ground.reference
        return np.flatnonzero(labels == group), np.flatnonzero(other)


@dataclass(frozen=True)
class GroupEffects:
    """The effects on one group."""

    group: int
    rows: tuple[Longs, Longs]
    """Of the group, and of whom it is compared with."""
    variants: tuple[str, ...]
    """``st``, and ``cst`` where complainants were imagined."""
    reason: str = ""
    """Why there are none; empty where there are."""
    sides: Sides | None = None
    contrasts: tuple[Contrast, ...] = ()
    """By variant."""
    mover: Mover | None = None
    """Of CST."""
    asked: int | None = None
    """Members who were asked; None: all."""

    @property
    def complainants(self) -> int:
        """Members of the group who were asked."""
        return len(self.rows[0]) if self.asked is None else self.asked


def with_refits(frame: Frame, found: Sequence[GroupEffects], rng: np.random.Generator) -> list[GroupEffects]:
    """The effects on every group, with the variance of the causal model in those of CST.

    Args:
        frame: The rows.
        found: The groups.
        rng: Draws resamples.
    """
    moved = [each for each in found if each.mover is not None]
    imagine, group = frame.ground.applicants.imagine, frame.ground.group
    if imagine is None or frame.settings.generator != "scm" or not moved:
        return list(found)
    ask = imagine

    def again(rows: Longs, sample: Longs) -> Counterfactuals:
        return frame.of_columns(ask(rows, group, None, sample))

    variances = structural_variances(again, [each.mover for each in moved if each.mover], group, rng)
    by_group = {each.group: variance for each, variance in zip(moved, variances, strict=True)}
    return [_estimated(each, by_group.get(each.group, 0.0)) for each in found]


def of_group(frame: Frame, group: int, compared: Comparison, found: Sequence[GroupEffects]) -> GroupEffects:
    """The effects on one group.

    Args:
        frame: The rows.
        group: The group.
        compared: Its searches, with its neighbours.
        found: The groups before it, where searches start.
    """
    near = None if frame.ground.applicants.crossed else next((e.sides for e in reversed(found) if e.sides), None)
    rows = frame.rows(group)
    variants = (ST, CST) if frame.imagined is not None else (ST,)
    none = GroupEffects(group, rows, variants, asked=len(compared.row))
    lists = [_lists(frame, compared, variant) for variant in variants]
    least = max(2 * frame.settings.k, math.ceil(MATCHED * len(compared.row)))
    if any(len(each.row) < least for each in lists):
        return replace(none, reason=TOO_FEW_COMPLAINANTS)
    sides = sides_of(frame.designs, frame.columns.values, rows, frame.denied, near)
    if sides is None:
        return replace(none, reason=TOO_FEW_FOR_ADJUSTMENT)
    part = None if frame.asked is None else frame.asked.part(group)
    contrasts = tuple(contrast(sides, frame.columns.values, each, part) for each in lists)
    last = lists[-1]
    mover = None if last.moved is None else Mover.of(last.row, last.moved, sides.other)
    return replace(none, sides=sides, contrasts=contrasts, mover=mover)


def _lists(frame: Frame, compared: Comparison, variant: str) -> Lists:
    """The members of both groups at ``settings.k``, of the complainants who have both."""
    alone = variant == ST
    place = np.arange(len(compared.row)) if alone else compared.tested
    control, test = compared.control.members.rows[place], (compared.factual if alone else compared.test).members.rows
    full = (control[:, 0] != NOBODY) & (test[:, 0] != NOBODY)
    row = compared.row[place][full]
    moved = None
    if not alone and frame.imagined is not None:
        moved = frame.imagined.values[np.searchsorted(frame.imagined.row, row)]
    return Lists(row, control[full], test[full], moved)


def _estimated(found: GroupEffects, structural: float) -> GroupEffects:
    """The same, with the variance of the causal model in CST."""
    if found.mover is None:
        return found
    return replace(found, contrasts=(*found.contrasts[:-1], found.contrasts[-1].estimated(structural)))
