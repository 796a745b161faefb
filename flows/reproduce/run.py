"""``evenhand reproduce``: a paper's experiments under the ``paper`` profile, compared with paper and reference.

Scope: the command's way through a paper. Every method has its ``Experiments`` in ``reproduction.experiments`` of its
folder: data sets, files and figures. Comparison: ``tasks.proof.lines``.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from schemas.errors import SpecError, nearest
from tasks.pipeline.registry import METHODS
from tasks.proof.lines import Line
from tasks.proof.specs import require

log = logging.getLogger("evenhand")


class Paper(Protocol):
    """A paper's experiments. Where they take long they may be made smaller: their fields say how much."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        ...

    def files(self, dataset: str, data: Path) -> Iterable[Path]:
        """The files that a data set needs, inside the directory that ``--data`` gives."""
        ...

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper and of the reference."""
        ...


def reproduce(paper: str, data: Path, only: Sequence[str] = (), **size: int | bool | None) -> list[Line]:
    """A line per figure of the paper and of the reference, data set by data set.

    Args:
        paper: The method, by its paper's acronym.
        data: Directory that holds ``data/`` and ``golden/``.
        only: Data sets; all if there is none.
        **size: Of a paper whose experiments take long, how much of them, by their fields: ``folds`` and ``baselines``,
            or ``networks``, ``epochs`` and ``seeds``, or ``records``. None where it is not said.

    Raises:
        SpecError: The paper or a data set is not known, or the paper has no such field.
        InfrastructureError: A file is missing; nothing is run then.
    """
    if paper not in METHODS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, list(METHODS))}")
    experiments = _of_size(paper, {name: value for name, value in size.items() if value is not None})
    known = experiments.datasets()
    for name in only:
        if name not in known:
            raise SpecError(f"--only {name}: no such data set of {paper}; {nearest(name, known)}")
    chosen = [name for name in known if not only or name in only]
    require(data, [file for name in chosen for file in experiments.files(name, data)])
    return [line for name in chosen for line in _lines(experiments, name, data)]


def _of_size(paper: str, size: Mapping[str, int | bool]) -> Paper:
    """The experiments of a paper, at another size than their own if one is said."""
    for name in size:
        if not _takes(paper, name):
            taking = [each for each in METHODS if _takes(each, name)]
            raise SpecError(f"reproduce {paper} takes no --{name}; reproduce {' and '.join(taking)} does")
    return _experiments(paper)(**size)


def _takes(paper: str, size: str) -> bool:
    return size in {field.name for field in fields(_experiments(paper))}


def _experiments(paper: str) -> type[Paper]:
    found: type[Paper] = METHODS[paper].module("reproduction.experiments").Experiments
    return found


def _lines(experiments: Paper, name: str, data: Path) -> list[Line]:
    start = time.perf_counter()
    lines = experiments.lines(name, data)
    log.info("%s: %d figures compared, %.1f s", name, len(lines), time.perf_counter() - start)
    return lines
