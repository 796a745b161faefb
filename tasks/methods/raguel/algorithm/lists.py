"""Lists of applicants by recourse cost, their targets, group thresholds, and lists of any depth."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple, Self

import numba
import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.isotonic import IsotonicRegression

from schemas.errors import SpecError
from tasks.baselines.rankings import RANKINGS, fair_star
from tasks.baselines.rankings import Listed as RankingsListed
from tasks.baselines.sources import SOURCES, SearchSpace
from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import (
    NOBODY,
    OUT_OF_REACH,
    Actions,
    Boundary,
    Favours,
    Targets,
    in_steps,
    nearest_favoured,
)
from tasks.methods.raguel.algorithm import modification, representation, reranking
from tasks.methods.raguel.algorithm.modification import Listed, Rules
from tasks.methods.raguel.algorithm.representation import Bounds, Records, Representation
from tasks.methods.raguel.algorithm.reranking import (
    BlockRules,
    Reranked,
    Reranking,
    block_size,
    by_record,
    distances,
    modified,
    ranks,
    rerank,
    rerank_blocks,
    starts,
)
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Targets of applicants under any decision maker: the boundary of a linear model, or another applicant's place.
#
# A cross-fitted model is several models: every applicant goes to the boundary of the one that decided on it. A model
# without a boundary, and a lender, have favoured other applicants: the nearest eligible one is the counterfactual point
# (section 3.6). A model must first favour the applicant there with its immutable values.
#
# Scope: counterfactual points, and reasons for having none. Their use: ``lists``.


NO_CANDIDATE: Final = "no_candidate"


@dataclass(frozen=True)
class RowTargets:
    """Of ``n`` rows the counterfactual points."""

    targets: Targets
    by: str
    """``boundary``, ``steps``, ``ar``, ``mace``, ``nearest`` or ``top``."""
    refusal: NDArray[np.str_]
    """``(n,)`` empty, or the reason."""
    candidate: Longs
    """``(n,)`` the candidate at the point; -1 where no candidate is."""
    boundary: Boundary | None = None
    """The common boundary of all rows, to which a modified record pays its way again; None without one."""


def of_source(
    values: Floats, fold: Ints, boundaries: Mapping[int, Boundary], actions: Actions, observed: Floats, source: str
) -> RowTargets:
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
        rows = np.flatnonzero(fold == number)
        points = SOURCES[source](SearchSpace(values[rows], boundary, actions, observed))
        point[rows], reached[rows] = points.point, points.reached
    row_targets = recourse.given(values, np.where(reached[:, None], point, np.nan), actions)
    return RowTargets(
        row_targets, source, np.where(row_targets.reached, "", OUT_OF_REACH), np.full(len(values), NOBODY)
    )


def to_boundaries(
    values: Floats, fold: Ints, boundaries: Mapping[int, Boundary], actions: Actions, settings: RaguelSettings
) -> RowTargets:
    """The nearest permitted point of the boundary of the model that decided on each row.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        fold: ``(n,)`` number of the model that decided.
        boundaries: Of the models, by number.
        actions: What may be done.
        settings: ``steps`` and ``most``.
    """
    row_targets = Targets(values.copy(), np.full(len(values), np.nan), np.ones(len(values)))
    stepped = settings.steps or settings.most is not None
    for number, boundary in boundaries.items():
        rows = np.flatnonzero(fold == number)
        if stepped:
            permitted = actions if settings.steps else replace(actions, step=np.zeros_like(actions.step))
            model_targets = in_steps(values[rows], boundary, permitted, settings.most).targets
        else:
            model_targets = recourse.to_boundary(values[rows], boundary, actions)
        row_targets.point[rows], row_targets.cost[rows] = model_targets.point, model_targets.cost
    alone = next(iter(boundaries.values())) if len(boundaries) == 1 and not stepped else None
    refusal = np.where(row_targets.reached, "", OUT_OF_REACH)
    return RowTargets(row_targets, "steps" if stepped else "boundary", refusal, np.full(len(values), NOBODY), alone)


def to_nearest(
    values: Floats, candidates: Floats, actions: Actions, queries: int = 1, favours: Favours | None = None
) -> RowTargets:
    """The place of the nearest candidate that the actions reach and, if there is a model to query, that it favours.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        candidates: ``(c, d)`` favourably decided rows.
        actions: What may be done.
        queries: Candidates that are tried for each row.
        favours: The model; None where it cannot be queried, and the nearest candidate is taken.
    """
    chosen = nearest_favoured(values, candidates, actions, queries, favours)
    reached = chosen != NOBODY
    points = values.copy()
    points[reached] = candidates[chosen[reached]]
    row_targets = recourse.given(values, points, actions)
    cost = np.where(reached, row_targets.cost, np.nan)
    return RowTargets(replace(row_targets, cost=cost), "nearest", np.where(reached, "", NO_CANDIDATE), chosen)


def to_top(values: Floats, actions: Actions, scores: Floats, top: Floats | None) -> RowTargets:
    """A common target, the place of the applicant with the highest score (section 3.1: a ranking without a classifier).

    Attributes that cannot be changed stay, and one that may only rise, or fall, stays where it is beyond the target
    already: nobody is asked to give up what it has.

    Args:
        values: ``(n, d)`` rows in standard deviations.
        actions: What may be done.
        scores: ``(c,)`` of everybody who may be the target; NaN where there is none.
        top: ``(c, d)`` their values.

    Returns:
        Without a single score a refusal of every row.
    """
    n = len(values)
    if top is None or np.isnan(scores).all():
        nowhere = recourse.given(values, np.full_like(values, np.nan), actions, np.full(n, np.nan))
        return RowTargets(nowhere, "top", np.full(n, NO_CANDIDATE), np.full(n, NOBODY))
    best = int(np.nanargmax(scores))
    aim = np.clip(top[best], actions.lower, actions.upper)
    is_beyond = (aim - values) * actions.direction < 0
    points = np.where(is_beyond | ~actions.changeable, values, aim)
    row_targets = recourse.given(values, points, actions)
    refusal = np.where(row_targets.reached, "", OUT_OF_REACH)
    return RowTargets(row_targets, "top", refusal, np.where(row_targets.reached, best, NOBODY))


# --------------------------------------------------------------------------------------------------------------------
# Blocks that take from any depth: our variant of Algorithm 2, for a fair ratio of the whole list.
#
# Exchanges with the next block alone cannot change a group's mean by more than the width of a block. Here members of
# the worst-off group move up from any depth, and the others slide down. Each block is filled with the next records of
# the list. While it is unfair, its lowest-ranked record of an over-represented group returns to the head of the rest,
# and the next record of the worst-off group comes in, modified as in Algorithm 2. A block that is touched at all
# continues, within its bounds, until that group has its share of the list so far; otherwise rounding errors of the
# blocks would add up. The price is that most of that group is modified.
#
# Scope: kernels and their frame. Boundaries: ``tasks.counterfactuals.algorithm.recourse``.


def rerank_any(records: Records, limits: Representation, size: int | Longs, settings: BlockRules) -> Reranked:
    """Re-rank a list block by block, with records of the worst-off group from any later block.

    Args:
        records: All with a cost.
        limits: The bounds that every block is to keep.
        size: Records of a block, or ``(b,)`` of each.
        settings: ``rule``, ``delta`` and ``probes``; only the worst-off group moves, whatever ``direction`` says.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    start = starts(len(records.cost), size)
    before, groups = records.ranked(), len(limits.shares)
    listed = records.listed(before)
    worst = representation.worst_off(records.cost, records.group, groups)
    least_ratio = settings.swaps(worst, groups).least_ratio
    block, unfair = _fill(listed, records.rules, limits.bounds, start, worst, least_ratio, settings.probes)
    order = before[reranking.sorted_blocks(block, listed.cost, before, len(unfair))]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(unfair),
        block_before=by_record(np.repeat(np.arange(len(start) - 1), np.diff(start)), before),
        block=by_record(block, before),
    )


