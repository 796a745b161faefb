"""Every layout is known from its content; what fits none, or is two at once, is a clear error."""

import csv
from functools import partial
from pathlib import Path

import pytest
from conftest import SHARED
from hmda_files import BY_NAME, YEARS, fixed_text, rows_of, text_of, write
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataQualityError
from tasks.ingest.hmda.layouts import LAYOUTS, Recognised, normalised, recognise

SCHEMA = SHARED / "data" / "hmda_schema" / "columns_by_layout.csv"
PUBLISHED = {
    "historic_labels": "historic_labels_csv_78",
    "historic_codes": "historic_codes_csv_45",
    "historic_slice": "historic_slice_labels_47",
    "flat_2017_three_year": "flat_2017_three_year_47",
    "public_lar": "public_lar_snapshot_99",
    "data_browser": "data_browser_csv_99",
}


def recognised(path: Path) -> Recognised:
    return recognise(path, path.parent / "scratch")


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.data("data/hmda_schema")
@pytest.mark.parametrize("name", PUBLISHED)
def test_columns_are_those_that_were_published(name: str) -> None:
    with SCHEMA.open() as file:
        rows = [row for row in csv.DictReader(file) if row["layout"] == PUBLISHED[name]]
    assert BY_NAME[name].columns == tuple(normalised(row["column"]) for row in rows)


@pytest.mark.data("data/hmda_schema")
def test_fixed_widths_are_those_of_the_archives() -> None:
    with SCHEMA.open() as file:
        rows = [row for row in csv.DictReader(file) if row["layout"] == "fixed_width_2004_2013_38"]
    assert [int(row["stop"]) for row in rows] == list(BY_NAME["nara_fixed"].stops)
    assert len(rows) == len(BY_NAME["nara_fixed"].columns)


def test_sizes_of_layouts() -> None:
    sizes = {layout.name: len(layout.columns) for layout in LAYOUTS}
    assert sizes == {
        **{"historic_labels": 78, "historic_codes": 45, "historic_slice": 47, "nara_fixed": 38, "ffiec_flat": 45},
        **{"flat_2017": 42, "flat_2017_three_year": 47, "public_lar": 99, "data_browser": 99, "modified_lar": 85},
    }
    assert all(len(set(layout.columns)) == len(layout.columns) for layout in LAYOUTS)


@pytest.mark.parametrize("delimiter", [",", "|"], ids=["comma", "pipe"])
@pytest.mark.parametrize("name", YEARS)
def test_each_layout_is_known_whatever_the_file_is_called(tmp_path: Path, name: str, delimiter: str) -> None:
    found = recognised(write(tmp_path / "hmda_2099_nationwide.dat", name, YEARS[name], delimiter))
    assert found.layout.name == name
    assert found.columns == BY_NAME[name].columns
    assert (found.missing, found.unknown) == ((), ())
    assert found.delimiter == ("" if name == "nara_fixed" else delimiter)
    assert found.header == BY_NAME[name].header


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("public_lar", "|"), ("historic_labels", ","), ("historic_codes", ","), ("modified_lar", "|")],
)
def test_a_file_that_lost_its_header_is_known_by_count_and_shapes(tmp_path: Path, name: str, delimiter: str) -> None:
    rows = rows_of(BY_NAME[name], YEARS[name])
    found = recognised(put(tmp_path / "a.csv", text_of(rows, None, delimiter)))
    assert (found.layout.name, found.header) == (name, False)


def test_2017_with_45_fields_is_of_the_older_layout(tmp_path: Path) -> None:
    assert recognised(write(tmp_path / "lar.txt", "ffiec_flat", 2017, "|")).layout.name == "ffiec_flat"


def test_columns_in_another_order_are_the_same_layout(tmp_path: Path) -> None:
    layout = BY_NAME["historic_codes"]
    rows = [list(reversed(row)) for row in rows_of(layout, 2009)]
    found = recognised(put(tmp_path / "a.csv", text_of(rows, list(reversed(layout.columns)))))
    assert (found.layout.name, found.columns) == ("historic_codes", tuple(reversed(layout.columns)))


def test_hyphens_and_capitals_make_no_difference(tmp_path: Path) -> None:
    layout = BY_NAME["data_browser"]
    names = [name.replace("co_applicant", "Co-Applicant").replace("_1", "-1") for name in layout.columns]
    found = recognised(put(tmp_path / "a.csv", text_of(rows_of(layout, 2024), names)))
    assert (found.layout.name, found.columns) == ("data_browser", layout.columns)


def test_the_headers_of_a_modified_lar_are_known_in_their_own_words(tmp_path: Path) -> None:
    layout = BY_NAME["modified_lar"]
    own = {
        "applicant_credit_score_type": "applicant_credit_scoring_model",
        "co_applicant_credit_score_type": "co_applicant_credit_scoring_model",
        "other_nonamortizing_features": "other_non_amortizing_features",
    }
    names = [own.get(name, name) for name in layout.columns]
    found = recognised(put(tmp_path / "a.txt", text_of(rows_of(layout, 2020), names, "|")))
    assert (found.layout.name, found.columns, found.missing) == ("modified_lar", layout.columns, ())


def test_a_part_of_the_columns_and_one_more_is_told_as_such(tmp_path: Path) -> None:
    names = ["approved", "loan_amount", "income", "debt_to_income_ratio", "loan_to_value_ratio", "applicant_race-1", ""]
    found = recognised(put(tmp_path / "a.csv", text_of([["1", "45000.0", "29", "<20%", "24", "5.0", "x"]] * 3, names)))
    assert found.layout.name == "data_browser"
    assert found.unknown == ("approved", "unnamed_7")
    assert len(found.missing) == 99 - 5
    assert "action_taken" in found.missing


