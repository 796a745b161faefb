"""A lender's own submission of 110 fields: what is read of it, and that nothing else leaves the reader."""

import csv
import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
import submissions
from conftest import SHARED

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.hmda.conversion import convert
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.hmda.source import restricted
from tasks.ingest.hmda.submission import FIELDS, WITHHELD

Row = dict[str, Any]


def converted(path: Path) -> tuple[list[Row], list[Row]]:
    """Applications and refusals, each in the order of the file."""
    target = path.parent / f"{path.name}.d"
    convert(recognise(path, path.parent / "scratch"), target)
    return tuple(  # type: ignore[return-value]
        duckdb.sql(f"FROM read_parquet('{target / name}.parquet') ORDER BY source_row").to_arrow_table().to_pylist()
        for name in ("applications", "refusals")
    )


@pytest.mark.data("data/hmda_schema")
def test_fields_are_those_of_the_filing_guide() -> None:
    with (SHARED / "data" / "hmda_schema" / "submission_lar_110_fields_2025.csv").open() as file:
        guide = {int(row["field_number"]): row["name"] for row in csv.DictReader(file)}
    assert len(FIELDS) == len(set(FIELDS)) == len(guide) == 110
    free_text = {number for number, name in guide.items() if "Free Form" in name}
    assert free_text == {i for i, name in enumerate(FIELDS, start=1) if name.endswith("_text")}
    withheld = {i for i, name in enumerate(FIELDS, start=1) if name in WITHHELD}
    assert withheld == free_text | {1, 3, 4, 12, 13, 14, 16, 95}
    for word, stem in (("Credit Score of", "credit_score_filed"), ("Age of", "age_filed"), ("Result:", "aus_result")):
        assert {number for number, name in guide.items() if word in name} - free_text == {
            i for i, name in enumerate(FIELDS, start=1) if stem in name and not name.endswith("_text")
        }


def test_exact_values_stand_beside_the_published_bands(tmp_path: Path) -> None:
    cells = [
        {"applicant_age_filed": "24", "debt_to_income_filed": "19.99", "total_units_filed": "4"},
        {"applicant_age_filed": "62", "debt_to_income_filed": "36.7", "total_units_filed": "24"},
        {"applicant_age_filed": "75", "debt_to_income_filed": "60.9", "total_units_filed": "150"},
        {"applicant_age_filed": "8888", "debt_to_income_filed": "NA", "total_units_filed": "5"},
        {"applicant_credit_score_filed": "7777", "debt_to_income_filed": "Exempt", "multifamily_units_filed": "NA"},
        {"applicant_credit_score_filed": "1111", "debt_to_income_filed": "61", "multifamily_units_filed": "7"},
    ]
    cells[5]["total_units_filed"] = "9"
    rows = [submissions.changed(row, **new) for row, new in zip(submissions.rows_of(6), cells, strict=True)]
    found, refused = converted(submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(6)))
    assert refused == []
    assert [row["debt_to_income_ratio"] for row in found] == ["<20%", "36", "50%-60%", "NA", "Exempt", ">60%"]
    assert [row["debt_to_income_pct"] for row in found][:3] == [19.99, 36.7, 60.9]
    assert [row["applicant_age"] for row in found][:4] == ["<25", "55-64", ">74", "8888"]
    assert [row["applicant_age_above_62"] for row in found][:4] == ["No", "Yes", "Yes", "NA"]
    assert [row["applicant_age_years"] for row in found][:3] == [24, 62, 75]
    assert found[3]["applicant_age_years"] is None
    assert [row["total_units"] for row in found] == ["4", "5-24", ">149", "5-24", "1", "5-24"]
    assert found[5]["multifamily_affordable_units"] == 78
    assert found[4]["applicant_credit_score"] is None
    assert "applicant_credit_score" in found[5]["exempt"].split(",")
    assert "debt_to_income_pct" in found[4]["exempt"].split(",")
    first = dict(zip(FIELDS, rows[0], strict=True))
    assert (found[0]["loan_amount_usd"], found[0]["income_usd"]) == (
        *(float(first["loan_amount"]), float(first["income"]) * 1000),
    )
    assert (found[0]["application_month"], found[0]["action_month"]) == ("2023-01", "2023-03")
    assert (found[0]["activity_year"], found[0]["lender_id"], found[0]["aus_result_1"]) == (2023, submissions.LEI, "3")
    assert found[0]["tract_population"] is None


def test_free_text_alone_tells_a_race_and_nothing_tells_none(tmp_path: Path) -> None:
    told = {"applicant_race_1": "", "applicant_race_native_text": "Somebody's words"}
    partner = {"applicant_race_1": "5", "co_applicant_race_1": "", "co_applicant_race_asian_text": "words"}
    cells = [told, {"applicant_race_1": ""}, partner, {"applicant_race_1": "5", "co_applicant_race_1": ""}]
    rows = [submissions.changed(row, **new) for row, new in zip(submissions.rows_of(4), cells, strict=True)]
    found, _ = converted(submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(4)))
    assert [row["derived_race"] for row in found] == ["Free Form Text Only", "Race Not Available", "Joint", "White"]


