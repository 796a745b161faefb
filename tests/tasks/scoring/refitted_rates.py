"""Approval rates of a fitted model by group, with their difference and ratio: coverage of the intervals by refits.

The truth is what the procedure gives with 300,000 rows of the same lender. Run by itself it prints a line for each:
``PYTHONPATH=. python tests/tasks/scoring/refitted_rates.py LENDER ROWS RUNS``, with a lender of ``LENDERS``.
"""

import sys
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from schemas.audit.limits import Verdicts
from schemas.audit.model import Model
from schemas.audit.spec import Protected
from tasks.metrics.verdicts import Gathered
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import Estimate, by_refits, estimate
from tasks.scoring.decision_makers import fitted
from tasks.scoring.fitting import refits

MODEL, REFITS, MANY = Model(), 200, 300_000
RACE = Protected(
    name="race", columns=("race",), groups={g: (g,) for g in ("group", "reference")}, reference="reference"
)


@dataclass(frozen=True)
class Lender:
    """17 % of the applicants are of the group; about 23 % of all are denied, by four numbers."""

    worse: float = 0.6
    """Standard deviations by which the group's finances are worse."""
    direct: float = 0.0
    """Added to the log odds of denial of a member."""
    curve: float = 0.0
    """Of the square of the first number, which the model does not see."""
    more: int = 0
    """Further columns; the first eight of them matter a little."""


LENDERS = {
    "plain": Lender(),
    "direct": Lender(direct=0.8),
    "equal": Lender(worse=0.0),
    "curved": Lender(curve=0.5),
    "wide": Lender(more=20),
}


class Interval(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


def draw(lender: Lender, rows: int, rng: np.random.Generator) -> tuple[Floats, Bools, Bools]:
    """Inputs, members of the group, favourable decisions."""
    group = rng.random(rows) < 0.17
    x = rng.normal(size=(rows, 4)) + np.outer(group, [-lender.worse, lender.worse / 2, 0.0, 0.0])
    index = 1.5 + x @ [0.9, -0.6, 0.3, -0.2] - lender.direct * group + lender.curve * (x[:, 0] ** 2 - 1)
    if lender.more:
        further = rng.normal(size=(rows, lender.more))
        x, index = np.column_stack([x, further]), index + 0.1 * further[:, :8].sum(axis=1)
    return x, group, rng.random(rows) < expit(index)


@cache
def truth(lender: Lender) -> dict[str, float]:
    """Of so many rows that neither the sample nor the fit is left to chance."""
    x, group, y = draw(lender, MANY, np.random.default_rng(99))
    favourable = fitted(x, y, Model(folds=2), 0).favourable
    own, other = favourable[group].mean(), favourable[~group].mean()
    return {"group": own, "reference": other, "difference": own - other, "ratio": own / other, "verdict": own / other}


def measured(lender: Lender, rows: int, seed: int) -> dict[str, Interval]:
    """The model's figures as measures and verdicts have them."""
    x, group, y = draw(lender, rows, np.random.default_rng([9, rows, seed]))
    favourable = fitted(x, y, MODEL, seed).favourable
    found = refits(x, y, np.ones(rows, dtype=bool), MODEL, REFITS, seed)
    assert found is not None
    approved = found.counts * found.favourable(x)
    rates = [approved[rows_].sum(axis=0) / found.counts[rows_].sum(axis=0) for rows_ in (group, ~group)]
    own, other = (
        by_refits(share_of(favourable[rows_]), each, 0.95) for rows_, each in zip((group, ~group), rates, strict=True)
    )
    difference, ratio = intervals.difference(own, other, 0.95), intervals.ratio(own, other, 0.95)
    value, half = own.value / other.value, 1.959964 * error_of_verdict(*rates)
    return {
        "group": Interval(own.value, own.low, own.high),
        "reference": Interval(other.value, other.low, other.high),
        "difference": Interval(own.value - other.value, difference.low, difference.high),
        "ratio": Interval(value, ratio.low, ratio.high),
        "verdict": Interval(value, value * np.exp(-half), value * np.exp(half)),
    }


def error_of_verdict(own: Floats, other: Floats) -> float:
    """Standard error of the logarithm of the ratio by which the theory ``outcome`` judges a model."""
    rates = {("race", "group"): own, ("race", "reference"): other}
    said = Gathered({}, {}, (RACE,), (), Verdicts(), rates)._error_of_model(RACE, "group")
    return np.nan if said is None else said


def share_of(favourable: Bools) -> Estimate:
    """The approved share of some rows."""
    counts = np.array([(~favourable).sum(), favourable.sum()])
    return estimate(np.array([0.0, 1.0]), counts, np.random.default_rng(0), 2, 0.95, share=True)


def coverage(lender: Lender, rows: int, runs: int) -> dict[str, Floats]:
    """By figure its bias, standard deviation, mean width over 3.92, and coverage of the 95 % interval."""
    every = [measured(lender, rows, seed) for seed in range(runs)]
    out = {}
    for name, true in truth(lender).items():
        value, low, high = np.array([each[name] for each in every]).T
        covered = ((low <= true) & (true <= high)).mean()
        out[name] = np.array([(value - true).mean(), value.std(ddof=1), (high - low).mean() / 3.92, covered])
    return out


def main(lender: str, rows: str, runs: str) -> None:
    """Print the coverage."""
    for name, (bias, sd, se, covered) in coverage(LENDERS[lender], int(rows), int(runs)).items():
        numbers = f"truth {truth(LENDERS[lender])[name]:.4f}, bias {bias:+.4f}, sd {sd:.4f}, width {se:.4f}"
        sys.stdout.write(f"{lender}, {rows} rows, {runs} runs: {name}: {numbers}, coverage {covered:.3f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
