"""`evenhand plan` of a spec with `by`: what a back-fill of its partitions would run."""

import json

import pytest
from conftest import SPEC, evenhand
from loans_of_lenders import BY, NOBODY, ROWS, lenders_spec

from flows.partitions import year_plan
from flows.partitions.part_spec import spec_to_audit
from flows.partitions.year_plan import year_plans
from flows.runs.index import Run
from schemas.audit.partition import ALL
from tasks.lake.store import Lake
from tasks.plan import plan

YEAR = 2024


@pytest.fixture
def written(tmp_path):
    lenders_spec(tmp_path)
    place = tmp_path / "loans.yaml"
    place.write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}") + BY)
    return place


def test_the_partitions_of_a_year_are_listed_with_rows_and_cost(written, tmp_path):
    ended = evenhand("plan", str(written), "--years", "2024", "--lake", str(tmp_path / "lake"), "--json")
    assert ended.returncode == 0, ended.stderr
    [year] = json.loads(ended.stdout)
    states = {part["value"]: part["state"] for part in year["parts"]}
    assert (year["to_audit"], year["held"], year["too_few"]) == (3, 0, 4)
    assert states["Bank A"] == states[ALL] == "to audit"
    assert states["Small"] == "too few"
    assert (
        sum(part["rows"] for part in year["parts"] if part["value"] != ALL) + year["without_value"]
        == sum(ROWS.values()) + NOBODY
    )
    assert year["cpu_seconds"] == pytest.approx(sum(p["cost"]["cpu_seconds"] for p in year["parts"] if p["cost"]))
    assert year["peak_mb"] > 400
    assert not list((tmp_path / "lake" / "stages").glob("*/*"))


def test_the_table_names_the_largest_and_says_that_times_are_of_a_table(written, tmp_path):
    ended = evenhand("plan", str(written), "--lake", str(tmp_path / "lake"))  # one file: the spec's own year
    assert ended.stdout.index("Bank A") < ended.stdout.index("Bank-A") < ended.stdout.index("Small")
    assert "60 usable rows, fewer than by.minimum (100)" in ended.stdout
    assert "times are those of a table, measured on another machine" in " ".join(ended.stdout.split())


def test_a_year_that_cannot_be_read_says_why(written, tmp_path):
    ended = evenhand("plan", str(written), "--years", "2023", "--lake", str(tmp_path / "lake"))
    assert ended.returncode == 2
    assert "source.path has no {year} in it" in " ".join(ended.stdout.split())


def test_a_partition_whose_run_is_there_is_held(tmp_path, monkeypatch):
    lake, spec = Lake(tmp_path / "lake"), lenders_spec(tmp_path)
    planned = plan(spec_to_audit(spec, lake, "Bank A"))
    words = ("", {}, {"source": {}}, (), (), False, {"column": "lender", "value": "Bank A"})
    run = Run(planned.run, "loans", YEAR, "within", "2026-01-01", planned.source_sha256, *words)
    monkeypatch.setattr(year_plan, "runs_of", lambda *_: [run])
    monkeypatch.setattr(year_plan, "past_runs", lambda *_: [])
    [year] = year_plans(spec, [YEAR], lake)
    assert {part.value: part.run for part in year.parts if part.state == "held"} == {"Bank A": planned.run}
    assert next(part for part in year.parts if part.value == "Bank A").cost is None
