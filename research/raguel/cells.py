"""Cells and figures of the RAGUEL paper, and the systems that it is compared with."""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.spatial import cKDTree

from research.figures import ASKED, Cell, Curve, Drawing, Figure, Value, curves
from research.raguel import series
from research.raguel.series import Judged, Ranked
from tasks.baselines.rankings import RANKINGS, Listed, Orders, exposure, fair_star, parity
from tasks.baselines.sources import SOURCES, SearchSpace
from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import Boundary, make_actions
from tasks.methods.raguel.algorithm import representation
from tasks.methods.raguel.algorithm.representation import make_records, quality
from tasks.methods.raguel.algorithm.reranking import Reranking, modified, rerank
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Orders of a list by the fair rankings that the paper compares itself with, and their quality (Table 5).
#
# The paper ranks whole lists by RAGUEL, samples of 400 by FA*IR and samples of 50 by FoEiR. Ranking quality depends on
# the length: a random order scores higher in short lists. So the initial order stands three times: of the whole list,
# and of the same samples.


Metric = Literal["rkl", "rnd", "rrd"]
METRICS: Final[tuple[Metric, ...]] = ("rkl", "rnd", "rrd")
INITIAL, RAGUEL, FA_IR = "initial", "RAGUEL", "FA*IR"
FOEIR: Final[Mapping[str, str]] = {
    "FoEiR-DP": "foeir",
    "FoEiR-DT": "foeir_treatment",
    "FoEiR-DI": "foeir_impact",
}
"""The paper's variants, and their names in the registry."""

TOLERANCE: Final = 1 / 3
LONG, SHORTER, SHORT = 400, 100, 50
"""Records of a sample for FA*IR, of a list that has no 400, and for FoEiR."""
LEAST_OF_GROUP: Final = 2
RAISED: Final = 0.005
"""By how much RAGUEL may raise rND over the initial order of the same list."""
EQUAL: Final = 1e-6
NORMAL_95: Final = 1.96
JUDGED: Final = "RAGUEL-CF"
"""The source of whose lists FoEiR-DP is to lower rND. Lists by other sources may be mixed so well that nothing can."""
PAIRED: Final = "FoEiR-DP less initial"


@dataclass(frozen=True)
class Samples:
    """Samples of one length of a list, and which systems rank them."""

    ranked: Ranked
    size: int
    trials: int
    systems: Mapping[str, str]

    @property
    def initial(self) -> str:
        """Name of the initial order of these samples."""
        return f"initial, samples of {self.size}"


def qualities(ranked: Ranked, source: str, trials: int, systems: frozenset[str]) -> Iterator[tuple[Cell, Value]]:
    """Yields rKL, rND and rRD of the list of a source in all orders.

    Args:
        ranked: The list.
        source: The paper's name of the source.
        trials: Samples that means are taken over.
        systems: Names in the registry of those that are run.
    """
    protected = ranked.records.group != ranked.reference
    ended = rerank(ranked.records, ranked.held(TOLERANCE), Reranking())
    for name, order in ((INITIAL, ranked.records.ranked()), (RAGUEL, ended.order)):
        for metric, value in _metrics(protected[order]).items():
            yield Cell(metric, source, (name,)), value
    long = LONG if len(protected) > LONG else SHORTER
    fair = {FA_IR: "fair_star"} if "fair_star" in systems else {}
    exposed = FOEIR if "foeir" in systems else {}
    for samples in (Samples(ranked, long, trials, fair), Samples(ranked, SHORT, trials, exposed)):
        if samples.systems and len(protected) >= samples.size:
            rng = np.random.default_rng(samples.size)
            sampled_protected = samples.ranked.records.group != samples.ranked.reference
            share, scores = float(sampled_protected.mean()), _Scores(samples)
            for chosen in samples_of(samples, rng):
                listed = Listed(samples.ranked.records.cost[chosen], sampled_protected[chosen], share)
                scores.add(samples.initial, listed, RANKINGS["initial"](listed), rng)
                for name, system in samples.systems.items():
                    scores.add(name, listed, RANKINGS[system](listed), rng)
            yield from scores.cells(source)


