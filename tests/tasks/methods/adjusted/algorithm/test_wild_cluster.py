"""The wild cluster bootstrap against a loop over draws, and the ends of its interval against their p."""

import numpy as np
import pytest

from tasks.methods.adjusted.algorithm.estimators import DRAWS, WEBB, wild_interval, wild_statistic
from tasks.methods.adjusted.algorithm.regressions import fit_linear
from tasks.numerics.arrays import Floats, Ints


def data(rng: np.random.Generator, clusters: int = 8, size: int = 20) -> tuple[Floats, Floats, Ints]:
    cluster = np.repeat(np.arange(clusters), size).astype(np.int32)
    treated = (rng.random(clusters) < 0.5)[cluster] * 1.0 + 0.3 * rng.normal(size=len(cluster))
    x = np.column_stack([np.ones(len(cluster)), treated, rng.normal(size=len(cluster))])
    return x, 0.5 * treated + rng.normal(size=clusters)[cluster] + rng.normal(size=len(cluster)), cluster


def test_statistic_is_that_of_refitted_outcomes() -> None:
    rng = np.random.default_rng(0)
    x, y, cluster = data(rng)
    null, weights = 0.2, rng.choice([-1.0, 1.0], (5, 8))
    statistic = wild_statistic(x, y, 1, cluster, 8)
    z = x[:, [0, 2]]
    restricted = z @ np.linalg.lstsq(z, y - null * x[:, 1])[0] + null * x[:, 1]
    for draw, t in zip(weights, statistic.t(null, weights), strict=True):
        fit = fit_linear(restricted + draw[cluster] * (y - restricted), x, cluster)
        factor = 8 / 7 * (len(y) - 1) / fit.df
        assert t == pytest.approx((fit.coefficients[1] - null) / (fit.se[1] / factor**0.5), rel=1e-8)


def test_ends_are_the_nulls_on_the_edge_of_rejection() -> None:
    x, y, cluster = data(np.random.default_rng(1))
    fit = fit_linear(y, x, cluster)
    low, high = wild_interval(x, y, fit, 1, cluster, 0.95, np.random.default_rng(2))
    assert low < fit.coefficients[1] < high
    weights = np.random.default_rng(2).choice(np.concatenate([-WEBB, WEBB]), (DRAWS, 8))
    statistic, little, alpha = wild_statistic(x, y, 1, cluster, 8), 1e-6 * (high - low), 1 - 0.95
    for inside, outside in ((low + little, low - little), (high - little, high + little)):
        assert statistic.p(outside, weights) < alpha <= statistic.p(inside, weights)
    # wider than the interval of the clustered error and the normal quantile
    assert high - low > 2 * 1.96 * fit.se[1]


def test_three_clusters_have_no_bound_or_a_wide_one() -> None:
    x, y, cluster = data(np.random.default_rng(3), clusters=3)
    low, high = wild_interval(x, y, fit_linear(y, x, cluster), 1, cluster, 0.95, np.random.default_rng(0))
    assert np.isnan(low) or np.isnan(high) or high - low > 4 * fit_linear(y, x, cluster).se[1]
