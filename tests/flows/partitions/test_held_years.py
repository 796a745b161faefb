"""Years at hand: files that a path names, editions of the lake that fit, and runs; none is an answer."""

from datetime import date
from pathlib import Path

import pytest
from lake_of_runs import lake_of_runs
from loans_by_year import BREACH, LACKING, ONE_SIDED, WITHIN, write_years, yearly_spec

from flows.partitions.editions import held_years
from schemas.audit.source import VintageChoice
from schemas.errors import InfrastructureError
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import add
from tasks.lake.store import Lake


def test_years_of_files_are_those_of_the_path_and_no_other(tmp_path: Path) -> None:
    write_years(tmp_path)
    for name in ("loans_20x2.csv", "loans_2019.csv.bak", "other_2018.csv"):
        (tmp_path / name).touch()
    assert held_years(yearly_spec(tmp_path), Lake(tmp_path / "lake")) == (WITHIN, LACKING, ONE_SIDED, BREACH)


def test_years_of_runs_are_those_of_the_audit(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    spec = yearly_spec(tmp_path)
    assert held_years(spec.model_copy(update={"name": "loans"}), lake) == (2023,)
    with pytest.raises(InfrastructureError, match="no year of 'yearly' is available"):
        held_years(spec, lake)


def test_years_of_editions_are_those_that_the_spec_takes(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for year, place in ((2021, "TX"), (2022, "DC")):
        rows = write(tmp_path / str(year), TwinSettings(rows=30, year=year), 1).rows
        add(lake, rows, year=year, dataset="twin", geography=place, frozen=date(2024, 1, 1))
    spec = yearly_spec(tmp_path)
    for wanted, years in (({}, (2021, 2022)), ({"geography": "DC"}, (2022,))):
        source = spec.source.model_copy(update={"path": None, "vintage": VintageChoice(**wanted)})
        assert held_years(spec.model_copy(update={"source": source}), lake) == years