def laws(values: Mapping[Cell, Value], source: str) -> Iterator[Figure]:
    """Yields the requirements on a list: RAGUEL does not raise rND, FoEiR-DP gives equal exposure and lowers rND."""
    initial = values[Cell("rnd", source, (INITIAL,))]
    yield Figure(ASKED, False, Cell("rnd", source, (RAGUEL,)), initial, RAISED, at_most=True)
    for quantity, limit in (("exposure_difference", EQUAL), ("refused_lists", 0.0)):
        for name in FOEIR:
            cell = Cell(quantity, source, (name,))
            if cell in values and (quantity == "refused_lists" or name == "FoEiR-DP"):
                yield Figure(ASKED, False, cell, limit, 0.0, at_most=True)
    paired = Cell("rnd_paired_95_upper", source, (PAIRED,))
    if paired in values and source == JUDGED:
        yield Figure(ASKED, False, paired, 0.0, 0.0, at_most=True)


def samples_of(samples: Samples, rng: np.random.Generator) -> Iterator[Longs]:
    """Yields records ``(size,)`` of each sample; one with fewer than two of a group is drawn again."""
    group = samples.ranked.records.group
    while np.bincount(group, minlength=2).min() < LEAST_OF_GROUP:
        return
    trial = 0
    while trial < samples.trials:
        chosen = np.sort(rng.choice(len(group), samples.size, replace=False))
        if np.bincount(group[chosen], minlength=2).min() >= LEAST_OF_GROUP:
            trial += 1
            yield chosen


class _Scores:
    """Quality of orders of samples, by name of the order."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.metrics: dict[str, list[dict[Metric, float]]] = {}
        self.apart: dict[str, list[float]] = {}
        self.refused: dict[str, int] = {}

    def add(self, name: str, listed: Listed, orders: Orders, rng: np.random.Generator) -> None:
        """Draws an order and keeps its quality, and by how much expected exposure differs between the groups."""
        self.refused.setdefault(name, 0)
        if orders.reason:
            self.refused[name] += 1
            return
        self.metrics.setdefault(name, []).append(_metrics(listed.protected[orders.drawn(rng)]))
        # by how much the protected group has more of expected exposure than the other, on average
        exposures, difference = exposure(len(listed.cost)), 0.0
        for order, weight in zip(orders.order, orders.weight, strict=True):
            protected = listed.protected[order]
            difference += float(weight) * float(exposures[protected].mean() - exposures[~protected].mean())
        self.apart.setdefault(name, []).append(abs(difference))

    def cells(self, source: str) -> Iterator[tuple[Cell, Value]]:
        for name, scores in self.metrics.items():
            for metric in METRICS:
                yield Cell(metric, source, (name,)), float(np.mean([trial_scores[metric] for trial_scores in scores]))
        for name in FOEIR:
            if name in self.metrics:
                yield Cell("exposure_difference", source, (name,)), max(self.apart[name])
                yield Cell("refused_lists", source, (name,)), float(self.refused[name])
        if "FoEiR-DP" in self.metrics and not self.refused["FoEiR-DP"]:
            fair, before = (
                np.array([trial_scores["rnd"] for trial_scores in self.metrics[name]])
                for name in ("FoEiR-DP", self.samples.initial)
            )
            less = fair - before
            error = float(less.std(ddof=1) / np.sqrt(len(less))) if len(less) > 1 else np.inf
            yield Cell("rnd_paired", source, (PAIRED,)), float(less.mean())
            yield Cell("rnd_paired_95_upper", source, (PAIRED,)), float(less.mean()) + NORMAL_95 * error


def _metrics(protected: Bools) -> dict[Metric, float]:
    """The metrics of an order; rRD is of the group that is the minority of the list, as the paper defines it."""
    minority = protected if 2 * protected.sum() <= len(protected) else ~protected
    scores = quality(minority)
    return {metric: float(getattr(scores, metric)) for metric in METRICS}


# --------------------------------------------------------------------------------------------------------------------
# Points of the counterfactual sources that the paper compares itself with, and lists by the distance to them.
#
# All sources look for points of the same people below the same boundary. Attributes that can be changed may go either
# way, as in the paper's Equation 2. AR and MACE choose among values that somebody has: the paper's MACE leaves the
# range of the data, and its closeness shows that.


OURS: Final = "RAGUEL-CF"
NAMES: Final[Mapping[str, str]] = {"MACE": "mace", "AR": "ar", OURS: "exact"}
"""The paper's sources, and their names in the registry."""


