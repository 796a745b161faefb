"""Rows, coding and columns of the design matrix."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import fingerprint

from tasks.methods.adjusted.algorithm import design
from tasks.methods.adjusted.algorithm.design import (
    Applications,
    Block,
    Control,
    LeftOut,
    Levels,
    build_design,
    code_control,
    complete_rows,
    gram_of,
    independent,
    level_name,
    own_levels,
    renumbered,
)

RNG = np.random.default_rng(0)
N = 400
EVERY = np.ones(N, bool)
DENIED = np.arange(N) % 3 == 0


def applications(*controls: Control) -> Applications:
    group = (np.arange(N) % 2).astype(np.int32)
    return Applications(DENIED.copy(), group, ("a", "b"), 0, (Block("first", controls),))


def test_a_number_enters_clipped_and_squared() -> None:
    values = RNG.normal(size=N)
    values[0] = 1e6
    coded = code_control(Control("x", "number", values), DENIED, EVERY, "squared")
    assert coded.names == ("x", "x squared")
    clipped = np.clip(values, *np.quantile(values, (0.01, 0.99)))
    z = (clipped - clipped.mean()) / clipped.std()
    np.testing.assert_allclose(coded.columns[:, 0], z)
    np.testing.assert_allclose(np.corrcoef(coded.columns[:, 1], z**2)[0, 1], 1)


def test_the_textbook_form_neither_clips_nor_squares() -> None:
    values = RNG.normal(size=N)
    values[0] = 100
    coded = code_control(Control("x", "number", values), DENIED, EVERY, "linear")
    assert coded.names == ("x",)
    np.testing.assert_allclose(coded.columns[:, 0], (values - values.mean()) / values.std())


def test_a_rare_flag_is_not_clipped_away() -> None:
    coded = code_control(Control("flag", "number", (np.arange(N) < 3).astype(float)), DENIED, EVERY, "squared")
    assert coded.names == ("flag",)
    assert len(np.unique(coded.columns)) == 2


def test_a_count_that_is_nearly_always_zero_is_not_clipped_away() -> None:
    values = np.where(np.arange(N) < 3, 1.0 + np.arange(N), 0.0)
    coded = code_control(Control("count", "number", values), DENIED, EVERY, "squared")
    assert coded.names == ("count", "count squared")
    np.testing.assert_allclose(coded.columns[:, 0], (values - values.mean()) / values.std())


def test_money_enters_as_its_logarithm() -> None:
    values = np.exp(RNG.normal(size=N))
    logged = code_control(Control("x", "number", values, scale="log"), DENIED, EVERY, "linear")
    np.testing.assert_allclose(
        logged.columns[:, 0],
        code_control(Control("x", "number", np.log(values)), DENIED, EVERY, "linear").columns[:, 0],
    )


def test_money_of_nothing_has_no_logarithm_and_a_little_has_one() -> None:
    values = np.exp(RNG.normal(size=N))
    values[:3] = 0.5, 0.0, -1.0
    used = complete_rows(applications(Control("x", "number", values, scale="log"))).used
    assert np.flatnonzero(~used).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("few", "one_decision", "names", "merged"),
    [
        ((20, 15), False, ("c: b", "c: (rare)"), ()),
        ((20, 15), True, ("c: b", "c: (rare)"), ()),
        ((19, 10), False, ("c: b", "c: (rare)"), ()),
        ((1, 1), False, ("c: b", "c: (rare)"), ()),
        ((19, 10), True, ("c: b",), ("c: c", "c: d")),
    ],
)
def test_rare_categories(
    few: tuple[int, int], one_decision: bool, names: tuple[str, ...], merged: tuple[str, ...]
) -> None:
    codes = np.repeat([0.0, 1.0, 2.0, 3.0], (N - 100 - sum(few), 100, *few))
    denied = (np.arange(N) % 2 == 0) | (one_decision & (codes >= 2))
    coded = code_control(Control("c", "category", codes, ("a", "b", "c", "d")), denied, EVERY, "squared")
    assert (coded.names, coded.merged) == (
        names,
        tuple(f"{each} (fewer than 30 rows, one decision)" for each in merged),
    )
    np.testing.assert_array_equal(coded.columns[:, 0], codes == 1)
    if len(names) > 1:
        np.testing.assert_array_equal(coded.columns[:, 1], codes >= 2)


def test_a_category_of_nothing_but_rare_levels_says_nothing() -> None:
    """An indicator against one level of a few rows would be a level drawn by chance against all others."""
    given = applications(Control("c", "category", np.arange(N) % 100 * 1.0))
    design = build_design(given, complete_rows(given), "squared")
    assert design.names == ("intercept", "b")
    assert design.dropped == ((), ("c: (rare) (no level has 30 rows)",))


def test_constant_and_collinear_columns_are_named() -> None:
    values = RNG.normal(size=N)
    given = applications(
        Control("x", "number", values),
        Control("fixed", "number", np.full(N, 7.0)),
        Control("twice", "number", 2 * values + 1e-9 * RNG.normal(size=N)),
        Control("one", "category", np.zeros(N), ("only",)),
    )
    design = build_design(given, complete_rows(given), "linear")
    assert design.names == ("intercept", "b", "x")
    assert design.dropped == ((), ("fixed (constant)", "one (constant)", "twice (collinear)"))
    assert design.widths == (2, 3)


def test_a_category_of_rare_levels_alone_has_no_columns() -> None:
    coded = code_control(Control("c", "category", np.arange(N) % 40 * 1.0), DENIED, EVERY, "squared")
    assert coded.columns.shape == (N, 0)
    assert (coded.names, coded.merged) == ((), ("c: (rare) (no level has 30 rows)",))


def test_rare_levels_of_one_decision_are_named() -> None:
    codes = np.where(DENIED & (np.arange(N) < 30), 1.0, 0.0)
    given = applications(Control("c", "category", codes, ("a", "b")))
    design = build_design(given, complete_rows(given), "squared")
    assert design.dropped == ((), ("c: b (fewer than 30 rows, one decision)",))


def test_every_row_is_used_or_left_out_for_one_reason() -> None:
    values, money = RNG.normal(size=N), np.full(N, 5.0) + np.arange(N)
    values[:10], values[10:13], money[5:20] = np.nan, np.inf, 0.0
    given = applications(Control("x", "number", values), Control("money", "number", money, scale="log"))
    group = given.group.copy()
    group[30:34], group[40:43] = -1, 2
    given = Applications(given.denied, group, ("a", "b", "all_approved"), 0, given.blocks)
    given.denied[40:43] = False
    rows = complete_rows(given)
    counts: dict[str, int] = {}
    for each in rows.left_out:
        counts[each.reason] = counts.get(each.reason, 0) + each.rows
    assert counts == {
        "no group": 4,
        "missing x": 10,
        "infinite x": 3,
        "money not above 0": 7,
        "no denials in the group": 3,
    }
    assert rows.used.sum() + sum(counts.values()) == N
    assert list(rows.counts)[2] == 3


def test_independent_keeps_what_comes_first() -> None:
    x = RNG.normal(size=(50, 4))
    assert list(independent(np.column_stack([x, x[:, 0] - x[:, 2], x[:, 3] + 1e-3 * x[:, 0] ** 2]))) == [
        *[True] * 4,
        False,
        True,
    ]


@pytest.mark.parametrize("many", [200_000, 100])
def test_a_column_of_zeros_is_no_direction_and_nothing_is_divided_by_it(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many rows the products are summed in parts. Units do not matter, and the first row counts."""
    monkeypatch.setattr(design, "BLOCK", many)
    x, first = RNG.normal(size=N), (np.arange(N) == 0).astype(float)
    columns = [np.ones(N), np.zeros(N), x, 1e-7 * x + 1e-9, 1e-9 * RNG.normal(size=N), 1e9 * x - 3, first]
    assert independent(np.column_stack(columns)).tolist() == [True, False, True, False, True, False, True]


