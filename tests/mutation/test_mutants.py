"""Mutants: what is changed, that nothing else is, and how many the tests of the numerical code kill."""

import ast
import csv
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment
from mutation.__main__ import EQUAL, table, verdict
from mutation.mutants import AREAS, at_lines, drawn, mutants_of, mutated_tree

SOURCE = '''
"""Not 1 > 2."""
LIMIT = 3

def share(n, of, least=2):
    """0 of 1."""
    if of < least or not n:
        raise ValueError(f"{n + 1} is too few")
    total = min(n, of)
    return -total / of

class Box:
    size: int = 4

    def whole(self):
        return any(x == self.size for x in (True,))
'''


def pairs(source: str) -> dict[tuple[str, str], str]:
    return {(mutant.before, mutant.after): mutant.within for mutant in mutants_of(source, "tasks/file.py")}


def test_comparisons_operators_numbers_and_pairs_are_changed_and_no_message_is() -> None:
    found = pairs(SOURCE)
    assert {("of < least", "of <= least"), ("of < least", "of > least"), ("not n", "n")} <= found.keys()
    assert {("of < least or not n", "of < least and (not n)"), ("min", "max"), ("any", "all")} <= found.keys()
    assert {("-total / of", "-total * of"), ("-total", "total"), ("True", "False"), ("3", "4")} <= found.keys()
    assert not {before for before, _ in found} & {"n + 1", "1", "int"}


def test_a_mutant_knows_the_function_whose_code_it_is() -> None:
    found = pairs(SOURCE)
    assert (found["min", "max"], found["any", "all"]) == ("share", "Box.whole")
    assert {found["3", "4"], found["2", "3"], found["4", "5"]} == {""}, "a module, a default and a class"
    compiled = "@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"
    assert set(pairs(compiled).values()) == {""}


def test_each_mutant_differs_from_the_source_in_one_node() -> None:
    every = list(mutants_of(SOURCE, "tasks/file.py"))
    before = ast.dump(ast.parse(SOURCE))
    trees = [ast.dump(mutated_tree(SOURCE, mutant.number)) for mutant in every]
    assert before not in trees
    assert len(set(trees)) == len(every)
    assert [mutant.number for mutant in every] == list(range(len(every)))
    for mutant in every:
        compile(mutated_tree(SOURCE, mutant.number), "file.py", "exec")


def test_a_sample_has_one_mutant_of_a_line_and_some_of_every_folder() -> None:
    first = drawn(REPOSITORY, 200, 47)
    assert len({(mutant.file, mutant.line) for mutant in first}) == len(first) == 200
    assert {mutant.area for mutant in first} == set(AREAS)
    assert first[0] in at_lines(REPOSITORY, [f"{first[0].file}:{first[0].line}"])


def test_what_is_called_equal_is_still_in_the_code_and_says_why() -> None:
    with EQUAL.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        source = (REPOSITORY / row["file"]).read_text()
        lines = [place for place, line in enumerate(source.splitlines(), 1) if line.strip() == row["code"]]
        made = {(m.before, m.after) for m in at_lines(REPOSITORY, [f"{row['file']}:{line}" for line in lines])}
        assert (row["before"], row["after"]) in made, row
        assert len(row["reason"].split()) > 4


@pytest.mark.parametrize(
    ("code", "word"), [(0, "survived"), (1, "killed"), (2, "killed"), (-9, "killed"), (70, "undecided")]
)
def test_the_exit_of_the_tests_decides(code: int, word: str) -> None:
    assert verdict({"file": "f"}, code, "test_f")["verdict"] == word


def test_a_survivor_that_is_named_with_its_line_is_equal_and_no_other() -> None:
    with EQUAL.open(newline="") as file:
        row = next(csv.DictReader(file))
    source = (REPOSITORY / row["file"]).read_text().splitlines()
    line = next(place for place, text in enumerate(source, 1) if text.strip() == row["code"])
    survivor = {**row, "line": line, "verdict": "survived"}
    counts = table([survivor, {**survivor, "line": 1}, {**survivor, "verdict": "killed"}])
    area = next(area for area in AREAS if row["file"].startswith(area))
    assert counts[area] == {"equal": 1, "survived": 1, "killed": 1}
    assert not any(counts[other] for other in AREAS if other != area)


@pytest.mark.slow
def test_a_mutant_is_killed_by_the_test_that_knows_the_truth(tmp_path: Path) -> None:
    """All changes of one line, with one file of tests: some seconds, most of them to load libraries."""
    result = mutation(
        "--at",
        "tasks/numerics/statistics/sampling.py:47",
        "--tests",
        "tests/tasks/numerics/statistics/test_sampling.py",
        "--work",
        str(tmp_path),
    )
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(lines) == 5
    assert lines[3].split() == [
        "tasks/numerics/statistics",
        "3",
        "killed",
        "0",
        "survived",
        "0",
        "equal",
        "0",
        "undecided",
    ]
    assert all(line.startswith("killed ") and "test_sampling.py" in line for line in lines[:3])
    assert lines[-1].startswith("3 mutants: 3 killed, 0 survived, 0 equal, 0 undecided")


@pytest.mark.long
def test_nine_in_ten_mutants_are_killed(tmp_path: Path) -> None:
    result = mutation("--work", str(tmp_path))
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]


def mutation(*words: str) -> "subprocess.CompletedProcess[str]":
    paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}"
    return subprocess.run(
        [sys.executable, "-m", "mutation", *words],
        env=environment(None) | {"PYTHONPATH": paths},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
