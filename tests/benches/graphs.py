"""Measures how often a causal graph is called contradicted, by data that follow it and by data that do not.

Lenders are drawn from a causal graph that is known: groups, two causes that no group moves, and six columns behind
them, which are numbers, a count, a yes or no, and categories. The audit is given that graph, or another one.

Scope: the test of the graph as a whole. Tests of single independences: ``tests/tasks/counterfactuals``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from research.benchmark import Bench, Room, Row, against
from schemas.audit.causal import CausalGraph, Edge
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.causal_checks import GraphTest, compare_with_permuted, independence_checks
from tasks.counterfactuals.algorithm.causal_model import Roots, state_of
from tasks.numerics.encoding import Columns

REPETITIONS, CONTRADICTED = 200, 15
"""Lenders of each size that follow the graph, and that do not."""
SIZES = (500, 1000, 2500, 5000)
SEED = 44
MOST_FALSE = 0.06
_NO_TARGET: Row = {"target": None, "met": None}
GROUPS, SHARES = ("white", "Black", "Hispanic"), (0.6, 0.25, 0.15)
PURPOSES = ("purchase", "refinance", "improvement")
NAMES = ("age", "purpose", "schooling", "income", "score", "loan", "ratio", "debts")
GRAPH = CausalGraph(
    edges=(
        *(("race", "schooling"), ("race", "income"), ("age", "income"), ("schooling", "income")),
        *(("age", "score"), ("income", "score"), ("income", "loan"), ("purpose", "loan")),
        *(("loan", "ratio"), ("income", "debts")),
    )
)
"""What the lenders are drawn from; it implies 26 independences."""


@dataclass(frozen=True)
class World:
    """How lenders depart from the graph, and the graph that the audit is given."""

    name: str
    direct: float = 0.0
    """Standard deviations by which the score of a member of another group is lower, whatever its income."""
    hidden: float = 0.0
    """What a factor that no column holds adds to score, loan and debts."""
    graph: CausalGraph = GRAPH


def _renamed(**names: str) -> CausalGraph:
    edges: list[Edge] = [(names.get(cause, cause), names.get(effect, effect)) for cause, effect in GRAPH.edges]
    return CausalGraph(edges=tuple(edges))


WORLDS = (
    World("follows the graph"),
    World("the group moves the score", direct=0.5),
    World("a hidden factor", hidden=0.5),
    World("columns exchanged", graph=_renamed(income="ratio", ratio="income", schooling="debts", debts="schooling")),
)


def drawn(world: World, n: int, rng: np.random.Generator) -> tuple[Columns, Roots]:
    """``n`` applicants of a lender."""
    race = rng.choice(len(GROUPS), n, p=SHARES)
    other, noise = (race > 0).astype(float), rng.normal(size=(n, 8))
    hidden = world.hidden * noise[:, 7]
    age, purpose = 45 + 12 * noise[:, 0], rng.choice(len(PURPOSES), n, p=(0.5, 0.35, 0.15))
    schooling = (rng.random(n) < np.where(other > 0, 0.45, 0.65)).astype(float)
    lifted = -0.0006 * (age - 50) ** 2 - 0.25 * other + 0.3 * schooling
    income = np.exp(4.2 + lifted + 0.4 * noise[:, 1])
    score = 0.8 * np.log(income) + 0.02 * age - world.direct * other + hidden + noise[:, 2]
    loan = np.exp(1.0 + 0.9 * np.log(income) - 0.3 * (purpose == 1) + 0.5 * hidden + 0.4 * noise[:, 3])
    ratio = 0.4 + 0.2 * np.log(loan) + 0.2 * noise[:, 4]
    debts = rng.poisson(np.exp(1.5 - 0.006 * income + 0.5 * hidden)).astype(float)
    columns = np.column_stack([age, purpose, schooling, income, score, loan, ratio, debts])
    numbers = Kind.CONTINUOUS
    kinds = (numbers, Kind.NOMINAL, Kind.BINARY, *[numbers] * 5)
    categories = ((), PURPOSES, ("no", "yes"), *[()] * 5)
    return Columns(NAMES, kinds, categories, columns), Roots(("race",), race[:, None].astype(np.int32), (GROUPS,))


def tested(world: World, n: int, seed: int) -> GraphTest:
    """The graph of a world held against the data of one lender."""
    columns, roots = drawn(world, n, np.random.default_rng([SEED, n, seed]))
    rng = np.random.default_rng(seed)
    checks = independence_checks(world.graph, columns, roots, state_of(columns, roots, world.graph), rng)
    return compare_with_permuted(world.graph, columns, roots, np.array([check.p for check in checks]), rng)


def measured(repetitions: int, contradicted: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """A line for each world and size: how often the graph is called contradicted, and by what."""
    for world in WORLDS:
        for n in sizes:
            follows = world is WORLDS[0]
            tests = [tested(world, n, seed) for seed in range(repetitions if follows else contradicted)]
            share = float(np.mean([test.contradicted for test in tests]))
            of_permuted = [test.as_good / test.permutations for test in tests if test.permutations]
            yield {
                **{"lenders": world.name, "n": n, "repetitions": len(tests), "contradicted": share},
                "rejected": float(np.mean([test.rejected / test.tests for test in tests])),
                "permuted_as_good": float(np.mean(of_permuted)) if of_permuted else None,
                **(
                    against(f"{MOST_FALSE:.0%} at most", share <= MOST_FALSE)
                    if follows
                    else {"target": None, "met": None}
                ),
            }


def _lines(room: Room) -> Iterator[Row]:
    few = min(room.reps or CONTRADICTED, CONTRADICTED)
    yield from measured(room.reps or REPETITIONS, few, tuple(n for n in SIZES if n <= room.limit))


BENCH = Bench("graphs", _lines, fewest=SIZES[0], why="the smallest lender that is drawn", disk=0, repeats=True)
