"""The data sets of the CST paper, the files that they need, and the order of the work on each."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.methods.cst.reproduction import obtained, printed, worlds
from tasks.methods.cst.reproduction.golden import Golden
from tasks.methods.cst.reproduction.obtained import Tested
from tasks.methods.cst.reproduction.worlds import Prepared
from tasks.proof import published
from tasks.proof.lines import Cell, Figure, Line, Value, compare
from tasks.proof.specs import paper_spec

GOLDEN = Path("golden") / "cst"

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Grid:
    """All variants and numbers of neighbours k for a group that complains, in one audit spec."""

    spec: str
    attribute: str
    group: str
    golden: str | None = None
    """Begins the names of the reference outputs, where there are any."""
    title: str | None = None
    """What the lines call the group, where the grid is a variation of another and no table of its own."""
    parts: tuple[str, ...] = ()
    """Of a crossed group, those of the single attributes."""

    @property
    def name(self) -> str:
        """What the lines call the group."""
        return self.title or self.group

    @property
    def tabled(self) -> bool:
        """Whether it is one of the data sets of the paper."""
        return self.title is None


@dataclass(frozen=True)
class Experiment:
    """One data set; its file is inside the directory that ``--data`` gives."""

    source: str
    grids: tuple[Grid, ...]


EXPERIMENTS: Mapping[str, Experiment] = {
    "loan": Experiment("golden/cst/loan_factual.csv.gz", (Grid("loan.yaml", "gender", "female", "loan"),)),
    "law": Experiment(
        "data/law_school/lsac_law_data_21791.csv.gz",
        (
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


def prepared(grid: Grid, source: Path) -> Prepared:
    """The problem behind one table of the paper."""
    spec = paper_spec(grid.spec, {"source.path": str(source)})
    return worlds.prepared(spec, grid.attribute, grid.group)


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments, at its own size."""

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        return tuple(EXPERIMENTS)

    def files(self, dataset: str, data: Path) -> Iterator[Path]:
        """The files that a data set needs."""
        yield data / EXPERIMENTS[dataset].source
        for grid in EXPERIMENTS[dataset].grids:
            if grid.golden:
                yield from Golden(data / GOLDEN, grid.golden, grid.name).files

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper and of the reference."""
        said, experiment = published.read("cst"), EXPERIMENTS[dataset]
        figures, found, tested = list(printed.figures(said, dataset)), dict[Cell, Value](), dict[str, Tested]()
        for grid in experiment.grids:
            log.info("%s, %s: ingest, preprocess, score, imagine, compare", dataset, grid.name)
            tested[grid.name] = obtained.tested(prepared(grid, data / experiment.source))
            found |= obtained.cells(tested[grid.name], grid.name, _complainants(figures, grid.name))
            if grid.parts:
                found |= obtained.multiple(tested[grid.name], [tested[part] for part in grid.parts], grid.name)
            if grid.golden:
                for figure, ours in Golden(data / GOLDEN, grid.golden, grid.name).told(tested[grid.name]):
                    figures.append(figure)
                    found[figure.cell] = ours
        return compare(dataset, figures, found, published.remarks(said, dataset))


def _complainants(figures: list[Figure], group: str) -> set[int]:
    """Those of whom something is printed."""
    at = [f.cell.at[0] for f in figures if f.cell.group == group and f.cell.at]
    return {int(first) for first in at if isinstance(first, float)}
