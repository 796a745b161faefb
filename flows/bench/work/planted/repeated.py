"""Repeats audits of planted lenders, and counts states that are wrong and intervals that miss the truth.

Scope: repetitions and shares. One audit: ``audit``. Scenarios and targets: ``verdicts``.
"""

import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean

import numpy as np
from threadpoolctl import threadpool_limits

from flows.bench.work.planted.audit import judge_measures, measure_lender
from schemas.audit.limits import Verdicts
from schemas.terms import State, Theory
from tasks.ingest.synthetic.algorithm.planted_lenders import (
    Applied,
    Lender,
    Scenario,
    Truth,
    draw,
    overlap_weighted,
    population,
)
from tasks.methods.adjusted.algorithm.detection import NORMAL_95, OVERLAP
from tasks.metrics.algorithm.measures import Given
from tasks.metrics.algorithm.verdicts.evidence import Estimated
from tasks.metrics.algorithm.verdicts.judgement import Limit, Verdict

THEORIES = (Theory.DIRECT, Theory.TOTAL, Theory.OUTCOME)
"""Theories whose truth is planted."""
TRUE = {Theory.DIRECT: "direct", Theory.TOTAL: "total", Theory.OUTCOME: "ratio"}
"""What a theory is about, by name in ``Truth``."""
MEDIATED = "mediated_effect"
"""The measure of what is total and not direct."""
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
    harmed: Mapping[Theory, State]
    """Of the harmed group's own row."""
    false_breach: Mapping[Theory, bool]
    """Whether a group breaches whose truth keeps the limit, or lies exactly at it."""
    beyond: Mapping[Theory, tuple[bool, ...]]
    """For each group whose truth lies beyond the limit, or exactly at it, whether it is within."""
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

    def of_harmed(self, theory: Theory, state: State) -> float:
        """How often the harmed group's own row did."""
        return mean(each.harmed[theory] is state for each in self.every)

    def false_breach(self, theory: Theory) -> float:
        """How often a group was said to breach that does not: familywise."""
        return mean(each.false_breach[theory] for each in self.every)

    def false_within(self, theory: Theory) -> float:
        """How often a group beyond the limit was said to be within; NaN where there is none.

        It is a share of groups: no correction is made for many, as a theory is within only if all of them are.
        """
        said = [wrong for each in self.every for wrong in each.beyond[theory]]
        return mean(said) if said else math.nan

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
        given = measure_lender(applied, rng, imagined=plan.total)
        found = judge_measures(applied, given, Verdicts(columns_complete=plan.complete))
    primary = [row for row in found.rows if row.case.role == "primary" and row.case.theory in THEORIES]
    true = dict(zip(plan.scenario.groups, population(plan.lender, plan.scenario), strict=True))
    return Once(
        {theory: found.theories[theory].state for theory in THEORIES},
        {row.case.theory: row.state for row in primary if row.case.group == plan.scenario.groups[HARMED]},
        {theory: any(row.state is State.BREACH for row in of) for theory, of in _where(primary, true, inside=True)},
        {theory: tuple(row.state is State.WITHIN for row in of) for theory, of in _where(primary, true, inside=False)},
        {**_covered(found.rows, applied, plan), **_mediated(given, applied)} if plan.complete else {},
        sum(row.low == row.high for row in found.rows),
    )


def _where(
    rows: Sequence[Verdict], true: Mapping[str, Truth], *, inside: bool
) -> Iterator[tuple[Theory, list[Verdict]]]:
    """By theory the rows of groups whose truth keeps the limit, or lies beyond it; at the limit it does both."""
    for theory in THEORIES:
        own = [(row, row.case.limit) for row in rows if row.case.theory is theory]
        over = [(row, _beyond(getattr(true[row.case.group], TRUE[theory]), limit)) for row, limit in own if limit]
        yield theory, [row for row, by in over if (by <= _NEAR if inside else by >= -_NEAR)]


def _beyond(value: float, limit: Limit) -> float:
    """By how much the truth lies beyond the limit; below 0 where it keeps it."""
    return value - limit.value if limit.side == "at_most" else limit.value - value


def _covered(rows: Iterable[Verdict], applied: Applied, plan: Plan) -> dict[str, bool]:
    """Effects are those on the applicants drawn; the ratio, and the effect where groups overlap, the population's."""
    effects = applied.truth(HARMED)
    out = {}
    for row in rows:
        case = row.case
        if case.group != applied.scenario.groups[HARMED] or case.evidence is None:
            continue
        if case.theory is Theory.OUTCOME:
            truth = population(plan.lender, plan.scenario)[HARMED].ratio
        elif case.measure == OVERLAP:
            truth = overlap_weighted(plan.lender, plan.scenario)[HARMED]
        else:
            truth = getattr(effects, TRUE[case.theory])
        evidence = replace(case.evidence, bias=0.0) if isinstance(case.evidence, Estimated) else case.evidence
        out[case.measure] = evidence.bound(0.025, upper=False) <= truth <= evidence.bound(0.025, upper=True)
    return out


def _mediated(given: Iterable[Given], applied: Applied) -> dict[str, bool]:
    """What goes through the mediators has no row of its own among the verdicts."""
    effects, own = applied.truth(HARMED), applied.scenario.groups[HARMED]
    return {
        each.family.measure: abs(each.value - (effects.total - effects.direct)) <= NORMAL_95 * each.inference.se
        for each in given
        if each.family.measure == MEDIATED and each.group == own and each.inference is not None
    }
