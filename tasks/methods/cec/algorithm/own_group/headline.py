"""CEC above the own group, as a verdict on reasons takes it: one number of a group, its null, its interval.

Value: mean over members of CEC across groups less CEC within the group. It is held against the mean of relabelled
draws, not against 0. Without refits there is no honest interval, and the measure is descriptive.

Scope: the aggregate of a group, and the order of its parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.counterfactuals.algorithm.nearest.matching import Matching
from tasks.methods.cec.algorithm import pairs
from tasks.methods.cec.algorithm.own_group import refits, relabelled
from tasks.methods.cec.algorithm.own_group.neighbours import Lists
from tasks.methods.cec.algorithm.own_group.pairing import Ground, listed
from tasks.methods.cec.algorithm.pairs import Scored, View
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.explanation import ModelView
from tasks.numerics.problem import Refit
from tasks.numerics.results import Aggregate, Draws, Inference
from tasks.numerics.statistics.propensity import p_of
from tasks.numerics.statistics.sampling import Asked

MEASURE = "cec_above_own_group"

LEARNT_FROM_NOBODY = "the model learnt from no rows of its own here, so that every applicant would be their own match"
NOBODY_PAIRED = "no member has a score with both groups"
NOT_REFITTED = "too few refits have a value, or all have the same: no interval"
NOT_EXCHANGEABLE = "no propensity stratum holds both groups: labels cannot be exchanged"
NOT_EXACT = "attributions have no closed form: relabelled draws would take too long"


@dataclass(frozen=True)
class Reasons:
    """Models and groups of one protected attribute."""

    explained: ModelView
    seen: tuple[View, ...]
    group: Ints
    """``(n,)``."""
    reference: int
    columns: Columns | None
    """What all applicants handed in, but for columns that the groups are made of; without, no label is exchanged."""
    refit: Refit | None
    asked: Asked | None = None
    """Who is asked of a large problem; None: everybody."""

    @cached_property
    def lists(self) -> tuple[Lists, ...]:
        """Neighbours of all rows: every group filters those of its own and of the reference group out of them.

        Of a large problem, of the rows that any group would ask under some labels.
        """
        everyone = np.ones(len(self.group), np.bool_)
        groups = [group for group in np.unique(self.group).tolist() if group != self.reference]
        below = [self.asked.below(group) for group in groups] if self.asked is not None else []
        return listed(self.explained, self.seen, everyone, of=np.logical_or.reduce(below) if below else None)

    def draws(self, group: int, count: int, rng: np.random.Generator) -> tuple[Floats, str]:
        """The statistic of a group under relabelled groups, or none of it and why."""
        if not count or self.columns is None:
            return np.zeros(0), ""
        if not all(model.exact for model in self.explained.models):
            return np.zeros(0), NOT_EXACT
        member = np.equal(self.group, group)
        # relabelled members are asked by the same hashes, so that as many are as of the group
        below = None if self.asked is None else self.asked.below(group)
        ground = Ground(self.explained, member | np.equal(self.group, self.reference), self.lists, below)
        found = relabelled.draws(ground, member, self.columns, count, rng)
        return found, "" if len(found) else NOT_EXCHANGEABLE

    def resampled(self, groups: list[int], settings: CecSettings, rng: np.random.Generator) -> Mapping[int, Floats]:
        """The statistic by group on resampled rows with the model fitted again; nothing without refits."""
        if not settings.refits or self.refit is None or not groups:
            return {}

        drawn = np.ones(len(self.group), np.bool_) if self.asked is None else self.asked.drawn

        def values(view: ModelView, rows: Longs) -> dict[int, float]:
            # copies of those asked alone: their number varies as a sample's does, so that the spread counts the design
            return above(view, self.group[rows], groups, self.reference, Matching.of(settings), drawn[rows])

        return refits.resampled(self.explained, self.group, groups, self.refit, settings.refits, values, rng)


def above(
    explained: ModelView,
    group: Ints,
    groups: list[int],
    reference: int,
    matching: Matching,
    asked: Bools | None = None,
) -> dict[int, float]:
    """The statistic of each of some groups, NaN where no member has both scores.

    Args:
        explained: Models and their inputs.
        group: ``(n,)``.
        groups: Those wanted.
        reference: Whom they are matched with, beside their own group.
        matching: How.
        asked: ``(n,)`` the rows that are asked; None: all.

    Raises:
        DataQualityError: As ``pairs.views``.
    """
    seen = pairs.views(explained, group, matching)
    out = {}
    for number in groups:
        member = np.equal(group, number)
        rows: Longs = np.flatnonzero(member if asked is None else member & asked)
        across, within = (pairs.score(explained, seen, rows, to) for to in (reference, number))
        out[number] = _mean(across, within)[0]
    return out


def told(
    group: int, scored: Scored, within: Scored | None, drawn: tuple[Floats, str], resampled: Floats | None
) -> tuple[Aggregate, list[Draws]]:
    """The aggregate of a group, and what it is held against.

    Args:
        group: Its number.
        scored: Its rows matched with the reference group.
        within: The same rows matched with the group; None where they would be their own matches.
        drawn: The statistic under relabelled groups, or why there is none.
        resampled: ``(refits,)`` the statistic on resampled rows; None without refits.
    """
    value, n = (np.nan, 0) if within is None else _mean(scored, within)
    if not np.isfinite(value):
        reason = LEARNT_FROM_NOBODY if within is None else NOBODY_PAIRED
        return Aggregate(group, 0, MEASURE, {}, np.nan, n, compared=False, reason=reason, inference=Inference()), []
    values, reason = drawn
    p = p_of(value, values) if np.isfinite(values).any() else np.nan
    se, df, ends = (np.nan, np.inf, None) if resampled is None else refits.interval(value, resampled)
    reasons = (reason, NOT_REFITTED if resampled is not None and ends is None else "")
    said = Aggregate(
        group,
        0,
        MEASURE,
        {},
        value,
        n,
        compared=False,
        reason="; ".join(filter(None, reasons)),
        interval=ends,
        inference=Inference(se=se, df=df if np.isfinite(df) else np.inf, p=p),
    )
    return said, [Draws(group, MEASURE, {}, values, reference="null")] if len(values) else []


def _mean(scored: Scored, within: Scored) -> tuple[float, int]:
    """Mean of CEC across less CEC within over rows with both, and how many they are."""
    known = scored.compared.cec - within.compared.cec
    known = known[~np.isnan(known)]
    return (float(known.mean()) if len(known) else np.nan), len(known)
