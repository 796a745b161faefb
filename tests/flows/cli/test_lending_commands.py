"""``evenhand pricing``, ``flow``, ``peers``, ``places`` and ``data add --panel`` as a user runs them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pytest
from click.testing import Result
from conftest import REPOSITORY
from published_rows import Told
from typer.testing import CliRunner

from flows.cli.main import app
from schemas.audit.source import Source
from schemas.errors import EvenhandError
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.peers import beside_peers
from tasks.lake.store import Lake
from tasks.methods.adjusted.tables import FLOW
from tasks.metrics.publish import facts
from tasks.metrics.publish.algorithm.profiles import POLICIES


def ran(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def answered(*words: object) -> Any:
    result = ran(*words, "--json")
    assert result.exit_code == 0, result.output or result.exception
    return json.loads(result.stdout)


def refused(*words: object) -> str:
    result = ran(*words)
    assert isinstance(result.exception, EvenhandError), result.output
    return str(result.exception)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vintage of 6,000 drawn applications of 25 lenders."""
    place = tmp_path_factory.mktemp("market")
    written = write(place, TwinSettings(rows=6000, year=2024), 1)
    answered("data", "add", written.rows, "--kind", "twin", "--frozen", "2025-05-01", "--lake", place / "lake")
    return place / "lake"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A lake of a run with a published flow of one group, and without prices."""
    opened = Lake(tmp_path / "lake")
    row = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "outcome": "denied", "n": 200}
    row |= {"events": 60, "value": 0.3, "low": 0.24, "high": 0.37, "difference": 0.1}
    row |= {"difference_low": 0.03, "difference_high": 0.17}
    rows = FLOW.build(**{c.name: [row[c.name]] for c in FLOW.columns})
    partition = opened.publish("publish", "0" * 32, facts.tables([(FLOW, rows)], Told(POLICIES["public"])), {}, {})
    content = {"partitions": [partition.model_dump(mode="json")], "spec": {"disclosure": {"profile": "public"}}}
    content |= {"run": "first"}
    sealed = content | {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    opened.write_file("runs/first/manifest.json", json.dumps(sealed).encode())
    return tmp_path / "lake"


def test_flow_prints_the_published_rows_and_names_what_a_run_does_not_have(run: Path) -> None:
    [row] = answered("flow", "first", "--lake", run)
    assert (row["outcome"], row["n"], row["events"], row["share"]) == ("denied", 200, 60, 0.3)
    assert "no such group; of 'Blak'" in refused("flow", "first", "--lake", run, "--group", "Blak")
    assert "followed no application beyond the decision" in refused("pricing", "first", "--lake", run)


def test_peers_have_names_once_a_panel_of_the_year_is_there(lake: Path, tmp_path: Path) -> None:
    lender = answered("peers", "TWIN0000000000000001", "--lake", lake)
    assert lender["rows"]
    assert lender["notes"] == ["no names: the lake has no panel, and none of 2024; `evenhand data add --panel FILE`"]
    file = tmp_path / "panel.csv"
    file.write_text("activity_year,lei,agency_code,respondent_name\n2024,TWIN0000000000000001,5,First Bank\n")
    [added] = answered("data", "add", "--panel", file, "--lake", lake)
    assert (added["year"], added["lenders"]) == (2024, 1)
    assert added["without_a_name"] > 20
    lender = answered("peers", "TWIN0000000000000001", "--lake", lake)
    assert lender["name"] == "First Bank"
    assert lender["notes"] == [f"{len(lender['rows'])} of these lenders are not in the panel of 2024"]


def test_an_unknown_lender_and_a_lender_with_all_are_refused(lake: Path) -> None:
    assert "has no application of 'NOBODY'" in refused("peers", "NOBODY", "--lake", lake)
    assert "give a lender, or --all" in refused("peers", "--lake", lake)
    assert "the lake holds no vintage of 2020" in refused("peers", "X", "--year", 2020, "--lake", lake)


def test_places_of_a_lender_of_the_vintage_stand_next_to_those_of_its_peers(lake: Path) -> None:
    hmda = REPOSITORY / "data" / "audits" / "hmda.yaml"
    chosen = ("--set", "by={column: lender_id}", "--set", "source.vintage={dataset: twin}")
    words = ("places", hmda, "--lake", lake, *chosen, "--set", "year=2024", "--by-value", "TWIN0000000000000001")
    rows = {(row["of"], row["band"]): row for row in answered(*words)}
    majority = rows["applications", "above 50 %"]
    assert majority["peers"] > 5
    assert majority["low"] < majority["ratio"] < majority["high"]
    assert majority["state"] in ("within", "inconclusive")
    assert (
        sum(rows["applications", band]["events"] for band in ("0 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"))
        == majority["n"]
    )
    share = f"Applications: {100 * majority['share']:.0f} of 100 are in tracts with a minority share above 50 %"
    assert share in ran(*words).output
    assert "there is no such file" in refused(*words, "--peers", "nowhere.csv")


def test_places_count_the_rows_that_the_audit_keeps_of_the_lender_and_of_its_peers(lake: Path) -> None:
    hmda = REPOSITORY / "data" / "audits" / "hmda.yaml"
    chosen = ("--set", "by={column: lender_id}", "--set", "source.vintage={dataset: twin}", "--set", "year=2024")
    words = ("places", hmda, "--lake", lake, *chosen, "--by-value", "TWIN0000000000000001", "--set")
    every, some = (
        next(row for row in answered(*words, f"source.keep={keep}") if row["band"] == "above 50 %")
        for keep in ("{}", "{loan_purpose: ['1']}")
    )
    assert 0 < some["n"] < every["n"]
    assert 0 < some["peers_n"] < every["peers_n"]


def test_places_do_not_count_rows_that_are_copies(lake: Path) -> None:
    [rows] = lake.rglob("lenders.parquet")
    one = {"lender_id": ["TWIN0000000000000001"]}
    source = Source.model_validate({"kind": "hmda", "path": str(rows.with_name("applications")), "keep": one})
    query = "SELECT source_row FROM read_parquet(?) WHERE lender_id = 'TWIN0000000000000001' AND action_taken <> '6'"
    with duckdb.connect() as connection:
        pattern = str(rows.with_name("applications") / "*" / "*.parquet")
        copied = [row for (row,) in connection.execute(f"{query} LIMIT 3", [pattern]).fetchall()]
    every, fewer = beside_peers(source, None), beside_peers(source, None, copied)
    assert every is not None
    assert fewer is not None
    assert pc.sum(every.tracts["applications"]).as_py() - pc.sum(fewer.tracts["applications"]).as_py() == 3
