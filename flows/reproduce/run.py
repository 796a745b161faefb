"""``evenhand reproduce``: a paper's experiments under the ``paper`` profile, compared with paper and reference.

Scope: which papers there are. Data sets, files and figures of a paper: the folder ``reproduction`` of its method.
Comparison: ``tasks.proof.lines``.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from schemas.errors import SpecError, nearest
from tasks.methods.cec.reproduction.experiments import Experiments as Cec
from tasks.methods.cst.reproduction import experiments as cst
from tasks.methods.fgce.reproduction import experiments as fgce
from tasks.methods.gcfn.reproduction.experiments import Experiments as Gcfn
from tasks.methods.raguel.reproduction.experiments import Experiments as Raguel
from tasks.proof.lines import Line
from tasks.proof.specs import require

log = logging.getLogger("evenhand")


class Paper(Protocol):
    """The module of a paper's experiments."""

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they are worked on."""
        ...

    def files(self, dataset: str, data: Path) -> Iterable[Path]:
        """The files that a data set needs, inside the directory that ``--data`` gives."""
        ...

    def lines(self, dataset: str, data: Path) -> list[Line]:
        """A line per figure of the paper and of the reference."""
        ...


PAPERS: Mapping[str, Paper] = {"fgce": fgce, "cst": cst, "cec": Cec(), "gcfn": Gcfn(), "raguel": Raguel()}

SIZED: Mapping[str, type[Any]] = {"cec": Cec, "gcfn": Gcfn, "raguel": Raguel}
"""Papers whose experiments take long, and may be made smaller: dataclasses, whose fields say how much."""


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
    if paper not in PAPERS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, list(PAPERS))}")
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
        taking = [each for each, kind in SIZED.items() if name in {field.name for field in fields(kind)}]
        if paper not in taking:
            raise SpecError(f"reproduce {paper} takes no --{name}; reproduce {' and '.join(taking)} does")
    sized: Paper = SIZED[paper](**size) if size else PAPERS[paper]
    return sized


def _lines(experiments: Paper, name: str, data: Path) -> list[Line]:
    start = time.perf_counter()
    lines = experiments.lines(name, data)
    log.info("%s: %d figures compared, %.1f s", name, len(lines), time.perf_counter() - start)
    return lines