@pytest.mark.parametrize("many", [200_000, 100])
@pytest.mark.parametrize(("share", "kept"), [(0.2, False), (5.0, True)])
def test_a_column_is_a_combination_where_so_small_a_share_of_it_is_left(
    many: int, share: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(design, "BLOCK", many)
    x, noise = np.linalg.qr(RNG.normal(size=(N, 2)))[0].T
    near = x + np.sqrt(share * design.COLLINEAR) * noise
    assert independent(np.column_stack([x, near])).tolist() == [True, kept]


def test_levels_have_their_names_or_their_numbers() -> None:
    control = Control("c", "category", np.array([0.0, 1, 1, 2, 2, 2, 5]), ("a", "b", "c"))
    names = [level_name(control, level) for level in (0.0, 2.0, 3.0, 0.5, -1.0)]
    assert names == ["c: a", "c: c", "c: 3", "c: 0.5", "c: -1"]
    every = np.ones(7, bool)
    assert own_levels(control, every, ("c: a", "c: 5")).tolist() == [0, 2, 5], "the most frequent one is the base"
    assert own_levels(control, np.arange(7) < 3, ()).tolist() == [1]


def test_sums_and_products_of_levels_by_hand() -> None:
    """Indicators 0 and 1 of one category and 2 of another; 3 stands for none."""
    levels = Levels((np.array([0, 1, 0, 3], np.int32), np.array([2, 2, 3, 3], np.int32)), 3)
    assert levels.sums(np.array([[1.0, 10], [2, 20], [4, 40], [8, 80]])).tolist() == [[5, 50], [2, 20], [3, 30]]
    assert levels.products().tolist() == [[2, 0, 1], [0, 1, 1], [1, 1, 2]]
    assert levels.products(np.array([1.0, 2, 4, 8])).tolist() == [[5, 0, 1], [0, 2, 2], [1, 2, 3]]
    assert levels.of(np.array([1.0, 10, 100])).tolist() == [101, 110, 1, 0]
    assert levels.rows(slice(1, 3)).codes[0].tolist() == [1, 0]


def test_small_arrays_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design, "BLOCK", 2)
    x = np.array([[1.0, 2], [1, 0], [1, 3]])
    assert gram_of(x).tolist() == [[3, 5], [5, 13]]
    assert renumbered(np.array([7, 3, 3, 9], np.int32)).tolist() == [1, 0, 0, 2]
    assert design.standardised(np.array([1.0, 3, 1, 3])) == pytest.approx([-1, 1, -1, 1])
    assert design.standardised(np.full(3, 2.0)).tolist() == [0, 0, 0]