class Block(NamedTuple):
    """The block that is being filled, and how."""

    members: Longs
    """``(m,)`` places of its first records, by rank."""
    gone: Longs
    """``(m,)`` room for those of them that go back to the rest."""
    counts: Longs
    """``(g,)`` records of each group."""
    sums: Floats
    """``(g,)`` their costs."""
    moves: Bools
    """``(g,)`` only the worst-off group."""
    target: float
    """Records of the worst-off group that a block which is touched is filled up to."""
    worst: int
    least_ratio: float
    probes: int


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fill(
    listed: Listed, rules: Rules, bounds: Bounds, start: Longs, worst: int, least_ratio: float, probes: int
) -> tuple[Longs, Bools]:
    """Fill block after block.

    Returns:
        ``(n,)`` block of each record; ``(b,)`` blocks that were left unfair because nothing helped.
    """
    n, groups = listed.cost.shape[0], bounds.shares.shape[0]
    blocks = start.shape[0] - 1
    block_of, unfair = np.full(n, NOBODY), np.zeros(blocks, np.bool_)
    following, queue = np.full(n, NOBODY), NOBODY
    for place in range(n - 1, -1, -1):
        if listed.group[place] == worst:
            following[place] = queue
            queue = place
    back, head, moves, placed = np.empty(0, np.int64), 0, np.arange(groups) == worst, 0
    for b in range(blocks):
        members, head = _next_records(back, block_of, head, start[b + 1] - start[b])
        counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
        for i in members:
            block_of[i] = b
            counts[listed.group[i]] += 1
            sums[listed.group[i]] += listed.cost[i]
        # with so many of its records, the worst-off group has its share of the list up to the end of this block
        target = np.round(bounds.shares[worst] * (start[b] + len(members))) - placed
        if bounds.bounded[worst]:
            low, high = representation.within(bounds, worst, len(members))
            target = min(max(target, low), high)
        block = Block(members, np.empty_like(members), counts, sums, moves, float(target), worst, least_ratio, probes)
        sent = 0
        if b < blocks - 1:
            while queue != NOBODY and block_of[queue] != NOBODY:
                queue = following[queue]
            unfair[b], sent = _balance(listed, block, rules, bounds, block_of, following, queue, b)
        back = np.sort(np.append(back[len(members) :], block.gone[:sent]))
        placed += counts[worst]
    return block_of, unfair


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _next_records(back: Longs, block_of: Longs, head: int, count: int) -> tuple[Longs, int]:
    """The next ``count`` records: those that were sent back, then from ``head`` on; and where to go on from."""
    members = np.empty(count, np.int64)
    filled = min(back.shape[0], count)
    members[:filled] = back[:filled]
    while filled < count:
        if block_of[head] == NOBODY:
            members[filled] = head
            filled += 1
        head += 1
    return members, head


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _balance(
    listed: Listed,
    block: Block,
    rules: Rules,
    bounds: Bounds,
    block_of: Longs,
    following: Longs,
    queue: int,
    number: int,
) -> tuple[bool, int]:
    """Exchange records of a block until it is fair; whether that failed, and how many were sent back."""
    counts, sums, worst, size = block.counts, block.sums, block.worst, block.members.shape[0]
    edge, bottom, sent = listed.cost[block.members[size - 1]], size - 1, 0
    unfair = representation.violation(bounds, counts, size)
    while unfair > 0.0 or (sent > 0 and counts[worst] < block.target):
        over, under = reranking.out_of_bounds(bounds, counts, size)
        under[worst] = under[worst] or unfair == 0.0
        over[worst] = False
        while bottom >= 0 and not over[listed.group[block.members[bottom]]]:
            bottom -= 1
        if bottom < 0:
            return unfair > 0.0, sent
        z = block.members[bottom]
        leaves = listed.group[z]
        floors, limits = representation.intervals(
            bounds, counts, sums, max(unfair, 1.0), under & block.moves, leaves, listed.cost[z], block.least_ratio, edge
        )
        y = _next(listed, block, rules, block_of, following, queue, floors[worst], limits[worst])
        if y == NOBODY:
            return unfair > 0.0, sent
        block_of[y], block_of[z] = number, NOBODY
        block.gone[sent] = z
        sent, bottom = sent + 1, bottom - 1
        counts[worst] += 1
        sums[worst] += listed.cost[y]
        counts[leaves] -= 1
        sums[leaves] -= listed.cost[z]
        unfair = representation.violation(bounds, counts, size)
    return False, sent


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _next(
    listed: Listed,
    block: Block,
    rules: Rules,
    block_of: Longs,
    following: Longs,
    queue: int,
    floor: float,
    limit: float,
) -> int:
    """The next record of the worst-off group that can reach the required cost, modified; or -1."""
    probed, y = 0, queue
    while y != NOBODY and probed < block.probes and floor <= limit:
        if block_of[y] == NOBODY:
            probed += 1
            if floor <= listed.cost[y] <= limit:
                return y
            cost = modification.find(rules, listed, y, floor, limit)
            if cost < np.inf:
                modification.accept(listed, y, cost)
                return y
        y = following[y]
    return NOBODY


