"""Measures as they are published: counts rounded once, shares of rounded counts, digits, and what is withheld."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from published_rows import Told, row_of, shown

from schemas.terms import Note
from tasks.metrics.algorithm.measures import Drawn, Family, Given, Measure, Plan, Statistic, summarise
from tasks.metrics.publish.algorithm.populations import withheld
from tasks.metrics.publish.algorithm.primary import DESCRIBED, OF_ONE, Publisher
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.metrics.publish.measures import hidden
from tasks.numerics.statistics.intervals import Interval

PLAN = Plan({"race": "white"}, 300, 0.95, 1)
FAMILY = Family("fgce", "lender", "race", "infeasible_share", "{}")


def shares(**groups: tuple[int, int]) -> list[Statistic]:
    """Statistics from group=(events, n)."""
    return [
        Statistic(FAMILY, group, np.array([0.0, 1.0]), np.array([n - events, events]), headline=True)
        for group, (events, n) in groups.items()
    ]


def publish(statistics, profile):
    gone = withheld(statistics, POLICIES[profile])
    return shown(summarise(statistics, {}, PLAN), profile, statistics, gone, PLAN)


def test_a_small_group_is_withheld_with_its_comparisons_and_its_complement() -> None:
    found = publish(shares(white=(20, 200), Black=(30, 100), Asian=(10, 40), Other=(1, 3)), "public")
    hidden = {(m.measure, m.group) for m in found if m.n is None}
    names = ("infeasible_share", "infeasible_share_difference", "infeasible_share_ratio")
    assert hidden == {(name, group) for name in names for group in ("Other", "Asian")}
    assert all(math.isnan(m.value) and m.reason.startswith("withheld") for m in found if m.n is None)


def test_strict_hides_few_events_and_makes_the_rest_of_rounded_counts() -> None:
    """23 of 201 are 25 of 200, 31 of 104 are 30 of 105: shares, differences and ratios are of these."""
    found = publish(shares(white=(23, 201), Black=(31, 104), Grey=(29, 103), Asian=(30, 90), Other=(5, 100)), "strict")
    plain = {m.group: m for m in found if m.reference_group is None}
    assert plain["Other"].n is None
    assert [(plain[g].n, plain[g].events, plain[g].value) for g in ("white", "Black")] == [
        (200, 25, 0.125),
        (105, 30, 0.286),
    ]
    of = {(m.measure.removeprefix("infeasible_share_"), m.group): m for m in found if m.reference_group}
    assert of["difference", "Black"].value == of["difference", "Grey"].value == 0.161
    assert of["ratio", "Black"].value == 2.29
    assert of["difference", "Black"].p == of["difference", "Grey"].p, "alike after rounding"
    assert of["difference", "Black"].p == 0.0045, "the largest of all counts that are printed alike"


def test_exact_numbers_stay_under_internal_but_for_intervals_that_do_not_cover() -> None:
    exact = summarise(shares(white=(23, 201), Black=(2, 3)), {}, PLAN)
    assert [(m.value, m.n) for m in shown(exact, "internal")] == [(m.value, m.n) for m in exact]


def test_nothing_finer_than_the_digits_of_n_is_told() -> None:
    (m,) = [m for m in publish(shares(white=(20, 199)), "public") if m.reference_group is None]
    assert (m.value, m.n, m.events) == (0.101, 199, 20)
    (m,) = [m for m in publish(shares(white=(20, 60)), "public") if m.reference_group is None]
    assert m.value == 0.33


def test_an_interval_that_is_not_known_to_cover_is_not_published() -> None:
    (row,) = summarise([], {}, PLAN, [replace(of_formula(0.1, 0.05, 0.15), family=replace(FAMILY, measure="burden"))])
    told = Told(POLICIES["public"])
    publisher = Publisher(told.policy, (), (), {}, told.printed, told.base_of, lambda *_: (None, None, ""))
    (m,) = publisher.published([row_of(row)])
    assert (m["low"], m["high"], m["note"], m["value"]) == (None, None, DESCRIBED, 0.1)


def test_the_value_of_one_person_is_not_told_and_no_comparison_of_it() -> None:
    given_d0 = [
        Given(replace(FAMILY, measure="d0"), group, value, 80, np.zeros(0), False, True, "")
        for group, value in (("white", 1.5), ("Black", 1.25))
    ]
    found = shown(summarise([], {}, PLAN, given_d0), "public", given_d0)
    assert {m.measure for m in found} == {"d0", "d0_difference", "d0_ratio"}
    assert all(math.isnan(m.value) and m.reason == OF_ONE and m.n == 80 for m in found)
    assert next(m.value for m in shown(summarise([], {}, PLAN, given_d0), "internal", given_d0)) == 1.5


@pytest.mark.parametrize("missing", [0, 3])
def test_of_a_mean_no_more_is_told_than_its_n_and_three_digits(missing: int) -> None:
    family = replace(FAMILY, measure="cec")
    scores = Statistic(family, "Black", np.array([0.25, 0.5, np.nan]), np.array([90, 110, missing]), False, share=False)
    (m,) = shown(summarise([scores], {}, PLAN), "strict", [scores])
    assert (m.n, m.events, m.value) == (205 if missing else 200, None, 0.388)


def test_nothing_that_is_printed_of_a_mean_depends_on_how_many_of_few_lack_a_value() -> None:
    """The same group with three to seven rows without a value: n, value and counts read alike."""
    made = []
    for missing in (3, 4, 5, 6, 7):
        counts = np.array([100, 100, missing])
        scores = Statistic(FAMILY, "Black", np.array([0.25, 0.5, np.nan]), counts, headline=False, share=False)
        (m,) = shown(summarise([scores], {}, PLAN), "strict", [scores])
        made.append((m.n, m.events, m.value))
    assert set(made) == {(205, None, 0.375)}


def of_formula(value: float, low: float, high: float) -> Given:
    family = replace(FAMILY, measure="adjusted_effect")
    return Given(family, "Black", value, 200, np.zeros(0), False, False, "", ends=Interval(low, high))


def test_an_interval_of_a_formula_has_three_digits() -> None:
    (found,) = summarise([], {}, PLAN, [of_formula(0.12643, 0.06112, 0.19287)])
    (m,) = shown([found], "strict")
    assert (m.value, m.low, m.high) == (0.126, 0.0611, 0.193)


@st.composite
def statistics(draw: st.DrawFn) -> list[Statistic]:
    """A family in two groups: a share, an area between 0 and 1, or costs; values may be missing or all alike."""
    share = draw(st.booleans())
    values = draw(
        st.sampled_from([[0.0, 1.0], [0.0, 0.25, 1.0], [0.4], [0.0], [1.0], [0.3, np.nan], [0.2, 1.0, np.nan]])
    )
    counts = st.lists(st.integers(0, 40), min_size=len(values), max_size=len(values))
    return [
        Statistic(FAMILY, group, np.array(values), np.array(draw(counts)), True, share=share)
        for group in ("white", "Black")
    ]


@settings(deadline=None, max_examples=examples(150))
@given(statistics(), st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=0, max_size=5), st.sampled_from([*POLICIES]))
def test_no_interval_of_a_finite_value_is_without_width(
    made: list[Statistic], draws: list[float], profile: str
) -> None:
    drawn = {(FAMILY, "Black"): Drawn(np.array(draws))} if draws else {}
    made = [s for s in made if s.counts.sum() >= 20]
    found = shown(summarise(made, drawn, PLAN), profile, made, (), PLAN)
    for m in found:
        if math.isfinite(m.value) and Note.RANGE not in m.note:
            assert math.isnan(m.low) == math.isnan(m.high), m
            assert math.isnan(m.low) or m.low < m.high, m
            assert math.isnan(m.low) or m.low <= m.value + 0.006 <= m.high + 0.012, m
        assert not math.isinf(m.low)
        assert not math.isinf(m.high)


def test_three_digits_take_no_interval_its_width() -> None:
    nearly = Measure(replace(FAMILY, measure="adjusted_effect"), "Black", None, 0.12132, 0.12131, 0.12134, 100)
    (m,) = shown([nearly], "strict")
    assert m.value == 0.121
    assert m.low <= m.value < m.high


@pytest.mark.parametrize(("n", "told"), [(28, None), (90, None), (104, 0.4), (465, 0.435)])
def test_a_share_is_withheld_where_secondary_control_rounds_its_counts_too_coarsely(n: int, told: float | None) -> None:
    """By twenties 12 of 28 are 20 of 20, and a difference from others would be one that nobody has."""
    found = shares(Asian=(3 * n // 7, n), white=(600, 1400))
    publisher = Publisher(
        POLICIES["public"], (), (), {(s.family, s.group): s for s in found},
        lambda _a, _g, _m, count: round(count / 20) * 20,
        lambda *_: 20, lambda *_: (None, None, ""),
    )  # fmt: skip
    rows = {(m["measure"], m["group"]): m for m in publisher.published([row_of(m) for m in summarise(found, {}, PLAN)])}
    mine, apart = rows["infeasible_share", "Asian"], rows["infeasible_share_difference", "Asian"]
    assert mine["value"] == told
    assert (apart["value"] is None, apart["p"] is None) == (told is None, told is None)
    assert rows["infeasible_share", "white"]["value"] == 0.4286


def test_people_are_not_printed_as_nobody() -> None:
    found = Given(replace(FAMILY, measure="burden"), "Asian", 0.7, 8, np.zeros(0), False, False, "")
    publisher = Publisher(
        POLICIES["public"], (), (), {}, lambda *_: 0, lambda *_: 20, lambda *_: (0, 0, "")
    )  # fmt: skip
    (row,) = publisher.published([row_of(m) for m in summarise([], {}, PLAN, [found])])
    assert (row["n"], row["value"], row["reason"].startswith("withheld")) == (None, None, True)


def test_what_others_find_beside_a_withheld_group_is_withheld_too() -> None:
    def flips(group: str, other: str) -> Statistic:
        own = replace(FAMILY, measure="flip_share", parameters=f'{{"matched_with": "{other}"}}')
        return Statistic(own, group, np.array([0.0, 1.0]), np.array([260, 140]), headline=False)

    found = [flips("white", "Martian"), flips("white", "Black"), flips("Black", "white")]
    fates = Told(POLICIES["public"], frozenset({("lender", "race", "Martian")}))
    gone = hidden(SimpleNamespace(statistics=found, aggregates=[]), fates)  # type: ignore[arg-type]
    assert [(s.family, s.group) in gone for s in found] == [True, False, False]


@pytest.mark.parametrize(
    ("profile", "events", "goes"), [("public", 10, False), ("strict", 10, True), ("strict", 5, True)]
)
def test_no_mean_gives_back_a_share_that_is_withheld_or_rounded(profile: str, events: int, goes: bool) -> None:
    """5 of 21 are withheld under strict: 0.0132 more than a mean of 0.225 would tell them."""
    own = shares(Hispanic=(events, 21))

    def drawn(suffix: str, value: float) -> Given:
        return Given(replace(FAMILY, measure=suffix), "Hispanic", value, 21, np.zeros(0), False, False, "")

    mean, apart = drawn("infeasible_share_under_relabelling", 0.225), drawn("infeasible_share_relabelled", 0.0132)
    gone = hidden(SimpleNamespace(statistics=own, aggregates=[mean, apart]), Told(POLICIES[profile]))  # type: ignore[arg-type]
    assert ((mean.family, "Hispanic") in gone, (apart.family, "Hispanic") in gone) == (goes, False)


def test_a_rate_without_its_denied_keeps_n_and_takes_its_comparisons_and_their_p_with_it() -> None:
    family = Family("outcomes", "lender", "race", "approval_rate", "{}")
    made = [
        Statistic(family, group, np.array([0.0, 1.0]), np.array([n - events, events]), headline=True)
        for group, events, n in (("white", 300, 400), ("Black", 49, 67))
    ]
    told = Told(POLICIES["public"])
    known = {"white": (400, 100, ""), "Black": (65, None, "")}
    publisher = Publisher(
        told.policy, {"approval_rate"}, (), {(s.family, s.group): s for s in made}, told.printed, told.base_of,
        lambda _, group, __: known[group],
    )  # fmt: skip
    rows = publisher.published([row_of(m) for m in summarise(made, {}, PLAN)])
    assert {(r["measure"], r["group"]): r["n"] for r in rows if r["group"] == "Black"} == {
        (name, "Black"): 65 for name in ("approval_rate", "approval_rate_difference", "approval_rate_ratio")
    }
    numbers = {r[name] for r in rows if r["group"] == "Black" for name in ("value", "low", "high", "events", "p", "q")}
    assert numbers == {None}
