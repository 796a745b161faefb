"""Records of delimited text are counted over the bytes and by the parser: no row is lost unnoticed."""

import csv
import gzip
import io
import tempfile
import time
from pathlib import Path

import pytest
from conftest import examples, loans, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError
from schemas.terms import ExitCode
from tasks.ingest.registry import check_columns
from tasks.ingest.sources import containers, delimited_text, files
from tasks.ingest.sources.delimited_text import Dialect, Records, whole_lines
from tasks.ingest.stage import ingest, ingest_settings

TEXT = st.text('a,"\n\r', max_size=40)
LINES = ["a,b", '"a\nb",c', '"a""\n\n",', '5" pipe,x', ",", '""""\n', ""]
UNCLOSED = r"loans\.csv: the quote that opens in line 101 is not closed within 100 lines; "


def parsed(text: str, quoting: bool = True) -> list[list[str]]:
    """The records by Python's parser, which leaves an open quote unmentioned."""
    how = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    return [row for row in csv.reader(io.StringIO(text, newline=""), quoting=how) if row]


def open_at_end(text: str) -> bool:
    return parsed(text + "\nz")[-1] != ["z"]


def over_lines(rows: list[list[str]]) -> bool:
    return any("\n" in cell or "\r" in cell for row in rows for cell in row)


def counted(text: bytes, size: int = 2**20, **how: bool) -> Records:
    records = Records("loans.csv", Dialect(b",", **how))
    for chunk in whole_lines(text[i : i + size] for i in range(0, len(text), size)):
        records.add(chunk)
    records.finish()
    return records


def lines_of(place: Path) -> list[str]:
    return (place / "loans.csv").read_text().splitlines()[:401]


def written(place: Path, lines: list[str], end: str = "\n") -> None:
    (place / "loans.csv").write_text(end.join([*lines, ""]), newline="")


def rows_in(place: Path, **overrides: str) -> int | None:
    return ingest.function(settings=ingest_settings(spec_of(place, **overrides))).rows_in


def stray(lines: list[str], *rows: int) -> list[str]:
    """The lines with a quote at the start of these rows' first cell, counted from 1 below the header."""
    return [f'"{line}' if i in rows else line for i, line in enumerate(lines)]


@settings(deadline=None)
@given(TEXT, st.integers(1, 9), st.booleans())
def test_the_count_is_that_of_pythons_parser_whatever_the_blocks(text: str, size: int, quoting: bool) -> None:
    if quoting and open_at_end(text):
        with pytest.raises(DataQualityError, match="is not closed by the end of the file"):
            counted(text.encode(), size, multiline=True)
        return
    records = counted(text.encode(), size, quoting=quoting, multiline=True)
    assert records.count == len(parsed(text, quoting))
    assert records.lines == len(io.StringIO(text, newline="").readlines())


@settings(deadline=None)
@given(TEXT, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["none", "double"]), st.booleans())
def test_every_record_is_a_row_a_malformed_row_or_an_error(text: str, end: str, quote: str, multiline: bool) -> None:
    text = f"x,y{end}{text}"
    wanted = parsed(text, quote == "double")[1:]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "loans.csv"
        path.write_bytes(text.encode())
        source = Source(kind="csv", path=str(path), quote=quote, multiline=multiline)
        if quote == "double" and (open_at_end(text) or (over_lines(wanted) and not multiline)):
            with pytest.raises(DataQualityError, match="the quote that opens in line"):
                files.read(source, ["x", "y"])
            return
        raw = files.read(source, ["x", "y"])
    good = [i for i, row in enumerate(wanted, start=1) if len(row) == 2]
    assert [list(row.values()) for row in raw.table.to_pylist()] == [wanted[i - 1] for i in good]
    assert raw.source_row == good
    assert [each.row for each in raw.unread] == [i for i in range(1, len(wanted) + 1) if i not in good]


@settings(deadline=None, max_examples=examples(50))
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=40))
def test_rows_across_the_parsers_blocks_are_those_within_one(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_text, "_TEXT_BLOCK", 16)
        path = Path(place) / "loans.csv"
        path.write_bytes("\n".join(["x,y", *lines]).encode())
        raw = files.read(Source(kind="csv", path=str(path), multiline=True), ["x", "y"])
    wanted = parsed("\n".join(["x,y", *lines]))[1:]
    assert [list(row.values()) for row in raw.table.to_pylist()] == [row for row in wanted if len(row) == 2]
    assert raw.table.num_rows + len(raw.unread) == len(wanted)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("multiline", ["false", "true"])
