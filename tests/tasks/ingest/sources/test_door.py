"""Delimited text as people export it: ``describe`` finds the table, and ingest reads what it says.

The tables are made here; those of others are in ``test_exported_tables``.
"""

import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.intake import SecondFile
from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError
from schemas.terms import Refusal
from tasks.ingest.sources import door, files
from tasks.ingest.sources.door import Described, describe
from tasks.ingest.sources.layout import foot_of, laid_out, usable_names

NAMES = ("Loan No", "Decision", "Race", "Income", "DTI", "Date")
rng = random.Random(7)
ROWS = [
    (
        f"L{1000 + i}",
        rng.choice(("Approved", "Denied", "Withdrawn")),
        rng.choice(("White", "Black", "Asian")),
        str(rng.randint(20_000, 90_000)),
        f"{rng.uniform(5, 60):.1f}",
        f"{rng.randint(1, 12):02}/{rng.randint(1, 28):02}/2023",
    )
    for i in range(120)
]


def text(*, mark: str = ",", names: Sequence[str] = NAMES, rows: Sequence[Sequence[str]] = ROWS) -> str:
    return "".join(mark.join(record) + "\n" for record in ([names, *rows] if names else rows))


def described(place: Path, content: str | bytes, name: str = "loans.csv") -> Described:
    """The description of a file, after it was held against what ingest reads by it."""
    (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    found = describe(place / name)
    raw = files.read(found.source, found.columns)
    assert tuple(files.header(found.source)) == found.columns
    footers = sum(row.reason is Refusal.FOOTER for row in raw.unread)
    assert found.rows == raw.table.num_rows + len(raw.unread) - footers
    assert Source(**found.source.model_dump(mode="json", exclude_unset=True)) == found.source
    return found


def what(found: Described, certain: bool = False) -> list[str]:
    return [evidence.what for evidence in found.evidence if evidence.certain == certain]


def test_a_plain_table_needs_no_question(tmp_path: Path) -> None:
    found = described(tmp_path, text())
    assert (found.columns, found.rows, found.evidence, dict(found.labels)) == (NAMES, 120, (), {})
    expected = Source(kind="csv", path=str(tmp_path / "loans.csv"), intake=found.source.intake)
    assert found.source == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|", "^", "~"])
def test_delimiters_and_line_ends(tmp_path: Path, mark: str, end: str) -> None:
    found = described(tmp_path, text(mark=mark).replace("\n", end))
    assert (found.source.delimiter, found.columns, found.rows) == (mark, NAMES, 120)


def test_decimal_commas_part_no_cells(tmp_path: Path) -> None:
    rows = [(*row[:3], row[3] + ",00", row[4].replace(".", ","), row[5]) for row in ROWS]
    found = described(tmp_path, text(mark=";", rows=rows))
    assert (found.source.delimiter, found.columns) == (";", NAMES)


def test_blanks_part_cells_where_nothing_else_does(tmp_path: Path) -> None:
    names = [name.replace(" ", "_") for name in NAMES]
    assert described(tmp_path, text(mark=" ", names=names)).source.delimiter == " "


@pytest.mark.parametrize(
    ("before", "titles"),
    [
        ("Loan report\nPeriod: 2023, all branches\n\n", ("Loan report", "Period: 2023 | all branches")),
        ("Loan report,,,,,\n,,,,,\n", ("Loan report",)),
        ("sep=,\n", ()),
    ],
    ids=["lines", "padded", "sep"],
)
def test_lines_above_the_header_are_skipped(tmp_path: Path, before: str, titles: tuple[str, ...]) -> None:
    found = described(tmp_path, before + text())
    assert (found.columns, found.rows, found.titles) == (NAMES, 120, titles)
    assert found.source.skip == before.count("\n")
    assert what(found) == (["title"] if titles else [])


@pytest.mark.parametrize(
    "foot",
    [
        "Total,,,6543210,,\n",
        ",,Grand Total,6543210,,\n",
        "\nGesamt;120\n*** Ende ***\n",
        "合計,,,6543210,,\n",
        "\nSource: core banking, extract of 2023\n(c) Bank\n",
        ",,,6543210,33.1,\n",
        ",,,,,\n,,,,,\n",
        "Total général,,,6543210,,\nSource : banque\n",
    ],
)
def test_records_below_the_rows_are_refused_as_a_foot(tmp_path: Path, foot: str) -> None:
    found = described(tmp_path, text() + foot)
    raw = files.read(found.source, found.columns)
    count = len([line for line in foot.splitlines() if line])
    assert (found.rows, found.source.foot, what(found)) == (120, count, ["foot"])
    assert [row.reason for row in raw.unread] == [Refusal.FOOTER] * count
    assert [row.row for row in raw.unread] == list(range(121, 121 + count))


@pytest.mark.parametrize(
    ("line", "reason"),
    [("L99999,Appro", [Refusal.MALFORMED_LINE]), ("L1,Approved,White,1,2,3,4,5", [Refusal.MALFORMED_LINE])],
    ids=["cut short", "too long"],
)
def test_a_row_that_lost_or_gained_cells_is_no_foot(tmp_path: Path, line: str, reason: list[Refusal]) -> None:
    found = described(tmp_path, text() + line)
    raw = files.read(found.source, found.columns)
    assert (found.rows, found.source.foot, [row.reason for row in raw.unread]) == (121, 0, reason)


def test_a_last_row_whose_category_is_called_total_stays_a_row(tmp_path: Path) -> None:
    rows = [(("Total", "Partial")[i % 2], "Approved", str(i)) for i in range(41)]
    found = described(tmp_path, text(names=("Cover", "Decision", "Income"), rows=rows))
    assert (found.rows, found.source.foot) == (41, 0)


def test_of_two_header_records_the_one_with_more_words_names_the_columns(tmp_path: Path) -> None:
    found = described(tmp_path, "X1,X2,X3,X4,X5,X6\n" + text())
    assert (found.columns, found.source.skip, found.rows, what(found)) == (NAMES, 1, 120, ["header_records"])
    assert found.lost_names["X4"] == "Income"


def test_units_below_the_names_become_labels(tmp_path: Path) -> None:
    names = ("LOAN_NUMBER", "DECISION_MADE", "RACE_OF_APPLICANT", "INCOME_USD", "DTI_PCT", "DATE_OF")
    found = described(tmp_path, text(names=names, rows=[("(id)", "", "", "(USD)", "(%)", "(mdy)"), *ROWS]))
    assert (found.columns, found.source.header, found.source.skip, found.rows) == (names, names, 2, 120)
    assert found.labels["INCOME_USD"] == "(USD)"


def test_units_of_some_columns_alone_are_no_row(tmp_path: Path) -> None:
    found = described(tmp_path, text(rows=[("", "", "", "USD", "%", ""), *ROWS]))
    assert (found.columns, found.source.skip, found.rows, what(found)) == (NAMES, 2, 120, ["header_records"])


def below_each_other(rule: str = "", foot: str = "", title: str = "") -> str:
    """The table as a terminal or an old system prints it: cells below each other, some of two words."""
    records = [NAMES, *[(*row[:2], row[2].replace("Black", "Black or other"), *row[3:]) for row in ROWS]]
    widths = [max(len(record[i]) for record in records) for i in range(len(NAMES))]
    lines = [
        "  ".join(
            cell.rjust(w) if i in (3, 4) else cell.ljust(w) for i, (cell, w) in enumerate(zip(r, widths, strict=True))
        )
        for r in records
    ]
    lines[1:1] = ["  ".join(rule * width for width in widths)] if rule else []
    return "".join(
        f"{line.rstrip()}\n" for line in [*([title, ""] if title else []), *lines, *([foot] if foot else [])]
    )


@pytest.mark.parametrize(
    ("parts", "questions"),
    [
        ({}, []),
        ({"rule": "-"}, []),
        ({"rule": "-", "foot": "(120 rows affected)", "title": "Loans of 2023"}, ["title", "foot"]),
    ],
    ids=["plain", "dashes", "report"],
)
def test_cells_below_each_other_are_cells(tmp_path: Path, parts: dict[str, str], questions: list[str]) -> None:
    found = described(tmp_path, below_each_other(**parts), "loans.txt")
    assert (found.columns, found.rows, what(found)) == (NAMES, 120, questions)
    raw = files.read(found.source, ("Race", "Income"))
    expected = [(row[2].replace("Black", "Black or other"), row[3]) for row in ROWS]
    assert list(zip(*(column.to_pylist() for column in raw.table.columns), strict=True)) == expected


def test_a_text_over_the_place_of_a_cell_refuses_its_line(tmp_path: Path) -> None:
    lines = below_each_other().splitlines(keepends=True)
    lines[60] = "a line that was typed over the table by hand and has words everywhere\n"
    found = described(tmp_path, "".join(lines), "loans.txt")
    raw = files.read(found.source, found.columns)
    assert [(row.row, row.reason) for row in raw.unread] == [(60, Refusal.MALFORMED_LINE)]


def test_one_long_line_among_many_short_ones_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "loans.txt"
    path.write_text("".join(["a  b  c\n"] * 20_000 + ["a" + " " * 500_000 + "b  c\n"]))
    tracemalloc.start()
    try:
        describe(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * 10**6


def test_questions_of_a_survey_name_the_columns_in_place_of_their_numbers(tmp_path: Path) -> None:
    asked = ("Loan number", "What was the decision?", "Which race?", "Income in dollars", "Debt ratio", "Date of it")
    found = described(tmp_path, "Q1,Q2,Q3,Q4,Q5,Q6\n" + text(names=asked))
    assert (found.columns, found.rows) == (asked, 120)


def test_years_as_names_are_a_header(tmp_path: Path) -> None:
    rows = [(f"L{i}", ("White", "Black")[i % 2], str(100 + i), str(200 + i), str(900 - i)) for i in range(60)]
    found = described(tmp_path, text(names=("id", "race", "2021", "2022", "2023"), rows=rows))
    assert (found.columns, found.rows) == (("id", "race", "2021", "2022", "2023"), 60)


@pytest.mark.parametrize("rows", [ROWS, [(row[2], row[1], "MF"[i % 2]) for i, row in enumerate(ROWS)]])
def test_columns_without_a_header_get_numbers(tmp_path: Path, rows: Sequence[Sequence[str]]) -> None:
    found = described(tmp_path, text(names=(), rows=rows))
    assert found.columns == tuple(f"column_{i}" for i in range(1, len(rows[0]) + 1)) == found.source.header
    assert (found.rows, what(found)) == (120, ["no_header"])


def test_a_table_of_words_alone_keeps_its_header(tmp_path: Path) -> None:
    rows = [(row[2], "MF"[i % 2], row[1]) for i, row in enumerate(ROWS)]
    assert described(tmp_path, text(names=("Race", "Sex", "Outcome"), rows=rows)).rows == 120


def test_names_are_made_usable_and_the_spelling_stays_a_label(tmp_path: Path) -> None:
    names = (" Loan No ", "Décision".replace("é", "é"), "Income", "Income", "", '"DTI\n %"')
    found = described(tmp_path, text(names=names))
    assert found.columns == ("Loan No", "Décision", "Income", "Income_2", "column_5", "DTI %")
    assert (found.labels["Loan No"], found.labels["Income_2"]) == (" Loan No ", "Income")
    assert found.source.header == ()
    assert what(found, certain=True) == ["names"]


@given(st.lists(st.text(alphabet=" aAé_2\n", max_size=4), min_size=1, max_size=8))
@settings(max_examples=examples(200))
def test_usable_names_are_different_and_stay_as_they_are(names: list[str]) -> None:
    once = usable_names(names)
    assert len(set(once)) == len(once) == len(names)
    assert all(once)
    assert usable_names(once) == once


def test_comments_between_the_rows(tmp_path: Path) -> None:
    lines = text().splitlines(keepends=True)
    found = described(tmp_path, "".join(["# export\n", *lines[:40], "# page 2\n", *lines[40:]]))
    assert (found.source.comment, found.columns, found.rows) == ("#", NAMES, 120)


@pytest.mark.parametrize("mark", [",", "\t"])
@pytest.mark.parametrize("title", ["", "Loans of 2023\n"])
def test_names_on_each_page_of_a_report_are_no_rows(tmp_path: Path, mark: str, title: str) -> None:
    lines = text(mark=mark).splitlines(keepends=True)
    found = described(tmp_path, "".join([title, *lines[:40], lines[0], *lines[40:80], lines[0], *lines[80:]]))
    assert (found.columns, found.rows) == (NAMES, 120)
    assert "repeated_header" in what(found)


def test_cells_of_several_lines(tmp_path: Path) -> None:
    rows = [(row[0], f'"said ""yes"",\nthen left {i}"', row[1]) for i, row in enumerate(ROWS)]
    found = described(tmp_path, text(names=("Loan No", "Note", "Decision"), rows=rows))
    assert (found.source.multiline, found.source.quote, found.rows) == (True, "double", 120)


def test_a_quote_that_is_never_closed_is_a_letter(tmp_path: Path) -> None:
    rows = [*ROWS[:50], ("L7", "Approved", '"White', "5", "6", "01/01/2023"), *ROWS[50:]]
    found = described(tmp_path, text(rows=rows))
    assert (found.source.quote, found.rows, what(found)) == ("none", 121, ["quotes"])


def test_inches_enclose_no_cells(tmp_path: Path) -> None:
    rows = [(row[0], '5" pipe', row[1]) for row in ROWS]
    found = described(tmp_path, text(names=("Loan No", "Size", "Decision"), rows=rows))
    assert (found.source.quote, found.source.multiline) == ("double", False)


def test_blank_lines_around_the_header(tmp_path: Path) -> None:
    head, _, rest = text().partition("\n")
    found = described(tmp_path, f"\n\n{head}\n\n{rest}\nL1,Approved")
    raw = files.read(found.source, found.columns)
    assert (found.columns, found.rows) == (NAMES, 121)
    assert [row.row for row in raw.unread] == [121]
    shortened = found.source.model_copy(update={"skip": 0})
    assert files.read(shortened, found.columns).unread == raw.unread


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("", DataQualityError, "is empty"),
        ("\n \n", DataQualityError, "is empty"),
        (",".join(NAMES) + "\n", DataQualityError, "has a header and no row"),
        ("a\n1\n2\n", SpecError, "has one column"),
        ("<!DOCTYPE html>\n<table>", DataQualityError, "is a page"),
        ("%PDF-1.7", DataQualityError, "is a PDF"),
        ("GIF89a", DataQualityError, "is a picture"),
        (b"\x80\x04\x95 secrets", DataQualityError, "a pickle, which is never opened"),
        ("a,b\n1,\0\n", DataQualityError, "holds NUL bytes"),
    ],
)
def test_what_is_no_table_is_named(tmp_path: Path, content: str | bytes, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        described(tmp_path, content)


def test_a_large_file_is_told_by_its_start_and_its_end(tmp_path: Path) -> None:
    rows = [(f"L{i}", *ROWS[i % 120][1:]) for i in range(60_000)]
    found = described(tmp_path, "Report\n" + text(mark="\t", rows=rows) + "Total\t\t\t1\t\t\n")
    assert (found.rows, found.source.skip, found.source.foot, found.columns) == (60_000, 1, 1, NAMES)


def test_the_second_file_is_read_by_the_same_door(tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_bytes("Leute\nNR;Geschlecht\n007;weiblich\n008;männlich\n".encode("cp1252"))
    file = SecondFile.model_validate(
        {"path": str(tmp_path / "people.txt"), "key": {"this": "Loan No", "other": "NR"}, "columns": ["Geschlecht"]}
    )
    source = Source(kind="csv", path="loans.csv")
    assert door.second(file, source).table.to_pydict() == {"NR": ["007", "008"], "Geschlecht": ["weiblich", "männlich"]}
    wrong = file.model_copy(update={"columns": ("Geschlect",)})
    with pytest.raises(DataQualityError, match=r"has no column 'Geschlect'; did you mean 'Geschlecht'\?"):
        door.second(wrong, source)


def test_a_spec_without_an_intake_reads_names_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "loans.csv").write_text(" a ,b\n1,2\n")
    assert files.header(Source(kind="csv", path=str(tmp_path / "loans.csv"))) == [" a ", "b"]


@given(st.lists(st.lists(st.sampled_from(["", "a", "Total", "12", "L7", "2023", "x y"]), max_size=4), max_size=12))
@settings(max_examples=examples(300))
def test_a_layout_lies_within_the_records(records: list[list[str]]) -> None:
    place = laid_out(records)
    if place is None:
        return
    assert 0 <= place.first < len(records)
    assert place.first <= place.last + 1 <= len(records)
    assert place.header is None or place.header < place.first
    assert len(records[place.first]) == place.width >= 2
    assert foot_of(records, place.width, place.judges) <= len(records)


def test_rows_that_come_in_batches_are_those_of_the_whole_table(tmp_path: Path) -> None:
    content = text() + "L9,Approved\n" + text(names=()) + "Total;,,,,,\nSource: made up\n"
    found = described(tmp_path, content)
    source = found.source.model_copy(update={"path": (str(tmp_path / "loans.csv"),) * 2})
    raw, unread = files.read(source, found.columns), []
    batches = list(files.batches(source, found.columns, unread))
    assert pa.Table.from_batches(batches).combine_chunks() == raw.table.combine_chunks()
    assert unread == list(raw.unread)
    assert {row.reason for row in unread} == {Refusal.FOOTER, Refusal.MALFORMED_LINE}


def test_rows_of_parquet_come_in_batches(tmp_path: Path) -> None:
    pq.write_table(
        pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))), tmp_path / "loans.parquet"
    )
    source = describe(tmp_path / "loans.parquet").source
    batches = list(files.batches(source, NAMES[:3], []))
    assert pa.Table.from_batches(batches).combine_chunks() == files.read(source, NAMES[:3]).table.combine_chunks()
