"""Rows of the estimators that rest on the propensity: overlap weights and AIPW, and the support of both."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.effect import Effect, Estimator
from tasks.methods.adjusted.algorithm.ladder.estimators.rung import Rung
from tasks.methods.adjusted.algorithm.ladder.propensity.aipw import aipw_effect, expected_denials
from tasks.methods.adjusted.algorithm.ladder.propensity.overlap import overlap_effect
from tasks.methods.adjusted.algorithm.ladder.propensity.score import Propensity, fit_propensity, pair_rows
from tasks.methods.adjusted.algorithm.ladder.propensity.support import Support, measure_support
from tasks.numerics.statistics.influence import Estimate

POOR = 0.8
"""A smaller share of the group's rows on support is said in the reason."""


def propensities(rung: Rung) -> dict[int, Propensity]:
    """The propensity of each group; none on a rung with too many columns."""
    if rung.too_wide:
        return {}
    return {group: fit_propensity(pair_rows(rung.design, group, rung.number)) for group in rung.groups}


def with_support(rung: Rung, found: dict[int, Propensity]) -> tuple[Rung, tuple[Support, ...]]:
    """The rung with each group's support and a note where it is poor; and the rows of the support table."""
    rows = tuple(measure_support(propensity, rung.number, group) for group, propensity in found.items())
    comparable = {row.group: row.comparable for row in rows}
    notes: dict[int, tuple[str, ...]] = {
        group: (f"poor_support: {share:.0%} of the group have a propensity in [0.05, 0.95] at equal group sizes",)
        for group, share in comparable.items()
        if share < POOR
    }
    return replace(rung, support=comparable, notes=notes), rows


def weighted_rows(
    rung: Rung,
    found: dict[int, Propensity],
    estimators: Sequence[Estimator],
    folds: int,
    splits: int,
    rng: np.random.Generator,
) -> dict[tuple[int, Estimator], list[Effect]]:
    """Overlap and AIPW rows of each group, those of the two that are asked for."""
    rows: dict[tuple[int, Estimator], list[Effect]] = {}
    expected = None
    if found and "aipw" in estimators:
        expected = expected_denials(rung.design, rung.number, folds, splits, rng)
    for group in rung.groups:
        propensity = found.get(group)
        none = Estimate(reason=rung.too_wide)
        if "overlap" in estimators:
            effect = none if propensity is None else overlap_effect(propensity, rung.level)
            rows[group, "overlap"] = [rung.row(group, "overlap", "overlap", effect)]
        if "aipw" in estimators:
            effect = none if not (propensity and expected) else aipw_effect(propensity, expected, rung.level)
            rows[group, "aipw"] = [rung.row(group, "aipw", "own", effect)]
    return rows
