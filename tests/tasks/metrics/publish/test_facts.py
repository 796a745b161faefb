"""Tables beside the measures: what they say of a withheld group goes with it, and no number is finer than it may be."""

from types import SimpleNamespace

import pytest
from published_rows import Told

from schemas.tables.applications import ENCODINGS, MODEL_METRICS, VALIDATIONS
from schemas.tables.counterfactuals import FEASIBILITY_FACTS
from schemas.tables.verdicts import published
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED
from tasks.metrics.publish import facts
from tasks.metrics.publish.algorithm.profiles import POLICIES


def told(profile, *gone):
    """Fates without a run, of 1,000 people."""
    own = Told(POLICIES[profile], frozenset(gone))
    people = SimpleNamespace(weights=SimpleNamespace(sum=lambda: 1000))
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
