"""Planted lenders for CST: applicants with a known structural model, a known decision rule and so known effects.

Income and score are moved by the group; the amount asked for and the purpose are not. True effects are those on the
members drawn: direct, of the group on the decision; total, of the group and of what it moves.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from schemas.terms import Kind
from tasks.methods.cst.algorithm.contrasts import ADJUSTED, ExcessShare, designs_of, excess_share, sides_of
from tasks.methods.cst.algorithm.effects import EffectOf, effects
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns

SHARE = 0.17
SETTINGS = CstSettings(ks=(30,), k=30)
EFFECTS = ("st", "cst", "mediated")


@dataclass(frozen=True)
class Lender:
    """A scenario."""

    direct: float = 0.0
    """Added to the log odds of denial of a member."""
    worse: float = 0.0
    """Standard deviations by which the group moves income and score downwards."""
    apart: float = 0.0
    """The same of the amount, which the causal graph does not let the group move: finances differ, nobody is moved."""


NOISE = Lender()
MEDIATED = Lender(worse=0.5)
DIRECT = Lender(direct=0.5)
BETTER = Lender(direct=0.8, worse=-0.5)


@dataclass(frozen=True)
class Drawn:
    """One draw of ``n`` applicants."""

    member: Bools
    values: Floats
    """Logarithm of income, score, logarithm of the amount, purpose."""
    denied: Bools
    lender: Lender

    @property
    def columns(self) -> Columns:
        """The applicants."""
        kinds = (*[Kind.CONTINUOUS] * 3, Kind.NOMINAL)
        return Columns(("income", "score", "amount", "purpose"), kinds, ((), (), (), ("a", "b", "c")), self.values)

    @cached_property
    def truth(self) -> tuple[float, float, float]:
        """Direct and total effect on the members, and the share of them that is denied."""
        own = self.values[self.member]
        as_is = chance(own, np.ones(len(own)), self.lender)
        direct = float((as_is - chance(own, np.zeros(len(own)), self.lender)).mean())
        moved = own + moves(len(own), self.lender)
        total = float((as_is - chance(moved, np.zeros(len(own)), self.lender)).mean())
        return direct, total, float(as_is.mean())

    def imagined(self, sample: Longs | None = None) -> Floats:
        """The members as others, by regressions on the group (and income, of the score) of a sample of rows."""
        rows = np.arange(len(self.member)) if sample is None else sample
        group, (income, score) = self.member[rows].astype(float), self.values[rows, :2].T
        ones = np.ones(len(rows))
        of_income = np.linalg.lstsq(np.column_stack([ones, group]), income, rcond=None)[0]
        of_score = np.linalg.lstsq(np.column_stack([ones, group, income]), score, rcond=None)[0]
        out = self.values[self.member].copy()
        out[:, 0] -= of_income[1]
        out[:, 1] -= of_score[1] + of_score[2] * of_income[1]
        return out

    def effects(
        self, seed: int = 0, refitted: bool = True, settings: CstSettings = SETTINGS
    ) -> tuple[EffectOf, EffectOf]:
        """Those of situation testing and of CST."""
        rng, again = np.random.default_rng(seed), self.imagined if refitted else None
        st, cst = effects(self.columns, self.member, self.denied, self.imagined(), settings, again, rng)
        assert cst is not None
        return st, cst

    @cached_property
    def variance(self) -> Floats:
        """Noise of each decision, as the effects have it."""
        rows = np.flatnonzero(self.member), np.flatnonzero(~self.member)
        sides = sides_of(designs_of(self.columns), self.values, rows, self.denied.astype(float))
        assert sides is not None
        return sides.variance(len(self.member))

    def mediated(self, st: EffectOf, cst: EffectOf) -> EffectOf:
        """What is total and not direct."""
        assert st.contrast is not None
        assert cst.contrast is not None
        return EffectOf.of(cst.contrast.less(st.contrast), self.denied.astype(float), self.variance)

    def excess(self, found: EffectOf, numerator: str = ADJUSTED) -> ExcessShare:
        """The share of the members' denials in excess, by an effect."""
        assert found.contrast is not None
        own, denied = np.flatnonzero(self.member), self.denied.astype(float)
        return excess_share(found.contrast, own, denied, self.variance, numerator, 0.95)


def draw(lender: Lender, n: int, seed: int) -> Drawn:
    """``n`` applicants of a lender."""
    rng = np.random.default_rng(seed)
    member = rng.random(n) < SHARE
    income = rng.normal(size=n)
    score = 0.4 * income + rng.normal(size=n)
    amount = 0.5 * income + rng.normal(0, 0.8, n) + lender.apart * member
    values = np.column_stack([income, score, amount, rng.integers(0, 3, n)])
    values[member] -= moves(int(member.sum()), lender)
    denied = rng.random(n) < chance(values, member.astype(float), lender)
    return Drawn(member, values, denied, lender)


def moves(rows: int, lender: Lender) -> Floats:
    """What members would have more of, were they others."""
    return np.tile([lender.worse, 1.4 * lender.worse, 0.0, 0.0], (rows, 1))


def chance(values: Floats, member: Floats, lender: Lender) -> Floats:
    """Probability of denial."""
    income, score, amount, purpose = values.T
    index = -1.5 - 0.5 * income - 0.7 * score + 0.5 * amount + 0.3 * (purpose == 1) + lender.direct * member
    return expit(index)


def coverage(lender: Lender, n: int, reps: int, refitted: bool = True) -> dict[str, Floats]:
    """By effect its bias, standard deviation, mean standard error and coverage of the nominal 95 % interval.

    ``excess_st`` and ``excess_cst`` are shares; their standard error is the width of the interval over 3.92.
    """
    errors: dict[str, list[tuple[float, float, bool]]] = {}
    for seed in range(reps):
        drawn = draw(lender, n, 1000 + seed)
        direct, total, denied = drawn.truth
        (st, cst), between = drawn.effects(seed, refitted), (direct, total, total - direct)
        for name, found, true in zip(EFFECTS, (st, cst, drawn.mediated(st, cst)), between, strict=True):
            error = found.value - true
            errors.setdefault(name, []).append((error, found.se, abs(error) <= 1.96 * found.se))
        for name, found, true in (("st", st, direct), ("cst", cst, total)):
            share = drawn.excess(found)
            low, high = share.interval or (np.nan, np.nan)
            said = share.value - true / denied, (high - low) / 3.92, low <= true / denied <= high
            errors.setdefault(f"excess_{name}", []).append(said)
    out = {}
    for name, each in errors.items():
        error, se, covered = np.array(each, dtype=float).T
        out[name] = np.array([error.mean(), error.std(ddof=1), se.mean(), covered.mean()])
    return out
