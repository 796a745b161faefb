"""The bench of one lender: whom it draws, and what its rows are."""

import json
from pathlib import Path

import pytest
import yaml
from conftest import evenhand

from research.bench import lender
from research.figures import shipped


def test_a_drawn_lender_has_all_groups_of_the_spec_but_those_without_rows(tmp_path: Path) -> None:
    groups = lender.draw(tmp_path / "lender.txt", 1_790)
    header, *rows = (tmp_path / "lender.txt").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1_790
    place = header.split("|").index("lei")
    assert len({row.split("|")[place] for row in rows}) == 1
    spec = yaml.safe_load(shipped("audits/hmda.yaml").read_text(encoding="utf-8"))
    missing = {
        name
        for attribute in spec["protected"]
        for name, codes in attribute["groups"].items()
        if not groups[attribute["columns"][0]] & set(codes)
    }
    assert missing == set()
    assert lender.draw(tmp_path / "again.txt", 1_790) == groups
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "lender.txt").read_bytes()


def test_a_drawn_year_is_screened_lender_by_lender(tmp_path: Path) -> None:
    lender.draw_nation(tmp_path / "year.parquet", 60_000)
    screening = lender.screen(str(tmp_path / "year.parquet"))
    assert screening["rows"] == 60_000
    assert 5 < screening["lenders"] < 60
    assert 0 < screening["priced"] <= screening["lenders"]


@pytest.mark.long
def test_the_bench_names_its_steps_and_leaves_targets_to_the_full_size() -> None:
    done = evenhand("bench", "lender", "--rows", "600", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads(done.stdout)}
    assert {"yardstick", "all stages", "  detect fgce", "  publish", "measure and publish", "measures"} <= set(rows)
    assert rows["all stages"]["cpu_s"] == pytest.approx(
        sum(row["cpu_s"] for what, row in rows.items() if what.startswith("  "))
    )
    short = rows["all stages, short report of a back-fill"]
    assert short["cpu_s"] < rows["all stages"]["cpu_s"]
    assert {row["target"] for row in rows.values()} == {None}
