"""Runs a paper's experiments under the ``paper`` profile and compares them with paper and reference.

Scope: the choice of data sets and sizes. Each method's ``Experiments`` in its ``reproduction.experiments`` declare data
sets and figures (``tasks.proof.experiments``). Comparison: ``tasks.proof.lines``.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from schemas.errors import SpecError, nearest
from tasks.pipeline.registry import METHODS
from tasks.proof.experiments import Paper, Reproduced
from tasks.proof.specs import require

log = logging.getLogger("evenhand")

ALL_PAPERS = "all"
"""Stands for every paper."""


@dataclass(frozen=True)
class Asked:
    """Which experiments of a paper are run, at which size."""

    paper: str
    """The method, by its paper's acronym."""
    only: Sequence[str] = ()
    """Data sets; all if there is none."""
    quick: bool = False
    """The size that takes about a minute of one core."""
    size: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the paper's ``Experiments``; None where one is left out."""


def reproduce(asked: Asked, data: Path) -> dict[str, Reproduced]:
    """Runs data set after data set: lines for the figures of paper and reference, and drawings.

    Args:
        asked: What is run.
        data: Directory that holds ``data/`` and ``golden/``.

    Raises:
        SpecError: The paper, a data set or a baseline is not known, or the paper has no such field.
        InfrastructureError: A file is missing; nothing is run then.
    """
    paper = asked.paper
    if paper not in METHODS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, [*METHODS, ALL_PAPERS])}")
    size = {name: value for name, value in asked.size.items() if value is not None}
    experiments = _of_size(paper, {**(_experiments(paper).quick if asked.quick else {}), **size})
    known = tuple(experiments.experiments)
    for name in asked.only:
        if name not in known:
            raise SpecError(f"--only {name}: no such data set of {paper}; {nearest(name, known)}")
    chosen = [name for name in known if not asked.only or name in asked.only]
    require(data, [file for name in chosen for file in experiments.experiments[name].files(data)])
    return {name: _run(experiments, name, data) for name in chosen}


def experiments_of(paper: str, quick: bool) -> Paper:
    """The experiments of a paper at their own size, or at the quick one."""
    found = _experiments(paper)
    return found.in_a_minute() if quick else found()


def _of_size(paper: str, size: Mapping[str, Any]) -> Paper:
    """The experiments of a paper, at another size than their own if one is said."""
    for name in size:
        taking = papers_taking(name)
        if paper not in taking:
            raise SpecError(f"reproduce {paper} takes no --{name}; reproduce {' and '.join(taking)} does")
    experiments = _experiments(paper)
    for name in size.get("baseline") or ():
        if name not in experiments.known_baselines:
            raise SpecError(
                f"--baseline {name}: no such baseline of {paper}; {nearest(name, experiments.known_baselines)}"
            )
    return experiments(**size)


def papers_taking(size: str) -> list[str]:
    """Returns the papers whose ``Experiments`` have a field of this name, by which they are made smaller."""
    return [paper for paper in METHODS if size in {field.name for field in fields(_experiments(paper))}]


def _experiments(paper: str) -> type[Paper]:
    found: type[Paper] = METHODS[paper].module("reproduction.experiments").Experiments
    return found


def _run(experiments: Paper, name: str, data: Path) -> Reproduced:
    start = time.perf_counter()
    found = experiments.run(name, data)
    log.info("%s: %d figures compared, %.1f s", name, len(found.lines), time.perf_counter() - start)
    return found
