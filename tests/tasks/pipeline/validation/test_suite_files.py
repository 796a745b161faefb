"""Files of ``evenhand suites``, as Great Expectations reads them without classes of this project."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

from flows.operations.dictionary import TABLES

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
