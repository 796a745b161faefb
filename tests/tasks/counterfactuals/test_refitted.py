"""Counterfactuals by a causal model that is fitted to a sample of the rows."""

from typing import NamedTuple

import numpy as np
import pytest

from schemas.audit.causal import CausalGraph
from schemas.audit.spec import Protected
from schemas.tables.applications import MEMBERSHIPS
from schemas.terms import Kind
from tasks.counterfactuals.generators import World
from tasks.numerics.encoding import Columns

N, MOVED = 400, -2.0


class Stated(NamedTuple):
    """Settings with one edge, from the group to the income."""

    causal_graph: CausalGraph = CausalGraph(edges=(("group", "income"),))
    protected: tuple[Protected, ...] = (Protected(name="group", columns=("group",), reference="A0"),)
    decision: None = None
    seed: int = 1


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, N)
    income = rng.normal(size=N) + MOVED * group
    columns = Columns(("income",), (Kind.CONTINUOUS,), ((),), income[:, None])
    ids = np.array([f"r{i}" for i in range(N)], dtype=object)
    labels = np.array(["A0", "A1"], dtype=object)[group]
    members = MEMBERSHIPS.build(row_id=ids, protected_attribute=["group"] * N, group=labels)
    return World.of(columns, members, ids, Stated())


def imagined(world, sample):
    own = world.groups["group"]
    rows = np.flatnonzero(own.group != own.reference)
    return world.imagine("group", _never)(rows, own.group, None, sample)


def _never(columns, rows):
    raise AssertionError("nobody decides on what a sample's model imagines")


def test_a_sample_of_all_rows_is_the_fit_of_all_rows(world):
    own = world.groups["group"]
    rows = np.flatnonzero(own.group != own.reference)
    plain = world.imagine("group", None)(rows, own.group, None)
    again = imagined(world, np.arange(N))
    assert (again.row == plain.row).all()
    assert again.values == pytest.approx(plain.values)
    assert again.favourable is None


def test_a_linear_mechanism_is_fitted_to_the_sample_and_moves_every_row(world):
    own, income = world.groups["group"], world.columns.values[:, 0]
    sample = np.random.default_rng(1).integers(0, N, N)
    gap = income[sample][own.group[sample] == 1].mean() - income[sample][own.group[sample] == 0].mean()
    found = imagined(world, sample)
    assert found.values[:, 0] == pytest.approx(income[found.row] - gap)
    assert not np.allclose(found.values, imagined(world, np.arange(N)).values)


def test_both_decision_makers_share_the_fit_of_a_sample(world):
    before, sample = len(world.counterfactuals), np.arange(N // 2)
    first, second = imagined(world, sample), imagined(world, sample)
    assert first is second
    assert len(world.counterfactuals) == before + 1
