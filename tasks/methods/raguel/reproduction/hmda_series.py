"""Synthetic lists of declined mortgage applications, of any length and with a given recourse ratio (section 4.6).

The paper draws samples of HMDA of 2,500 to 1,000,000 records with an initial ratio of 0.83 and publishes no more. Here
costs of both groups are drawn from one distribution and those of the better-off group are scaled, so that the ratio of
the list is what is asked for exactly.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.numerics.arrays import Floats, Ints

PUBLISHED_SIZES = (2_500, 10_000, 50_000, 100_000, 500_000, 1_000_000)
"""From and to are the paper's; what lies between is ours."""


@dataclass(frozen=True)
class HmdaSeries:
    """How a list is drawn. All but the ratio is ours."""

    protected_share: float = 0.35
    """Share of the protected group, which is the worse-off one; drawn exactly, but for rounding."""
    ratio: float = 0.83
    """Mean cost of the better-off group, divided by that of the protected one."""
    distribution: Literal["lognormal", "gamma", "half_normal"] = "lognormal"
    """Of the costs. With the first some 20 of 100 blocks are unfair at t = 1/3, with the last some 10."""
    spread: float = 0.5
    """Standard deviation of the logarithm (``lognormal``) or 1 / sqrt(shape) (``gamma``)."""


@dataclass(frozen=True)
class Drawn:
    """A list of ``n`` records by number."""

    cost: Floats
    group: Ints
    """``(n,)`` 1 for the protected group."""


def draw(records: int, settings: HmdaSeries, rng: np.random.Generator) -> Drawn:
    """Draw a list.

    Args:
        records: How many; both groups get at least one.
        settings: Shares and costs.
        rng: Draws costs and who is of which group.

    Raises:
        ValueError: If there are fewer than two records or the ratio is outside (0, 1].
    """
    if records < 2 or not 0 < settings.ratio <= 1:
        raise ValueError(f"{records} records with a ratio of {settings.ratio:g}; give 2 or more, and one in (0, 1]")
    protected = min(max(round(settings.protected_share * records), 1), records - 1)
    group = rng.permutation(np.arange(records) < protected).astype(np.int32)
    cost = _costs(records, settings, rng)
    means = cost[group == 0].mean(), cost[group == 1].mean()
    cost[group == 0] *= settings.ratio * means[1] / means[0]
    return Drawn(cost, group)


def _costs(records: int, settings: HmdaSeries, rng: np.random.Generator) -> Floats:
    if settings.distribution == "lognormal":
        return rng.lognormal(0.0, settings.spread, records)
    if settings.distribution == "gamma":
        shape = settings.spread**-2
        return rng.gamma(shape, 1 / shape, records)
    return np.abs(rng.standard_normal(records))
