"""Real data lie outside the project: tests of them are slow, marked, and skipped where the files are missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DATA_VARIABLE, REPOSITORY

TESTS = REPOSITORY / "tests"
SUITE = """\
import pytest
from conftest import SHARED

@pytest.fixture
def content():
    return (SHARED / "rows.csv").read_text()

@pytest.mark.data("rows.csv")
def test_marked(content):
    assert content == "1"

def test_without_its_mark(content):
    assert content == "1"
"""


def outcomes(place: Path, marks: str, data: Path | None) -> set[str]:
    """Counts that pytest prints for the small suite above, such as ``1 passed``."""
    (place / "test_small.py").write_text(SUITE)
    environment = {name: value for name, value in os.environ.items() if name != DATA_VARIABLE}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (REPOSITORY, TESTS, TESTS / "material")))
    if data:
        environment[DATA_VARIABLE] = str(data)
    words = (
        "--rootdir",
        str(place),
        "-c",
        str(REPOSITORY / "pyproject.toml"),
        "-n",
        "0",
        "-p",
        "conftest",
        "-m",
        marks,
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_small.py"],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(re.findall(r"\d+ (?:passed|failed|skipped|errors?|deselected)", ended.stdout))


@pytest.mark.parametrize(
    ("marks", "has_data", "expected"),
    [
        ("not slow and not long", False, {"1 error", "1 deselected"}),
        pytest.param("slow and not long", False, {"1 skipped", "1 deselected"}, marks=pytest.mark.slow),
        pytest.param("slow and not long", True, {"1 passed", "1 deselected"}, marks=pytest.mark.slow),
    ],
)
def test_a_fixture_that_reads_the_folder_needs_the_mark(
    marks: str, has_data: bool, expected: set[str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "rows.csv").write_text("1")
    assert outcomes(tmp_path, marks, data if has_data else None) == expected


def test_no_test_looks_for_the_folder_by_itself() -> None:
    """Else a test passes on the machine that has the folder, and fails on every other."""
    files = [file for file in TESTS.rglob("*.py") if file != Path(__file__)]
    by_itself = re.compile(r"""\.\./shared|/ ["']shared["']""")
    assert [file.name for file in files if by_itself.search(file.read_text())] == []


@pytest.mark.long
def test_the_suite_is_collected_without_the_folder() -> None:
    environment = {name: value for name, value in os.environ.items() if name != DATA_VARIABLE}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", "tests"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-2000:]
