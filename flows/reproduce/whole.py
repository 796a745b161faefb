"""All papers in turn: every data set in a process of its own, what is done kept, and the ledger over them."""

import logging
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from flows.partitions.runners.task_runners import shared_cores
from flows.reproduce.parts import Done, Part, done, is_kept
from flows.reproduce.run import experiments_of
from tasks.pipeline.progress import course_of, stage_began, stage_ended
from tasks.pipeline.registry import METHODS
from tasks.proof import published
from tasks.proof.ledger import Row, entries, ledger
from tasks.proof.specs import require

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Whole:
    """What a reproduction of all papers is given."""

    data: Path
    quick: bool = False
    kept: Path | None = None
    """Folder with the results of data sets, from which an interrupted one goes on; None keeps nothing."""
    jobs: int = 2
    """Data sets at a time, each with one thread."""

    def parts(self) -> list[Part]:
        """The data sets of all papers, in the order of reports.

        Raises:
            InfrastructureError: A file is missing; nothing is run then.
        """
        papers = {paper: experiments_of(paper, self.quick).experiments for paper in METHODS}
        require(self.data, [file for each in papers.values() for one in each.values() for file in one.files(self.data)])
        return [Part(paper, name, self.quick, self.data) for paper, each in papers.items() for name in each]


def reproduce_all(whole: Whole) -> list[Done]:
    """Runs what is not kept yet, the papers with networks first as they take longest; returns all in their order.

    Raises:
        InfrastructureError: A file is missing; nothing is run then.
    """
    parts = whole.parts()
    found = {part: done(part, whole.kept) for part in parts if is_kept(part, whole.kept)}
    for part in found:
        log.info("%s: kept from before", part.name)
    left = sorted((part for part in parts if part not in found), key=_longest_first)
    with course_of([part.name for part in left], [None] * len(left)):
        for each in _run(left, whole):
            found[each.part] = each
    return [found[part] for part in parts]


_LONG = ("cec", "gcfn", "raguel", "fgce")
"""Papers that take longest."""


def _longest_first(part: Part) -> int:
    return _LONG.index(part.paper) if part.paper in _LONG else len(_LONG)


def _run(parts: Sequence[Part], whole: Whole) -> Iterator[Done]:
    """Yields parts as they end, each from a process of its own that has one thread."""
    left, waiting = list(enumerate(parts, start=1)), dict[Future[Done], int]()
    context = multiprocessing.get_context("spawn")
    with (
        shared_cores(whole.jobs, one=True),
        ProcessPoolExecutor(whole.jobs, mp_context=context, max_tasks_per_child=1) as pool,
    ):
        while left or waiting:
            while left and len(waiting) < whole.jobs:
                n, part = left.pop(0)
                waiting[pool.submit(done, part, whole.kept)] = n
                stage_began(n)
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                each = future.result()
                stage_ended(f"{len(each.lines):,} figures, {each.seconds:,.0f} CPU s", waiting.pop(future))
                yield each


def ledgers(found: Sequence[Done]) -> Mapping[str, list[Row]]:
    """The ledger of each paper."""
    return {paper: _ledger(paper, [each for each in found if each.part.paper == paper]) for paper in METHODS}


def _ledger(paper: str, found: Sequence[Done]) -> list[Row]:
    lines = [line for each in found for line in each.lines]
    drawn = [(each.part.dataset, drawing["name"]) for each in found for drawing in each.drawings]
    return ledger(entries(published.read(paper)), lines, drawn)
