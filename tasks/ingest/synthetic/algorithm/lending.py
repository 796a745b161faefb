"""Synthetic applicants of the papers on CEC and GCFN."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import expit

from schemas.terms import Kind
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation

# --------------------------------------------------------------------------------------------------------------------
# Synthetic applicants whose labels depend on financial features alone (Popoola and Sheppard 2026, section 5.1).
#
# Financial features are independent of the group, proxies are shifted between groups, noise is neither. The paper gives
# the counts, the shift and the form of the label; it leaves open the weights, the noise, the threshold and the share of
# the protected group. The defaults are those with which trials came within 0.015 of the published consistency.


@dataclass(frozen=True)
class SyntheticLending:
    """Every coefficient of the generator. Features have a standard deviation of 1 within a group."""

    rows: int = 10_000
    financial: int = 10
    proxies: int = 5
    noise: int = 5
    shift: float = 0.5
    """Difference of the proxies' means between the groups, in standard deviations."""
    protected_share: float = 0.5
    """Not in the paper."""
    weights: tuple[float, ...] = ()
    """Of the financial features in the label; drawn from ``weight_range`` if none are given (not in the paper)."""
    weight_range: tuple[float, float] = (0.5, 1.5)
    label_noise: float = 0.5
    """Standard deviation of what is added to the weighted sum (not in the paper)."""
    threshold: float | None = None
    """Above which a label is favourable; the median, so that half of them are, if None (not in the paper)."""


@dataclass(frozen=True)
class SyntheticRows:
    """Columns are the financial features, then the proxies, then noise."""

    features: Floats
    """``(n, d)``."""
    protected: Bools
    favourable: Bools
    financial: tuple[int, ...]
    """Columns that the labels depend on."""
    weights: Floats
    """``(financial,)``."""


def names(settings: SyntheticLending) -> list[str]:
    """Names of the columns of ``SyntheticRows.features``."""
    kinds = (("financial", settings.financial), ("proxy", settings.proxies), ("noise", settings.noise))
    return [f"{kind}_{number + 1}" for kind, count in kinds for number in range(count)]


def generate(settings: SyntheticLending, rng: np.random.Generator) -> SyntheticRows:
    """Draw applicants; y = 1[w'x_F + e > threshold].

    Raises:
        ValueError: If there are not as many weights as financial features.
    """
    weights = (
        np.array(settings.weights) if settings.weights else rng.uniform(*settings.weight_range, settings.financial)
    )
    if len(weights) != settings.financial:
        raise ValueError(f"there are {len(weights)} weights for {settings.financial} financial features; give one each")
    protected = rng.random(settings.rows) < settings.protected_share
    features = rng.standard_normal((settings.rows, settings.financial + settings.proxies + settings.noise))
    features[:, settings.financial : settings.financial + settings.proxies] += settings.shift * protected[:, None]
    merit = features[:, : settings.financial] @ weights
    merit += settings.label_noise * rng.standard_normal(settings.rows)
    threshold = float(np.median(merit)) if settings.threshold is None else settings.threshold
    return SyntheticRows(features, protected, merit > threshold, tuple(range(settings.financial)), weights)


# --------------------------------------------------------------------------------------------------------------------
# Synthetic applicants whose counterfactual mediators are known (Ma et al., equations 72 to 74).
#
# A category A, which goes with the covariates X, shifts the mediators M, on which the outcome Y depends. As the noise
# of every mediator is drawn here, so is what each applicant's mediators would have been in the other category. The
# paper publishes no coefficient: every one is a parameter, and every default is ours.


_CATEGORIES = ("0", "1")
_NODES = 31
"""Points at which the noise is integrated out of a mediator."""

Mechanism = Callable[[int, Floats], Floats]
"""Category and noise ``(n, p)`` to mediators ``(n, p)``, covariates given."""


@dataclass(frozen=True)
class Synthetic:
    """Equation 72. ``beta_4`` is announced there and never used."""

    rows: int = 10_000
    beta_1: float = 1.0
    """Of X in the logit of A."""
    beta_2: float = 1.0
    """Of X in M."""
    beta_3: float = 1.0
    """Of A in M."""
    beta_5: float = 1.0
    """Of X in the logit of Y."""
    beta_6: float = 1.0
    """Of M in the logit of Y."""
    noise: float = 0.1
    """Standard deviation of U_A, U_M and U_Y: the printed N(0, 0.01) read as a variance."""


@dataclass(frozen=True)
class LawSchool:
    """Equations 73 (``sigmoid``) and 74 (``sin``), on covariates resampled from the law-school data."""

    form: Literal["sigmoid", "sin"] = "sigmoid"
    rows: int = 101_570
    w_a: float = 1.0
    w_x1: float = 0.5
    w_x2: float = 0.5
    w_m1: float = 1.0
    w_m2: float = 1.0
    scale_2: float | None = None
    """Scale of the sigmoid in M2; ``w_m1`` if None, which is how equation 73 is printed."""
    w_a_2: float | None = None
    """Of A in M2; ``w_a`` if None. Equation 73 prints an S in its place, which is defined nowhere."""
    intercept: float = -2.0
    """Of the logit of Y. Not in the paper; with 0 nearly every outcome is favourable."""
    noise: float = 0.1
    """Standard deviation of U_M1, U_M2 and U_Y."""


@dataclass(frozen=True)
class People:
    """Law students to draw from; all arrays ``(l,)``, numbers as they enter the equations."""

    resident: Floats
    race: Floats
    gender: Longs
    """0 or 1."""


