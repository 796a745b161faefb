"""The data sets of the FGCE paper, the files that they need, and the order of the work on each."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.methods.fgce.reproduction import obtained, printed, row_graph, selections
from tasks.methods.fgce.reproduction.golden import Golden
from tasks.proof import published
from tasks.proof.lines import Line, compare
from tasks.proof.specs import paper_spec

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Experiment:
    """One data set of the paper; files are inside the directory that ``--data`` gives."""

    spec: str
    source: str
    golden: str
    outputs: tuple[str, ...]
    """Names of the reference outputs."""
    groups: tuple[str, str]
    """Names of G0 and G1."""

    def reference(self, data: Path) -> Golden:
        """The reference outputs."""
        return Golden(data / self.golden, self.groups, self.outputs)


EXPERIMENTS: Mapping[str, Experiment] = {
    "german": Experiment(
        "german-credit.yaml",
        "data/german_credit/german.data.gz",
        "golden/fgce/old_GermanCredit",
        tuple(f"{n}.json" for n in ("graph", "reachability", "coverage_kd", "dAUC", "kAUC", "cAUC", "k0d0", "acf")),
        ("female", "male"),
    ),
    "compas": Experiment(
        "compas.yaml",
        "data/compas/compas_two_years_no_names.csv.gz",
        "golden/fgce/fast_old_Compas",
        ("summary.json", "acf.json", "cAUC.json"),
        ("Female", "Male"),
    ),
    "adult": Experiment(
        "adult-integer-coded.yaml",
        "data/fgce/adult_integer_coded.csv.gz",
        "golden/fgce/fast_old_Adult",
        ("summary.json", "acf.json"),
        ("female", "male"),
    ),
}


@dataclass(frozen=True)
class Experiments:
    """The paper's experiments, at its own size."""

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        return tuple(EXPERIMENTS)

    def files(self, dataset: str, data: Path) -> Iterator[Path]:
        """The files that a data set needs."""
        experiment = EXPERIMENTS[dataset]
        yield data / experiment.source
        yield from experiment.reference(data).files

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper and of the reference."""
        experiment, said = EXPERIMENTS[dataset], published.read("fgce")
        golden = experiment.reference(data)
        spec = paper_spec(experiment.spec, {"source.path": str(data / experiment.source)})
        log.info("%s: ingest, preprocess, score, connect, detect", dataset)
        tables = obtained.through(spec)
        group, names = tables.group
        log.info("%s: the graph over rows, coverage and attributes at the reference's limits", dataset)
        found = {
            **obtained.cells(tables),
            **selections.cells(tables, spec, golden),
            **row_graph.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names),
        }
        figures = [*printed.figures(said, dataset, experiment.groups), *golden.figures()]
        return compare(dataset, figures, found, published.remarks(said, dataset, experiment.groups))
