"""Effects that differ by a column: group x column terms, one block at a time.

For each group and block the logit of the judged rung gets the group's indicator times the columns of the block: a
number's own column (not its square), a category's indicators. Where that fit is separated, each column has a fit
alone.
Joint Wald tests by column with the sandwich, Holm (1979) over all columns of a group. The effect is reported at the
column's 10th, 50th and 90th percentile; at every level of a category without order. A level that the design does not
tell apart (rare ones) or that applicants of one side alone have is left out: the fit says nothing of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from tasks.methods.adjusted.algorithm.design import (
    Applications,
    Control,
    Design,
    gram_of,
    independent_in,
    own_levels,
)
from tasks.methods.adjusted.algorithm.regressions import cluster_sums
from tasks.numerics.arrays import Bools, Floats, Ints, Matrix, Repeated, first_columns_of, sums_of
from tasks.numerics.statistics.regression import (
    Estimate,
    LogitFit,
    estimate,
    fit_logit,
    inverse,
    logistic,
    weighted_squares,
)

PERCENTILES = (10, 50, 90)


@dataclass(frozen=True)
class Interaction:
    """The effect of a group at one value of a column, and the test that it differs by the column."""

    group: int
    block: str
    column: str
    terms: int
    """Degrees of freedom of the test."""
    statistic: float = math.nan
    """Wald's chi-square."""
    p: float = math.nan
    p_holm: float = math.nan
    """Over the columns of the group."""
    percentile: int | None = None
    """None for a category without order, and where there is a reason."""
    at: float = math.nan
    """The column's value there, in the user's units or the number of the category."""
    value: float = math.nan
    """Average marginal effect over the group's members, the column set to that value."""
    low: float = math.nan
    high: float = math.nan
    se: float = math.nan
    reason: str = ""


@dataclass(frozen=True)
class _Fit:
    """A logit with interaction terms of one group and block."""

    x: Repeated
    """``(n, p + k)`` columns of the rung, then the terms: some of them once more, on the group's rows."""
    column: int
    """The group's indicator."""
    fit: LogitFit
    residual: Floats
    """``(n,)``."""
    cluster: Ints | None

    @cached_property
    def meat(self) -> Floats:
        """Cross products of the scores; of their sums by cluster, times G / (G - 1), with clusters."""
        if self.cluster is None:
            return weighted_squares(self.x, self.residual**2)
        count, rows = int(self.cluster.max()) + 1, self.x.rows
        sums = cluster_sums(self.x.x, self.residual, self.cluster, count)
        of_terms = cluster_sums(self.x.inside, self.residual[rows], self.cluster[rows], count)[:, self.x.of]
        by_cluster = np.hstack([sums, of_terms])
        meat: Floats = by_cluster.T @ by_cluster
        return meat * (count / (count - 1) if count > 1 else math.nan)

    def covariance(self, gradients: Floats) -> Floats:
        """``(d, d)`` of estimates with gradients ``(p + k, d)`` by the coefficients."""
        through = self.fit.inverse @ gradients
        covariance: Floats = through.T @ self.meat @ through
        return covariance


def interaction_rows(
    applications: Applications,
    used: Bools,
    design: Design,
    rung: int,
    start: LogitFit,
    groups: tuple[int, ...],
    level: float,
) -> tuple[Interaction, ...]:
    """Interactions of each group with the controls of each block up to a rung; reasons alone where that is separated.

    Args:
        applications: For the values of the controls.
        used: ``(n,)`` rows of the design.
        design: All columns.
        rung: The judged rung; interactions are with the controls of blocks up to it.
        start: The fit of its columns.
        groups: Those that are judged.
        level: Of the intervals.
    """
    x = first_columns_of(design.matrix, design.widths[rung])
    gram, interactions = gram_of(x), list[Interaction]()
    every = weighted_squares(x, start.fitted * (1 - start.fitted))
    percentiles = {
        control.name: _percentiles(control.values[used])
        for block in applications.blocks[:rung]
        for control in block.controls
        if not start.separated
    }
    for group in groups:
        if start.separated:
            reason = f"separated: {start.separated}"
            interactions += [
                Interaction(group, block.name, control.name, 0, reason=reason)
                for block in applications.blocks[:rung]
                for control in block.controls
            ]
            continue
        rows, number = [], 0
        for block in applications.blocks[:rung]:
            numbers = list(range(number, number + len(block.controls)))
            together = _fit(design, x, (gram, every), group, numbers, start)
            for place, control in zip(numbers, block.controls, strict=True):
                fit = _fit(design, x, (gram, every), group, [place], start) if together.fit.separated else together
                at = percentiles[control.name]
                rows += _of_control(design, fit, group, block.name, control, place, used, level, at)
            number += len(block.controls)
        interactions += _holm(rows)
    return tuple(interactions)


def _fit(
    design: Design, x: Matrix, products: tuple[Floats, Floats], group: int, controls: list[int], start: LogitFit
) -> _Fit:
    """The logit with the group times the first column of each number and all indicators of each category.

    ``products`` are those of the columns, and the information at the start, by which the fit begins.
    """
    column, of = design.indicators[group], []
    for j in range(design.first_control, x.shape[1]):
        squared = design.names[j].endswith(" squared") and design.control[j] == design.control[j - 1]
        if design.control[j] in controls and not squared:
            of.append(j)
    wide = Repeated(x, np.flatnonzero(design.group == group), np.array(of, np.int64))
    is_independent = independent_in(wide.squared(products[0], gram_of(wide.inside)))[x.shape[1] :]
    wide, fitted = replace(wide, of=wide.of[is_independent]), start.fitted[wide.rows]
    first = np.append(start.coefficients, np.zeros(len(wide.of)))
    at_start = wide.squared(products[1], weighted_squares(wide.inside, fitted * (1 - fitted)))
    like = LogitFit(first, start.fitted, inverse(at_start), "")
    fit = fit_logit(wide, design.y, first, like=like)
    return _Fit(wide, column, fit, design.y - fit.fitted, design.cluster)


