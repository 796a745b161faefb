"""Interactions: a planted one is found, none is invented, and Holm counts the columns of a group."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from conftest import fingerprint

from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.interactions import Interaction
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.settings import AdjustedSettings

N = 4000


def lender(slope: float) -> Applications:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, N))
    kind = rng.integers(0, 3, N).astype(float)
    group = (rng.random(N) < 0.3).astype(np.int32)
    denied = rng.random(N) < 1 / (1 + np.exp(1 - 0.5 * a - b - group * (0.3 + slope * a)))
    blocks = (
        Block("one", (Control("a", "number", a), Control("b", "number", b))),
        Block("two", (Control("kind", "category", kind, ("x", "y", "z")),)),
    )
    return Applications(denied, group, ("reference", "group"), 0, blocks)


def found(slope: float, form: str = "linear") -> dict[str, list[Interaction]]:
    settings = AdjustedSettings.model_validate({"estimators": ("logit",), "form": form})
    rows: dict[str, list[Interaction]] = {}
    for each in climb(lender(slope), settings, 0.95, np.random.default_rng(0)).interactions:
        rows.setdefault(each.column, []).append(each)
    return rows


@pytest.mark.parametrize("form", ["linear", "squared"])
def test_a_planted_interaction_is_found_where_it_is(form: str) -> None:
    rows = found(0.8, form)
    assert rows["a"][0].p_holm < 0.001
    assert min(rows["b"][0].p_holm, rows["kind"][0].p_holm) > 0.05
    low, _, high = rows["a"]
    assert (low.percentile, high.percentile) == (10, 90)
    assert high.low > low.high


def test_without_one_effects_agree_along_the_column() -> None:
    rows = found(0.0)
    assert all(each.p_holm > 0.05 for column in rows.values() for each in column)
    assert rows["kind"][0].terms == 2


def test_wald_and_effect_against_statsmodels() -> None:
    given, rows = lender(0.8), found(0.8)
    a, b, kind = (control.values for block in given.blocks for control in block.controls)
    g = given.group.astype(float)
    x = np.column_stack([np.ones(N), g, a, b, kind == 1, kind == 2, g * a, g * b]).astype(float)
    fit = sm.Logit(given.denied.astype(float), x).fit(disp=0, tol=1e-12, cov_type="HC0")
    # standardising a and b moves the group's own coefficient, not the test of the product
    assert rows["a"][0].statistic == pytest.approx((fit.params[6] / fit.bse[6]) ** 2, rel=1e-6)
    high = rows["a"][2]
    at = x[g == 1].copy()
    at[:, 2] = at[:, 6] = high.at
    off = at.copy()
    off[:, [1, 6, 7]] = 0
    assert high.value == pytest.approx((fit.predict(at) - fit.predict(off)).mean(), abs=1e-8)


def test_holm_multiplies_the_smallest_p_by_the_columns_of_the_group() -> None:
    rows = found(0.15)
    p = {name: column[0].p for name, column in rows.items()}
    smallest = min(p, key=lambda name: p[name])
    assert rows[smallest][0].p_holm == pytest.approx(min(1.0, 3 * p[smallest]))


def levels(*, ordered: bool, denied: bool = True) -> Applications:
    """A lender with a category of three common levels, one that the group alone has, and two rare ones."""
    given = lender(0.5)
    kind = given.blocks[1].controls[0].values.copy()
    kind[np.flatnonzero(given.group == 1)[:60]] = 3
    kind[100:112], kind[112:120] = 4, 5
    if not denied:
        given.denied[kind == 2] = False
    control = Control("kind", "category", kind, ("x", "y", "z", "only members", "rare", "rarer"), ordered=ordered)
    return replace(given, blocks=(given.blocks[0], Block("two", (control,))))


def of_kind(given: Applications) -> list[Interaction]:
    settings = AdjustedSettings(estimators=("logit",), form="linear")
    return [
        each for each in climb(given, settings, 0.95, np.random.default_rng(0)).interactions if each.column == "kind"
    ]


def test_a_category_without_order_has_an_effect_at_each_level_of_its_own() -> None:
    rows = of_kind(levels(ordered=False))
    assert [(each.percentile, each.at) for each in rows] == [(None, 0.0), (None, 1.0), (None, 2.0)]
    assert len({each.value for each in rows}) == 3


def test_an_ordered_category_has_percentiles_and_rare_levels_none() -> None:
    given = levels(ordered=True)
    assert [(each.percentile, each.at) for each in of_kind(given)] == [(10, 0.0), (50, 1.0), (90, 2.0)]
    few = np.where(np.arange(N) < 200, np.arange(N) // 20, 10.0)  # the lowest ten levels have 20 rows each
    control = Control("kind", "category", few[::-1].copy(), tuple("abcdefghijk"), ordered=True)
    rows = of_kind(replace(given, blocks=(given.blocks[0], Block("two", (control,)))))
    assert [(each.percentile, each.at) for each in rows] == [(90, 10.0)]


def test_a_separated_rung_has_a_reason_for_each_control() -> None:
    given = levels(ordered=False, denied=False)
    rows = climb(given, AdjustedSettings(estimators=("logit",), form="linear"), 0.95, np.random.default_rng(0))
    assert [(each.column, each.percentile) for each in rows.interactions] == [("a", None), ("b", None), ("kind", None)]
    assert all(each.reason.startswith("separated: ") and np.isnan(each.p) for each in rows.interactions)


def climbed(**options):
    """All fields of the ladder of 700 applicants in three groups and 23 clusters."""
    of, rng, some = lender(0.6), np.random.default_rng(9), slice(0, 700)
    blocks = tuple(
        replace(block, controls=tuple(replace(each, values=each.values[some]) for each in block.controls))
        for block in of.blocks
    )
    group = np.where(rng.random(700) < 0.2, 2, of.group[some]).astype(np.int32)
    cluster = rng.integers(0, 23, 700).astype(np.int32) if options.pop("clustered", False) else None
    given = replace(
        of, denied=of.denied[some], group=group, groups=("reference", "group", "third"), blocks=blocks, cluster=cluster
    )
    return vars(climb(given, AdjustedSettings.model_validate(options), 0.95, np.random.default_rng(2)))


RESULTS = {
    "by default": lambda: climbed(splits=2),
    "in clusters": lambda: climbed(splits=1, clustered=True, form="linear"),
    "no terms": lambda: climbed(splits=1, terms="none", form="squared", estimators=("logit", "lpm")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of a ladder. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "by default": {
        "effects": 13567.925726,
        "support": 897.659429,
        "interactions": 3080.411657,
        "left_out": 0.0,
        "used": 12.156265,
    },
    "in clusters": {
        "effects": 13611.295256,
        "support": 893.729823,
        "interactions": 3068.261423,
        "left_out": 0.0,
        "used": 12.156265,
    },
    "no terms": {
        "effects": 9650.314192,
        "support": 897.659429,
        "interactions": 3080.411657,
        "left_out": 0.0,
        "used": 12.156265,
    },
}
