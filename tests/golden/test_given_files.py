"""``evenhand reproduce fgce``: Student and HELOC run from files that the user gives, and are not judged without."""

import csv
from collections import Counter

import numpy as np
import pytest
from conftest import SHARED, evenhand

from research import figures, reproduction
from research.fgce import cells
from research.fgce.experiments import EXPERIMENTS, GIVEN, Experiments
from research.figures import Cell, Status, Verdict, entries, ledger
from schemas.errors import InfrastructureError
from tasks.in_memory import tables_through

WORDS = {
    "school": "GP MS", "address": "R U", "famsize": "GT3 LE3", "Pstatus": "A T", "Mjob": "teacher other health",
    "Fjob": "teacher other health", "reason": "course home other", "guardian": "mother father other",
}  # fmt: skip


def written(dataset, folder, rows=160, seed=1):
    """A file with the columns of the data set, drawn; the label follows one column."""
    rng = np.random.default_rng(seed)
    spec = EXPERIMENTS[dataset].read(folder)
    drawn = {}
    for name, column in spec.columns.items():
        words = WORDS.get(name, "").split() or ([*column.order] if column.order else [])
        drawn[name] = rng.choice(words, rows) if words else rng.integers(1, 9, rows)
    if dataset == "student":
        drawn["target"] = (drawn["health"] + 4 * rng.normal(size=rows) > 4).astype(int)
    else:
        drawn["RiskPerformance"] = np.where(drawn["NumInqLast6M"] + 4 * rng.normal(size=rows) > 4, "Bad", "Good")
        drawn["NumTotalTrades"][:7] = [-9, -8, -7, -9, -8, -7, -9]
    path = folder / f"{dataset}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(drawn)
        writer.writerows(zip(*drawn.values(), strict=True))
    return path


@pytest.mark.parametrize("dataset", GIVEN)
def test_without_a_file_nothing_is_judged_and_no_row_is_missing(dataset, tmp_path):
    result = Experiments().run(dataset, tmp_path)
    assert {(line.verdict, line.obtained) for line in result.lines} == {(Verdict.INFORMATION, None)}
    assert {f"--{dataset}" in line.why for line in result.lines} == {True}
    rows = ledger(entries(figures.read("fgce")), result.lines, [])
    of_dataset = [row for row in rows if row.entry.datasets == (dataset,)]
    assert len(of_dataset) == 11 if dataset == "student" else 10
    assert {row.status for row in of_dataset} == {(Status.NOT_RUN,)}
    assert [*EXPERIMENTS[dataset].files(tmp_path)] == []


def test_no_table_of_the_paper_is_without_its_data_any_more():
    declared = Counter(status for entry in entries(figures.read("fgce")) for status in entry.declared)
    assert declared[Status.CANNOT] == 0


@pytest.mark.parametrize(("dataset", "kept"), [("student", 160), ("heloc", 153)])
def test_a_file_of_the_same_columns_runs_through_the_stages(dataset, kept, tmp_path):
    """Of HELOC rows with a negative cell go; groups are those of the paper, in its order."""
    path = written(dataset, tmp_path)
    spec = EXPERIMENTS[dataset].read(tmp_path, source__path=str(path))
    tables = tables_through(spec, "connect")
    group, names = cells.groups_of(tables)
    assert tuple(names) == EXPERIMENTS[dataset].groups
    found = cells.cells(tables["feasibility_nodes"], tables["feasibility_edges"], group, names)
    assert found[Cell("nodes", "all")] == kept
    assert sum(found[Cell("nodes", name)] for name in names) == kept
    assert found[Cell("edges", "all")] == sum(found[Cell("edges", name)] for name in names)
    rules = dict(cells.constraints(tables["encodings"]))
    printed = [f for f in cells.of_systems(figures.read("fgce"), dataset) if f.cell.quantity == "constraint"]
    assert [f.cell.group for f in printed if rules[f.cell] != f.value] == []
    assert len(printed) == len(spec.columns)


def test_an_option_finds_its_file_before_the_data_directory_does(tmp_path):
    (tmp_path / "data" / "student").mkdir(parents=True)
    in_place, named = tmp_path / "data" / "student" / "student.csv", tmp_path / "mine.csv"
    for path in (in_place, named):
        path.write_text("age\n")
    assert Experiments().given("student", tmp_path) == in_place
    assert Experiments(student=named).given("student", tmp_path) == named
    assert Experiments().given("heloc", tmp_path) is None
    with pytest.raises(InfrastructureError, match="--heloc takes the file"):
        Experiments(heloc=tmp_path / "none.csv").given("heloc", tmp_path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("fgce",), "needs --data DIR"),
        (("all", "--student", "student.csv"), "takes no --student"),
        (("raguel", "--student", "student.csv"), "takes no --student"),
        (("fgce", "--student", "student.csv", "--only", "german"), "needs --data DIR"),
        (("fgce", "--student", "nowhere.csv"), "'nowhere.csv' is not there"),
    ],
)
def test_what_the_command_refuses(words, reason):
    result = evenhand("reproduce", *words)
    assert result.returncode not in (0, 1)
    assert reason in result.stderr


@pytest.mark.parametrize(
    "dataset",
    [pytest.param(name, marks=[pytest.mark.data(*EXPERIMENTS[name].sources)]) for name in GIVEN],
)
def test_every_judged_figure_of_the_paper_agrees(dataset):
    asked = reproduction.Asked("fgce", (dataset,), size={"baseline": ("face",)})
    lines = reproduction.reproduce(asked, SHARED)[dataset].lines
    assert [line for line in lines if line.verdict is Verdict.DIFFERS] == []
    agree = Counter(
        line.figure.reference or line.figure.source == "reproduced" for line in lines if line.verdict is Verdict.AGREES
    )
    assert agree[True] >= 16
    assert agree[False] >= 171
