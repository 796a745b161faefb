"""Lenders who decide by two columns together, which tell groups apart together: does the ladder blame the group?

``PYTHONPATH=.:tests python tests/material/interacting_lenders.py ROWS RUNS [none|selected|expected]`` prints the tables
of docs/methods/adjusted.md, Interactions and cut-offs. With ``expected`` it prints the judged estimate alone; ``bench``
as a fourth word takes the lenders of the bench.
"""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from benches.planted import LOGGED, columns
from benches.planted_lenders import Scenario, at_limit, draw
from benches.verdicts import LENDER, only
from scipy.special import expit, logit

from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.settings import AdjustedSettings

PURPOSES = ("improvement", "purchase", "refinance")
LIMIT = 0.02
ONE_SIDED = 1.6448536269514722


class Drawn(NamedTuple):
    """Applications with the true effect on the judged group, group 1."""

    applications: Applications
    effect: float


def _drawn(group, denied, chance, numbers, purpose, direct=0.0) -> Drawn:
    controls = [Control(name, "number", values.astype(float)) for name, values in numbers.items()]
    amount = controls.pop([each.name for each in controls].index("amount"))
    controls.append(Control("amount", "number", amount.values, scale="log"))
    controls.append(Control("purpose", "category", purpose.astype(float), PURPOSES))
    given = Applications(denied, group, ("white", "Black"), 0, (Block("all", tuple(controls)),))
    return Drawn(given, direct)


def cash_out(n: int, rng: np.random.Generator) -> Drawn:
    """Refinancing above a loan to value of 85 is denied; the group refinances there, and buys below."""
    group = _groups(n, rng)
    purpose = rng.choice(3, n, p=(0.15, 0.5, 0.35))
    ltv = 80 + 12 * (rng.normal(size=n) + 0.8 * group * (purpose == 2) - 0.4 * group * (purpose == 1))
    score, dti = 700 + 55 * (rng.normal(size=n) - 0.3 * group), 36 + 8 * (rng.normal(size=n) + 0.3 * group)
    index = -2.6 - 0.6 * (score - 700) / 55 + 0.4 * (dti - 36) / 8 + np.where((purpose == 2) & (ltv > 85), 3.5, 0)
    chance = expit(index)
    numbers = {"score": score, "dti": dti, "ltv": ltv, "amount": np.exp(5.4 + 0.6 * rng.normal(size=n))}
    return _drawn(group, rng.random(n) < chance, chance, numbers, purpose)


def layered(own: float, others: float, shift: float, effect: float) -> Callable[[int, np.random.Generator], Drawn]:
    """Denied if both ratios are high; ratios correlate by group. ``effect``: points added to the group."""

    def drawn(n: int, rng: np.random.Generator) -> Drawn:
        group, q = _groups(n, rng), rng.normal(size=(n, 4))
        rho = np.where(group == 1, own, others)
        a, b = q[:, 0] + shift * group, rho * q[:, 0] + np.sqrt(1 - rho**2) * q[:, 1] + shift * group
        rule = np.where((a > 0.5) & (b > 0.5), 0.85, 0.07)
        more = effect * (1 - rule) * group / 0.85
        numbers = {"dti": 36 + 8 * a, "ltv": 80 + 12 * b, "amount": np.exp(5 + q[:, 2])}
        denied = rng.random(n) < rule + more
        return _drawn(group, denied, rule + more, numbers, (q[:, 3] > 0) * 1, float(more[group == 1].mean()))

    return drawn


def pareto(n: int, rng: np.random.Generator) -> Drawn:
    """A floor on an income with heavy tails, and a cap on amount over income."""
    group, q = _groups(n, rng), rng.normal(size=(n, 3))
    income = 40 * (rng.pareto(2.2, n) + 1) * np.exp(-0.4 * group)
    amount, score = income * np.exp(1.0 + 0.5 * q[:, 0]), 700 + 55 * (q[:, 1] - 0.4 * group)
    rule = np.where(income < 45, 0.8, np.where(amount / income > 4, 0.6, 0.06))
    chance = expit(logit(rule) - 0.5 * (score - 700) / 55)
    numbers = {"income": income, "amount": amount, "score": score}
    return _drawn(group, rng.random(n) < chance, chance, numbers, (q[:, 2] > 0) * 1)


