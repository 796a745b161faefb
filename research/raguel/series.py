"""People of the RAGUEL paper, drawn lists of growing length, and grids of tolerance and blocks."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from research.figures import ASKED, Cell, Figure, Value
from schemas.audit.spec import AuditSpec
from schemas.terms import Constraint, Kind
from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import Actions, Boundary, make_actions
from tasks.in_memory import labelled
from tasks.methods.raguel.algorithm import representation as algorithm_representation
from tasks.methods.raguel.algorithm.lists import rerank_any
from tasks.methods.raguel.algorithm.representation import (
    Records,
    Representation,
    fair_blocks,
    make_records,
    of_costs,
    quality,
    representation,
)
from tasks.methods.raguel.algorithm.reranking import (
    BlockRules,
    Reranked,
    Reranking,
    block_size,
    modified,
    rerank,
    rerank_blocks,
)
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Reads the people of the RAGUEL paper's files by the stages of an audit, with the bounds of their recourse.
#
# Scope: people before any classifier is fitted. Ranked lists of them: ``lists``.


_WAYS = {Constraint.UP: 1.0, Constraint.DOWN: -1.0, Constraint.FREE: 0.0, Constraint.IMMUTABLE: 0.0}


@dataclass(frozen=True)
class People:
    """``n`` people with ``d`` attributes; of a category, its place in the order is the attribute."""

    names: tuple[str, ...]
    values: Floats
    """``(n, d)`` in the units of the file."""
    group: Ints
    """``(n,)``."""
    groups: tuple[str, ...]
    reference: int
    favourable: Bools
    """``(n,)`` the label."""
    changeable: Bools
    """``(d,)``."""
    weight: Floats
    """``(d,)`` recourse weights; not read where an attribute cannot be changed."""
    step: Floats
    """``(d,)`` in the units of the file."""
    direction: Floats
    """``(d,)`` 1 only up, -1 only down, 0 either way."""
    lower: Floats
    """``(d,)`` what nothing may be moved below: a bound of the spec, or the least value that anybody has."""
    upper: Floats
    """``(d,)`` what nothing may be moved above: a bound of the spec, or the largest value that anybody has."""


def read(spec: AuditSpec) -> People:
    """Reads the people of an audit spec with a single protected attribute."""
    table = labelled(spec, "favourable")
    columns, grouped = table.columns, table.grouped
    specs = [spec.columns[name] for name in columns.names]
    low, high = np.array([column.recourse.limits for column in specs]).T
    return People(
        columns.names,
        columns.values,
        grouped.group,
        grouped.groups,
        grouped.reference,
        table.label,
        np.array([column.constraint is not Constraint.IMMUTABLE for column in specs]),
        np.array([column.recourse.weight for column in specs]),
        # without a step in the spec one category, or any amount of a number
        np.array([c.recourse.step or (0.0 if c.type is Kind.CONTINUOUS else 1.0) for c in specs]),
        np.array([_WAYS[column.constraint] for column in specs]),
        np.maximum(low, columns.values.min(axis=0)),
        np.minimum(high, columns.values.max(axis=0)),
    )


# --------------------------------------------------------------------------------------------------------------------
# Ranks people by the cost of reaching the boundary of a logistic regression.
#
# The classifier is fitted to all rows, on standardised attributes, which are the units of costs as well. The paper says
# of neither how it was done.


UNFAVOURABLE, ALL, BOUNDED = "unfavourable", "all", "unfavourable, within bounds"
LISTS: Final = (UNFAVOURABLE, ALL, BOUNDED)
"""Who is listed: those whom the classifier refuses (the default), everybody, and those refused once more where
attributes may move only the way the spec allows and not beyond anybody's. In the first two, as in the paper's Equation
2, what may be changed at all may go either way and any distance: without that, nobody who is accepted has a cost."""


@dataclass(frozen=True)
class Judged:
    """People before a classifier."""

    people: People
    values: Floats
    """``(n, d)`` standardised."""
    scale: Floats
    """``(d,)`` standard deviations."""
    model: LogisticRegression
    """Fitted to ``values`` and the labels."""

    @property
    def boundary(self) -> Boundary:
        """Where its decision turns."""
        return Boundary(self.model.coef_[0].astype(np.float64), float(self.model.intercept_[0]))

    @property
    def favourable(self) -> Bools:
        """``(n,)`` its decisions."""
        accepted: Bools = self.model.decision_function(self.values) >= 0
        return accepted


@dataclass(frozen=True)
class Ranked:
    """A list, ready to be re-ranked."""

    records: Records
    rows: Longs
    """``(r,)`` the person that each record is."""
    refused: int
    """People of the list without a permitted change to the boundary; they are left out."""
    reference: int

    def held(self, tolerance: float) -> Representation:
        """Returns the required representation: shares of the list itself."""
        return representation(self.records.group, 2, self.reference, tolerance)


def judge(people: People) -> Judged:
    """Fits the classifier."""
    scale = people.values.std(axis=0)
    values = (people.values - people.values.mean(axis=0)) / scale
    model = LogisticRegression(max_iter=1000).fit(values, people.favourable)
    return Judged(people, values, scale, model)


def actions(decisions: Judged, *, bounded: bool) -> Actions:
    """Returns the permitted changes, in standard deviations."""
    people = decisions.people
    weight, changeable, step = people.weight, people.changeable, people.step / decisions.scale
    if not bounded:
        return make_actions(weight, changeable, step)
    low, high = ((bound - people.values.mean(axis=0)) / decisions.scale for bound in (people.lower, people.upper))
    return make_actions(weight, changeable, step, people.direction, low, high)


def ranked(decisions: Judged, listing: str, refused: Bools | None = None) -> Ranked:
    """Ranks a list of people.

    Args:
        decisions: Everybody.
        listing: One of ``LISTS``.
        refused: ``(n,)`` whom another classifier refuses; the costs are those of this one all the same.
    """
    unfavourable = ~decisions.favourable if refused is None else refused
    rows = np.flatnonzero(unfavourable | (listing == ALL))
    allowed = actions(decisions, bounded=listing == BOUNDED)
    values = decisions.values[rows]
    boundary_targets = recourse.to_boundary(values, decisions.boundary, allowed)
    positions = np.flatnonzero(boundary_targets.reached)
    reached = recourse.Targets(
        boundary_targets.point[positions], boundary_targets.cost[positions], boundary_targets.rate[positions]
    )
    group = decisions.people.group[rows[positions]]
    records = make_records(values[positions], reached, group, allowed, decisions.boundary)
    return Ranked(records, rows[positions], len(rows) - len(positions), decisions.people.reference)


# --------------------------------------------------------------------------------------------------------------------
# Searches for the printed initial ratio of the clients over what the paper leaves open (Table 3).
#
# Columns, units, class weights of the classifier, recourse weights and the list are not published. Every combination
# of some of each is tried, in closed form: without bounds a cost is |a.x + b| over the root of the sum of a_j^2 / w_j.


PRINTED_RATIO: Final = 0.759
AMOUNTS: Final = ("LIMIT_BAL", "BILL_AMT", "PAY_AMT")
REPAYMENT: Final = ("PAY_0", "PAY_2", "PAY_3")


def tried_ratios(people: People) -> list[float]:
    """Returns the initial ratio of each combination with both groups in its list."""
    chosen = np.array([name.startswith(AMOUNTS) for name in people.names])
    repayment = np.isin(people.names, REPAYMENT)
    ratios = []
    for columns in (np.ones(len(chosen), np.bool_), chosen, repayment, chosen | repayment):
        values = people.values[:, columns]
        spread = values - values.mean(axis=0)
        for units in (values.std(axis=0), np.ptp(values, axis=0)):
            for balanced in (None, "balanced"):
                model = LogisticRegression(max_iter=1000, class_weight=balanced).fit(spread / units, people.favourable)
                score = model.decision_function(spread / units)
                for weight in (np.ones(int(columns.sum())), people.weight[columns]):
                    free = people.changeable[columns]
                    cost = np.abs(score) / np.sqrt((model.coef_[0][free] ** 2 / weight[free]).sum())
                    lists = (score < 0, np.ones(len(score), np.bool_), ~people.favourable)
                    with_groups = [listed for listed in lists if len(np.unique(people.group[listed])) > 1]
                    ratios += [algorithm_representation.overall(cost[rows], people.group[rows]) for rows in with_groups]
    return ratios


# --------------------------------------------------------------------------------------------------------------------
# Draws lists of declined mortgage applications, of any length and with a given recourse ratio (section 4.6).
#
# The paper draws samples of HMDA of 2,500 to 1,000,000 records with an initial ratio of 0.83 and publishes no more.
# Here costs of both groups are drawn from one lognormal distribution and those of the better-off group are scaled, so
# that the ratio of the list is exactly the given one. Some 20 of 100 blocks are then unfair at t = 1/3.


PUBLISHED_SIZES: Final = (2_500, 10_000, 50_000, 100_000, 500_000, 1_000_000)
"""From and to are the paper's; what lies between is ours."""

