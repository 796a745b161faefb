"""Times CST on rows with counterfactuals; ``evenhand bench cst`` starts it in a separate process.

It imports neither tables nor stages of an audit, so that the process's peak memory is that of the method. Numba's
kernels are compiled, or loaded from its cache, on few rows before anything is timed.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder

from research.benchmark import answer, peak_mb, sampled, timed
from schemas.terms import Kind
from tasks.methods.cst.algorithm import detection as cst
from tasks.methods.cst.algorithm import neighbours
from tasks.methods.cst.algorithm.neighbours import Space
from tasks.methods.cst.algorithm.situations import applicants_of
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Applicants, Counterfactuals, FeasibilityGraph, Problem
from tasks.numerics.results import Tally

WARM_ROWS = 400
SAMPLE = 100
"""Queries that scikit-learn answers, too."""

NUMERIC, CATEGORIES = 7, (2, 3, 4, 5, 6)
"""Columns of the applicants that are drawn."""

GROUPS = (0.5, 0.25, 0.12, 0.08, 0.04, 0.01)
"""Shares of the groups of a year that is drawn, the reference group first."""

QUERIES = 10
"""One row in so many is a query."""


def case_of(problem: Problem) -> Problem:
    """Returns a problem with nothing in it that CST does not read, to be handed from one process to another."""
    n, nothing, of = len(problem.group), np.zeros(0, np.int64), applicants_of(problem)
    return Problem(
        encoded=np.zeros((n, 0)),
        feature_of_column=np.zeros(0, np.int32),
        features=(),
        group=problem.group,
        groups=problem.groups,
        reference=problem.reference,
        factual=~of.favourable,
        candidate=of.favourable,
        node=np.zeros(0, np.int32),
        graph=FeasibilityGraph(nothing, nothing.astype(np.int32), np.zeros(0)),
        applicants=Applicants(of.columns, of.favourable, of.attribute_columns, counterfactuals=of.counterfactuals),
    )


def sample(problem: Problem, size: int) -> Problem:
    """Draws ``size`` rows of a case without replacement, or all if there are no more."""
    rows, of = sampled(len(problem.group), size), applicants_of(problem)
    counterfactuals = of.counterfactuals
    if counterfactuals is None or counterfactuals.favourable is None:
        raise ValueError("the benchmark needs counterfactuals and the decisions on them")
    is_sampled = np.isin(counterfactuals.row, rows)
    applicants = replace(
        of,
        columns=replace(of.columns, values=of.columns.values[rows]),
        favourable=of.favourable[rows],
        counterfactuals=Counterfactuals(
            np.searchsorted(rows, counterfactuals.row[is_sampled]),
            counterfactuals.values[is_sampled],
            counterfactuals.favourable[is_sampled],
        ),
    )
    by_row = {name: getattr(problem, name)[rows] for name in ("encoded", "group", "factual", "candidate")}
    return replace(problem, **by_row, applicants=applicants)


def detect(case: Problem, settings: str, rows: str) -> dict[str, Any]:
    """Times the detection of every complainant of a case."""
    method_settings = CstSettings.model_validate_json(settings)
    problem, rng = sample(case, int(rows)), np.random.default_rng(0)
    cst.detect(sample(case, WARM_ROWS), method_settings, rng)
    with timed() as times:
        detection = cst.detect(problem, method_settings, rng)
    return {
        "peak_mb": peak_mb(),
        "rows": len(problem.group),
        "complainants": len(detection.findings.row),
        "refused": int((detection.findings.refusal != "").sum()),
        **times,
        "detected": detected(detection.tallies),
    }


def detected(tallies: Sequence[Tally]) -> dict[str, list[int]]:
    """Counts the detected complainants of all groups, by variant and then by number of neighbours."""
    counts: dict[str, dict[float | str, int]] = {}
    for tally in tallies:
        if tally.measure == "share_detected" and "variant" in tally.parameters:
            of = counts.setdefault(str(tally.parameters["variant"]), {})
            k = tally.parameters.get("k", 0)
            of[k] = of.get(k, 0) + int(tally.counts[tally.values == 1].sum())
    return {variant: list(of.values()) for variant, of in counts.items()}


def search(rows: str, k: str, memory_mb: str) -> dict[str, Any]:
    """Times the search for neighbours of every tenth of so many drawn applicants, and scikit-learn's of a sample."""
    rng, settings = np.random.default_rng(1), CstSettings(memory_mb=int(memory_mb))
    space = drawn(int(rows), rng)
    queries = space.rows(np.sort(rng.choice(int(rows), max(int(rows) // QUERIES, 1), replace=False)))
    sample = np.sort(rng.choice(len(queries.numeric), min(SAMPLE, len(queries.numeric)), replace=False))
    few = space.rows(slice(0, WARM_ROWS))
    neighbours.nearest_rows(neighbours.index(few, np.arange(len(few.numeric))), few, 2, settings)
    before, start = peak_mb(), time.perf_counter()
    blocks = neighbours.index(space, np.arange(int(rows)))
    indexed, indexed_mb = time.perf_counter(), peak_mb()
    distances = []
    for some, near in neighbours.in_batches(blocks, queries, int(k), settings):
        distances.append(near.distances[sample[(sample >= some.start) & (sample < some.stop)] - some.start])
    done, most_mb = time.perf_counter(), peak_mb()
    theirs, brute_s = brute_force(space, queries.rows(sample), int(k))
    return {
        "rows": int(rows),
        "queries": len(queries.numeric),
        "index_s": indexed - start,
        "search_s": done - indexed,
        "data_mb": before,
        "indexed_mb": indexed_mb,
        "peak_mb": most_mb,
        "sample": len(sample),
        "brute_s": brute_s,
        "furthest_apart": float(np.abs(theirs - np.concatenate(distances)).max()),
    }


def national(rows: str, k: str) -> dict[str, Any]:
    """Measures the memory of the detection among so many drawn applicants of six groups, evidence included."""
    settings = CstSettings(k=int(k), ks=(int(k),), null_permutations=0, sensitivity=False)
    problem, rng = drawn_problem(int(rows), np.random.default_rng(1)), np.random.default_rng(0)
    before = peak_mb()
    with timed() as times:
        detection = cst.detect(problem, settings, rng)
        evidence = sum(len(piece.row) for piece in detection.evidence.pieces())
    return {"peak_mb": peak_mb(), "data_mb": before, "rows": int(rows), "evidence": evidence, **times}


def drawn_problem(rows: int, rng: np.random.Generator) -> Problem:
    """Draws applicants with decisions and counterfactuals; half of them belong to the reference group."""
    space = drawn(rows, rng)
    group = rng.choice(len(GROUPS), rows, p=GROUPS).astype(np.int32)
    kinds = (Kind.CONTINUOUS,) * NUMERIC + (Kind.NOMINAL,) * len(CATEGORIES)
    codes = tuple(() if place < NUMERIC else tuple("abcdef") for place in range(len(kinds)))
    names = tuple(f"x{place}" for place in range(len(kinds)))
    values = np.column_stack([space.numeric, space.nominal])
    favourable = rng.random(rows) < 0.5 + 0.4 * space.numeric[:, 0] - 0.1 * (group > 0)
    row = np.flatnonzero(group)
    counterfactual_values = values[row]
    counterfactual_values[:, 0] = np.minimum(counterfactual_values[:, 0] + 0.05, 1)
    applicants = Applicants(
        Columns(names, kinds, codes, values),
        favourable,
        (),
        counterfactuals=Counterfactuals(row, counterfactual_values, favourable[row]),
    )
    nothing = np.zeros(0, np.int64)
    graph = FeasibilityGraph(nothing, nothing.astype(np.int32), np.zeros(0))
    none, labels = np.zeros((rows, 0)), tuple("abcdef")
    one_each = nothing.astype(np.int32)
    return Problem(
        none, one_each, (), group, labels, 0, ~favourable, favourable, one_each, graph, applicants=applicants
    )


def drawn(rows: int, rng: np.random.Generator) -> Space:
    """Draws applicants with correlated numbers in [0, 1], some of them at its ends, and with categories."""
    latent = rng.normal(size=(rows, 1))
    numeric = np.clip(rng.normal(size=(rows, NUMERIC)) + 0.7 * latent, -2.5, 2.5)
    shares = [rng.dirichlet(np.full(size, 2.0)) for size in CATEGORIES]
    nominal = np.column_stack([rng.choice(len(share), rows, p=share) for share in shares]).astype(np.float64)
    return Space((numeric + 2.5) / 5, nominal, overlap=True, divisor=float(NUMERIC + len(CATEGORIES)))


def brute_force(space: Space, queries: Space, k: int) -> tuple[Floats, float]:
    """Returns distances ``(q, k)`` by scikit-learn on all cores, and the seconds they took.

    Of a category a row has an indicator of one half, so that two that differ are one apart.
    """
    encoder = OneHotEncoder(sparse_output=False).fit(space.nominal)
    everyone, query_coordinates = (
        np.hstack([of.numeric, encoder.transform(of.nominal) / 2]) for of in (space, queries)
    )
    search = NearestNeighbors(n_neighbors=k, algorithm="brute", metric="manhattan", n_jobs=-1).fit(everyone)
    search.kneighbors(query_coordinates[:1])
    start = time.perf_counter()
    distances = search.kneighbors(query_coordinates)[0] / space.divisor
    return distances, time.perf_counter() - start


if __name__ == "__main__":
    answer(detect, search, national)
