"""Checks of a causal model against the data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.stats import fligner, kruskal, norm, rankdata
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, SplineTransformer

from schemas.audit.causal import CausalGraph
from schemas.errors import TooFewError
from tasks.counterfactuals.algorithm.causal_model import (
    Cause,
    Node,
    Roots,
    all_causes,
    fit_node,
    nodes_of,
    state_of,
    unusable,
)
from tasks.counterfactuals.algorithm.mechanisms import FittedMechanism, Nominal, Ordinal
from tasks.numerics.arrays import Floats
from tasks.numerics.encoding import Columns
from tasks.numerics.statistics.intervals import benjamini_hochberg, step_down

# --------------------------------------------------------------------------------------------------------------------
# Independences that a causal graph implies, and a test of each against the data.
#
# For a pair without an edge, the later column is independent of the earlier one given its own causes (local Markov
# property; Pearl 2009, section 1.2). The test is the generalised covariance measure (Shah and Peters 2020): both
# columns are regressed on the conditions, and their residuals must be uncorrelated. It misses dependence with zero
# correlation.


_FEWEST = 20
"""Rows of a group or category for its indicator to be tested: the normal limit needs some."""

_FOLDS = 5

_CURVED = 10
"""Distinct values above which a number's effect may be curved; below, it enters as a line."""


class Claim(NamedTuple):
    """A pair that the graph keeps apart."""

    node: str
    other: str
    conditions: tuple[str, ...]


