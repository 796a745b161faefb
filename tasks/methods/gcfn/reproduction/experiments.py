"""Declares the data sets of the GCFN paper and compares each with the paper.

Adult is left out: the paper prints no figure of it, only densities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from tasks.proof import published
from tasks.proof.experiments import Compared, Experiment, Paper
from tasks.proof.lines import Cell, Value

if TYPE_CHECKING:
    from tasks.counterfactuals.algorithm.gan.settings import GanSettings

FORMS: Final[Mapping[str, Literal["sigmoid", "sin"]]] = {"law-sigmoid": "sigmoid", "law-sin": "sin"}
"""The equation behind each set of drawn law students."""

LAW_SCHOOL: Final = Experiment("law-school-covariates.yaml", ("data/law_school/lsac_law_data_21791.csv.gz",))
EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "synthetic": Experiment(),
    **dict.fromkeys(FORMS, LAW_SCHOOL),
    "compas": Experiment("compas-race.yaml", ("data/compas/compas_two_years_no_names.csv.gz",)),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the GCFN paper, at its own size or at a smaller one, as training takes long."""

    name: ClassVar[str] = "gcfn"
    experiments: ClassVar[Mapping[str, Experiment]] = EXPERIMENTS

    networks: int = 10
    epochs: int = 300
    """On 10,000 rows. Law students are ten times as many and get a tenth of the epochs: the same number of steps."""
    seeds: int = 5
    """Runs over which means are taken."""

    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Runs the experiment on a data set and returns the paper's figures and what it does not print."""
        found = self._obtained(dataset, data)
        figures = list(published.figures(said, dataset))
        return [*figures, *published.beside(figures, found)], found

    def _obtained(self, dataset: str, data: Path) -> Mapping[Cell, Value]:
        if dataset == "synthetic":
            return self._synthetic()
        return self._law(dataset, data) if dataset in FORMS else self._compas(data)

    def _synthetic(self) -> Mapping[Cell, Value]:
        from tasks.ingest.synthetic.algorithm.mediated_lending import Synthetic, synthetic
        from tasks.methods.gcfn.reproduction import (  # torch takes seconds to import, and others need it not
            tradeoff,
            truth,
        )

        several = list(truth.runs(lambda rng: synthetic(Synthetic(), rng), self._size(), self.seeds))
        return {**truth.cells(several), **tradeoff.cells(several)}

    def _law(self, dataset: str, data: Path) -> Mapping[Cell, Value]:
        from tasks.ingest.synthetic.algorithm.mediated_lending import LawSchool, Synthetic, law_school
        from tasks.methods.gcfn.reproduction import people, truth

        students, settings = people.students(EXPERIMENTS[dataset].read(data)), LawSchool(FORMS[dataset])
        size = self._size(Synthetic().rows / settings.rows)
        return truth.cells(list(truth.runs(lambda rng: law_school(settings, students, rng), size, self.seeds)))

    def _compas(self, data: Path) -> Mapping[Cell, Value]:
        from tasks.methods.gcfn.reproduction import people, recidivism

        return recidivism.cells(people.defendants(EXPERIMENTS["compas"].read(data)), self._size(), self.seeds)

    def _size(self, share: float = 1.0) -> "GanSettings":
        """Training settings of this size; on the CPU, so that figures do not depend on the machine."""
        from tasks.counterfactuals.algorithm.gan.settings import GanSettings

        return GanSettings(networks=self.networks, epochs=max(1, round(self.epochs * share)), device="cpu")
