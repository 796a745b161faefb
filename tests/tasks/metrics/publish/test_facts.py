"""Tables beside the measures: what they say of a withheld group goes with it, and no number is finer than it may be."""

import json
from types import SimpleNamespace

import pytest
from published_rows import Told

from schemas.tables.applications import ENCODINGS, MODEL_METRICS, VALIDATIONS
from schemas.tables.counterfactuals import FEASIBILITY_FACTS
from schemas.tables.findings import FINDINGS
from schemas.tables.verdicts import PUBLISHED_MEASURES, WITHHELD_TABLE, published
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED, DISPARITIES, FLOW, PRICING
from tasks.metrics.publish import facts
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.pipeline.validation import rows as rules


def told(profile, *gone):
    """Fates without a run, of 1,000 people."""
    own = Told(POLICIES[profile], frozenset(gone))
    attributes = [SimpleNamespace(name="race", groups=("Black", "white"))]
    people = SimpleNamespace(weights=SimpleNamespace(sum=lambda: 1000), attributes=attributes)
    return SimpleNamespace(
        **{name: getattr(own, name) for name in ("policy", "is_gone", "is_ranged", "printed", "base", "base_of")},
        of_all=lambda count: own.printed("", "", "", count),
        people=people,
    )


def metrics(*rows):
    names = ("protected_attribute", "group", "metric", "value", "n")
    return MODEL_METRICS.build(**dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_a_withheld_group_has_no_number_in_any_table():
    made = metrics(("race", "Black", "auc", 0.73456, 197), ("race", "Asian", "auc", 0.81234, 40))
    rows = facts.published_table(MODEL_METRICS, made, told("public", ("", "race", "Asian"))).to_pylist()
    assert [(row["value"], row["n"]) for row in rows] == [(0.735, 197), (None, None)]


def test_few_people_are_withheld_with_all_that_is_said_of_them():
    made = metrics(("race", "Black", "auc", 0.73456, 4))
    (row,) = facts.published_table(MODEL_METRICS, made, told("public")).to_pylist()
    assert (row["value"], row["n"]) == (None, None)
    (row,) = facts.published_table(MODEL_METRICS, made, told("internal")).to_pylist()
    assert (row["value"], row["n"]) == (0.73456, 4)


@pytest.mark.parametrize(
    ("profile", "words", "value"),
    [
        ("internal", "346 distinct rows stand for 1,003 applications", 346),
        ("public", "346 distinct rows stand for 1,003 applications", 346),
        ("strict", "345 distinct rows stand for 1,005 applications", 345),
        ("official", "350 distinct rows stand for 1,000 applications", 350),
    ],
)
def test_facts_of_the_graph_are_rounded_in_number_and_in_words(profile, words, value):
    said = "346 distinct rows stand for 1,003 applications"
    made = FEASIBILITY_FACTS.build(fact=["nodes"], value=[346.0], words=[said])
    (row,) = facts.published_table(FEASIBILITY_FACTS, made, told(profile)).to_pylist()
    assert (row["words"], row["value"]) == (words, value)


def test_few_rows_without_a_neighbour_are_told_as_few():
    made = FEASIBILITY_FACTS.build(fact=["without_neighbour"], value=[4.0], words=["4 of these have no neighbour"])
    (row,) = facts.published_table(FEASIBILITY_FACTS, made, told("strict")).to_pylist()
    assert (row["words"], row["value"]) == ("fewer than 8 of these have no neighbour", None)


def test_a_number_in_a_name_is_no_number():
    assert facts.in_words("mortlat1 has a R2 of 0.14249", told("strict")) == "mortlat1 has a R2 of 0.142"


@pytest.mark.parametrize(("elements", "shown"), [(1989, 2000), (1984, 2000), (147, 100), (150, 200), (5, None), (0, 0)])
def test_elements_of_expectations_tell_no_difference_of_two_counts(elements, shown):
    row = {"stage": "ingest", "table": "refusals", "expectation": "x", "column": None, "expected": "{}"}
    row |= {"success": True, "elements": elements, "unexpected": 0, "quarantined": False, "severity": "critical"}
    made = VALIDATIONS.build(**{name: [value] for name, value in row.items()})
    (found,) = facts.published_table(VALIDATIONS, made, told("public")).to_pylist()
    assert (found["elements"], found["unexpected"]) == (shown, 0)


@pytest.mark.parametrize(("profile", "value"), [("public", []), ("strict", []), ("internal", [418])])
def test_a_balance_of_rows_tells_no_exact_number(profile, value):
    """Of 420 rows 418 used are two that were refused, whom the waterfall withholds."""
    row = {"stage": "preprocess", "table": "features", "expectation": rules.ROW_COUNT, "column": None}
    row |= {"expected": json.dumps({"value": 418, "rows": "rows_in = rows_out_and_refused"}), "severity": "critical"}
    row |= {"success": True, "elements": 1, "unexpected": 0, "quarantined": False}
    made = VALIDATIONS.build(**{name: [cell] for name, cell in row.items()})
    (found,) = facts.published_table(VALIDATIONS, made, told(profile)).to_pylist()
    expected = json.loads(found["expected"])
    assert (expected["rows"], [expected[name] for name in expected if name == "value"]) == (
        "rows_in = rows_out_and_refused",
        value,
    )


@pytest.mark.parametrize(("raised", "lowered", "shown"), [(20, 12, True), (20, 3, False), (20, 0, True)])
def test_few_whose_decision_changes_withhold_the_effect(raised, lowered, shown):
    row = {"decision_maker": "model", "protected_attribute": "race", "group": "Black", "column": "race", "value": "w"}
    row |= {"n": 300, "events": 90, "raised": raised, "lowered": lowered, "effect": 0.05, "low": 0.01, "high": 0.09}
    made = ADJUSTED_EXCHANGED.build(**{name: [value] for name, value in (row | {"reason": ""}).items()})
    (found,) = facts.published_table(ADJUSTED_EXCHANGED, made, told("public")).to_pylist()
    assert (found["effect"] is not None) == shown == (found["n"] is not None)


def test_a_published_declaration_has_the_same_columns_and_nulls_for_numbers():
    declared = published(VALIDATIONS)
    assert [c.name for c in declared.columns] == [c.name for c in VALIDATIONS.columns]
    assert all(c.nullable for c in declared.columns if c.type in ("double", "int64"))
    assert (declared.name, declared.restricted) == ("published_validations", False)


def test_a_value_of_a_column_that_is_text_has_three_digits_too():
    assert facts.in_words("0.52381", told("public"), people=False) == "0.524"
    assert facts.in_words("3", told("strict"), people=False) == "3", "a number of dependants counts no applicants"


def test_bins_of_a_column_are_no_people():
    known = {"encoded": "income", "feature": "income", "feature_index": 0, "kind": "continuous", "roles": "financial"}
    row = {**dict.fromkeys(c.name for c in ENCODINGS.columns), **known, "constraint": "up"}
    row |= {"bins": 7, "clipped": 43, "implausible": 0}
    fates = SimpleNamespace(**vars(told("public")) | {"of_all": lambda n: n // 10 * 10})
    table = ENCODINGS.build(**{name: [value] for name, value in row.items()})
    (shown,) = facts.published_table(ENCODINGS, table, fates).to_pylist()
    assert (shown["bins"], shown["clipped"]) == (7, 40), "seven bins, rounded, would be none"


def flow_rows(counts):
    """Ends of one group's applications; ``fallout`` is a sum of others."""
    n = sum(events for outcome, events in counts.items() if outcome != "fallout")
    rows = [
        {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "outcome": outcome}
        | {"n": n, "events": events, "value": events / n, "low": 0.0, "high": 1.0}
        | dict.fromkeys(("difference", "difference_low", "difference_high"))
        for outcome, events in counts.items()
    ]
    return FLOW.build(**{c.name: [row[c.name] for row in rows] for c in FLOW.columns})


@pytest.mark.parametrize("counts", [{"incomplete": 3}, {"denied": 1, "incomplete": 1}, {"incomplete": 0, "copied": 2}])
@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_a_small_count_withholds_the_whole_table_with_its_reason(profile, counts):
    counts = {"originated": 300, "denied": 90, "withdrawn": 40, "fallout": 40 + counts["incomplete"]} | counts
    rows = facts.published_table(FLOW, flow_rows(counts), told(profile)).to_pylist()
    assert [(row["group"], row["outcome"]) for row in rows] == [("Black", WITHHELD_TABLE), ("white", WITHHELD_TABLE)]
    assert all(row[c.name] is None for row in rows for c in FLOW.columns if c.type in ("int64", "double"))


@pytest.mark.parametrize("profile", ["internal", "published"])
def test_nothing_is_withheld_where_readers_can_count_the_rows(profile):
    made = flow_rows({"originated": 300, "denied": 90, "withdrawn": 1, "fallout": 1})
    assert facts.published_table(FLOW, made, told(profile)).to_pylist() == made.to_pylist()


def test_shares_of_rounded_counts_are_those_of_what_is_printed():
    rows = facts.published_table(FLOW, flow_rows({"originated": 303, "denied": 91}), told("strict")).to_pylist()
    assert [(row["n"], row["events"], row["value"], row["low"]) for row in rows] == [
        (395, 305, 0.772, None),
        (395, 90, 0.228, None),
    ]
    rows = facts.published_table(FLOW, flow_rows({"originated": 303, "denied": 91}), told("internal")).to_pylist()
    assert [row["events"] for row in rows] == [303, 91]


def test_the_interval_of_nobody_tells_no_exact_number_where_counts_are_rounded():
    """Wilson's upper end of none of 394 is a function of 394."""
    rows = facts.published_table(FLOW, flow_rows({"originated": 394, "denied": 0}), told("strict")).to_pylist()
    assert [(row["outcome"], row["events"], row["value"], row["high"]) for row in rows][1] == ("denied", 0, 0.0, None)


@pytest.mark.parametrize(("filled", "shown"), [(1.0, 1.0), (0.99, None), (0.9, 0.9)])
def test_a_share_of_loans_with_a_price_tells_no_few_without_one(filled, shown):
    row = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "outcome": "rate_spread"}
    row |= {"unit": "percentage points", "product": "", "rung": 1, "blocks": "", "estimator": "ols", "primary": True}
    row |= {"n": 300, "n_reference": 900, "filled": filled, "filled_reference": 0.5}
    row |= {"reason": "exempt: 1% and 3% of the loans of both groups need not report it"}
    made = PRICING.build(**{c.name: [row.get(c.name)] for c in PRICING.columns})
    (found,) = facts.published_table(PRICING, made, told("public")).to_pylist()
    assert (found["filled"], found["reason"]) == (shown, "exempt: some of the loans of both groups need not report it")
    assert facts.published_table(PRICING, made, told("published")).to_pylist() == made.to_pylist()


def test_a_ratio_goes_with_a_withheld_count_of_the_reference_group():
    row = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "of": "denial", "share": None}
    row |= {"measure": "odds_ratio", "higher": "worse", "value": 2.5, "low": 1.1, "high": 4.0, "n": 300, "events": 60}
    made = DISPARITIES.build(
        **{name: [value] for name, value in (row | {"n_reference": 90, "events_reference": 3, "reason": ""}).items()}
    )
    (found,) = facts.published_table(DISPARITIES, made, told("public")).to_pylist()
    assert (found["value"], found["low"], found["events_reference"], found["n"]) == (None, None, None, 300)


def test_members_without_a_value_are_not_told_by_the_row_of_all_members():
    rows = [
        {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "measure": measure, "of": of}
        | {"higher": "worse", "share": None, "value": 1.2, "low": 1.0, "high": 1.4, "reason": ""}
        | {"n": n, "events": None, "n_reference": 900, "events_reference": None}
        for measure, of, n in (("odds_ratio", "denial", 200), ("smd", "income", 197), ("smd", "term", 150))
    ]
    made = DISPARITIES.build(**{c.name: [row[c.name] for row in rows] for c in DISPARITIES.columns})
    shown = facts.tables([(DISPARITIES, made)], told("public"))["published_disparities"].to_pylist()
    assert [(row["n"], row["value"] is None) for row in shown] == [(200, False), (None, True), (150, False)]


PAIRING = facts.Pairing({"race": "white"}, neighbours=100, fewest=30, seed=1)


def findings_of(**letters):
    """Findings from a letter an applicant: f flagged, n not, r refused, i not identified; a gap: no row."""
    words = {
        "cst": {"f": "detected", "n": "not_detected"},
        "fgce": {"f": "infeasible", "n": "feasible"},
        "gcfn": {"f": "decision_changes", "n": "decision_kept", "i": "not_identified"},
        "raguel": {"f": "offered_recourse", "n": "offered_recourse"},
    }
    rows = [
        {
            **{
                "row_id": str(at),
                "method": method,
                "verdict": words[method].get(letter, "not_tested"),
                "group": "Black",
            },
            **{"refusal": "missing_covariate" if letter == "r" else None, "q": 0.01, "statistic": float(letter == "f")},
        }
        for method, of in letters.items()
        for at, letter in enumerate(of)
        if letter != " "
    ]
    rows += [
        {**rows[0], "row_id": f"w{at}", "method": "raguel", "verdict": "offered_recourse", "group": "white",
         "statistic": 0.5, "refusal": None}
        for at in range(3)
    ]  # fmt: skip
    blank = dict.fromkeys(("control", "test", "low", "high", "p"))
    whose = {"decision_maker": "lender", "protected_attribute": "race", "subgroup": 0, "weight": 1.0}
    rows = [{**blank, **whose, **row} for row in rows]
    return FINDINGS.build(**{c.name: [row[c.name] for row in rows] for c in FINDINGS.columns})


def pairs_of(profile="public", *gone, **letters):
    made = facts.agreement_pairs(findings_of(**letters), PUBLISHED_MEASURES.empty(), PAIRING, told(profile, *gone))
    return {(row["first"], row["second"]): row for row in made.to_pylist()}


CELLS = ("both", "first_alone", "second_alone", "neither")


def test_pairs_of_methods_are_counted_among_whom_both_could_judge_and_the_others_by_reason():
    found = pairs_of(
        cst="f" * 30 + "n" * 60 + "r" * 10, fgce="f" * 20 + "n" * 20 + " " * 60, gcfn="n" * 60 + "f" * 20 + "i" * 20
    )
    first = found["cst", "fgce"]
    assert [first[name] for name in ("n", *CELLS)] == [40, 20, 10, 0, 10]
    assert (first["kappa"], first["ac1"], first["agreement"]) == (0.5, 0.529, 0.75)
    assert first["kappa_low"] < 0.5 < first["kappa_high"]
    assert [first[name] for name in ("not_asked", "refused", "not_identified")] == [60, 0, 0]
    assert first["may_differ"] == "unit"
    second = found["cst", "gcfn"]
    assert [second[name] for name in ("n", *CELLS)] == [80, 0, 30, 20, 30]
    assert [second[name] for name in ("not_asked", "refused", "not_identified")] == [0, 0, 20]
    assert second["first_flag"].startswith("q below 0.05")


def test_pairs_of_few_people_tell_nothing_and_rounded_counts_make_all_numbers():
    letters = {"cst": "f" * 33 + "n" * 30, "gcfn": "f" * 30 + "n" * 33}
    assert pairs_of("internal", **letters)["cst", "gcfn"]["first_alone"] == 3
    row = pairs_of(**letters)["cst", "gcfn"]
    names = ("n", *CELLS, "agreement", "kappa", "ac1", "jaccard", "not_asked", "refused", "not_identified")
    assert row["withheld"]
    assert {row[name] for name in names} == {None}
    assert pairs_of("public", ("lender", "race", "Black"), cst="f" * 99, gcfn="f" * 99)["cst", "gcfn"]["withheld"]
    rounded = pairs_of("strict", cst="f" * 42 + "n" * 48, gcfn="f" * 31 + "n" * 24 + "f" * 13 + "n" * 22)
    assert [rounded["cst", "gcfn"][name] for name in CELLS] == [30, 10, 15, 35]
    assert rounded["cst", "gcfn"]["agreement"] == 0.722, "65 of 90, of the rounded counts"


def test_a_cost_of_recourse_is_a_flag_above_the_reference_groups_median():
    flags = facts.flags(findings_of(raguel="f" * 3 + "n" * 2 + "r"), {"race": "white"}).to_pylist()
    assert [row["flag"] for row in flags] == [True] * 3 + [False] * 2 + [None]
