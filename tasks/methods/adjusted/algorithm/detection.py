"""Adjusted disparities: how much more often a group is denied than comparable applicants."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from schemas.terms import Note
from tasks.methods.adjusted.algorithm.design import Applications
from tasks.methods.adjusted.algorithm.estimators import FEW, INDEPENDENT
from tasks.methods.adjusted.settings import EFFECT, EXCHANGED, OVERLAP, AdjustedSettings
from tasks.numerics.arrays import Bools, Ints
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Evidence, Findings, Inference
from tasks.numerics.statistics.intervals import Changes, error, lower, upper
from tasks.numerics.statistics.regression import ENOUGH

# --------------------------------------------------------------------------------------------------------------------
# Finds controls that determine the decision. With such a control held fixed, nothing remains to compare.
#
# A reason of denial, a copy of the decision, or an automated result that is always followed: among applicants of one
# such category all were decided alike, whatever their group, and an effect of 0 says nothing about how they came into
# it.
#
# Scope: which controls. That no verdict rests on an effect with such a control: ``detection``.


TELLING: Final = "tells_decision"
"""How a reason begins that names such a control."""
FEWEST_APPROVED, MOST_DENIED = 0.05, 0.95
"""Categories tell the decision if those that are commoner among the denied hold fewer than the first share of the
approved, and more than the second of the denied."""
ROWS_A_CATEGORY = 20
"""With fewer on average a column determines it by chance, as names and numbers of files do."""
MOST_VALUES = 2
"""Of a number that counts as a category: 0 and 1."""
FIRST = 1000
"""Rows by which most numbers are seen to be none."""


def telling(applications: Applications) -> dict[str, str]:
    """Name of each control that determines the decision -> the name of its block."""
    telling_blocks = {}
    for block in applications.blocks:
        for control in block.controls:
            finite = np.isfinite(control.values)
            first = control.values[:FIRST][finite[:FIRST]]
            if control.kind != "category" and len(np.unique(first)) > MOST_VALUES:
                continue  # of many rows most of the time goes into sorting
            side, (names, code) = applications.denied[finite], np.unique(control.values[finite], return_inverse=True)
            if control.kind != "category" and len(names) > MOST_VALUES:
                continue
            if not side.any() or side.all() or len(names) * ROWS_A_CATEGORY > len(code):
                continue
            shares = [np.bincount(code[of], minlength=len(names)) / of.sum() for of in (~side, side)]
            commoner = shares[1] > shares[0]
            if shares[0][commoner].sum() < FEWEST_APPROVED and shares[1][commoner].sum() > MOST_DENIED:
                telling_blocks[control.name] = block.name
    return telling_blocks


# --------------------------------------------------------------------------------------------------------------------
# The effect of exchanging a protected attribute in the model itself: what it does to equals, by its own answer.
#
# The mean over the members of a group of [denied as they are] less [denied with the attribute exchanged to the
# reference group]: the signed form of the causal discrimination score (Galhotra, Brun and Meliou 2017, Fairness
# Testing). The model is held fixed, so that sampling error is that of the members alone; nothing is regressed, and no
# column is unseen, as the model sees its own columns only.


@dataclass(frozen=True)
class Exchange:
    """What the exchange does to one group."""

    group: int
    changes: Changes
    """``raised``: members who are denied and would not be; ``lowered``: those who are approved and would not be."""
    denied: int
    """Members who are denied as they are."""
    low: float
    high: float

    @property
    def value(self) -> float:
        """Share of the first less share of the second."""
        return self.changes.mean


def effects(
    denied: Bools, exchanged: Bools, group: Ints, groups: int, reference: int, level: float
) -> Iterator[Exchange]:
    """The effect on each group other than the reference group that has members.

    Args:
        denied: ``(n,)`` decisions as they are.
        exchanged: ``(n,)`` whether they would be denied with the attribute exchanged.
        group: ``(n,)`` number of each group.
        groups: how many there are.
        reference: number of the reference group.
        level: of the intervals.
    """
    for number in range(groups):
        in_group = group == number
        n = int(in_group.sum())
        if number == reference or not n:
            continue
        raised, lowered = (denied & ~exchanged & in_group).sum(), (~denied & exchanged & in_group).sum()
        of = Changes(int(raised), int(lowered), n)
        ends = lower(of, (1 - level) / 2), upper(of, (1 - level) / 2)
        yield Exchange(number, of, int(np.sum(denied & in_group)), *ends)


# --------------------------------------------------------------------------------------------------------------------
# Adjusted disparities: how much more often a group is denied than applicants like them in the reference group.
#
# No row has a finding: a regression compares groups, and says nothing of a single applicant. Its estimates are measures
# of groups, each with the interval of its own formula. The fits are made before, by the stage ``adjust``.
#
# Scope: measures of estimates. The estimates: ``ladder``.


NORMAL_95: Final = 1.959963984540054
ENOUGH_SUPPORT: Final = ENOUGH
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
    """The rows that it is averaged over."""
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
    """Whether it is of the rung that is judged, by any estimator."""
    robustness: float = math.nan
    """Robustness value of the linear effect of that rung."""
    unseen: float = 0.0
    """How far an unseen column of unit strength moves it; 0 where it is not known."""


@dataclass(frozen=True)
class DetectionExchange:
    """What exchanging the attribute does to one group's decisions."""

    group: str
    n: int
    """Members."""
    changes: Changes | None = None
    """None where the attribute is not exchanged."""
    interval: tuple[float, float] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Beyond:
    """A measure of what lies beyond the decision: a price, or a standardised difference."""

    group: str
    measure: str
    parameters: Mapping[str, float | str]
    value: float
    """NaN where refused."""
    interval: tuple[float, float]
    n: int
    reason: str = ""
    se: float = math.nan
    """NaN of a measure for information."""
    df: float = math.inf
    robustness: float = math.nan
    unseen: float = 0.0


