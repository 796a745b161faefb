"""Times RAGUEL on people that are read already, and on drawn lists; ``evenhand bench raguel`` starts its processes.

Each run is a process of its own, so that its peak memory is that of the work. Kernels are compiled, or loaded from
numba's cache, on few records before anything is timed; compilation is timed apart. Times are the least of several.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from research.benchmark import answer, peak_mb
from research.raguel.series import BLOCKS, TOLERANCES, draw
from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import Actions, Boundary, in_steps, make_actions
from tasks.methods.raguel.algorithm.representation import Records, Representation, make_records, representation
from tasks.methods.raguel.algorithm.reranking import BlockRules, Reranking, block_size, rerank, rerank_blocks
from tasks.numerics.arrays import Floats, Ints

REPETITIONS, WARM_RECORDS = 7, 500
ATTRIBUTES = 10
SIZE, TOLERANCE = 100, 1 / 3
"""Of the blocks of long lists."""


@dataclass(frozen=True)
class People:
    """People, what they may change, and a linear boundary, to be handed from one process to another."""

    values: Floats
    group: Ints
    boundary: Boundary
    actions: Actions

    def records(self) -> Records:
        """Returns the list of them."""
        boundary_targets = recourse.to_boundary(self.values, self.boundary, self.actions)
        return make_records(self.values, boundary_targets, self.group, self.actions, self.boundary)


def costs(records: str, kind: str) -> dict[str, Any]:
    """Times costs of drawn records with ten attributes: ``closed`` form, or ``bounded`` with directions and bounds."""
    rng, n = np.random.default_rng(0), int(records)
    values, boundary = rng.normal(size=(n, ATTRIBUTES)), Boundary(rng.normal(size=ATTRIBUTES), 0.3)
    weight = rng.uniform(0.1, 1, ATTRIBUTES)
    actions = make_actions(weight)
    if kind == "bounded":
        actions = make_actions(weight, direction=np.resize([1, -1, 0], ATTRIBUTES), lower=-4.0, upper=4.0)
    compiled = _compiled(lambda: recourse.costs_to_boundary(values[:WARM_RECORDS], boundary, actions))
    seconds = _least(lambda: recourse.costs_to_boundary(values, boundary, actions))
    return _report(n, seconds, compiled)


def steps(people: People, most: str) -> dict[str, Any]:
    """Times counterfactual points in whole steps for every case, with so many changed attributes at most."""
    limit = int(most) or None
    values, boundary, actions = people.values, people.boundary, people.actions
    compiled = _compiled(lambda: in_steps(values[:1], boundary, actions, limit))
    start = time.perf_counter()
    stepped = in_steps(values, boundary, actions, limit)
    seconds = time.perf_counter() - start
    refused, unproven = int((~stepped.targets.reached).sum()), int((~stepped.proven).sum())
    return _report(len(values), seconds, compiled, cases=stepped.cases, refused=refused, unproven=unproven)


def one_by_one(people: People) -> dict[str, Any]:
    """Times Algorithm 1 on everybody, at every tolerance of the paper: the slowest of them."""
    listed = people.records()
    few = listed.rows(np.arange(min(WARM_RECORDS, len(listed.cost))))
    compiled = _compiled(lambda: rerank(few, _representation(few.group), Reranking()))
    seconds = {t: _least(lambda t=t: rerank(listed, _representation(listed.group, t), Reranking())) for t in TOLERANCES}  # type: ignore[misc]
    return _report(len(listed.cost), max(seconds.values()), compiled)


def in_blocks(people: People) -> dict[str, Any]:
    """Times Algorithm 2 on everybody, at every setting of the paper's grid: the slowest of them."""
    listed = people.records()
    few = listed.rows(np.arange(min(WARM_RECORDS, len(listed.cost))))
    compiled = _compiled(lambda: rerank_blocks(few, _representation(few.group), 20, BlockRules()))
    seconds = {}
    for tolerance in TOLERANCES:
        representation = _representation(listed.group, tolerance)
        for blocks in BLOCKS:
            size = block_size(len(listed.cost), blocks)
            seconds[blocks, tolerance] = _least(partial(rerank_blocks, listed, representation, size, BlockRules()))
    slowest = max(seconds, key=lambda setting: seconds[setting])
    median = float(np.median(list(seconds.values())))
    return _report(len(listed.cost), seconds[slowest], compiled, slowest=slowest, median_s=median)


def drawn(records: str) -> dict[str, Any]:
    """Times Algorithm 2 on a drawn list in blocks of 100, with the sort."""
    few, listed = (draw(n, np.random.default_rng(0)) for n in (WARM_RECORDS, int(records)))
    compiled = _compiled(lambda: rerank_blocks(few, _representation(few.group), SIZE, BlockRules()))
    representation = _representation(listed.group)
    cpu = time.process_time()
    seconds = _least(lambda: rerank_blocks(listed, representation, SIZE, BlockRules()))
    cpu_s = (time.process_time() - cpu) / REPETITIONS
    return _report(len(listed.cost), seconds, compiled, cpu_s=cpu_s, sort_s=_least(listed.ranked))


def _report(rows: int, seconds: float, compiled: float, **extra: Any) -> dict[str, Any]:
    return {"rows": rows, "seconds": seconds, "compile_s": compiled, "peak_mb": peak_mb(), **extra}


def _representation(group: Ints, tolerance: float = TOLERANCE) -> Representation:
    return representation(group, 2, 0, tolerance)


def _least(work: Callable[[], object]) -> float:
    """Least seconds of several runs."""
    return min(_times(work))


def _times(work: Callable[[], object]) -> Iterator[float]:
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        work()
        yield time.perf_counter() - start


def _compiled(work: Callable[[], object]) -> float:
    """Seconds of the first run less those of the second: compilation, or what it takes to load what is compiled."""
    first, second = (next(_times(work)) for _ in range(2))
    return max(first - second, 0.0)


if __name__ == "__main__":
    answer(costs, steps, one_by_one, in_blocks, drawn)
