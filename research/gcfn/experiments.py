"""Declares the data sets of the GCFN paper and compares each with the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from research import figures as research_figures
from research.figures import Cell, Compared, Drawing, Experiment, Paper, Spread, Value
from research.gcfn.truth import TITLES

if TYPE_CHECKING:
    import numpy as np

    from tasks.counterfactuals.algorithm.gan.networks import GanSettings
    from tasks.ingest.synthetic.algorithm.lending import MediatedRows

FORMS: Final[Mapping[str, Literal["sigmoid", "sin"]]] = {"law-sigmoid": "sigmoid", "law-sin": "sin"}
"""The equation behind each set of drawn law students."""

MEANS: Final = {"law-sigmoid": "Figure 12", "law-sin": "Figure 13"}
"""The paper's figure of the mean utility."""

Obtained = tuple[dict[Cell, Value], tuple[Drawing, ...], Mapping[Cell, Spread]]
"""Cells and drawings of a data set, and the spread of cells over runs."""

LAW_SCHOOL: Final = Experiment("law-school-covariates.yaml", ("data/law_school/lsac_law_data_21791.csv.gz",))
EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "synthetic": Experiment(),
    **dict.fromkeys(FORMS, LAW_SCHOOL),
    "adult": Experiment("adult-mediators.yaml", ("data/adult/adult.data.gz", "data/adult/adult.test.gz")),
    "compas": Experiment("compas-race.yaml", ("data/compas/compas_two_years_no_names.csv.gz",)),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the GCFN paper, at its own size or at a smaller one, as training takes long."""

    name: ClassVar[str] = "gcfn"
    experiments: ClassVar[Mapping[str, Experiment]] = EXPERIMENTS
    quick: ClassVar[Mapping[str, Any]] = {
        **{"networks": 2, "epochs": 60, "seeds": 1, "rows": 8_000},
        "baseline": ("cfua", "cfan", "hscic"),
    }
    known_baselines: ClassVar[tuple[str, ...]] = tuple(TITLES)

    networks: int = 10
    epochs: int = 300
    """On 10,000 rows. Law students are ten times as many and get a tenth of the epochs: the same number of steps."""
    seeds: int = 5
    """Runs over which means are taken."""
    rows: int = 16_000
    """Most training rows of a predictor, of those that generators learn from."""
    baseline: tuple[str, ...] | None = None
    """Systems that are compared with GCFN, by name; None for all."""

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Runs the experiment on a data set and returns the paper's figures and what it does not print."""
        cells, drawings, spreads = self._obtained(dataset, data)
        figures = list(research_figures.figures(publication, dataset))
        for figure in figures:
            if figure.cell.group.split(", ")[0] in TITLES.values():
                cells.setdefault(figure.cell, research_figures.NOT_RUN)
        return Compared([*figures, *research_figures.beside(figures, cells)], cells, drawings, spreads)

    def _obtained(self, dataset: str, data: Path) -> Obtained:
        from research.gcfn import rivals, truth  # torch takes seconds to import, and others do not need it
        from tasks.ingest.synthetic.algorithm.lending import LawSchool, Synthetic, law_school, synthetic

        if dataset == "synthetic":
            return self._of_runs(lambda rng: synthetic(Synthetic(), rng), self._size(), ("Figure 10", "Figure 11"))
        spec = EXPERIMENTS[dataset].read(data)
        if dataset in FORMS:
            students, settings = truth.students(spec), LawSchool(FORMS[dataset])
            size = self._size(Synthetic().rows / settings.rows)
            return self._of_runs(lambda rng: law_school(settings, students, rng), size, ("Figure 3", MEANS[dataset]))
        if dataset == "adult":
            earners = truth.earners(spec)
            size = self._size(Synthetic().rows / len(earners.rich))
            return *rivals.obtained(earners, size, self.rows), {}
        return rivals.recidivism_obtained(truth.defendants(spec), self._size(), self.seeds)

    def _of_runs(
        self, draw: Callable[["np.random.Generator"], "MediatedRows"], size: "GanSettings", figures: tuple[str, str]
    ) -> Obtained:
        """Table 3, utilities and systems of other papers, where the true counterfactuals are known."""
        from research.gcfn import rivals, truth

        several = list(truth.runs(draw, size, self.seeds))
        names = self.known_baselines if self.baseline is None else self.baseline
        trimmed = [run.at_most(self.rows) for run in several]
        comparisons = [rivals.compared(run, names) for run in trimmed]
        summaries = [
            {**truth.compared(run), **other.summaries} for run, other in zip(trimmed, comparisons, strict=True)
        ]
        cells = {**truth.cells(several), **rivals.utilities_cells(summaries), **rivals.cells(comparisons)}
        return cells, rivals.drawings(summaries, figures), truth.spreads(several)

    def _size(self, share: float = 1.0) -> "GanSettings":
        """Training settings of this size; on the CPU, so that figures do not depend on the machine."""
        from tasks.counterfactuals.algorithm.gan.networks import GanSettings

        return GanSettings(networks=self.networks, epochs=max(1, round(self.epochs * share)), device="cpu")
