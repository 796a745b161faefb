"""``evenhand data add`` tells what it could not read, keeps what it must not, and asks for the place of few rows."""

import csv
import json
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from conftest import REPOSITORY
from typer.testing import CliRunner

from flows.cli.main import app
from flows.supervision import file_modes
from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError
from schemas.tables.hmda import HMDA_REFUSALS, SUBMITTED
from tasks.ingest.hmda import source as hmda
from tasks.ingest.vintages.store import newest, vintages
from tasks.lake.store import Lake

sys.path.append(str(REPOSITORY / "tests" / "tasks" / "ingest" / "hmda"))

import hmda_files
import submissions

YEAR = 2023


def add(path: Path, lake: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["data", "add", str(path), "--lake", str(lake), *words])


def browser(path: Path, cells_of: list[dict[str, str]], delimiter: str = ",") -> Path:
    """A file of the data browser with a row for each of the cells."""
    layout = hmda_files.BY_NAME["data_browser"]
    rows = [hmda_files.rows_of(layout, YEAR, 1, cells)[0] for cells in cells_of]
    path.write_text(hmda_files.text_of(rows, layout.columns, delimiter))
    return path


def test_nothing_that_identifies_a_loan_or_a_person_is_in_any_byte_of_the_lake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = submissions.rows_of(12)
    for place, name in enumerate(submissions.TEXTS):
        rows[place] = submissions.changed(rows[place], **{name: submissions.TEXTS[name]})
    uli, street = submissions.SECRETS["uli"], submissions.SECRETS["street_address"]
    rows[8] = submissions.changed(rows[8], income=uli, loan_type=street)
    rows[9] = submissions.changed(rows[9], loan_purpose=street, state_code=uli, census_tract="Quuxville")
    rows[10] = [*rows[10][:13], street, *rows[10][13:]]
    rows[11] = submissions.changed(rows[11], lei="QUUXVILLEQUUXVILLE00")
    path = submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(12))
    result = add(path, tmp_path / "lake")
    secrets = [*submissions.SECRETS.values(), *submissions.TEXTS.values(), *submissions.SHEET_SECRETS, "QUUXVILLE"]
    secrets.remove(submissions.SECRETS["zip_code"])  # five digits are anywhere; the column is asked for below
    (vintage,) = vintages(Lake(tmp_path / "lake"))
    assert (vintage.dataset, vintage.geography, vintage.rows, vintage.refused) == ("submission", submissions.LEI, 9, 3)
    told = result.output + caplog.text + str(result.exception)
    for file in (file for file in (tmp_path / "lake").rglob("*") if file.is_file()):
        content = file.read_bytes()
        told += content.decode("latin-1")
        if file.suffix == ".parquet":  # packed, so that the bytes alone would prove little
            table = pq.read_table(file, partitioning=None)
            told += json.dumps(table.to_pylist(), default=str)
            assert not any(
                submissions.SECRETS["zip_code"] in str(table[name].to_pylist()) for name in table.column_names
            )
    assert [secret for secret in secrets if secret.lower() in told.lower()] == []
    assert "lar.txt: edit V612-1 fails in 1 row (10): " in result.stderr


