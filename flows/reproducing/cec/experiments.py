"""The data sets of the CEC paper, the files that they need, and the order of the work on each.

The baselines of Table 2 are shown and not run: what the paper prints of them is not aimed at. HMDA 2024 is left out,
for its file is not at hand.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flows.reproducing import published
from flows.reproducing.cec import printed
from flows.reproducing.lines import Cell, Line, Value, compare
from flows.reproducing.specs import paper_spec

log = logging.getLogger("evenhand")

NOT_RUN = "not run"
BASELINES = ("Hardt", "Agarwal", "adversarial")
ONE_HOT = ", one-hot"
"""Follows the name of a model whose categories are one-hot columns."""

_OWN = (printed.UNCONSTRAINED, printed.CEC_MODEL)
MODELS = (*_OWN, *(name + ONE_HOT for name in _OWN))
"""Those beside whom more is told than the paper prints."""


@dataclass(frozen=True)
class Experiment:
    """One data set; its files are inside the directory that ``--data`` gives."""

    spec: str | None
    """None: it is drawn."""
    sources: tuple[str, ...] = ()
    whole: bool = False
    """Whether Table 4 is about it, and the inputs are tried as one-hot columns, too."""


EXPERIMENTS: Mapping[str, Experiment] = {
    "german": Experiment("german-credit-gender.yaml", ("data/german_credit/german.data.gz",), whole=True),
    "adult": Experiment("adult-gender.yaml", ("data/adult/adult.data.gz", "data/adult/adult.test.gz")),
    "synthetic": Experiment(None),
}


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments on some of its five folds: training takes its time."""

    folds: int = 1

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        return tuple(EXPERIMENTS)

    def files(self, dataset: str, data: Path) -> Iterator[Path]:
        """The files that a data set needs."""
        yield from (data / source for source in EXPERIMENTS[dataset].sources)

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper, and for what it does not print."""
        said, found = published.read("cec"), self._obtained(EXPERIMENTS[dataset], data)
        figures = list(printed.figures(said, dataset))
        models = [name for name in MODELS if Cell("cec", name) in found]
        found |= {figure.cell: NOT_RUN for figure in figures if figure.cell.group in BASELINES}
        figures += printed.beside(models, figures)
        return compare(dataset, figures, found, published.remarks(said, dataset))

    def _obtained(self, experiment: Experiment, data: Path) -> dict[Cell, Value]:
        from flows.reproducing.cec import lending, obtained  # torch takes seconds to import, and others need it not
        from tasks.algorithms.synthetic_lending import SyntheticLending

        if experiment.spec is None:
            rows = lending.drawn(SyntheticLending(), obtained.SETTINGS.seed)
            return dict(obtained.cells(obtained.outcomes(rows, obtained.variants(whole=False), self.folds)))
        paths = json.dumps([str(data / source) for source in experiment.sources])
        rows, columns = lending.of_spec(paper_spec(experiment.spec, {"source.path": paths}))
        log.info("%s: %d rows, %d inputs", experiment.spec, *rows.population.features.shape)
        found = dict(obtained.cells(obtained.outcomes(rows, obtained.variants(experiment.whole), self.folds)))
        if experiment.whole:
            again = obtained.outcomes(lending.one_hot(rows, columns), obtained.variants(whole=False), self.folds)
            found |= obtained.cells(again, ONE_HOT)
        return found
