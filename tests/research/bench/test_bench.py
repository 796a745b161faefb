"""The benchmarks of methods: what is compared finds the same, and the command prints what it measured."""

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import SHARED, evenhand, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from research.cst import bench as bench_cst
from research.cst import timed_work as cst_stages
from research.fgce import timed_work
from research.fgce import timed_work as fgce_stages
from research.fgce.bench import BENCH
from research.fgce.timed_work import Scored
from schemas.terms import Kind
from tasks.feasibility_graph.algorithm import DOWN, FREE, IMMUTABLE, UP, Rules
from tasks.methods.cst.settings import CstSettings
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Applicants, Counterfactuals, FeasibilityGraph, Problem

STAGES = (
    *(fgce_stages.COLLAPSE, fgce_stages.GRAPH, fgce_stages.COMPONENTS, fgce_stages.REACH),
    *(fgce_stages.OPTIMA, fgce_stages.SELECT, fgce_stages.TABLES),
)
ASKED = FgceSettings(epsilon=1 / 3, k=4, **FgceSettings.paper)
"""Exactly two steps of a grid of sixths, so that edges hang on the last bit."""


@st.composite
def people(draw):
    """Rows on a coarse grid, with ties, equal rows and equal distances everywhere."""
    n, seed = draw(st.integers(2, 120)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    factual = rng.random(n) < 0.5
    return Scored(
        encoded=rng.integers(0, 7, (n, 3)) / 6,
        group=rng.integers(0, 2, n).astype(np.int32),
        factual=factual,
        candidate=~factual & (rng.random(n) < 0.5),
        direction=np.array(draw(st.permutations([UP, FREE, draw(st.sampled_from([DOWN, FREE, IMMUTABLE]))])), np.int8),
        feature=np.arange(3, dtype=np.int32),
    )


@settings(max_examples=examples(60), deadline=None)
@given(people())
def test_arrays_and_plain_loops_agree(scored):
    said = fgce_stages.compared(scored, ASKED, len(scored.group), seed=0)
    assert said["covered"] <= said["factuals"] == scored.factual.sum()


def test_a_difference_is_an_error():
    found = timed_work.Plain(3, (1,), (np.array([[1, 2]]),))
    fgce_stages._require_equal(found, replace(found, covered=(np.array([[1, 2]]),)))
    for other in (
        replace(found, edges=4),
        replace(found, components=(2,)),
        replace(found, covered=(np.array([[2, 2]]),)),
    ):
        with pytest.raises(RuntimeError, match="differ"):
            fgce_stages._require_equal(found, other)


def test_plain_form_by_hand():
    """Only up, at most 0.3 a step; group 0 stands at .0 .2 .4 and .9, group 1 at .0 and .2.

    From .0 to .4 it takes two steps, so the row at .0 pays .4 and that at .2 pays .2; .9 is out of reach, and so is
    everything for group 1, whose only candidate lies below its factual.
    """
    rows = timed_work.Rows(
        encoded=np.array([[0.0], [0.2], [0.4], [0.9], [0.0], [0.2]]),
        group=np.array([0, 0, 0, 0, 1, 1], np.int32),
        factual=np.array([True, True, False, False, False, True]),
        candidate=np.array([False, False, True, True, True, False]),
    )
    found = timed_work.explain(rows, Rules(np.array([UP], np.int8)), 0.3, [0.1, 0.3, np.inf], 2)
    assert found.edges == 3
    assert found.components == (2, 1)
    assert [each.tolist() for each in found.covered] == [[[0, 0], [1, 1], [2, 2]], [[0, 0], [0, 0], [0, 0]]]


def test_greedy_breaks_ties_by_total_cost_then_by_number():
    """Three candidates cover two rows each; after 7 or 9 the other covers two more, after 8 each covers but one."""
    costs = {0: {7: 0.1}, 1: {7: 0.1, 8: 0.2}, 2: {8: 0.2, 9: 0.3}, 3: {9: 0.3}}
    assert timed_work.greedy(costs, {7: 2, 8: 0, 9: 1}, 1.0, 4) == [2, 4, 4, 4]
    assert timed_work.greedy(costs, {7: 2, 8: 0, 9: 1}, 0.2, 3) == [2, 3, 3]
    same = {row: dict.fromkeys(paid, 0.1) for row, paid in costs.items()}
    assert timed_work.greedy(same, {7: 0, 8: 1, 9: 2}, 1.0, 3) == [2, 4, 4]
    assert timed_work.greedy(same, {7: 1, 8: 0, 9: 2}, 1.0, 3) == [2, 3, 4]


@pytest.mark.long
@pytest.mark.data(*BENCH.files)
def test_command_on_few_rows():
    done = evenhand("bench", "fgce", "--data", str(SHARED), "--rows", "300", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    by = {(row["data"], row["what"]): row for row in rows if row["rows"] == 300}
    for data in ("adult", "compas"):
        stages = [row["seconds"] for (of, what), row in by.items() if of == data and what in STAGES]
        assert len(stages) == len(STAGES)
        assert by[data, "all stages"]["seconds"] == pytest.approx(sum(stages))
        assert 50 < by[data, "peak memory"]["peak_mb"] < 1000
        assert by[data, "graph"]["per_s"] > 0
    slow, fast = (row for (_, what), row in by.items() if what.startswith("graph, reach"))
    assert fast["ratio"] == pytest.approx(slow["seconds"] / fast["seconds"])
    assert fast["ratio"] > 1
    assert all(row["target"] is None and row["met"] is None for row in rows)


@pytest.fixture
def case():
    """200 people, a third of them protected; the first column is the number of the row, also of the imagined."""
    rng, n = np.random.default_rng(0), 200
    values = np.column_stack([np.arange(n), rng.random(n), rng.integers(0, 3, n)]).astype(float)
    group = (rng.random(n) < 1 / 3).astype(np.int32)
    row = np.flatnonzero(group)
    columns = Columns(
        ("a", "b", "c"), (Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.NOMINAL), ((), (), ("x", "y", "z")), values
    )
    made = Counterfactuals(row, values[row], rng.random(len(row)) < 0.7)
    favourable = rng.random(n) < 0.5
    applicants = Applicants(columns, favourable, ("g",), counterfactuals=made)
    nothing = np.zeros(0, np.int32)
    return Problem(
        encoded=rng.random((n, 2)),
        feature_of_column=np.arange(2, dtype=np.int32),
        features=("x", "y"),
        group=group,
        groups=("others", "protected", "more"),
        reference=0,
        factual=~favourable,
        candidate=favourable,
        node=np.arange(n, dtype=np.int32),
        graph=FeasibilityGraph(np.zeros(n + 1, np.int64), nothing, np.zeros(0)),
        applicants=applicants,
    )


def test_a_sample_keeps_rows_and_what_they_would_have_been_together(case):
    part = cst_stages.sample(cst_stages.case_of(case), 80)
    values, made = part.applicants.columns.values, part.applicants.counterfactuals
    assert len(values) == len(part.group) == len(part.applicants.favourable) == len(part.factual) == 80
    assert np.array_equal(values[made.row, 0], made.values[:, 0])
    assert np.array_equal(np.flatnonzero(part.group), made.row)
    assert len(cst_stages.sample(case, 1000).group) == 200


def test_detection_counts_complainants_of_all_groups(case):
    """With half of the complainants moved to a group of their own, both groups are counted."""
    asked = CstSettings(k=3, ks=(3, 5), null_permutations=0, sensitivity=False)
    split = replace(case, group=np.where(case.applicants.columns.values[:, 1] < 0.5, 2 * case.group, case.group))
    said = cst_stages.detect(split, asked.model_dump_json(), str(10**6))
    found = cst_stages.cst.detect(split, asked, np.random.default_rng(0)).findings
    assert (said["rows"], said["complainants"], said["refused"]) == (200, int((case.group > 0).sum()), 0)
    assert said["detected"]["cst"][0] == (found.verdict == "detected").sum()
    assert {variant: len(counts) for variant, counts in said["detected"].items()} == {
        "cst": 2,
        "st": 2,
        "cst_with_centres": 2,
        "cf": 1,
    }


def test_neighbours_are_those_of_scikit_learn():
    said = cst_stages.search("3000", "7", "1")
    assert (said["rows"], said["queries"], said["sample"]) == (3000, 300, 100)
    assert said["furthest_apart"] <= bench_cst.MOST_APART


@pytest.mark.long
@pytest.mark.data(*(experiment.sources[0] for experiment in bench_cst.EXPERIMENTS.values()), bench_cst.TEXAS_FILE)
def test_cst_command_on_few_rows():
    done = evenhand("bench", "cst", "--data", str(SHARED), "--rows", "600", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["target"] is None and row["met"] is None for row in rows)
    by = {(row["data"], row["what"]): row for row in rows}
    grid = [row for row in rows if row["what"] == "3 methods, 4 k"]
    total = by["paper", "whole grid: 4 data sets, 3 methods, 4 k"]
    assert len(grid) == 4
    assert all(row["rows"] == 600 and row["found"].startswith("detected: cst ") for row in grid)
    assert total["cpu_s"] == pytest.approx(sum(row["cpu_s"] for row in grid))
    ours, theirs = (row for row in rows if row["data"] == "drawn applicants" and row["per_s"])
    ratio = by["drawn applicants", "queries per second against scikit-learn's"]["ratio"]
    assert ratio == pytest.approx(ours["per_s"] / theirs["per_s"], rel=0.01)
    assert by["drawn applicants", "distances against scikit-learn's"]["found"].endswith("apart")
    assert 50 < by["Texas 2022", "peak memory"]["peak_mb"] < 1000


def test_missing_files_and_names(tmp_path):
    gone = evenhand("bench", "fgce", "--data", str(tmp_path))
    assert (gone.returncode, "adult_integer_coded.csv.gz" in gone.stderr) == (5, True)
    unsaid = evenhand("bench", "fgce")
    assert (unsaid.returncode, "--data" in unsaid.stderr) == (2, True)
    unknown = evenhand("bench", "fgec")
    assert (unknown.returncode, "known: overhead, audit" in unknown.stderr) == (2, True)
    gone = evenhand("bench", "cst", "--data", str(tmp_path))
    assert (gone.returncode, "with golden/cst/loan_factual.csv.gz in it" in gone.stderr) == (5, True)
    unsaid = evenhand("bench", "cst")
    assert (unsaid.returncode, "bench cst needs --data" in unsaid.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("overhead", "--data", "."),
            "bench overhead takes no --data; bench adjusted does, and takes --data and --rows",
        ),
        (("overhead", "--rows", "5"), "bench overhead takes no --rows; bench audit does"),
        (("cst", "--data", ".", "--set", "year=1990"), "bench cst takes no --set; bench overhead does"),
        (("fgce", "--data", ".", "--set", "year=1990"), "bench fgce takes no --set; bench overhead does"),
    ],
)
def test_an_option_of_another_benchmark_is_a_usage_error(words, said):
    done = evenhand("bench", *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
