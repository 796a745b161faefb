"""Size, power and coverage of the verdict on prices: lenders with a planted difference of rate spread.

``PYTHONPATH=.:tests:tests/material python tests/material/priced_lenders.py 200`` prints a line for each number of loans
and each planted difference; the limit is 0.10 points.
"""

import sys

import numpy as np

from tasks.methods.adjusted.algorithm.design import Block, Control
from tasks.methods.adjusted.algorithm.pricing import Loans, PriceEffect, price_ladder

LIMIT, ONE_SIDED = 0.1, 1.6448536269514722


def lenders_loans(n: int = 900, effect: float = 0.2, seed: int = 3) -> Loans:
    """Loans whose spread rises with the ratio, and by an effect for group 1, which has higher ratios."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.3).astype(np.int32)
    ratio = 60 + 20 * rng.random(n) + 8 * group
    product = (rng.random(n) < 0.4).astype(np.float64)
    price = 0.03 * ratio + 0.5 * product + effect * group + rng.normal(0, 0.3, n)
    blocks = (
        Block("product", (Control("product", "category", product, ("first", "second")),)),
        Block("terms", (Control("ratio", "number", ratio),)),
    )
    return Loans(price, group, ("white", "Black"), 0, blocks)


def judged(effects: list[PriceEffect]) -> PriceEffect:
    """The effect that is judged."""
    return next(effect for effect in effects if effect.primary)


def main(runs: int) -> None:
    """Print shares of runs."""
    for n in (400, 2000):
        for planted in (0.0, 0.1, 0.2, 0.3):
            effects = [
                judged(price_ladder(lenders_loans(n, planted, seed), "linear", 0.95, 30, quantiles=False))
                for seed in range(runs)
            ]
            value, se = (np.array([getattr(effect, name) for effect in effects]) for name in ("value", "se"))
            outside, within = value - ONE_SIDED * se > LIMIT, value + ONE_SIDED * se < LIMIT
            covered = np.abs(value - planted) <= 1.96 * se
            shares = (f"{name} {mask.mean():.3f}" for name, mask in (("outside", outside), ("within", within)))
            print(n, planted, *shares, f"coverage {covered.mean():.3f}")  # noqa: T201 what it is for


if __name__ == "__main__":
    main(int(sys.argv[1]))
