"""Counting in lists of neighbours, against a clear loop over the members of every group."""

import numpy as np
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.methods.cst.algorithm import situations
from tasks.methods.cst.algorithm.neighbours import Neighbours
from tasks.methods.cst.algorithm.situations import NOBODY
from tasks.methods.cst.settings import CstSettings

QUICK = settings(deadline=None, max_examples=examples(150))
CENTRE = -7
"""The counterfactual among the rows searched, where it is searched with them."""


def options(duplicates, ties="ascending", ks=(2, 3), k=2):
    return CstSettings(ks=ks, k=k, duplicates=duplicates, ties=ties)


def sorted_rows(places, members, at, ties):
    """Rows by their distance from a place, ties by id; and the distances."""
    sign = 1 if ties == "ascending" else -1
    order = sorted(members, key=lambda row: (abs(places[row] - at), sign * row))
    return order, [abs(places[row] - at) for row in order]


def listed(places, members, centres, size, ties):
    rows, distances = np.full((len(centres), size), NOBODY), np.full((len(centres), size), np.inf)
    for i, at in enumerate(centres):
        order, far = sorted_rows(places, members, at, ties)
        rows[i, : min(size, len(order))], distances[i, : min(size, len(order))] = order[:size], far[:size]
    return Neighbours(rows, distances)


def control_by_hand(places, own, row, k, chosen, centred):
    """Members of one control group; with ``kept`` whoever is among the k + 1 nearest, as the reference code does."""
    order = sorted_rows(places, own, places[row], chosen.ties)[0]
    others = [other for other in order if other != row]
    if len(others) < k:
        return None
    if chosen.duplicates == "removed":
        return others[:k] + [row] * centred
    first = order[: k + 1]
    return first if centred else [other for other in first if other != row]


def test_by_hand(places, others, row, at, k, chosen, centred):
    """Members of one test group; with ``kept`` the counterfactual is one of the rows searched, under ``row``."""
    order = sorted_rows(places, others, at, chosen.ties)[0]
    if len(order) < k:
        return None
    if not centred:
        return order[:k]
    if chosen.duplicates == "removed":
        return [*order[:k], CENTRE]
    sign = 1 if chosen.ties == "ascending" else -1
    searched = [(abs(places[other] - at), sign * other, other) for other in others]
    return [other for *_, other in sorted([*searched, (0, sign * row, CENTRE)])][: k + 1]


test_by_hand.__test__ = False


@st.composite
def scenes(draw):
    """Rows on a coarse grid, so that many are equal; the first ones are the complainants' group."""
    n = draw(st.integers(2, 14))
    places = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    protected = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    protected[draw(st.integers(0, n - 1))] = True
    refused = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    duplicates, ties = draw(st.sampled_from(["kept", "removed"])), draw(st.sampled_from(["ascending", "descending"]))
    return places, np.flatnonzero(protected), np.flatnonzero(~protected), refused, options(duplicates, ties)


def check(counts, at, i, members, refused):
    if members is None:
        assert np.isnan(counts.refused[at, i])
        assert np.isnan(counts.n[at, i])
    else:
        assert counts.n[at, i] == len(members)
        assert counts.refused[at, i] == sum(refused[member] for member in members)


@QUICK
@given(scene=scenes())
def test_control_groups_are_those_of_the_loop(scene):
    places, own, _, refused, chosen = scene
    near = listed(places, own, places[own], situations.length(chosen), chosen.ties)
    side = situations.control_side(near, own, refused, chosen)
    for i, row in enumerate(own):
        for at, k in enumerate(chosen.ks):
            alone = control_by_hand(places, own, row, k, chosen, centred=False)
            check(side.alone, at, i, alone, refused)
            check(side.centred, at, i, control_by_hand(places, own, row, k, chosen, centred=True), refused)
            if k == chosen.k:
                members = side.members.rows[i]
                assert members[members != NOBODY].tolist() == (alone or [])


@QUICK
@given(scene=scenes(), seed=st.integers(0, 9))
def test_test_groups_are_those_of_the_loop(scene, seed):
    places, own, others, refused, chosen = scene
    rng = np.random.default_rng(seed)
    centres, imagined = rng.integers(0, 4, len(own)), rng.random(len(own)) < 0.5
    near = listed(places, others, centres, situations.length(chosen), chosen.ties)
    side = situations.test_side(near, own, refused, imagined, chosen)
    unknown = situations.test_side(near, own, refused, None, chosen)
    assert np.array_equal(side.alone, unknown.alone, equal_nan=True)
    assert np.isnan(unknown.centred.refused).all()
    for i, row in enumerate(own):
        decided = {**dict(enumerate(refused)), CENTRE: imagined[i]}
        for at, k in enumerate(chosen.ks):
            alone = test_by_hand(places, others, row, centres[i], k, chosen, centred=False)
            centred = test_by_hand(places, others, row, centres[i], k, chosen, centred=True)
            check(side.alone, at, i, alone, decided)
            check(side.centred, at, i, centred, decided)
            if k == chosen.k:
                members = side.members.rows[i]
                assert members[members != NOBODY].tolist() == (alone or [])


def test_exact_duplicates_of_a_complainant():
    """Four equal rows, k = 2: row 0 is not among its own three nearest when later rows come first."""
    places, rows, refused = np.zeros(4), np.arange(4), np.array([True, False, False, True])
    kept = options("kept", "descending", ks=(2,))
    near = listed(places, rows, places[:1], 3, "descending")
    side = situations.control_side(near, rows[:1], refused, kept)
    assert (side.alone.refused[0, 0], side.alone.n[0, 0]) == (1, 3)
    assert (side.centred.refused[0, 0], side.centred.n[0, 0]) == (1, 3)
    removed = options("removed", "descending", ks=(2,))
    side = situations.control_side(near, rows[:1], refused, removed)
    assert (side.alone.refused[0, 0], side.alone.n[0, 0]) == (1, 2)
    assert (side.centred.refused[0, 0], side.centred.n[0, 0]) == (2, 3)


@QUICK
@given(scene=scenes(), cut=st.integers(0, 14))
def test_blocks_put_together_are_the_whole(scene, cut):
    places, own, _, refused, chosen = scene
    near = listed(places, own, places[own], situations.length(chosen), chosen.ties)
    whole = situations.control_side(near, own, refused, chosen)
    parts = [
        situations.control_side(Neighbours(near.rows[some], near.distances[some]), own[some], refused, chosen)
        for some in (slice(None, cut), slice(cut, None))
    ]
    for one, other in zip(situations.joined(parts), whole, strict=True):
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))