def _of_control(
    design: Design,
    interaction_fit: _Fit,
    group: int,
    block: str,
    control: Control,
    number: int,
    used: Bools,
    level: float,
    percentiles: list[tuple[int, float]],
) -> list[Interaction]:
    """Test of one control and the effects at its values; one row with a reason where there is no test, or no value."""
    width = interaction_fit.x.x.shape[1]
    places = [width + k for k, j in enumerate(interaction_fit.x.of) if design.control[j] == number]
    base = Interaction(group, block, control.name, len(places))
    if not places:
        return [replace(base, reason="no variation within the group")]
    if interaction_fit.fit.separated:
        return [replace(base, reason=f"separated: {interaction_fit.fit.separated}")]
    covariance = interaction_fit.covariance(np.eye(interaction_fit.x.shape[1])[:, places])
    statistic, p = _wald(interaction_fit.fit.coefficients[places], covariance)
    tested = replace(base, statistic=statistic, p=p)
    values = control.values[used]
    rows = {}
    for percentile, at in _values(design, control, group, used, percentiles):
        effect = _effect_at(design, interaction_fit, number, int(np.argmax(values == at)), level)
        rows[at] = replace(
            tested, percentile=percentile, at=at, value=effect.value, low=effect.low, high=effect.high, se=effect.se
        )
    return list(rows.values()) or [replace(tested, reason="no level of its own that both sides have")]


def _percentiles(values: Floats) -> list[tuple[int, float]]:
    """Of each percentile the value."""
    shares = [percentile / 100 for percentile in PERCENTILES]
    return list(zip(PERCENTILES, np.quantile(values, shares, method="closest_observation").tolist(), strict=True))


def _values(
    design: Design, control: Control, group: int, used: Bools, percentiles: Sequence[tuple[int, float]]
) -> Sequence[tuple[int | None, float]]:
    """Percentiles of a number or an ordered category, or all levels, without those that the fit cannot estimate."""
    values, percentile_values = control.values[used], percentiles
    if control.kind == "number":
        return percentile_values
    member = design.group == group
    shared_levels = [
        float(level)
        for level in own_levels(control, used, design.names)
        if 0 < np.count_nonzero(member[at := values == level]) < np.count_nonzero(at)
    ]
    return (
        [percentile_value for percentile_value in percentile_values if percentile_value[1] in shared_levels]
        if control.ordered
        else [(None, at) for at in shared_levels]
    )


def _wald(b: Floats, covariance: Floats) -> tuple[float, float]:
    """Joint Wald chi-square of terms with their sandwich covariance ``(k, k)``, and its p."""
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance, hermitian=True) < len(b):
        return math.nan, math.nan
    statistic = float(b @ np.linalg.solve(covariance, b))
    return statistic, float(chi2.sf(statistic, len(b)))


def _effect_at(design: Design, interaction_fit: _Fit, number: int, row: int, level: float) -> Estimate:
    """Average effect over the group's members, the control's columns set to those of a row that has the value."""
    members, b, column = interaction_fit.x.inside, interaction_fit.fit.coefficients, interaction_fit.column
    width, of = members.shape[1], interaction_fit.x.of
    is_set = np.array([design.control[j] == number for j in range(width)], np.bool_)
    set_to = np.where(is_set, interaction_fit.x.x[row : row + 1][0], 0.0)
    own = np.where(is_set, 0.0, 1.0)  # whose values are the members' own: all others are set
    own[column] = 0.0
    with_terms = np.zeros(width)
    with_terms[of] = b[width:]
    coefficients = np.stack([b[:width], with_terms])
    off, terms = (members @ (coefficients * own).T + coefficients @ set_to).T
    p1, p0 = logistic(off + b[column] + terms), logistic(off)
    slopes = np.stack([p1 * (1 - p1), p0 * (1 - p0)])
    sums = sums_of(members, slopes.T).T * own + slopes.sum(axis=1)[:, None] * set_to
    gradient = np.concatenate([sums[0] - sums[1], sums[0, of]]) / len(members)
    gradient[column] = slopes[0].sum() / len(members)
    se = math.sqrt(interaction_fit.covariance(gradient[:, None])[0, 0])
    return estimate(float((p1 - p0).mean()), se, level, design.cluster)


def _holm(rows: list[Interaction]) -> list[Interaction]:
    """The rows of a group with p-values adjusted over its columns (Holm 1979)."""
    by_column = {(row.block, row.column): row.p for row in rows if not math.isnan(row.p)}
    adjusted, highest = {}, 0.0
    for place, (column, p) in enumerate(sorted(by_column.items(), key=lambda pair: pair[1])):
        highest = max(highest, min(1.0, (len(by_column) - place) * p))
        adjusted[column] = highest
    return [replace(row, p_holm=adjusted.get((row.block, row.column), math.nan)) for row in rows]