def test_reasons_groups_and_denials_of_rows_that_are_left_out() -> None:
    """Rows 0 and 1 have no group, 2 no cluster, 3 an infinite number; group b has approvals alone, c denials alone."""
    group = np.array([-1, 3, 0, 0, 0, 0, 1, 1, 2, 2], np.int32)
    denied = np.array([1, 0, 1, 1, 1, 0, 0, 0, 1, 1], bool)
    values = np.array([1, 1, 1, np.inf, 1, 1, 1, np.nan, 1, 1], float)
    cluster = np.array([0, 0, -1, 0, 1, 1, 2, 2, 3, 3], np.int32)
    of = Applications(denied, group, ("a", "b", "c"), 0, (Block("x", (Control("x", "number", values),)),), cluster)
    rows = complete_rows(of)
    assert np.flatnonzero(rows.used).tolist() == [4, 5]
    assert (rows.counts.tolist(), rows.events.tolist()) == ([2, 1, 2], [1, 0, 2])
    assert [rows.fewest(number) for number in range(3)] == [1, 0, 0]
    assert set(rows.left_out) == {
        LeftOut("no group", -1, 2, 1),
        LeftOut("no cluster", 0, 1, 1),
        LeftOut("missing x", 1, 1, 0),
        LeftOut("infinite x", 0, 1, 1),
        LeftOut("no denials in the group", 1, 1, 0),
        LeftOut("no approvals in the group", 2, 2, 2),
    }


