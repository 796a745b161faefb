"""Every line of a file is a row or a broken line, with its number; what cannot be told apart is an error."""

import gzip
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from conftest import examples
from hmda_files import BY_NAME, fixed_text, rows_of, text_of, write
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError
from tasks.ingest.hmda import conversion
from tasks.ingest.hmda.conversion import broken_rows, open_raw, source_rows
from tasks.ingest.hmda.layouts import recognise

LAYOUT = BY_NAME["historic_codes"]


def read(path: Path) -> tuple[list[dict[str, object]], list[int]]:
    """Rows of ``raw`` with their numbers in the file, and the numbers of the broken ones."""
    recognised = recognise(path, path.parent / "scratch")
    with duckdb.connect() as connection:
        cut = open_raw(connection, recognised)
        table = connection.sql("SELECT * FROM raw").to_arrow_table()
        gone = broken_rows(connection, recognised, cut, table.num_rows)
    numbers = source_rows(table["source_row"].to_numpy(), cut, gone)
    rows = [{**row, "source_row": int(n)} for row, n in zip(table.to_pylist(), numbers, strict=True)]
    return rows, gone.tolist()


def lines_of(rows: int) -> list[str]:
    return text_of(rows_of(LAYOUT, 2012, rows), LAYOUT.columns).splitlines(keepends=True)


@settings(deadline=None, max_examples=examples(30))
@given(st.sets(st.integers(1, 40), max_size=12), st.booleans())
def test_rows_keep_their_numbers_whatever_is_broken(
    tmp_path_factory: pytest.TempPathFactory, gone: set[int], windows: bool
) -> None:
    header, *body = lines_of(40)
    text = [header, *(f"2012,x{',' * i}\n" if i in gone else line for i, line in enumerate(body, start=1))]
    path = tmp_path_factory.mktemp("lines") / "a.csv"
    path.write_text("".join(text), newline="\r\n" if windows else "\n")
    rows, found = read(path)
    assert found == sorted(gone)
    kept = [i for i in range(1, 41) if i not in gone]
    assert [row["source_row"] for row in rows] == kept
    assert [row["sequence_number"] for row in rows] == [
        str(i - 1) for i in kept
    ]  # what the row itself says of its place


def test_a_truncated_last_line_is_counted_and_numbered(tmp_path: Path) -> None:
    text = "".join(lines_of(30))
    (tmp_path / "a.csv").write_text(text[: text.rindex("\n", 0, -1) + 40])
    rows, gone = read(tmp_path / "a.csv")
    assert (len(rows), gone) == (29, [30])


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    header, first, second = lines_of(2)
    (tmp_path / "a.csv").write_text(header + first + second + "\n\n")
    assert [row["source_row"] for row in read(tmp_path / "a.csv")[0]] == [1, 2]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([1], "line 2 is not closed within 100 lines; mend the file, or fetch it again"),
        ([100], "line 101 is not closed within 100 lines"),
        ([100, 300], "line 101 is not closed within 100 lines"),
        ([100, 102], "line 101 is closed in line 103; cells of several lines are not read here"),
        ([399], "line 400 is not closed by the end of the file"),
    ],
)
@pytest.mark.parametrize("packing", ["plain", "gz"])
def test_a_stray_quote_is_named_by_its_line(tmp_path: Path, rows: list[int], told: str, packing: str) -> None:
    lines = lines_of(400)
    for row in rows:
        lines[row] = lines[row].replace("0000013044", '"0000013044')
    text = "".join(lines).encode()
    (tmp_path / "a.csv").write_bytes(gzip.compress(text) if packing == "gz" else text)
    with pytest.raises(DataQualityError, match=f"a.csv: the quote that opens in {told}"):
        read(tmp_path / "a.csv")


def test_a_quote_within_a_cell_is_a_letter(tmp_path: Path) -> None:
    lines = lines_of(300)
    lines[100] = lines[100].replace("0000013044", '13" 044')
    (tmp_path / "a.csv").write_text("".join(lines))
    rows, gone = read(tmp_path / "a.csv")
    assert (len(rows), gone) == (300, [])
    assert rows[99]["respondent_id"] == '13" 044'


