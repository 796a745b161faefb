"""Declares the data sets of the FGCE paper and compares each with the paper and the authors' outputs."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tasks.methods.fgce.reproduction import obtained, printed, row_graph, selections
from tasks.methods.fgce.reproduction.golden import Golden
from tasks.proof.experiments import Compared, Experiment, Paper
from tasks.proof.plain import tables_through

log = logging.getLogger("evenhand")


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

    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Runs detection on a data set and returns figures of the paper and of the reference, with our cells."""
        experiment = EXPERIMENTS[dataset]
        golden, spec = experiment.reference(data), experiment.read(data)
        log.info("%s: ingest, preprocess, score, connect, detect", dataset)
        tables = tables_through(spec, "detect")
        log.info("%s: the graph over rows, coverage and attributes at the reference's limits", dataset)
        group, names = obtained.groups_of(tables)
        found = {
            **obtained.cells(tables),
            **selections.cells(tables, spec, golden),
            **row_graph.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names),
        }
        return [*printed.figures(said, dataset, experiment.groups), *golden.figures()], found
