"""Own expectations of a spec on the command line: exit codes, and messages that name the place."""

from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand
from few_loans import between, few_loans, mean, query

NO_VERDICT = 3


def audit(place: Path, server: str | None = None, lake: str = "lake") -> Any:
    return evenhand("audit", str(place / "few.yaml"), "--lake", str(place / lake), "--jobs", "1", server=server)


def typed(**changes: Any) -> list[Any]:
    return [between(70), {**mean(), **changes}]


FAULTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "unknown type": (typed(type="expect_column_mean_to_be_betwee"), ("expectations.1", "'expect_column_mean_to_be_b")),
    "unknown argument": (typed(kwargs={"column": "income", "least": 1}), ("expectations.1", "least")),
    "wrong severity": (typed(severity="fatal"), ("expectations.1.severity", "'warning'")),
    "unknown column": (typed(kwargs={"column": "incom", "min_value": 1}), ("expectations.1", "'incom'", "income")),
    "empty list": ([], ("expectations: no expectation is in it",)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("suite", ["", "suite.json"], ids=["list", "file"])
def test_a_fault_is_exit_2_with_its_place(fault: str, suite: str, tmp_path: Path) -> None:
    expectations, words = FAULTS[fault]
    few_loans(tmp_path, expectations, suite)
    done = audit(tmp_path)
    assert done.returncode == 2, done.stderr
    of_an_entry = suite and fault != "empty list" and fault != "wrong severity"
    assert ("suite.json, expectation 1: " if of_an_entry else "few.yaml, line 16: expectations") in done.stderr
    if not suite:
        assert all(word in done.stderr for word in words), done.stderr
    assert "begins" not in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no JSON"),
        ("[]", "has no `expectations`"),
        ('{"expectations": []}', "has an empty list"),
        ('{"expectations": [{"type": "a", "severity": "fatal"}]}', "expectation 0: severity"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "plan", "backfill"])
def test_a_faulty_file_is_exit_2_for_every_command(
    command: str, content: str | None, words: str, tmp_path: Path
) -> None:
    few_loans(tmp_path, [mean()], "suite.json")
    (tmp_path / "suite.json").unlink()
    if content is not None:
        (tmp_path / "suite.json").write_text(content)
    years = ("--years", "2024") if command == "backfill" else ()
    done = evenhand(command, str(tmp_path / "few.yaml"), *years, "--lake", str(tmp_path / "lake"))
    assert done.returncode == 2, done.stderr
    assert "few.yaml, line 16: expectations: " in done.stderr
    assert words in done.stderr
    assert "suite.json" in done.stderr


def test_severities_decide_the_exit_code(tmp_path: Path, server: str) -> None:
    few_loans(tmp_path, [mean("warning"), between(50, "info")], "suite.json")
    for _ in range(2):  # the second one from the lake
        done = audit(tmp_path, server)
        assert done.returncode == NO_VERDICT, done.stderr
        lines = [line for line in done.stderr.splitlines() if "expectations (" in line]
        assert len(lines) == 2
        assert 'expectations (warning): expect_column_mean_to_be_between of income {"min_value": 50}' in lines[0]
        assert "expectations (info): expect_column_values_to_be_between of income" in lines[1]
    few_loans(tmp_path, [between(50)], "suite.json")
    done = audit(tmp_path, server)
    assert done.returncode == 4, done.stderr
    assert "10 of 60 values; rows L0050, L0051, L0052" in done.stderr
    few_loans(tmp_path, [query("SELECT nothing FROM {batch}")])
    done = audit(tmp_path, server)
    assert done.returncode == 2, done.stderr
    assert "line 16: expectations.0: unexpected_rows_expectation could not be evaluated" in done.stderr
    assert len(list((tmp_path / "lake" / "runs").glob("few-*/manifest.json"))) == 1