def test_lines_of_control_characters_alone_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match="has blank lines alone"):
        recognised(put(tmp_path / "a.txt", "\x1c\n\x1c\n"))


def test_columns_that_several_eras_share_are_not_guessed(tmp_path: Path) -> None:
    names = ["loan_type", "loan_purpose", "action_taken", "preapproval"]
    with pytest.raises(DataQualityError, match="alike, with different codes"):
        recognised(put(tmp_path / "a.csv", text_of([["1", "1", "3", "2"]] * 3, names)))


@pytest.mark.parametrize(("over", "rows"), [("data_browser", "historic_codes"), ("historic_labels", "public_lar")])
def test_a_header_over_the_rows_of_another_layout_is_an_error(tmp_path: Path, over: str, rows: str) -> None:
    body = rows_of(BY_NAME[rows], YEARS[rows])
    header, fields = len(BY_NAME[over].columns), len(BY_NAME[rows].columns)
    with pytest.raises(
        DataQualityError, match=f"header of {header} columns over rows of {fields} fields, as in layout"
    ):
        recognised(put(tmp_path / "a.csv", text_of(body, BY_NAME[over].columns)))


def test_a_header_over_rows_in_another_order_is_an_error_too(tmp_path: Path) -> None:
    layout = BY_NAME["public_lar"]
    rows = rows_of(layout, 2020)
    with pytest.raises(DataQualityError, match="header and body are of different layouts"):
        recognised(put(tmp_path / "a.csv", text_of(rows, sorted(layout.columns))))


def test_a_year_that_was_never_published_so_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match=r"values of as_of_year are like '2021'.*or the file is of another year"):
        recognised(write(tmp_path / "a.csv", "historic_codes", 2021))
    with pytest.raises(DataQualityError, match=r"activity_year are like '2015'"):
        recognised(write(tmp_path / "b.csv", "public_lar", 2015))


def test_a_few_broken_lines_are_no_matter_of_layout(tmp_path: Path) -> None:
    text = write(tmp_path / "a.csv", "public_lar", 2020, rows=20).read_text()
    assert recognised(put(tmp_path / "a.csv", text[:-150])).layout.name == "public_lar"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<!DOCTYPE html><html>try later</html>", "is a web page and no data"),
        ("a,b,c\n1,2,3\n", r"rows of 3 fields fit no layout"),
        ("loan_type,loan_purpose\n1,1\n", "too few to know their layout"),
        ("1|2023|4|Bank" + "|" * 11 + "\n", "as a lender's submission, and none of its first rows has record type 2"),
        ("2|B4TYDEB6" + "|x" * 108 + "\n", "as a lender's submission, and none of its first rows has record type 2"),
        ("|".join(["2", "B4TYDEB6GKMZO031MB27", *["1"] * 83]) + "\n", "rows of 85 fields fit no layout"),
        ("loan_type,loan_type,loan_purpose,action_taken\n1,1,1,1\n", r"names \['loan_type'\] more than once"),
    ],
    ids=["html", "foreign", "two columns", "transmittal sheet", "submission", "modified without year", "twice"],
)
def test_what_is_no_published_layout_is_an_error_that_says_so(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataQualityError, match=told):
        recognised(put(tmp_path / "a.csv", text))


def test_a_quote_that_swallows_the_first_lines_is_named(tmp_path: Path) -> None:
    text = write(tmp_path / "a.csv", "historic_codes", 2012, rows=2000).read_text()
    with pytest.raises(DataQualityError, match="quote that opens in line 2 is not closed within 100 lines"):
        recognised(put(tmp_path / "a.csv", text.replace("0000013044", '"0000013044', 1)))


@pytest.mark.parametrize("limit", [131_072, 10_000_000])  # that of Python, and one that a library set for the process
def test_a_cell_that_is_too_long_to_be_one_is_named(tmp_path: Path, request: pytest.FixtureRequest, limit: int) -> None:
    request.addfinalizer(partial(csv.field_size_limit, csv.field_size_limit(limit)))
    text = write(tmp_path / "a.csv", "historic_codes", 2012).read_text()
    with pytest.raises(DataQualityError, match=r"its first lines do not split into cells \(.*(larger|more) than"):
        recognised(put(tmp_path / "a.csv", text.replace("0000013044", "1" * 200_000, 1)))


def test_lines_of_fixed_width_with_other_codes_are_an_error(tmp_path: Path) -> None:
    rows = rows_of(BY_NAME["nara_fixed"], 2006, changed={"action_taken": "x"})
    with pytest.raises(DataQualityError, match="most values of action_taken are like 'x'"):
        recognised(put(tmp_path / "a.dat", fixed_text(rows)))


@given(st.permutations(BY_NAME["data_browser"].columns), st.integers(30, 99))
def test_any_large_part_of_the_modern_columns_is_modern(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], size: int
) -> None:
    cells = dict(zip(BY_NAME["data_browser"].columns, rows_of(BY_NAME["data_browser"], 2022)[0], strict=True))
    kept = names[:size]
    path = tmp_path_factory.mktemp("part") / "a.csv"
    found = recognised(put(path, text_of([[cells[name] for name in kept]] * 3, kept)))
    assert found.layout.family == "modern"
    assert set(found.missing) == set(found.layout.columns) - set(kept)
    assert set(found.unknown) == set(kept) - set(found.layout.columns)