def test_lines_of_fixed_width_have_no_quotes(tmp_path: Path) -> None:
    rows = rows_of(BY_NAME["nara_fixed"], 2006, 300)
    rows[100][1] = '"' + rows[100][1][1:]
    (tmp_path / "a.dat").write_text(fixed_text(rows))
    assert len(read(tmp_path / "a.dat")[0]) == 300


@pytest.mark.parametrize(("most", "packing"), [(1, "plain"), (4, "plain"), (4, "gz")])
def test_rows_that_are_not_those_counted_are_an_error(
    tmp_path: Path, most: int, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "LEAST_BYTES", 1000)
    text = "".join(lines_of(30)).encode()
    (tmp_path / "a.csv").write_bytes(gzip.compress(text) if packing == "gz" else text)
    recognised = recognise(tmp_path / "a.csv", tmp_path / "scratch")
    recognised = replace(recognised, lines=recognised.lines + 1)
    with duckdb.connect() as connection:
        cut = open_raw(connection, recognised, most)
        rows = connection.sql("SELECT * FROM raw").to_arrow_table().num_rows
        with pytest.raises(DataQualityError, match=r"has 31 lines .*, and 30 can be separated"):
            broken_rows(connection, recognised, cut, rows)


def test_fixed_width_gives_the_cells_between_the_stops(tmp_path: Path) -> None:
    write(tmp_path / "a.dat", "nara_fixed", 2006)
    rows, gone = read(tmp_path / "a.dat")
    assert gone == []
    assert [row["sequence_number"] for row in rows] == ["0", "1", "2", "3", "4"]
    first = {name: rows[0][name] for name in ("as_of_year", "respondent_id", "census_tract_number", "hoepa_status")}
    assert first == {
        **{"as_of_year": "2006", "respondent_id": "0000013044", "census_tract_number": "0029.02", "hoepa_status": "2"}
    }


def test_a_short_line_of_fixed_width_is_broken(tmp_path: Path) -> None:
    text = fixed_text(rows_of(BY_NAME["nara_fixed"], 2006, 9))
    cut = text.splitlines(keepends=True)
    (tmp_path / "a.dat").write_text("".join([*cut[:3], cut[3][:50] + "\n", *cut[4:8], cut[8][:20]]))
    rows, gone = read(tmp_path / "a.dat")
    assert gone == [4, 9]
    assert [row["source_row"] for row in rows] == [1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize("stripped", [False, True])
def test_an_empty_last_cell_of_fixed_width_breaks_no_line(tmp_path: Path, stripped: bool) -> None:
    rows = rows_of(BY_NAME["nara_fixed"], 2006, 4, {"applicant_income_000s": ""})
    rows[1][-1] = ""
    lines = fixed_text(rows).splitlines(keepends=True)
    blank = " " * (len(lines[0]) - 1) + "\n"
    lines[1] = lines[1].rstrip() + "\n" if stripped else lines[1]
    (tmp_path / "a.dat").write_text("".join([*lines, blank]))
    found, gone = read(tmp_path / "a.dat")
    assert gone == ([2] if stripped else [])  # of a line that was cut nobody knows what it held
    assert [row["sequence_number"] for row in found] == (["0", "2", "3"] if stripped else ["0", None, "2", "3"])


def test_a_cell_in_quotes_keeps_its_commas(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "historic_slice", 2010, changed={"msamd_name": "Chicago, Joliet, Naperville - IL"})
    assert read(tmp_path / "a.csv")[0][0]["msamd_name"] == "Chicago, Joliet, Naperville - IL"


def test_latin_1_and_utf_8_give_the_same_letters(tmp_path: Path) -> None:
    text = text_of(rows_of(BY_NAME["historic_labels"], 2010, changed={"county_name": "Doña Ana County"}))
    for encoding in ("latin-1", "utf-8"):
        (tmp_path / "a.csv").write_text(text, encoding=encoding)
        assert read(tmp_path / "a.csv")[0][0]["county_name"] == "Doña Ana County"
