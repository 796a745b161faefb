"""From the tables of the judged effect to its state: hull of readings, parts, findings, words."""

import math
import shlex
from dataclasses import replace
from typing import Any

import pytest

from schemas.audit.limits import Limits, PartSettings, Verdicts
from schemas.sentences import command, sentence
from schemas.tables.verdicts import published_findings
from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts import Case, Counts, Hull, Limit, Rules, judge
from tasks.metrics.readings import Facts, findings_of, findings_table, judged_case, seen_in_part, states_of_choices

SETTINGS = Verdicts(columns_complete=True)
WHOSE = ("lender", "race", "B")


def row(**fields: Any) -> dict[str, Any]:
    base = {
        "value": 0.0,
        "se": 0.005,
        "se_by_rows": 0.005,
        "df": None,
        "limit": 0.02,
        "se_at_limit": 0.005,
        "expected": 0.2,
        "ratio": 1.0,
    }
    base |= {"ratio_low": 0.9, "ratio_high": 1.1, "rare": False, "cluster": None, "explained": 0.2, "no_noise": False}
    base |= {"depends": False, "reason": "", "n": 1000, "events": 200, "n_reference": 3000, "events_reference": 600}
    return base | {"approval_se": None, "approval_df": None, "no_noise": False} | fields


def part(level: str, value: float, **fields: Any) -> dict[str, Any]:
    base = {"column": "product", "level": level, "n": 300, "n_reference": 900, "value": value, "se": 0.02}
    base |= {"low": value - 0.06, "high": value + 0.06, "outside": value > 0.1, "bars": value > 0.06}
    return base | {"exceeds_rest": True, "differs": value > 0.06} | fields


def reading(value: float, difference: float, *, se: float = 0.005) -> dict[str, Any]:
    return {"value": value, "se": se, "df": None, "difference": difference, "difference_se": se}


def left_out(**fields: Any) -> dict[str, Any]:
    base = {
        "what": "income",
        "n": 300,
        "n_reference": 100,
        "denied": 200,
        "share": 0.3,
        "share_reference": 0.03,
        "p": 1e-9,
    }
    base |= {"share_denied": 0.6, "share_approved": 0.02, "share_denied_reference": 0.02, "excess": None}
    base |= {"share_approved_reference": 0.02, "excess_se": None, "estimate": 0.1, "low": 0.08, "high": 0.12}
    return base | fields


def state(facts: Facts, settings: Verdicts = SETTINGS, bias: float = 0.0) -> tuple[State, str]:
    case = Case(
        *(Theory.SIMILAR_APPLICANTS, "adjusted", "adjusted_effect", "race", "B", "A", "lender", "primary"),
        *(float("nan"), None, Limit(0.02), Counts(1000, 200, 3000, 600)),
    )
    (verdict,) = judge([judged_case(case, facts, bias, 0.1, settings)], Rules())
    return verdict.state, verdict.reason


def test_an_interval_on_one_side_of_the_limit_is_within_or_outside():
    assert state(Facts(row()))[0] is State.WITHIN
    assert state(Facts(row(value=0.05)))[0] is State.OUTSIDE
    assert state(Facts(row(value=0.02)))[0] is State.INCONCLUSIVE


def test_clusters_widen_what_neighbours_say_as_much_as_the_judged_effect():
    assert Facts(row(cluster="officer", se=0.02, df=9.0)).of_clusters == (4.0, 9.0)
    assert Facts(row(cluster="officer", se=0.004)).of_clusters == (1.0, math.inf)
    assert Facts(row(se=0.02, df=9.0)).of_clusters == (1.0, math.inf)


def test_the_limit_is_that_of_the_row():
    assert state(Facts(row(value=0.015, limit=0.005, se_at_limit=0.002)))[0] is State.OUTSIDE


def test_a_part_outside_makes_the_row_outside_and_one_that_may_be_bars_a_pass():
    assert state(Facts(row(), parts=[part("refinance", 0.25)])) == (
        State.OUTSIDE,
        "a part lies beyond its limit: product: refinance",
    )
    open_state, reason = state(Facts(row(), parts=[part("refinance", 0.08)]))
    assert open_state is State.INCONCLUSIVE
    assert reason.endswith("a part of the group may lie beyond its limit: product: refinance")


def test_unseen_columns_widen_parts_as_well():
    facts = Facts(row(value=0.03), parts=[part("refinance", 0.15)])
    assert state(facts)[0] is State.OUTSIDE
    assert state(facts, bias=0.05)[0] is State.INCONCLUSIVE


def test_without_parts_nothing_is_within():
    settings = SETTINGS.model_copy(update={"parts": PartSettings(by=())})
    assert state(Facts(row()), settings)[0] is State.INCONCLUSIVE


