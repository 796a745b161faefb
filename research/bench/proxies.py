"""Planted lenders of applicants with probabilities of race: how often the interval of a gap holds the truth.

Race is drawn by its probability, and denial by race, finances and, of some lenders, the neighbourhood. Coverage is that
of the regression on the probabilities. Where the neighbourhood counts besides race, no estimator is right, and that is
why none is judged: of such lenders the bounds have to hold the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from research.benchmark import Bench, Room, Row, against, row
from tasks.methods.adjusted.algorithm.proxies import RACES, ProxyGap, gaps
from tasks.numerics.arrays import Bools, Floats, Ints

ROWS, REPS = 1_500, 1_000
"""Applicants of a lender, and lenders of each kind, where nobody says how many."""
LOW, HIGH = 0.93, 0.97
"""Between these shares an interval of 95 % has to hold the truth."""
TRUTH_ROWS = 1_000_000
CROWD = 200_000
NEIGHBOURHOODS = (0.0, 0.144)
"""What a unit of the probability adds to denial, of the applicants by whom the three estimates are compared."""
MINIMUM, LEVEL = 30, 0.95


@dataclass(frozen=True)
class ProxyLender:
    """A kind of lender, by what its denials depend on."""

    name: str
    weights: tuple[float, ...]
    """Parameters of the Dirichlet distribution of the probabilities, by ``RACES``; 0 of a race that does not occur."""
    effect: float
    """On the log odds of denial, of every race but white."""
    worse: float = 0.0
    """How much lower the finances of these races are, in standard deviations."""
    neighbourhood: float = 0.0
    """On the log odds of denial, for each unit of the probability not to be white."""
    rows: int = ROWS

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Bools, Floats, Ints]:
        """Denials ``(n,)``, probabilities ``(n, 6)`` and races ``(n,)``, which no lender of this kind knows."""
        weights = rng.gamma(np.array(self.weights), size=(n, len(RACES)))
        p = weights / weights.sum(axis=1, keepdims=True)
        race = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
        other = race != 0
        finances = rng.standard_normal(n) - self.worse * other
        odds = -1.6 + self.effect * other - 0.8 * finances + self.neighbourhood * (1 - p[:, 0])
        return rng.random(n) < expit(odds), p, race.astype(np.int32)

    def truth(self, race: int) -> float:
        """Difference of the share denied between a race and white applicants, by very many applicants."""
        denied, _, races = self.draw(np.random.default_rng(0), TRUTH_ROWS)
        return float(denied[races == race].mean() - denied[races == 0].mean())


TWO, THREE = (1.6, 0.4, 0, 0, 0, 0), (1.2, 0.3, 0, 0, 0, 0.5)
LENDERS = (
    ProxyLender("no effect", TWO, 0.0),
    ProxyLender("no effect, finances worse by 0.6", TWO, 0.0, worse=0.6),
    ProxyLender("log odds +0.5", TWO, 0.5),
    ProxyLender("log odds +0.5, 6,000 rows", TWO, 0.5, rows=6_000),
    ProxyLender("log odds +0.5, three races", THREE, 0.5),
    ProxyLender("log odds +0.8, a race of 5 %", (2.85, 0.15, 0, 0, 0, 0), 0.8, rows=6_000),
    ProxyLender("log odds +0.5, and the neighbourhood +0.8", TWO, 0.5, neighbourhood=0.8),
)


def estimates(lender: ProxyLender, seed: int, rows: int | None = None) -> dict[tuple[str, str], ProxyGap]:
    """The gaps of one lender of a kind by race and estimator."""
    denied, p, _ = lender.draw(np.random.default_rng([seed, LENDERS.index(lender)]), rows or lender.rows)
    return {(gap.race, gap.estimator): gap for gap in gaps(denied, p, "white", MINIMUM, LEVEL)}


def coverage(lender: ProxyLender, race: str, reps: int, rows: int | None = None) -> tuple[float, float, float]:
    """Share of lenders with an interval that holds the truth, of those with such bounds, and the mean error."""
    truth = lender.truth(RACES.index(race))
    regressions = [estimates(lender, seed, rows)[race, "regression"] for seed in range(reps)]
    inside = np.mean([gap.low <= truth <= gap.high for gap in regressions])
    bounded = np.mean([gap.bound_low <= truth <= gap.bound_high for gap in regressions])
    return float(inside), float(bounded), float(np.mean([gap.value for gap in regressions]) - truth)


def crowd(neighbourhood: float, seed: int, rows: int = CROWD) -> tuple[float, dict[str, ProxyGap]]:
    """The true gap of many applicants with calibrated probabilities to be Black, and the estimates of it.

    Black applicants are denied 6.15 points more often, and each unit of the probability adds ``neighbourhood``.
    """
    rng = np.random.default_rng(seed)
    p = np.zeros((rows, len(RACES)))
    p[:, RACES.index("black")] = black = rng.beta(0.4, 1.6, rows)
    p[:, RACES.index("white")] = 1 - black
    is_black = rng.random(rows) < black
    denied = rng.random(rows) < 0.12 + 0.0615 * is_black + neighbourhood * black
    truth = float(denied[is_black].mean() - denied[~is_black].mean())
    return truth, {gap.estimator: gap for gap in gaps(denied, p, "white", MINIMUM, LEVEL)}


def _lines(room: Room) -> Iterator[Row]:
    reps = room.reps or REPS
    for neighbourhood in NEIGHBOURHOODS:
        truth, estimates_of_crowd = crowd(neighbourhood, seed=1)
        words = ", ".join(f"{name} {gap.value:.3f}" for name, gap in estimates_of_crowd.items())
        holds = all(gap.bound_low < truth < gap.bound_high for gap in estimates_of_crowd.values())
        target = against("the bounds hold the truth", holds)
        yield row(
            f"neighbourhood {neighbourhood:+.3f}",
            CROWD,
            "three estimates",
            **target,
            found=f"true {truth:.4f}; {words}",
        )
    for lender in LENDERS:
        for race in [race for race, weight in zip(RACES, lender.weights, strict=True) if weight and race != "white"]:
            inside, bounded, error = coverage(lender, race, reps, room.rows)
            words = f"coverage {inside:.3f}, bounds {bounded:.3f}, mean error {error:+.4f}"
            if lender.neighbourhood:
                target = against("the bounds hold the truth", bounded >= LOW)
            else:
                target = against(f"coverage {LOW} to {HIGH}", LOW <= inside <= HIGH)
            yield row(f"{lender.name}: {race}", reps, "coverage", ratio=inside, **target, found=words)


BENCH = Bench("proxies", _lines, repeats=True)