def test_what_is_no_row_of_the_lender_is_refused_and_shows_nothing(tmp_path: Path) -> None:
    rows = submissions.rows_of(6)
    rows[1][1] = "ANOTHERMADEUPLENDER1"
    rows[2][0] = "3"
    rows[3] = submissions.changed(rows[3], income="Zyzzyva Street")
    rows[4] = [*rows[4], "one too many"]
    rows[5] = submissions.changed(rows[5], loan_type="Zyzzyva Street 5", state_code="4711")
    found, refused = converted(submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(6)))
    assert [row["source_row"] for row in found] == [1, 6]
    assert [(row["source_row"], row["reason"], row["column"], row["detail"]) for row in refused] == [
        (2, "failed_expectation", "lender_id", "S301"),
        (3, "failed_expectation", "lender_id", "S300"),
        (4, "not_a_number", "income_usd", "(withheld)"),
        (5, "malformed_line", None, None),
    ]
    assert found[1]["unknown_codes"] == '{"state_code": "(withheld)", "loan_type": "(withheld)"}'


def test_entries_of_the_sheet_are_the_rows(tmp_path: Path) -> None:
    path = submissions.write(tmp_path / "lar.txt", submissions.rows_of(5), submissions.sheet_of(6))
    with pytest.raises(DataQualityError, match=r"counts 6 entries, and 5 rows came \(edit S304\)") as error:
        converted(path)
    assert error.value.exit_code == 4


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"year": "XXXX"}, "S302"),
        ({"entries": "many"}, "V606"),
        ({"lei": "short"}, "V600"),
        ({"record": "A"}, "S300"),
    ],
)
def test_a_sheet_that_says_too_little_is_told_without_its_values(
    tmp_path: Path, changed: dict[str, str], told: str
) -> None:
    path = submissions.write(tmp_path / "lar.txt", submissions.rows_of(2), submissions.sheet_of(2, **changed))
    with pytest.raises(DataQualityError, match=told) as error:
        recognise(path, tmp_path)
    assert not any(secret in str(error.value) for secret in submissions.SHEET_SECRETS)


def test_rows_without_a_sheet_have_the_year_of_their_actions(tmp_path: Path) -> None:
    rows = [submissions.changed(row, street_address='"Rose Cottage" 5') for row in submissions.rows_of(3, 2021)]
    found, refused = converted(submissions.write(tmp_path / "lar.txt", rows))
    assert (len(found), refused, {row["activity_year"] for row in found}) == (3, [], {2021})


def test_packed_submissions_are_the_same(tmp_path: Path) -> None:
    plain = submissions.write(tmp_path / "lar.txt", submissions.rows_of(4), submissions.sheet_of(4))
    packed, inner, outer = tmp_path / "lar.txt.gz", tmp_path / "inner.zip", tmp_path / "outer.zip"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with zipfile.ZipFile(inner, "w") as archive:
        archive.write(plain, "lar.txt")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(inner, "inner.zip")
        archive.writestr("__MACOSX/._inner.zip", b"x")
    for path in (packed, outer):
        recognised = recognise(path, tmp_path / path.stem)
        assert (recognised.layout.name, recognised.lines, recognised.sheet is not None) == ("submission_2018", 5, True)
    assert len(converted(packed)[0]) == 4


FORMS = {
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-be"),
    "packed UTF-16": lambda text: gzip.compress(text.encode("utf-16")),
    "two marks behind each row": lambda text: "\r\n".join(f"{line}||" for line in text.split()).encode(),
    "a mark behind the rows alone": lambda text: re.sub(r"(?m)^(2[|].*)$", r"\1|", text).encode(),
    "a line with the mark": lambda text: f"sep=|\n{text}".encode(),
    "all of it": lambda text: "\r\n".join(['"sep=|"', *(f"{line}||" for line in text.split())]).encode("utf-16"),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, tuple[list[Row], list[Row]]]:
    """A submission as UTF-8, and what it is converted to."""
    rows = [submissions.changed(row, street_address="Rose-5", city="Ostrów") for row in submissions.rows_of(3)]
    path = submissions.write(tmp_path_factory.mktemp("plain") / "lar.txt", rows, submissions.sheet_of(3))
    text = path.read_text(encoding="utf-8").replace(" ", "_")
    path.write_text(text, encoding="utf-8")
    return text, converted(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_submission_is_read_in_any_form_that_programs_write(
    form: str, plain: tuple[str, tuple[list[Row], list[Row]]], tmp_path: Path
) -> None:
    text, of_utf_8 = plain
    other = tmp_path / "other.txt"
    other.write_bytes(FORMS[form](text))
    assert converted(other) == of_utf_8
    assert restricted(Source(kind="hmda", path=str(other)))


def test_a_field_behind_the_last_one_refuses_its_row(tmp_path: Path) -> None:
    path = submissions.write(tmp_path / "lar.txt", submissions.rows_of(3), submissions.sheet_of(3))
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([*lines[:2], f"{lines[2]}|x", *lines[3:]]), encoding="utf-8")
    found, refused = converted(path)
    assert (len(found), [row["reason"] for row in refused]) == (2, ["malformed_line"])


def test_three_archives_in_each_other_are_named(tmp_path: Path) -> None:
    content, name = b"x", "a.csv"
    for level in range(3):
        with zipfile.ZipFile(tmp_path / f"{level}.zip", "w") as archive:
            archive.writestr(name, content)
        content, name = (tmp_path / f"{level}.zip").read_bytes(), f"{level}.zip"
    with pytest.raises(DataQualityError, match="a zip in a zip in a zip"):
        recognise(tmp_path / "2.zip", tmp_path / "scratch")
