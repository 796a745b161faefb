"""Output of a method: findings, the evidence behind them, tallies, aggregates and draws."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.numerics.arrays import Floats, Ints, Longs


@dataclass(frozen=True)
class Findings:
    """One entry per factual. A refusal is an entry like any other, with its reason."""

    row: Longs
    subgroup: Ints
    """Weakly connected component, numbered from 1 within the group by falling number of factuals."""
    verdict: NDArray[np.str_]
    """What was found, in the words of ``schemas.tables.findings.VERDICTS``."""
    statistic: Floats
    """The method's statistic, NaN where refused; for FGCE the cost of the cheapest feasible counterfactual."""
    refusal: NDArray[np.str_]
    """Empty, or the reason (``schemas.terms.Refusal``)."""
    tested: "Tested | None" = None
    """Of a method that tests every unit."""


@dataclass(frozen=True)
class Tested:
    """The test behind each finding. NaN where the finding was refused."""

    control: Floats
    """``(f,)`` share of unfavourable decisions in the control group."""
    test: Floats
    """``(f,)`` the same in the test group."""
    low: Floats
    high: Floats
    p: Floats
    q: Floats
    """``(f,)`` p after Benjamini-Hochberg over the units of the same group."""


@dataclass(frozen=True)
class Evidence:
    """Evidence of a finding: pairs of rows with a role. Restricted: never in a report."""

    row: Longs
    role: NDArray[np.str_]
    rank: Ints
    other: Longs
    value: Floats

    def pieces(self) -> Iterator["Evidence"]:
        """All of it."""
        yield self


class Pieces(Protocol):
    """Evidence that may be too much to be held at a time."""

    def pieces(self) -> Iterator[Evidence]:
        """Pieces of it, in the order of its rows; at least one, which may be empty."""


@dataclass(frozen=True)
class Tally:
    """The distribution over units of one statistic: enough to print its mean and to resample it exactly.

    ``values`` may hold NaN for units on which the statistic is not defined (the cost of a factual without a feasible
    counterfactual): they are resampled with the others and left out of the mean.
    """

    group: int
    subgroup: int
    """0 for the whole group, else as in ``Findings.subgroup``."""
    measure: str
    parameters: Mapping[str, float | str]
    values: Floats
    counts: Longs
    headline: bool
    """Whether the difference from the reference group is tested."""
    compared: bool = True
    """Whether the difference and the ratio to the reference group are wanted."""
    share: bool = False
    """Whether no value can be below 0 or above 1: then a sample of zeros, or of ones, has a binomial interval."""


@dataclass(frozen=True)
class Inference:
    """What a verdict on an aggregate rests on: its sampling error, or the p of a test that has no interval."""

    se: float = math.nan
    """Standard error of the value, or of its logarithm (``scale``)."""
    scale: Literal["linear", "log"] = "linear"
    """On which the value is normal, or t; ratios on the logarithm."""
    df: float = math.inf
    """Degrees of freedom of Student's t; infinite for the normal."""
    p: float = math.nan
    """One-sided p of "no larger than under the null", of a test without an interval."""
    robustness: float = math.nan
    """Robustness value: what an unseen column has to explain of both to bring the value to zero."""
    unseen: float = 0.0
    """How far an unseen column moves the value, per sqrt(R2y R2d / (1 - R2d)): se sqrt(df) of the linear fit."""
    raised: int | None = None
    """Of a paired difference, the mean over units of 1, 0 or -1: units on which it is 1. Its tests are then those of
    ``tasks.numerics.statistics.intervals``, and not by the standard error."""
    lowered: int | None = None
    """Units on which it is -1."""
    se_above: float = math.nan
    """Standard error towards larger values, of an interval that is wider on one side; NaN: as ``se``."""
    counts: tuple[int, int, int, int] | None = None
    """Applications and denials of the group, and of the reference group, that the value rests on; None: all of them."""


@dataclass(frozen=True)
class Aggregate:
    """A measure of a group that is no mean over its units (an optimum, an area, a coefficient).

    Its interval comes from ``replicates``, or from the method itself where there is a formula for it (``interval``).
    """

    group: int
    subgroup: int
    """0 for the whole group, else as in ``Findings.subgroup``."""
    measure: str
    parameters: Mapping[str, float | str]
    value: float
    """NaN where it is refused; ``reason`` then says why."""
    n: int
    """Units that it is about."""
    headline: bool = False
    """Whether the difference from the reference group is tested."""
    compared: bool = True
    """Whether the difference and the ratio to the reference group are wanted."""
    events: int | None = None
    """Units that the value counts, where it counts units: a small number of them is withheld like any small cell."""
    reason: str = ""
    """Why there is no value, or how far a bound may be from the optimum; empty for an exact value."""
    replicates: Floats = field(default_factory=lambda: np.zeros(0))
    """``(resamples,)`` the measure on units drawn anew with replacement, or none; NaN where it is refused."""
    interval: tuple[float, float] | None = None
    """Both ends at the level of the audit, by a formula of the method; None where replicates make the interval."""
    inference: Inference | None = None
    """Of a measure that a theory of harm may be judged by (``Method.verdict_measures``); else None."""


@dataclass(frozen=True)
class Draws:
    """Draws of one statistic of a group, recomputed on rows that differ from the reference at most in size."""

    group: int
    measure: str
    parameters: Mapping[str, float | str]
    values: Floats
    """``(draws,)``; NaN where a draw has no unit on which the statistic is defined."""
    reason: str = ""
    """Why values among them are no more than bounds; empty where none is."""
    reference: Literal["size_matched", "null"] = "size_matched"
    """What was drawn: the reference group at the group's size, or labels that tell nothing (permuted)."""


@dataclass(frozen=True)
class Detected:
    """All results of a method on a problem."""

    findings: Findings
    evidence: Pieces
    tallies: tuple[Tally, ...]
    draws: tuple[Draws, ...]
    aggregates: tuple[Aggregate, ...] = ()

    @classmethod
    def refused(cls, measures: Iterable[str], members: Mapping[int, int], reason: str) -> "Detected":
        """Results of a problem that a method cannot work on: no findings, and each measure without a value.

        Args:
            measures: Names of the measures.
            members: By number of the group its members.
            reason: Why the method cannot work on the problem.
        """
        rows, words, numbers = np.zeros(0, np.int64), np.zeros(0, "<U1"), np.zeros(0)
        ranks = rows.astype(np.int32)
        return cls(
            Findings(rows, ranks, words, numbers, words),
            Evidence(rows, words, ranks, rows, numbers),
            (),
            (),
            tuple(
                Aggregate(group, 0, measure, {}, math.nan, n, reason=reason)
                for measure in measures
                for group, n in members.items()
            ),
        )
