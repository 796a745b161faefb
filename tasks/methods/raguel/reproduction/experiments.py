"""The data sets of the RAGUEL paper, the files that they need, and the order of the work on each.

HMDA stands for lists that are drawn: which 25 million records of it the paper took samples of is not at hand.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.methods.raguel.reproduction import printed
from tasks.methods.raguel.reproduction.hmda_series import PUBLISHED_SIZES
from tasks.proof import published
from tasks.proof.lines import Cell, Figure, Line, Value, compare
from tasks.proof.specs import paper_spec

if TYPE_CHECKING:
    from tasks.methods.raguel.reproduction.lists import Judged

log = logging.getLogger("evenhand")

NOT_RUN = "not run"


@dataclass(frozen=True)
class Experiment:
    """One data set of people; its file is inside the directory that ``--data`` gives."""

    spec: str
    source: str


PEOPLE: Mapping[str, Experiment] = {
    "german": Experiment("german-credit-marital.yaml", "data/german_credit/german.data.gz"),
    "default-credit": Experiment("default-credit-marital.yaml", "data/default_credit_card/credit-card-clients.csv.gz"),
}
EXAMPLE, SERIES = "example", "hmda"


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments, or some of them: long lists take their time."""

    records: int = PUBLISHED_SIZES[-1]
    """Of the longest list that is drawn."""
    trials: int = 10
    """Lists drawn of each length, as in the paper."""

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        return (EXAMPLE, *PEOPLE, SERIES)

    def files(self, dataset: str, data: Path) -> Iterator[Path]:
        """The files that a data set needs."""
        if dataset in PEOPLE:
            yield data / PEOPLE[dataset].source

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper, for what is asked of the default, and for what is told beside them."""
        said = published.read("raguel")
        asked, found = self._obtained(dataset, data)
        figures = [figure for figure in printed.figures(said, dataset) if self._reached(dataset, figure)]
        for figure in figures:
            found.setdefault(figure.cell, NOT_RUN)
        figures += asked
        told = (cell for cell in found if cell.quantity != "blocks_made_fair")  # which "unfair_blocks" tells as well
        figures += printed.beside(figures, told)
        return compare(dataset, figures, found, published.remarks(said, dataset))

    def _reached(self, dataset: str, figure: Figure) -> bool:
        """Whether a figure is about a list that is not too long to be drawn here."""
        return dataset != SERIES or not figure.cell.at or float(figure.cell.at[0]) <= self.records

    def _obtained(self, dataset: str, data: Path) -> tuple[list[Figure], dict[Cell, Value]]:
        """What is asked, and all that our code fills."""
        if dataset == EXAMPLE:
            from tasks.methods.raguel.reproduction import example

            return [], dict(example.cells())
        if dataset == SERIES:
            from tasks.methods.raguel.reproduction import series

            return list(series.figures(self.records)), dict(series.cells(self.records, self.trials))
        return _of_people(judged(PEOPLE[dataset], data))


def judged(experiment: Experiment, data: Path, **overrides: str) -> "Judged":
    """The people of a data set before a classifier; other keys of the spec than its path may be overridden."""
    from tasks.methods.raguel.reproduction import lists, people

    keys = {name.replace("__", "."): value for name, value in overrides.items()}
    spec = paper_spec(experiment.spec, {"source.path": str(data / experiment.source), **keys})
    found = lists.judge(people.read(spec))
    log.info("%s: %d people, %d attributes", experiment.spec, *found.values.shape)
    return found


def _of_people(found: "Judged") -> tuple[list[Figure], dict[Cell, Value]]:
    from tasks.methods.raguel.reproduction import grid, lists, obtained

    laws = [law for who in lists.LISTS for law in grid.never_lower(lists.ranked(found, who), who)]
    told = obtained.cells(found)
    return [figure for figure, _ in laws], {**told, **{figure.cell: value for figure, value in laws}}
