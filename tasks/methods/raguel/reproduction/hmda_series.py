"""Draws lists of declined mortgage applications, of any length and with a given recourse ratio (section 4.6).

The paper draws samples of HMDA of 2,500 to 1,000,000 records with an initial ratio of 0.83 and publishes no more. Here
costs of both groups are drawn from one lognormal distribution and those of the better-off group are scaled, so that the
ratio of the list is exactly the given one. Some 20 of 100 blocks are then unfair at t = 1/3.
"""

from typing import Final

import numpy as np

from tasks.methods.raguel.algorithm.ranking.records import Records, of_costs

PUBLISHED_SIZES: Final = (2_500, 10_000, 50_000, 100_000, 500_000, 1_000_000)
"""From and to are the paper's; what lies between is ours."""

PROTECTED_SHARE: Final = 0.35
"""Share of the protected group, number 1, which is the worse-off one; exact, but for rounding."""


def draw(records: int, rng: np.random.Generator, ratio: float = 0.83, spread: float = 0.5) -> Records:
    """Draws a list.

    Args:
        records: How many; both groups get at least one.
        rng: Draws costs and who is of which group.
        ratio: Mean cost of the better-off group, divided by that of the protected one.
        spread: Standard deviation of the logarithm of the costs.

    Raises:
        ValueError: If there are fewer than two records or the ratio is outside (0, 1].
    """
    if records < 2 or not 0 < ratio <= 1:
        raise ValueError(f"{records} records with a ratio of {ratio:g}; give 2 or more, and one in (0, 1]")
    protected = min(max(round(PROTECTED_SHARE * records), 1), records - 1)
    group = rng.permutation(np.arange(records) < protected).astype(np.int32)
    cost = rng.lognormal(0.0, spread, records)
    cost[group == 0] *= ratio * cost[group == 1].mean() / cost[group == 0].mean()
    return of_costs(cost, group)
