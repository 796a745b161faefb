"""Declares the data sets of the CEC paper and compares each with the paper.

The baselines of Table 2 are run where it takes minutes, and are shown without a verdict: the reproduction does not aim
at what the paper prints of them. Texas in 2022 stands in for the paper's extract of HMDA, whose rows it does not give.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from research import figures as research_figures
from research.cec.data import ABLATION, BASELINES, CEC_MODEL, COLUMNS, FOLDS, QUANTITIES, UNCONSTRAINED, UNPRINTED
from research.figures import NOT_RUN, TEXAS_FILE, Cell, Compared, Drawing, Experiment, Paper, Spread, Value

if TYPE_CHECKING:
    from research.cec.models import Course
    from tasks.numerics.encoding import Columns

log = logging.getLogger("evenhand")

ONE_HOT = ", one-hot"
"""Follows the name of a model with one-hot columns for categories."""

_OWN = (UNCONSTRAINED, CEC_MODEL)
MODELS = (*_OWN, *(name + ONE_HOT for name in _OWN))
"""Models with more cells than the paper prints."""

_CHEAP = ("DIR", "Hardt", "adversarial")


Obtained = tuple[dict[Cell, Value], tuple[Drawing, ...], Mapping[Cell, Spread]]
"""Cells, drawings, and the spread of cells over folds."""


@dataclass(frozen=True)
class Trained(Experiment):
    """A data set on which nets are trained; without a spec its rows are drawn."""

    full: bool = False
    """Whether Table 4 and Figure 6 are about it, and nets are trained on one-hot columns as well."""
    baselines: tuple[str, ...] = BASELINES
    """Baselines that are run unless others are requested; reductions train up to fifty nets."""
    cut: bool = False
    """Whether it is so long that fewer of its rows can be requested."""
    folds: int = FOLDS
    """Folds that the paper's own models are trained on, unless others are requested."""


EXPERIMENTS: Mapping[str, Trained] = {
    "german": Trained("german-credit-gender.yaml", ("data/german_credit/german.data.gz",), full=True),
    "adult": Trained(
        "adult-gender.yaml",
        ("data/adult/adult.data.gz", "data/adult/adult.test.gz"),
        baselines=_CHEAP,
        cut=True,
    ),
    "synthetic": Trained(),
    "hmda": Trained("hmda-tx-race.yaml", (TEXAS_FILE,), baselines=_CHEAP, cut=True, folds=1),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the CEC paper on some of its five folds, as training takes long."""

    name: ClassVar[str] = "cec"
    experiments: ClassVar[Mapping[str, Trained]] = EXPERIMENTS
    quick: ClassVar[Mapping[str, Any]] = {"rows": 8_000, "sparing": True, "baseline": _CHEAP, "folds": 1}
    known_baselines: ClassVar[tuple[str, ...]] = BASELINES

    folds: int | None = None
    """Of the paper's five. None: all for the paper's own models, but one of Texas; one for its baselines, the one-hot
    columns and the grid of both lambdas."""
    baseline: tuple[str, ...] | None = None
    """The paper's baselines that are run as well; those of each data set if None."""
    rows: int | None = None
    """Most rows of Adult and of HMDA; all if None."""
    sparing: bool = False
    """Whether nets are trained by attributions of 8 steps on half of the pairs, as audits do, in place of 32 on all."""

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Trains the models on a data set and returns the paper's figures and what it does not print."""
        experiment = EXPERIMENTS[dataset]
        obtained_cells, drawings, spreads = self._obtained(experiment, data)
        figures = list(research_figures.figures(publication, dataset))
        expected_cells = [Cell(name, model) for model in (*MODELS, *BASELINES) for name in (*QUANTITIES, *UNPRINTED)]
        expected_cells += [
            cell for cell in obtained_cells if cell.quantity == "collapsed_folds" and cell not in expected_cells
        ]
        figures += research_figures.beside(figures, [cell for cell in expected_cells if cell in obtained_cells])
        for figure in figures:
            if figure.cell.group in BASELINES:
                obtained_cells.setdefault(figure.cell, NOT_RUN)
        return Compared(figures, obtained_cells, drawings, spreads)

    def _course(self, folds: int) -> "Course":
        from research.cec.models import Course

        course = Course(folds)
        return course.sparing if self.sparing else course

    def _obtained(self, experiment: Trained, data: Path) -> Obtained:
        # torch takes seconds to import, and others do not need it
        from research.cec import data as lending
        from research.cec import models
        from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
        from tasks.methods.cec.algorithm import mitigations
        from tasks.methods.cec.algorithm.models import drawn

        columns: Columns | None = None
        if experiment.spec is None:
            rows = lending.drawn(SyntheticLending(), models.SETTINGS.seed)
        else:
            rows, columns = lending.of_spec(experiment.read(data))
            log.info("%s: %d rows, %d inputs", experiment.spec, *rows.population.features.shape)
        rows = drawn(rows, self.rows if experiment.cut else None, models.SETTINGS.seed)
        model_course, baseline_course = self._course(self.folds or experiment.folds), self._course(self.folds or 1)
        of_model = models.by_model(models.outcomes(rows, models.variants(experiment.full), model_course))
        baselines = experiment.baselines if self.baseline is None else self.baseline
        of_baseline = models.mitigation_outcomes(rows, baselines, baseline_course)
        values = {**models.cells(of_model), **models.baselines_cells(of_baseline)}
        cec = [float(values[Cell("cec", name)]) for name in _OWN]
        values[Cell("cec_below_unconstrained", CEC_MODEL)] = cec[0] - cec[1]
        outcomes = {**of_model, **of_baseline}
        same_folds = {name: outcomes[name][: baseline_course.folds] for name in outcomes if name in COLUMNS}
        values |= models.non_domination_cells(same_folds)
        if columns and experiment.full:
            again = models.outcomes(
                lending.one_hot(rows, columns), models.variants(all_variants=False), baseline_course
            )
            values |= models.cells(models.by_model(again, ONE_HOT))
        drawings = [*lending.plane(values, COLUMNS), *lending.shares(values, COLUMNS, "regimes-by-model", "Figure 5")]
        if experiment.full:  # the ablation and the grid of both lambdas
            drawings += lending.shares(values, ABLATION, "regimes-by-variant", "Figure 7")
            grid = models.grid_of(models.outcomes(rows, mitigations.lambda_grid(), baseline_course))
            values |= models.lambda_grid_cells(grid)
            drawings += models.drawings(grid)
        return values, tuple(drawings), models.spreads(outcomes)
