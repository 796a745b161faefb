"""Files of HMDA become validated Parquet: every row is written or refused under its own number, however it is read."""

import gzip
import shutil
import tracemalloc
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SHARED, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError, InfrastructureError, SuiteError
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_REFUSALS
from tasks.ingest.hmda import conversion
from tasks.ingest.hmda.conversion import check, convert
from tasks.ingest.hmda.layouts import BY_NAME, recognise

LABELS = SHARED / "data" / "hmda_lar_2010_2017_labels"
TRAVIS = SHARED / "data" / "hmda_lar_2024_travis_cu" / "travis_cu_2024_hmda.csv"
TEXAS = SHARED / "data" / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz"
COLUMNS = BY_NAME["public_lar"].columns
USUAL = {
    **{"activity_year": "2022", "lei": "549300GAX7IKJUKCJE72", "state_code": "CA", "action_taken": "1"},
    **{"loan_type": "1", "loan_purpose": "1", "applicant_race_1": "5", "income": "85", "purchaser_type": "0"},
}


def line(amount, **cells):
    """A line of the public register; the loan amount tells it from the others."""
    said = {**USUAL, "loan_amount": str(amount), **cells}
    return "|".join(said.get(name, "") for name in COLUMNS)


def write(place, lines, end="\n", encoding="utf-8"):
    file = place / "lar.txt"
    file.write_bytes(end.join(["|".join(COLUMNS), *lines, ""]).encode(encoding))
    return file


def converted(file, target=None):
    target = target or file.parent / "out"
    return convert(recognise(file, file.parent / "scratch"), target), target


def numbers(target):
    """Place in the file -> loan amount, of the applications; and place -> reason, of the refusals."""
    rows = pq.read_table(target / "applications.parquet", columns=["source_row", "loan_amount_usd"])
    refused = pq.read_table(target / "refusals.parquet")
    assert refused.schema.names == HMDA_REFUSALS.schema().names
    return dict(zip(*rows.to_pydict().values(), strict=True)), dict(
        zip(refused["source_row"].to_pylist(), refused["reason"].to_pylist(), strict=True)
    )


@pytest.mark.data("data/hmda_lar_2010_2017_labels")
@pytest.mark.parametrize(
    "year", [2010, *(pytest.param(year, marks=pytest.mark.long) for year in range(2011, 2017)), 2017]
)
def test_the_old_years(year, tmp_path):
    file = LABELS / f"hmda_lar_{year}_raw_rand_lm100.csv"
    told = convert(recognise(file, tmp_path), tmp_path)
    assert (told.rows_in, told.rows, told.refused, told.years) == (100, 100, {}, {year: 100})
    assert (told.unknown_codes, told.flags) == ({}, {})
    rows = pq.read_table(tmp_path / "applications.parquet").to_pandas().sort_values("source_row")
    raw = duckdb.read_csv(str(file), all_varchar=True).df()
    assert rows["loan_amount_usd"].tolist() == (raw["loan_amount_000s"].astype(float) * 1000).tolist()
    assert rows["state_code"].fillna("").tolist() == raw["state_abbr"].fillna("").tolist()
    assert rows["action_taken"].notna().all()
    assert rows["derived_race"].notna().all()
    assert rows["lender_id"].isna().sum() == raw["respondent_id"].isna().sum()
    assert rows["income_usd"].isna().sum() == rows["blank"].fillna("").str.contains("income_usd").sum()


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_a_year_of_a_lender(tmp_path):
    told = convert(recognise(TRAVIS, tmp_path), tmp_path)
    assert (told.rows_in, told.rows, told.refused, told.years) == (1442, 1442, {}, {2024: 1442})
    assert told.flags == {"income_not_positive": 4}
    rows = pq.read_table(tmp_path / "applications.parquet").to_pandas()
    absent = rows["lender_credits"].isna()
    blank = rows["blank"].fillna("").str.split(",").map(lambda names: "lender_credits" in names)
    assert (absent.sum(), (absent & blank).sum(), (absent & ~blank).sum()) == (1405, 471, 934)
    assert rows["tract_fips11"].str.len().eq(11).all()
    assert (rows["lien_status"] == "2").sum() == 1132


