"""Declares the data sets of the RAGUEL paper and compares each with the paper.

HMDA stands for lists that are drawn: the paper does not say which of its 25 million records it sampled.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from research import figures as research_figures
from research.figures import NOT_RUN, Cell, Compared, Drawing, Experiment, Figure, Paper, Value
from research.raguel.series import PUBLISHED_SIZES

if TYPE_CHECKING:
    from research.raguel.series import Judged

log = logging.getLogger("evenhand")

PEOPLE: Mapping[str, Experiment] = {
    "german": Experiment("german-credit-marital.yaml", ("data/german_credit/german.data.gz",)),
    "default-credit": Experiment(
        "default-credit-marital.yaml", ("data/default_credit_card/credit-card-clients.csv.gz",)
    ),
}
EXAMPLE, SERIES = "example", "hmda"
BASELINES = ("thresholds", "fair_star", "foeir", "ar", "mace")
"""What the paper compares itself with: fairlearn's thresholds by group, fair rankings, and counterfactual sources."""

TOLD_OTHERWISE = frozenset({"blocks_made_fair"})
"""What ``unfair_blocks`` has as well."""

Obtained = tuple[dict[Cell, Value], list[Figure], tuple[Drawing, ...]]
"""Cells, requirements on them, and drawings."""


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the RAGUEL paper, or some of them, as long lists take long."""

    name: ClassVar[str] = "raguel"
    experiments: ClassVar[Mapping[str, Experiment]] = {EXAMPLE: Experiment(), **PEOPLE, SERIES: Experiment()}
    quick: ClassVar[Mapping[str, Any]] = {"records": 100_000, "trials": 2}
    known_baselines: ClassVar[tuple[str, ...]] = BASELINES

    records: int = PUBLISHED_SIZES[-1]
    """Records of the longest list that is drawn."""
    trials: int = 10
    """Lists drawn of each length, as in the paper."""
    samples: int = 50
    """Samples of a list that FA*IR and FoEiR rank, as in the paper."""
    baseline: tuple[str, ...] | None = None
    """Baselines that are run; all if None."""

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Runs a data set and returns figures of the paper, requirements on the default, and cells next to both."""
        figures = list(research_figures.figures(publication, dataset))
        cells, expected, drawings = self._obtained(dataset, data)
        not_run = f"{NOT_RUN}: the baseline was not asked for"
        if dataset == SERIES:
            not_run = f"{NOT_RUN}: lists are drawn up to {self.records:,} records"
        for figure in figures:
            cells.setdefault(figure.cell, not_run)
        figures += expected
        quantities = (cell for cell in cells if cell.quantity not in TOLD_OTHERWISE)
        return Compared([*figures, *research_figures.beside(figures, quantities)], cells, drawings)

    def _obtained(self, dataset: str, data: Path) -> Obtained:
        """All cells that our code fills, the requirements on them, and drawings."""
        from research.raguel import cells, series

        if dataset == EXAMPLE:
            values = dict(cells.example_cells())
            return values, [], (cells.worked_example(values),)
        if dataset == SERIES:
            values = dict(series.cells(self.records, self.trials))
            expected = [*series.figures(self.records), *series.falling(values, self.records)]
            return values, expected, cells.by_records(values, self.records)
        return _of_people(dataset, judged(PEOPLE[dataset], data), self.baseline, self.samples)


def judged(experiment: Experiment, data: Path, **overrides: str) -> "Judged":
    """Reads the people of a data set and fits the classifier; other keys of the spec may be overridden."""
    from research.raguel import series

    decisions = series.judge(series.read(experiment.read(data, **overrides)))
    log.info("%s: %d people, %d attributes", experiment.spec, *decisions.values.shape)
    return decisions


def _of_people(dataset: str, decisions: "Judged", baseline: tuple[str, ...] | None, samples: int) -> Obtained:
    from research.raguel import cells, series

    ranked = {listing: series.ranked(decisions, listing) for listing in series.LISTS}
    laws = [law for listing in series.LISTS for law in series.never_lower(ranked[listing], listing)]
    baselines = cells.BaselineRuns(frozenset(BASELINES if baseline is None else baseline), samples)
    values = {**cells.obtained_cells(decisions, baselines), **{figure.cell: value for figure, value in laws}}
    expected = [figure for figure, _ in laws] + list(cells.obtained_laws(values, baselines, dataset))
    drawings = [cells.ratio_by_blocks(values)]
    if dataset == "default-credit":
        drawings.append(cells.block_shares(ranked[series.ALL]))
        ratios = series.tried_ratios(decisions.people)
        nearest = min(ratios, key=lambda ratio: abs(ratio - series.PRINTED_RATIO))
        values[Cell("initial_ratio_nearest", f"of {len(ratios)} combinations tried")] = nearest
    return values, expected, tuple(drawings)