@pytest.mark.parametrize("depends", [False, True])
def test_files_that_are_missing_by_decision_open_the_state_and_random_gaps_do_not(depends):
    facts = Facts(
        row(depends=depends, value=0.06),
        readings={"weighted": reading(-0.01, -0.07)},
        left_out={"income": left_out()},
        parts=[part("refinance", 0.25)],
    )
    assert facts.missing is depends
    expected = State.INCONCLUSIVE if depends else State.OUTSIDE
    assert state(facts)[0] is expected
    kinds = [finding["kind"] for finding in findings_of({WHOSE: facts}, None, SETTINGS)]
    assert kinds == (["missing"] if depends else ["part"])


def test_an_excess_without_a_decision_counts_as_denied_and_no_sample_settles_it():
    ended = left_out(excess=0.22, excess_se=0.01)
    narrow = Facts(row(), readings={"undecided": reading(0.08, 0.08)}, left_out={"no decision": ended})
    open_state, reason = state(narrow)
    assert open_state is State.INCONCLUSIVE
    assert "no number of applications settles it" in reason
    facts = Facts(row(), readings={"undecided": reading(0.16, 0.16)}, left_out={"no decision": ended})
    open_state, reason = state(facts)
    assert open_state is State.UNRELIABLE
    assert reason.startswith("files left out, or without a decision, widen the interval by")
    (finding,) = findings_of({WHOSE: facts}, None, SETTINGS)
    assert finding["kind"] == "undecided"
    assert "30 of 100 B and 3 of 100 A applications ended without a decision" in sentence(
        finding | {"reference_group": "A"}
    )


@pytest.mark.parametrize(("p", "expected"), [(0.01, State.INCONCLUSIVE), (0.2, State.OUTSIDE)])
def test_an_excess_that_may_be_approvals_keeps_a_row_from_being_outside(p, expected):
    ended = left_out(p=p, excess=0.04, excess_se=0.01)
    as_either = {"undecided": reading(0.13, 0.05), "undecided_approved": reading(0.0, -0.08)}
    assert state(Facts(row(value=0.08), readings=as_either, left_out={"no decision": ended}))[0] is expected


def test_either_groups_excess_is_a_finding_and_a_small_one_is_none():
    ended = [left_out(excess=excess, excess_se=0.01) for excess in (-0.2, 0.05)]
    made = [Facts(row(), left_out={"no decision": ended_row}).undecided(0.05) for ended_row in ended]
    assert made == [True, False]
    assert not Facts(row()).undecided(0.05)


def test_the_hull_takes_in_bands_and_branches_that_hide_harm_and_no_other():
    bands = Facts(row(value=0.05), readings={"bands": reading(0.01, -0.04, se=0.0)})
    assert state(replace(bands, readings={"bands": reading(0.01, -0.04)}))[0] is State.INCONCLUSIVE
    through = Facts(row(), readings={"through": reading(0.08, 0.08)})
    assert state(through)[0] is State.INCONCLUSIVE
    assert state(Facts(row(), readings={"through": reading(-0.08, -0.08)}))[0] is State.WITHIN


@pytest.mark.parametrize(("judged", "inside"), [(0.1, 0.0), (0.0, 0.1)])
@pytest.mark.parametrize(("name", "words"), [("time", "the quarter"), ("office", "the branch, officer or channel")])
def test_a_rule_that_got_stricter_while_the_group_came_later_is_read_from_both(judged, inside, name, words):
    shifted = Facts(row(value=judged), readings={name: reading(inside, inside - judged)})
    assert state(shifted)[0] is State.INCONCLUSIVE
    assert state(replace(shifted, parts=[part("cash", 0.3)]))[0] is State.OUTSIDE  # parts are read inside quarters
    (finding,) = findings_of({WHOSE: shifted}, None, SETTINGS)
    assert (finding["kind"], finding["part"]) == ("through", name)
    assert f"go with {words}" in sentence(finding | {"reference_group": "A"})
    slight = Facts(row(value=judged), readings={name: reading(inside, 0.01, se=0.004)})
    assert state(slight)[0] is State.INCONCLUSIVE
    assert list(findings_of({WHOSE: slight}, None, SETTINGS)) == []
    still = Facts(row(value=judged), readings={name: reading(judged, 0.001)})
    assert state(still)[0] is (State.OUTSIDE if judged else State.WITHIN)


