"""Facts of the first page, read from tables: what they say comes back, and what no table tells stays unsaid."""

import ast
import inspect
import json
from dataclasses import fields, replace
from itertools import permutations

import pytest
import report_tables
from decide_runs import boston, texas
from report_tables import built, material, renamed, spec

from schemas.tables.applications import ANY, DECISION_DIRECTION, VALIDATIONS
from schemas.tables.counterfactuals import GRAPH_TESTS
from schemas.tables.verdicts import PUBLISHED_MEASURES, PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL
from schemas.terms import State, Theory
from tasks.pipeline.registry import tables_shown
from tasks.reporting.first_page.facts import Benchmark, Files, GraphTests, Group, LeftOut, Run
from tasks.reporting.first_page.page import MANY, decide, decisions_of, maker_of, run_of

SHOWN = {table.name: table for table in tables_shown()}
BLACK = ("race", "Black")
OF_BLACK = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black"}


def ladder(*values, **more):
    """Rungs of one group, the last of them judged."""
    last = len(values) - 1
    usual = {**OF_BLACK, "blocks": "", "estimator": "logit", "average_over": "own", "form": "squared", "n": 197}
    rows = [
        {**usual, "rung": rung, "value": value, "primary": rung == last, "events": 64, "reason": "", **more}
        for rung, value in enumerate(values)
    ]
    return built(SHOWN["adjusted"], rows)


def benchmarks(**strength):
    """Controls of the last of four rungs: name -> what each explains of group and denial."""
    rows = [
        {**OF_BLACK, "rung": 3, "blocks": "", "column": name, "times": times, "of_group": group, "of_denial": denial}
        for name, (group, denial) in strength.items()
        for times in (1, 2)
    ]
    return built(SHOWN["adjusted_benchmarks"], rows)


@pytest.mark.parametrize("run", [boston(), boston(limit=-2), texas()], ids=["boston", "two points", "texas"])
def test_verdicts_and_groups_come_back(run):
    found = run_of(material(run))
    assert sorted(found.rows, key=repr) == sorted(run.rows, key=repr)
    assert set(found.groups) == set(run.groups)
    assert decide(found).headline.words.removeprefix("Mortgage applications, an example, 1990: ") == (
        decide(run).headline.words
    )


def test_the_columns_of_the_judged_rung_and_its_strongest_control():
    of = {"adjusted": ladder(0.23, 0.21, 0.19, 0.13)}
    of |= {"adjusted_benchmarks": benchmarks(income=(0.02, 0.01), public_record=(0.01, 0.035))}
    run = run_of(material(**of))
    assert run.strongest == {BLACK: Benchmark("public record", 0.01, 0.035)}
    assert run.columns == {BLACK: 2}
    assert "explains 12 % of the remaining variation in both race and approval" in decide(run).change[0].words


@pytest.mark.parametrize(
    ("lows", "times"),
    [
        ([(0.06, 0.05), (0.04, 0.03), (0.02, 0.01)], 3),
        ([(0.06, 0.05), (0.04, -0.01), (0.02, 0.01)], 1),
        ([(0.06, 0.05), (0.04, None), (0.02, 0.01)], 1),
        ([(0.06, -0.01), (0.04, -0.02), (0.02, -0.03)], 0),
        ([(0.06, None), (0.04, None), (0.02, None)], None),
    ],
    ids=[
        "three times",
        "not twice, so not three times",
        "unknown for one that cannot be so strong",
        "none",
        "withheld",
    ],
)
def test_a_missing_column_is_compared_with_every_control_at_every_strength(lows, times):
    rows = [
        {**OF_BLACK, "rung": 3, "blocks": "", "column": name, "times": strength, "low": low}
        for strength, of_columns in enumerate(lows, 1)
        for name, low in zip(("income", "public_record"), of_columns, strict=True)
    ]
    of = {"adjusted": ladder(0.23, 0.21, 0.19, 0.13)}
    of |= {"adjusted_benchmarks": built(SHOWN["adjusted_benchmarks"], rows)}
    assert run_of(material(**of)).outlasts.get(BLACK) == times


def test_without_the_ladder_nothing_is_said_of_columns():
    run = run_of(material())
    assert (run.columns, run.strongest) == ({}, {})


