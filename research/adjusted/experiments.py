"""Declares the data sets of textbooks and of the ladder's golden values, and compares each with what is printed."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from research import figures as research_figures
from research.adjusted import textbooks
from research.figures import TEXAS_FILE, Cell, Compared, Experiment, Paper, Reproduced, Value, not_given

log = logging.getLogger("evenhand")

NO_FILE = f"no file {textbooks.DARFUR!r}, and the authors' package PySensemakr, which has it, is not installed"


@dataclass(frozen=True)
class Regressions(Experiment):
    """A data set on which our code fits regressions."""

    obtained: Callable[[Path], Iterable[tuple[Cell, Value]]] = lambda _: ()
    """Runs them on the data in the directory that ``--data`` gives."""


EXPERIMENTS: Mapping[str, Regressions] = {
    "loanapp": Regressions(obtained=lambda _: textbooks.cells()),
    "hmda": Regressions(sources=(textbooks.AER_HMDA,), obtained=textbooks.stock_watson_cells),
    "darfur": Regressions(obtained=textbooks.villages_cells),
    "boston": Regressions(obtained=lambda _: textbooks.ladder_cells()),
    "texas": Regressions(sources=(TEXAS_FILE,), obtained=textbooks.texas_cells),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The regressions of textbooks, and the ladder's golden values."""

    name: ClassVar[str] = "adjusted"
    experiments: ClassVar[Mapping[str, Regressions]] = EXPERIMENTS

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Fits the regressions of a data set."""
        log.info("%s: fit", dataset)
        return Compared(list(research_figures.figures(publication, dataset)), dict(EXPERIMENTS[dataset].obtained(data)))

    def run(self, dataset: str, data: Path) -> Reproduced:
        """Returns a line per figure; those of ``darfur`` are not judged where its file is not given."""
        if dataset == "darfur" and textbooks.darfur_file(data) is None:
            figures = research_figures.figures(research_figures.read(self.name), dataset)
            return not_given(dataset, figures, NO_FILE)
        return super().run(dataset, data)
