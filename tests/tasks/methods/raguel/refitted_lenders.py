"""Lenders whose second group has worse finances, and the ratio of recourse costs of a model fitted to them.

The truth is the ratio of a model fitted to half a million applicants. Run by itself it prints coverage:
``python tests/tasks/methods/raguel/refitted_lenders.py ROWS RUNS``.
"""

import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, logit

from schemas.audit.model import Model
from tasks.counterfactuals.algorithm.recourse import Boundary, to_boundary
from tasks.methods.raguel.algorithm.statistics import Attribute, Costs, Space, errors_of_draws, errors_of_rows, space_of
from tasks.methods.raguel.algorithm.statistics import cost_ratios as of_means
from tasks.methods.raguel.rerank import lists
from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.results import Aggregate
from tasks.preprocessing.columns import Grouped
from tasks.scoring.decision_makers import fitted
from tasks.scoring.fitting import refits
from tasks.scoring.models import ModelFile, linear_form, read

NAMES = ("income", "debt", "tenure", "loan")
SETTINGS = RaguelSettings(steps=False)


@dataclass(frozen=True)
class Lender:
    """Applicants, their group (1 is worse off) and the lender's decisions."""

    x: Floats
    group: Ints
    favourable: Bools


def lender(rng: np.random.Generator, n: int, worse: float = 0.6) -> Lender:
    """17 % of the applicants are of the group; about 22 % are denied, by finances alone."""
    group = (rng.random(n) < 0.17).astype(np.int32)
    x = rng.normal(size=(n, 4)) + np.outer(group, [-worse, worse / 2, 0.0, 0.0])
    z = 1.5 + 0.9 * x[:, 0] - 0.6 * x[:, 1] + 0.3 * x[:, 2] - 0.2 * x[:, 3]
    return Lender(x, group, rng.random(n) < expit(z))


def space(x: Floats) -> Space:
    """All may change, but income only up and tenure only down to a bound."""
    return space_of(x, tuple(Attribute(name, direction=int(name == "income")) for name in NAMES))


def costs(lent: Lender, model: Model, seed: int = 0) -> tuple[Floats, Bools]:
    """Costs of all rows to the boundary of the model that decided on them, and who is denied."""
    scored = fitted(lent.x, lent.favourable, model, seed)
    own, cut = space(lent.x), float(logit(scored.threshold))
    cost = np.empty(len(lent.x))
    for number, content in enumerate(scored.models):
        form = linear_form(read(ModelFile(content, "model")))
        assert form is not None
        assert scored.fold is not None
        rows = scored.fold == number
        boundary = Boundary(form.coefficients * own.unit, form.intercept - cut)
        cost[rows] = to_boundary(own.values(lent.x[rows]), boundary, own.actions).cost
    return cost, ~scored.favourable


def ratio(lent: Lender, draws: int = 200, seed: int = 0, model: Model | None = None) -> Aggregate:
    """The measure of the group, with its interval."""
    asked = model or Model()
    cost, denied = costs(lent, asked, seed)
    every = np.ones(len(denied), dtype=bool)
    found = refits(lent.x, lent.favourable, every, asked, draws, seed)
    decided = lists.Decided(lent.x, denied, every, True, found)
    grouped = Grouped(lent.group, ("reference", "group"), 0)
    settings = replace_refits(draws)
    (one,) = lists.ratios(decided, cost, space(lent.x), grouped, asked, settings, 0.95)
    return one


def replace_refits(draws: int) -> RaguelSettings:
    """Settings of the costs with so many resamples."""
    return SETTINGS.model_copy(update={"refits": draws})


@cache
def truth(worse: float = 0.6) -> float:
    """The ratio among half a million applicants."""
    lent = lender(np.random.default_rng(99), 500_000, worse)
    cost, denied = costs(lent, Model(folds=2))
    return float(of_means(Costs.of(cost, lent.group, denied).means(2), 0)[1])


def main(rows: int, runs: int) -> None:
    """Coverage of three intervals: the normal one on the logarithm, the percentiles, and that of a held model."""
    inside, lengths, values = [], [], []
    for seed in range(runs):
        lent = lender(np.random.default_rng([rows, seed]), rows)
        cost, denied = costs(lent, Model(), seed)
        every = np.ones(rows, dtype=bool)
        found = refits(lent.x, lent.favourable, every, Model(), 200, seed)
        assert found is not None
        decided = lists.Decided(lent.x, denied, every, True, found)
        means = lists.means(decided, found, space(lent.x), lent.group, 2, SETTINGS)
        own = Costs.of(cost, lent.group, denied)
        value = float(of_means(own.means(2), 0)[1])
        drawn = of_means(means, 0)[:, 1]
        errors = errors_of_draws(means, 0)[1], errors_of_rows(own, 2, 0)[1]
        ends = [
            (value * np.exp(-1.96 * errors[0]), value * np.exp(1.96 * errors[0])),
            tuple(np.nanquantile(drawn, (0.025, 0.975))),
            (value * np.exp(-1.96 * errors[1]), value * np.exp(1.96 * errors[1])),
        ]
        inside.append([low <= truth() <= high for low, high in ends])
        lengths.append([high - low for low, high in ends])
        values.append(value)
    cover, width = np.mean(inside, axis=0), np.mean(lengths, axis=0)
    sys.stdout.write(
        f"{rows} rows, {runs} runs, truth {truth():.3f}, mean {np.mean(values):.3f}, sd {np.std(values):.4f}\n"
        f"coverage: log-normal {cover[0]:.3f}, percentile {cover[1]:.3f}, held {cover[2]:.3f}\n"
        f"width: {width[0]:.3f}, {width[1]:.3f}, {width[2]:.3f}\n"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
