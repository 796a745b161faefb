"""RAGUEL on people that are read already, and on lists that are drawn: what ``evenhand bench raguel`` starts.

Each run is a process of its own, so that its peak memory is that of the work. Kernels are compiled, or loaded from
numba's cache, on few records before anything is timed, which is told apart. Times are the least of several.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules, block_size, rerank_blocks
from tasks.methods.raguel.algorithm.ranking.records import Records, make_records, of_costs
from tasks.methods.raguel.algorithm.ranking.representation import Representation, representation
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.methods.raguel.algorithm.recourse import targets
from tasks.methods.raguel.algorithm.recourse.actions import Actions, make_actions
from tasks.methods.raguel.algorithm.recourse.stepped import in_steps
from tasks.methods.raguel.algorithm.recourse.targets import Boundary
from tasks.methods.raguel.reproduction import hmda_series
from tasks.methods.raguel.reproduction.grid import BLOCKS, TOLERANCES
from tasks.methods.raguel.reproduction.hmda_series import Drawn, HmdaSeries
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.proof.work import Stored, answer, peak_mb

REPETITIONS, WARM_RECORDS = 7, 500
ATTRIBUTES = 10
SIZE, TOLERANCE = 100, 1 / 3
"""Of the blocks of long lists."""


@dataclass(frozen=True)
class People(Stored):
    """People, what they may change, and a linear boundary, to be handed from one process to another."""

    values: Floats
    group: Ints
    slope: Floats
    intercept: Floats
    """``(1,)``."""
    weight: Floats
    changeable: Bools
    step: Floats
    direction: Ints
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, values: Floats, group: Ints, boundary: Boundary, actions: Actions) -> "People":
        """The arrays of all this."""
        given = {each.name: getattr(actions, each.name) for each in fields(cls) if hasattr(actions, each.name)}
        return cls(values, group, boundary.slope, np.array([boundary.intercept]), **given)

    @property
    def boundary(self) -> Boundary:
        """The boundary again."""
        return Boundary(self.slope, float(self.intercept[0]))

    @property
    def actions(self) -> Actions:
        """What may be changed, again."""
        return Actions(**{each.name: getattr(self, each.name) for each in fields(Actions)})

    def records(self) -> Records:
        """The list of them."""
        found = targets.to_boundary(self.values, self.boundary, self.actions)
        return make_records(self.values, found, self.group, self.actions, self.boundary)


def costs(records: str, kind: str) -> dict[str, Any]:
    """Costs of drawn records with ten attributes: ``closed`` form, or ``bounded`` with directions and bounds."""
    rng, n = np.random.default_rng(0), int(records)
    values, boundary = rng.normal(size=(n, ATTRIBUTES)), Boundary(rng.normal(size=ATTRIBUTES), 0.3)
    weight = rng.uniform(0.1, 1, ATTRIBUTES)
    actions = make_actions(weight)
    if kind == "bounded":
        actions = make_actions(weight, direction=np.resize([1, -1, 0], ATTRIBUTES), lower=-4.0, upper=4.0)
    compiled = _compiled(lambda: targets.costs_to_boundary(values[:WARM_RECORDS], boundary, actions))
    seconds = _least(lambda: targets.costs_to_boundary(values, boundary, actions))
    return {"rows": n, "seconds": seconds, "compile_s": compiled, "peak_mb": peak_mb()}


def steps(file: str, most: str) -> dict[str, Any]:
    """Counterfactual points in whole steps, with so many changed attributes at most, for every case of a file."""
    people, limit = People.read(Path(file)), int(most) or None
    values, boundary, actions = people.values, people.boundary, people.actions
    compiled = _compiled(lambda: in_steps(values[:1], boundary, actions, limit))
    start = time.perf_counter()
    found = in_steps(values, boundary, actions, limit)
    seconds = time.perf_counter() - start
    refused, unproven = int((~found.targets.reached).sum()), int((~found.proven).sum())
    return {
        "rows": len(values),
        "cases": found.cases,
        "seconds": seconds,
        "compile_s": compiled,
        "refused": refused,
        "unproven": unproven,
        "peak_mb": peak_mb(),
    }


def one_by_one(file: str) -> dict[str, Any]:
    """Algorithm 1 on everybody in a file, after costs, at every tolerance of the paper."""
    listed = People.read(Path(file)).records()
    few = listed.rows(np.arange(min(WARM_RECORDS, len(listed.cost))))
    compiled = _compiled(lambda: rerank(few, _held(few.group), Reranking()))
    seconds = {t: _least(lambda t=t: rerank(listed, _held(listed.group, t), Reranking())) for t in TOLERANCES}  # type: ignore[misc]
    return {"rows": len(listed.cost), "seconds": max(seconds.values()), "compile_s": compiled, "peak_mb": peak_mb()}


def in_blocks(file: str) -> dict[str, Any]:
    """Algorithm 2 on everybody in a file, at every setting of the paper's grid: the slowest of them."""
    listed = People.read(Path(file)).records()
    few = listed.rows(np.arange(min(WARM_RECORDS, len(listed.cost))))
    compiled = _compiled(lambda: rerank_blocks(few, _held(few.group), 20, BlockRules()))
    seconds = {}
    for tolerance in TOLERANCES:
        held = _held(listed.group, tolerance)
        for blocks in BLOCKS:
            size = block_size(len(listed.cost), blocks)
            seconds[blocks, tolerance] = _least(lambda h=held, s=size: rerank_blocks(listed, h, s, BlockRules()))  # type: ignore[misc]
    slowest = max(seconds, key=lambda setting: seconds[setting])
    return {
        "rows": len(listed.cost),
        "seconds": seconds[slowest],
        "slowest": slowest,
        "median_s": float(np.median(list(seconds.values()))),
        "compile_s": compiled,
        "peak_mb": peak_mb(),
    }


def drawn(records: str) -> dict[str, Any]:
    """A drawn list of costs in blocks of 100, with the sort."""
    few, listed = (_of_drawn(_drawn(n)) for n in (WARM_RECORDS, int(records)))
    compiled = _compiled(lambda: rerank_blocks(few, _held(few.group), SIZE, BlockRules()))
    held = _held(listed.group)
    cpu = time.process_time()
    seconds = _least(lambda: rerank_blocks(listed, held, SIZE, BlockRules()))
    cpu_s = (time.process_time() - cpu) / REPETITIONS
    sort = _least(listed.ranked)
    return {
        "rows": len(listed.cost),
        "seconds": seconds,
        "cpu_s": cpu_s,
        "sort_s": sort,
        "compile_s": compiled,
        "peak_mb": peak_mb(),
    }


def _held(group: Ints, tolerance: float = TOLERANCE) -> Representation:
    return representation(group, 2, 0, tolerance)


def _drawn(records: int, seed: int = 0) -> Drawn:
    return hmda_series.draw(records, HmdaSeries(), np.random.default_rng(seed))


def _of_drawn(given: Drawn) -> Records:
    return of_costs(given.cost, given.group)


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