def known(systems: frozenset[str]) -> tuple[str, ...]:
    """The paper's names of the sources that are run; ours always is."""
    return tuple(name for name, system in NAMES.items() if name == OURS or system in systems)


def counterfactuals(decisions: Judged, name: str) -> Iterator[tuple[Cell, Value]]:
    """Yields what Table 4 has of a source: closeness, attributes changed, seconds; and closeness standardised.

    Closeness is the distance to the nearest person. In the units of the file the largest attribute drowns all others,
    as it does in the paper; in standard deviations it does not.
    """
    people, space = decisions.people, _space(decisions)
    source = SOURCES[NAMES[name]]
    source(SearchSpace(space.values[:2], space.boundary, space.actions, space.observed))  # compiles
    start = time.process_time()
    points = source(space)
    took = (time.process_time() - start) / max(len(space.values), 1)
    reached = points.reached
    change = (points.point - space.values)[reached]
    in_units = people.values[~decisions.favourable][reached] + change * decisions.scale
    yield Cell("closeness", name), _closeness(people.values, in_units)
    yield Cell("attributes_changed", name), float((change != 0).sum(axis=1).mean())
    yield Cell("seconds_each", name), took
    yield Cell("closeness_standardised", name), _closeness(decisions.values, points.point[reached])
    yield Cell("cost_by_its_own_measure", name), float(points.cost[reached].mean())
    yield Cell("out_of_reach", name), float((~reached).sum())
    yield Cell("not_proven", name), float((~points.proven).sum())


def closer(values: Mapping[Cell, Value]) -> Iterator[Figure]:
    """Yields the requirement that MACE's points lie closer to people than AR's."""
    limit = values.get(Cell("closeness_standardised", "AR"))
    if isinstance(limit, float) and Cell("closeness_standardised", "MACE") in values:
        yield Figure(ASKED, False, Cell("closeness_standardised", "MACE"), limit, 0.0, at_most=True)


def ranked(decisions: Judged, name: str) -> Ranked:
    """Ranks those refused by the weighted distance to the points of a source; our own are in closed form, as before."""
    if name == OURS:
        return series.ranked(decisions, series.UNFAVOURABLE)
    space, rows = _space(decisions), np.flatnonzero(~decisions.favourable)
    points = SOURCES[NAMES[name]](space)
    point_targets = recourse.given(space.values, np.where(points.reached[:, None], points.point, np.nan), space.actions)
    positions = np.flatnonzero(point_targets.reached)
    reached = recourse.Targets(
        point_targets.point[positions], point_targets.cost[positions], point_targets.rate[positions]
    )
    records = make_records(space.values[positions], reached, decisions.people.group[rows[positions]], space.actions)
    return Ranked(records, rows[positions], len(rows) - len(positions), decisions.people.reference)


def _space(decisions: Judged) -> SearchSpace:
    actions = series.actions(decisions, bounded=False)
    return SearchSpace(decisions.values[~decisions.favourable], decisions.boundary, actions, decisions.values)


def _closeness(people: Floats, points: Floats) -> float:
    apart, _ = cKDTree(people).query(points)
    return float(np.mean(apart))


# --------------------------------------------------------------------------------------------------------------------
# Runs the baselines of the paper's Table 3 on the list of those refused.
#
# Demographic parity and equalised odds are fairlearn's ThresholdOptimizer on the same classifier: thresholds of each
# group, between which decisions are drawn. The list is then of those still refused, at the costs of the classifier as
# it was. FA*IR moves protected records up and FoEiR draws an order of equal exposure; neither modifies anybody.


CONSTRAINTS: Final[Mapping[str, str]] = {
    "demographic parity": "demographic_parity",
    "equalised odds (false negative)": "false_negative_rate_parity",
    "equalised odds (false positive)": "false_positive_rate_parity",
    "equalised odds (weighted)": "equalized_odds",
}
"""The paper's rows and the constraint of fairlearn. "Weighted" is the paper's word for both error rates at once."""

BASELINES_FA_IR, BEGINNING, BASELINES_FOEIR = FA_IR, "initial, first 400", "FoEiR-DP"
TOP: Final = LONG
"""Ranks that FA*IR decides on, as in the paper; costs are means of the records at these."""
SEED: Final = 0


