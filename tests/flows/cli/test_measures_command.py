"""``evenhand measures`` and ``findings``: what they choose, sort and leave out, and what they say of the rest."""

import csv
import io
import json
from pathlib import Path

import pytest
from conftest import evenhand
from lake_of_runs import NEW, lake_of_runs

from schemas.tables.verdicts import PUBLISHED_CURVES, PUBLISHED_MEASURES
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lake_of_runs(tmp_path_factory.mktemp("measures") / "lake").location


def rows(lake: str, *words: str) -> tuple[list[dict[str, str]], str]:
    done = evenhand("measures", "--lake", lake, *words, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout))), " ".join(done.stderr.split())


def test_by_default_those_of_the_first_page_are_printed_and_the_others_counted(lake: str) -> None:
    found, others = rows(lake)
    assert {row["measure"] for row in found} == {"approval_rate"}
    assert len(found) == 3
    assert others == f"4 other rows of {NEW} are not shown (fgce 4): --method NAME, or --all"


@pytest.mark.parametrize(
    ("words", "number", "measures"),
    [
        (["--all"], 7, {"approval_rate", "burden"}),
        (["--method", "fgce"], 2, {"burden"}),
        (["--measure", "burden"], 4, {"burden"}),
        (["--state", "information"], 2, {"burden"}),
        (["--state", "no_limit"], 3, {"approval_rate"}),
        (["--group", "Black"], 1, {"approval_rate"}),
        (["--limit", "2"], 2, {"approval_rate"}),
        (["--run", "cards", "--method", "fgce"], 2, {"burden"}),
    ],
)
def test_rows_are_chosen(lake: str, words: list[str], number: int, measures: set[str]) -> None:
    found, others = rows(lake, *words)
    assert (len(found), {row["measure"] for row in found}) == (number, measures)
    assert (f"{7 - number} other rows" in others) is (number < 7)


def test_rows_are_sorted_either_way_and_the_state_is_never_not_run(lake: str) -> None:
    up, down = (rows(lake, "--sort", word)[0] for word in ("n", "-n"))
    assert [row["n"] for row in up] == sorted((row["n"] for row in down), key=int)
    assert [row["n"] for row in down] == [row["n"] for row in reversed(up)]
    assert {row["state"] for row in rows(lake, "--all")[0]} <= {"no_limit", "information"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--measure", "aproval_rate"],
            "--measure aproval_rate: no such row of the run; did you mean 'approval_rate'?",
        ),
        (["--method", "fcge"], "did you mean 'fgce'?"),
        (["--group", "Blak"], "did you mean 'Black'?"),
        (
            ["--method", "fgce", "--state", "outside"],
            "--state outside: no such row of the run; known: 'information', 'no_limit'",
        ),
        (
            ["--method", "outcomes", "--state", "information"],
            "--method outcomes --state information: no row of the run fits",
        ),
    ],
)
def test_a_choice_without_rows_is_answered(lake: str, words: list[str], told: str) -> None:
    done = evenhand("measures", "--lake", lake, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_a_table_leaves_out_columns_that_say_nothing_and_csv_does_not(lake: str) -> None:
    table = evenhand("measures", "--lake", lake).stdout.splitlines()[0].split("\t")
    assert {"value", "low", "high", "n", "events", "state", "reason"} <= set(table)
    assert {"subgroup", "parameters", "p", "q", "note"}.isdisjoint(table)
    assert "parameters" in evenhand("measures", "--lake", lake, "--all").stdout.splitlines()[0].split("\t")
    assert {"subgroup", "parameters", "p", "q", "note"} <= set(rows(lake)[0][0])


def test_points_of_a_curve_are_read_by_their_name(tmp_path: Path) -> None:
    curve = {"method": "fgce", "decision_maker": "lender", "protected_attribute": "race", "group": "Black"}
    curve |= {"subgroup": 0, "curve": "coverage", "denominator": "all"}
    numbers = {"value": [0.25, None], "n": [8, 8], "drawn": [0.5, None], "draws": [10, None]}
    texts = {"parameters": ['{"k": 1}', '{"k": 2}'], "note": ["", "withheld: few"], "drawn_note": ["", ""]}
    [declared, _] = PUBLISHED_CURVES
    row = {column.name: [None, None] for column in declared.columns} | curve | numbers | texts
    table = declared.build(**{name: [value] for name, value in row.items()})
    lake = Lake(tmp_path / "lake")
    tables = {PUBLISHED_MEASURES.name: PUBLISHED_MEASURES.empty(), declared.name: table}
    partition = lake.publish("publish", "0" * 32, tables, {}, {})
    manifest = {"partitions": [partition.model_dump(mode="json")]}
    lake.write_file("runs/first/manifest.json", json.dumps(manifest).encode())
    points, _ = rows(lake.location, "--measure", "coverage")
    assert [(point["parameters"], point["value"], point["n"]) for point in points] == [
        ('{"k": 1}', "0.25", "8"),
        ('{"k": 2}', "", "8"),
    ]
    [drawn], _ = rows(lake.location, "--measure", "coverage_size_matched")
    assert (drawn["value"], drawn["n"]) == ("0.5", "10")