def test_place_is_a_finding_and_leaves_the_state():
    facts = Facts(row(value=0.17), readings={"place": reading(0.03, -0.14)})
    assert state(facts)[0] is State.OUTSIDE
    (finding,) = findings_of({WHOSE: facts}, None, SETTINGS)
    assert (finding["kind"], round(finding["value"], 2)) == ("place", 0.14)
    assert sentence(finding | {"reference_group": "A"}).startswith("14 of the 17 points go through where people live")
    assert list(findings_of({WHOSE: Facts(row(), readings={"place": reading(-0.01, -0.01)})}, None, SETTINGS)) == []


def test_rare_denials_are_told_as_a_ratio():
    rare = row(value=0.012, limit=0.005, se_at_limit=0.002, rare=True, ratio=3.1, ratio_low=2.2, ratio_high=4.3)
    (finding,) = findings_of({WHOSE: Facts(rare)}, None, SETTINGS)
    assert sentence(finding | {"reference_group": "A"}) == (
        "{n} of {of} B applicants were denied, 3.1 times as many as by the rule for A applicants (2.2 to 4.3)."
    )


def test_only_parts_that_exceed_the_rest_are_named_where_the_whole_is_outside():
    parts = [part("purchase", 0.2, exceeds_rest=False), part("refinance", 0.3)]
    facts = Facts(row(value=0.15), parts=parts)
    assert [f["part"] for f in findings_of({WHOSE: facts}, None, SETTINGS)] == ["product: refinance"]


def test_findings_are_a_table_in_the_order_of_what_to_do_next():
    facts = Facts(row(value=0.17, no_noise=True), readings={"place": reading(0.03, -0.14)})
    copied = {"rows": 7500, "sets": 1500, "copied": 6000, "left_out": True}
    rows = findings_table(findings_of({WHOSE: facts}, copied, SETTINGS), {"race": "A"}).to_pylist()
    assert [finding["kind"] for finding in rows] == ["copies", "place", "no_noise"]
    assert all(finding["sentence"] and finding["next"] for finding in rows)
    assert published_findings(rows)["columns"][:2] == ["kind", "question"]


def test_the_targeted_estimate_says_whether_the_effect_hangs_on_its_form():
    made = [Facts(row(), readings={"targeted": reading(v, v, se=0.01)}).depends_on_form for v in (0.05, 0.01)]
    assert made == [True, False]


def test_a_number_is_points_alone_and_a_key_of_an_earlier_version_is_refused_with_the_new_one():
    similar = Limits.model_validate({"similar_applicants": 0.03}).similar_applicants
    assert similar is not None
    assert (similar.points, similar.times, similar.least) == (0.03, None, 0.0)
    assert Limits.model_validate(Limits().model_dump()) == Limits()
    with pytest.raises(ValueError, match="`direct` is now `similar_applicants`"):
        Limits.model_validate({"similar_applicants": 0.03, "direct": 0.02})


def test_a_hull_shows_a_side_only_if_every_reading_does():
    from tasks.metrics.algorithm.verdicts import Estimated

    hull = Hull((Estimated(0.05, 0.01), Estimated(0.0, 0.01)))
    assert hull.above(0.02) == Estimated(0.0, 0.01).above(0.02)
    assert hull.below(0.02) == Estimated(0.05, 0.01).below(0.02)
    assert hull.bound(0.05, upper=True) == Estimated(0.05, 0.01).bound(0.05, upper=True)
    assert hull.bound(0.05, upper=False) == Estimated(0.0, 0.01).bound(0.05, upper=False)
    assert hull.error == 0.01


def test_the_harm_seen_in_a_part_follows_from_errors_and_critical_value_of_the_parts():
    parts = [part(str(n), 0.01, n=n, se=0.5 / n**0.5, above=0.01 - 3 * 0.5 / n**0.5) for n in (60, 200, 700)]
    seen = seen_in_part(Facts(row(), parts=parts), SETTINGS)
    assert seen is not None
    assert seen.n == 200
    reach, rate = (3 + 0.8416) * 0.5 / 200**0.5, min(0.2 + seen.points, 0.5)
    assert seen.points == pytest.approx(0.05 + reach * (rate * (1 - rate) / 0.16) ** 0.5, abs=1e-4)
    # a small group has no part of 200, a rare outcome a smaller limit
    small = seen_in_part(Facts(row(n=120), parts=parts), SETTINGS)
    assert small is not None
    assert (small.n, small.points > seen.points) == (100, True)
    rare = seen_in_part(Facts(row(limit=0.005), parts=parts), SETTINGS)
    assert rare is not None
    assert seen.points - 0.05 < rare.points < seen.points
    none = Verdicts(limits=Limits(part=None))
    assert seen_in_part(Facts(row(), parts=parts), none) is None
    assert seen_in_part(Facts(row(), parts=[]), SETTINGS) is None
    assert seen_in_part(Facts(row(value=None), parts=parts), SETTINGS) is None
    assert seen_in_part(Facts(row(n=40), parts=parts), SETTINGS) is None


