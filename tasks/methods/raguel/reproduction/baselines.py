"""Runs the baselines that the paper compares its re-ranking with, as far as fairlearn or our own code has them.

Demographic parity and equalised odds are fairlearn's ThresholdOptimizer on the same classifier: thresholds of each
group, between which decisions are drawn. The list is then of those still refused, at the costs of the classifier as
it was. FA*IR moves protected records up and modifies nobody. FoEiR has no package and is not run.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from tasks.methods.raguel.algorithm.ranking import ratios
from tasks.methods.raguel.algorithm.ranking.fair_top import fair_top
from tasks.methods.raguel.reproduction import lists
from tasks.methods.raguel.reproduction.lists import Judged, Ranked
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.proof.lines import Cell, Value

CONSTRAINTS: Final[Mapping[str, str]] = {
    "demographic parity": "demographic_parity",
    "equalised odds (false negative)": "false_negative_rate_parity",
    "equalised odds (false positive)": "false_positive_rate_parity",
    "equalised odds (weighted)": "equalized_odds",
}
"""The paper's rows, and the constraint of fairlearn that is next to each; a "weighted" one it has not."""

FA_IR, BEGINNING = "FA*IR", "initial, first 400"
TOP: Final = 400
"""Ranks that FA*IR decides on, as in the paper; costs are means of the records at these."""
SEED: Final = 0


def cells(judged: Judged, ranked: Ranked) -> Iterator[tuple[Cell, Value]]:
    """Yields points changed and costs by group, and the ratio, of every baseline (Table 3).

    Args:
        judged: Everybody.
        ranked: The list of those whom the classifier refuses.
    """
    for name, constraint in CONSTRAINTS.items():
        refused = _refused(judged, constraint)
        changed = np.bincount(judged.people.group[refused == judged.favourable], minlength=2)
        records = lists.ranked(judged, lists.UNFAVOURABLE, refused).records
        yield from rows(judged, name, changed, records.cost, records.group)
    before, after = ranked.records.ranked(), fair_order(ranked)
    for name, order in ((BEGINNING, before), (FA_IR, after)):
        first = order[:TOP]
        changed = np.bincount(ranked.records.group[np.setdiff1d(first, before[:TOP])], minlength=2)
        yield from rows(judged, name, changed, ranked.records.cost[first], ranked.records.group[first])


def rows(judged: Judged, name: str, changed: Longs, cost: Floats, group: Ints) -> Iterator[tuple[Cell, Value]]:
    """Yields the cells of a method: by group, and of both together."""
    means = ratios.group_means(cost, group, 2)
    for number, each in enumerate(judged.people.groups):
        yield Cell("points_changed", each, (name,)), float(changed[number])
        yield Cell("recourse_cost", each, (name,)), float(means[number])
    yield Cell("ratio", "both", (name,)), ratios.overall(cost, group)


def fair_order(ranked: Ranked) -> Longs:
    """Ranks the list ``(r,)`` by FA*IR; its first 400 are tested at the protected group's share of it."""
    protected: Bools = ranked.records.group != ranked.reference
    return fair_top(ranked.records.cost, protected, float(protected.mean()), top=TOP)


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
