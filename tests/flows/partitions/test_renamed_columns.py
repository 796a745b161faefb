"""A year that calls a protected column otherwise is told with the likely column, and ``source.rename`` reads it."""

import logging
from pathlib import Path

import pytest

from flows.partitions.years import spec_of_year
from schemas.audit.spec import AuditSpec
from schemas.errors import TooFewError
from tasks.ingest import registry
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

SPEC = """\
name: own
year: 2021
source: {kind: csv, path: 'loans_{year}.csv'}
decision: {column: approved, favourable: [yes_], unfavourable: [no_]}
protected:
  - {name: race, columns: [race], groups: {White: [White], Black: [Black]}, reference: White}
columns: {income: {type: continuous}}
"""
ROWS = "".join(
    f"{race},{income},{answer}\n" for race in ("White", "Black") for income, answer in ((1, "yes_"), (2, "no_"))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loans_2021.csv").write_text(f"race,income,approved\n{ROWS}")
    (tmp_path / "loans_2022.csv").write_text(f"applicantRace,income,approved\n{ROWS}")
    return tmp_path


def spec(folder: Path, **overrides: str) -> AuditSpec:
    path = {"source.path": str(folder / "loans_{year}.csv")}
    parsed: AuditSpec = read_spec(SPEC, "own.yaml", {**path, **overrides}).spec
    return parsed


def test_the_likely_column_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "evenhand")
    with pytest.raises(TooFewError, match=r"has 'applicantRace': if it is the same, read it with source\.rename"):
        spec_of_year(spec(folder), 2022, Lake(folder / "lake"))
    assert "2022 has no column 'race', and has 'applicantRace'" in caplog.text


def test_a_column_that_is_renamed_is_read_in_every_year(folder: Path) -> None:
    renamed = spec(folder, **{"source.rename": "{applicantRace: race}"})
    for year in (2021, 2022):
        of_year = spec_of_year(renamed, year, Lake(folder / "lake"))
        assert of_year.source.lacking == ()
        registry.check_columns(of_year)
        rows = registry.reader_of(of_year.source).read(of_year.source, ["race", "approved"]).table
        assert rows["race"].to_pylist() == ["White", "White", "Black", "Black"]
        assert rows.column_names == ["race", "approved"]


def test_a_spec_without_it_keeps_its_identity(folder: Path) -> None:
    plain = spec(folder).source
    assert "rename" not in plain.identifying()
    assert "rename" in plain.model_copy(update={"rename": {"a": "b"}}).identifying()
