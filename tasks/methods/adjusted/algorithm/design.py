"""Design matrix of the ladder: applications, coded controls, complete rows."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tasks.numerics.arrays import Bools, Column, Floats, Ints, Longs, Matrix, Packed, Scale, some_rows_of
from tasks.numerics.statistics.regression import BLOCK

# --------------------------------------------------------------------------------------------------------------------
# Input of the ladder: applications with their decision, group and control columns, as arrays aligned by row.


@dataclass(frozen=True)
class Control:
    """One column that similar applicants are similar in."""

    name: str
    kind: Literal["number", "category"]
    values: Floats
    """``(n,)`` numbers in the user's units, or the number of the category; NaN where missing."""
    categories: tuple[str, ...] = ()
    """Names of the categories, lowest first where they have an order; none for a number."""
    ordered: bool = False
    """Whether the categories have an order, and so percentiles."""
    scale: Literal["linear", "log"] = "linear"
    """Whether a number enters as its logarithm (money)."""


@dataclass(frozen=True)
class Block:
    """The control columns that one rung adds to those below it."""

    name: str
    controls: tuple[Control, ...]


@dataclass(frozen=True)
class Applications:
    """The applications of one decision maker and one protected attribute."""

    denied: Bools
    """``(n,)`` unfavourable decisions."""
    group: Ints
    """``(n,)`` index into ``groups``."""
    groups: tuple[str, ...]
    reference: int
    """Index into ``groups`` of the reference group."""
    blocks: tuple[Block, ...]
    """In the order of the rungs; rung 0 has none."""
    cluster: Ints | None = None
    """``(n,)`` cluster of each row, from 0; None for independent rows."""


# --------------------------------------------------------------------------------------------------------------------
# Coding of a control: one column of the table becomes columns of the design matrix.
#
# Numbers are standardised, which changes no effect and keeps coefficients comparable: separation is found by their
# size.


RARE = 30
"""Categories with fewer rows are pooled."""
POOLED = "(rare)"
CLIPPED = (0.01, 0.99)
"""Quantiles at which the form ``squared`` clips a number."""

Form = Literal["squared", "linear", "unclipped"]
"""``unclipped`` has squares, and numbers as they are."""


@dataclass(frozen=True)
class Coded:
    """Columns of one control."""

    parts: tuple[Column, ...]
    """None for a category that does not vary; a number that does not has zeros."""
    names: tuple[str, ...]
    rows: int
    merged: tuple[str, ...] = ()
    """Levels without an indicator, each with the reason: they count as the base."""

    @property
    def columns(self) -> Floats:
        """``(n, k)``."""
        return Packed.of(self.parts).dense() if self.parts else np.zeros((self.rows, 0))

    @property
    def varies(self) -> list[bool]:
        """Of each column, whether it varies."""
        return [column.level is not None or column.scales[-1].sd > 0 for column in self.parts]


def code_control(control: Control, denied: Bools, used: Bools, form: Form) -> Coded:
    """Code a control on the rows in use.

    A number enters standardised, in the form ``squared`` clipped at the 1st and 99th percentile and with its square, in
    the form ``unclipped`` with its square alone. A number with two values has no square and is not clipped; nor is one
    clipped that would be constant then. A category enters as indicators against its most frequent level, the base, and
    levels of fewer than 30 rows share one. They have none if they are fewer than 30 rows together, all of one decision:
    it would separate the whole rung. A category whose levels are all so rare has no columns.

    Args:
        control: Values of all rows.
        denied: ``(n,)`` decisions on all rows.
        used: ``(n,)`` rows in use; their values are finite, and above 0 on a log scale.
        form: ``squared``, ``unclipped`` or ``linear`` (textbooks).
    """
    values = control.values if used.all() else control.values[used]
    if control.kind == "category":
        code, names, merged = code_category(control, values, denied[used])
        return Coded(tuple(Column(code, level) for level in range(len(names))), names, len(values), merged)
    if control.scale == "log":
        values = np.log(values)
    curved = form != "linear" and (len(np.unique(values[:1000])) > 2 or len(np.unique(values)) > 2)
    ends = None
    if curved and form == "squared":
        low, high = np.quantile(values, CLIPPED)
        ends = (low, high) if low < high else None
    clipped = np.clip(values, *ends) if ends else values
    scale = Scale.of(clipped)
    column = Column(values, None, ends, (scale,))
    if not curved or scale.sd == 0:
        return Coded((column,), (control.name,), len(values))
    square = replace(column, scales=(scale, Scale.of(scale.standardised(clipped) ** 2)))
    return Coded((column, square), (control.name, f"{control.name} squared"), len(values))


