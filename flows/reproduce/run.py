"""Runs a paper's experiments under the ``paper`` profile and compares them with paper and reference.

Scope: the choice of data sets and sizes. Each method's ``Experiments`` in its ``reproduction.experiments`` declare data
sets and figures (``tasks.proof.experiments``). Comparison: ``tasks.proof.lines``.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from schemas.errors import SpecError, nearest
from tasks.pipeline.registry import METHODS
from tasks.proof.experiments import Paper
from tasks.proof.lines import Line
from tasks.proof.specs import require

log = logging.getLogger("evenhand")


def reproduce(paper: str, data: Path, only: Sequence[str] = (), **size: int | bool | None) -> list[Line]:
    """Runs data set after data set and returns a line for each figure of the paper and of the reference.

    Args:
        paper: The method, by its paper's acronym.
        data: Directory that holds ``data/`` and ``golden/``.
        only: Data sets; all if there is none.
        **size: Fields of the paper's ``Experiments`` that make them smaller; None where one is left out.

    Raises:
        SpecError: The paper or a data set is not known, or the paper has no such field.
        InfrastructureError: A file is missing; nothing is run then.
    """
    if paper not in METHODS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, list(METHODS))}")
    experiments = _of_size(paper, {name: value for name, value in size.items() if value is not None})
    known = tuple(experiments.experiments)
    for name in only:
        if name not in known:
            raise SpecError(f"--only {name}: no such data set of {paper}; {nearest(name, known)}")
    chosen = [name for name in known if not only or name in only]
    require(data, [file for name in chosen for file in experiments.experiments[name].files(data)])
    return [line for name in chosen for line in _lines(experiments, name, data)]


def _of_size(paper: str, size: Mapping[str, int | bool]) -> Paper:
    """The experiments of a paper, at another size than their own if one is said."""
    for name in size:
        taking = papers_taking(name)
        if paper not in taking:
            raise SpecError(f"reproduce {paper} takes no --{name}; reproduce {' and '.join(taking)} does")
    return _experiments(paper)(**size)


def papers_taking(size: str) -> list[str]:
    """Returns the papers whose ``Experiments`` have a field of this name, by which they are made smaller."""
    return [paper for paper in METHODS if size in {field.name for field in fields(_experiments(paper))}]


def _experiments(paper: str) -> type[Paper]:
    found: type[Paper] = METHODS[paper].module("reproduction.experiments").Experiments
    return found


def _lines(experiments: Paper, name: str, data: Path) -> list[Line]:
    start = time.perf_counter()
    lines = experiments.lines(name, data)
    log.info("%s: %d figures compared, %.1f s", name, len(lines), time.perf_counter() - start)
    return lines