PROTECTED_SHARE: Final = 0.35
"""Share of the protected group, number 1, which is the worse-off one; exact, but for rounding."""


def draw(records: int, rng: np.random.Generator, ratio: float = 0.83, spread: float = 0.5) -> Records:
    """Draws a list.

    Args:
        records: How many; both groups get at least one.
        rng: Draws costs and who is of which group.
        ratio: Mean cost of the better-off group, divided by that of the protected one.
        spread: Standard deviation of the logarithm of the costs.

    Raises:
        ValueError: If there are fewer than two records or the ratio is outside (0, 1].
    """
    if records < 2 or not 0 < ratio <= 1:
        raise ValueError(f"{records} records with a ratio of {ratio:g}; give 2 or more, and one in (0, 1]")
    protected = min(max(round(PROTECTED_SHARE * records), 1), records - 1)
    group = rng.permutation(np.arange(records) < protected).astype(np.int32)
    cost = rng.lognormal(0.0, spread, records)
    cost[group == 0] *= ratio * cost[group == 1].mean() / cost[group == 0].mean()
    return of_costs(cost, group)


# --------------------------------------------------------------------------------------------------------------------
# Re-ranks drawn lists of mortgage applications of growing length, in blocks of 100 (the paper's Figure 4).
#
# The paper plots a "fairness ratio" of at least 0.95 after 0.83. It cannot be that of the whole list: exchanges with
# the next block only change a group's mean by no more than the width of a block. The mean of the blocks' own ratios
# does what is plotted, and is compared with it; the overall ratio is reported with it. Ours alone is the form that
# takes from any depth, with a requirement on the overall ratio.


