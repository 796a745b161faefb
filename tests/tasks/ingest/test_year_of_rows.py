"""What was read is noted, and the year by the rows themselves is held against that of the spec."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, loans, spec_of

from flows.partitions.years import spec_as_held
from flows.runs.index import vintage_words
from flows.runs.replay import spec_of_run
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, SpecError
from schemas.tables.applications import SOURCE_READ
from tasks.ingest.registry import check_columns
from tasks.ingest.stage import ingest, ingest_settings
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import add
from tasks.lake.store import Lake, sha256_of
from tasks.pipeline.registry import read_spec, validated
from tasks.plan import _effective

BOTH = "path and vintage both say what to read; drop one (to use FILE: --set source.vintage=null)"
HMDA = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()


def read(spec: AuditSpec) -> dict[str, object]:
    check_columns(spec)
    (row,) = ingest.function(settings=ingest_settings(spec)).tables[SOURCE_READ.name].to_pylist()
    return row


def years(place: Path, *of: str, column: str = "activity_year") -> None:
    """Write the loans with a year each, by turns."""
    frame = loans()
    frame[column] = [of[i % len(of)] for i in range(len(frame))]
    frame.to_csv(place / "loans.csv", index=False)


def test_what_was_read_is_noted(place: Path) -> None:
    said = read(spec_of(place))
    digest = sha256_of(place / "loans.csv")
    assert said == {"source": "loans.csv", "sha256": digest, "rows": 500, "year": None, "lender": None}


@pytest.mark.parametrize("column", ["activity_year", "as_of_year"])
def test_the_year_of_hmda_is_found_in_a_table_of_any_kind(place: Path, column: str) -> None:
    years(place, "2024", "2024.0", "", "NA", column=column)
    assert read(spec_of(place))["year"] == 2024
    with pytest.raises(DataQualityError, match=f"of 2023 and has rows of other years: 250 of 2024 .column '{column}'"):
        read(spec_of(place, year="2023"))


def test_a_file_of_another_year_names_the_next_step(place: Path) -> None:
    years(place, "2022")
    told = (
        "loans.csv was said to be of 2024 and has rows of other years: 500 of 2022 (column 'activity_year'); give "
        "--year 2022 (`year: 2022` in the spec), or the file of 2024"
    )
    with pytest.raises(DataQualityError) as error:
        read(spec_of(place))
    assert (str(error.value), error.value.exit_code) == (told, 4)
    assert read(spec_of(place, year="2022"))["year"] == 2022


def test_rows_of_another_year_pass_where_the_spec_does_not_keep_them(place: Path) -> None:
    years(place, "2024", "2023", "2024", "2024")
    match = r"125 of 2023, beside 375 of 2024 .*keep its rows alone: --set 'source.keep.activity_year=\[2024\]'"
    with pytest.raises(DataQualityError, match=match):
        read(spec_of(place))
    said = read(spec_of(place, source__keep="{activity_year: [2024]}"))
    assert (said["rows"], said["year"]) == (500, 2024)
    with pytest.raises(DataQualityError, match="125 of 2023"):
        read(spec_of(place, source__keep="{activity_year: [2023]}"))


def test_the_column_of_the_year_can_be_named(place: Path) -> None:
    years(place, "2023", column="decided")
    assert read(spec_of(place))["year"] is None
    with pytest.raises(DataQualityError, match=r"500 of 2023 \(column 'decided'\)"):
        read(spec_of(place, source__year_column="decided"))
    with pytest.raises(SpecError, match="no column 'decidd'; did you mean 'decided'"):
        read(spec_of(place, source__year_column="decidd"))
    with pytest.raises(SpecError, match="`year_column` belongs to a table of your own, not to boston1990"):
        spec_of(place, source="{kind: boston1990, year_column: x}")


def test_only_years_are_told_of_a_column_that_holds_something_else(place: Path) -> None:
    with pytest.raises(DataQualityError) as error:
        read(spec_of(place, source__year_column="id"))
    assert str(error.value) == "loans.csv: column 'id' holds no years; name another with source.year_column"
    years(place, "2024", "2023-05-01", "2024", "2024", column="decided")
    with pytest.raises(DataQualityError) as error:
        read(spec_of(place, source__year_column="decided"))
    assert "125 with something else there, beside 375 of 2024" in str(error.value)
    assert "2023-05" not in str(error.value)


def test_a_column_of_dates_is_no_column_of_years(place: Path) -> None:
    years(place, "2024-01-31", "2024-02-29", column="as_of_year")
    told = "loans.csv: column 'as_of_year' holds no years; name another with source.year_column"
    with pytest.raises(DataQualityError) as error:
        read(spec_of(place))
    assert str(error.value) == told


def test_parquet_tells_its_year_too(place: Path) -> None:
    years(place, "2024")
    table = pa.Table.from_pandas(loans().assign(as_of_year=2021))
    pq.write_table(table, place / "loans.parquet")
    own = {"source": f"{{kind: parquet, path: '{place / 'loans.parquet'}'}}"}
    with pytest.raises(DataQualityError, match="500 of 2021"):
        read(read_spec((place / "loans.yaml").read_text(), "loans.yaml", own).spec)


@pytest.mark.parametrize(
    ("overrides", "where"),
    [
        ({"source.path": "a.csv"}, "hmda.yaml, line {}: source: "),
        ({"source": "{kind: hmda, path: a.csv, vintage: {}}"}, "hmda.yaml (--set): source: "),
    ],
)
def test_path_and_vintage_at_once_are_refused(overrides: dict[str, str], where: str) -> None:
    line = next(i for i, row in enumerate(HMDA.splitlines(), 1) if row.startswith("source:"))
    with pytest.raises(SpecError) as error:
        read_spec(HMDA, "hmda.yaml", overrides)
    assert (str(error.value), error.value.exit_code) == (where.format(line) + BOTH, 2)
    assert read_spec(HMDA, "hmda.yaml", {**overrides, "source.vintage": "null"}).spec.source.paths == ("a.csv",)


@pytest.mark.parametrize("name", ["boston1990", "synthetic-lending"])
def test_a_file_that_nobody_would_read_is_refused(name: str) -> None:
    text = (REPOSITORY / "data" / "audits" / f"{name}.yaml").read_text()
    with pytest.raises(SpecError, match="reads no file; leave out path, or give a kind that reads it"):
        read_spec(text, "a.yaml", {"source.path": "a.csv"})


def test_a_written_vintage_drops_no_path_of_the_spec() -> None:
    of_file = HMDA.replace("vintage: {}", "path: a.csv")
    with pytest.raises(SpecError, match="path and vintage both say what to read"):
        read_spec(of_file, "hmda.yaml", {"source.vintage": "{}"})
    with pytest.raises(SpecError, match=r"source\.vintage_file: this is filled in by evenhand; leave it out"):
        read_spec(HMDA, "hmda.yaml", {"source.vintage_file": "a.parquet"})


def test_a_vintage_is_named_and_an_earlier_manifest_is_read(tmp_path: Path) -> None:
    lake, frozen = Lake(tmp_path / "lake"), date(2023, 5, 1)
    twin = write(tmp_path, TwinSettings(rows=300, year=2022), 482).rows
    held = add(lake, twin, year=2022, dataset="snapshot", geography="TX", frozen=frozen)
    spec = spec_as_held(read_spec(HMDA, "hmda.yaml", {"year": "2022"}).spec, lake)
    words = f"snapshot, TX, frozen 2023-05-01 ({held.sha256[:12]})"
    assert spec.source.words == words
    now = spec.model_dump(mode="json")
    assert vintage_words(now["source"]) == words
    assert validated(AuditSpec, now) == spec
    then = {**now, "source": {**now["source"], "path": now["source"]["vintage_file"]}}
    for key in ("vintage_file", "year_column"):
        del then["source"][key]
    assert spec_of_run({"spec": then}, "hmda-2022-0123456789") == spec
    assert read_spec(_effective(spec), "effective.yaml").spec.source.vintage is not None
    assert str(tmp_path) not in _effective(spec)
