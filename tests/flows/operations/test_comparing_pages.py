"""League, trend and restatement: made of published tables alone, and never released by themselves."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import evenhand
from lake_of_lenders import lake_of_lenders
from lake_of_runs import lake_of_runs

from flows.operations.league import make_league, write_league
from flows.partitions.trends import make_trend
from schemas.artifact import Artifact
from tasks.lake.store import Lake
from tasks.metrics.league.rows import Asked


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the tables that were read of any lake."""
    names, read = set[str](), Lake.read

    def noted(self: Lake, artifact: Artifact, *rest: Any, **more: Any) -> pa.Table:
        names.add(artifact.table)
        return read(self, artifact, *rest, **more)

    monkeypatch.setattr(Lake, "read", noted)
    return names


def test_league_and_trend_are_made_of_published_tables_alone(tmp_path: Path, tables: set[str]) -> None:
    """So that they tell nothing that released runs do not."""
    lake, spec = lake_of_lenders(tmp_path)
    write_league(make_league(spec, 2024, lake, Asked(None, None)), lake)
    make_trend("loans", [2024], lake, "LEI1")
    assert {"publication", "published_measures", "published_verdicts"} <= tables
    assert {name for name in tables if not name.startswith("published_")} == {"publication"}


@pytest.mark.parametrize("kind", ["league", "trend", "restatement"])
def test_a_page_that_compares_runs_is_refused_with_what_to_release(tmp_path: Path, kind: str) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    lake.write_file(f"reports/{kind}-loans-2023/{kind}.json", b"{}")
    for name in (f"{kind}-loans-2023", f"{lake.location}/reports/{kind}-loans-2023/{kind}.html"):
        done = evenhand("release", name, "--to", str(tmp_path / "out"), "--lake", lake.location)
        told = " ".join(done.stderr.split())
        assert (done.returncode, f"is a {kind}, and no run: only runs are released" in told) == (2, True), told
    assert not (tmp_path / "out").exists()
