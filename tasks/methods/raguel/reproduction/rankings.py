"""Orders of a list by the fair rankings that the paper compares itself with, and their quality (Table 5).

The paper ranks whole lists by RAGUEL, samples of 400 by FA*IR and samples of 50 by FoEiR. Ranking quality depends on
the length: a random order scores higher in short lists. So the initial order stands three times: of the whole list, and
of the same samples.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from tasks.baselines.algorithm.rankings.foeir import exposure
from tasks.baselines.algorithm.rankings.kind import Listed, Orders
from tasks.baselines.algorithm.rankings.registry import RANKINGS
from tasks.methods.raguel.algorithm.ranking.quality import quality
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.reproduction.lists import Ranked
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import ASKED

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
            yield from _sampled(samples, source)


def laws(found: Mapping[Cell, Value], source: str) -> Iterator[Figure]:
    """Yields what is asked of a list: RAGUEL does not raise rND, FoEiR-DP gives equal exposure and lowers rND."""
    initial = found[Cell("rnd", source, (INITIAL,))]
    yield Figure(ASKED, False, Cell("rnd", source, (RAGUEL,)), initial, RAISED, at_most=True)
    for quantity, limit in (("exposure_difference", EQUAL), ("refused_lists", 0.0)):
        for name in FOEIR:
            cell = Cell(quantity, source, (name,))
            if cell in found and (quantity == "refused_lists" or name == "FoEiR-DP"):
                yield Figure(ASKED, False, cell, limit, 0.0, at_most=True)
    paired = Cell("rnd_paired_95_upper", source, (PAIRED,))
    if paired in found and source == JUDGED:
        yield Figure(ASKED, False, paired, 0.0, 0.0, at_most=True)


def samples_of(samples: Samples, rng: np.random.Generator) -> Iterator[Longs]:
    """Yields records ``(size,)`` of each sample; one with fewer than two of a group is drawn again."""
    group = samples.ranked.records.group
    while np.bincount(group, minlength=2).min() < LEAST_OF_GROUP:
        return
    drawn = 0
    while drawn < samples.trials:
        chosen = np.sort(rng.choice(len(group), samples.size, replace=False))
        if np.bincount(group[chosen], minlength=2).min() >= LEAST_OF_GROUP:
            drawn += 1
            yield chosen


def _sampled(samples: Samples, source: str) -> Iterator[tuple[Cell, Value]]:
    rng = np.random.default_rng(samples.size)
    protected = samples.ranked.records.group != samples.ranked.reference
    share, scores = float(protected.mean()), _Scores(samples)
    for chosen in samples_of(samples, rng):
        listed = Listed(samples.ranked.records.cost[chosen], protected[chosen], share)
        scores.add(samples.initial, listed, RANKINGS["initial"](listed), rng)
        for name, system in samples.systems.items():
            scores.add(name, listed, RANKINGS[system](listed), rng)
    yield from scores.cells(source)


class _Scores:
    """Quality of orders of samples, by name of the order."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.found: dict[str, list[dict[Metric, float]]] = {}
        self.apart: dict[str, list[float]] = {}
        self.refused: dict[str, int] = {}

    def add(self, name: str, listed: Listed, orders: Orders, rng: np.random.Generator) -> None:
        """Draws an order and keeps its quality, and by how much expected exposure differs between the groups."""
        self.refused.setdefault(name, 0)
        if orders.reason:
            self.refused[name] += 1
            return
        self.found.setdefault(name, []).append(_metrics(listed.protected[orders.drawn(rng)]))
        self.apart.setdefault(name, []).append(abs(_exposed(listed, orders)))

    def cells(self, source: str) -> Iterator[tuple[Cell, Value]]:
        for name, scores in self.found.items():
            for metric in METRICS:
                yield Cell(metric, source, (name,)), float(np.mean([each[metric] for each in scores]))
        for name in FOEIR:
            if name in self.found:
                yield Cell("exposure_difference", source, (name,)), max(self.apart[name])
                yield Cell("refused_lists", source, (name,)), float(self.refused[name])
        if "FoEiR-DP" in self.found and not self.refused["FoEiR-DP"]:
            yield from self._paired(source)

    def _paired(self, source: str) -> Iterator[tuple[Cell, Value]]:
        fair, before = (self._rnd(name) for name in ("FoEiR-DP", self.samples.initial))
        less = fair - before
        error = float(less.std(ddof=1) / np.sqrt(len(less))) if len(less) > 1 else np.inf
        yield Cell("rnd_paired", source, (PAIRED,)), float(less.mean())
        yield Cell("rnd_paired_95_upper", source, (PAIRED,)), float(less.mean()) + NORMAL_95 * error

    def _rnd(self, name: str) -> Floats:
        return np.array([each["rnd"] for each in self.found[name]])


def _exposed(listed: Listed, orders: Orders) -> float:
    """What the protected group has more of expected exposure than the other, on average."""
    seen, total = exposure(len(listed.cost)), 0.0
    for order, weight in zip(orders.order, orders.weight, strict=True):
        protected = listed.protected[order]
        total += float(weight) * float(seen[protected].mean() - seen[~protected].mean())
    return total


def _metrics(protected: Bools) -> dict[Metric, float]:
    """The metrics of an order; rRD is of the group that is the minority of the list, as the paper defines it."""
    minority = protected if 2 * protected.sum() <= len(protected) else ~protected
    found = quality(minority)
    return {metric: float(getattr(found, metric)) for metric in METRICS}