@dataclass(frozen=True)
class Steps:
    """The ladder of one decision maker and protected attribute."""

    every: tuple[Step, ...]
    exchanged: tuple[DetectionExchange, ...] = ()
    """Of a given model that takes the attribute, by group."""
    used: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Group -> applications and denials on every rung."""
    beyond: tuple[Beyond, ...] = ()

    def counted(self, group: str, reference: str) -> Counted | None:
        """Of both groups; None where it is not known."""
        return (*self.used[group], *self.used[reference]) if {group, reference} <= set(self.used) else None


def units(problem: Problem) -> Bools:
    """Rows with a finding, ``(n,)``: none."""
    return np.zeros(len(problem.group), np.bool_)


def detect(problem: Problem, settings: AdjustedSettings, rng: np.random.Generator) -> Detected:  # noqa: ARG001 as all
    """The measures of the ladder.

    Args:
        problem: One decision maker and one protected attribute; ``own`` is ``Steps``.
        settings: Not read: the ladder was made before.
        rng: Not read: nothing is left to chance.
    """
    steps = problem.method_data if isinstance(problem.method_data, Steps) else Steps(())
    numbers = {group: number for number, group in enumerate(problem.groups)}
    aggregates: list[Aggregate] = []
    for step in steps.every:
        if step.group not in numbers:
            continue
        group, row_counts = numbers[step.group], steps.counted(step.group, problem.groups[problem.reference])
        if step.primary:
            aggregates.append(measure_of(step, group, {}, EFFECT, row_counts))
        if step.judged_rung and step.estimator == "overlap":
            aggregates.append(measure_of(step, group, {}, OVERLAP, row_counts))
        parameters = {"rung": step.block, "estimator": step.estimator, "over": step.over}
        aggregates.append(measure_of(step, group, parameters, EFFECT))
    aggregates += [
        _exchanged(exchange, numbers[exchange.group]) for exchange in steps.exchanged if exchange.group in numbers
    ]
    aggregates += [_beyond(beyond, numbers[beyond.group]) for beyond in steps.beyond if beyond.group in numbers]
    rows, none, text = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, dtype=str)
    nobody_numbers = np.zeros(0, np.int32)
    nobody = Findings(rows, nobody_numbers, text, none, text), Evidence(rows, text, nobody_numbers, rows, none)
    return Detected(*nobody, (), (), tuple(aggregates))


def measure_of(
    step: Step, group: int, parameters: Mapping[str, float | str], measure: str, row_counts: Counted | None = None
) -> Aggregate:
    """A step as a measure: why there is no value, or why it is not judged, and its error."""
    notes: list[str] = []
    inference = interval = None
    if not math.isfinite(step.value):
        notes = [step.reason or "not estimated"]
    else:
        # overlap weights look only where both groups are
        if step.estimator != "overlap" and step.support < ENOUGH_SUPPORT:
            notes.append(Note.POOR_SUPPORT)
        notes += [note for reason_text, note in _UNJUDGED.items() if reason_text in step.reason]
        interval, se, above = (step.low, step.high), step.se, math.nan
        if not math.isfinite(se):  # a penalised fit has a likelihood interval, so each half gives one error
            se, above = (abs(step.value - end) / NORMAL_95 for end in interval)
        if not parameters:
            robustness, unseen = step.robustness, step.unseen
            inference = Inference(
                se, df=step.df, robustness=robustness, unseen=unseen, se_above=above, counts=row_counts
            )
    return Aggregate(
        group,
        0,
        measure,
        parameters,
        step.value,
        step.n,
        compared=False,
        reason="; ".join(notes),
        interval=interval,
        inference=inference,
    )


def _exchanged(exchange: DetectionExchange, group: int) -> Aggregate:
    """The effect of the exchange. Its events are the members with a changed decision."""
    of = exchange.changes
    if of is None:
        return Aggregate(group, 0, EXCHANGED, {}, math.nan, exchange.n, compared=False, reason=exchange.reason)
    return Aggregate(
        group,
        0,
        EXCHANGED,
        {},
        of.mean,
        exchange.n,
        compared=False,
        events=of.raised + of.lowered,
        interval=exchange.interval,
        inference=Inference(error(of), raised=of.raised, lowered=of.lowered),
    )


def _beyond(of: Beyond, group: int) -> Aggregate:
    """A price with the error that a verdict rests on; a standardised difference with its interval alone."""
    refused = not math.isfinite(of.value)
    inference = Inference(of.se, df=of.df, robustness=of.robustness, unseen=of.unseen)
    of_verdict = None if refused or not math.isfinite(of.se) else inference
    ends = None if refused else of.interval
    identity = (group, 0, of.measure, of.parameters, of.value, of.n)
    return Aggregate(*identity, compared=False, reason=of.reason, interval=ends, inference=of_verdict)
