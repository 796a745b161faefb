"""Null calibration of CST: labels permuted, and everything run again.

Labels are permuted among rows with the same categories, so that every such stratum keeps its numbers by group: what is
left is chance, and whatever the method makes of it (the paper does not do this). Columns that the protected attribute
can reach make no strata: what it does through them is what the method looks for, and would be taken for chance.
Counterfactuals are made again for the permuted labels, by a causal model fitted to them.

Here belongs the null calibration.
"""

from collections.abc import Collection, Iterator

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CENTRED, CST, ST, applicants_of, compare, lay
from tasks.methods.cst.algorithm.neighbours.distance import NUMERIC, looked_at
from tasks.methods.cst.algorithm.significance import judge
from tasks.methods.cst.algorithm.tallies import HEADLINE
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Counterfactuals, Problem
from tasks.numerics.results import Draws

Shares = dict[tuple[int, str, str], float]
"""By group, measure and variant."""


def draws(problem: Problem, settings: CstSettings, rng: np.random.Generator) -> Iterator[Draws]:
    """Shares detected and significant at ``settings.k``, one value per permutation.

    Args:
        problem: rows with their labels. Where counterfactuals cannot be made again, only situation testing is run.
        settings: ``null_permutations``, ``null_complainants`` (those looked at; they are searched among all rows) and
            all that is tested. ``ks`` may be ``k`` alone.
        rng: permutes labels and draws complainants.
    """
    applicants = applicants_of(problem)
    strata = strata_of(looked_at(applicants.columns, settings, applicants.attribute_columns), applicants.reached)
    found = [
        _shares(problem, permuted(problem.group, strata, rng), settings, rng) for _ in range(settings.null_permutations)
    ]
    main = ST if applicants.counterfactuals is None else CST
    for group, measure, variant in dict.fromkeys(key for shares in found for key in shares):
        values = np.array([shares.get((group, measure, variant), np.nan) for shares in found])
        yield Draws(group, measure, {"k": settings.k, "variant": variant}, values, reference="null")
        if variant == main:
            yield Draws(group, measure, HEADLINE, values, reference="null")


def strata_of(attributes: Columns, reached: Collection[str] = ()) -> Longs:
    """``(n,)`` number of each row's combination of categories, over the nominal columns but those ``reached``."""
    looked = zip(attributes.names, attributes.kinds, strict=True)
    nominal = np.array([kind not in NUMERIC and name not in reached for name, kind in looked])
    if not nominal.any():
        return np.zeros(len(attributes.values), np.int64)
    return np.unique(attributes.values[:, nominal], axis=0, return_inverse=True)[1]


def permuted(group: Ints, strata: Longs, rng: np.random.Generator) -> Ints:
    """Labels ``(n,)`` permuted within strata."""
    labels = np.empty_like(group)
    labels[np.argsort(strata, kind="stable")] = group[np.lexsort((rng.random(len(group)), strata))]
    return labels


def _shares(problem: Problem, group: Ints, settings: CstSettings, rng: np.random.Generator) -> Shares:
    """Run the pipeline under labels ``(n,)``."""
    some = {
        each: _some(np.flatnonzero(group == each), settings, rng)
        for each in np.unique(group).tolist()
        if each != problem.reference
    }
    ground = lay(problem, settings, group, _imagined(problem, group, list(some.values()), settings))
    shares: Shares = {}
    for each, row in some.items():
        for variant, pair in compare(ground, each, row).pairs.items():
            if variant != CENTRED and not np.isnan(pair.delta).all():
                tests = judge(pair, settings)
                shares[each, "share_detected", variant] = float(np.nanmean(tests.detected(settings.tau)))
                shares[each, "share_significant", variant] = float(np.nanmean(tests.significant(settings.alpha)))
    return shares


def _some(rows: Longs, settings: CstSettings, rng: np.random.Generator) -> Longs:
    """At most ``null_complainants`` of a group's rows, ascending."""
    return np.sort(rng.choice(rows, min(len(rows), settings.null_complainants), replace=False))


def _imagined(problem: Problem, group: Ints, some: list[Longs], settings: CstSettings) -> Counterfactuals | None:
    """Counterfactuals under these labels: of those looked at, or of everyone where the distance is scaled to them."""
    imagine = applicants_of(problem).imagine
    if imagine is None or not some:
        return None
    everyone = settings.scaling == "z_scores"
    rows = np.flatnonzero(group != problem.reference) if everyone else np.sort(np.concatenate(some))
    return imagine(rows, group, None)
