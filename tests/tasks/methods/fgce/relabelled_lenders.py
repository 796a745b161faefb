"""Lenders without discrimination whose second group has worse finances, for tests of relabelled draws to audit.

Run by itself it repeats the audit and prints how often the rule of a breach fires:
``python tests/tasks/methods/fgce/relabelled_lenders.py RUNS DRAWS``.
"""

import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph.algorithm import DOWN, FREE, UP, Rules
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm import connectivity
from tasks.methods.fgce.algorithm.ablation import Query
from tasks.methods.fgce.algorithm.connectivity import Backwards
from tasks.numerics.arrays import Bools, Floats


@dataclass(frozen=True)
class Lender:
    """Applicants of two groups."""

    encoded: Floats
    member: Bools
    denied: Bools


def lender(seed: int, n: int = 900, own: int = 180, worse: float = 0.6, harm: float = 0.0) -> Lender:
    """Income, amount, debt and history; the group has ``worse`` sd of finances, and ``harm`` on the log odds."""
    rng = np.random.default_rng(seed)
    member = np.arange(n) < own
    income, amount, debt = rng.normal(size=(3, n)) + np.outer([-worse, 0.0, worse], member)
    late = rng.random(n) < expit(-1.2 + 0.5 * worse * member)
    z = -1.6 - 0.9 * income + 0.4 * amount + 0.7 * debt + 0.9 * late + harm * member
    binned = [np.clip(np.floor((each + 2.5) * 2), 0, 9) / 9 for each in (income, amount, debt)]
    return Lender(np.column_stack([*binned, late.astype(float)]), member, rng.random(n) < expit(z))


def audited(lent: Lender, draws: int, seed: int = 0) -> Floats:
    """The group's infeasible share and those of its draws, ``(draws + 1,)``."""
    rules = Rules(np.array([UP, FREE, DOWN, FREE], np.int8))
    none, nothing = np.zeros((len(lent.member), 0), np.int32), GraphSettings()
    split = algorithm.collapse(lent.encoded, none, lent.member[:, None].astype(np.int32), rules)
    epsilon = algorithm.choose_epsilon(split, rules, nothing).value
    joined = algorithm.collapse(lent.encoded, none, none, rules)
    backwards = Backwards.of(algorithm.build(joined, rules, epsilon, nothing).graph, joined.node)
    rng = np.random.default_rng(seed)
    found = connectivity.labels(connectivity.design(lent.encoded, none), lent.member, draws, rng)
    return connectivity.shares(backwards, found, Query(lent.denied, ~lent.denied))


def judged(share: Floats, denied: int) -> tuple[float, float]:
    """Difference and p."""
    difference, _ = connectivity.relabelled_aggregates(1, share, 0, denied)
    assert difference.inference is not None
    return difference.value, difference.inference.p


if __name__ == "__main__":
    runs, draws = map(int, sys.argv[1:])
    for harm in (0.0, 1.0):
        for worse in (0.0, 0.6):
            made = (lender(seed, worse=worse, harm=harm) for seed in range(runs))
            found = np.array([judged(audited(each, draws), int(each.denied.sum())) for each in made])
            value, p = found.T
            fires = (p <= 0.025) & (value > 0.05)
            sys.stdout.write(
                f"worse {worse:g} harm {harm:g}: difference {value.mean():+.3f} sd {value.std():.3f}, "
                f"p<=.05 {np.mean(p <= 0.05):.3f}, rule {fires.mean():.3f}\n"
            )