def cells(decisions: Judged, ranked: Ranked, names: frozenset[str], trials: int) -> Iterator[tuple[Cell, Value]]:
    """Yields points changed and costs by group, and the ratio, of every baseline (Table 3).

    Args:
        decisions: Everybody.
        ranked: The list of those whom the classifier refuses.
        names: Of the baselines that are run.
        trials: Samples of 50 that FoEiR ranks.
    """
    for name, constraint in CONSTRAINTS.items() if "thresholds" in names else ():
        refused = _refused(decisions, constraint)
        changed = np.bincount(decisions.people.group[refused == decisions.favourable], minlength=2)
        records = series.ranked(decisions, series.UNFAVOURABLE, refused).records
        yield from rows(decisions, name, changed, records.cost, records.group)
    if "fair_star" in names:
        before, after = ranked.records.ranked(), fair_order(ranked)
        for name, order in ((BEGINNING, before), (BASELINES_FA_IR, after)):
            first = order[:TOP]
            changed = np.bincount(ranked.records.group[np.setdiff1d(first, before[:TOP])], minlength=2)
            yield from rows(decisions, name, changed, ranked.records.cost[first], ranked.records.group[first])
    if "foeir" in names:
        yield from _of_foeir(decisions, ranked, trials)


def _of_foeir(decisions: Judged, ranked: Ranked, trials: int) -> Iterator[tuple[Cell, Value]]:
    """Means over samples of 50. Points changed are those with another rank: FoEiR changes no cost."""
    rng, group, cost = np.random.default_rng(SEED), ranked.records.group, ranked.records.cost
    trial_values: dict[Cell, list[float]] = {}
    for chosen in samples_of(Samples(ranked, SHORT, trials, {}), rng):
        listed = Listed.of(cost[chosen], group[chosen] != ranked.reference)
        ended = parity(listed).drawn(rng)
        changed = np.bincount(group[chosen][ended[ended != listed.by_cost]], minlength=2)
        for cell, value in rows(decisions, BASELINES_FOEIR, changed, cost[chosen], group[chosen]):
            trial_values.setdefault(cell, []).append(value)
    yield from ((cell, float(np.mean(values))) for cell, values in trial_values.items())


def rows(decisions: Judged, name: str, changed: Longs, cost: Floats, group: Ints) -> Iterator[tuple[Cell, float]]:
    """Yields the cells of a method: by group, and of both together."""
    means = representation.group_means(cost, group, 2)
    for number, group_name in enumerate(decisions.people.groups):
        yield Cell("points_changed", group_name, (name,)), float(changed[number])
        yield Cell("recourse_cost", group_name, (name,)), float(means[number])
    yield Cell("ratio", "both", (name,)), representation.overall(cost, group)


def fair_order(ranked: Ranked) -> Longs:
    """Ranks the list ``(r,)`` by FA*IR; its first 400 are tested at the protected group's share of it."""
    listed = Listed.of(ranked.records.cost, ranked.records.group != ranked.reference)
    order: Longs = fair_star(listed, top=TOP).order[0]
    return order


def _refused(decisions: Judged, constraint: str) -> Bools:
    """``(n,)`` rows that thresholds by group refuse."""
    from fairlearn.postprocessing import ThresholdOptimizer  # takes a second to import

    model = ThresholdOptimizer(
        estimator=decisions.model, constraints=constraint, predict_method="predict_proba", prefit=True
    )
    label, group = decisions.people.favourable.astype(np.int64), decisions.people.group
    model.fit(decisions.values, label, sensitive_features=group)
    predicted = model.predict(decisions.values, sensitive_features=group, random_state=SEED)
    refused: Bools = np.asarray(predicted) == 0
    return refused


# --------------------------------------------------------------------------------------------------------------------
# Computes the paper's worked example: four applicants, a boundary at which the duration is twice the amount, t = 1/3.
#
# The amount is in thousands of dollars and moves by 50 dollars, the duration is in years and moves by whole ones.


EXAMPLE_NAMES = ("A", "B", "C", "D")
APPLICANTS = ((3.5, 6.0), (2.0, 1.0), (4.0, 4.0), (5.0, 4.0))
"""Loan amount and duration."""
_MEN, _WOMEN = 0, 1


