"""Declares a paper's experiments: data sets, their files, and the comparison of published figures with ours.

Each method's ``reproduction.experiments`` has a subclass of ``Paper`` called ``Experiments``. Its dataclass fields are
the sizes by which the experiments are made smaller; an option of ``evenhand reproduce`` with the same name sets one.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from schemas.audit.spec import AuditSpec
from tasks.proof import published
from tasks.proof.drawings import Drawing
from tasks.proof.lines import Cell, Figure, Line, Value, compare
from tasks.proof.specs import paper_spec


class Compared(NamedTuple):
    """What a data set gave."""

    figures: list[Figure]
    """In their order."""
    found: Mapping[Cell, Value]
    """What our code obtained."""
    drawings: tuple[Drawing, ...] = ()
    """Of figures for which the paper prints no numbers."""


class Reproduced(NamedTuple):
    """A data set of a paper, compared and drawn."""

    lines: list[Line]
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Experiment:
    """One data set of a paper; its files are inside the directory that ``--data`` gives."""

    spec: str | None = None
    """File name of its audit spec; None where rows are drawn, or the method reads them otherwise."""
    sources: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Names of G0 and G1, where published tables write these."""

    def files(self, data: Path) -> Iterator[Path]:
        """Yields the files that it needs."""
        yield from (data / source for source in self.sources)

    def read(self, data: Path, **overrides: str) -> AuditSpec:
        """Reads its audit spec, with the path of the sources and other keys set (two underscores for a dot)."""
        if self.spec is None:
            raise ValueError("rows are drawn: there is no audit spec")
        paths = [str(data / source) for source in self.sources]
        keys = {name.replace("__", "."): value for name, value in overrides.items()}
        return paper_spec(self.spec, {"source.path": json.dumps(paths) if len(paths) > 1 else paths[0], **keys})


@dataclass(frozen=True)
class Paper(ABC):
    """The experiments of a paper."""

    name: ClassVar[str]
    """The method, by its paper's acronym."""
    experiments: ClassVar[Mapping[str, Experiment]]
    """By data set, in the order in which they are run."""
    quick: ClassVar[Mapping[str, Any]] = {}
    """Fields with which all data sets together take about a minute of one core."""

    known_baselines: ClassVar[tuple[str, ...]] = ()
    """Systems that the paper compares itself with; a field ``baseline`` chooses some of them."""

    @classmethod
    def in_a_minute(cls) -> Self:
        """The experiments at the size of ``--quick``."""
        return cls(**cls.quick)

    @abstractmethod
    def compared(self, dataset: str, data: Path, said: Mapping[str, Any]) -> Compared:
        """Runs the experiment on a data set; ``said`` is the file of published figures."""

    def run(self, dataset: str, data: Path) -> Reproduced:
        """Runs a data set; a line for each figure of the paper, of the reference, and beside them, and the drawings."""
        said = published.read(self.name)
        figures, found, drawings = self.compared(dataset, data, said)
        remarks = published.remarks(said, dataset, self.experiments[dataset].groups)
        return Reproduced(compare(dataset, figures, found, remarks), drawings)
