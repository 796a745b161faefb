"""Estimators of the excess share of denials (CST) on planted lenders: bias, spread, and coverage of 95 % intervals.

Run by itself it prints a line for each: ``PYTHONPATH=.:tests/material python
tests/tasks/methods/cst/effect/excess_variants.py LENDER ROWS RUNS``, with a lender of ``LENDERS``.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from planted_situations import BETTER, DIRECT, MEDIATED, NOISE, Drawn, Lender, draw

from tasks.methods.cst.algorithm.effect.contrast import Contrast
from tasks.methods.cst.algorithm.effect.excess import RAW
from tasks.numerics.arrays import Floats

LENDERS = {"noise": NOISE, "mediated": MEDIATED, "direct": DIRECT, "better": BETTER}
PERMUTATIONS = 5
BOTH = "both shares adjusted, logarithm"
"""What ships."""


def estimates(drawn: Drawn, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """Each estimator with its value and the ends of its interval."""
    _, cst = drawn.effects(seed)
    found = cst.contrast
    assert found is not None
    counted = by_delta(drawn, found, found.raw)
    yield ("as counted, delta method", *counted)
    permuted = np.mean([as_permuted(drawn, [seed, number]) for number in range(PERMUTATIONS)])
    yield ("less its mean under permuted labels", *(each - permuted for each in counted))
    yield ("adjusted effect over the counted share, delta method", *by_delta(drawn, found, found.weights))
    share = drawn.excess(cst)
    yield (BOTH, share.value, *(share.interval or (math.nan, math.nan)))


def by_delta(drawn: Drawn, found: Contrast, above: Floats) -> tuple[float, float, float]:
    """A linear form over the counted share of denials, with a symmetric interval."""
    denials = float(found.control @ drawn.denied)
    share = float(above @ drawn.denied) / denials
    moves = (above - share * found.control) / denials
    half = 1.96 * math.sqrt(float(moves**2 @ drawn.variance) + found.structural / denials**2)
    return share, share - half, share + half


def as_permuted(drawn: Drawn, seed: list[int]) -> float:
    """The counted share with labels permuted among all rows, and the causal model fitted to them."""
    member = np.random.default_rng(seed).permutation(drawn.member)
    _, cst = replace(drawn, member=member).effects(refitted=False)
    return replace(drawn, member=member).excess(cst, RAW).value


def compare(lender: Lender, rows: int, runs: int) -> dict[str, Floats]:
    """By estimator its bias, standard deviation, root mean square error and coverage."""
    errors: dict[str, list[tuple[float, bool]]] = {}
    for seed in range(runs):
        drawn = draw(lender, rows, 1000 + seed)
        _, total, denied = drawn.truth
        for name, value, low, high in estimates(drawn, seed):
            errors.setdefault(name, []).append((value - total / denied, low <= total / denied <= high))
    out = {}
    for name, each in errors.items():
        error, covered = np.array(each, dtype=float).T
        out[name] = np.array([error.mean(), error.std(ddof=1), (error**2).mean() ** 0.5, covered.mean()])
    return out


def main(lender: str, rows: str, runs: str) -> None:
    """Print the comparison."""
    for name, (bias, sd, rmse, covered) in compare(LENDERS[lender], int(rows), int(runs)).items():
        sys.stdout.write(f"{lender}, {rows}: {name}: bias {bias:+.3f}, sd {sd:.3f}, rmse {rmse:.3f}, {covered:.3f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
