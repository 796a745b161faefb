"""Junction trees over columns, and cells by them, against all columns crossed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.metrics.publish.algorithm.audit import Auditor, cells_of, cliques, junctions
from tasks.metrics.publish.algorithm.populations import (
    REST,
    REST_PART,
    Attribute,
    Base,
    Count,
    Event,
    People,
    Place,
    Population,
    populations_of,
    rests,
)

USED = Place(Base.USED, "lender")


def sets(*names: str) -> list[frozenset[str]]:
    return [frozenset(name) for name in names]


def test_cliques_of_a_chain_a_star_and_a_circle() -> None:
    assert set(cliques(sets("a", "ab", "bc"))) == set(sets("ab", "bc"))
    assert set(cliques(sets("ab", "ac", "ad"))) == set(sets("ab", "ac", "ad"))
    assert len(cliques(sets("ab", "bc", "cd", "da"))) == 2  # a chord is added
    assert all(len(each) == 3 for each in cliques(sets("ab", "bc", "cd", "da")))
    assert cliques([]) == [frozenset()]


@given(st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=3), max_size=7))
def test_cliques_hold_every_set_and_their_tree_has_running_intersections(given_sets: list[frozenset[str]]) -> None:
    found = cliques(given_sets)
    assert all(any(each <= clique for clique in found) for each in given_sets)
    pairs = junctions(found)
    assert len(pairs) == len(found) - 1
    for column in "abcdef":  # the cliques with a column hang together
        having = {i for i, clique in enumerate(found) if column in clique}
        edges = sum(left in having and right in having for left, right in pairs)
        assert edges == max(len(having) - 1, 0)


def people_of(rows: np.ndarray, joint: bool) -> People:
    """Columns a, b, c of two values; attributes over ab and bc, and one over all three if ``joint``."""
    columns = {name: rows[:, i] for i, name in enumerate("abc")}
    attributes = [
        Attribute(one + other, (one, other), ("00", "01", "10", "11"), 2 * columns[one] + columns[other])
        for one, other in pairwise("abc")
    ]
    if joint:
        attributes.append(Attribute("abc", ("a", "b", "c"), tuple("01234567"), rows[:, :3] @ np.array([4, 2, 1])))
    denied = {Event("denied", "lender"): rows[:, 3] == 1}
    return People(columns, tuple(attributes), {USED: np.ones(len(rows), dtype=bool)}, denied, weights=rows[:, 4])


EVERY = np.array([[a, b, c, d] for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)], dtype=np.int64)


@given(st.lists(st.integers(0, 3), min_size=16, max_size=16), st.integers(0, 2**16 - 1))
def test_bounds_by_a_tree_are_those_by_all_columns_crossed(weights: list[int], shown: int) -> None:
    rows = np.column_stack([EVERY, weights])
    counts = [
        Count(Population(name, group, 0, "lender", Base.USED), event)
        for name in ("ab", "bc")
        for group in ("00", "01", "10", "11")
        for event in ("", "denied")
    ]
    found = []
    for joint in (False, True):
        people = people_of(rows, joint)
        # a count over all three columns, of which nothing is said, makes one clique of them
        beside = [Count(Population("abc", "0", 0, "lender", Base.USED))] if joint else []
        cells = cells_of(people, [*counts, *beside])
        assert len(cells.blocks) == (1 if joint else 2)
        auditor = Auditor(cells, [*counts, *beside])
        low, high = np.full(auditor.truth.size, -np.inf), np.full(auditor.truth.size, np.inf)
        for number, count in enumerate(counts):
            if shown >> number & 1:
                low[auditor.rows[count]] = high[auditor.rows[count]] = people.size(count)
        asked = [count for number, count in enumerate(counts) if not shown >> number & 1][:2]
        most = max(people.size(Count(Population("ab", "00", 0, "lender", Base.USED))), 40)
        high = np.minimum(high, most)  # else the blocks' sums decide what is unbounded
        found.append([ends(auditor, count, low, high) for count in asked])
    assert found[0] == found[1]


def ends(auditor: Auditor, count: Count, low: np.ndarray, high: np.ndarray) -> tuple[int, int, bool]:
    interval = auditor.interval(count, low, high)
    return interval.least, interval.largest, interval.proven


def test_a_count_is_the_sum_of_its_cells() -> None:
    rng = np.random.default_rng(2)
    race, sex = rng.integers(-1, 3, 200), rng.integers(0, 2, 200)
    parts = np.where(race == 1, rng.integers(0, 4, 200), 0)
    people = People(
        {"race": race + 1, "sex": sex},
        (Attribute("race", ("race",), ("w", "b", "h"), race), Attribute("sex", ("sex",), ("m", "f"), sex)),
        {USED: rng.random(200) < 0.8, Place(Base.SOURCE, "lender"): np.ones(200, dtype=bool)},
        {Event("denied", "lender"): rng.random(200) < 0.3},
        {("race", "lender"): parts},
    )
    populations = list(populations_of(people))
    populations += rests(populations)
    counts = [
        Count(each, event, rest)
        for each in populations
        for event, rest in (("", False), ("denied", False), ("denied", True))
    ]
    cells = cells_of(people, counts)
    assert (cells.sums(counts) @ cells.truth).tolist() == [people.size(count) for count in counts]
    assert not np.any(cells.agreements @ cells.truth)
    assert {each.part for each in populations} == {0, 1, 2, 3, REST_PART}
    assert any(each.group == REST for each in populations)
    for place in people.bases:
        whole = [
            people.size(Count(Population("race", group, 0, "lender", place.base))) for group in ("w", "b", "h", REST)
        ]
        assert sum(whole) == int(people.bases[place].sum())


def test_an_unknown_group_or_base_is_an_error() -> None:
    people = people_of(np.column_stack([EVERY, np.ones(16, dtype=np.int64)]), joint=False)
    with pytest.raises(KeyError):
        cells_of(people, [Count(Population("ab", "00", 0, "model", Base.USED))])
    with pytest.raises(ValueError, match="not in tuple"):
        cells_of(people, [Count(Population("ab", "22", 0, "lender", Base.USED))]).sums(
            [Count(Population("ab", "22", 0, "lender", Base.USED))]
        )
    with pytest.raises(KeyError, match="no attribute 'race'"):
        people.size(Count(Population("race", "00", 0, "lender", Base.USED)))
