"""``evenhand reproduce``: a paper's experiment with the ``paper`` profile, held against the paper and the reference.

Here belong which data sets there are, which files they need, and the order of the work. How figures are read, obtained
and compared is in ``reproducing``.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.reproducing import obtained, published, row_graph, selections
from flows.reproducing.golden import Golden
from flows.reproducing.lines import Line, compare
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.settings import AuditSpec
from schemas.spec_file import read_spec

PAPERS = ("fgce",)

_HERE = Path(__file__).parent
_PLACES = (_HERE.parent / "data" / "audits" / "paper", _HERE / "bundled" / "paper")

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Experiment:
    """One data set of a paper; files are inside the directory that ``--data`` gives."""

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


def reproduce(paper: str, data: Path, only: Sequence[str] = ()) -> list[Line]:
    """A line per figure of the paper and of the reference, data set by data set.

    Args:
        paper: The method, by its paper's acronym.
        data: Directory that holds ``data/`` and ``golden/``.
        only: Data sets; all if there is none.

    Raises:
        SpecError: The paper or a data set is not known.
        InfrastructureError: A file is missing; nothing is run then.
    """
    if paper not in PAPERS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, PAPERS)}")
    for name in only:
        if name not in EXPERIMENTS:
            raise SpecError(f"--only {name}: no such data set; {nearest(name, tuple(EXPERIMENTS))}")
    chosen = [name for name in EXPERIMENTS if not only or name in only]
    for name in chosen:
        _require(data, EXPERIMENTS[name])
    said = published.read(paper)
    return [line for name in chosen for line in _lines(name, data, said)]


def _require(data: Path, experiment: Experiment) -> None:
    for file in (data / experiment.source, *experiment.reference(data).files):
        if not file.is_file():
            raise InfrastructureError(
                f"{str(file)!r} is not there; --data is to be the directory that holds data/ and golden/, with "
                f"{file.relative_to(data)} in it"
            )


def _lines(name: str, data: Path, said: Mapping[str, object]) -> list[Line]:
    experiment, start = EXPERIMENTS[name], time.perf_counter()
    golden = experiment.reference(data)
    spec = _spec(experiment, data)
    log.info("%s: ingest, preprocess, score, connect, detect", name)
    tables = obtained.through(spec)
    group, names = tables.group
    log.info("%s: the graph over rows, coverage and attributes at the reference's limits", name)
    found = {
        **obtained.cells(tables),
        **selections.cells(tables, spec, golden),
        **row_graph.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names),
    }
    figures = [*published.figures(said, name, experiment.groups), *golden.figures()]
    lines = compare(name, figures, found, published.remarks(said, name, experiment.groups))
    log.info("%s: %d figures compared, %.1f s", name, len(lines), time.perf_counter() - start)
    return lines


def _spec(experiment: Experiment, data: Path) -> AuditSpec:
    file = next((place for place in _PLACES if place.is_dir()), _PLACES[0]) / experiment.spec
    if not file.is_file():
        raise InfrastructureError(f"{str(file)!r} is not there; it belongs to evenhand: install it again")
    overrides = {"source.path": str(data / experiment.source)}
    return read_spec(file.read_text(encoding="utf-8"), str(file), overrides).spec
