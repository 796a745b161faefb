"""Declares the data sets of the RAGUEL paper and compares each with the paper.

HMDA stands for lists that are drawn: the paper does not say which of its 25 million records it sampled.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tasks.methods.raguel.reproduction.hmda_series import PUBLISHED_SIZES
from tasks.proof import published
from tasks.proof.experiments import Compared, Experiment, Paper
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import NOT_RUN

if TYPE_CHECKING:
    from tasks.methods.raguel.reproduction.lists import Judged

log = logging.getLogger("evenhand")

PEOPLE: Mapping[str, Experiment] = {
    "german": Experiment("german-credit-marital.yaml", ("data/german_credit/german.data.gz",)),
    "default-credit": Experiment(
        "default-credit-marital.yaml", ("data/default_credit_card/credit-card-clients.csv.gz",)
    ),
}
EXAMPLE, SERIES = "example", "hmda"


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the RAGUEL paper, or some of them, as long lists take long."""

    name: ClassVar[str] = "raguel"
    experiments: ClassVar[Mapping[str, Experiment]] = {EXAMPLE: Experiment(), **PEOPLE, SERIES: Experiment()}

    records: int = PUBLISHED_SIZES[-1]
    """Records of the longest list that is drawn."""
    trials: int = 10
    """Lists drawn of each length, as in the paper."""

    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Runs a data set and returns figures of the paper, requirements on the default, and what is shown beside."""
        asked, found = self._obtained(dataset, data)
        figures = [figure for figure in published.figures(said, dataset) if self._reached(dataset, figure)]
        for figure in figures:
            found.setdefault(figure.cell, NOT_RUN)
        figures += asked
        told = (cell for cell in found if cell.quantity != "blocks_made_fair")  # which "unfair_blocks" tells as well
        return [*figures, *published.beside(figures, told)], found

    def _reached(self, dataset: str, figure: Figure) -> bool:
        """Whether a figure is about a list that is not too long to be drawn here."""
        return dataset != SERIES or not figure.cell.at or float(figure.cell.at[0]) <= self.records

    def _obtained(self, dataset: str, data: Path) -> tuple[list[Figure], dict[Cell, Value]]:
        """The requirements, and all cells that our code fills."""
        if dataset == EXAMPLE:
            from tasks.methods.raguel.reproduction import example

            return [], dict(example.cells())
        if dataset == SERIES:
            from tasks.methods.raguel.reproduction import series

            return list(series.figures(self.records)), dict(series.cells(self.records, self.trials))
        return _of_people(judged(PEOPLE[dataset], data))


def judged(experiment: Experiment, data: Path, **overrides: str) -> "Judged":
    """Reads the people of a data set and fits the classifier; other keys of the spec may be overridden."""
    from tasks.methods.raguel.reproduction import lists, people

    found = lists.judge(people.read(experiment.read(data, **overrides)))
    log.info("%s: %d people, %d attributes", experiment.spec, *found.values.shape)
    return found


def _of_people(found: "Judged") -> tuple[list[Figure], dict[Cell, Value]]:
    from tasks.methods.raguel.reproduction import grid, lists, obtained

    laws = [law for who in lists.LISTS for law in grid.never_lower(lists.ranked(found, who), who)]
    told = obtained.cells(found)
    return [figure for figure, _ in laws], {**told, **{figure.cell: value for figure, value in laws}}
