"""Points of curves as arrays: which leave the measures, their values, the way back, and what is withheld of them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from schemas.audit.limits import Bootstrap, Disclosure, Limits, Threshold, Verdicts
from schemas.audit.spec import Protected
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS
from schemas.tables.findings import AGGREGATES, CURVES, DRAWS, FGCE_CURVES, METHOD_CURVES, TALLIES
from schemas.tables.verdicts import points_query, published
from tasks.lake.storage import connected
from tasks.metrics import stage as measuring
from tasks.metrics.curves import Parted, curves_of, rows_of
from tasks.metrics.publish import stage as publishing
from tasks.numerics.statistics.intervals import wilson
from tasks.pipeline.registry import METHODS
from tasks.pipeline.validation.boundary import validate

RULE = {"fgce": {"coverage": {}, "coverage_at_k": {"k": 10}}, "cec": {"regime_share_at": {}}}
NONE = TALLIES.empty(), AGGREGATES.empty(), DRAWS.empty()
WHOSE = {"method": "fgce", "decision_maker": "lender", "protected_attribute": "race", "group": "Black"}
REFERENCES = {"race": "white"}
Z = 1.959963984540054


def tallies(*rows):
    """Rows of (measure, parameters, value, count), with other columns as named in a fifth part."""
    every = [
        {
            **WHOSE,
            **{"subgroup": 0, "headline": False, "compared": True, "share": True},
            **{"measure": measure, "parameters": json.dumps(at, sort_keys=True), "value": value, "count": count},
            **dict(*more),
        }
        for measure, at, value, count, *more in rows
    ]
    return TALLIES.build(**{column.name: [row[column.name] for row in every] for column in TALLIES.columns})


def draws(measure, at, values, reference="size_matched"):
    """Draws of one measure."""
    named = {**WHOSE, "measure": measure, "parameters": json.dumps(at, sort_keys=True), "reason": None}
    columns = {name: [value] * len(values) for name, value in (named | {"reference": reference}).items()}
    return DRAWS.build(**columns, draw=list(range(len(values))), value=values)


def points_of(*given, level=0.95):
    """The rows of measures that the curves of points give back."""
    made = curves_of(given, level)
    return [row for name in made for row in rows_of(made[name].to_pylist(), REFERENCES)]


def test_points_leave_the_measures_but_for_the_one_at_the_setting():
    rows = tallies(*[("coverage_at_k", {"k": k}, 1.0, 5) for k in (1, 2, 10)], ("infeasible_share", {}, 1.0, 3))
    parted = Parted.of(rows, *NONE[1:], RULE, ())
    assert parted.tallies["parameters"].to_pylist() == ['{"k": 10}', "{}"]
    assert parted.points[0]["parameters"].to_pylist() == ['{"k": 1}', '{"k": 2}']


def test_a_part_of_a_group_is_on_curves_alone():
    rows = tallies(("infeasible_share", {}, 1.0, 3), ("infeasible_share", {}, 1.0, 2, {"subgroup": 1}))
    parted = Parted.of(rows, *NONE[1:], RULE, ())
    assert parted.tallies["subgroup"].to_pylist() == [0]
    assert parted.points[0]["subgroup"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("measure", "parameters", "left"),
    [
        ("coverage_at_k", {"k": 2}, [2, 10]),
        ("coverage_at_k_difference", {"k": 2}, [2, 10]),
        ("coverage_at_k", {}, [1, 2, 10]),
        ("infeasible_share", {}, [10]),
    ],
)
def test_a_point_that_a_limit_may_be_about_stays_a_measure(measure, parameters, left):
    rows = tallies(*[("coverage_at_k", {"k": k}, 1.0, 5) for k in (1, 2, 10)])
    limit = Threshold(measure=measure, parameters=parameters, maximum=0.5)
    parted = Parted.of(rows, *NONE[1:], RULE, (limit,))
    assert [json.loads(text)["k"] for text in parted.tallies["parameters"].to_pylist()] == left


def test_a_measure_with_permuted_labels_stays():
    rows = tallies(*[("coverage", {"k": k}, 1.0, 5) for k in (1, 2)])
    parted = Parted.of(rows, AGGREGATES.empty(), draws("coverage", {"k": 1}, [0.5], "null"), RULE, ())
    assert (parted.tallies["parameters"].to_pylist(), parted.draws.num_rows) == (['{"k": 1}'], 1)


def test_a_share_has_its_value_its_counts_and_wilsons_interval():
    at = {"k": 2, "d": "0.5", "denominator": "feasible"}
    rows = tallies(("coverage", at, 1.0, 7), ("coverage", at, 0.0, 3), ("coverage", at, None, 4))
    drawn = np.linspace(0.1, 0.5, 40)
    own, beside = points_of(rows, AGGREGATES.empty(), draws("coverage", at, [*drawn, None, np.inf]))
    assert (own["value"], own["n"], own["events"], own["reference_group"]) == (0.7, 14, 7, None)
    assert (own["low"], own["high"]) == pytest.approx(wilson(7, 10, Z))
    assert (beside["measure"], beside["reference_group"], beside["n"]) == ("coverage_size_matched", "white", 40)
    assert (beside["value"], beside["low"], beside["high"]) == pytest.approx(
        (drawn.mean(), *np.quantile(drawn, (0.025, 0.975)))
    )


def test_few_finite_draws_have_a_mean_and_no_range():
    rows = tallies(("coverage", {"k": 2}, 1.0, 7))
    _, beside = points_of(rows, AGGREGATES.empty(), draws("coverage", {"k": 2}, [0.2, 0.4, None, None]))
    assert (beside["value"], beside["low"], beside["high"], beside["note"]) == (pytest.approx(0.3), None, None, "")


def test_a_mean_has_no_events_and_no_ends():
    rows = tallies(("cost_over_face", {"k": 1}, 1.0, 1), ("cost_over_face", {"k": 1}, 2.5, 2))
    rows = rows.set_column(rows.column_names.index("share"), "share", pa.array([False, False]))
    [own] = points_of(rows, *NONE[1:])
    assert (own["value"], own["n"]) == (pytest.approx(2.0), 3)
    assert (own["events"], own["low"], own["high"]) == (None, None, None)


def test_an_aggregate_keeps_what_qualifies_it():
    nothing = {column.name: [None] for column in AGGREGATES.columns}
    named = {name: [value] for name, value in WHOSE.items()} | {"subgroup": [0], "measure": ["least_cost"]}
    numbers = {"value": [0.4], "n": [9], "reason": ["a bound"], "replicates": [[0.1, 0.2]]}
    flags = {"headline": [False], "compared": [True], "parameters": ['{"c": 0.5, "k": 3}']}
    aggregate = AGGREGATES.build(**{**nothing, **named, **numbers, **flags})
    [own] = points_of(TALLIES.empty(), aggregate, DRAWS.empty())
    assert (own["value"], own["n"], own["note"], own["state"]) == (0.4, 9, "a bound", "information")
    table = curves_of((TALLIES.empty(), aggregate, DRAWS.empty()), 0.95)[FGCE_CURVES.name]
    assert (table["k"].to_pylist(), table["d"].to_pylist(), table["c"].to_pylist()) == ([[3.0]], [[None]], [[0.5]])


def test_curves_are_in_order_by_number_and_apart_by_denominator_and_method():
    of_cec = {"method": "cec", "decision_maker": "model"}
    rows = tallies(
        *[("coverage", {"k": k, "denominator": of}, 1.0, k) for k in (10, 2, 1) for of in ("all", "feasible")],
        ("regime_share_at", {"theta": 0.1}, 1.0, 4, of_cec),
    )
    made = curves_of((rows, *NONE[1:]), 0.95)
    curves = made[FGCE_CURVES.name].to_pylist()
    assert [(curve["denominator"], curve["k"], curve["n"]) for curve in curves] == [
        (of, [1.0, 2.0, 10.0], [1.0, 2.0, 10.0]) for of in ("all", "feasible")
    ]
    assert made[METHOD_CURVES.name]["curve"].to_pylist() == ["regime_share_at"]
    for declared in CURVES:
        assert made[declared.name].schema.equals(declared.schema())


def test_great_expectations_holds_the_tables_of_curves():
    made = curves_of((tallies(("coverage", {"k": 1}, 1.0, 5), ("coverage", {"k": 2}, 0.0, 5)), *NONE[1:]), 0.95)
    for rows, holds in ((made[FGCE_CURVES.name], True), (pa.concat_tables([made[FGCE_CURVES.name]] * 2), False)):
        assert all(outcome.success for outcome in validate(rows, FGCE_CURVES)) == holds
    assert all(outcome.success for outcome in validate(made[METHOD_CURVES.name], METHOD_CURVES))


def test_sql_gives_the_same_points_as_the_rows():
    at = {"k": 2, "denominator": "all"}
    rows = tallies(("coverage", at, 1.0, 7), ("coverage", at, 0.0, 3), ("coverage", {"k": 1}, None, 4))
    table = curves_of((rows, AGGREGATES.empty(), draws("coverage", at, [0.2, 0.4, 0.6])), 0.95)[FGCE_CURVES.name]
    names = ("group", "measure", "parameters", "value", "low", "high", "n", "events")
    expected = [tuple(row[name] for name in names) for row in rows_of(table.to_pylist(), REFERENCES)]
    with connected() as connection:
        connection.register("published_curves", table.append_column("run", pa.array(["r"] * table.num_rows)))
        found = connection.sql(points_query("published_curves")).to_arrow_table().to_pylist()
    assert {(row["run"], row["state"]) for row in found} == {("r", "information")}
    points = [tuple(row[name] for name in names) for row in found]
    assert sorted(points, key=str) == sorted(expected, key=str)


def test_every_curve_is_a_measure_that_its_method_declares():
    for method in METHODS.values():
        assert set(method.curves) <= set(method.measures)
        names = {name for names in method.curves.values() for name in names}
        # a point that stays lacks those that are no setting
        assert names <= {*method.settings.model_fields, "variant", "over"}


def audited(profile, small):
    """What is published of a curve of three groups, of which one has few people."""
    groups = ["white"] * 60 + ["Black"] * 40 + ["Asian"] * small
    ids, n = [str(i) for i in range(len(groups))], len(groups)
    approved = [i % 3 > 0 for i in range(n)]
    tables = {table.name: table.empty() for table in (*publishing.READ, *measuring.measure.reads)}
    blank = {column.name: [None] * n for column in APPLICATIONS.columns}
    tables["applications"] = APPLICATIONS.build(
        **{**blank, "row_id": ids, "source_row": list(range(1, n + 1)), "favourable": approved, "outcome": approved}
    )
    tables["memberships"] = MEMBERSHIPS.build(row_id=ids, protected_attribute=["race"] * n, group=groups)
    decided = {column.name: [None] * n for column in DECISIONS.columns}
    decided |= {"row_id": ids, "decision_maker": ["lender"] * n, "favourable": approved, "outcome": approved}
    tables["decisions"] = DECISIONS.build(**{**decided, "explained": [True] * n})
    rows = [
        ("coverage", {"k": k}, value, count, {"group": group})
        for group in dict.fromkeys(groups)
        for k in (1, 2)
        for value, count in ((1.0, groups.count(group) // 2), (0.0, groups.count(group) - groups.count(group) // 2))
    ]
    tables["tallies"] = tallies(*rows)
    protected = (Protected(name="race", columns=("race",), reference="white"),)
    limits = Limits(similar_applicants=None, causal_model=None, approval_rates=None, path_to_approval=None)
    boot = Bootstrap(draws=100)
    asked = measuring.MeasureSettings(
        name="t", year=2024, protected=protected, thresholds=(), bootstrap=boot, seed=1,
        verdicts=Verdicts(limits=limits), running=(), model_is_fitted=False, curves=RULE,
    )  # fmt: skip
    tables |= measuring.measure.function(*(tables[t.name] for t in measuring.measure.reads), settings=asked).tables
    said = publishing.PublishSettings(
        protected=protected, disclosure=Disclosure(profile=profile), bootstrap=boot, seed=1
    )
    out = publishing.publish.function(*(tables[t.name] for t in publishing.READ), settings=said).tables
    return tables, out


@pytest.mark.parametrize("profile", ["public", "strict"])
def test_a_withheld_group_has_no_number_in_any_list(profile):
    tables, out = audited(profile, small=3)
    assert "coverage" not in tables["measures"]["measure"].to_pylist()
    told = out[published(FGCE_CURVES).name]
    gone = told.filter(pc.equal(told["group"], "Asian")).to_pylist()
    shown = told.filter(pc.equal(told["group"], "white")).to_pylist()
    names = ("value", "n", "events", "low", "high", "drawn", "drawn_low", "drawn_high", "draws")
    assert [{number for name in names for number in curve[name]} for curve in gone] == [{None}]
    assert all(note.startswith("withheld") for note in gone[0]["note"])
    assert shown[0]["value"] == [0.5, 0.5]
    assert shown[0]["low"] == [None, None]


def test_a_rate_of_few_people_is_published_as_its_counts():
    _, out = audited("published", small=7)
    told = out[published(FGCE_CURVES).name].to_pylist()
    few = [row for row in rows_of(told, REFERENCES) if row["group"] == "Asian"]
    assert [(row["value"], row["n"], row["reason"]) for row in few] == [(None, 7, "3 of 7")] * 2
    assert [curve["value"] for curve in told if curve["group"] == "white"] == [[0.5, 0.5]]