@pytest.mark.data("data/hmda_2022_tx_50k")
def test_a_state_that_came_with_eleven_columns(tmp_path):
    told = convert(recognise(TEXAS, tmp_path), tmp_path)
    assert (told.rows_in, told.rows, told.refused, told.years) == (50_000, 50_000, {}, {})
    assert told.unknown_codes == {}  # race 5.0 is race 5
    rows = pq.read_table(tmp_path / "applications.parquet").to_pandas()
    assert (rows["debt_to_income_ratio"] == "Exempt").sum() == 960
    assert rows["activity_year"].isna().all()


def test_every_row_is_written_or_refused(tmp_path):
    lines = [
        line(5000),
        line("12x"),
        "a|b",
        line(15000, purchaser_type="99"),
        line(25000, loan_term="1"),
        line(35000)[:-9],
    ]
    told, target = converted(write(tmp_path, lines))
    rows, refused = numbers(target)
    assert rows == {1: 5000.0, 4: 15000.0, 5: 25000.0}
    assert refused == {2: "not_a_number", 3: "malformed_line", 6: "malformed_line"}  # the last is cut short
    assert (told.rows_in, told.rows, told.refused) == (6, 3, {"not_a_number": 1, "malformed_line": 2})
    assert (told.unknown_codes, told.flags) == ({"purchaser_type_raw": {"99": 1}}, {"loan_term_one_month": 1})
    said = pq.read_table(target / "refusals.parquet").to_pylist()[0]
    assert said == {"source_row": 2, "reason": "not_a_number", "column": "loan_amount_usd", "detail": "12x"}
    assert sorted(path.name for path in target.iterdir()) == ["applications.parquet", "refusals.parquet"]


KINDS = {"good": lambda i: line(i), "bad": lambda i: line(i, income="?"), "broken": lambda i: f"{i}|x"}


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["good"] * 6 + ["bad", "broken"]), min_size=8, max_size=60),
    st.integers(1, 5),
    st.sampled_from(["\n", "\r\n"]),
)
def test_rows_keep_their_numbers_however_the_file_is_cut(tmp_path, monkeypatch, kinds, count, end):
    lines = [line(0), line(0), line(0), *(KINDS[kind](i) for i, kind in enumerate(kinds, start=4))]
    monkeypatch.setattr(conversion, "LEAST_BYTES", 200)
    monkeypatch.setattr(conversion, "_threads", lambda: count)
    told, target = converted(write(tmp_path, lines, end))
    rows, refused = numbers(target)
    assert {n: amount for n, amount in rows.items() if n > 3} == {
        i: float(i) for i, kind in enumerate(kinds, start=4) if kind == "good"
    }
    reasons = {"bad": "not_a_number", "broken": "malformed_line"}
    assert refused == {i: reasons[kind] for i, kind in enumerate(kinds, start=4) if kind != "good"}
    assert told.rows_in == len(lines) == told.rows + sum(told.refused.values())


def test_a_packed_file_gives_the_same(tmp_path):
    lines = [line(i, income="?" if i == 3 else "5") for i in range(1, 9)]
    plain = write(tmp_path, [*lines, "short"])
    packed = tmp_path / "lar.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    told, target = converted(plain)
    again, other = converted(packed, tmp_path / "packed")
    assert told == again
    assert numbers(target) == numbers(other)


def test_fixed_widths(tmp_path):
    layout = BY_NAME["nara_fixed"]
    given = {
        **{"as_of_year": "2009", "respondent_id": "0000013044", "agency_code": "1", "loan_type": "1"},
        **{"loan_purpose": "1", "loan_amount_000s": "00180", "action_taken": "1", "state_code": "17"},
        **{"county_code": "031", "census_tract_number": "0029.02", "applicant_income_000s": "  99"},
        **{"applicant_race_1": "5", "co_applicant_race_1": "8", "rate_spread": "NA   ", "lien_status": "1"},
    }
    widths = [stop - start for start, stop in zip((0, *layout.stops[:-1]), layout.stops, strict=True)]
    row = "".join(given.get(name, "").ljust(width) for name, width in zip(layout.columns, widths, strict=True))
    row = row[:-1] + "1"
    file = tmp_path / "lar.dat"
    file.write_text("\n".join([row, row, row, "2009 cut short", row, ""]))
    told, target = converted(file)
    assert (told.rows, told.refused, told.years) == (4, {"malformed_line": 1}, {2009: 4})
    table = pq.read_table(target / "applications.parquet").sort_by("source_row").to_pylist()
    assert [r["source_row"] for r in table] == [1, 2, 3, 5]
    assert (table[0]["tract_fips11"], table[0]["income_usd"], table[0]["rate_spread"]) == (
        "17031002902",
        99_000.0,
        None,
    )


