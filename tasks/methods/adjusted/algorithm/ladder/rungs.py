"""The ladder: every rung, group and estimator of one decision maker and protected attribute.

All rungs use the same rows, those that are complete on the last one. Groups with too few denials or approvals are
refused by name; so is everything where the reference group has too few.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications
from tasks.methods.adjusted.algorithm.ladder.design.matrix import build_design
from tasks.methods.adjusted.algorithm.ladder.design.rows import LeftOut, Rows, complete_rows
from tasks.methods.adjusted.algorithm.ladder.design.selection import with_terms
from tasks.methods.adjusted.algorithm.ladder.effect import Effect, Estimator
from tasks.methods.adjusted.algorithm.ladder.estimators.denial_logit import logit_rows
from tasks.methods.adjusted.algorithm.ladder.estimators.linear_probability import linear_rows
from tasks.methods.adjusted.algorithm.ladder.estimators.rung import PLACE, Over, Rung
from tasks.methods.adjusted.algorithm.ladder.estimators.weighted import propensities, weighted_rows, with_support
from tasks.methods.adjusted.algorithm.ladder.interactions import Interaction, interaction_rows
from tasks.methods.adjusted.algorithm.ladder.propensity.support import Support
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats

"""The block of fixed effects, which is not judged by default."""
OVER: dict[Estimator, tuple[Over, ...]] = {
    "logit": ("own", "all"),
    "lpm": ("all",),
    "overlap": ("overlap",),
    "aipw": ("own",),
}
"""Rows of each estimator."""


@dataclass(frozen=True)
class Ladder:
    """Results of the ladder."""

    effects: tuple[Effect, ...]
    """By rung, group, estimator in the order of the settings; every group but the reference has a row of each."""
    support: tuple[Support, ...]
    interactions: tuple[Interaction, ...]
    """On the judged rung."""
    left_out: tuple[LeftOut, ...]
    used: int
    """Rows of every rung; with those left out, all rows."""


def climb(applications: Applications, settings: AdjustedSettings, level: float, rng: np.random.Generator) -> Ladder:
    """Adjusted effects on every rung.

    Args:
        applications: Decisions, groups and blocks of controls.
        settings: Estimators, form, folds and the fewest events.
        level: Of the intervals, 0.95 for 95 %.
        rng: Draws folds and bootstrap weights.

    Where ``settings.primary`` is no block, because the data lack its columns, nothing is judged instead: that rung
    stands above the others without a number.
    """
    judged = primary_rung(applications, settings)
    rows = complete_rows(applications)
    refused = {group: refusal(applications, rows, group, settings.minimum_events) for group in others(applications)}
    groups = tuple(group for group, reason in refused.items() if not reason)
    design = build_design(applications, rows, settings.form) if groups else None
    chosen = design
    if design is not None and judged is not None and settings.terms == "selected" and settings.form == "squared":
        chosen = with_terms(design, applications, rows.used, judged)
    effects: list[Effect] = []
    support: list[Support] = []
    start: Floats | None = None
    for number in range(len(applications.blocks) + 1):
        found: dict[int, list[Effect]] = {}
        of = chosen if number == judged else design
        if of is not None and design is not None:
            rung = Rung(number, names(applications, number), of, level, rows.counts, rows.events, groups)
            found, start, supported = _climb_rung(rung, applications, settings, start, rng)
            support += supported
            start = None if start is None else start[: design.widths[number]]
        for group, reason in refused.items():
            effects += found.get(group) or _refused(applications, rows, settings, number, group, reason)
    if judged is None:
        reason = f"no_primary: these data have no column of the block {settings.primary!r}, which was to be judged"
        for group in refused:
            effects += _refused(applications, rows, settings, len(applications.blocks) + 1, group, reason)
    tests: tuple[Interaction, ...] = ()
    if design is not None and judged is not None:
        tests = interaction_rows(applications, rows.used, design, judged, groups, level)
    return Ladder(tuple(effects), tuple(support), tests, rows.left_out, int(rows.used.sum()))


def primary_rung(applications: Applications, settings: AdjustedSettings) -> int | None:
    """The rung that is judged: that of ``settings.primary``, else the last one before ``place``.

    None where there is no block of that name: what is judged is never chosen after looking.
    """
    blocks = names(applications, len(applications.blocks))
    if settings.primary is not None:
        return 1 + blocks.index(settings.primary) if settings.primary in blocks else None
    return blocks.index(PLACE) if PLACE in blocks else len(blocks)


def others(applications: Applications) -> tuple[int, ...]:
    """All groups but the reference."""
    return tuple(group for group in range(len(applications.groups)) if group != applications.reference)


def refusal(applications: Applications, rows: Rows, group: int, fewest: int) -> str:
    """Why a group has no adjusted effect; empty where it has."""
    for each in (group, applications.reference):
        name = applications.groups[each]
        if rows.counts[each] == 0:
            return f"no_rows: {name} has no complete rows"
        if rows.fewest(each) < fewest:
            return f"too_few_events: {name} has fewer than {fewest} denials or approvals"  # counts may be withheld
    return ""


def names(applications: Applications, rung: int) -> tuple[str, ...]:
    """Names of the blocks up to a rung."""
    return tuple(block.name for block in applications.blocks[:rung])


def _climb_rung(
    rung: Rung, applications: Applications, settings: AdjustedSettings, start: Floats | None, rng: np.random.Generator
) -> tuple[dict[int, list[Effect]], Floats | None, tuple[Support, ...]]:
    """Effects by group, coefficients for the next rung, and support."""
    scores = propensities(rung)
    rung, support = with_support(rung, scores)
    found: dict[tuple[int, Estimator], list[Effect]] = {}
    if "logit" in settings.estimators:
        by_group, start = logit_rows(rung, start)
        found |= {(group, "logit"): rows for group, rows in by_group.items()}
    if "lpm" in settings.estimators:
        controls = tuple(control.name for block in applications.blocks for control in block.controls)
        linear = linear_rows(rung, controls, rng, bootstrap=settings.cluster_bootstrap)
        found |= {(group, "lpm"): rows for group, rows in linear.items()}
    found |= weighted_rows(rung, scores, settings.estimators, settings.folds, settings.splits, rng)
    ordered = {group: [row for each in settings.estimators for row in found[group, each]] for group in rung.groups}
    return ordered, start, support


def _refused(
    applications: Applications, rows: Rows, settings: AdjustedSettings, number: int, group: int, reason: str
) -> list[Effect]:
    """The rows of a group without a number, on one rung."""
    n, events = int(rows.counts[group]), int(rows.events[group])
    blocks, nan = names(applications, number), math.nan
    if number > len(applications.blocks):
        blocks = (*blocks, str(settings.primary))
    return [
        Effect(number, blocks, group, estimator, over, nan, nan, nan, nan, n=n, events=events, reason=reason)
        for estimator in settings.estimators
        for over in OVER[estimator]
    ]
