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
from research.figures import Compared, Experiment, Paper
from tasks.in_memory import tables_through

log = logging.getLogger("evenhand")

_NOT_ASKED = f"{figures.NOT_RUN}: the baseline was not asked for"


@dataclass(frozen=True)
class Reference(Experiment):
    """A data set with reference outputs; its ``groups`` are the names of G0 and G1."""

    golden: str = ""
    """Folder of the reference outputs."""
    outputs: tuple[str, ...] = ()
    """Names of the reference outputs."""

    def files(self, data: Path) -> Iterator[Path]:
        """Yields the source and the reference outputs."""
        yield from super().files(data)
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
}


@dataclass(frozen=True)
class Experiments(Paper):
    """The experiments of the FGCE paper, at its own size."""

    name: ClassVar[str] = "fgce"
    experiments: ClassVar[Mapping[str, Reference]] = EXPERIMENTS
    quick: ClassVar[Mapping[str, Any]] = {"translations": 200}
    known_baselines: ClassVar[tuple[str, ...]] = KNOWN

    translations: int = 1000
    """Directions that GLOBE-CE draws."""
    baseline: tuple[str, ...] | None = None
    """Baselines that are run; all if None."""

    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Runs detection on a data set and returns figures of the paper and of the reference, with our cells."""
        experiment = EXPERIMENTS[dataset]
        golden, spec = experiment.reference(data), experiment.read(data)
        log.info("%s: ingest, preprocess, score, connect, detect", dataset)
        tables = tables_through(spec, "detect")
        log.info("%s: the graph over rows, coverage and attributes at the reference's limits", dataset)
        group, names = fgce_cells.groups_of(tables)
        problem = fgce_cells.problem_of(tables, spec)
        cells = {
            **fgce_cells.obtained_cells(tables),
            **fgce_cells.selections_cells(problem, spec, golden),
            **fgce_cells.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names),
        }
        log.info("%s: figures, and the systems that the paper compares itself with", dataset)
        request = Request(problem, tables, fgce_cells.fgce_settings(spec))
        chosen = frozenset(KNOWN if self.baseline is None else self.baseline)
        systems_run = systems.Systems(chosen, self.translations, spec.seed)
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
        group_figures = [*fgce_cells.figures(publication, dataset, experiment.groups), *golden.figures()]
        system_figures = list(fgce_cells.of_systems(publication, dataset))
        window_cells = dict(fgce_cells.windows_cells(group_figures, cells))
        cells |= {**{figure.cell: _NOT_ASKED for figure in system_figures}, **other_cells, **window_cells}
        companion_figures = figures.beside(system_figures, (*other_cells, *window_cells))
        return Compared([*group_figures, *system_figures, *companion_figures], cells, drawings)
