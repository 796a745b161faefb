"""Rows of stages from manifests: of today, and of a version that kept less."""

from pathlib import Path

from lake_of_runs import NEW, lake_of_runs

from tasks.lake.store import as_table, stage_runs
from tasks.lake.views import open_views

COST = {"seconds": 2.5, "cpu_seconds": 2.25, "peak_memory_mb": 300.0, "threads": 2}
MANIFEST = {
    "partitions": [{"stage": "ingest", "key": "a1"}, {"stage": "detect", "key": "b2"}],
    "lineage": [{"rows": {"in": 10, "out": 8, "refused": 2}, **COST}, {"rows": {"in": 8, "out": 3, "refused": 0}}],
    "steps": [{"name": "ingest", "reused": True}, {"name": "detect cst", "reused": False}],
}


def test_a_row_names_the_step_and_tells_what_it_cost_and_whether_it_was_computed() -> None:
    first, second = stage_runs(MANIFEST)
    rows = {"stage": "ingest", "partition": "a1", "rows_in": 10, "rows_out": 8, "refused": 2}
    assert first == {**rows, **COST, "source": "lake", "partition_column": None, "partition_value": None}
    assert (second["stage"], second["cpu_seconds"], second["source"]) == ("detect cst", None, "computed")


def test_a_row_names_the_partition_that_the_run_is_about() -> None:
    told = next(stage_runs({**MANIFEST, "partition": {"column": "lender_id", "value": "7H6G"}}))
    assert (told["partition"], told["partition_column"], told["partition_value"]) == ("a1", "lender_id", "7H6G")


def test_an_earlier_version_kept_neither_steps_nor_cpu_time() -> None:
    rows = list(stage_runs({name: told for name, told in MANIFEST.items() if name != "steps"}))
    assert [(row["stage"], row["source"]) for row in rows] == [("ingest", None), ("detect", None)]


def test_a_table_of_several_runs_has_the_run_in_each_row() -> None:
    table = as_table({"one": MANIFEST, "two": MANIFEST})
    assert table.column("run").to_pylist() == ["one", "one", "two", "two"]
    assert as_table({}).column_names == table.column_names


def test_the_view_has_the_columns_of_the_command(tmp_path: Path) -> None:
    with open_views(lake_of_runs(tmp_path), run=NEW) as views:
        [row] = views.sql("SELECT * FROM stage_runs").to_arrow_table().to_pylist()
    assert list(row) == ["run", *next(stage_runs(MANIFEST))]
    assert (row["run"], row["stage"], row["rows_in"], row["seconds"]) == (NEW, "publish", 500, 1.0)