# --------------------------------------------------------------------------------------------------------------------
# Thresholds by group on the scores of a given model (Hardt et al. 2016), by fairlearn, as a baseline.
#
# Nothing is trained. The thresholds of demographic parity, and of equalised odds, are chosen on the rows that they
# decide on. Some decisions are random, and the decision maker has to know the group of everybody.


Constraint = Literal["demographic_parity", "equalized_odds"]


class Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model with known scores: its one input is its score."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, *_: Any) -> Self:
        """Nothing is learnt."""
        return self

    def predict_proba(self, scores: Floats) -> Floats:
        """Probabilities ``(r, 2)`` of the labels 0 and 1, of scores ``(r, 1)``."""
        favourable = np.asarray(scores, np.float64)[:, 0]
        return np.column_stack([1 - favourable, favourable])


def one_sided(label: Bools, group: Ints) -> bool:
    """Whether some group has outcomes of one kind only: then there are no such thresholds."""
    return any(len(np.unique(label[group == g])) < 2 for g in np.unique(group))


def decided(scores: Floats, label: Bools, group: Ints, constraint: Constraint, seed: int) -> Bools:
    """Decisions of the thresholds that follow the outcomes best under a constraint.

    Args:
        scores: ``(r,)`` probabilities of the favourable decision.
        label: ``(r,)`` whether the outcome is favourable; both kinds in each group.
        group: ``(r,)``.
        constraint: What the groups are to have in common.
        seed: Of the decisions that are drawn.
    """
    # Best thresholds lie at corners of the hull of a group's ROC curve, where its isotonic fit steps. One score does
    # for all between two corners, and fairlearn looks at each distinct one in Python.
    steps = np.empty(len(scores))
    for of_group in (group == number for number in np.unique(group)):
        steps[of_group] = IsotonicRegression().fit_transform(scores[of_group], label[of_group])
    model = ThresholdOptimizer(estimator=Scores(), constraints=constraint, prefit=True, predict_method="predict_proba")
    model.fit(steps[:, None], label.astype(np.int64), sensitive_features=group)
    predicted = model.predict(steps[:, None], sensitive_features=group, random_state=seed)
    return np.asarray(predicted) > 0


