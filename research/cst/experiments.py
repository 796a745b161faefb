"""Declares the data sets of the CST paper and compares each with the paper and the authors' outputs."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from research import figures as research_figures
from research.cst import problem
from research.cst.problem import Balances, Golden, Prepared, Tested
from research.figures import Cell, Compared, Drawing, Experiment, Paper, Value, paper_spec
from schemas.audit.spec import AuditSpec

GOLDEN = Path("golden") / "cst"

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Grid:
    """All variants and numbers of neighbours k for one group of complainants, in one audit spec."""

    spec: str
    attribute: str
    group: str
    golden: str | None = None
    """Begins the names of the reference outputs, where there are any."""
    title: str | None = None
    """What the lines call the group, where the grid is a variation of another and no table of its own."""
    parts: tuple[str, ...] = ()
    """Of a crossed group, those of the single attributes."""
    column: str | None = None
    """Column of the complainants that Figure 2 shows."""

    @property
    def name(self) -> str:
        """What the lines call the group."""
        return self.title or self.group

    @property
    def tabled(self) -> bool:
        """Whether it is one of the data sets of the paper."""
        return self.title is None


@dataclass(frozen=True)
class Gridded(Experiment):
    """A data set with one or more grids, each with a separate audit spec."""

    grids: tuple[Grid, ...] = ()

    def files(self, data: Path) -> Iterator[Path]:
        """Yields the source and the reference outputs."""
        yield from super().files(data)
        for grid in self.grids:
            if grid.golden:
                yield from Golden(data / GOLDEN, grid.golden, grid.name).files

    def prepared(self, grid: Grid, data: Path) -> Prepared:
        """Builds the problem behind one table of the paper."""
        return problem.prepared(self.audited(grid, data), grid.attribute, grid.group)

    def audited(self, grid: Grid, data: Path) -> AuditSpec:
        """Reads the audit spec of a grid."""
        return paper_spec(grid.spec, {"source.path": str(data / self.sources[0])})

    def edges(self, grid: Grid, data: Path) -> str:
        """Returns the causal graph of a grid as the edges between its columns, in the order of their names."""
        edges = self.audited(grid, data).causal_graph.edges
        return ", ".join(sorted(f"{cause} > {effect}" for cause, effect in edges))


EXPERIMENTS: Mapping[str, Gridded] = {
    "loan": Gridded(
        sources=("golden/cst/loan_factual.csv.gz",),
        grids=(Grid("loan.yaml", "gender", "female", "loan", column="AccountBalance"),),
    ),
    "law": Gridded(
        sources=("data/law_school/lsac_law_data_21791.csv.gz",),
        grids=(
            Grid("law-school-race.yaml", "race", "non-white", "law_race"),
            Grid("law-school-gender.yaml", "gender", "female"),
            Grid("law-school-gender.yaml", "race", "non-white", title="non-white, by LSAT and UGPA alone"),
            Grid(
                "law-school-intersectional.yaml",
                "race and gender",
                "non-white and female",
                parts=("non-white", "female"),
            ),
        ),
    ),
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the CST paper, at its own size."""

    name: ClassVar[str] = "cst"
    experiments: ClassVar[Mapping[str, Gridded]] = EXPERIMENTS

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Tests all complainants of a data set and returns figures of paper and reference, with our cells."""
        experiment, drawings_of_grids, beside = EXPERIMENTS[dataset], list[Drawing](), dict[Cell, Value]()
        figures, values, tested = list(problem.figures(publication, dataset)), dict[Cell, Value](), dict[str, Tested]()
        for grid in experiment.grids:
            log.info("%s, %s: ingest, preprocess, score, generate counterfactuals, compare", dataset, grid.name)
            tested[grid.name] = problem.tested(experiment.prepared(grid, data))
            values[Cell("edges", grid.name)] = experiment.edges(grid, data)
            at = [f.cell.at[0] for f in figures if f.cell.group == grid.name and f.cell.at]
            complainants = {int(first) for first in at if isinstance(first, float)}
            values |= problem.cells(tested[grid.name], grid.name, complainants)
            if grid.parts:
                values |= problem.multiple(tested[grid.name], [tested[part] for part in grid.parts], grid.name)
            if grid.golden:
                for figure, ours in Golden(data / GOLDEN, grid.golden, grid.name).differences(tested[grid.name]):
                    figures.append(figure)
                    values[figure.cell] = ours
            if grid.column:
                balance_values = Balances(tested[grid.name], grid.column, grid.name)
                beside |= dict(problem.balances_cells(balance_values))
                drawings_of_grids += problem.drawings(balance_values)
        figures += research_figures.beside(figures, beside)
        return Compared(figures, values | beside, tuple(drawings_of_grids))
