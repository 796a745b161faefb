"""The views of a lake: what they hold, and what opening them leaves behind."""

import json
import os
import stat
import tempfile
from pathlib import Path

import duckdb
import pytest
from small_lake import small_lake

from schemas.errors import IntegrityError
from tasks.lake.store import Lake
from tasks.lake.views import latest_run, open_views


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return small_lake(tmp_path_factory.mktemp("views") / "lake, with 'odd' name=1")


def test_each_row_has_its_run_where_runs_share_a_file(lake: Lake) -> None:
    with open_views(lake) as views:
        assert views.sql("SELECT run, measure FROM measures ORDER BY ALL").fetchall() == [
            (run, measure) for run in ("first", "second") for measure in ("approval_rate", "k0")
        ]
        assert views.execute("SELECT count(*) FROM measures WHERE run = 'second'").fetchone() == (2,)
        assert views.execute("SELECT count(*) FROM measures WHERE value > 1 AND run != 'first'").fetchone() == (
            1,
        )  # NaN


def test_a_condition_and_a_choice_of_columns_reach_the_files(lake: Lake) -> None:
    with open_views(lake) as views:
        plan = views.execute("EXPLAIN SELECT value FROM measures WHERE run = 'first' AND measure = 'k0'").fetchall()[0][
            1
        ]
    assert "\"run\" = 'first'" in plan
    assert "\"measure\" = 'k0'" in plan
    assert "Projections: value" in plan


def test_runs_with_other_columns_and_types_are_one_view(lake: Lake) -> None:
    with open_views(lake) as views:
        table = views.sql("SELECT * FROM applicants ORDER BY row_id").to_arrow_table()
    assert table.column_names == ["run", "row_id", "debt.to.income", "run_1", "größe"]
    assert table["run"].to_pylist() == ["first", "first", "second"]
    assert table["debt.to.income"].to_pylist() == ["1", "2", "high"]
    assert table["run_1"].to_pylist() == ["fast", "slow", None]  # the data's own
    assert table["größe"].to_pylist() == [None, None, 1.5]


def test_one_run_has_its_own_columns_only(lake: Lake) -> None:
    with open_views(lake, "second") as views:
        assert views.table("applicants").columns == ["run", "row_id", "debt.to.income", "größe"]


def test_rows_of_measures_name_the_partition_of_their_run(lake: Lake) -> None:
    path = "runs/first/manifest.json"
    manifest = json.loads(lake.storage.read(path) or b"")
    lake.write_file(path, json.dumps({**manifest, "partition": {"column": "lender_id", "value": "7H6G"}}).encode())
    with open_views(lake) as views:
        assert views.table("measures").columns[-2:] == ["partition_column", "partition_value"]
        rows = views.sql(
            "SELECT run, partition_column, partition_value FROM measures WHERE measure = 'k0' ORDER BY run"
        )
        assert rows.fetchall() == [("first", "lender_id", "7H6G"), ("second", None, None)]
        of_lender = views.sql("SELECT DISTINCT run FROM measures WHERE partition_value = '7H6G'")
        assert of_lender.fetchall() == [("first",)]
        assert "partition_column" not in views.table("applicants").columns
    with open_views(lake, "second") as views:
        assert views.sql("SELECT partition_value FROM measures").fetchall() == [(None,), (None,)]


def test_only_tables_are_listed(lake: Lake) -> None:
    with open_views(lake) as views:
        assert views.sql("SHOW TABLES").fetchall() == [("applicants",), ("measures",), ("stage_runs",)]


def test_what_does_not_fit_is_spilled_to_a_private_directory_that_goes(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_views(lake, memory=60_000_000) as views:
        (scratch,) = tmp_path.iterdir()
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
        views.execute("CREATE TEMP TABLE big AS SELECT range, hash(range)::VARCHAR AS text FROM range(5000000)")
        assert views.execute("SELECT count(*) > 0 FROM duckdb_temporary_files()").fetchone() == (True,)
        assert list(scratch.glob("duckdb_temp*"))
        assert views.execute("SELECT count(*) FROM (FROM big ORDER BY text LIMIT 3)").fetchone() == (3,)
    assert not list(tmp_path.iterdir())


def test_the_connection_cannot_be_opened_up_again(lake: Lake) -> None:
    with open_views(lake) as views:
        for setting in ("enable_external_access = true", "temp_directory = '.'", "autoload_known_extensions = true"):
            with pytest.raises(duckdb.InvalidInputException, match="locked"):
                views.execute(f"SET {setting}")


def test_an_altered_file_is_not_opened(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    file = next(lake.root.glob("stages/measure/*/measures.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(IntegrityError, match=r"measures\.parquet"), open_views(Lake(lake.root)):
        pass


def test_the_latest_run_is_the_one_that_was_finished_last(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")

    def write(run: str, content: str, modified: int) -> None:
        lake.write_file(f"runs/{run}/manifest.json", content.encode())
        os.utime(lake.root / f"runs/{run}/manifest.json", (modified, modified))

    write("first", '{"finished": "2026-02-01T00:00:00Z"}', 1)
    write("second", '{"finished": "2026-01-01T00:00:00Z"}', 2)  # as a plain copy of a lake may leave the times
    assert latest_run(lake) == "first"
    write("second", '{"finished": "2026-02-01T00:00:00Z"}', 2)
    assert latest_run(lake) == "second"
    for unsaid in ("", "{}", "[]", '{"finished": null}', "\N{LATIN SMALL LETTER E WITH ACUTE}{"):
        write("second", unsaid, 1_769_904_001)  # one second after the first
        assert latest_run(lake) == "second"
        write("second", unsaid, 1_769_903_999)
        assert latest_run(lake) == "first"
