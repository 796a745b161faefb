"""Whatever the applications are: a row for every rung, group and estimator, with a number or a reason."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tasks.methods.adjusted.algorithm.design import Applications, Block, Control, build_design, complete_rows
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import Ladder, climb, primary_rung
from tasks.methods.adjusted.algorithm.regressions import change
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.statistics.regression import fit_logit

N = 1200
ROWS_OF_A_GROUP = 5  # logit own and all, lpm, overlap, aipw


def lender(*more: Control, seed: int = 0) -> Applications:
    rng = np.random.default_rng(seed)
    group = rng.choice(3, N, p=(0.6, 0.25, 0.15)).astype(np.int32)
    income, ratio = rng.normal(size=N), rng.normal(size=N)
    denied = rng.random(N) < 1 / (1 + np.exp(1 + income - 0.5 * ratio - 0.5 * (group == 1)))
    blocks = [
        Block("terms", (Control("ratio", "number", ratio),)),
        Block("finances", (Control("income", "number", income),)),
    ]
    return Applications(denied, group, ("a", "b", "c"), 0, (*blocks, Block("more", more)) if more else tuple(blocks))


def climbed(applications: Applications, **settings: object) -> Ladder:
    chosen = AdjustedSettings.model_validate({"splits": 2, **settings})
    found = climb(applications, chosen, 0.95, np.random.default_rng(1))
    rungs, groups = len(applications.blocks) + 1, len(applications.groups) - 1
    assert len(found.effects) == rungs * groups * ROWS_OF_A_GROUP
    assert found.used + sum(each.rows for each in found.left_out) == len(applications.denied)
    for each in found.effects:
        assert math.isfinite(each.value) or each.reason, each
        assert math.isfinite(each.low + each.high) or each.reason, each
        assert not each.low > each.value, each
        assert not each.high < each.value, each
        assert each.fit != "firth" or math.isnan(each.se), "no Wald error of a separated fit"
    return found


def rows(ladder: Ladder, **match: object) -> list[Effect]:
    return [each for each in ladder.effects if all(getattr(each, name) == value for name, value in match.items())]


def test_a_sound_lender_has_numbers_everywhere_and_no_reasons() -> None:
    found = climbed(lender())
    assert all(math.isfinite(each.se) and not each.reason for each in found.effects if each.group == 1)


def test_a_group_without_denials_is_refused_and_leaves_the_others_unchanged() -> None:
    given = lender()
    given.denied[given.group == 2] = False
    found = climbed(given)
    refused = rows(found, group=2)
    assert all(each.reason.startswith("too_few_events: c has fewer than 10 denials or approvals") for each in refused)
    assert {each.fit for each in rows(found, group=1, estimator="logit")} == {"newton"}
    assert ("no denials in the group", 2) in [(each.reason, each.group) for each in found.left_out]


def test_too_few_events_count_denials_and_approvals() -> None:
    given = lender()
    members = np.flatnonzero(given.group == 2)
    given.denied[members] = True
    given.denied[members[:9]] = False
    found = climbed(given)
    assert all("fewer than 10 denials or approvals" in each.reason for each in rows(found, group=2))
    found = climbed(given, minimum_events=9)
    assert all(math.isfinite(each.value) for each in rows(found, group=2))


def free_of_denials(given: Applications, rows: np.ndarray) -> Applications:
    kind = np.isin(np.arange(N), rows) * 1.0
    return replace(given, blocks=(*given.blocks, Block("more", (Control("kind", "category", kind, ("x", "y")),))))


def test_a_category_without_denials_leaves_the_effect_of_the_other_rows() -> None:
    given = lender()
    free = np.flatnonzero(~given.denied)[:40]
    last = rows(climbed(free_of_denials(given, free)), rung=3, estimator="logit")
    assert {each.fit for each in last} == {"limit"}
    words = "40 applications whose decision the columns tell by themselves add nothing (kind: y)"
    assert {each.reason for each in last} == {words}
    # the same logit without these rows, whose members count and change nothing
    kept = ~np.isin(np.arange(N), free)
    design = build_design(given, complete_rows(given), "squared")
    x, y = design.x[kept], design.y[kept]
    fit = fit_logit(x, y)
    for effect in last:
        inside = given.group[kept] == effect.group if effect.average_over == "own" else np.ones(len(x), bool)
        every = (given.group == effect.group).sum() if effect.average_over == "own" else N
        changed = change(fit.coefficients, x[inside], design.indicators[effect.group], slice(1, 3))
        gradient = changed.gradient * inside.sum() / every
        influence = (x @ (fit.inverse @ gradient)) * (y - fit.fitted)
        assert effect.value == pytest.approx(changed.effect * inside.sum() / every, abs=1e-9)
        assert effect.se == pytest.approx(np.sqrt(influence @ influence), rel=1e-6)
        assert effect.odds_ratio == pytest.approx(np.exp(fit.coefficients[design.indicators[effect.group]]), rel=1e-6)
    assert all(1 <= each.e_value_near <= each.e_value for each in last if each.average_over == "own")


def test_a_group_whose_decisions_the_columns_tell_has_firths_fit() -> None:
    """All denials of one group are in one category, and those of the category: its own indicator has no limit."""
    given = lender()
    kind = ((given.group == 2) & given.denied) * 1.0
    given = replace(given, blocks=(*given.blocks, Block("more", (Control("kind", "number", kind),))))
    last = rows(climbed(given), rung=3, estimator="logit")
    assert {each.fit for each in last} == {"firth"}
    assert all(each.low < each.value < each.high and each.reason.startswith("separated: ") for each in last)
    assert all(1 <= each.e_value_near <= each.e_value for each in last if each.average_over == "own")


def test_controls_that_tell_the_groups_apart() -> None:
    given = lender()
    given = replace(given, blocks=(Block("tribe", (Control("tribe", "number", given.group * 1.0),)),))
    found = climbed(given)
    assert all(each.reason == "left out: tribe (collinear), tribe squared (collinear)" for each in rows(found, rung=1))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full(N, 3.0), "left out: odd (constant)"),
        (np.full(N, 1e308), "left out: odd (constant)"),
        (np.where(np.arange(N) == 5, 1e300, 1.0 + np.arange(N) % 7), ""),
    ],
)
def test_odd_numbers(values: np.ndarray, reason: str) -> None:
    found = climbed(lender(Control("odd", "number", values)))
    last = rows(found, rung=3, group=1)
    assert all(math.isfinite(each.value) for each in last)
    assert all(each.reason == reason for each in last)


def test_huge_values_in_the_textbook_form() -> None:
    values = np.where(np.arange(N) == 5, 1e300, 1.0 + np.arange(N) % 7)
    climbed(lender(Control("odd", "number", values)), form="linear")


def test_missing_and_infinite_controls_leave_rows_out() -> None:
    values = np.arange(N) * 1.0
    values[:30], values[30:50], values[50:60] = np.nan, np.inf, -np.inf
    found = climbed(lender(Control("odd", "number", values)))
    assert found.used == N - 60
    assert {each.reason for each in found.left_out} == {"missing odd", "infinite odd"}


def test_a_control_that_is_always_missing_leaves_nothing() -> None:
    found = climbed(lender(Control("odd", "number", np.full(N, np.nan))))
    assert found.used == 0
    assert all(each.reason == "no_rows: b has no complete rows" for each in rows(found, group=1))


def test_five_hundred_categories() -> None:
    few = Control("maker", "category", (np.arange(N) % 500).astype(float))
    found = climbed(lender(few))
    last = rows(found, rung=3, group=1)
    assert all(math.isfinite(each.value) for each in last)
    assert {each.reason for each in last} == {"left out: maker: (rare) (no level has 30 rows)"}
    given = lender()
    wide = Applications(
        *(np.tile(each, 15) for each in (given.denied, given.group)),
        given.groups,
        0,
        (Block("place", (Control("lender", "category", (np.arange(15 * N) // 36).astype(float)),)),),
    )
    found = climbed(wide, estimators=("logit", "lpm", "overlap", "aipw"))
    assert all(each.reason.startswith("place: fixed effects") for each in rows(found, rung=1, estimator="logit"))
    assert all(math.isfinite(each.value) for each in rows(found, rung=1, estimator="lpm"))


@pytest.mark.parametrize("denied", [True, False])
def test_one_class_alone(denied: bool) -> None:
    given = lender()
    given.denied[:] = denied
    assert all(each.reason.startswith("too_few_events: ") for each in climbed(given).effects)


def test_a_reference_group_without_events_refuses_all() -> None:
    given = lender()
    given.denied[given.group == 0] = False
    assert all(
        each.reason.startswith("too_few_events: a has fewer than 10 denials or approvals")
        for each in climbed(given).effects
    )


def test_an_empty_group() -> None:
    given = lender()
    given.group[given.group == 2] = 1
    found = climbed(given)
    assert all(each.reason == "no_rows: c has no complete rows" for each in rows(found, group=2))
    assert all(math.isfinite(each.value) for each in rows(found, group=1))


def test_three_clusters_warn_and_one_has_no_error() -> None:
    given = lender()
    found = climbed(replace(given, cluster=(np.arange(N) % 3).astype(np.int32)))
    assert all(each.reason.startswith("few_clusters: 3") for each in rows(found, group=1))
    found = climbed(replace(given, cluster=np.full(N, 4, np.int32)))
    assert all(each.reason.startswith("one_cluster") and math.isnan(each.se) for each in found.effects)


def test_a_group_in_one_of_many_clusters_is_told() -> None:
    given = lender()
    cluster = np.where(given.group == 2, 0, 1 + np.arange(N) % 40).astype(np.int32)
    found = climbed(replace(given, cluster=cluster))
    assert all("few_clusters: 1 with members of the group" in each.reason for each in rows(found, group=2))
    assert all(not each.reason for each in rows(found, group=1))


def test_wild_bootstrap_where_asked_for() -> None:
    given = replace(lender(), cluster=(np.arange(N) % 12).astype(np.int32))
    plain, wild = (rows(climbed(given, cluster_bootstrap=each), estimator="lpm", group=1) for each in (False, True))
    for one, other in zip(plain, wild, strict=True):
        assert (one.value, one.se) == (other.value, other.se)
        assert (one.low, one.high) != (other.low, other.high)
        assert other.reason.startswith("interval by wild cluster bootstrap")


def test_the_judged_rung() -> None:
    given = lender(Control("odd", "number", np.zeros(N)))
    placed = replace(given, blocks=(*given.blocks[:2], replace(given.blocks[2], name="place")))
    assert primary_rung(given, AdjustedSettings()) == 3
    assert primary_rung(placed, AdjustedSettings()) == 2
    assert primary_rung(placed, AdjustedSettings(primary="terms")) == 1
    assert primary_rung(given, AdjustedSettings(primary="nothing")) is None


def test_where_the_judged_block_is_lacking_its_rung_has_a_reason_and_no_other_is_judged() -> None:
    settings = AdjustedSettings(primary="history", splits=2)
    found = climb(lender(), settings, 0.95, np.random.default_rng(1))
    judged = rows(found, rung=3)
    assert len(judged) == 2 * ROWS_OF_A_GROUP
    assert {each.blocks for each in judged} == {("terms", "finances", "history")}
    assert all(math.isnan(each.value) and each.reason.startswith("no_primary: ") for each in judged)
    assert all(math.isfinite(each.value) for each in rows(found, rung=2))
    assert found.interactions == ()


def test_the_same_seed_gives_the_same_ladder() -> None:
    assert repr(climbed(lender())) == repr(climbed(lender()))
