"""Dates as people write them, and whether the day or the month is first."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.audit.intake import EXCEL
from tasks.ingest.intake.dates import guess, parse
from tasks.ingest.intake.numbers import guess as guess_numbers

DAYS = [date(2022, 12, 25) + timedelta(days=7 * step) for step in range(60)]
WORDS = ("%d %b %Y", "%b %d %Y", "%b %Y")

CELLS = [
    ("05 Agu 2023", ["%d %b %Y"], "2023-08-05"),
    ("5. des 2023", ["%d %b %Y"], "2023-12-05"),
    ("31/12/2023", ["%d/%m/%Y"], "2023-12-31"),
    ("3/4/2023", ["%m/%d/%Y"], "2023-03-04"),
    ("3/4/2023", ["%d/%m/%Y"], "2023-04-03"),
    ("31.12.23", ["%d.%m.%y"], "2023-12-31"),
    ("1.2.85", ["%d.%m.%y"], "1985-02-01"),
    ("2023年12月31日", ["%Y年%m月%d日"], "2023-12-31"),
    ("２０２３年１月５日", ["%Y年%m月%d日"], "2023-01-05"),
    ("令和5年4月1日", ["%Y年%m月%d日"], "2023-04-01"),
    ("平成元年1月8日", ["%Y年%m月%d日"], "1989-01-08"),
    ("2023년 1월 5일", ["%Y년 %m월 %d일"], "2023-01-05"),
    ("2023. 12. 31.", ["%Y.%m.%d"], "2023-12-31"),
    ("2023. 12. 31.", ["%Y. %m. %d."], "2023-12-31"),
    ("31 mar 2023", WORDS, "2023-03-31"),
    ("1er janvier 2024", WORDS, "2024-01-01"),
    ("31 de diciembre de 2023", WORDS, "2023-12-31"),
    ("5 de março de 2023", WORDS, "2023-03-05"),
    ("1. Januar 2024", WORDS, "2024-01-01"),
    ("12 października 2023 r.", WORDS, "2023-10-12"),
    ("31 ARALIK 2023", WORDS, "2023-12-31"),
    ("7 maj 2023", WORDS, "2023-05-07"),
    ("3 mrt 2023", WORDS, "2023-03-03"),
    ("9 agosto 2023", WORDS, "2023-08-09"),
    ("December 31st, 2023", WORDS, "2023-12-31"),
    ("31DEC2023", WORDS, "2023-12-31"),
    ("Dec-2015", WORDS, "2015-12-01"),
    ("Montag, 1. Mai 2023", WORDS, "2023-05-01"),
    ("2023年12月31日（日）", ["%Y年%m月%d日"], "2023-12-31"),
    ("30.06.2023 r.", ["%d.%m.%Y"], "2023-06-30"),
    ("230630", ["%y%m%d"], "2023-06-30"),
    ("45291", [EXCEL], "2023-12-31"),
    ("20230402", ["%Y%m%d"], "2023-04-02"),
    ("2023-04-02T10:00:00Z", ["%Y-%m-%d"], "2023-04-02"),
    ("12/31/2023 11:59 PM", ["%m/%d/%Y"], "2023-12-31"),
    ("31.12.2023 00:00:00", ["%d.%m.%Y %H:%M:%S"], "2023-12-31"),
]


@pytest.mark.parametrize(("cell", "formats", "day"), CELLS)
def test_a_cell_is_a_date(cell: str, formats: list[str], day: str) -> None:
    assert parse(cell, formats) == day
    assert parse(day, formats) == day


@pytest.mark.parametrize(
    "cell", ["", "31/02/2023", "13/13/2023", "31-12-2023", "1 2 2023", "0023-01-01", "99999", "1/2/23"]
)
def test_what_fits_no_format_is_none(cell: str) -> None:
    assert parse(cell, ["%d/%m/%Y", EXCEL]) is None


def test_a_cell_that_fits_two_formats_is_none_unless_they_agree() -> None:
    assert parse("03/04/2023", ["%d/%m/%Y", "%m/%d/%Y"]) is None
    assert parse("04/04/2023", ["%d/%m/%Y", "%m/%d/%Y"]) == "2023-04-04"
    assert parse("25/04/2023", ["%d/%m/%Y", "%m/%d/%Y"]) == "2023-04-25"


@given(
    st.dates(date(1970, 1, 1), date(2068, 12, 31)),
    st.sampled_from(["%d/%m/%Y", "%m-%d-%Y", "%Y%m%d", "%d.%m.%y", "%d %b %Y"]),
)
def test_a_written_date_is_read_back_and_reading_it_again_changes_nothing(day: date, wanted: str) -> None:
    read = parse(day.strftime(wanted), [wanted])
    assert read == day.isoformat()
    assert parse(read, [wanted]) == read


def _column(shape: str, days: list[date] = DAYS) -> dict[str, int]:
    return {day.strftime(shape): 2 for day in days}


@pytest.mark.parametrize(
    "wanted",
    [
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%y",
        "%y/%m/%d",
        "%Y/%m/%d",
        "%Y%m%d",
        "%d %b %Y",
        "%Y年%m月%d日",
        "%Y년 %m월 %d일",
        "%b %d %Y",
    ],
)
def test_the_format_of_a_column_is_proven_by_its_cells(wanted: str) -> None:
    read = guess({"when": _column(wanted)})["when"]
    assert read.recipe.format == (wanted,)
    assert read.certain
    assert read.years == {2022: 2, 2023: 106, 2024: 12}


def test_serial_numbers_are_dates_in_a_column_of_that_name_alone() -> None:
    serials = {str((day - date(1899, 12, 30)).days): 1 for day in DAYS}
    assert guess({"Datum": serials})["Datum"].years == {2022: 1, 2023: 53, 2024: 6}
    assert guess({"Betrag": serials}) == {}


SMALL = [date(2023, month, day) for month in range(1, 13) for day in (2, 5, 11)]


def test_without_proof_other_columns_decide() -> None:
    open_dates = _column("%m/%d/%Y", SMALL)
    read = guess({"a": open_dates, "b": _column("%m-%d-%Y")})["a"]
    assert (read.recipe.format, read.certain) == (("%m/%d/%Y",), True)
    read = guess({"a": open_dates, "b": _column("%d.%m.%Y")})["a"]
    assert (read.recipe.format, read.certain) == (("%d/%m/%Y",), True)


def test_without_dates_that_prove_it_commas_and_currencies_decide_else_it_is_a_question() -> None:
    open_dates = _column("%m/%d/%Y", SMALL)
    for cell in ("12,5", "£5", "R$ 5"):
        columns = {"a": open_dates, "b": {cell: 3}}
        read = guess(columns, guess_numbers(columns))["a"]
        assert (read.recipe.format, read.certain) == (("%d/%m/%Y",), True)
    asked = guess({"a": open_dates})["a"]
    assert "the month is read first" in str(asked.question)
    assert [span.format for span in asked.evidence] == ["%d/%m/%Y", "%m/%d/%Y"]


def test_days_first_and_months_first_in_one_column_leave_open_cells_unread() -> None:
    read = guess({"a": {**_column("%d/%m/%Y", DAYS[:30]), **_column("%m/%d/%Y", DAYS[30:])}})["a"]
    assert set(read.recipe.format) == {"%d/%m/%Y", "%m/%d/%Y"}
    assert read.unread
    assert not read.certain
    slip = guess({"a": {**{day.strftime("%d/%m/%Y"): 20 for day in DAYS}, "02/28/2023": 1}})["a"]
    assert (slip.recipe.format, slip.unread) == (("%d/%m/%Y",), {"02/28/2023": 1})


def test_two_formats_that_no_cell_shares_are_both_read() -> None:
    read = guess({"a": {**_column("%d.%m.%Y", DAYS[:30]), **_column("%Y-%m-%d", DAYS[30:])}})["a"]
    assert set(read.recipe.format) == {"%d.%m.%Y", "%Y-%m-%d"}
    assert read.certain


def test_missing_words_and_dates_of_zeros_are_missing() -> None:
    read = guess({"a": {**_column("%Y%m%d"), "00000000": 9, "n/a": 4}})["a"]
    assert read.missing == {"00000000": 9, "n/a": 4}
    assert read.certain


@pytest.mark.parametrize(
    "cells",
    [["123", "456"], ["2023", "2024"], ["12.05", "13.10"], ["A-1", "B-2"], ["25-34", "35-44"], ["101-202-3033"]],
)
def test_other_columns_are_no_dates(cells: list[str]) -> None:
    assert guess({"a": dict.fromkeys(cells, 5)}) == {}
