"""Declares the data sets of the FGCE paper and compares each with the paper and the authors' outputs."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from research import figures
from research.fgce import cells as fgce_cells
from research.fgce import systems
from research.fgce.cells import Golden
from research.fgce.systems import KNOWN, Request
from research.figures import Compared, Experiment, Paper, Reproduced
from schemas.errors import InfrastructureError
from tasks.in_memory import tables_through

log = logging.getLogger("evenhand")

_NOT_ASKED = f"{figures.NOT_RUN}: the baseline was not asked for"


@dataclass(frozen=True)
class Reference(Experiment):
    """A data set; its ``groups`` are the names of G0 and G1."""

    golden: str = ""
    """Folder of the reference outputs."""
    outputs: tuple[str, ...] = ()
    """Names of the reference outputs; none of a data set that is not shared, whose file the user gives."""
    grid: tuple[float, ...] = ()
    """Without reference outputs: limits d of the authors' kAUC."""
    attribution: tuple[int, float] = (0, 0.0)
    """Without reference outputs: the k and d of the authors' attribute change frequencies."""

    def files(self, data: Path) -> Iterator[Path]:
        """Yields the source and the reference outputs; a source of the user only with its file."""
        yield from (path for path in super().files(data) if self.outputs or path.is_file())
        yield from self.reference(data).files

    def reference(self, data: Path) -> Golden:
        """Returns the reference outputs."""
        return Golden(data / self.golden, self.groups, self.outputs)


EXPERIMENTS: Mapping[str, Reference] = {
    "german": Reference(
        "german-credit.yaml",
        ("data/german_credit/german.data.gz",),
        ("female", "male"),
        "golden/fgce/old_GermanCredit",
        tuple(f"{n}.json" for n in ("graph", "reachability", "coverage_kd", "dAUC", "kAUC", "cAUC", "k0d0", "acf")),
    ),
    "compas": Reference(
        "compas.yaml",
        ("data/compas/compas_two_years_no_names.csv.gz",),
        ("Female", "Male"),
        "golden/fgce/fast_old_Compas",
        ("summary.json", "acf.json", "cAUC.json"),
    ),
    "adult": Reference(
        "adult-integer-coded.yaml",
        ("data/fgce/adult_integer_coded.csv.gz",),
        ("female", "male"),
        "golden/fgce/fast_old_Adult",
        ("summary.json", "acf.json"),
    ),
    "student": Reference(
        "student.yaml",
        ("data/student/student.csv",),
        ("female", "male"),
        grid=(2.793, 3.293, 3.793, 4.293, 4.793, 5.293),
        attribution=(3, 3.98),
    ),
    "heloc": Reference(
        "heloc.yaml",
        ("data/heloc/heloc.csv",),
        ("at most 5", "more than 5"),
        grid=(1.155, 1.655, 2.155, 2.655, 3.155, 3.655, 4.155, 4.655),
        attribution=(3, 1.65),
    ),
}
GIVEN = tuple(name for name, experiment in EXPERIMENTS.items() if not experiment.outputs)
"""Data sets whose files the user gives: by an option of that name, or in the directory that ``--data`` gives."""


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the FGCE paper, at its own size."""

    name: ClassVar[str] = "fgce"
    experiments: ClassVar[Mapping[str, Reference]] = EXPERIMENTS
    quick: ClassVar[Mapping[str, Any]] = {"translations": 200, "without_paths": ("adult",)}
    known_baselines: ClassVar[tuple[str, ...]] = KNOWN

    translations: int = 1000
    """Directions that GLOBE-CE draws."""
    without_paths: tuple[str, ...] = ()
    """Data sets that are not compared by path costs: Adult's 0.85 million midpoints of steps, each with a kernel sum
    over 40,704 points, take seven minutes."""
    baseline: tuple[str, ...] | None = None
    """Baselines that are run; all if None."""
    student: Path | None = None
    """The authors' file of pupils, where it is not in the data directory."""
    heloc: Path | None = None
    """FICO's file of home equity lines, where it is not in the data directory."""

    def given(self, dataset: str, data: Path) -> Path | None:
        """The file of a data set that the user gives; None where there is none.

        Raises:
            InfrastructureError: The file that an option names is not there.
        """
        named: Path | None = getattr(self, dataset)
        if named is not None and not named.is_file():
            raise InfrastructureError(f"{str(named)!r} is not there: --{dataset} takes the file of that data set")
        return named or next(EXPERIMENTS[dataset].files(data), None)

    def run(self, dataset: str, data: Path) -> Reproduced:
        """Returns a line per figure; nothing is judged where the user does not give the file."""
        if dataset in GIVEN and self.given(dataset, data) is None:
            publication = figures.read(self.name)
            listed = [*fgce_cells.figures(publication, dataset, EXPERIMENTS[dataset].groups)]
            listed += fgce_cells.of_systems(publication, dataset)
            (source,) = EXPERIMENTS[dataset].sources
            return figures.not_given(dataset, listed, f"no file {source!r}, and no --{dataset}: the user gives it")
        return super().run(dataset, data)

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Runs detection on a data set and returns figures of the paper and of the reference, with our cells."""
        experiment = EXPERIMENTS[dataset]
        golden = experiment.reference(data)
        grid, attribution = (
            (golden.grid, golden.attribution) if golden.names else (experiment.grid, experiment.attribution)
        )
        spec = experiment.read(data)
        if dataset in GIVEN:
            spec = experiment.read(data, source__path=str(self.given(dataset, data)))
        log.info("%s: ingest, preprocess, score, connect, detect", dataset)
        tables = tables_through(spec, "detect")
        log.info("%s: the graph over rows, coverage and attributes at the reference's limits", dataset)
        group, names = fgce_cells.groups_of(tables)
        problem = fgce_cells.problem_of(tables, spec)
        cells = {
            **fgce_cells.obtained_cells(tables),
            **fgce_cells.selections_cells(problem, spec, grid, attribution, with_outputs=bool(golden.names)),
            **fgce_cells.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names),
        }
        log.info("%s: figures, and the systems that the paper compares itself with", dataset)
        request = Request(problem, tables, fgce_cells.fgce_settings(spec))
        chosen = frozenset(KNOWN if self.baseline is None else self.baseline)
        kinds = [kind for kind in systems.KINDS if kind != "path" or dataset not in self.without_paths]
        systems_run = systems.Systems(chosen, self.translations, spec.seed, kinds)
        system_cells, face_drawings = systems.obtained(dataset, request, systems_run)
        shown_figures = [
            fgce_cells.connected(request.problem, request.tables, request.settings, request.epsilon),
            fgce_cells.components(request.problem),
            fgce_cells.changed(cells, request.problem),
        ]
        # what no table by group holds: rules, figures, and the systems that are compared
        other_cells = {**dict(fgce_cells.constraints(request.tables["encodings"])), **system_cells}
        for figure in shown_figures:
            other_cells |= figure.cells
        drawings = (*(drawing for figure in shown_figures for drawing in figure.drawings), *face_drawings)
        group_figures = [*fgce_cells.figures(publication, dataset, experiment.groups)]
        group_figures += golden.figures() if golden.names else ()
        system_figures = list(fgce_cells.of_systems(publication, dataset))
        window_cells = dict(fgce_cells.windows_cells(group_figures, cells))
        cells = {**{figure.cell: _NOT_ASKED for figure in system_figures}, **cells, **other_cells, **window_cells}
        companion_figures = figures.beside(system_figures, (*other_cells, *window_cells))
        return Compared([*group_figures, *system_figures, *companion_figures], cells, drawings)
