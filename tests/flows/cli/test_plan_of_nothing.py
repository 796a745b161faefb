"""What `evenhand plan` prints where no year can run: why, and no table of stages."""

from pathlib import Path

from conftest import REPOSITORY, evenhand


def test_without_a_year_that_can_run_there_is_no_table_of_stages(tmp_path: Path) -> None:
    spec = str(REPOSITORY / "data" / "audits" / "hmda.yaml")
    done = evenhand("plan", spec, "--years", "2021-2022", "--lake", str(tmp_path / "lake"))
    title, names, *rows = done.stdout.splitlines()
    assert (done.returncode, title, names.split("\t")[0]) == (5, "what a back-fill would run", "year")
    assert [row.split("\t")[:2] for row in rows] == [["2021", "cannot run"], ["2022", "cannot run"]]
    assert all("the lake holds no vintage of" in row for row in rows)
