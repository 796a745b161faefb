"""Runs the baselines of the paper's Table 3 on the list of those refused.

Demographic parity and equalised odds are fairlearn's ThresholdOptimizer on the same classifier: thresholds of each
group, between which decisions are drawn. The list is then of those still refused, at the costs of the classifier as
it was. FA*IR moves protected records up and FoEiR draws an order of equal exposure; neither modifies anybody.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from tasks.baselines.algorithm.rankings.fair_star import fair_star
from tasks.baselines.algorithm.rankings.foeir import parity
from tasks.baselines.algorithm.rankings.kind import Listed
from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.reproduction import lists, rankings
from tasks.methods.raguel.reproduction.lists import Judged, Ranked
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.proof.lines import Cell, Value

CONSTRAINTS: Final[Mapping[str, str]] = {
    "demographic parity": "demographic_parity",
    "equalised odds (false negative)": "false_negative_rate_parity",
    "equalised odds (false positive)": "false_positive_rate_parity",
    "equalised odds (weighted)": "equalized_odds",
}
"""The paper's rows and the constraint of fairlearn. "Weighted" is the paper's word for both error rates at once."""

FA_IR, BEGINNING, FOEIR = rankings.FA_IR, "initial, first 400", "FoEiR-DP"
TOP: Final = rankings.LONG
"""Ranks that FA*IR decides on, as in the paper; costs are means of the records at these."""
SEED: Final = 0


def cells(judged: Judged, ranked: Ranked, names: frozenset[str], trials: int) -> Iterator[tuple[Cell, Value]]:
    """Yields points changed and costs by group, and the ratio, of every baseline (Table 3).

    Args:
        judged: Everybody.
        ranked: The list of those whom the classifier refuses.
        names: Of the baselines that are run.
        trials: Samples of 50 that FoEiR ranks.
    """
    for name, constraint in CONSTRAINTS.items() if "thresholds" in names else ():
        refused = _refused(judged, constraint)
        changed = np.bincount(judged.people.group[refused == judged.favourable], minlength=2)
        records = lists.ranked(judged, lists.UNFAVOURABLE, refused).records
        yield from rows(judged, name, changed, records.cost, records.group)
    if "fair_star" in names:
        yield from _of_fair_star(judged, ranked)
    if "foeir" in names:
        yield from _of_foeir(judged, ranked, trials)


def _of_fair_star(judged: Judged, ranked: Ranked) -> Iterator[tuple[Cell, Value]]:
    before, after = ranked.records.ranked(), fair_order(ranked)
    for name, order in ((BEGINNING, before), (FA_IR, after)):
        first = order[:TOP]
        changed = np.bincount(ranked.records.group[np.setdiff1d(first, before[:TOP])], minlength=2)
        yield from rows(judged, name, changed, ranked.records.cost[first], ranked.records.group[first])


def _of_foeir(judged: Judged, ranked: Ranked, trials: int) -> Iterator[tuple[Cell, Value]]:
    """Means over samples of 50. Points changed are those with another rank: FoEiR changes nobody's cost."""
    rng, group, cost = np.random.default_rng(SEED), ranked.records.group, ranked.records.cost
    found: dict[Cell, list[float]] = {}
    for chosen in rankings.samples_of(rankings.Samples(ranked, rankings.SHORT, trials, {}), rng):
        listed = Listed.of(cost[chosen], group[chosen] != ranked.reference)
        ended = parity(listed).drawn(rng)
        changed = np.bincount(group[chosen][ended[ended != listed.by_cost]], minlength=2)
        for cell, value in rows(judged, FOEIR, changed, cost[chosen], group[chosen]):
            found.setdefault(cell, []).append(value)
    yield from ((cell, float(np.mean(values))) for cell, values in found.items())


def rows(judged: Judged, name: str, changed: Longs, cost: Floats, group: Ints) -> Iterator[tuple[Cell, float]]:
    """Yields the cells of a method: by group, and of both together."""
    means = ratios.group_means(cost, group, 2)
    for number, each in enumerate(judged.people.groups):
        yield Cell("points_changed", each, (name,)), float(changed[number])
        yield Cell("recourse_cost", each, (name,)), float(means[number])
    yield Cell("ratio", "both", (name,)), ratios.overall(cost, group)


def fair_order(ranked: Ranked) -> Longs:
    """Ranks the list ``(r,)`` by FA*IR; its first 400 are tested at the protected group's share of it."""
    listed = Listed.of(ranked.records.cost, ranked.records.group != ranked.reference)
    found: Longs = fair_star(listed, top=TOP).order[0]
    return found


def _refused(judged: Judged, constraint: str) -> Bools:
    """``(n,)`` whom thresholds by group refuse."""
    from fairlearn.postprocessing import ThresholdOptimizer  # takes a second to import

    model = ThresholdOptimizer(
        estimator=judged.model, constraints=constraint, predict_method="predict_proba", prefit=True
    )
    label, group = judged.people.favourable.astype(np.int64), judged.people.group
    model.fit(judged.values, label, sensitive_features=group)
    predicted = model.predict(judged.values, sensitive_features=group, random_state=SEED)
    refused: Bools = np.asarray(predicted) == 0
    return refused