def test_neighbours_and_files_are_those_of_situation_testing():
    rows = tuple(replace(row, events=64) if row.measure == "st_effect" else row for row in boston().rows)
    run = run_of(material(replace(boston(), rows=rows)))
    assert run.neighbours == 15
    assert run.files[BLACK] == Files(
        20, "evenhand findings --run example-1990-0a1b2c3d --file-pack 20 --attribute race --group Black --denied"
    )
    named = run_of(material(renamed(replace(boston(), rows=rows), {"Black": "-x $(id)"})))
    assert named.files["race", "-x $(id)"].command.endswith("--group='-x $(id)' --denied"), "a value, and no option"
    without = tuple(row for row in rows if row.measure != "st_effect")
    bare = run_of(material(replace(boston(), rows=without)))
    assert (bare.neighbours, bare.files) == (None, {})
    ours = next(row for row in rows if row.measure == "st_effect" and row.key == BLACK)
    for both in permutations((replace(ours, events=7), replace(ours, events=3, decision_maker="model"))):
        assert run_of(material(replace(boston(), rows=(*without, *both)))).files[BLACK].n == 7, "the lender's"


def test_a_name_of_a_group_is_one_word_of_the_command():
    run = report_tables.renamed(boston(), {"Black": "two words; rm"})
    rows = tuple(replace(row, events=12) if row.measure == "st_effect" else row for row in run.rows)
    found = run_of(material(replace(run, rows=rows))).files["race", "two words; rm"]
    assert found.n == 12
    assert "--group 'two words; rm'" in found.command


def test_withheld_numbers_are_none_and_the_number_of_decisions_is_not_told():
    run = replace(boston(), groups=(*boston().groups[:2], Group("race", "Hispanic", None, None)))
    found = material(run)
    assert Group("race", "Hispanic", None, None) in run_of(found).groups
    assert decisions_of(found) is None
    assert decisions_of(material()) == 1681 + 197 + 110


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("withheld: a small cell", ""),
        ("withheld: a small cell; more than 95 % denied", "less than 5"),
        ("withheld: a small cell; above 0.97 denied", "less than 3"),
        ("withheld: a small cell; below 0.08 denied", "more than 92"),
    ],
)
def test_a_range_is_said_of_the_approved(reason, shown):
    rows = report_tables.measures(replace(boston(), groups=(Group("race", "Black", None, None),))).to_pylist()
    found = material(measures=built(PUBLISHED_MEASURES, [{**row, "reason": reason} for row in rows]))
    assert run_of(found).groups == (Group("race", "Black", None, None, shown),)


def test_groups_that_are_no_people_are_no_groups_of_the_page():
    more = (*boston().groups, Group("race", "not provided", 300, 0.9))
    run = run_of(material(replace(boston(), groups=more)))
    assert "not provided" not in {group.name for group in run.groups}
    assert decisions_of(material(replace(boston(), groups=more))) == 1681 + 197 + 110 + 300


def test_whose_approvals_are_judged_follows_the_verdicts():
    assert maker_of(material()) == "lender"
    rows = tuple(replace(row, decision_maker="model") if row.group else row for row in boston().rows)
    assert maker_of(material(replace(boston(), rows=rows))) == "model"


def lacking(missing, used):
    """Published rows of those who lack any column, and of the rows used."""
    of = {"protected_attribute": "race", "stage": "", "reason": "", "column": "", "withheld": False}
    rows = [{**of, "line": 1, "kind": "used", "group": group, "n": n} for group, n in (("All", used), ("white", 1))]
    row = {"feature": ANY, "reason": ANY, "missing": missing, "withheld": missing is None}
    row |= {"approval_missing": 0.4, "approval_present": 0.8}
    tables = ((PUBLISHED_WATERFALL, rows), (PUBLISHED_MISSINGNESS, [row]))
    return {table.name: built(table, found) for table, found in tables}


def test_applications_that_lack_a_column():
    found = run_of(material(**lacking(100, 900))).left_out
    assert found == LeftOut(100, 1000, pytest.approx(0.6), pytest.approx(0.2))
    assert run_of(material(audit=spec(missing="impute"), **lacking(100, 900))).left_out is None
    for withheld in (lacking(None, 900), lacking(100, None), lacking(0, 900), {}):
        assert run_of(material(**withheld)).left_out is None


def test_warnings_of_the_data():
    direction = {"decided_by": "columns", "columns": "income +", "n": 9, "auc": 0.2, "high": 0.3, "reversed": True}
    check = {"stage": "ingest", "table": "applications", "expectation": "x", "expected": "{}", "elements": 9}
    check["severity"] = "critical"
    failed = built(VALIDATIONS, [{**check, "success": False, "unexpected": 1, "quarantined": False}])
    apart = built(VALIDATIONS, [{**check, "success": False, "unexpected": 1, "quarantined": True}])
    run = run_of(material(decision_direction=built(DECISION_DIRECTION, [direction]), validations=failed))
    assert run.warnings == ("columns_swapped", "checks_failed")
    assert run_of(material(validations=apart)).warnings == ()