@dataclass(frozen=True)
class MediatedRows:
    """Applicants and what is known of them."""

    covariates: Floats
    """``(n, c)``."""
    category: Longs
    """``(n,)`` 0 or 1."""
    mediators: Floats
    """``(n, p)``."""
    favourable: Bools
    """``(n,)`` outcomes."""
    noise: Floats
    """``(n, p)`` U_M."""
    potential: Floats
    """``(2, n, p)`` the mediators had everybody been of a category: the same noise, the category set."""
    mean: Floats
    """``(2, n, p)`` E[M | x, a]: what a regression would find with endless data."""

    def rows(self, chosen: Longs) -> "MediatedRows":
        """The same of some rows, ``(r,)``."""
        by_row = {name: getattr(self, name)[chosen] for name in _BY_ROW}
        return replace(self, **by_row, potential=self.potential[:, chosen], mean=self.mean[:, chosen])

    def mediation(self) -> Mediation:
        """What a generator is given: columns ``x1`` ... and ``m1`` ..., all continuous, and no truth."""
        return Mediation(
            _continuous("x", self.covariates), self.category, _CATEGORIES, _continuous("m", self.mediators)
        )


_BY_ROW = ("covariates", "category", "mediators", "favourable", "noise")


def synthetic(settings: Synthetic, rng: np.random.Generator) -> MediatedRows:
    """Draw applicants by equation 72, one covariate and one mediator."""
    u_x, u_a, u_m, u_y = rng.standard_normal((4, settings.rows)) * ([1.0], *[[settings.noise]] * 3)
    category = rng.random(settings.rows) < expit(settings.beta_1 * u_x + u_a)

    def mechanism(group: int, noise: Floats) -> Floats:
        mediators: Floats = (settings.beta_2 * u_x + settings.beta_3 * group)[:, None] + noise
        return mediators

    def logit(mediators: Floats) -> Floats:
        log_odds: Floats = settings.beta_5 * u_x + settings.beta_6 * mediators[:, 0] + u_y
        return log_odds

    return _rows(u_x[:, None], category, mechanism, u_m[:, None], settings.noise, logit, rng)


def law_school(settings: LawSchool, people: People, rng: np.random.Generator) -> MediatedRows:
    """Draw applicants by equation 73 or 74: covariates and gender resampled together, two mediators simulated.

    The gender of a student stays with the covariates; the paper gives no equation for it.
    """
    sampled_rows = rng.integers(len(people.gender), size=settings.rows)
    covariates = np.column_stack([people.resident[sampled_rows], people.race[sampled_rows]]).astype(np.float64)
    base = covariates @ [settings.w_x1, settings.w_x2]
    noise = settings.noise * rng.standard_normal((settings.rows, 2))
    u_y = settings.noise * rng.standard_normal(settings.rows)
    weights = np.array([settings.w_m1, settings.w_m2])

    def logit(mediators: Floats) -> Floats:
        log_odds: Floats = mediators @ weights + base + u_y + settings.intercept
        return log_odds

    mechanism = _sigmoid(settings, base) if settings.form == "sigmoid" else _sin(settings, base)
    return _rows(covariates, people.gender[sampled_rows] == 1, mechanism, noise, settings.noise, logit, rng)


def _sigmoid(settings: LawSchool, base: Floats) -> Mechanism:
    """M1 = w_M1 sigmoid(w_A A + base + U1); M2 = w_M2 + scale sigmoid(w_A A + base + U2)."""
    scale = np.array([settings.w_m1, settings.w_m1 if settings.scale_2 is None else settings.scale_2])

    def mechanism(group: int, noise: Floats) -> Floats:
        mediators: Floats = [0.0, settings.w_m2] + scale * expit(_effects(settings) * group + base[:, None] + noise)
        return mediators

    return mechanism


def _sin(settings: LawSchool, base: Floats) -> Mechanism:
    """M = w_A A - sin(pi (base + U))."""

    def mechanism(group: int, noise: Floats) -> Floats:
        mediators: Floats = _effects(settings) * group - np.sin(np.pi * (base[:, None] + noise))
        return mediators

    return mechanism


def _effects(settings: LawSchool) -> Floats:
    """``(2,)`` weight of A in each mediator."""
    return np.array([settings.w_a, settings.w_a if settings.w_a_2 is None else settings.w_a_2])


def _rows(
    covariates: Floats, category: Bools, mechanism: Mechanism, noise: Floats, deviation: float,
    logit: Callable[[Floats], Floats], rng: np.random.Generator,
) -> MediatedRows:  # fmt: skip
    """Every applicant in both categories, and the outcome in their own."""
    potential = np.stack([mechanism(group, noise) for group in (0, 1)])
    mediators = np.where(category[:, None], potential[1], potential[0])
    favourable = rng.random(len(category)) < expit(logit(mediators))
    mean = np.stack([_expected(mechanism, group, noise.shape, deviation) for group in (0, 1)])
    return MediatedRows(covariates, category.astype(np.int64), mediators, favourable, noise, potential, mean)


def _expected(mechanism: Mechanism, group: int, shape: tuple[int, ...], deviation: float) -> Floats:
    """The mean of a mechanism over normal noise by Gauss-Hermite quadrature, ``(n, p)``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    parts = [w * mechanism(group, np.full(shape, deviation * u)) for u, w in zip(nodes, weights, strict=True)]
    mean: Floats = np.sum(parts, axis=0) / weights.sum()
    return mean


def _continuous(prefix: str, values: Floats) -> Columns:
    names = tuple(f"{prefix}{number + 1}" for number in range(values.shape[1]))
    return Columns(names, (Kind.CONTINUOUS,) * len(names), ((),) * len(names), values)
