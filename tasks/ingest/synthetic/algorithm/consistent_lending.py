"""Synthetic applicants whose labels depend on financial features alone (Popoola and Sheppard 2026, section 5.1).

Financial features are independent of the group, proxies are shifted between groups, noise is neither. The paper gives
the counts, the shift and the form of the label; it leaves open the weights, the noise, the threshold and the share of
the protected group. The defaults are those with which trials came within 0.015 of the published consistency.
"""

from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Floats


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