log = logging.getLogger("evenhand")

SIZE: Final = 100
"""Records of a block."""
REFERENCE, PROTECTED = 0, 1
BEFORE, ONE_BORDER, ANY_DEPTH = "initial", "one border, t = 1/3", "any depth, t = 0.02"
METRICS: Final = ("rkl_by_records", "rnd_by_records", "rrd_by_records")
TOLERANCE: Final = 1 / 3
CLOSE_TOLERANCE: Final = 0.02
"""Of the form that takes from any depth: what a block is off its share by is what the overall ratio is off by."""
LEAST: Final = 0.95
LEAST_RECORDS: Final = 10_000
"""The least length for that requirement: in shorter lists the last blocks weigh too much."""


def figures(most: int) -> Iterator[Figure]:
    """Yields the overall ratio that is required of lists from 10,000 to ``most`` records.

    The paper says of its ranking quality that it is high in the shortest lists and low in long ones (``falling``).
    """
    for records in lengths(most):
        if records >= LEAST_RECORDS:
            cell = Cell("overall_ratio_after", ANY_DEPTH, (float(records),))
            yield Figure(ASKED, False, cell, LEAST, 0.0, at_least=True)


def falling(values: Mapping[Cell, Value], most: int) -> Iterator[Figure]:
    """Yields the ranking quality of the shortest lists, re-ranked, as the limit of that of the longest."""
    first, last = lengths(most)[0], lengths(most)[-1]
    for name, metric in product((ONE_BORDER, ANY_DEPTH), METRICS) if last > first else ():
        limit = values[Cell(metric, name, (float(first),))]
        if isinstance(limit, float):
            yield Figure(ASKED, False, Cell(metric, name, (float(last),)), limit, 0.0, at_most=True)


def lengths(most: int) -> list[int]:
    """Returns the lengths of the paper, up to ``most``."""
    return [records for records in PUBLISHED_SIZES if records <= most]


def cells(most: int, trials: int) -> Iterator[tuple[Cell, Value]]:
    """Re-ranks lists of each length and yields means over so many draws."""
    for records in lengths(most):
        trial_values = [_draw_figures(records, seed) for seed in range(trials)]
        at = (float(records),)
        log.info("%s records, %d lists drawn and re-ranked", f"{records:,}", trials)
        for quantity, group in trial_values[0]:
            yield Cell(quantity, group, at), float(np.mean([trial[quantity, group] for trial in trial_values]))


