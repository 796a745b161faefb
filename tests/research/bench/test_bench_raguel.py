"""``evenhand bench raguel``: what its processes time is the work itself, and targets are held against it."""

import numpy as np
import pytest
from conftest import SHARED, evenhand

from research.raguel import bench as bench_raguel
from research.raguel import series
from research.raguel import timed_work as raguel_stages
from research.raguel.bench import EVERYBODY
from research.raguel.experiments import PEOPLE, judged
from schemas.errors import SpecError
from tasks.counterfactuals.algorithm.recourse import Boundary, make_actions


@pytest.fixture(scope="module")
def people():
    """600 people in whole steps, of whom the second group is worse off."""
    rng = np.random.default_rng(4)
    group = (rng.random(600) < 0.4).astype(np.int32)
    values = rng.integers(-8, 9, (600, 4)) / 4 - 0.4 * group[:, None]
    actions = make_actions([0.2, 0.4, 0.7, 1.0], changeable=[True, True, True, False], step=0.25)
    return raguel_stages.People(values, group, Boundary(np.array([1.0, 0.5, 0.3, 0.2]), -4.0), actions)


def test_costs_of_records_follow_the_distance_from_the_boundary(people):
    records = people.records()
    score = np.abs(people.values @ people.boundary.slope - 4.0)
    assert records.cost == pytest.approx(score / score[0] * records.cost[0])


@pytest.mark.parametrize("kind", ["closed", "bounded"])
def test_costs(kind):
    said = raguel_stages.costs("2000", kind)
    assert (said["rows"], said["seconds"] > 0, said["compile_s"] >= 0, said["peak_mb"] > 50) == (2000, *[True] * 3)


def test_steps_solve_each_case_once(people):
    free, two = raguel_stages.steps(people, "0"), raguel_stages.steps(people, "2")
    assert free["rows"] == 600 >= free["cases"] == two["cases"] > 300
    assert (free["refused"], free["unproven"]) == (two["refused"], two["unproven"]) == (0, 0)


def test_both_algorithms(people):
    alone, blocks = raguel_stages.one_by_one(people), raguel_stages.in_blocks(people)
    assert alone["rows"] == blocks["rows"] == 600
    assert alone["seconds"] > 0
    assert blocks["seconds"] >= blocks["median_s"] > 0
    assert blocks["slowest"][0] in (5, 10, 15, 20, 25, 30, 35)


def test_a_drawn_list_and_its_sort():
    said = raguel_stages.drawn("5000")
    assert said["rows"] == 5000
    assert said["seconds"] > said["sort_s"] > 0 < said["cpu_s"]


def told(**more):
    return {"rows": 1000, "seconds": 1.0, "peak_mb": 100.0, "compile_s": 0.5, **more}


def test_targets_are_held_against_what_was_measured(monkeypatch, tmp_path):
    seconds = {10_000: 0.002, 100_000: 0.03, 1_000_000: 0.51}
    answers = {
        "costs": lambda n, kind: told(rows=n, seconds={"closed": 0.09, "bounded": 6.0}[kind]),
        "steps": lambda file, most: told(cases=500, seconds={0: 1.6, 2: 0.1}[most], refused=0, unproven=0),
        "one_by_one": lambda file: told(seconds=0.2),
        "in_blocks": lambda file: told(seconds=0.021, slowest=[10, 0.125], median_s=0.01),
        "drawn": lambda n: told(rows=n, seconds=seconds[n], cpu_s=seconds[n], sort_s=0.001),
    }
    monkeypatch.setattr(bench_raguel, "_run", lambda what, *about: answers[what](*about))
    said = [*bench_raguel._costs(bench_raguel.RECORDS), *bench_raguel._steps(tmp_path)]
    said += [*bench_raguel._rerankings(tmp_path), *bench_raguel._lists(bench_raguel.RECORDS)]
    assert [(row["what"][:24], row["met"]) for row in said if row["target"]] == [
        ("costs, closed form, 10 a", "met"),
        ("costs within bounds, 10 ", "missed"),
        ("whole steps", "missed"),
        ("whole steps, 2 attribute", "met"),
        ("Algorithm 1, real steps,", "met"),
        ("Algorithm 2, slowest set", "missed"),
        ("blocks of 100, with the ", "missed"),
        ("growth from 10,000 recor", "missed"),
    ]
    growth = next(row for row in said if row["what"].startswith("growth"))
    assert growth["ratio"] == pytest.approx(np.log(255) / np.log(100))


@pytest.mark.data(PEOPLE["default-credit"].sources[0])
def test_everybody_is_timed():
    found = judged(PEOPLE["default-credit"], SHARED, **EVERYBODY)
    assert len(series.ranked(found, series.ALL).rows) == 30_000
    assert dict(zip(found.people.groups, np.bincount(found.people.group), strict=True)) == {
        "married": 13_659,
        "not married": 16_341,
    }


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(SpecError, match="--rows 10: bench raguel needs 1000 rows at least"):
        bench_raguel.BENCH.run(tmp_path, 10)
    gone = evenhand("bench", "raguel", "--data", str(tmp_path))
    assert (gone.returncode, "german.data.gz in it" in gone.stderr) == (5, True)