def standardised(values: Floats) -> Floats:
    """Values with mean 0 and standard deviation 1; zeros where they do not vary."""
    return Scale.of(values).standardised(values)


def own_levels(control: Control, used: Bools, names: tuple[str, ...]) -> Floats:
    """Levels of a category distinguished by a design, ascending: the base and those with an indicator in ``names``."""
    levels, counts = np.unique(control.values[used], return_counts=True)
    has_column = np.array([level_name(control, level) in names for level in levels], np.bool_)
    has_column[counts.argmax()] = True
    return np.asarray(levels[has_column])


def level_name(control: Control, level: float) -> str:
    """Name of a level's indicator: with the level's own name, or its number where it has none."""
    place = int(level)
    has_name = 0 <= place < len(control.categories) and place == level
    return f"{control.name}: {control.categories[place] if has_name else f'{level:g}'}"


def code_category(control: Control, values: Floats, denied: Bools) -> tuple[Ints, tuple[str, ...], tuple[str, ...]]:
    """The indicator ``(n,)`` of each row among those of all levels but the most frequent one, -1 for none; their names.

    And the levels without an indicator, as ``Coded.merged`` has them.
    """
    levels, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    names = np.array([level_name(control, level) for level in levels], object)
    rare, number = counts < RARE, np.full(len(counts), -1, np.int32)
    if rare.all():
        return number[at], (), (f"{control.name}: {POOLED} (no level has {RARE} rows)",)
    base = int(np.argmax(counts))
    common = np.flatnonzero(~rare & (np.arange(len(counts)) != base))
    number[common] = np.arange(len(common))
    pooled = rare & (np.arange(len(counts)) != base)
    if counts[pooled].sum() < RARE and len(np.unique(denied[pooled[at]])) < 2:
        merged = tuple(f"{name} (fewer than {RARE} rows, one decision)" for name in names[pooled])
        return number[at], tuple(names[common]), merged
    number[pooled] = len(common)
    return number[at], (*names[common], f"{control.name}: {POOLED}"), ()


@dataclass(frozen=True)
class Levels:
    """Indicators of categories with many levels: one number a row in place of a column a level."""

    codes: tuple[Ints, ...]
    """Of each category ``(n,)`` the row's indicator among those of all categories; ``count`` where it has none."""
    count: int
    """Indicators of all categories."""

    def rows(self, chosen: slice | Longs) -> "Levels":
        """Of some of the rows."""
        return Levels(tuple(code[chosen] for code in self.codes), self.count)

    def sums(self, values: Matrix, weight: Floats | None = None) -> Floats:
        """``(count, k)`` sums of values ``(n, k)`` over the rows of each indicator, with weights ``(n,)``."""
        total = np.zeros((self.count, values.shape[1]))
        if isinstance(values, Packed):
            of_rows = np.ones(len(values)) if weight is None else weight
            for code in self.codes:
                total += values.sums_by(of_rows, code, self.count + 1)[:-1]
            return total
        values = values if weight is None else values * weight[:, None]
        for code in self.codes:
            total += np.column_stack([np.bincount(code, column, self.count + 1)[:-1] for column in values.T])
        return total

    def products(self, weight: Floats | None = None) -> Floats:
        """``(count, count)`` cross products of the indicators, with weights ``(n,)`` of the rows."""
        size = self.count + 1
        total = np.zeros((size, size))
        for place, code in enumerate(self.codes):
            total.flat[:: size + 1] += np.bincount(code, weight, size)
            for other in self.codes[:place]:
                counts = np.bincount(code.astype(np.int64) * size + other, weight, size**2).reshape(size, size)
                total += counts + counts.T
        return total[:-1, :-1]

    def of(self, coefficients: Floats) -> Floats:
        """``(n,)`` sums of the coefficients ``(count,)`` of the indicators that a row has."""
        padded = np.append(coefficients, 0.0)
        total: Floats = np.sum([padded[code] for code in self.codes], axis=0)
        return total