def example_cells() -> Mapping[Cell, Value]:
    """Returns costs and counterfactual points of the four, and their places after Algorithm 1."""
    values = np.array(APPLICANTS)
    group = np.array([_MEN, _MEN, _WOMEN, _WOMEN], np.int32)
    actions, boundary = make_actions([0.5, 1.0], step=[0.05, 1.0]), Boundary(np.array([2.0, -1.0]), 0.0)
    boundary_targets = recourse.to_boundary(values, boundary, actions)
    records = make_records(values, boundary_targets, group, actions, boundary)
    ended = rerank(records, representation.representation(group, 2, _MEN), Reranking())
    columns = {
        "cost": boundary_targets.cost,
        "counterfactual_loan_amount": boundary_targets.point[:, 0],
        "counterfactual_loan_duration": boundary_targets.point[:, 1],
        "rank": ended.rank_before,
        "loan_amount_after": ended.values[:, 0],
        "loan_duration_after": ended.values[:, 1],
        "cost_after": ended.cost,
        "rank_after": ended.rank,
    }
    return {
        Cell(quantity, name): float(value)
        for quantity, column in columns.items()
        for name, value in zip(EXAMPLE_NAMES, column, strict=True)
    }


# --------------------------------------------------------------------------------------------------------------------
# Computes the cells of the paper's figures of people: Tables 3 to 6, and the counts of Figure 3.
#
# Scope: cells of our own method, and which others are run. Others: ``baselines``, ``sources`` and ``rankings``.


log = logging.getLogger("evenhand")

OBTAINED_TOLERANCE: Final = 1 / 3
BLOCKS: Final = 20
"""Of the paper's Figure 3; Table 3 does not say how many."""

OBTAINED_INITIAL, OBTAINED_RAGUEL, BLOCKWISE = INITIAL, RAGUEL, "RAGUEL-Block"
EVERYBODY = ", all listed"
"""Follows the name of a method where everybody is on the list, and not only who is refused."""


@dataclass(frozen=True)
class BaselineRuns:
    """Which baselines are run, and on how many samples."""

    names: frozenset[str]
    trials: int


def obtained_cells(decisions: Judged, baseline_options: BaselineRuns) -> dict[Cell, Value]:
    """Returns all cells of a data set."""
    refused, everybody = (series.ranked(decisions, listing) for listing in (series.UNFAVOURABLE, series.ALL))
    values: dict[Cell, Value] = dict(series.unfair_blocks(everybody, series.ALL))
    values |= dict(series.unfair_counts(refused, series.UNFAVOURABLE)) | dict(
        series.unfair_counts(everybody, series.ALL)
    )
    values |= dict(rerankings(decisions, refused, "")) | dict(rerankings(decisions, everybody, EVERYBODY))
    values |= dict(cells(decisions, refused, baseline_options.names, baseline_options.trials))
    for name in known(baseline_options.names):
        values |= dict(counterfactuals(decisions, name))
        log.info("points by %s, and orders of their list", name)
        values |= dict(qualities(ranked(decisions, name), name, baseline_options.trials, baseline_options.names))
    return values


def obtained_laws(values: dict[Cell, Value], baseline_options: BaselineRuns, dataset: str) -> Iterator[Figure]:
    """Yields the expected results for the cells of a data set."""
    for name in known(baseline_options.names):
        yield from laws(values, name)
    if dataset == "german":
        yield from closer(values)


def rerankings(decisions: Judged, ranked: Ranked, suffix: str) -> Iterator[tuple[Cell, Value]]:
    """Yields points changed, costs and ratio of the initial order and of both algorithms (Table 3)."""
    records, representation = ranked.records, ranked.held(OBTAINED_TOLERANCE)
    nobody = np.zeros(2, np.int64)
    yield from rows(decisions, OBTAINED_INITIAL + suffix, nobody, records.cost, records.group)
    yield Cell("listed", "both", (OBTAINED_INITIAL + suffix,)), float(len(ranked.rows))
    for name, ended in (
        (OBTAINED_RAGUEL, rerank(records, representation, Reranking())),
        (BLOCKWISE, series.in_blocks(ranked, representation, BLOCKS)),
    ):
        changed = np.bincount(records.group[modified(records, ended)], minlength=2)
        yield from rows(decisions, name + suffix, changed, ended.cost, records.group)


