"""Panels: names of lenders by year; another year, a key twice, and lenders that are not in them."""

import gzip
from pathlib import Path

import pytest

from schemas.errors import DataQualityError, IntegrityError
from tasks.ingest.vintages import panels
from tasks.lake.store import Lake

HEADER = "activity_year,lei,tax_id,agency_code,respondent_rssd,respondent_name,respondent_state,respondent_city,assets"
FIRST = "2024,549300GAX7IKJUKCJE72,94-1,5,1,TRAVIS CREDIT UNION,CA,VACAVILLE,5000000"
SECOND = '2024,D38AC76TAMYI50NBPX33,91-0,9,2,"WASHINGTON, FEDERAL",WA,SEATTLE,NA'


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def written(place: Path, *rows: str, name: str = "panel.csv", header: str = HEADER) -> Path:
    file = place / name
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def test_names_assets_and_agency_of_a_year(lake: Lake, tmp_path: Path) -> None:
    listed = panels.add(lake, written(tmp_path, FIRST, SECOND))
    assert (listed.year, listed.lenders, listed.new, listed.repeated) == (2024, 2, 2, 0)
    of = panels.lenders_of(lake, 2024)
    assert of["549300GAX7IKJUKCJE72"] == panels.Lender("TRAVIS CREDIT UNION", "5", "5000000", "CA", "VACAVILLE")
    assert (of["D38AC76TAMYI50NBPX33"].name, of["D38AC76TAMYI50NBPX33"].assets) == ("WASHINGTON, FEDERAL", "")
    assert panels.lenders_of(lake, 2023) == {}
    assert panels.years(lake) == [2024]


@pytest.mark.parametrize("name", ["../Zwei\x85 \u2028 Bank", "É" * 300, "=1<b>'x'"])
def test_any_name_is_kept_whole(lake: Lake, tmp_path: Path, name: str) -> None:
    panels.add(lake, written(tmp_path, FIRST.replace("TRAVIS CREDIT UNION", name)))
    assert panels.lenders_of(lake, 2024)["549300GAX7IKJUKCJE72"].name == name


def test_a_transmittal_file_adds_names_and_keeps_assets(lake: Lake, tmp_path: Path) -> None:
    panels.add(lake, written(tmp_path, FIRST))
    header = "activity_year|calendar_quarter|lei|tax_id|agency_code|respondent_name|respondent_state|city|lar_count"
    rows = (
        "2024|4|549300GAX7IKJUKCJE72|9|5|Travis CU|CA|VACAVILLE|1442",
        "2024|4|NEW00000000000000000|9|7|New|TX|AUSTIN|9",
    )
    file = written(tmp_path, *rows, name="ts.txt", header=header)
    packed = tmp_path / "ts.txt.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    listed = panels.add(lake, packed)
    assert (listed.new, listed.renamed) == (1, 1)
    assert panels.lenders_of(lake, 2024)["549300GAX7IKJUKCJE72"].assets == "5000000"


def test_until_2017_a_lender_is_its_agency_and_respondent(lake: Lake, tmp_path: Path) -> None:
    header = "as_of_year,respondent_id,agency_code,respondent_name"
    panels.add(lake, written(tmp_path, "2016,0000013044,1,First Bank", header=header))
    assert panels.lenders_of(lake, 2016)["1-0000013044"].name == "First Bank"


@pytest.mark.parametrize(
    ("rows", "year", "words"),
    [
        ((FIRST,), 2023, "is a panel of 2024 and not of 2023"),
        ((FIRST, FIRST.replace("TRAVIS", "OTHER")), None, "549300GAX7IKJUKCJE72 twice"),
        ((FIRST, SECOND.replace("2024,D", "2023,D")), None, "holds lenders of 2023, 2024"),
        ((), 2024, "has no lender with a name"),
    ],
)
def test_faults_of_a_panel_are_named(lake: Lake, tmp_path: Path, rows: tuple[str, ...], year: int, words: str) -> None:
    with pytest.raises(DataQualityError, match=words):
        panels.add(lake, written(tmp_path, *rows), year)
    assert panels.years(lake) == [], "nothing is taken of a faulty file"


def test_a_row_that_says_the_same_again_is_counted(lake: Lake, tmp_path: Path) -> None:
    assert panels.add(lake, written(tmp_path, FIRST, FIRST)).repeated == 1


def test_another_table_is_no_panel(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match="is no panel: it needs the columns lei and respondent_name"):
        panels.add(lake, written(tmp_path, "1,2", header="a,b"))


def test_a_damaged_list_is_an_error_and_no_empty_one(lake: Lake, tmp_path: Path) -> None:
    panels.add(lake, written(tmp_path, FIRST))
    lake.write_file("panels/2024.json", b"[1, 2]")
    with pytest.raises(IntegrityError, match="add the panel again"):
        panels.lenders_of(lake, 2024)
