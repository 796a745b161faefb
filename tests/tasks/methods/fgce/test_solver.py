"""The solver run for real, as a child that can be killed."""

import tempfile
import time

import numpy as np
import psutil
import pulp
import pytest

from schemas.errors import InfrastructureError
from tasks.methods.fgce.algorithm import solver
from tasks.methods.fgce.algorithm.covering import Part, max_cover
from tasks.methods.fgce.algorithm.solver import Solver, solve


@pytest.fixture(autouse=True)
def _tidy(monkeypatch, tmp_path_factory):
    """Temporary files go to a place of their own, which is empty at the end."""
    place = tmp_path_factory.mktemp("models")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


def knapsack(limit=10):
    """Worth 5, 4 and 3 at weights 6, 5 and 4: the last two fit together."""
    problem = pulp.LpProblem("knapsack", pulp.LpMinimize)
    take = [problem.add_variable(f"t{i}", cat="Binary") for i in range(3)]
    problem += pulp.lpSum(-worth * t for worth, t in zip((5, 4, 3), take, strict=True))
    problem += pulp.lpSum(weight * t for weight, t in zip((6, 5, 4), take, strict=True)) <= limit
    problem += pulp.lpSum(take) >= 1
    return problem


def hard():
    """Fewest of 200 columns that meet 200 random rows: minutes of work, 21 to 25 columns."""
    problem = pulp.LpProblem("hard", pulp.LpMinimize)
    use = [problem.add_variable(f"u{i}", cat="Binary") for i in range(200)]
    problem += pulp.lpSum(use)
    for row in np.random.default_rng(3).random((200, 200)) < 0.05:
        problem += pulp.lpSum(use[column] for column in np.flatnonzero(row)) >= 1
    return problem


def test_the_optimum_with_its_proof():
    found = solve(knapsack(), Solver())
    assert (found.status, found.note) == ("proven", "")
    assert (found.objective, found.bound) == pytest.approx((-8, -8))
    assert [found.values[f"t{i}"] for i in range(3)] == pytest.approx([1, 0, 1])


def test_the_infeasible():
    found = solve(knapsack(limit=3), Solver())
    assert (found.status, dict(found.values), found.bound) == ("infeasible", {}, float("inf"))


def test_the_limit_gives_a_bound_in_time():
    for seconds in (3, 12):  # on a machine that is busy with other things the first bound may take longer
        start = time.monotonic()
        found = solve(hard(), Solver(seconds))
        assert time.monotonic() - start < seconds + 2
        assert found.status == "stopped"
        assert found.note == f"the solver was stopped after {seconds} s"
        if np.isfinite(found.bound):
            break
    assert 15 < found.bound <= 25
    # how good a solution was found by then depends on how busy the machine is
    assert not found.values or found.bound < found.objective


def script(place, body):
    """A program that stands where CBC was."""
    path = place / "cbc"
    path.write_text(f"#!/bin/sh\necho $$ > {place}/pid\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("exec sleep 60", "the solver was stopped after 0.5 s"),
        ("kill -9 $$", "the solver was ended by SIGKILL"),
        ("kill -11 $$", "the solver was ended by SIGSEGV"),
        ("exit 3", "the solver failed with exit code 3"),
    ],
)
def test_a_cbc_that_hangs_crashes_or_is_killed_is_a_note(monkeypatch, tmp_path, body, note):
    path = script(tmp_path, body)
    monkeypatch.setattr(solver, "cbc_path", lambda: path)
    assert_stopped(Solver(0.5), note, tmp_path)


def assert_stopped(chosen, note, place):
    """It ends in time with nothing but a note, and its process is gone."""
    start = time.monotonic()
    found = solve(knapsack(), chosen)
    assert time.monotonic() - start < 5
    assert (found.status, dict(found.values), found.bound, found.note) == ("stopped", {}, -float("inf"), note)
    assert not psutil.pid_exists(int((place / "pid").read_text()))


def test_a_killed_solver_ends_up_as_a_reason(monkeypatch, tmp_path):
    path = script(tmp_path, "kill -9 $$")
    monkeypatch.setattr(solver, "cbc_path", lambda: path)
    cover = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1], [0, 0, 1]], dtype=bool)
    part = Part(np.where(cover, 1.0, np.inf), np.ones(6, np.int64))
    found = max_cover([part], 2, 1.0, Solver())
    assert (found.value, found.bound, found.exact) == (5, 6, False)
    assert found.reason == "a bound: the solver was ended by SIGKILL; the optimum lies between 5 and 6"


def test_a_missing_cbc_is_named_with_the_next_step(monkeypatch, tmp_path):
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match=r"CBC was not found at .*none.*reinstall PuLP"):
        solve(knapsack(), Solver())


def test_only_minimisation():
    with pytest.raises(ValueError, match="'up' maximises"):
        solve(pulp.LpProblem("up", pulp.LpMaximize), Solver())
