"""The data sets of the CEC paper, the files that they need, and the order of the work on each.

The baselines of Table 2 are run where it takes minutes, and are shown without a verdict: what the paper prints of them
is not aimed at. HMDA 2024 is left out, for its file is not at hand.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.methods.cec.reproduction import printed
from tasks.proof import published
from tasks.proof.lines import Cell, Line, Value, compare
from tasks.proof.specs import paper_spec

if TYPE_CHECKING:
    from tasks.methods.cec.algorithm.training.held_out import Lending
    from tasks.numerics.columns import Columns

log = logging.getLogger("evenhand")

NOT_RUN = "not run"
BASELINES = ("Hardt", "Agarwal", "Lagrangian", "adversarial", "DIR")
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
    baselines: tuple[str, ...] = BASELINES
    """Those that are run; reductions train up to fifty nets."""


EXPERIMENTS: Mapping[str, Experiment] = {
    "german": Experiment("german-credit-gender.yaml", ("data/german_credit/german.data.gz",), whole=True),
    "adult": Experiment(
        "adult-gender.yaml",
        ("data/adult/adult.data.gz", "data/adult/adult.test.gz"),
        baselines=("Hardt", "adversarial", "DIR"),
    ),
    "synthetic": Experiment(None),
}


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments on some of its five folds: training takes its time."""

    folds: int = 1
    baselines: bool = True
    """Whether the paper's baselines are run, too."""

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
        figures += printed.beside((*MODELS, *BASELINES), figures, found)
        for figure in figures:
            if figure.cell.group in BASELINES:
                found.setdefault(figure.cell, NOT_RUN)
        return compare(dataset, figures, found, published.remarks(said, dataset))

    def _obtained(self, experiment: Experiment, data: Path) -> dict[Cell, Value]:
        # torch takes seconds to import, and others need it not
        from tasks.methods.cec.reproduction import baselines, lending, obtained

        rows, columns = _read(experiment, data)
        found = dict(obtained.cells(obtained.outcomes(rows, obtained.variants(experiment.whole), self.folds)))
        if columns and experiment.whole:
            again = obtained.outcomes(lending.one_hot(rows, columns), obtained.variants(whole=False), self.folds)
            found |= obtained.cells(again, ONE_HOT)
        if self.baselines:
            found |= baselines.cells(rows, experiment.baselines, self.folds)
        return found


def _read(experiment: Experiment, data: Path) -> "tuple[Lending, Columns | None]":
    """The rows, and the columns that were handed in unless they are drawn."""
    from tasks.ingest.synthetic.algorithm.consistent_lending import SyntheticLending
    from tasks.methods.cec.reproduction import lending, obtained

    if experiment.spec is None:
        return lending.drawn(SyntheticLending(), obtained.SETTINGS.seed), None
    paths = json.dumps([str(data / source) for source in experiment.sources])
    rows, columns = lending.of_spec(paper_spec(experiment.spec, {"source.path": paths}))
    log.info("%s: %d rows, %d inputs", experiment.spec, *rows.population.features.shape)
    return rows, columns