def _draw_figures(length: int, seed: int) -> dict[tuple[str, str], float]:
    records = draw(length, np.random.default_rng(seed))
    cost, group = records.cost, records.group
    exact, close = (representation(group, 2, REFERENCE, t) for t in (TOLERANCE, CLOSE_TOLERANCE))
    bordered, anywhere = (
        rerank_blocks(records, exact, SIZE, BlockRules()),
        rerank_any(records, close, SIZE, BlockRules()),
    )
    values = {
        ("initial_ratio", "all"): algorithm_representation.overall(cost, group),
        **_quality(BEFORE, group[records.ranked()]),
    }
    for name, ended, bounds in ((ONE_BORDER, bordered, exact), (ANY_DEPTH, anywhere, close)):
        block = np.zeros(length, np.int64) if ended.block is None else ended.block
        values["mean_block_ratio", name] = float(algorithm_representation.of_blocks(ended.cost, group, block).mean())
        values["overall_ratio_after", name] = algorithm_representation.overall(ended.cost, group)
        values["unfair_blocks_percent", name] = 100 * float((~fair_blocks(bounds, group, block)).mean())
        values["protected_modified_percent", name] = 100 * float(modified(records, ended)[group == PROTECTED].mean())
        values |= _quality(name, group[ended.order])
    return values


def _quality(name: str, group: Ints) -> dict[tuple[str, str], float]:
    scores = quality(group == PROTECTED)
    return {(metric, name): float(getattr(scores, metric[:3])) for metric in METRICS}


# --------------------------------------------------------------------------------------------------------------------
# Re-ranks a list at every tolerance and number of blocks of the paper's Table 6, by both algorithms.
#
# The paper says of its lists only that RAGUEL makes them fairer. The requirement on our default is
# weaker and can be checked: the overall ratio of a list never ends lower than it began.


TOLERANCES: Final = (1 / 2, 1 / 3, 1 / 5, 1 / 8)
BLOCKS: Final = (5, 10, 15, 20, 25, 30, 35)

SHOWN: Final = 20
"""Blocks of the paper's Figure 3."""

ROUNDING: Final = 1e-9
"""By which a ratio may fall: a mean of the same costs in another order is not the same to the last bit."""


def never_lower(ranked: Ranked, listing: str) -> Iterator[tuple[Figure, Value]]:
    """Yields the overall ratio after re-ranking, and that before as its lower limit."""
    before, records = _ratio(ranked), ranked.records
    for tolerance in TOLERANCES:
        representation = ranked.held(tolerance)
        cell = Cell("overall_ratio", f"{listing}, Algorithm 1", (tolerance,))
        yield _requirement(cell, before), _ratio(ranked, rerank(records, representation, Reranking()))
        for blocks in BLOCKS:
            cell = Cell("overall_ratio", f"{listing}, blocks", (tolerance, float(blocks)))
            yield _requirement(cell, before), _ratio(ranked, in_blocks(ranked, representation, blocks))


def unfair_blocks(ranked: Ranked, listing: str) -> Iterator[tuple[Cell, Value]]:
    """Yields counts of blocks that represent the groups unfairly, before and after (Table 6)."""
    for tolerance in TOLERANCES:
        representation = ranked.held(tolerance)
        for blocks in BLOCKS:
            ended, at = in_blocks(ranked, representation, blocks), (float(blocks), tolerance)
            before, after = _unfair(ranked, representation, ended)
            yield Cell("blocks_made_fair", listing, at), float(before - after)
            yield Cell("unfair_blocks", listing, at), f"{before} -> {after}"


def unfair_counts(ranked: Ranked, listing: str) -> Iterator[tuple[Cell, Value]]:
    """Yields counts of unfair blocks before and after of 20 blocks, at each tolerance (Figure 3)."""
    for tolerance in TOLERANCES:
        representation = ranked.held(tolerance)
        before, after = _unfair(ranked, representation, in_blocks(ranked, representation, SHOWN))
        yield Cell("unfair_before", listing, (float(SHOWN), tolerance)), float(before)
        yield Cell("unfair_after", listing, (float(SHOWN), tolerance)), float(after)


def in_blocks(ranked: Ranked, representation: Representation, blocks: int) -> Reranked:
    """Re-ranks the list by Algorithm 2, with our default."""
    return rerank_blocks(ranked.records, representation, block_size(len(ranked.rows), blocks), BlockRules())


def _requirement(cell: Cell, before: float) -> Figure:
    return Figure(ASKED, False, cell, before, ROUNDING, at_least=True)


def _ratio(ranked: Ranked, ended: Reranked | None = None) -> float:
    cost = ranked.records.cost if ended is None else ended.cost
    return algorithm_representation.overall(cost, ranked.records.group)


def _unfair(ranked: Ranked, representation: Representation, ended: Reranked) -> tuple[int, int]:
    block, group = (ended.block_before, ended.block), ranked.records.group
    before, after = (int((~fair_blocks(representation, group, blocks)).sum()) for blocks in block if blocks is not None)
    return before, after