def of_bench(scenario: Scenario) -> Callable[[int, np.random.Generator], Drawn]:
    """A lender of ``python -m benches verdicts``; the harmed group is judged."""

    def drawn(n: int, rng: np.random.Generator) -> Drawn:
        applied = draw(LENDER, scenario, n, rng)
        found = columns(applied)
        controls = tuple(
            Control(name, "category" if known else "number", values, known, scale="log" if name == LOGGED else "linear")
            for name, known, values in zip(found.names, found.categories, found.values.T, strict=True)
        )
        given = Applications(applied.denied, applied.group, scenario.groups, 0, (Block("all", controls),))
        return Drawn(given, float(applied.direct[applied.group == 1].mean()))

    return drawn


LENDERS = {
    "cash-out cap": cash_out,
    "layered, correlation 0.8 and -0.2": layered(0.8, -0.2, 0.0, 0.0),
    "layered, 0.5 and 0.2, both ratios worse by 0.5": layered(0.5, 0.2, 0.5, 0.0),
    "layered, -0.2 and 0.6, effect 4.6 points": layered(-0.2, 0.6, 0.0, 0.045),
    "floor and cap, Pareto income": pareto,
}


def bench_lenders() -> dict[str, Callable[[int, np.random.Generator], Drawn]]:
    """Those of the bench; the last one is searched for."""
    return {
        "bench: no effect, equal": of_bench(Scenario("equal")),
        "bench: no effect, confounded by 0.6": of_bench(Scenario("confounded", confounded=only(0.6))),
        "bench: log odds +0.5": of_bench(Scenario("direct", log_odds=only(0.5))),
        "bench: effect at the limit": of_bench(at_limit(LENDER, Scenario("limit", log_odds=(0, 1.0, 1.0, 0)), LIMIT)),
    }


def _groups(n: int, rng: np.random.Generator):
    return (rng.random(n) < 0.25).astype(np.int32)


def measured(lender: Callable[[int, np.random.Generator], Drawn], n: int, runs: int, terms: str) -> Iterator[str]:
    """A line for each estimator: bias, sd, mean error, coverage, shares beyond and inside the limit, terms."""
    settings = AdjustedSettings(estimators=("logit", "overlap"), terms="none" if terms == "none" else "selected")
    rows: dict[str, list[list[float]]] = {"expected": [], "logit": [], "overlap": []}
    for run in range(runs):
        rng = np.random.default_rng([19, n, run])
        drawn = lender(n, rng)
        rows["expected"].append(of_expected(drawn, terms))
        if terms == "expected":
            continue
        for each in climb(drawn.applications, settings, 0.95, rng).effects:
            if each.rung == 1 and each.group == 1 and each.average_over in ("own", "overlap"):
                added = each.reason.partition("terms added: ")[2].partition(";")[0]
                count = len(added.split(", ")) if added else 0
                low, high = each.value - ONE_SIDED * each.se, each.value + ONE_SIDED * each.se
                inside = each.low <= drawn.effect <= each.high
                rows[each.estimator].append(
                    [each.value - drawn.effect, each.se, inside, low > LIMIT, high < LIMIT, count]
                )
    for estimator, found in rows.items():
        if not found:
            continue
        of = np.array(found)
        bias, se, covered, beyond, within, count = np.nanmean(of, axis=0)
        yield (
            f"{estimator}: bias {bias:+.4f}, sd {np.nanstd(of[:, 0]):.4f}, se {se:.4f}, coverage {covered:.3f}, "
            f"beyond the limit {beyond:.3f}, inside {within:.3f}, terms {count:.1f}"
        )


def of_expected(drawn: Drawn, terms: str) -> list[float]:
    """Error, standard error, coverage, both sides of the limit and terms of the judged effect."""
    applied = drawn.applications
    files = Files(
        applied.denied,
        np.zeros(len(applied.denied), bool),
        applied.group,
        applied.groups,
        0,
        applied.blocks[0].controls,
    )
    rules = Rules(LimitRule(LIMIT, 0.5, 0.2, 0.005), parts=None, beside=False, selected=terms != "none")
    (examined,) = examine(files, rules, np.random.default_rng(0))
    value, se, at_limit = examined.effect.value, examined.judged.plain.se, ONE_SIDED * examined.judged.at_limit.se
    inside = abs(value - drawn.effect) <= examined.judged.plain.quantile(0.025) * se
    return [value - drawn.effect, se, inside, value - at_limit > LIMIT, value + at_limit < LIMIT, len(examined.terms)]


def main(rows: str, runs: str, terms: str = "selected", which: str = "") -> None:
    """Print the table."""
    for name, lender in (bench_lenders() if which == "bench" else LENDERS).items():
        for line in measured(lender, int(rows), int(runs), terms):
            sys.stdout.write(f"{name}, {rows} rows, {runs} runs, {terms}: {line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
