"""The data sets of the GCFN paper, the files that they need, and the order of the work on each.

Adult is left out: the paper prints no figure of it, only densities.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tasks.methods.gcfn.reproduction import printed
from tasks.proof import published
from tasks.proof.lines import Cell, Line, Value, compare
from tasks.proof.specs import paper_spec

if TYPE_CHECKING:
    from tasks.counterfactuals.algorithm.gan.settings import GanSettings

log = logging.getLogger("evenhand")

COMPAS, STUDENTS = "data/compas/compas_two_years_no_names.csv.gz", "data/law_school/lsac_law_data_21791.csv.gz"

FORMS: Final[Mapping[str, Literal["sigmoid", "sin"]]] = {"law-sigmoid": "sigmoid", "law-sin": "sin"}
"""The equation behind each set of drawn law students."""

SOURCES: Final[Mapping[str, str | None]] = {
    "synthetic": None,
    **dict.fromkeys(FORMS, STUDENTS),
    "compas": COMPAS,
}
"""The file of each data set; None: it is drawn from nothing."""


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments at its own size, or at a smaller one: training takes its time."""

    networks: int = 10
    epochs: int = 300
    """On 10,000 rows. Law students are ten times as many, and are seen a tenth as often: in as many steps."""
    seeds: int = 5
    """Runs over which means are taken."""

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        return tuple(SOURCES)

    def files(self, dataset: str, data: Path) -> Iterator[Path]:
        """The files that a data set needs."""
        source = SOURCES[dataset]
        if source:
            yield data / source

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper, and for what it does not print."""
        said, found = published.read("gcfn"), self._obtained(dataset, data)
        figures = list(printed.figures(said, dataset))
        figures += printed.beside(figures, found)
        return compare(dataset, figures, found, published.remarks(said, dataset))

    def _obtained(self, dataset: str, data: Path) -> Mapping[Cell, Value]:
        if dataset == "synthetic":
            return self._synthetic()
        return self._law(FORMS[dataset], data) if dataset in FORMS else self._compas(data)

    def _synthetic(self) -> Mapping[Cell, Value]:
        from tasks.ingest.synthetic.algorithm.mediated_lending import Synthetic, synthetic
        from tasks.methods.gcfn.reproduction import (  # torch takes seconds to import, and others need it not
            tradeoff,
            truth,
        )

        several = list(truth.runs(lambda rng: synthetic(Synthetic(), rng), self._size(), self.seeds))
        return {**truth.cells(several), **tradeoff.cells(several)}

    def _law(self, form: Literal["sigmoid", "sin"], data: Path) -> Mapping[Cell, Value]:
        from tasks.ingest.synthetic.algorithm.mediated_lending import LawSchool, Synthetic, law_school
        from tasks.methods.gcfn.reproduction import people, truth

        spec = paper_spec("law-school-covariates.yaml", {"source.path": str(data / STUDENTS)})
        students, settings = people.students(spec), LawSchool(form)
        size = self._size(Synthetic().rows / settings.rows)
        return truth.cells(list(truth.runs(lambda rng: law_school(settings, students, rng), size, self.seeds)))

    def _compas(self, data: Path) -> Mapping[Cell, Value]:
        from tasks.methods.gcfn.reproduction import people, recidivism

        spec = paper_spec("compas-race.yaml", {"source.path": str(data / COMPAS)})
        return recidivism.cells(people.defendants(spec), self._size(), self.seeds)

    def _size(self, share: float = 1.0) -> "GanSettings":
        """Always on the CPU, so that figures do not hang on the machine."""
        from tasks.counterfactuals.algorithm.gan.settings import GanSettings

        return GanSettings(networks=self.networks, epochs=max(1, round(self.epochs * share)), device="cpu")