# --------------------------------------------------------------------------------------------------------------------
# One list of applicants by recourse cost, and RAGUEL's re-rankings of it.
#
# Scope: the list, its blocks, and which algorithms of ``ranking`` run on it. Statistics: ``tallies`` and
# ``aggregates``.


LIST, BLOCKS, ANY = "list", "blocks", "any"
"""Algorithm 1, Algorithm 2, and blocks that take from any depth."""

FAIR_STAR, FOEIR = "fair_star", "foeir"
"""Orders of other papers, which replace Algorithm 1 if the settings name them."""

STRICT, IMPROVE = "strict", "improve"

TOO_MANY: Final = "more blocks than applicants in the list"


@dataclass(frozen=True)
class Ranked:
    """A list before it is re-ranked: ``n`` applicants, all with a cost."""

    records: Records
    groups: int
    reference: int
    sizes: Longs | int
    """``(b,)`` applicants of each block, or of all but the last."""

    def held(self, tolerance: float) -> Representation:
        """What the list is held against."""
        return representation.representation(self.records.group, self.groups, self.reference, tolerance)

    @cached_property
    def block(self) -> Longs:
        """``(n,)`` block, from 0, of each place in the list."""
        start = starts(len(self.records.cost), self.sizes)
        return np.repeat(np.arange(len(start) - 1), np.diff(start))


@dataclass(frozen=True)
class Order:
    """A list in some order. Arrays are aligned by record."""

    name: str
    rank: Longs
    """``(n,)`` from 1."""
    block: Longs
    """``(n,)`` from 0."""
    cost: Floats
    offered: Bools
    """``(n,)`` who has an offer."""
    paid: Floats
    """``(n,)`` weighted distance that each is moved by its offer."""
    values: Floats
    """``(n, d)`` values of each applicant with its offer."""
    reranked: Reranked | None = None
    """None of an order without offers."""

    @property
    def order(self) -> Longs:
        """``(n,)`` the record at each rank."""
        return np.argsort(self.rank)


def block_sizes(records: int, settings: RaguelSettings, bands: Longs | None) -> Longs | int:
    """Sizes of the blocks: equal ones, as many as there are applicants at most, or those of the bands of a column.

    Args:
        records: Applicants in the list.
        settings: ``blocks``.
        bands: ``(n,)`` number of each applicant's band, lowest first; None for equal blocks.
    """
    if bands is not None:
        return np.unique(bands, return_counts=True)[1].astype(np.int64)
    return block_size(records, min(settings.blocks, records)) if records else 1


