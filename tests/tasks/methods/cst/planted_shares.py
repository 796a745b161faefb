"""The effects of CST on planted lenders of ``python -m benches verdicts``: bias, spread and coverage of 95 % intervals.

The harmed group alone is looked at: the direct, the total and the mediated effect, and estimators of the excess share
of denials, of which one ships. Run by itself it prints a line for each:
``PYTHONPATH=. python tests/tasks/methods/cst/planted_shares.py SCENARIO ROWS RUNS [PERMUTATIONS]``.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from benches import planted as planted_audit
from benches.planted import HARMED
from benches.planted_lenders import Applied, Scenario, draw
from benches.verdicts import LENDER, only

from tasks.counterfactuals.generators import World
from tasks.methods.cst.algorithm.contrasts import ADJUSTED, RAW, Contrast, excess_share
from tasks.methods.cst.algorithm.effects import Frame, GroupEffects, of_group, with_refits
from tasks.methods.cst.algorithm.situations import compare, lay
from tasks.numerics.arrays import Floats, Ints
from tasks.numerics.problem import Applicants
from tasks.preprocessing.columns import Grouped

SCENARIOS = {
    "noise": Scenario("no effect, equal finances"),
    "mediated": Scenario("no direct effect, finances worse by 0.6 (mediated)", mediated=only(0.6)),
    "direct": Scenario("log odds +0.5", log_odds=only(0.5)),
    "better": Scenario("log odds +0.8, better qualified by 0.55", log_odds=only(0.8), mediated=only(-0.55)),
}
Z = 1.959964


class Estimate(NamedTuple):
    """An estimate with its truth and its interval."""

    name: str
    truth: float
    value: float
    low: float
    high: float


class Lent:
    """A draw of a lender with its causal model."""

    def __init__(self, applied: Applied, rng: np.random.Generator) -> None:
        """Fit nothing yet."""
        found = planted_audit.columns(applied)
        protected = planted_audit._protected(applied)
        labels = {protected.name: Grouped(applied.group, applied.scenario.groups, 0)}
        graph = planted_audit.graph_of(applied)
        world = World(found, (protected,), labels, graph, int(rng.integers(2**31)))
        self.applied, self.imagine = applied, world.imagine(protected.name, None)
        self.applicants = Applicants(found, ~applied.denied, ())

    def effects(self, group: Ints, rng: np.random.Generator, *, refitted: bool = True) -> tuple[Frame, GroupEffects]:
        """Those on the members of the harmed group under some labels."""
        members = np.flatnonzero(group == HARMED)
        made = self.imagine(members, group, None)
        applicants = replace(self.applicants, counterfactuals=made, imagine=self.imagine if refitted else None)
        problem = planted_audit._problem(self.applied, applicants)
        ground = lay(problem, planted_audit.SITUATIONS, group, made)
        frame = Frame(ground)
        return frame, with_refits(frame, [of_group(frame, HARMED, compare(ground, HARMED, members), ())], rng)[0]


def estimates(number: int, scenario: Scenario, rows: int, permutations: int = 0) -> Iterator[Estimate]:
    """All of one repetition."""
    rng = np.random.default_rng([7, rows, number])
    applied = draw(LENDER, scenario, rows, rng)
    lent, own, truth = Lent(applied, rng), np.flatnonzero(applied.group == HARMED), applied.truth(HARMED)
    frame, found = lent.effects(applied.group, rng)
    assert found.sides is not None
    denied, noise, chance = frame.denied, found.sides.variance(rows), float(applied.chance[own].mean())
    st, cst = found.contrasts
    for name, each, true in (
        ("st_effect", st, truth.direct),
        ("cst_effect", cst, truth.total),
        ("mediated_effect", cst.less(st), truth.total - truth.direct),
    ):
        value, half = each.value(denied), Z * each.se(noise)
        yield Estimate(name, true, value, value - half, value + half)
    null = permuted(lent, permutations, rng) if permutations else None
    for at, (name, each, true) in enumerate((("st", st, truth.direct), ("cst", cst, truth.total))):
        counted = by_delta(each, each.raw, denied, noise)
        made = {"as counted": counted, "adjusted effect over counted": by_delta(each, each.weights, denied, noise)}
        if null is not None:
            made["as counted, less permuted mean"] = tuple(end - null[at] for end in counted)
        share = excess_share(each, own, denied, noise, ADJUSTED, 0.95)
        made["both shares adjusted"] = (share.value, *(share.interval or (math.nan, math.nan)))
        for how, ends in made.items():
            yield Estimate(f"excess {name}, {how}", true / chance, *ends)


def by_delta(found: Contrast, above: Floats, denied: Floats, noise: Floats) -> tuple[float, ...]:
    """A linear form over the counted share of denials, with a symmetric interval by the delta method."""
    denials = float(found.control @ denied)
    share = float(above @ denied) / denials
    moves = (above - share * found.control) / denials
    half = Z * math.sqrt(float(moves**2 @ noise) + found.structural / denials**2)
    return share, share - half, share + half


def permuted(lent: Lent, permutations: int, rng: np.random.Generator) -> Floats:
    """``(2,)`` means of both counted shares under permuted labels, with the causal model fitted to them."""
    shares = []
    for _ in range(permutations):
        labels = rng.permutation(lent.applied.group)
        frame, found = lent.effects(labels, rng, refitted=False)
        own, none = np.flatnonzero(labels == HARMED), np.zeros(len(labels))
        shares.append([excess_share(each, own, frame.denied, none, RAW, 0.95).value for each in found.contrasts])
    return np.mean(shares, axis=0)


def repeated(
    make: Callable[[int], Iterator[Estimate]], runs: int
) -> dict[str, tuple[float, float, float, float, float]]:
    """By name the mean truth, bias, standard deviation, mean standard error and coverage."""
    every: dict[str, list[tuple[float, ...]]] = {}
    for number in range(runs):
        for name, truth, value, low, high in make(number):
            said = (truth, value - truth, (high - low) / (2 * Z), low <= truth <= high)
            every.setdefault(name, []).append(said)
    out = {}
    for name, said in every.items():
        truth, error, se, covered = np.array(said, dtype=float).T
        out[name] = (truth.mean(), error.mean(), error.std(ddof=1), se.mean(), covered.mean())
    return out


def main(scenario: str, rows: str, runs: str, permutations: str = "0") -> None:
    """Print the comparison."""
    found = repeated(lambda at: estimates(at, SCENARIOS[scenario], int(rows), int(permutations)), int(runs))
    for name, (truth, bias, sd, se, covered) in found.items():
        numbers = f"truth {truth:+.4f}, bias {bias:+.4f}, sd {sd:.4f}, mean se {se:.4f}, coverage {covered:.3f}"
        sys.stdout.write(f"{scenario}, {rows} rows, {runs} runs: {name}: {numbers}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