def test_a_number_of_two_values_or_constant_by_hand() -> None:
    flag = code_control(Control("x", "number", np.where(np.arange(N) % 4 == 0, 5.0, 1.0)), DENIED, EVERY, "squared")
    assert (flag.names, flag.varies) == (("x",), [True])
    constant = code_control(Control("x", "number", np.full(N, 5.0)), DENIED, EVERY, "squared")
    assert (constant.names, constant.varies, constant.rows) == (("x",), [False], N)
    late = np.where(np.arange(N) == N - 1, 3.0, np.arange(N) % 2)
    assert code_control(Control("x", "number", late), DENIED, EVERY, "unclipped").names == ("x", "x squared")
    half = np.arange(N) < 200
    some = code_control(Control("x", "number", np.arange(N) * 1.0), DENIED, half, "unclipped")
    z = (np.arange(200) - 99.5) / np.arange(200).std()
    np.testing.assert_allclose(some.columns[:, 0], z)
    np.testing.assert_allclose(some.columns[:, 1], (z**2 - 1) / (z**2).std())


def many_kinds(form: design.Form, absorbed: str = "", packed: bool = False) -> dict[str, object]:
    """Every field of a design with numbers, categories, levels that are absorbed, clusters and three groups."""
    rng = np.random.default_rng(5)
    place = np.where(np.arange(N) < 40, 0.0, rng.integers(0, 7, N))
    first = (Control("x", "number", rng.normal(size=N)), Control("kind", "category", np.arange(N) % 3 * 1.0))
    second = (Control("place", "category", place), Control("half", "category", np.floor(place / 4)))
    of = applications(*first)
    group = (np.arange(N) % 4 // 2 + (np.arange(N) % 8 == 0)).astype(np.int32)
    cluster = rng.integers(0, 30, N).astype(np.int32)
    of = replace(of, group=group, groups=("a", "b", "c"), reference=1, cluster=cluster)
    of = replace(of, blocks=(*of.blocks, Block("place", second)))
    made = build_design(of, complete_rows(of), form, absorbed, packed=packed)
    return {**vars(made), "matrix": made.matrix[:], "first": made.first_control, "until": made.dropped_until(1)}


RESULTS = {
    "squared": lambda: many_kinds("squared"),
    "absorbed": lambda: many_kinds("linear", "place"),
    "packed": lambda: many_kinds("unclipped", packed=True),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of a design. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "squared": {
        "y": 3896.126199,
        "x": 47376.965636,
        "group": 4710.098318,
        "reference": 5.615121,
        "indicators": 14.038497,
        "names": 159.914287,
        "control": 138.700812,
        "widths": 47.235205,
        "dropped": 33.886361,
        "cluster": 7003.553533,
        "terms": 0.0,
        "partners": 0.0,
        "levels": 3.60269,
        "placed": 1.0,
        "packed": 3.60269,
        "matrix": 47376.965636,
        "first": 6.303305,
        "until": 0.0,
    },
    "absorbed": {
        "y": 3896.126199,
        "x": 23867.043893,
        "group": 4710.098318,
        "reference": 5.615121,
        "indicators": 14.038497,
        "names": 145.967701,
        "control": 130.528078,
        "widths": 46.803004,
        "dropped": 33.886361,
        "cluster": 7003.553533,
        "terms": 0.0,
        "partners": 0.0,
        "levels": 12766.194169,
        "placed": 115.195931,
        "packed": 3.60269,
        "matrix": 23867.043893,
        "first": 6.303305,
        "until": 0.0,
    },
    "packed": {
        "y": 3896.126199,
        "x": 13.473333,
        "group": 4710.098318,
        "reference": 5.615121,
        "indicators": 14.038497,
        "names": 159.914287,
        "control": 138.700812,
        "widths": 47.235205,
        "dropped": 33.886361,
        "cluster": 7003.553533,
        "terms": 0.0,
        "partners": 0.0,
        "levels": 3.60269,
        "placed": 1.0,
        "packed": 35173.100801,
        "matrix": 47359.361277,
        "first": 6.303305,
        "until": 0.0,
    },
}