def test_a_stray_quote_in_row_100_of_400_ends_the_run(place: Path, end: str, multiline: str) -> None:
    written(place, stray(lines_of(place), 100), end)
    with pytest.raises(DataQualityError, match=UNCLOSED) as error:
        rows_in(place, source__multiline=multiline)
    assert 'escape it ("") or set source.quote: none' in str(error.value)
    assert error.value.exit_code == ExitCode.DATA_QUALITY == 4


@pytest.mark.parametrize("multiline", ["false", "true"])
def test_a_stray_quote_that_another_closes_200_lines_later_ends_the_run(place: Path, multiline: str) -> None:
    written(place, stray(lines_of(place), 100, 300))
    with pytest.raises(DataQualityError, match=UNCLOSED):
        rows_in(place, source__multiline=multiline)


def test_a_stray_quote_that_leaves_51_of_200_rows_ends_the_run(place: Path) -> None:
    written(place, stray(lines_of(place)[:201], 52))
    with pytest.raises(DataQualityError, match=r"the quote that opens in line 53 is not closed within 100 lines"):
        rows_in(place)


def test_a_stray_quote_near_the_end_is_named(place: Path) -> None:
    written(place, stray(lines_of(place), 399))
    with pytest.raises(DataQualityError, match=r"opens in line 400 is not closed by the end of the file; escape it"):
        rows_in(place)


def test_quotes_are_letters_where_the_spec_says_so(place: Path) -> None:
    written(place, stray(lines_of(place), 100, 300))
    assert rows_in(place, source__quote="none") == 400


@pytest.mark.parametrize("skip", [0, 2])
def test_a_cell_of_several_lines_is_read_only_where_the_spec_says_so(place: Path, skip: int) -> None:
    lines = lines_of(place)
    lines[7] = lines[7].replace("refinance", '"buy"').replace("buy", '"buy\r\nand ""more"""').replace('""buy', '"buy')
    lines[7] = lines[7].replace('"""",', '""",')
    first = ['a title, of "', "more"][:skip]
    written(place, [*first, *lines[:3], '# a note with " in it', *lines[3:]])
    how = {"source__comment": "'#'", "source__skip": str(skip)}
    told = rf"opens in line {9 + skip} is closed in line {10 + skip}; a cell of several lines needs source\.multiline"
    with pytest.raises(DataQualityError, match=told):
        rows_in(place, **how)
    assert rows_in(place, **how, source__multiline="true") == 400


@pytest.mark.parametrize(
    ("cell", "told"),
    [("x\n" * 99 + "x", None), ("x\n" * 100 + "x", "100 lines"), ("x" * 64_000 + "\n" * 2, "64 kB")],
    ids=["100 lines", "101 lines", "64 kB"],
)
def test_a_cell_is_so_long_at_most(place: Path, cell: str, told: str | None) -> None:
    text = f'x,y\n1,2\n"{cell}",2\n3,4\n'
    (place / "loans.csv").write_text(text)
    source = Source(kind="csv", path=str(place / "loans.csv"), multiline=True)
    if told is None:
        assert files.read(source, ["x"]).table.num_rows == 3
    else:
        with pytest.raises(DataQualityError, match=f"line 3 is not closed within {told}"):
            files.read(source, ["x"])


def test_a_long_cell_of_one_line_is_no_stray_quote(place: Path) -> None:
    (place / "loans.csv").write_text('x,y\n"' + "a" * 3_000_000 + '",2\n3,4\n')  # longer than the parser's block
    raw = files.read(Source(kind="csv", path=str(place / "loans.csv")), ["x", "y"])
    assert [len(cell) for cell in raw.table["x"].to_pylist()] == [3_000_000, 1]


@pytest.mark.parametrize("text", ['\n\r\n"x\nor z",y\n1,2\n', '\ufeff"x\nor z",y\n\n1,2'])
def test_a_header_may_hold_a_line_end_too(place: Path, text: str) -> None:
    (place / "loans.csv").write_text(text, newline="")
    source = Source(kind="csv", path=str(place / "loans.csv"), multiline=True)
    assert files.header(source) == ["x\nor z", "y"]
    assert files.read(source, ["y"]).table.to_pydict() == {"y": ["2"]}
    with pytest.raises(DataQualityError, match=r"needs source\.multiline: true"):
        files.header(source.model_copy(update={"multiline": False}))


def test_a_parser_that_loses_a_row_is_noticed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = delimited_text.pacsv.read_csv
    monkeypatch.setattr(delimited_text.pacsv, "read_csv", lambda *a, **k: read(*a, **k).slice(1))
    with pytest.raises(DataQualityError, match=r"has 500 records below its header, and 499 could be separated"):
        rows_in(place)