# --------------------------------------------------------------------------------------------------------------------
# Rows of the ladder: those that are complete on its last rung, and the others by reason.
#
# Every rung uses the same rows. Rows with a missing control differ by group, so their denials are counted too.


@dataclass(frozen=True)
class LeftOut:
    """Rows of a group that no rung uses, for one reason."""

    reason: str
    group: int
    """Index into the groups; -1 for rows of none."""
    rows: int
    denied: int


@dataclass(frozen=True)
class Rows:
    """Which rows are used; rows used and rows left out add up to all rows."""

    used: Bools
    """``(n,)`` complete, and of a group with both denials and approvals."""
    left_out: tuple[LeftOut, ...]
    counts: Ints
    """``(groups,)`` complete rows of each group."""
    events: Ints
    """``(groups,)`` denials among them."""

    def fewest(self, group: int) -> int:
        """Denials or approvals of a group, whichever are fewer."""
        return int(min(self.events[group], self.counts[group] - self.events[group]))


def complete_rows(applications: Applications) -> Rows:
    """Find the rows that every rung uses, and the first reason against each other row.

    Groups without a denial or without an approval are left out as well: their indicator has no finite coefficient, and
    their rows say nothing of the other columns of a logit (Albert and Anderson 1984).
    """
    count, group = len(applications.groups), applications.group
    reasons = ["no group", "no cluster"]
    code = np.full(len(group), -1, np.int32)
    code[(group < 0) | (group >= count)] = 0
    if applications.cluster is not None:
        code[(code < 0) & (applications.cluster < 0)] = 1
    for control in (control for block in applications.blocks for control in block.controls):
        masks = [
            (f"missing {control.name}", np.isnan(control.values)),
            (f"infinite {control.name}", np.isinf(control.values)),
        ]
        if control.kind == "number" and control.scale == "log":
            masks.append((f"{control.name} not above 0", control.values <= 0))
        for reason, bad in masks:
            code[(code < 0) & bad] = len(reasons)
            reasons.append(reason)
    ok = code < 0
    counts = np.bincount(group[ok], minlength=count).astype(np.int32)
    events = np.bincount(group[ok & applications.denied], minlength=count).astype(np.int32)
    for outcome, none in (("denials", events == 0), ("approvals", events == counts)):
        code[ok & (code < 0) & np.append(none, False)[np.where(ok, group, count)]] = len(reasons)
        reasons.append(f"no {outcome} in the group")
    known_group = np.where((group >= 0) & (group < count), group, -1)
    left_out = []
    for number, reason in enumerate(reasons):
        of_reason = code == number
        for group_code in np.unique(known_group[of_reason]):
            rows = of_reason & (known_group == group_code)
            left_out.append(LeftOut(reason, int(group_code), int(rows.sum()), int(applications.denied[rows].sum())))
    return Rows(code < 0, tuple(left_out), counts, events)


# --------------------------------------------------------------------------------------------------------------------
# The design matrix of the whole ladder: intercept, group indicators, then the columns of each block in turn.
#
# Columns that are combinations of those before them are left out once, so that a rung is the first columns of the last.


COLLINEAR = 1e-10
"""A column whose square left beside the others is so small a share of its square is a combination of them."""

