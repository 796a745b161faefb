"""Adjusted disparities: how much more often a group is denied than applicants like them in the reference group.

Nobody has a finding: a regression compares groups, and says nothing of a single applicant. Its estimates are measures
of groups, each with the interval of its own formula. The fits are made before, by the stage ``adjust``.

Scope: measures of estimates. The estimates: ``ladder``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from schemas.terms import Note
from tasks.methods.adjusted.algorithm.ladder.estimators.rung import FEW, INDEPENDENT
from tasks.methods.adjusted.algorithm.telling import TELLING
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Bools
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Evidence, Findings, Inference
from tasks.numerics.statistics.paired_difference import Changes, error

EFFECT: Final = "adjusted_effect"
"""The measure: without parameters that of the primary rung, by logit, over the group's own rows."""
OVERLAP: Final = "overlap_effect"
"""The overlap-weighted difference of the primary rung, which stands beside it."""
EXCHANGED: Final = "exchanged_effect"
"""What a given model does to a group by its own answer, with the attribute exchanged."""
NORMAL_95: Final = 1.959963984540054
ENOUGH_SUPPORT: Final = 0.8
"""Share of a group that must be where both groups are for an adjusted difference to be judged."""
_UNJUDGED: Final = {
    FEW: Note.FEW_CLUSTERS,
    INDEPENDENT: Note.ROWS_INDEPENDENT,
    TELLING: Note.TELLS_DECISION,
}
"""What a reason may say -> the note that keeps an estimate from being judged."""
Counted = tuple[int, int, int, int]
"""Applications and denials of a group, and of the reference group."""


@dataclass(frozen=True)
class Step:
    """One estimate of the ladder."""

    block: str
    """Name of the last block that its rung adjusts for; ``none`` of rung 0."""
    group: str
    estimator: str
    over: str
    """Over whose rows it is averaged."""
    primary: bool
    value: float
    """Difference of the probability of denial; NaN where refused."""
    low: float
    high: float
    n: int
    """Rows of the group."""
    support: float
    """Share of them where both groups are; NaN where it is not known."""
    reason: str
    se: float = math.nan
    df: float = math.inf
    judged_rung: bool = False
    """Whether it is of the rung that is judged, by whatever estimator."""
    robustness: float = math.nan
    """Robustness value of the linear effect of that rung."""
    unseen: float = 0.0
    """How far an unseen column of unit strength moves it; 0 where it is not known."""


@dataclass(frozen=True)
class Exchange:
    """What exchanging the attribute does to one group's decisions."""

    group: str
    n: int
    """Members."""
    changes: Changes | None = None
    """None where the attribute is not exchanged."""
    interval: tuple[float, float] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Steps:
    """The ladder of one decision maker and protected attribute."""

    every: tuple[Step, ...]
    exchanged: tuple[Exchange, ...] = ()
    """Of a given model that takes the attribute, by group."""
    used: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Group -> applications and denials on every rung."""

    def counted(self, group: str, reference: str) -> Counted | None:
        """Of both groups; None where it is not known."""
        return (*self.used[group], *self.used[reference]) if {group, reference} <= set(self.used) else None


def units(problem: Problem) -> Bools:
    """Who gets a finding, ``(n,)``: nobody."""
    return np.zeros(len(problem.group), np.bool_)


def detect(problem: Problem, settings: AdjustedSettings, rng: np.random.Generator) -> Detected:  # noqa: ARG001 as all
    """The measures of the ladder.

    Args:
        problem: One decision maker and one protected attribute; ``own`` is ``Steps``.
        settings: Not read: the ladder was made before.
        rng: Not read: nothing is left to chance.
    """
    own = problem.own if isinstance(problem.own, Steps) else Steps(())
    numbers = {group: number for number, group in enumerate(problem.groups)}
    known = [step for step in own.every if step.group in numbers]
    made: list[Aggregate] = []
    for step in known:
        counted = own.counted(step.group, problem.groups[problem.reference])
        made += _measures(step, numbers[step.group], counted)
    made += [_exchanged(each, numbers[each.group]) for each in own.exchanged if each.group in numbers]
    return Detected(*_nobody(), (), (), tuple(made))


def _measures(step: Step, group: int, counted: Counted | None) -> Iterator[Aggregate]:
    if step.primary:
        yield _measure(step, group, {}, EFFECT, counted)
    if step.judged_rung and step.estimator == "overlap":
        yield _measure(step, group, {}, OVERLAP, counted)
    yield _measure(step, group, {"rung": step.block, "estimator": step.estimator, "over": step.over}, EFFECT)


def _measure(
    step: Step, group: int, parameters: Mapping[str, float | str], measure: str, counted: Counted | None = None
) -> Aggregate:
    return Aggregate(
        group,
        0,
        measure,
        parameters,
        step.value,
        step.n,
        compared=False,
        reason=_qualified(step),
        interval=(step.low, step.high) if math.isfinite(step.value) else None,
        inference=None if parameters else _inference(step, counted),
    )


def _exchanged(each: Exchange, group: int) -> Aggregate:
    """The effect of the exchange; its events are the members whose decision changes."""
    of = each.changes
    if of is None:
        return Aggregate(group, 0, EXCHANGED, {}, math.nan, each.n, compared=False, reason=each.reason)
    return Aggregate(
        group,
        0,
        EXCHANGED,
        {},
        of.mean,
        each.n,
        compared=False,
        events=of.raised + of.lowered,
        interval=each.interval,
        inference=Inference(error(of), raised=of.raised, lowered=of.lowered),
    )


def _inference(step: Step, counted: Counted | None) -> Inference | None:
    """Its standard error; of a penalised fit, whose interval is a likelihood's, one from each half of the interval."""
    if not math.isfinite(step.value):
        return None
    se, above = step.se, math.nan
    if not math.isfinite(se):
        se, above = (abs(step.value - end) / NORMAL_95 for end in (step.low, step.high))
    return Inference(se, df=step.df, robustness=step.robustness, unseen=step.unseen, se_above=above, counted=counted)


def _qualified(step: Step) -> str:
    """Why there is no value, or why it is not judged; an overlap-weighted one looks where both groups are."""
    if not math.isfinite(step.value):
        return step.reason or "not estimated"
    poor = step.estimator != "overlap" and step.support < ENOUGH_SUPPORT
    notes = [Note.POOR_SUPPORT] * poor + [note for said, note in _UNJUDGED.items() if said in step.reason]
    return "; ".join(notes)


def _nobody() -> tuple[Findings, Evidence]:
    rows, none, text = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, dtype=str)
    numbers = np.zeros(0, np.int32)
    return Findings(rows, numbers, text, none, text), Evidence(rows, text, numbers, rows, none)