def packed(place: Path, content: bytes) -> Source:
    (place / "loans.csv.gz").write_bytes(gzip.compress(content))
    return Source(kind="csv", path=str(place / "loans.csv.gz"))


def test_a_line_of_more_than_16_mb_is_refused(place: Path) -> None:
    content = b"x,y\n" + b"1,2\n" * 400 + b"3," + b"4" * 16_000_000 + b"\n5,6\n"
    with pytest.raises(DataQualityError, match=r"^loans\.csv\.gz: line 402 is longer than 16 MB; is it a table\?$"):
        files.read(packed(place, content), ["x"])


def test_a_line_that_never_ends_is_stopped_when_16_mb_are_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = packed(place, b"0" * 60_000_000)
    read: list[int] = []
    check = containers.check_size
    monkeypatch.setattr(containers, "check_size", lambda name, n, *rest: (read.append(n), check(name, n, *rest))[1])
    with pytest.raises(DataQualityError, match=r"line 1 is longer than 16 MB"):
        files.header(source.model_copy(update={"comment": "0"}))
    assert max(read) < 20_000_000


def test_a_bomb_is_stopped_at_the_limits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = packed(place, b"x,y\n" + b"1,2\n" * 2_000_000)
    assert files.read(source, ["x"]).table.num_rows == 2_000_000  # below the bytes that are free
    monkeypatch.setattr(containers, "FREE_BYTES", 4_000_000)
    with pytest.raises(DataQualityError, match=r"loans\.csv\.gz unpacks to more than 200 times its size"):
        files.read(source, ["x"])
    with pytest.raises(DataQualityError, match=r"holds more than 3,000,000 bytes of text, .* source\.maximum_bytes"):
        files.read(source.model_copy(update={"maximum_bytes": 3_000_000}), ["x"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(b"x,y\n1,2\n" * 5000)[:-30], r"could not be read as a table"),
        (gzip.compress(b"x,y\n1,\x002\n"), r"holds NUL bytes, and text has none: .* UTF-16\?"),
        (gzip.compress("x,y\n1,2\n".encode("utf-16")), r"is UTF-16 text"),
        (gzip.compress("x,y\n1,2\n".encode("utf-16-le")), r"holds NUL bytes"),
        (gzip.compress(b"x,y,x\n1,2,3\n"), r"the header names \['x'\] more than once"),
        (gzip.compress(b"\xef\xbb\xbf\n\n"), r"is empty"),
        (b"no archive", r"could not be read as a table"),
    ],
    ids=["cut", "nul", "utf-16", "utf-16 without mark", "two of one name", "blank", "not packed"],
)
def test_what_is_no_table_is_named(place: Path, content: bytes, told: str) -> None:
    (place / "loans.csv.gz").write_bytes(content)
    source = Source(kind="csv", path=str(place / "loans.csv.gz"))
    with pytest.raises(DataQualityError, match=told):
        files.read(source, files.header(source))


def test_a_header_of_too_many_names_is_refused_soon(place: Path) -> None:
    source = packed(place, b"," * 4_000_000 + b"\n1\n")
    began = time.process_time()
    with pytest.raises(DataQualityError, match=r"has 4,000,001 columns in its first row, and at most 10,000 are read"):
        files.header(source)
    assert time.process_time() - began < 5


def test_a_header_of_one_name_asks_for_the_delimiter(place: Path) -> None:
    loans().to_csv(place / "loans.csv", index=False, sep=";")
    with pytest.raises(SpecError, match=r"no column 'approved'; .*; is source\.delimiter right\?"):
        check_columns(spec_of(place))


@pytest.mark.parametrize("key", ["quote: none", "multiline: true", "maximum_bytes: 5"])
def test_the_settings_are_of_delimited_text_alone(key: str) -> None:
    name, value = key.split(": ")
    with pytest.raises(ValueError, match=f"`{name}` belongs to delimited text, not to parquet"):
        Source.model_validate({"kind": "parquet", "path": "a.parquet", name: value})


@pytest.mark.parametrize(
    ("encoding", "words"), [("cp932", "check source.encoding"), ("utf-8", "is not utf-8 text; set")]
)
def test_a_wrong_encoding_is_named(place: Path, encoding: str, words: str) -> None:
    (place / "loans.csv").write_bytes("Nº,y\n1,2\n".encode("cp1252"))
    source = Source.model_validate({"kind": "csv", "path": str(place / "loans.csv"), "encoding": encoding})
    with pytest.raises(DataQualityError, match=words):
        files.read(source, ["Nº", "y"])
