"""Independences that a causal graph implies, and a test of each against the data.

For a pair without an edge, the later column is independent of the earlier one given its own causes (local Markov
property; Pearl 2009, section 1.2). The test is the generalised covariance measure (Shah and Peters 2020): both columns
are regressed on the conditions, and their residuals must be uncorrelated. It misses dependence with zero correlation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, SplineTransformer

from schemas.audit.causal import CausalGraph
from tasks.counterfactuals.algorithm.scm.nodes import Cause
from tasks.numerics.arrays import Floats

_FEWEST = 20
"""Rows of a group or category for its indicator to be tested: the normal limit needs some."""

_FOLDS = 5

_CURVED = 10
"""Distinct values above which a number's effect may be curved; below, it enters as a line."""


class Claim(NamedTuple):
    """A pair that the graph keeps apart."""

    node: str
    other: str
    given: tuple[str, ...]


def implied(graph: CausalGraph, features: Sequence[str], roots: Sequence[str]) -> list[Claim]:
    """The independences that imply all others of the graph, later column first.

    Pairs of protected attributes are left out: how they go together is observed and not modelled. A feature outside the
    graph keeps its factual value, which claims that it goes with no protected attribute that the graph holds.
    """
    order = {name: i for i, name in enumerate(dict.fromkeys((*roots, *features)))}
    directed = graph.directed
    sequence = list(nx.lexicographical_topological_sort(directed, key=order.__getitem__))
    claims = []
    for i, node in enumerate(sequence):
        given = graph.parents(node)
        apart = (o for o in sequence[:i] if o not in given and not (node in roots and o in roots))
        claims += [Claim(node, other, given) for other in apart]
    outside = (name for name in order if name not in directed and name not in roots)
    acted = [name for name in roots if name in directed]
    return claims + [Claim(name, root, ()) for name in outside for root in acted]


def normal_scores(state: Floats, places: Sequence[int]) -> Floats:
    """The state with some columns replaced by the normal scores of their ranks.

    That keeps every independence, and gives the test the moments that it needs whatever the tails.
    """
    scored = state.copy()
    scored[:, places] = norm.ppf(rankdata(state[:, places], axis=0) / (len(state) + 1))
    return scored


def covariance_test(
    state: Floats, node: Cause, others: Sequence[Cause], given: Sequence[Cause], rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Whether a column goes with others beyond what the conditions explain (Shah and Peters 2020, sections 3.1, 3.2).

    A group or nominal category is an indicator. Over the pairs of indicators the largest statistic counts, and its p is
    multiplied by the number of pairs (Bonferroni).

    Returns:
        For each of ``others`` the statistic, standard normal if independent, and its two-sided p; (0, 1) where a column
        does not vary.
    """
    parts = [_indicators(cause, state) for cause in (node, *others)]
    left = _unexplained(np.hstack(parts), [_indicators(cause, state) for cause in given], rng)
    own, *rest = np.split(left, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1)
    return [_largest(own, other) for other in rest]


def _indicators(cause: Cause, state: Floats) -> Floats:
    """The column as numbers, without indicators that are too rare or do not vary."""
    encoded: Floats = cause.encode(state)
    if not cause.labels:
        kept = np.ptp(encoded, axis=0) > 0
    else:
        count = encoded.sum(axis=0)
        kept = (count >= _FEWEST) & (len(state) - count >= _FEWEST)
    return np.asarray(encoded[:, kept], dtype=np.float64)


def _unexplained(targets: Floats, given: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """What regressions on the conditions leave of the targets ``(n, t)``, predicted on rows they were not fitted to."""
    if not sum(part.shape[1] for part in given) or not targets.shape[1]:
        return np.asarray(targets - targets.mean(axis=0), dtype=np.float64)
    causes = np.hstack(given)
    folds = KFold(_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    expected = cross_val_predict(_regression(causes), causes, targets, cv=folds)
    return np.asarray(targets - expected.reshape(targets.shape), dtype=np.float64)


def _regression(causes: Floats) -> Any:
    """Curves of every number, products of them all, and a slight ridge: closed form, and one fit for all targets.

    Of true independences under curved effects it rejects 5 % at 5,000 rows (two or six conditions) and 10 % at 600;
    forests and boosting, which leave more of the conditions behind, rejected far more. Curves are not scaled to one
    spread: a few rows at the edge would then outweigh all others, and hold the statistic near 1 whatever the
    dependence.
    """
    curved = [i for i in range(causes.shape[1]) if len(np.unique(causes[:, i])) > _CURVED]
    spline = SplineTransformer(n_knots=5, degree=3, knots="uniform", extrapolation="constant", include_bias=False)
    return make_pipeline(
        make_column_transformer((spline, curved), remainder=MinMaxScaler()),
        PolynomialFeatures(2, interaction_only=True, include_bias=False),
        Ridge(0.01),
    )


def _largest(own: Floats, other: Floats) -> tuple[float, float]:
    """The largest of the statistics of all pairs of columns, with its sign, and its adjusted p."""
    if not own.shape[1] or not other.shape[1]:
        return 0.0, 1.0
    products = own[:, :, None] * other[:, None, :]
    spread = products.std(axis=0)
    scaled: NDArray[np.float64] = np.sqrt(len(own)) * products.mean(axis=0)
    statistics = np.divide(scaled, spread, out=np.zeros_like(scaled), where=spread > 0).ravel()
    largest = float(statistics[np.abs(statistics).argmax()])
    return largest, min(1.0, float(2 * norm.sf(abs(largest)) * len(statistics)))
