"""Declares the data sets of textbooks and of the ladder's golden values, and compares each with what is printed."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tasks.methods.adjusted.reproduction import ladder, loanapp, samples, stock_watson, texas, villages
from tasks.proof import published
from tasks.proof.experiments import Compared, Experiment, Paper, Reproduced
from tasks.proof.lines import Cell, Line, Value, Verdict
from tasks.proof.specs import TEXAS_FILE

log = logging.getLogger("evenhand")

NO_FILE = f"no file {samples.DARFUR!r}: it comes with the authors' package, not with evenhand"


@dataclass(frozen=True)
class Regressions(Experiment):
    """A data set on which our code fits regressions."""

    obtained: Callable[[Path], Iterable[tuple[Cell, Value]]] = lambda _: ()
    """Runs them on the data in the directory that ``--data`` gives."""


EXPERIMENTS: Mapping[str, Regressions] = {
    "loanapp": Regressions(obtained=lambda _: loanapp.cells()),
    "hmda": Regressions(sources=(samples.AER_HMDA,), obtained=stock_watson.cells),
    "darfur": Regressions(obtained=villages.cells),
    "boston": Regressions(obtained=lambda _: ladder.cells()),
    "texas": Regressions(sources=(TEXAS_FILE,), obtained=texas.cells),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The regressions of textbooks, and the ladder's golden values."""

    name: ClassVar[str] = "adjusted"
    experiments: ClassVar[Mapping[str, Regressions]] = EXPERIMENTS

    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Fits the regressions of a data set."""
        log.info("%s: fit", dataset)
        return Compared(list(published.figures(said, dataset)), dict(EXPERIMENTS[dataset].obtained(data)))

    def run(self, dataset: str, data: Path) -> Reproduced:
        """Returns a line per figure; those of ``darfur`` are not judged where its file is not given."""
        if dataset == "darfur" and not (data / samples.DARFUR).is_file():
            figures = published.figures(published.read(self.name), dataset)
            return Reproduced([Line(dataset, figure, None, Verdict.INFORMATION, NO_FILE) for figure in figures], ())
        return super().run(dataset, data)