MOST_COLUMNS = 300
"""A rung with more columns has no logit: fixed effects of many lenders or counties are left to the linear fit."""


@dataclass(frozen=True)
class Design:
    """Outcome and columns of the ``n`` rows in use."""

    y: Floats
    """``(n,)`` 1 for denied."""
    x: Floats
    """``(n, p)`` intercept, group indicators, controls; of full rank. Without the columns of ``levels``."""
    group: Ints
    """``(n,)``."""
    reference: int
    indicators: dict[int, int]
    """Group -> its column."""
    names: tuple[str, ...]
    """``(p,)``."""
    control: tuple[int, ...]
    """``(p,)`` which control a column is of, counted over all blocks; -1 for intercept and indicators."""
    widths: tuple[int, ...]
    """Columns of each rung, rung 0 first."""
    dropped: tuple[tuple[str, ...], ...]
    """By rung: columns that its block would have added, each with ``(constant)``, ``(collinear)``, ``(fewer than 30
    rows, one decision)`` or ``(no level has 30 rows)``."""
    cluster: Ints | None
    """``(n,)`` from 0 without gaps."""
    terms: tuple[str, ...] = ()
    """Names of the last columns of the last rung, where terms were chosen for it."""
    partners: Mapping[int, int] = field(default_factory=dict)
    """Column that is a product -> the control of its other factor."""
    levels: Levels | None = None
    """Fixed effects of places, where they are no columns of ``x``; ``names``, ``control``, ``widths`` count them."""
    placed: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """``(count,)`` which of the ``p`` columns their indicators are, ascending."""
    packed: Packed | None = None
    """The columns of many rows, where ``x`` has none of them."""

    @property
    def matrix(self) -> Matrix:
        """``(n, p)`` the columns, packed or not."""
        return self.x if self.packed is None else self.packed

    @property
    def first_control(self) -> int:
        """The column at which controls begin."""
        return 1 + len(self.indicators)

    def dropped_until(self, rung: int) -> tuple[str, ...]:
        """Columns left out on a rung and those below it."""
        return tuple(name for names in self.dropped[: rung + 1] for name in names)


def build_design(
    applications: Applications, rows: Rows, form: Form, absorbed: str = "", *, packed: bool = False
) -> Design:
    """Code the rows in use; the reference group is one of them.

    The categories of the block ``absorbed`` become ``levels``, and no columns. Where ``packed``, no array of all
    columns is made.
    """
    used = rows.used
    group = applications.group[used]
    present = [g for g in range(len(applications.groups)) if g != applications.reference and (group == g).any()]
    columns = [Column(np.broadcast_to(1.0, len(group))), *(Column(group, g) for g in present)]
    names, control = ["intercept", *(applications.groups[g] for g in present)], [-1] * (1 + len(present))
    ends, number = [len(names)], 0
    without: list[list[str]] = [[]]
    codes, placed = list[Ints](), list[int]()
    for block in applications.blocks:
        without.append([])
        for block_control in block.controls:
            if block.name == absorbed and block_control.kind == "category":
                code, level_names, merged = code_category(
                    block_control, block_control.values[used], applications.denied[used]
                )
                without[-1] += merged if level_names or merged else [f"{block_control.name} (constant)"]
                codes.append(np.where(code < 0, -1, code + len(placed)).astype(np.int32))
                placed += range(len(names), len(names) + len(level_names))
                names += level_names
                control += [number] * len(level_names)
            else:
                coded = code_control(block_control, applications.denied, used, form)
                varies = coded.varies
                # what of a control gets no column, and why
                constant = not any(varies) and not coded.merged
                without[-1] += [f"{block_control.name} (constant)"] if constant else coded.merged
                columns += itertools.compress(coded.parts, varies)
                names += itertools.compress(coded.names, varies)
                control += [number] * sum(varies)
            number += 1
        ends.append(len(names))
    parts = Packed.of(columns)
    x: Matrix = parts if packed else parts.dense()
    levels = Levels(tuple(np.where(code < 0, len(placed), code) for code in codes), len(placed)) if placed else None
    is_placed = np.isin(np.arange(len(names)), placed)
    is_independent = independent(x) if levels is None else _independent_with(x, levels, is_placed)
    if levels is not None:  # an indicator that is left out counts as the base
        stays = is_independent[is_placed]
        numbers = np.append(np.where(stays, np.cumsum(stays) - 1, stays.sum()), stays.sum()).astype(np.int32)
        levels = Levels(tuple(numbers[code] for code in levels.codes), int(stays.sum()))
    starts = [0, *ends[:-1]]
    in_x = is_independent[~is_placed]
    return Design(
        y=applications.denied[used].astype(np.float64),
        x=np.zeros((0, int(in_x.sum()))) if isinstance(x, Packed) else x if in_x.all() else x[:, in_x],
        group=group,
        reference=applications.reference,
        indicators={g: 1 + place for place, g in enumerate(present)},
        names=tuple(name for name, keep in zip(names, is_independent, strict=True) if keep),
        control=tuple(place for place, keep in zip(control, is_independent, strict=True) if keep),
        widths=tuple(int(is_independent[:end].sum()) for end in ends),
        dropped=tuple(
            (*none, *(f"{names[j]} (collinear)" for j in range(start, end) if not is_independent[j]))
            for none, start, end in zip(without, starts, ends, strict=True)
        ),
        cluster=None if applications.cluster is None else renumbered(applications.cluster[used]),
        levels=levels,
        placed=np.flatnonzero(is_placed[is_independent]).astype(np.int32),
        packed=parts.having(in_x) if packed else None,
    )