@pytest.mark.parametrize(
    ("columns", "known"),
    [
        ({"income": {"type": "continuous"}}, False),
        ({"income": {"type": "continuous"}, "chist": {"type": "binary"}}, True),
        ({"x7": {"type": "continuous", "label": "credit score (points)"}}, True),
        ({"x7": {"type": "continuous", "block": "history"}}, True),
        ({"score": {"type": "continuous"}}, True),
        ({"payment_history": {"type": "binary"}}, True),
        ({"underscored": {"type": "continuous"}}, False),
        ({"x7": {"type": "continuous", "role": "excluded", "label": "credit score"}, "y": {"type": "binary"}}, False),
    ],
)
def test_whether_a_column_tells_how_somebody_paid(columns, known):
    assert run_of(material(audit=spec(columns=columns, methods={"fgce": {}}))).credit_history is known


HMDA = {"kind": "hmda", "path": "lar.csv"}
TEXAS_VINTAGE = "vintages/2022/snapshot/TX/2023-05-01/0123456789ab/rows.parquet"
LENDER_VINTAGE = TEXAS_VINTAGE.replace("TX", "ABCDEFGHIJKLMNOPQR12")


@pytest.mark.parametrize(
    ("source", "public", "lenders", "sampled"),
    [
        ({"kind": "csv", "path": "applications.csv"}, False, 1, False),
        ({"kind": "csv", "path": "hmda_tx_2022_sample.csv.gz"}, False, 1, True),
        (HMDA, True, None, False),
        ({**HMDA, "keep": {"lei": ["ABC"]}}, True, 1, False),
        ({"kind": "hmda", "vintage": {}, "vintage_file": TEXAS_VINTAGE}, True, MANY, False),
        ({"kind": "hmda", "vintage": {}, "vintage_file": LENDER_VINTAGE}, True, 1, False),
    ],
)
def test_what_kind_of_file_it_is(source, public, lenders, sampled):
    audit = spec(source=source, decision={"column": "action_taken", "favourable": [1], "unfavourable": [3]})
    run = run_of(material(audit=audit))
    assert (run.public, run.lenders, run.sampled) == (public, lenders, sampled)


@pytest.mark.parametrize(
    ("run_year", "year", "second"),
    [
        *((2026, 2026, "unseen"), (2026, 2022, "unseen"), (2026, 2021, "old_years")),
        *((2027, 2023, "unseen"), (2027, 2022, "old_years"), (2031, 2026, "old_years"), (2031, 2027, "unseen")),
    ],
)
def test_old_years_are_counted_from_the_year_of_the_run(run_year, year, second):
    given = material(audit=spec(year=min(year, 2026)))
    given = replace(given, settings=given.settings.model_copy(update={"run_day": f"{run_year}-11-27", "year": year}))
    assert run_of(given).years_old == run_year - year
    assert [line.rule for line in decide(run_of(given)).cannot][1] == second


def test_a_run_of_nothing_is_read():
    from tasks.reporting.first_page.facts import Run

    run = run_of(material(Run((), ())))
    assert (run.rows, run.groups) == ((), ())
    assert run.theory(Theory.SIMILAR_APPLICANTS) is None
    assert {row.state for row in decide(run).questions} == {State.NOT_RUN}


def test_a_block_of_the_ladder_says_that_a_column_tells_how_somebody_paid():
    columns = {"income": {"type": "continuous"}, "x7": {"type": "continuous"}}
    methods = {"fgce": None, "adjusted": {"blocks": {"finances": ["income"], "history": ["x7"]}}}
    assert run_of(material(audit=spec(columns=columns, methods=methods))).credit_history
    methods["adjusted"] = {"blocks": {"finances": ["income", "x7"]}}
    assert not run_of(material(audit=spec(columns=columns, methods=methods))).credit_history


def test_tests_of_the_assumed_graph_are_counted():
    table = built(GRAPH_TESTS, [{"tests": 49, "rejected": 29}])
    assert run_of(material(boston(), graph_tests=table)).graph_tests == GraphTests(49, 29)
    assert run_of(material(boston())).graph_tests is None


def test_every_fact_of_a_run_is_read():
    (call,) = (
        node
        for node in ast.walk(ast.parse(inspect.getsource(run_of)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Run"
    )
    assert {"rows", "groups", *(each.arg for each in call.keywords)} == {each.name for each in fields(Run)}


def test_how_many_were_asked_is_read_where_fewest_of_all_were():
    def asked(*said):
        rows = [
            {
                **OF_BLACK,
                "method": "cst",
                "subgroup": 0,
                "measure": "st_effect",
                "parameters": json.dumps({"sampled": each} if each else {}),
            }
            for each in said
        ]
        return run_of(material(measures=built(PUBLISHED_MEASURES, rows))).sample

    assert asked("") is None
    assert asked("", "2000 of 2500", "withheld", "50000 of 193925") == (50_000, 193_925)
    assert asked("withheld") is None
