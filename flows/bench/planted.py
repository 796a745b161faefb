"""Repeats audits of planted lenders, and counts states that are wrong and intervals that miss the truth.

Scope: repetitions and shares. One audit: ``planted_audit``. Scenarios and targets: ``verdicts``.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean

import numpy as np
from threadpoolctl import threadpool_limits

from flows.bench.planted_audit import judge_lender
from schemas.audit.limits import Verdicts
from schemas.terms import State, Theory
from tasks.ingest.synthetic.algorithm.planted_lenders import Applied, Lender, Scenario, Truth, draw, population
from tasks.metrics.algorithm.verdicts.evidence import Estimated
from tasks.metrics.algorithm.verdicts.judgement import Limit, Verdict

THEORIES = (Theory.DIRECT, Theory.TOTAL, Theory.OUTCOME)
"""Theories whose truth is planted."""
TRUE = {Theory.DIRECT: "direct", Theory.TOTAL: "total", Theory.OUTCOME: "ratio"}
"""What a theory is about, by name in ``Truth``."""
HARMED = 1
"""The group whose intervals are held against the truth."""
_NEAR = 2e-4
"""So near to a limit the truth counts as at it: a planted effect is known to four digits."""


@dataclass(frozen=True)
class Plan:
    """Audits of one scenario with one number of rows."""

    lender: Lender
    scenario: Scenario
    rows: int
    repetitions: int
    seed: int
    total: bool = True
    """Whether CST runs, too."""

    @property
    def complete(self) -> bool:
        """Whether the file holds every column that the lender decided by."""
        return not self.scenario.without


@dataclass(frozen=True)
class Once:
    """What one audit got right and wrong."""

    states: Mapping[Theory, State]
    false_breach: Mapping[Theory, bool]
    """Whether a group breaches whose truth keeps the limit, or lies exactly at it."""
    false_within: Mapping[Theory, bool]
    """Whether a group is within whose truth lies beyond the limit, or exactly at it."""
    covered: Mapping[str, bool]
    """By measure, whether the 95 % interval of the harmed group holds the truth."""
    without_width: int
    """Rows whose interval is a point."""


@dataclass(frozen=True)
class Shares:
    """What all repetitions of a plan say."""

    plan: Plan
    every: tuple[Once, ...]

    @property
    def theories(self) -> tuple[Theory, ...]:
        """Those that were judged."""
        return tuple(each for each in THEORIES if each is not Theory.TOTAL or self.plan.total)

    @property
    def measures(self) -> tuple[str, ...]:
        """Those whose intervals are held against the truth."""
        return tuple(dict.fromkeys(name for each in self.every for name in each.covered))

    def of(self, theory: Theory, state: State) -> float:
        """How often the theory ended in a state."""
        return mean(each.states[theory] is state for each in self.every)

    def false_breach(self, theory: Theory) -> float:
        """How often a group was said to breach that does not: familywise."""
        return mean(each.false_breach[theory] for each in self.every)

    def false_within(self, theory: Theory) -> float:
        """How often a group was said to be within that is not."""
        return mean(each.false_within[theory] for each in self.every)

    def covered(self, measure: str) -> tuple[float, int]:
        """How often an interval held the truth, and of how many."""
        said = [each.covered[measure] for each in self.every if measure in each.covered]
        return mean(said), len(said)


Spread = Callable[[Callable[[int], Once], Iterable[int]], Iterable[Once]]
"""Calls a function with each number: ``map``, or that of several processes."""


@contextmanager
def processes() -> Iterator[Spread]:
    """As many processes as there are cores; what they find does not depend on how many."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as pool:
        yield partial(pool.map, chunksize=5)


def repeat(plan: Plan, spread: Spread = map) -> Shares:
    """All repetitions of a plan."""
    return Shares(plan, tuple(spread(partial(once, plan), range(plan.repetitions))))


def once(plan: Plan, number: int) -> Once:
    """One repetition, whatever came before it."""
    rng = np.random.default_rng([plan.seed, plan.rows, number])
    with threadpool_limits(1):
        applied = draw(plan.lender, plan.scenario, plan.rows, rng)
        found = judge_lender(applied, Verdicts(columns_complete=plan.complete), rng, imagined=plan.total)
    primary = [row for row in found.rows if row.case.role == "primary" and row.case.theory in THEORIES]
    true = dict(zip(plan.scenario.groups, population(plan.lender, plan.scenario), strict=True))
    return Once(
        {theory: found.theories[theory].state for theory in THEORIES},
        _wrong(primary, true, State.BREACH),
        _wrong(primary, true, State.WITHIN),
        _covered(found.rows, applied, true) if plan.complete else {},
        sum(row.low == row.high for row in found.rows),
    )


def _wrong(rows: Iterable[Verdict], true: Mapping[str, Truth], state: State) -> dict[Theory, bool]:
    wrong = dict.fromkeys(THEORIES, False)
    for row in rows:
        if row.state is state and row.case.limit is not None:
            over = _beyond(getattr(true[row.case.group], TRUE[row.case.theory]), row.case.limit)
            wrong[row.case.theory] |= over <= _NEAR if state is State.BREACH else over >= -_NEAR
    return wrong


def _beyond(value: float, limit: Limit) -> float:
    """By how much the truth lies beyond the limit; below 0 where it keeps it."""
    return value - limit.value if limit.side == "at_most" else limit.value - value


def _covered(rows: Iterable[Verdict], applied: Applied, true: Mapping[str, Truth]) -> dict[str, bool]:
    """Effects are those on the applicants drawn, the ratio is the population's."""
    group = applied.scenario.groups[HARMED]
    effects = applied.truth(HARMED)
    out = {}
    for row in rows:
        case = row.case
        if case.group != group or case.evidence is None or case.measure == "overlap_effect":
            continue
        truth = true[group].ratio if case.theory is Theory.OUTCOME else getattr(effects, TRUE[case.theory])
        evidence = replace(case.evidence, bias=0.0) if isinstance(case.evidence, Estimated) else case.evidence
        out[case.measure] = evidence.bound(0.025, upper=False) <= truth <= evidence.bound(0.025, upper=True)
    return out