def test_latin_text(tmp_path):
    names = BY_NAME["historic_slice"].columns
    given = {"as_of_year": "2012", "state_abbr": "NM", "county_name": "Doña Ana County", "loan_amount_000s": "100"}
    given |= {"action_taken_name": "Loan originated", "loan_type_name": "Conventional"}
    rows = [",".join(given.get(name, "") for name in names)] * 3
    file = tmp_path / "slice.csv"
    file.write_bytes("\n".join([",".join(names), *rows, ""]).encode("latin-1"))
    _, target = converted(file)
    assert pq.read_table(target / "applications.parquet")["county_name"].to_pylist() == ["Doña Ana County"] * 3


def test_an_open_quote_is_told_and_nothing_is_published(tmp_path):
    lines = [line(5000), line(5000, lei='"549300'), line(5000), line(5000)]
    with pytest.raises(DataQualityError, match="the quote that opens in line 3 is not closed"):
        converted(write(tmp_path, lines))
    assert not (tmp_path / "out").exists()


def test_a_target_that_cannot_be_written(tmp_path):
    file = write(tmp_path, [line(5000)] * 3)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InfrastructureError, match=r"lar\.txt could not be converted"):
        converted(file)


def test_the_earlier_result_stands_until_the_new_one_is_whole(tmp_path):
    _, target = converted(write(tmp_path, [line(5000)] * 3))
    before = (target / "applications.parquet").read_bytes()
    with pytest.raises(DataQualityError):
        converted(write(tmp_path, [line(5000), line(1, lei='"'), line(2), line(3)]))
    assert (target / "applications.parquet").read_bytes() == before


def test_refusals_are_streamed_and_lie_in_the_order_of_the_file(tmp_path):
    """However many there are: as objects of Python, 40,000 of them would take 10 MB."""
    bad = [line(5000, income="x")] * 399
    plain = write(tmp_path, [line(5000), *[*bad, "broken"] * 100])
    packed = tmp_path / "lar.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
    recognised = recognise(packed, tmp_path)
    tracemalloc.start()
    told = convert(recognised, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (told.rows_in, told.rows) == (40_001, 1)
    assert told.refused == {"not_a_number": 39_900, "malformed_line": 100}
    refused = pq.read_table(tmp_path / "out" / "refusals.parquet")
    assert refused["source_row"].to_pylist() == list(range(2, 40_002))
    assert refused["reason"].to_pylist()[398:401] == ["not_a_number", "malformed_line", "not_a_number"]
    assert peak < 6e6


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    _, target = converted(write(tmp_path_factory.mktemp("whole"), [line(i) for i in range(200)]))
    return target / "applications.parquet"


@pytest.fixture
def written(whole, tmp_path):
    return Path(shutil.copy(whole, tmp_path))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("source_row", 1, "source_row: 200 rows share their value with another"),
        ("source_row", 0, "source_row: 200 rows break its declaration"),
        ("source_row", None, "source_row: 200 rows break its declaration"),
        ("loan_type", "9", "loan_type: 200 rows break its declaration"),
        ("activity_year", 1066, "activity_year: 200 rows break its declaration"),
        ("tract_minority_pct", 101.0, "tract_minority_pct: 200 rows break its declaration"),
    ],
)
def test_what_is_written_is_held_against_its_declaration(written, column, value, message):
    table = pq.read_table(written)
    at = table.column_names.index(column)
    field = table.schema.field(at)
    pq.write_table(table.set_column(at, field, pa.array([value] * 200, field.type)), written)
    with pytest.raises(SuiteError, match=message):
        check(written, HMDA_APPLICATIONS)


def test_columns_and_types_are_held_against_their_declaration(written: Path):
    pq.write_table(pq.read_table(written).drop_columns(["loan_type"]), written)
    with pytest.raises(SuiteError, match="loan_type"):
        check(written, HMDA_APPLICATIONS)
