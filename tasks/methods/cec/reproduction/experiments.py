"""Declares the data sets of the CEC paper and compares each with the paper.

The baselines of Table 2 are run where it takes minutes, and are shown without a verdict: the reproduction does not aim
at what the paper prints of them. HMDA 2024 is left out, as its file is not available.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tasks.methods.cec.reproduction.printed import BASELINES, CEC_MODEL, QUANTITIES, UNCONSTRAINED, UNPRINTED
from tasks.proof import published
from tasks.proof.experiments import Compared, Experiment, Paper
from tasks.proof.lines import Cell, Value
from tasks.proof.published import NOT_RUN

if TYPE_CHECKING:
    from tasks.methods.cec.algorithm.training.held_out import Lending
    from tasks.numerics.columns import Columns

log = logging.getLogger("evenhand")

ONE_HOT = ", one-hot"
"""Follows the name of a model whose categories are one-hot columns."""

_OWN = (UNCONSTRAINED, CEC_MODEL)
MODELS = (*_OWN, *(name + ONE_HOT for name in _OWN))
"""Models beside which more is shown than the paper prints."""


@dataclass(frozen=True)
class Trained(Experiment):
    """A data set on which nets are trained; without a spec its rows are drawn."""

    whole: bool = False
    """Whether Table 4 is about it, and nets are trained on one-hot columns as well."""
    baselines: tuple[str, ...] = BASELINES
    """Baselines that are run; reductions train up to fifty nets."""


EXPERIMENTS: Mapping[str, Trained] = {
    "german": Trained("german-credit-gender.yaml", ("data/german_credit/german.data.gz",), whole=True),
    "adult": Trained(
        "adult-gender.yaml",
        ("data/adult/adult.data.gz", "data/adult/adult.test.gz"),
        baselines=("Hardt", "adversarial", "DIR"),
    ),
    "synthetic": Trained(),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the CEC paper on some of its five folds, as training takes long."""

    name: ClassVar[str] = "cec"
    experiments: ClassVar[Mapping[str, Trained]] = EXPERIMENTS

    folds: int = 1
    baselines: bool = True
    """Whether the paper's baselines are run as well."""

    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Trains the models on a data set and returns the paper's figures and what it does not print."""
        found = self._obtained(EXPERIMENTS[dataset], data)
        figures = list(published.figures(said, dataset))
        told = (Cell(name, model) for model in (*MODELS, *BASELINES) for name in (*QUANTITIES, *UNPRINTED))
        figures += published.beside(figures, [cell for cell in told if cell in found])
        for figure in figures:
            if figure.cell.group in BASELINES:
                found.setdefault(figure.cell, NOT_RUN)
        return figures, found

    def _obtained(self, experiment: Trained, data: Path) -> dict[Cell, Value]:
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


def _read(experiment: Trained, data: Path) -> "tuple[Lending, Columns | None]":
    """The rows, and the columns that were read unless rows are drawn."""
    from tasks.ingest.synthetic.algorithm.consistent_lending import SyntheticLending
    from tasks.methods.cec.reproduction import lending, obtained

    if experiment.spec is None:
        return lending.drawn(SyntheticLending(), obtained.SETTINGS.seed), None
    rows, columns = lending.of_spec(experiment.read(data))
    log.info("%s: %d rows, %d inputs", experiment.spec, *rows.population.features.shape)
    return rows, columns