def test_a_submission_is_restricted(tmp_path: Path) -> None:
    path = submissions.write(tmp_path / "lar.txt", submissions.rows_of(8), submissions.sheet_of(8))
    lake = Lake(tmp_path / "lake")
    refusal = add(path, tmp_path / "lake", "--keep-raw", "--kind", "submission").exception
    assert isinstance(refusal, SpecError)
    assert "leave --keep-raw out" in str(refusal)
    wrong = add(path, tmp_path / "lake", "--kind", "snapshot", "--geo", "IL").exception
    assert isinstance(wrong, SpecError)
    assert "give submission" in str(wrong)
    done = add(path, tmp_path / "lake", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["restricted"] == "a lender's own file: not for publication"
    (vintage,) = vintages(lake)
    assert vintage.restricted
    assert newest(lake, YEAR) == vintage
    public = hmda_files.write(tmp_path / "public.csv", "data_browser", YEAR)
    assert add(public, tmp_path / "lake", "--geo", submissions.LEI, "--frozen", "2024-01-01").exit_code == 0
    held = newest(lake, YEAR)
    assert held is not None
    assert held.dataset == "snapshot"
    assert newest(lake, YEAR, dataset="submission") == vintage
    rows = next((tmp_path / "lake").glob("vintages/*/submission/**/*.parquet"))
    rows.chmod(0o640)
    assert rows in file_modes.open_to_others(tmp_path / "lake")


def test_cells_that_are_not_read_are_told_by_column_and_end_with_4_above_5_percent(tmp_path: Path) -> None:
    cells = [{"census_tract": "4.82010E+10"} if i < 3 else {} for i in range(40)]
    cells[5]["loan_purpose"] = "0"
    cells[6]["derived_sex"] = "NULL"
    result = add(browser(tmp_path / "lar.csv", cells), tmp_path / "lake", "--geo", "TX")
    assert "lar.csv: 3 of 40 cells of tract_fips11 are not read, such as '4.82010E+10': a spreadsheet" in result.stderr
    assert "1 of 40 cells of loan_purpose_raw are not read, such as '0': 0 is no code of it" in result.stderr
    assert "1 of 1 cells of derived_sex are not read, such as 'NULL': a program's word for nothing" in result.stderr
    assert isinstance(result.exception, DataQualityError)
    assert "lar.csv: derived_sex, tract_fips11" in str(result.exception)
    again = add(tmp_path / "lar.csv", tmp_path / "lake")
    assert isinstance(again.exception, DataQualityError)
    assert len(vintages(Lake(tmp_path / "lake"))) == 1


def test_an_amount_of_0_is_kept_and_told_with_its_rows(tmp_path: Path) -> None:
    path = browser(tmp_path / "a.csv", [{"income": "0" if i < 3 else "71"} for i in range(8)])
    done = add(path, tmp_path / "lake", "--geo", "IL")
    assert "a.csv: income_usd is 0 in 3 rows, kept as a number: HMDA has NA for none" in done.stderr
    assert "loan_amount_usd is 0" not in done.stderr


def test_refused_rows_are_told_with_their_column(tmp_path: Path) -> None:
    cells = [{"income": "NULL"} if i < 2 else {} for i in range(50)]
    result = add(browser(tmp_path / "lar.csv", cells), tmp_path / "lake", "--geo", "TX")
    assert result.exit_code == 0
    assert "lar.csv: 2 rows are no applications, and are refused: not_a_number in income_usd, such as 'NULL'" in (
        result.stderr
    )
    more = browser(tmp_path / "more.csv", [{"income": "NULL"} if i < 3 else {} for i in range(50)])
    lost = add(more, tmp_path / "lake", "--geo", "TX")
    assert isinstance(lost.exception, DataQualityError)
    assert "more.csv: income_usd" in str(lost.exception)
    assert "such as 'NULL': a program's word for nothing" in lost.stderr


def test_exact_ratios_are_banded_as_the_publisher_does_and_kept(tmp_path: Path) -> None:
    ratios = ["24.6", "33", "41", "49.99", "50", "60.5", "71", "20%- <30%", "<20%", "NA"]
    cells = [{"debt_to_income_ratio": ratio} for ratio in ratios]
    assert add(browser(tmp_path / "lar.csv", cells), tmp_path / "lake", "--geo", "TX").exit_code == 0
    files = list((tmp_path / "lake").glob("vintages/**/state=*/*.parquet"))
    rows = sorted(pq.read_table(files[0], partitioning=None).to_pylist(), key=lambda row: row["source_row"])
    bands = ["20%-<30%", "30%-<36%", "41", "49", "50%-60%", "50%-60%", ">60%", "20%-<30%", "<20%", "NA"]
    assert [row["debt_to_income_ratio"] for row in rows] == bands
    assert [row["debt_to_income_pct"] for row in rows] == [24.6, 33, 41, 49.99, 50, 60.5, 71, None, None, None]


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_other_marks_between_cells_and_years_of_data_frames_are_read(tmp_path: Path, delimiter: str) -> None:
    path = browser(tmp_path / "lar.csv", [{}] * 20, delimiter)
    path.write_text(path.read_text().replace(f"{YEAR}{delimiter}", f"{YEAR}.0{delimiter}"))
    result = add(path, tmp_path / "lake", "--geo", "TX")
    assert result.exit_code == 0, result.output
    assert [(v.year, v.rows) for v in vintages(Lake(tmp_path / "lake"))] == [(YEAR, 20)]


def test_a_modified_lar_of_rows_that_end_with_a_pipe_is_read_and_is_of_its_lender(tmp_path: Path) -> None:
    layout = hmda_files.BY_NAME["modified_lar"]
    rows = hmda_files.rows_of(layout, YEAR, 20, {"lei": submissions.LEI})
    path = tmp_path / "mlar.txt"
    path.write_text("".join("|".join([*row, ""]) + "\n" for row in rows))
    assert add(path, tmp_path / "lake").exit_code == 0
    (vintage,) = vintages(Lake(tmp_path / "lake"))
    assert (vintage.dataset, vintage.geography, vintage.rows) == ("modified-lar", submissions.LEI, 20)


def test_a_hundred_rows_are_no_country(tmp_path: Path) -> None:
    path = browser(tmp_path / "lar.csv", [{"lei": submissions.LEI}] * 100)
    error = add(path, tmp_path / "lake").exception
    assert isinstance(error, SpecError)
    assert "lar.csv has 100 rows, and about 11,483,889 are published of 2023 for the country" in str(error)
    assert f"--geo {submissions.LEI} or --geo TX" in str(error)
    assert vintages(Lake(tmp_path / "lake")) == []
    assert add(path, tmp_path / "lake", "--geo", "nationwide").exit_code == 0


def test_an_archive_in_an_archive_is_read(tmp_path: Path) -> None:
    path = browser(tmp_path / "lar.csv", [{}] * 5)
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as archive:
        archive.write(path, "lar.csv")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(tmp_path / "inner.zip", "inner.zip")
    assert add(tmp_path / "outer.zip", tmp_path / "lake", "--geo", "TX").exit_code == 0


def test_a_vintage_without_the_columns_of_submissions_stays_readable(tmp_path: Path) -> None:
    path = browser(tmp_path / "lar.csv", [{}] * 6)
    assert add(path, tmp_path / "lake", "--geo", "TX").exit_code == 0
    (file,) = (tmp_path / "lake").glob("vintages/**/state=*/*.parquet")
    rows = pq.read_table(file, partitioning=None)
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    pq.write_table(rows.drop_columns(list(SUBMITTED)), earlier / "applications.parquet")
    pq.write_table(HMDA_REFUSALS.empty(), earlier / "refusals.parquet")
    source = Source(kind="hmda", path=str(earlier / "applications.parquet"))
    read = hmda.read(source, ["action_taken", "applicant_credit_score"]).table
    assert read["action_taken"].to_pylist() == ["3"] * 6
    assert read["applicant_credit_score"].to_pylist() == [""] * 6
    assert "applicant_credit_score" not in hmda.header(source)


RENAMED = """\
name: renamed
year: 2023
source: {kind: hmda, vintage: {}}
row_id: null
decision: {column: action_taken, favourable: ['1', '2'], unfavourable: ['3']}
protected:
  - name: race
    columns: [derived_race]
    groups: {White: [White], Black: ['Black or African American']}
    reference: White
columns: {income_usd: {type: continuous}}
model: {kind: none}
methods: {adjusted: {}, fgce: null}
"""


def test_a_protected_column_under_another_name_is_told_by_plan_and_read_by_it(tmp_path: Path) -> None:
    cells = [
        {"derived_race": ("White", "Black or African American")[i % 2], "action_taken": "13"[i % 3 > 1]}
        for i in range(60)
    ]
    file, spec, lake = browser(tmp_path / "loans.csv", cells), tmp_path / "renamed.yaml", tmp_path / "lake"
    records = list(csv.reader(file.read_text().splitlines()))
    columns = [i for i, name in enumerate(records[0]) if "race" not in name or name == "derived_race"]
    records[0] = ["race_of_applicant" if name == "derived_race" else name for name in records[0]]
    with file.open("w", newline="") as rewritten:
        csv.writer(rewritten).writerows([record[i] for i in columns] for record in records)
    spec.write_text(RENAMED)
    added = ["--geo", "TX", "--year", str(YEAR), "--frozen", "2024-05-01"]
    assert add(file, lake, *added).exit_code == 0
    planned = ["plan", str(spec), "--lake", str(lake)]
    missing = CliRunner().invoke(app, planned).output
    assert "2023 has no column 'derived_race', and has 'race_of_applicant'" in missing
    assert "evenhand data add FILE --replace --rename race_of_applicant=derived_race" in missing
    wrong = add(file, lake, *added, "--replace", "--rename", "race=derived_race").exception
    assert "has no column that becomes 'derived_race'" in str(wrong)
    assert add(file, lake, *added, "--replace", "--rename", "race_of_applicant=derived_race").exit_code == 0
    assert CliRunner().invoke(app, planned).exit_code == 0
    (vintage,) = vintages(Lake(lake))
    assert vintage.converter.endswith("race_of_applicant=derived_race"), "the same bytes are other rows now"
    by_path = Source(kind="hmda", path=str(file), rename={"race_of_applicant": "derived_race"})
    assert hmda.read(by_path, ["derived_race"]).table["derived_race"].to_pylist() == [c["derived_race"] for c in cells]
    with pytest.raises(ValueError, match="a vintage has the names of the lake"):
        Source(kind="hmda", vintage={}, rename={"race_of_applicant": "derived_race"})