# --------------------------------------------------------------------------------------------------------------------
# Draws the figures for which the paper prints no numbers: from what was obtained, and from the blocks of a list.


FIGURE_3: Final = (20, 1 / 5)
"""Blocks and tolerance of the paper's Figure 3."""


def worked_example(cells: Mapping[Cell, Value]) -> Drawing:
    """Figure 1: the four applicants, the way from each to its counterfactual point, and the boundary."""
    ways = [
        Curve(name, (amount, _at(cells, "counterfactual_loan_amount", name)), (duration, _at(cells, _DURATION, name)))
        for name, (amount, duration) in zip(EXAMPLE_NAMES, APPLICANTS, strict=True)
    ]
    line = Curve("boundary", (0.0, 5.0), (0.0, 10.0))
    title = "Worked example: the way of each applicant to the boundary"
    return Drawing(
        "worked-example", "Figure 1", title, "loan amount (1,000 dollars)", "loan duration (years)", (*ways, line)
    )


_DURATION: Final = "counterfactual_loan_duration"


def ratio_by_blocks(cells: Mapping[Cell, Value]) -> Drawing:
    """Figure 2: the ratio of the whole list against the number of blocks, for each tolerance and list."""
    lines = {
        f"t = 1/{round(1 / t)}, {words}": [
            _at(cells, "overall_ratio", f"{listing}, blocks", t, n) for n in series.BLOCKS
        ]
        for listing, words in ((series.UNFAVOURABLE, "refused"), (series.ALL, "everybody"))
        for t in series.TOLERANCES
    }
    title = "Recourse ratio after RAGUEL-Block by number of blocks and tolerance"
    return Drawing("ratio-by-blocks", "Figure 2", title, "blocks", "recourse ratio", curves(series.BLOCKS, lines))


def block_shares(ranked: Ranked) -> Drawing:
    """Figure 3: the protected group's share of each block before and after, between what is allowed."""
    blocks, tolerance = FIGURE_3
    representation = ranked.held(tolerance)
    ended = series.in_blocks(ranked, representation, blocks)
    if ended.block is None or ended.block_before is None:
        raise ValueError("the list was not cut into blocks")
    share = float((ranked.records.group != ranked.reference).mean())
    protected = ranked.records.group != ranked.reference
    before, after = (
        (np.bincount(block, weights=protected) / np.bincount(block)).tolist()
        for block in (ended.block_before, ended.block)
    )
    lines = {
        "before": before,
        "after": after,
        "least allowed": [(1 - tolerance) * share] * len(before),
        "most allowed": [(1 + tolerance) * share] * len(before),
    }
    title = "Share of the protected group in each block before and after RAGUEL-Block, t = 1/5"
    return Drawing("block-shares", "Figure 3", title, "block", "share", curves(range(1, len(before) + 1), lines))


def by_records(cells: Mapping[Cell, Value], most: int) -> tuple[Drawing, Drawing]:
    """Figure 4: ratios, and ranking quality, against the number of records of the list."""
    lengths = series.lengths(most)
    after = series.ONE_BORDER
    of_ratios = {
        "initial, of the whole list": [_at(cells, "initial_ratio", "all", n) for n in lengths],
        "mean of the blocks": [_at(cells, "mean_block_ratio", after, n) for n in lengths],
        "of the whole list": [_at(cells, "overall_ratio_after", after, n) for n in lengths],
    }
    of_quality = {
        f"{words}, {name}": [_at(cells, f"{metric}_by_records", group, n) for n in lengths]
        for metric, words in (("rkl", "rKL"), ("rnd", "rND"), ("rrd", "rRD"))
        for group, name in ((series.BEFORE, "before"), (after, "after"))
    }
    title = "Drawn lists in blocks of 100, t = 1/3: "
    x = "records (logarithm to base 10)"
    places = np.log10(lengths).tolist()
    return (
        Drawing("ratio-by-records", "Figure 4", title + "recourse ratios", x, "ratio", curves(places, of_ratios)),
        Drawing("quality-by-records", "Figure 4", title + "ranking quality", x, "metric", curves(places, of_quality)),
    )


def _at(cells: Mapping[Cell, Value], quantity: str, group: str, *at: float) -> float:
    value = cells.get(Cell(quantity, group, tuple(map(float, at))))
    return value if isinstance(value, float) else float("nan")