def implied(graph: CausalGraph, features: Sequence[str], roots: Sequence[str]) -> list[Claim]:
    """The independences that imply all others of the graph, later column first.

    Pairs of protected attributes are left out: how they go together is observed and not modelled. A feature outside the
    graph keeps its factual value, which claims that it goes with no protected attribute that the graph holds.
    """
    order = {name: i for i, name in enumerate(dict.fromkeys((*roots, *features)))}
    if graph.order:
        return []  # every pair has an edge, or is of one tier, whose columns may go together
    directed = graph.directed
    sequence = list(nx.lexicographical_topological_sort(directed, key=order.__getitem__))
    claims = []
    for i, node in enumerate(sequence):
        parents = graph.parents(node)
        apart = (o for o in sequence[:i] if o not in parents and not (node in roots and o in roots))
        claims += [Claim(node, other, parents) for other in apart]
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
    state: Floats, node: Cause, other_causes: Sequence[Cause], conditions: Sequence[Cause], rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Whether a column goes with others beyond what the conditions explain (Shah and Peters 2020, sections 3.1, 3.2).

    A group or nominal category is an indicator. Over the pairs of indicators the largest statistic counts, and its p is
    multiplied by the number of pairs (Bonferroni).

    Returns:
        For each of ``other_causes`` the statistic, standard normal if independent, and its p; (0, 1) where a column
        does not vary.
    """
    parts = [_indicators(cause, state) for cause in (node, *other_causes)]
    residuals = _unexplained(np.hstack(parts), [_indicators(cause, state) for cause in conditions], rng)
    node_residuals, *rest = np.split(residuals, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1)
    return [_largest(node_residuals, other) for other in rest]


def _indicators(cause: Cause, state: Floats) -> Floats:
    """The column as numbers, without indicators that are too rare or do not vary."""
    encoded: Floats = cause.encode(state)
    if not cause.labels:
        is_usable = np.ptp(encoded, axis=0) > 0
    else:
        count = encoded.sum(axis=0)
        is_usable = (count >= _FEWEST) & (len(state) - count >= _FEWEST)
    return np.asarray(encoded[:, is_usable], dtype=np.float64)


def _unexplained(targets: Floats, conditions: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """What regressions on the conditions leave of the targets ``(n, t)``, predicted on rows they were not fitted to."""
    if not sum(part.shape[1] for part in conditions) or not targets.shape[1]:
        return np.asarray(targets - targets.mean(axis=0), dtype=np.float64)
    causes = np.hstack(conditions)
    folds = KFold(_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    # Curves of every number, products of them all, and a slight ridge: closed form, and one fit for all targets.
    curved = [i for i in range(causes.shape[1]) if len(np.unique(causes[:, i])) > _CURVED]
    spline = SplineTransformer(n_knots=5, degree=3, knots="uniform", extrapolation="constant", include_bias=False)
    regression = make_pipeline(
        make_column_transformer((spline, curved), remainder=MinMaxScaler()),
        PolynomialFeatures(2, interaction_only=True, include_bias=False),
        Ridge(0.01),
    )
    expected = cross_val_predict(regression, causes, targets, cv=folds)
    return np.asarray(targets - expected.reshape(targets.shape), dtype=np.float64)


def _largest(node_residuals: Floats, other: Floats) -> tuple[float, float]:
    """The largest of the statistics of all pairs of columns, with its sign, and its adjusted p."""
    if not node_residuals.shape[1] or not other.shape[1]:
        return 0.0, 1.0
    products = node_residuals[:, :, None] * other[:, None, :]
    spread = products.std(axis=0)
    scaled: NDArray[np.float64] = np.sqrt(len(node_residuals)) * products.mean(axis=0)
    statistics = np.divide(scaled, spread, out=np.zeros_like(scaled), where=spread > 0).ravel()
    largest = float(statistics[np.abs(statistics).argmax()])
    return largest, min(1.0, float(2 * norm.sf(abs(largest)) * len(statistics)))


# --------------------------------------------------------------------------------------------------------------------
# Checks of a causal model against the data: fit of mechanisms, dependence of noise on causes, independences.
#
# No check can prove a graph. Each looks for one contradiction with the data: a mechanism that predicts nothing, noise
# that depends on a cause (holding it fixed then carries the cause along), or two dependent columns that the graph does
# not connect. Small samples have little power, so every check prints n.
#
# Scope: checks of mechanisms. Checks of missing edges: ``independence``.


ROWS = 5000
"""Rows drawn for the checks: more would flag differences too small to matter."""

FOLDS = 5
ALPHA = 0.05

_BINS = 10
"""A numeric cause is cut into tenths, for its noise to be compared among them."""

_CHECKS_FEWEST = 10
"""Rows that a group or bin needs to be compared."""


@dataclass(frozen=True)
class Check:
    """One check of a causal model."""

    name: str
    """``held_out_fit``, ``noise_location``, ``noise_spread`` or ``independence``."""
    node: str
    other: str
    """The cause, or the column that the graph keeps apart; empty for a fit."""
    conditions: tuple[str, ...]
    statistic: float
    """R2 or share of log loss saved; Kruskal-Wallis H; Fligner-Killeen chi-square; largest z."""
    p: float
    """NaN for a fit, which is no test."""
    q: float
    """p after Benjamini-Hochberg over the checks of the same name."""
    n: int
    words: str


def check_model(
    graph: CausalGraph, columns: Columns, roots: Roots, rng: np.random.Generator, rows: int = ROWS
) -> tuple[Check, ...]:
    """All checks of a causal model, by name, on at most ``rows`` rows drawn at random.

    Args:
        graph: As for ``abduction.fit``; its mechanisms are fitted anew on four folds of five.
        columns: ``n`` applicants.
        roots: The protected attributes of the same rows.
        rng: Draws rows, folds and the noise of categories and counts.
        rows: Most rows used.

    Raises:
        SpecError: The graph does not fit the columns.
        TooFewError: Fewer rows can be used than two per fold.
    """
    nodes, sample = nodes_of(graph, columns, roots), _sample(graph, columns, roots, rng, rows)
    checks: list[Check] = []
    for node in nodes:
        # Mean score over folds that the fit has not seen, and the noise `(n, d)` of every row by the fit of the others.
        seed, hold_out_noise, scores = int(rng.integers(2**31)), [], []
        order: list[NDArray[np.intp]] = []
        for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(sample):
            mechanism = fit_node(node, sample[train], seed)
            causes, values = node.encode(sample[test]), sample[test, node.place]
            hold_out_noise.append(mechanism.abduct(causes, values, rng.random((len(test), mechanism.draws))))
            scores.append(_score(mechanism, causes, values, sample[train, node.place]))
            order.append(test)
        score, noise = float(np.mean(scores)), np.concatenate(hold_out_noise)[np.argsort(np.concatenate(order))]
        checks += [_fit_check(node, score, len(sample)), *_noise_checks(node, sample, noise)]
    checks += independence_checks(graph, columns, roots, sample, rng)
    done: list[Check] = []
    for name in dict.fromkeys(check.name for check in checks):
        same = [check for check in checks if check.name == name]
        q_values = benjamini_hochberg(np.array([check.p for check in same]))
        done += [
            replace(c, q=float(q), words=c.words or _words(c, q <= ALPHA)) for c, q in zip(same, q_values, strict=True)
        ]
    return tuple(done)


def _sample(graph: CausalGraph, columns: Columns, roots: Roots, rng: np.random.Generator, rows: int) -> Floats:
    """Rows of the state that are complete in the causal model, at most ``rows`` of them."""
    nodes, state = nodes_of(graph, columns, roots), state_of(columns, roots, graph)
    usable = np.flatnonzero((unusable(nodes, state) == "") & np.isfinite(state).all(axis=1))
    if len(usable) < 2 * FOLDS:
        raise TooFewError(f"{len(usable)} rows are complete in the causal model; its checks need {2 * FOLDS}")
    return np.asarray(state[np.sort(rng.choice(usable, min(rows, len(usable)), replace=False))], dtype=np.float64)


def _score(mechanism: FittedMechanism, causes: Floats, values: Floats, training_labels: Floats) -> float:
    """R2 of numbers; of categories the share of log loss saved against their shares in ``training_labels``.

    1 of a single category, as of numbers that are all the same: nothing is lost.
    """
    if not isinstance(mechanism, Ordinal | Nominal):
        return float(r2_score(values, mechanism.expected(causes)))  # type: ignore[attr-defined]
    if mechanism.categories == 1:
        return 1.0
    labels = np.arange(mechanism.categories)
    # one row of each category more: a category that the fold misses would else cost an endless loss
    margin = np.bincount(np.concatenate([training_labels, labels]).astype(np.int64)) / (
        len(training_labels) + len(labels)
    )
    fitted = np.maximum(mechanism.probabilities(causes), 1 / (len(training_labels) + len(labels)))
    fitted /= fitted.sum(axis=1, keepdims=True)
    lost = log_loss(values, fitted, labels=labels)
    return float(1 - lost / log_loss(values, np.tile(margin, (len(values), 1)), labels=labels))


def _fit_check(node: Node, score: float, n: int) -> Check:
    measure = "share of log loss saved" if node.categories else "R2"
    causes = ", ".join(cause.name for cause in node.causes)
    words = f"On rows that it was not fitted to, {node.name} given {causes} has a {measure} of {score:.3f}."
    return Check("held_out_fit", node.name, "", tuple(c.name for c in node.causes), score, np.nan, np.nan, n, words)


def _noise_checks(node: Node, state: Floats, noise: Floats) -> list[Check]:
    """Whether the noise has the same location and the same spread for all values of each cause.

    Rank tests, since noise is seldom normal: Kruskal and Wallis (1952), Fligner and Killeen (1976). Over tenths of a
    numeric cause they see a bent effect as well as noise that grows. Of nominal columns every category's noise is
    tested, and the smallest p is multiplied by their number.
    """
    is_finite = np.isfinite(noise).all(axis=1)
    checks = []
    for cause in node.causes:
        group = _bins(cause, state[is_finite])
        for name, test in (("noise_location", kruskal), ("noise_spread", fligner)):
            results = [result for d in range(noise.shape[1]) if (result := _compare(test, noise[is_finite, d], group))]
            if results:
                statistic, p = min(results, key=lambda result: result[1])
                adjusted, n = min(1.0, p * len(results)), int(is_finite.sum())
                checks.append(Check(name, node.name, cause.name, (), statistic, adjusted, np.nan, n, ""))
    return checks


def _bins(cause: Cause, state: Floats) -> NDArray[np.int64]:
    """Group or category of every row, or the tenth of its number where there are many."""
    values = state[:, cause.place]
    distinct, codes = np.unique(values, return_inverse=True)
    if cause.labels or len(distinct) <= _BINS:
        return codes.astype(np.int64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _compare(test: Any, noise: Floats, group: NDArray[np.int64]) -> tuple[float, float] | None:
    """Statistic and p of a test over the groups that are large enough; None where there is nothing to compare."""
    samples = [noise[group == g] for g in np.unique(group)]
    samples = [sample for sample in samples if len(sample) >= _CHECKS_FEWEST]
    if len(samples) < 2 or np.ptp(np.concatenate(samples)) == 0:
        return None
    result = test(*samples)
    return float(result.statistic), float(result.pvalue)


def independence_checks(
    graph: CausalGraph, columns: Columns, roots: Roots, state: Floats, rng: np.random.Generator
) -> list[Check]:
    """The independences that the graph implies, one test each; those with the same conditions share regressions."""
    causes = all_causes(columns, roots)
    numbers = normal_scores(state, [cause.place for cause in causes.values() if not cause.labels])
    checks = []
    for (name, conditions), claims in groupby(
        implied(graph, columns.names, roots.names), key=lambda c: (c.node, c.conditions)
    ):
        other_names = [claim.other for claim in claims]
        tested = covariance_test(
            numbers, causes[name], [causes[o] for o in other_names], [causes[g] for g in conditions], rng
        )
        for other, (statistic, p) in zip(other_names, tested, strict=True):
            checks.append(Check("independence", name, other, conditions, statistic, p, np.nan, len(state), ""))
    return checks


def _words(check: Check, contradicted: bool) -> str:
    """What a test found, for a reader who knows no statistics."""
    if check.name == "independence":
        pair = f"{check.node} and {check.other}" + (
            f", given {', '.join(check.conditions)}," if check.conditions else ""
        )
        if contradicted:
            return f"{pair} go together, and the graph says that they do not: an edge or a common cause may be missing."
        return f"{pair} were not seen to go together, as the graph says."
    aspect, meaning = {
        "noise_location": ("level", "the mechanism misses part of the effect, or the two have a common cause"),
        "noise_spread": ("spread", "the noise is not merely added, and counterfactuals may be too near or too far"),
    }[check.name]
    if contradicted:
        return f"The {aspect} of the noise of {check.node} goes with {check.other}: {meaning}."
    return f"The {aspect} of the noise of {check.node} was not seen to go with {check.other}."


# --------------------------------------------------------------------------------------------------------------------
# Whether the data contradict the causal graph as a whole.
#
# Two comparisons (Eulig and others 2023, as in ``falsify_graph`` of DoWhy): the share of the graph's independences that
# is rejected, and how many graphs with the same edges among permuted columns have no larger share. DoWhy's rule alone
# calls a right graph falsified wherever few columns go together, as all graphs are then as good. So one independence
# has to be rejected at a familywise level: a right graph is called contradicted in at most 5 % of data sets.


MOST_REJECTED = 0.10
"""Share of the independences, rejected at a familywise level, above which a graph is contradicted by itself."""

PERMUTATIONS = 20
"""Graphs with permuted columns: 1 / ALPHA, as in DoWhy."""


class GraphTest(NamedTuple):
    """A causal graph held against the data."""

    tests: int
    """Independences that it implies."""
    rejected: int
    """Of these, rejected at 5 % after Holm."""
    dependent: int
    """Of these, rejected at 5 % each."""
    permutations: int
    """Graphs with permuted columns that it was compared with; 0 where no independence is rejected."""
    as_good: int
    """Of these, with no larger number rejected at 5 % each."""
    equivalent: int
    """Of these, which imply nothing that the graph does not imply: where many do, a comparison says nothing."""
    contradicted: bool
    words: str


def compare_with_permuted(
    graph: CausalGraph,
    columns: Columns,
    roots: Roots,
    p: Floats,
    rng: np.random.Generator,
    rows: int = ROWS,
) -> GraphTest:
    """Hold a graph against the data, and against graphs with permuted columns.

    Args:
        graph: As for ``check_model``.
        columns: ``n`` applicants.
        roots: The protected attributes of the same rows.
        p: ``(c,)`` of the independences that the graph implies, in the order of ``implied``.
        rng: Draws rows, permutations and folds.
        rows: Most rows used.

    Raises:
        SpecError: The graph does not fit the columns.
        TooFewError: Fewer rows can be used than two per fold.
    """
    claims = implied(graph, columns.names, roots.names)
    if not claims:
        words = "the graph implies no independence that data could contradict"
        return GraphTest(0, 0, 0, 0, 0, 0, contradicted=False, words=words)
    rejected, dependent = int(step_down(p, ALPHA).rejected.sum()), int((p <= ALPHA).sum())
    tally = f"{rejected} of the {len(claims)} independences that the graph implies are rejected"
    if not rejected:
        words = f"none of the {len(claims)} independences that the graph implies is rejected"
        return GraphTest(len(claims), 0, dependent, 0, 0, 0, contradicted=False, words=words)
    permuted = _Permuted(graph, columns, roots, claims, _sample(graph, columns, roots, rng, rows), rng)
    draws = [permuted.draw() for _ in range(PERMUTATIONS)]
    as_good, equivalent = sum(count <= dependent for count, _ in draws), sum(same for _, same in draws)
    is_informative = equivalent <= ALPHA * PERMUTATIONS
    is_random = is_informative and as_good > ALPHA * PERMUTATIONS
    contradicted = rejected > MOST_REJECTED * len(claims) or is_random
    words = f"{tally}; {as_good} of {PERMUTATIONS} graphs with permuted columns fit as well or better"
    return GraphTest(len(claims), rejected, dependent, PERMUTATIONS, as_good, equivalent, contradicted, words)


class _Permuted:
    """Graphs with the same edges among permuted columns, and the tests that they share."""

    def __init__(
        self,
        graph: CausalGraph,
        columns: Columns,
        roots: Roots,
        claims: Sequence[Claim],
        sample: Floats,
        rng: np.random.Generator,
    ) -> None:
        self._causes, self._claims, self._rng = all_causes(columns, roots), claims, rng
        numbers = [cause.place for cause in self._causes.values() if not cause.labels]
        self._state = normal_scores(sample, numbers)
        self._separating = graph.directed
        self._separating.add_nodes_from(self._causes)
        # how protected attributes go together is observed, as if they had a common cause
        self._separating.add_edges_from(("", name) for name in roots.names)
        self._p: dict[tuple[frozenset[str], frozenset[str]], float] = {}

    def draw(self) -> tuple[int, bool]:
        """Of one permutation: how many independences are rejected at 5 % each, and whether the graph implies them."""
        names = list(self._causes)
        renamed = dict(zip(names, self._rng.permutation(names).tolist(), strict=True))
        claims = [
            Claim(renamed[c.node], renamed[c.other], tuple(renamed[g] for g in c.conditions)) for c in self._claims
        ]
        for (node, conditions), same in groupby(claims, key=lambda c: (c.node, c.conditions)):
            keys = {c.other: (frozenset((node, c.other)), frozenset(conditions)) for c in same}
            untested = [node for node, key in keys.items() if key not in self._p]
            tested = covariance_test(
                self._state,
                self._causes[node],
                [self._causes[node] for node in untested],
                [self._causes[name] for name in conditions],
                self._rng,
            )
            self._p |= {keys[node]: p for node, (_, p) in zip(untested, tested, strict=True)}
        p_values = [self._p[frozenset((c.node, c.other)), frozenset(c.conditions)] for c in claims]
        implied_too = all(nx.is_d_separator(self._separating, {c.node}, {c.other}, set(c.conditions)) for c in claims)
        return int((np.array(p_values) <= ALPHA).sum()), implied_too
