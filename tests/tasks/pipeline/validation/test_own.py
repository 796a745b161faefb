"""The user's own expectations: read from a list or a file, judged at ingest, and never dropped."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import SPEC
from few_loans import between, few_loans, mean, query

from flows.cli.options import load_spec
from flows.partitions.part_spec import spec_of_part, spec_to_audit
from flows.partitions.partition_list import listed_value
from flows.partitions.years import not_judged
from flows.runs.given import given_spec
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError, SuiteError
from schemas.tables.applications import VALIDATIONS
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.pipeline.stage import EXPECTATIONS
from tasks.plan import plan

NOT_NULL = "expect_column_values_to_not_be_null"
NO_NOTE = "SELECT * FROM {batch} WHERE note = 'y'"


def ingested(lake: Lake, spec: AuditSpec) -> Partition:
    step = plan(spec).steps[0]
    return step.stage.run(lake, {}, step.settings, step.modules)


def key(spec: AuditSpec) -> str:
    step = plan(spec).steps[0]
    return step.stage.key({}, step.settings, step.modules)


def read(file: Path) -> AuditSpec:
    return load_spec(file, {}).spec


def test_a_list_and_a_file_are_the_same_expectations(tmp_path: Path) -> None:
    listed = read(few_loans(tmp_path, [mean(), between(10, "info")]))
    of_file = read(few_loans(tmp_path, [mean(), between(10, "info")], "suite.json"))
    assert listed.expectations == of_file.expectations
    assert key(listed) == key(of_file)


def test_every_way_of_reading_a_spec_reads_its_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = few_loans(tmp_path, [mean()], "suite.json")
    spec = load_spec(file, {}).spec
    assert spec.expectations is not None
    assert given_spec(str(file)).expectations == spec.expectations
    assert given_spec(spec.model_dump(mode="json")).expectations == spec.expectations
    monkeypatch.chdir(tmp_path)
    by_path = read_spec(file.read_text(), "few.yaml").spec.model_dump(mode="json")
    assert by_path["expectations"] == "suite.json"
    assert given_spec(by_path).expectations == spec.expectations
    assert load_spec(file, {"expectations": "suite.json"}).spec.expectations == spec.expectations


def test_a_path_that_nobody_read_is_refused(tmp_path: Path) -> None:
    file = few_loans(tmp_path, [mean()], "suite.json")
    spec = read_spec(file.read_text(), "few.yaml", {"source.path": str(tmp_path / "loans.csv")}).spec
    with pytest.raises(SpecError, match=r"suite\.json was not read") as caught:
        plan(spec)
    assert caught.value.location == ("expectations",)


def test_partitions_of_a_spec_have_its_expectations(tmp_path: Path) -> None:
    file = few_loans(tmp_path, [between(10)], "suite.json", rows=400)
    file.write_text(file.read_text() + "by: {column: purpose, minimum: 100}\n")
    spec, lake = read(file), Lake(tmp_path / "lake")
    part = spec_of_part(spec, 2024, listed_value(spec, 2024, lake, "buy"), lake)
    assert part.expectations == spec_to_audit(spec, lake).expectations == spec.expectations
    with pytest.raises(SuiteError, match=r"expectations\.0"):
        ingested(lake, part)


def test_a_partition_without_a_value_of_a_column_says_what_was_not_judged(tmp_path: Path) -> None:
    rules = [mean("warning", least=1), {"type": NOT_NULL, "kwargs": {"column": "note"}}, query(NO_NOTE)]
    file = few_loans(tmp_path, rules, rows=400)
    file.write_text(file.read_text() + "by: {column: purpose, minimum: 100}\n")
    rows = pd.read_csv(tmp_path / "loans.csv")
    rows.assign(note=rows["note"].where(rows["purpose"] != "buy")).to_csv(tmp_path / "loans.csv", index=False)
    spec, lake = read(file), Lake(tmp_path / "lake")
    part = spec_of_part(spec, 2024, listed_value(spec, 2024, lake, "buy"), lake)
    assert part.expectations == spec.expectations[:1]
    assert list(not_judged(spec, part)) == [
        f"expectations (critical): {NOT_NULL} of note was not judged: no row has a value of note",
        "expectations (critical): unexpected_rows_expectation was not judged: no row has a value of note",
    ]
    results = lake.read(ingested(lake, part).table(VALIDATIONS.name)).to_pylist()
    assert results[-1]["expectation"] == "expect_column_mean_to_be_between"


def test_a_fault_in_a_suite_names_its_file_and_one_in_the_spec_the_line(tmp_path: Path) -> None:
    for suite, place in (("suite.json", "suite.json, expectation 1: "), ("", "few.yaml, line 16: expectations.1: ")):
        file = few_loans(tmp_path, [mean(), {"type": "expect_colum_mean_to_be_between", "kwargs": {}}], suite)
        spec_file = load_spec(file, {})
        with pytest.raises(SpecError) as caught:
            plan(spec_file.spec)
        words = spec_file.describe(caught.value)
        assert words.startswith(f"{tmp_path / place}'expect_colum_mean_to_be_between' is no expectation; "), words


def test_the_key_of_ingest_has_the_expectations(tmp_path: Path) -> None:
    specs = [None, [mean()], [mean("warning")], [mean(least=51)], [mean(), between(10)]]
    assert len({key(read(few_loans(tmp_path, listed))) for listed in specs}) == len(specs)


def test_a_critical_one_names_counts_and_first_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    spec = read(few_loans(tmp_path, [between(70), between(50), mean()]))
    with pytest.raises(SuiteError) as caught:
        ingested(lake, spec)
    words = str(caught.value).splitlines()
    assert caught.value.exit_code == 4
    assert words[1].endswith('of income {"max_value": 50}: 10 of 60 values; rows L0050, L0051, L0052')
    assert words[2].endswith('of income {"min_value": 50}: 1 of 1 values; no rows are named')
    assert ["expectations.1:" in words[1], "expectations.2:" in words[2]] == [True, True]
    assert lake.find("ingest", key(spec)) is None


@pytest.mark.parametrize(
    ("kind", "kwargs", "ids"),
    [
        ("expect_column_values_to_be_in_set", {"column": "income", "value_set": list(range(1, 60))}, "rows L0059"),
        ("expect_column_values_to_be_unique", {"column": "purpose"}, "rows L0000, L0001, L0002"),
        ("expect_compound_columns_to_be_unique", {"column_list": ["purpose", "favourable"]}, "rows L0000, L0001"),
        ("expect_column_values_to_not_be_null", {"column": "note"}, "2 of 60 values; rows L0000, L0001$"),
        ("expect_column_values_to_be_between", {"column": "income", "max_value": 9, "strict_max": True}, "no rows are"),
        ("expect_column_values_to_match_regex", {"column": "purpose", "regex": "^b"}, "no rows are named"),
        ("expect_table_row_count_to_equal", {"value": 3}, "no rows are named"),
    ],
)
def test_rows_are_named_where_sql_states_the_rule(kind: str, kwargs: Any, ids: str, tmp_path: Path) -> None:
    spec = read(few_loans(tmp_path, [{"type": kind, "kwargs": kwargs}]))
    with pytest.raises(SuiteError, match=re.compile(ids, re.MULTILINE)):
        ingested(Lake(tmp_path / "lake"), spec)


def test_a_warning_is_in_validations_and_in_the_results(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    partition = ingested(lake, read(few_loans(tmp_path, [mean("warning"), between(50, "info"), mean(least=1)])))
    rows = lake.read(partition.table(VALIDATIONS.name)).to_pylist()[-3:]
    assert [(row["severity"], row["success"], row["unexpected"], row["elements"]) for row in rows] == [
        ("warning", False, 1, 1),
        ("info", False, 10, 60),
        ("critical", True, 0, 1),
    ]
    [path] = [path for path in partition.files if path.endswith(EXPECTATIONS)]
    kept = json.loads(lake.check(path, partition.files[path]).read_bytes())
    results = kept["tables"]["applications, own expectations"]["result"]["results"]
    assert [result["success"] for result in results] == [False, False, True]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM read_text('/etc/passwd'), {batch}",
        "COPY (SELECT 1 FROM {batch}) TO 'stolen.csv'",
        "ATTACH 'stolen.duckdb'; SELECT * FROM {batch}",
        "SET enable_external_access = true; SELECT * FROM {batch}",
        "SELECT nothing FROM {batch}",
    ],
)
def test_sql_that_reads_elsewhere_or_fails_names_its_place(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = read(few_loans(tmp_path, [between(70), query(sql)]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="unexpected_rows_expectation could not be evaluated") as caught:
        ingested(Lake(tmp_path / "lake"), spec)
    assert (caught.value.exit_code, caught.value.location) == (2, ("expectations", 1))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("stolen*"))


def test_the_spec_of_all_other_tests_has_no_expectations(tmp_path: Path) -> None:
    assert read_spec(SPEC, "loans.yaml").spec.expectations is None