def names(settings: RaguelSettings) -> tuple[str, ...]:
    """The lists: Algorithm 1 or its replacement, Algorithm 2 and, if set, the variant of any depth."""
    return (whole(settings), BLOCKS, ANY) if settings.reach == ANY else (whole(settings), BLOCKS)


def whole(settings: RaguelSettings) -> str:
    """The order of the whole list at once."""
    return LIST if settings.order == "raguel" else settings.order


def initial(ranked: Ranked) -> Order:
    """The list as it is."""
    return placed("", ranked, ranks(ranked.records.ranked()))


def placed(name: str, ranked: Ranked, rank: Longs) -> Order:
    """Another order of the same applicants, who have no offers."""
    n = len(rank)
    return Order(
        name,
        rank,
        ranked.block[rank - 1],
        ranked.records.cost,
        np.zeros(n, np.bool_),
        np.zeros(n),
        ranked.records.values,
    )


def orders(ranked: Ranked, settings: RaguelSettings, rng: np.random.Generator) -> list[Order]:
    """The lists by the names of ``names``, re-ranked; ``rng`` draws an order where a system gives a lottery."""
    representation, rules = ranked.held(settings.tolerance), block_rules(settings)
    ours = Reranking(settings.rule, settings.direction, settings.failure, settings.delta, settings.probes)
    builders: dict[str, Callable[[], Reranked]] = {
        LIST: partial(rerank, ranked.records, representation, ours),
        BLOCKS: partial(rerank_blocks, ranked.records, representation, ranked.sizes, rules),
        ANY: partial(rerank_any, ranked.records, representation, ranked.sizes, rules),
    }
    reranked_orders = [_order(name, ranked, builders[name]()) for name in names(settings) if name in builders]
    if whole(settings) == LIST:
        return reranked_orders
    # an order of another paper changes places and offers nothing; protected are all groups but the reference group
    listed = RankingsListed.of(ranked.records.cost, ranked.records.group != ranked.reference)
    if settings.order == FAIR_STAR:
        ranking = fair_star(listed, settings.alpha, settings.top)
    else:
        ranking = RANKINGS[settings.order](listed)
    order = listed.by_cost if ranking.reason else ranking.drawn(rng)  # one group alone has nobody to change places with
    return [placed(settings.order, ranked, ranks(order)), *reranked_orders]


def block_rules(settings: RaguelSettings) -> BlockRules:
    """How blocks are exchanged."""
    return BlockRules(settings.rule, settings.direction, settings.delta, settings.probes)


def _order(name: str, ranked: Ranked, reranked: Reranked) -> Order:
    block = ranked.block[reranked.rank - 1] if reranked.block is None else reranked.block
    changes = modified(ranked.records, reranked), distances(ranked.records, reranked)
    return Order(name, reranked.rank, block, reranked.cost, *changes, reranked.values, reranked)


def attained(ranked: Ranked, order: Order, delta: float) -> NDArray[np.str_]:
    """``(n,)`` the rule that each offer satisfies: empty without an offer.

    Under Algorithm 1 the ratio that counts is that of the list down to the applicant, else that of its block.
    """
    group, ratio = ranked.records.group, np.empty(len(order.rank))
    if order.name == LIST:
        ratio = representation.of_prefixes(order.cost[order.order], group[order.order])[order.rank - 1]
    else:
        ratio = representation.of_blocks(order.cost, group, order.block)[order.block]
    return np.where(order.offered, np.where(ratio >= 1.0 - delta, STRICT, IMPROVE), "")


@dataclass(frozen=True)
class Cell:
    """One number of blocks and one tolerance."""

    blocks: int
    tolerance: float | None
    """None of the list as it is."""
    order: Order | None
    """None where there are more blocks than applicants."""


def grid(ranked: Ranked, settings: RaguelSettings) -> Iterator[Cell]:
    """The list cut into several numbers of blocks, as it is and re-ranked under several tolerances."""
    again = rerank_any if settings.reach == ANY else rerank_blocks
    rules, name = block_rules(settings), ANY if settings.reach == ANY else BLOCKS
    for blocks in settings.block_counts:
        try:
            size = block_size(len(ranked.records.cost), blocks)
        except SpecError:
            yield from (Cell(blocks, tolerance, None) for tolerance in (None, *settings.tolerances))
            continue
        cut = replace(ranked, sizes=size)
        yield Cell(blocks, None, initial(cut))
        for tolerance in settings.tolerances:
            yield Cell(blocks, tolerance, _order(name, cut, again(cut.records, cut.held(tolerance), size, rules)))