def verdict_row(group: str, value: float, **fields: Any) -> dict[str, Any]:
    about = {"theory": "similar_applicants", "role": "primary", "method": "adjusted", "measure": "adjusted_effect"}
    about |= {"decision_maker": "lender", "protected_attribute": "race", "group": group, "reference_group": "A"}
    numbers = {"value": value, "se": 0.005, "df": None, "bias": 0.0, "limit": 0.02, "side": "at_most", "p_breach": 0.5}
    counts = {"n": 1000, "events": 200, "n_reference": 3000, "events_reference": 600}
    return about | numbers | counts | fields


def choice(number: int, value: float) -> dict[str, Any]:
    return {"number": number, "value": value, "se_at_limit": 0.005, "df": None, "limit": 0.02}


def test_each_choice_is_judged_together_with_the_other_groups_by_the_same_choice():
    rows = [verdict_row("B", 0.03), verdict_row("C", 0.03), verdict_row("D", 0.0, p_breach=None)]
    # 1.8 errors beyond the limit: outside alone, open where another group is judged beside it and is not outside
    choices = {
        ("lender", "race", "B"): [choice(1, 0.029), choice(2, 0.029), choice(3, 0.0)],
        ("lender", "race", "C"): [choice(1, 0.0), choice(2, 0.05), choice(3, 0.0)],
        ("lender", "race", "D"): [choice(1, 0.5)],
    }
    states = states_of_choices(rows, choices, Rules())
    assert [state for _, state in states["lender", "race", "B"]] == [*(State.INCONCLUSIVE, State.OUTSIDE, State.WITHIN)]
    assert [row["number"] for row, _ in states["lender", "race", "C"]] == [1, 2, 3]
    assert ("lender", "race", "D") not in states, "a row that is not judged has no state by any choice"
    alone = states_of_choices(rows[:1], choices, Rules())
    assert alone["lender", "race", "B"][0][1] is State.OUTSIDE
    widened = states_of_choices([verdict_row("B", 0.03, bias=0.1)], choices, Rules())
    assert {state for _, state in widened["lender", "race", "B"]} == {State.INCONCLUSIVE}
    assert states_of_choices(rows, {}, Rules()) == {}


def test_few_denials_of_the_group_may_pass_and_never_breach():
    few = {"events": 6, "limit": 0.005}
    assert state(Facts(row(**few, value=-0.002, se_at_limit=0.002)))[0] is State.WITHIN
    crossing, reason = state(Facts(row(**few, value=0.004, se_at_limit=0.002)))
    assert (crossing, reason) == (
        State.INCONCLUSIVE,
        "the group has fewer than the 10 denials or approvals that a verdict needs",
    )
    beyond = Facts(row(**few, value=0.05, se_at_limit=0.002), parts=[part("refinance", 0.25)])
    assert state(beyond)[0] is State.INCONCLUSIVE
    reference = Facts(row(value=-0.002, se_at_limit=0.002, events_reference=6))
    assert state(reference)[0] is State.INCONCLUSIVE


def test_a_second_estimate_that_differs_is_a_finding_in_words():
    facts = Facts(row(value=0.10), readings={"targeted": reading(0.05, -0.05, se=0.01)})
    (finding,) = findings_of({WHOSE: facts}, None, SETTINGS)
    assert finding["kind"] == "form"
    words = sentence(finding | {"reference_group": "A"})
    assert words.startswith("The result depends on the form of the rule")
    assert "gives 5 points less often, this one 10 points less often" in words


@pytest.mark.parametrize(
    ("kind", "part_name", "words"),
    [
        ("copies", "", "FROM copied_rows WHERE run = 'r-1'"),
        ("undecided", "", "FROM abandoned a JOIN abandoned_memberships m"),
        ("part", "product: refinance", "CAST(a.\\\"product\\\" AS VARCHAR) = 'refinance'"),
        ("place", "", "ORDER BY value DESC"),
        ("ratio", "", "AND NOT a.favourable"),
    ],
)
def test_a_finding_has_a_command_that_a_shell_reads(kind: str, part_name: str, words: str):
    line = command({"kind": kind, "group": "O'Neil", "protected_attribute": "race", "part": part_name}, "r-1")
    assert words in line
    (*start, query) = shlex.split(line)
    assert start == ["evenhand", "sql"]
    assert kind == "copies" or "'O''Neil'" in query


def test_a_part_that_is_a_range_has_no_command():
    assert not command({"kind": "part", "group": "B", "protected_attribute": "race", "part": "dti: above 40"}, "r-1")
    assert not command({"kind": "bands", "group": "B", "protected_attribute": "race", "part": ""}, "r-1")
