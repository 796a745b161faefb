"""Officers of unlike strictness and no harm: how often each interval holds the truth, a row by office and measure.

Rows of one officer hang together. Held against 95 %: the judged effect, least squares with the clustered error and with
the wild bootstrap, and situation testing with its error by rows and by clusters. Counterfactuals are those of lenders
whose group has worse finances, which cause the true effect; their model is linear and fitted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import binom, norm, t

from research.bench.lenders import PURPOSES, Applied, Lender, decided_files
from research.benchmark import Bench, Room, Row, against, row
from schemas.terms import Kind
from tasks.methods.adjusted.algorithm.estimators import wild_interval
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.regressions import fit_linear
from tasks.methods.cst.algorithm.effects import effects
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.encoding import Columns

REPS = 60
NOMINAL = 0.05
CROWD = 5
"""Of so many officers one serves most of the group, where it is crowded."""
LIMIT = 0.02
SITUATIONS = CstSettings(ks=(30,), k=30)
RULES = Rules(LimitRule(LIMIT, 0.5, 0.2, 0.005), parts=None, beside=False, undecided=False)
MEASURES = {
    "adjusted_effect": ("as built", "wild bootstrap", "clustered error"),
    "st_effect": ("by clusters", "by rows"),
    "cst_effect": ("counterfactuals by clusters", "counterfactuals by rows"),
}
"""Measure -> the interval that a state rests on, and others next to it."""
WORSE = 0.5
"""Standard deviations by which finances of the group are worse where counterfactuals are tried."""
CAUSED = 1.06 * WORSE
"""Log odds of denial that this adds to a member: through money, score and debt."""


@dataclass(frozen=True)
class Office:
    """Officers, and whether a fifth of them serve four of five members of the group."""

    officers: int
    crowded: bool

    @property
    def few(self) -> int:
        """Officers who serve most of the group, where it is crowded."""
        return max(self.officers // CROWD, 1)

    def draw(self, rng: np.random.Generator, n: int, worse: float = 0.0) -> Lender:
        """A lender without harm; its officers differ by a standard deviation of 1 of the log odds.

        Its effect is that of finances worse by ``worse``, over officers.
        """
        applied, few = Applied.drawn(rng, n, worse=worse), self.few
        shares = []
        for of_few in (0.8, 0.06):
            rest = (1 - of_few) / (self.officers - few)
            shares.append(np.where(np.arange(self.officers) < few, of_few / few, rest))
        if not self.crowded:
            shares = [np.full(self.officers, 1 / self.officers)] * 2
        serving = [rng.choice(self.officers, n, p=share) for share in shares]
        officer = np.where(applied.member, *serving).astype(np.int32)
        chance = expit(applied.index + rng.standard_normal(self.officers)[officer])
        lender = decided_files(applied, chance, chance)
        index = applied.index[applied.member]
        effect = float((_over_officers(index) - _over_officers(index - CAUSED * worse / WORSE)).mean())
        return Lender(replace(lender.files, cluster=officer), effect)


SETTINGS = (
    *((Office(officers, crowded=False), 1_500) for officers in (5, 8, 12, 20)),
    *((Office(officers, crowded=True), 1_500) for officers in (5, 8, 12, 20)),
    *((Office(officers, crowded=True), 4_000) for officers in (12, 30)),
)
"""Offices, each with its applications."""


def _over_officers(index: Floats) -> Floats:
    """The mean chance of denial over officers who differ by a standard deviation of 1."""
    strictness, weight = np.polynomial.hermite_e.hermegauss(24)
    mean: Floats = expit(index[:, None] + strictness) @ (weight / weight.sum())
    return mean


def _columns(files: Files) -> Columns:
    """What situations are compared by: four numbers, the income by its logarithm, and the purpose."""
    values = np.column_stack([control.values for control in files.controls])
    values[:, 0] = np.log(values[:, 0])
    names = tuple(control.name for control in files.controls)
    return Columns(names, (*[Kind.CONTINUOUS] * 4, Kind.NOMINAL), ((), (), (), (), PURPOSES), values)


def intervals_of(files: Files, seed: int) -> dict[str, tuple[float, float, float]]:
    """Both ends of the 95 % interval of each estimate, and the end that a state outside is read from."""
    if files.cluster is None:
        raise ValueError("the bench needs officers")
    member = files.group == 1
    columns = _columns(files)
    numbers, purpose = columns.values[:, :4], columns.values[:, 4]
    (examined,) = examine(files, RULES, np.random.default_rng(seed))
    effect, error = examined.effect, examined.judged
    if effect is None or error is None:
        raise ValueError(examined.reason)
    out = {"as built": _ends(effect.value, error.plain.se, error.plain.df)}
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    indicators = [purpose == level for level in range(1, len(PURPOSES))]
    x = np.column_stack([np.ones(len(member)), member, scaled, *indicators]).astype(np.float64)
    denied = files.denied.astype(np.float64)
    fit = fit_linear(denied, x, files.cluster)
    value, se = float(fit.coefficients[1]), float(fit.se[1])
    out["clustered error"] = _ends(value, se, math.inf)
    low, high = wild_interval(x, denied, fit, 1, files.cluster, 1 - NOMINAL, np.random.default_rng(seed))
    out["wild bootstrap"] = low, high, low
    situations, _ = effects(columns, member, files.denied, None, SITUATIONS)
    out["by rows"] = _ends(situations.value, situations.se, math.inf)
    times = max(1.0, error.plain.se / error.se_by_rows)
    out["by clusters"] = _ends(situations.value, times * situations.se, error.plain.df)
    return out


def counterfactual_intervals(files: Files, seed: int) -> dict[str, tuple[float, float, float]]:
    """Both ends of the 95 % interval of the effect by counterfactuals, and the end that a state is read from."""
    (examined,) = examine(files, RULES, np.random.default_rng(seed))
    error, member = examined.judged, files.group == 1
    if error is None:
        raise ValueError(examined.reason)
    columns = _columns(files)
    numbers, purpose = columns.values[:, :4], columns.values[:, 4]

    def imagined(sample: Longs) -> Floats:
        """Members as of the reference group, by a linear model: money causes the score and the debt."""
        intercept, membership = np.ones(len(member)), member.astype(np.float64)
        shift = np.zeros(numbers.shape[1])
        for column, causes in enumerate(((), (0,), (0,))):
            x = np.column_stack([intercept, membership, *(numbers[:, cause] for cause in causes)])
            slopes = np.linalg.lstsq(x[sample], numbers[sample, column], rcond=None)[0]
            shift[column] = slopes[2:] @ shift[list(causes)] - slopes[1]
        return np.column_stack([numbers[member] + shift, purpose[member]])

    rng = np.random.default_rng(seed)
    every = np.arange(len(member))
    _, effect = effects(columns, member, files.denied, imagined(every), SITUATIONS, imagined, rng)
    if effect is None:
        raise ValueError("the bench needs counterfactuals")
    times = max(1.0, error.plain.se / error.se_by_rows)
    return {
        "counterfactuals by rows": _ends(effect.value, effect.se, math.inf),
        "counterfactuals by clusters": _ends(effect.value, times * effect.se, error.plain.df),
    }


def _ends(value: float, se: float, df: float) -> tuple[float, float, float]:
    """Both ends of a 95 % interval, and of the one-sided one."""
    quantile, one_sided = (float(norm.isf(p) if math.isinf(df) else t.isf(p, df)) for p in (NOMINAL / 2, NOMINAL))
    return value - quantile * se, value + quantile * se, value - one_sided * se


def lines_of(office: Office, reps: int, n: int) -> Iterator[Row]:
    """A row of each measure: how often its interval holds the truth, and excludes it as too low by its lower bound."""
    draws: dict[str, list[tuple[bool, bool]]] = {name: [] for names in MEASURES.values() for name in names}
    for seed in range(reps):
        lender = office.draw(np.random.default_rng([5, office.officers, seed]), n)
        worse = office.draw(np.random.default_rng([6, office.officers, seed]), n, WORSE)
        every = intervals_of(lender.files, seed) | counterfactual_intervals(worse.files, seed)
        for name, (low, high, above) in every.items():
            truth = worse.effect if name in MEASURES["cst_effect"] else lender.effect
            draws[name].append((low <= truth <= high, above > truth))
    shares = {name: np.mean(ends, axis=0) for name, ends in draws.items()}
    least = 1 - float(binom.ppf(0.99, reps, NOMINAL)) / reps
    where = f"{office.officers} officers, {f'{office.few} serve most of the group' if office.crowded else 'alike'}"
    for measure, (built, *further) in MEASURES.items():
        coverage, above = shares[built]
        words = [f"{name}: {shares[name][0]:.2f}" for name in further]
        numbers = "; ".join([*words, f"{built}: above the truth {above:.2f}"])
        target = against(f"at least {least:.2f}", bool(coverage >= least))
        yield row(where, n, measure, ratio=float(coverage), **target, found=numbers)


def _lines(room: Room) -> Iterator[Row]:
    for office, n in SETTINGS:
        yield from lines_of(office, room.reps or REPS, min(n, room.rows or n))


BENCH = Bench("clusters", _lines, repeats=True)
"""Coverage of intervals where rows of an officer hang together, at fixed seeds."""
