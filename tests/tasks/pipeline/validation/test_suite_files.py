"""Files of ``evenhand suites``, as Great Expectations reads them without classes of this project."""

import json
import subprocess
import sys
from pathlib import Path

import great_expectations as gx
import pyarrow as pa
import pytest
from conftest import REPOSITORY
from generated_tables import tables
from hypothesis import given, settings

from flows.operations.dictionary import TABLES
from schemas.table import Table
from tasks.pipeline.validation import source, validate
from tasks.pipeline.validation.rows import ORDERED, TYPES, UNIQUE_TOGETHER
from tasks.pipeline.validation.suites import standard

READ = """
import json, pathlib, sys
import great_expectations as gx
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    content = json.loads(file.read_text())
    suite = gx.ExpectationSuite(**content)
    assert len(suite.expectations) == len(content["expectations"]), file.name
    print(file.stem)
assert "tasks" not in sys.modules
"""


def run(*words: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "suites"
    written = run("-m", "flows.cli", "suites", str(folder))
    assert written.returncode == 0, written.stderr
    return folder


@pytest.mark.slow
def test_great_expectations_keeps_all_of_every_file(suites: Path, tmp_path: Path) -> None:
    read = run("-c", READ, str(suites), cwd=tmp_path)
    assert read.returncode == 0, read.stderr
    assert read.stdout.split() == sorted(table.name for table in TABLES)


def test_a_file_has_an_expectation_for_every_rule(suites: Path) -> None:
    for table in TABLES:
        kinds = [
            expectation["type"]
            for expectation in json.loads((suites / f"{table.name}.json").read_text())["expectations"]
        ]
        assert kinds.count("expect_column_values_to_not_be_null") == sum(
            not column.nullable for column in table.columns
        )
        assert kinds.count("expect_column_values_to_be_in_set") == sum(bool(column.codes) for column in table.columns)
        of_key = [kind for kind in kinds if "unique" in kind or kind == "unexpected_rows_expectation"]
        assert len(of_key) == bool(table.key)


def test_a_directory_that_cannot_be_made_is_exit_5(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("-m", "flows.cli", "suites", str(tmp_path / "file")).returncode == 5


def same_counts(content: pa.Table, declared: Table) -> int:
    """Hold the boundary's counts against those of the table's file, which has no class of ours; returns the rules."""
    file = json.loads(json.dumps(standard(declared)))
    suite = gx.ExpectationSuite(**file)
    _, validation = source.run(declared.name, content, suite.expectations)
    counts = {}
    for result in validation.results:
        assert source.raised(result) is None
        arguments = result.expectation_config.kwargs
        names = [arguments["column"]] if "column" in arguments else arguments.get("column_list", declared.key)
        kind = result.expectation_config.type.replace("unexpected_rows_expectation", UNIQUE_TOGETHER)
        unexpected = result.result.get("unexpected_count", result.result.get("observed_value"))
        counts[kind, ", ".join(names)] = (result.success, unexpected or 0)
    outcomes = [o for o in validate(content, declared) if o.expectation not in (TYPES, ORDERED)]
    for outcome in outcomes:
        success, unexpected = counts[outcome.expectation, outcome.column]
        assert success == outcome.success, outcome
        by_equality = outcome.expectation == UNIQUE_TOGETHER  # of such keys it counts otherwise
        assert by_equality or unexpected == outcome.unexpected, outcome
    assert len(outcomes) == len(file["expectations"]) - 1  # less the one about the order of columns
    return len(outcomes)


def test_the_standard_suite_counts_as_the_boundary_does() -> None:
    rules = []

    @settings(max_examples=10, derandomize=True, database=None)
    @given(tables())
    def hold(made: tuple[pa.Table, Table]) -> None:
        rules.append(same_counts(*made))

    hold()
    assert sum(rules) > 80


@pytest.mark.long
def test_the_standard_suites_of_150_tables_count_as_the_boundary_does() -> None:
    rules = []

    @settings(max_examples=150, database=None)
    @given(tables())
    def hold(made: tuple[pa.Table, Table]) -> None:
        rules.append(same_counts(*made))

    hold()
    assert sum(rules) > 1_500