def independent(x: Matrix) -> Bools:
    """``(p,)`` columns that are no combination of those before them, by elimination in the scaled cross products."""
    if isinstance(x, Packed) or len(x) > BLOCK:
        return independent_in(gram_of(x))
    length = np.sqrt((x**2).sum(axis=0))
    scaled = x / np.where(length > 0, length, 1.0)
    return _eliminated(scaled.T @ scaled)


def _independent_with(x: Matrix, levels: Levels, is_placed: Bools) -> Bools:
    """``(p,)`` the same of columns and of indicators of levels, which are those ``is_placed``."""
    gram, beside = np.zeros((len(is_placed), len(is_placed))), np.zeros((levels.count, x.shape[1]))
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        beside += levels.rows(rows).sums(some_rows_of(x, rows))
    gram[np.ix_(~is_placed, ~is_placed)] = gram_of(x)
    gram[np.ix_(is_placed, ~is_placed)], gram[np.ix_(~is_placed, is_placed)] = beside, beside.T
    gram[np.ix_(is_placed, is_placed)] = levels.products()
    return independent_in(gram)


def gram_of(x: Matrix) -> Floats:
    """``(p, p)`` cross products of the columns."""
    if isinstance(x, Packed):
        return x.squares()
    gram = np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        gram += rows.T @ rows
    return gram


def independent_in(gram: Floats) -> Bools:
    """``(p,)`` the same by the cross products of the columns."""
    length = np.sqrt(np.diag(gram))
    scale = np.where(length > 0, length, 1.0)
    return _eliminated(gram / np.outer(scale, scale))


def _eliminated(residual_gram: Floats) -> Bools:
    is_independent = np.zeros(len(residual_gram), np.bool_)
    for j in range(len(residual_gram)):
        is_independent[j] = residual_gram[j, j] > COLLINEAR
        if is_independent[j]:
            residual_gram[j + 1 :, j + 1 :] -= (
                np.outer(residual_gram[j + 1 :, j], residual_gram[j, j + 1 :]) / residual_gram[j, j]
            )
    return is_independent


def renumbered(cluster: Ints) -> Ints:
    """Clusters numbered from 0 without gaps; none is below 0."""
    number: Ints = np.cumsum(np.bincount(cluster) > 0, dtype=np.int32) - np.int32(1)
    return number[cluster]
