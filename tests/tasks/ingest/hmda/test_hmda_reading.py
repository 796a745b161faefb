"""HMDA as a source of audits: the same canonical cells from every layout, every row told of, and the policy kept."""

import csv
import zipfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, SHARED
from hmda_files import BY_NAME, YEARS, rows_of, text_of, write
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, InfrastructureError, SpecError
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from schemas.tables.hmda import SUBMITTED
from tasks.ingest import registry
from tasks.ingest.hmda import source as hmda_source
from tasks.ingest.hmda.canonical import CANONICAL, lacking
from tasks.ingest.hmda.conversion import SchemaReport, convert, report_on
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.sources.raw import Raw
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.registry import read_spec
from tasks.pipeline.stage import Produced

DATA = SHARED / "data"
SPEC = """\
name: hmda-test
year: 2012
source: {kind: hmda, path: lar.csv}
decision: {column: action_taken, favourable: [1, 2], unfavourable: [3]}
protected: [{name: sex, columns: [derived_sex], groups: {male: [Male], female: [Female]}, reference: male}]
columns:
  income_usd: {type: continuous}
  loan_amount_usd: {type: continuous}
  loan_purpose: {type: nominal}
"""
MODERN = BY_NAME["data_browser"]


def source(path: Path | str, **own: object) -> Source:
    return Source.model_validate({"kind": "hmda", "path": str(path), **own})


def cells(raw: Raw) -> dict[str, str]:
    """The first row."""
    return {name: str(raw.table[name][0]) for name in raw.table.column_names}


def ingested(path: Path, year: int = 2012, **overrides: str) -> Produced:
    dotted = {"source.path": str(path), "year": str(year), **{k.replace("__", "."): v for k, v in overrides.items()}}
    spec: AuditSpec = read_spec(SPEC, "hmda.yaml", dotted).spec
    registry.check_columns(spec)
    return ingest.function(settings=ingest_settings(spec))


def reasons(produced: Produced) -> dict[tuple[str, str], int]:
    frame = produced.refusals.to_pandas()
    return dict(Counter(zip(frame["reason"], frame["column"].fillna(""), strict=True)))


def changed(path: Path, cells_of: list[dict[str, str]], name: str = "data_browser", year: int = 2022) -> Path:
    """A file with one row for each of the changes."""
    layout = BY_NAME[name]
    rows = [rows_of(layout, year, 1, each)[0] for each in cells_of]
    path.write_text(text_of(rows, layout.columns if layout.header else None))
    return path


@pytest.mark.parametrize("name", YEARS)
def test_every_layout_gives_the_same_application(tmp_path: Path, name: str) -> None:
    file = source(write(tmp_path / "lar", name, YEARS[name]), year=YEARS[name])
    raw = hmda_source.read(
        file, ["action_taken", "loan_amount_usd", "income_usd", "loan_purpose", "applicant_sex", "lien_status"]
    )
    found = cells(raw)
    assert (float(found.pop("loan_amount_usd")), float(found.pop("income_usd"))) == (205000, 99000)
    assert found == {"action_taken": "3", "loan_purpose": "1", "applicant_sex": "1", "lien_status": "1"}
    assert (raw.table.num_rows, raw.source_row, list(raw.unread)) == (5, [1, 2, 3, 4, 5], [])


@pytest.mark.parametrize("name", YEARS)
def test_the_header_is_what_a_layout_gives_and_no_more(tmp_path: Path, name: str) -> None:
    given_ = hmda_source.header(source(write(tmp_path / "lar", name, YEARS[name])))
    modern = name in ("public_lar", "data_browser", "modified_lar")
    assert ("debt_to_income_ratio" in given_, "ltv_ratio" in given_, "applicant_age" in given_) == (modern,) * 3
    assert {"action_taken", "derived_race", "derived_sex", "income_usd", "state_code"} <= set(given_)


def test_what_a_layout_lacks_is_null_in_every_converted_row_and_nothing_else_has_to_be(tmp_path: Path) -> None:
    for name in ("historic_slice", "nara_fixed", "flat_2017", "data_browser"):
        recognised = recognise(write(tmp_path / name, name, YEARS[name]), tmp_path)
        (tmp_path / f"{name}.d").mkdir()
        convert(recognised, tmp_path / f"{name}.d")
        table = pq.read_table(tmp_path / f"{name}.d" / "applications.parquet")
        empty = {column for column in table.column_names if table[column].null_count == table.num_rows}
        assert set(lacking(recognised)) <= empty
    published = lacking(recognise(write(tmp_path / "m", "public_lar", 2020), tmp_path))
    assert set(published) - set(SUBMITTED) == {
        *("agency_code", "county_name", "msa_md_name", "edit_status", "sequence_number", "application_date_indicator"),
    }
    assert set(SUBMITTED) - set(published) == {"failed_edits"}


def test_missing_exempt_and_not_applicable_are_told_apart(tmp_path: Path) -> None:
    columns = ["ltv_ratio", "property_value_usd", "debt_to_income_ratio", "reverse_mortgage", "applicant_age"]
    rows = [
        {"loan_to_value_ratio": "80.5", "debt_to_income_ratio": "50%-60%", "reverse_mortgage": "2"},
        {"loan_to_value_ratio": "Exempt", "debt_to_income_ratio": "Exempt", "reverse_mortgage": "1111"},
        {"loan_to_value_ratio": "NA", "debt_to_income_ratio": "NA", "applicant_age": "8888"},
    ]
    raw = hmda_source.read(source(changed(tmp_path / "a.csv", rows)), columns)
    assert [list(row.values()) for row in raw.table.to_pylist()] == [
        ["80.5", "", "50%-60%", "2", "35-44"],
        ["Exempt", "", "Exempt", "Exempt", "35-44"],
        ["", "", "NA", "", "8888"],
    ]


@settings(deadline=None, max_examples=4)
@given(st.lists(st.floats(0.001, 1e6).map(repr), min_size=20, max_size=100))
def test_numbers_give_back_the_same_number(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("numbers") / "a.csv"
    raw = hmda_source.read(source(changed(path, [{"loan_to_value_ratio": text} for text in texts])), ["ltv_ratio"])
    assert [float(text) for text in raw.table["ltv_ratio"].to_pylist()] == [float(text) for text in texts]


@pytest.mark.data("data/hmda_lar_2010_2017_labels", "data/hmda_lar_2024_travis_cu", "data/hmda_2022_tx_50k")
@pytest.mark.parametrize("year", range(2010, 2018))
def test_the_real_files_of_2010_to_2017_balance(year: int) -> None:
    path = DATA / "hmda_lar_2010_2017_labels" / f"hmda_lar_{year}_raw_rand_lm100.csv"
    produced = ingested(path, year)
    assert produced.rows_in == 100 == produced.tables[APPLICATIONS.name].num_rows + produced.refusals.num_rows
    with path.open() as file:
        actions = [row["action_taken_name"] for row in csv.DictReader(file)]
    decided = sum("originated" in a or "denied by" in a or "not accepted" in a for a in actions if "Preapp" not in a)
    assert reasons(produced) == {("decision_not_audited", "action_taken"): 100 - decided}


@pytest.mark.data("data/hmda_lar_2010_2017_labels", "data/hmda_lar_2024_travis_cu", "data/hmda_2022_tx_50k")
def test_the_real_file_of_2024_balances() -> None:
    produced = ingested(DATA / "hmda_lar_2024_travis_cu" / "travis_cu_2024_hmda.csv", 2024)
    assert produced.rows_in == 1442 == produced.tables[APPLICATIONS.name].num_rows + produced.refusals.num_rows
    members = produced.tables[MEMBERSHIPS.name].to_pandas()["group"]
    frame = pd.read_csv(DATA / "hmda_lar_2024_travis_cu" / "travis_cu_2024_hmda.csv")
    assert (members == "male").sum() == (frame["derived_sex"] == "Male").sum()


@pytest.mark.data("data/hmda_lar_2010_2017_labels", "data/hmda_lar_2024_travis_cu", "data/hmda_2022_tx_50k")
def test_the_real_texas_file_gives_its_own_column_beside_the_canonical_ones() -> None:
    path = DATA / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz"
    raw = hmda_source.read(source(path), ["approved", "ltv_ratio", "income_usd", "applicant_race_1"])
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert raw.table.num_rows + len(raw.unread) == 50_000
    assert raw.table["approved"].to_pylist() == [frame["approved"][row - 1] for row in raw.source_row]
    assert raw.table["ltv_ratio"].to_pylist().count("Exempt") == (frame["loan_to_value_ratio"] == "Exempt").sum()
    incomes = pd.to_numeric(raw.table["income_usd"].to_pandas())
    expected = pd.to_numeric(frame["income"])[[row - 1 for row in raw.source_row]].reset_index(drop=True) * 1000
    pd.testing.assert_series_equal(incomes, expected, check_names=False)


@pytest.mark.data("data/hmda_lar_2010_2017_labels", "data/hmda_lar_2024_travis_cu", "data/hmda_2022_tx_50k")
def test_the_real_texas_file_is_ingested_by_its_own_decision() -> None:
    race = "[{name: race, columns: [applicant_race_1], groups: {White: [5], Black: [3]}, reference: White}]"
    produced = ingested(
        DATA / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz",
        decision="{column: approved, favourable: [1], unfavourable: [0]}",
        protected=race,
    )
    applications = produced.tables[APPLICATIONS.name]
    assert produced.rows_in == 50_000 == applications.num_rows + produced.refusals.num_rows
    assert sum(applications["favourable"].to_pylist()) == 36_983


def test_a_truncated_last_line_is_a_refusal_with_its_number(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "historic_codes", 2012, rows=30)
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text[: text.rindex("\n", 0, -1) + 40])
    raw = hmda_source.read(source(tmp_path / "a.csv"), ["action_taken"])
    assert (raw.table.num_rows, raw.source_row) == (29, list(range(1, 30)))
    assert [(each.row, each.reason) for each in raw.unread] == [(30, "malformed_line")]


def test_another_years_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "hmda_2013.csv", "historic_codes", 2012)
    with pytest.raises(DataQualityError, match=r"hmda_2013\.csv was said to be of 2013 and has rows of .*5 of 2012"):
        hmda_source.read(source(tmp_path / "hmda_2013.csv", year=2013), ["action_taken"])
    assert (
        hmda_source.read(source(tmp_path / "hmda_2013.csv"), ["activity_year"]).table["activity_year"][0].as_py()
        == "2012"
    )


def test_the_year_of_the_spec_is_that_of_the_file_where_the_source_names_none(tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match="was said to be of 2013 and has rows of other years: 5 of 2012"):
        ingested(write(tmp_path / "a.csv", "historic_codes", 2012), 2013)


def test_one_row_of_another_year_is_an_error_too(tmp_path: Path) -> None:
    rows = [*rows_of(MODERN, 2022, 9), *rows_of(MODERN, 2021, 1)]
    (tmp_path / "a.csv").write_text(text_of(rows, MODERN.columns))
    with pytest.raises(DataQualityError, match="1 of 2021"):
        hmda_source.read(source(tmp_path / "a.csv", year=2022), ["action_taken"])


def test_a_zip_is_read_as_the_file_in_it(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "public_lar", 2020, "|")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.csv", "2020_public_lar.txt")
    plain, packed = source(tmp_path / "a.csv"), source(tmp_path / "a.zip")
    names = hmda_source.header(plain)
    assert hmda_source.header(packed) == names
    assert hmda_source.read(packed, names).table.equals(hmda_source.read(plain, names).table)
    assert hmda_source.digest(packed) != hmda_source.digest(plain)  # of the file as it was delivered


def test_files_of_one_source_are_numbered_on(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "historic_codes", 2012)
    write(tmp_path / "b.csv", "historic_labels", 2012)
    both = Source(kind="hmda", path=(str(tmp_path / "a.csv"), str(tmp_path / "b.csv")), year=2012)
    raw = hmda_source.read(both, ["action_taken", "sequence_number"])
    assert raw.source_row == list(range(1, 11))
    assert raw.table["sequence_number"].to_pylist() == list("01234") * 2


def test_a_vintage_reads_as_the_file_that_it_was_made_of(tmp_path: Path) -> None:
    rows = [
        {"action_taken": "1"},
        {"income": "rich"},
        {"loan_to_value_ratio": "Exempt", "reverse_mortgage": "1111"},
    ] * 3
    file = changed(tmp_path / "a.csv", rows)
    (tmp_path / "vintage").mkdir()
    convert(recognise(file, tmp_path), tmp_path / "vintage")
    held = source(tmp_path / "vintage" / "applications.parquet", year=2022)
    names = hmda_source.header(held)
    assert set(names) <= set(hmda_source.header(source(file)))
    vintage, delivered = hmda_source.read(held, names), hmda_source.read(source(file), names)
    assert vintage.table.equals(delivered.table)
    assert vintage.source_row == delivered.source_row == [1, 3, 4, 6, 7, 9]
    assert list(vintage.unread) == list(delivered.unread)
    assert [(each.row, each.reason, each.column) for each in vintage.unread] == [
        (row, "not_a_number", "income_usd") for row in (2, 5, 8)
    ]


def test_a_vintage_without_its_refusals_is_not_read(tmp_path: Path) -> None:
    convert(recognise(write(tmp_path / "a.csv", "historic_codes", 2012), tmp_path), tmp_path / "vintage")
    (tmp_path / "vintage" / "refusals.parquet").unlink()
    with pytest.raises(InfrastructureError, match="refused rows would be missing"):
        hmda_source.read(source(tmp_path / "vintage" / "applications.parquet"), ["action_taken"])


def test_other_parquet_is_no_vintage(tmp_path: Path) -> None:
    pq.write_table(pa.table({"income": [1.0]}), tmp_path / "applications.parquet")
    with pytest.raises(DataQualityError, match=r"is no vintage of HMDA, it has no column 'source_row'"):
        hmda_source.header(source(tmp_path / "applications.parquet"))


UNKNOWN = [{}, {"loan_purpose": "7"}, {"loan_purpose": "31"}]


def test_an_unknown_code_is_quarantined_where_the_spec_names_its_column(tmp_path: Path) -> None:
    file = source(changed(tmp_path / "a.csv", UNKNOWN))
    named = hmda_source.read(file, ["loan_purpose", "loan_type"])
    assert {key: rows.tolist() for key, rows in named.quarantined.items()} == {
        ("unknown_code", "loan_purpose"): [False, True, False]
    }
    assert named.table["loan_purpose"].to_pylist() == ["1", "", "3"]
    assert hmda_source.read(file, ["loan_type"]).quarantined == {}


def test_an_unknown_code_of_a_race_bears_on_what_is_derived_from_it(tmp_path: Path) -> None:
    rows = [{}, {"applicant_race_1": "9"}, {}]
    file = source(changed(tmp_path / "a.csv", rows, "historic_codes", 2012))
    found = hmda_source.read(file, ["derived_race", "derived_sex"]).quarantined
    assert {key: rows.tolist() for key, rows in found.items()} == {
        ("unknown_code", "derived_race"): [False, True, False]
    }


def test_an_unknown_code_can_be_accepted_or_stop_the_audit(tmp_path: Path) -> None:
    path = changed(tmp_path / "a.csv", UNKNOWN)
    accepted = hmda_source.read(source(path, policy={"unknown_codes": "accept"}), ["loan_purpose_raw"])
    assert accepted.table["loan_purpose_raw"].to_pylist() == ["1", "7", "31"]
    assert accepted.quarantined == {}
    made_of_it = hmda_source.read(source(path, policy={"unknown_codes": "accept"}), ["loan_purpose"])
    assert made_of_it.table["loan_purpose"].to_pylist() == ["1", "7", "3"]
    with pytest.raises(
        DataQualityError, match=r"1 rows of a\.csv have a code of loan_purpose that no filing guide lists"
    ):
        hmda_source.read(source(path, policy={"unknown_codes": "stop"}), ["loan_purpose"])


def test_a_quarantined_row_is_a_refusal_and_keeps_its_group(tmp_path: Path) -> None:
    people = [{"applicant_sex": s, "action_taken": a} for s in "12" for a in "13"] * 3
    path = changed(tmp_path / "a.csv", [*people, {"loan_purpose": "7"}], "historic_codes", 2012)
    produced = ingested(path)
    assert reasons(produced) == {("unknown_code", "loan_purpose"): 1}
    assert produced.rows_in == 13 == produced.tables[APPLICATIONS.name].num_rows + 1
    assert produced.tables[MEMBERSHIPS.name].num_rows == 13


def test_a_missing_column_stops_the_audit_and_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "historic_codes", 2012)
    with pytest.raises(DataQualityError, match="the file gives no 'ltv_ratio': its layout has no such column"):
        ingested(path, columns__ltv_ratio="{type: continuous}")
    with pytest.raises(SpecError, match="did you mean 'loan_amount_usd'"):
        ingested(path, columns__loan_amount="{type: continuous}")


def test_a_missing_column_can_be_accepted_as_missing_cells(tmp_path: Path) -> None:
    file = source(write(tmp_path / "a.csv", "historic_codes", 2012), policy={"missing_columns": "accept"})
    assert "ltv_ratio" in hmda_source.header(file)
    raw = hmda_source.read(file, ["ltv_ratio", "action_taken"])
    assert raw.table["ltv_ratio"].to_pylist() == [""] * 5
    assert raw.quarantined == {}


def test_of_several_files_the_one_that_lacks_a_column_can_be_quarantined(tmp_path: Path) -> None:
    paths = (str(write(tmp_path / "a.csv", "historic_codes", 2012)), str(write(tmp_path / "b.csv", "public_lar", 2020)))
    changed(tmp_path / "b.csv", [{"combined_loan_to_value_ratio": "80"}] * 2, "public_lar", 2020)
    both = Source.model_validate({"kind": "hmda", "path": paths, "policy": {"missing_columns": "quarantine"}})
    found = hmda_source.read(both, ["ltv_ratio", "action_taken"]).quarantined
    assert {key: rows.tolist() for key, rows in found.items()} == {
        ("missing_column", "ltv_ratio"): [True] * 5 + [False] * 2
    }


@pytest.mark.parametrize("policy", ["accept", "quarantine", "stop"])
def test_an_unknown_column_is_kept_refused_or_an_error(tmp_path: Path, policy: str) -> None:
    rows = [[*row, str(i)] for i, row in enumerate(rows_of(MODERN, 2022, 4))]
    (tmp_path / "a.csv").write_text(text_of(rows, [*MODERN.columns, "Branch"]))
    file = source(tmp_path / "a.csv", policy={"unknown_columns": policy})
    if policy == "stop":
        with pytest.raises(
            DataQualityError, match=r"has columns that its layout does not know: branch; leave them out"
        ):
            hmda_source.header(file)
        return
    assert hmda_source.header(file)[-1] == "branch"
    raw = hmda_source.read(file, ["action_taken", "branch"])
    assert raw.table["branch"].to_pylist() == ["0", "1", "2", "3"]
    quarantined = {key: rows.tolist() for key, rows in raw.quarantined.items()}
    assert quarantined == ({("unknown_column", "branch"): [True] * 4} if policy == "quarantine" else {})


@pytest.mark.parametrize(
    ("source_of", "told"),
    [
        ("{kind: hmda}", "needs a path, or `vintage: {}`"),
        ("{kind: csv, path: a.csv, year: 2020}", "`year` belongs to a source of kind hmda, not to csv"),
        ("{kind: csv, path: a.csv, policy: {unknown_codes: accept}}", "`policy` belongs to a source of kind hmda"),
        ("{kind: hmda, path: a.csv, policy: {unknown_codes: ignore}}", "'stop', 'quarantine' or 'accept'"),
        ("{kind: hmda, path: a.csv, header: [x]}", "`header` belongs to delimited text"),
    ],
)
def test_a_source_that_makes_no_sense_is_an_error_of_the_spec(source_of: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        read_spec(SPEC, "hmda.yaml", {"source": source_of})


def test_a_vintage_that_nobody_looked_up_is_an_error_with_the_next_step() -> None:
    with pytest.raises(SpecError, match="`evenhand backfill SPEC --years YEAR` looks it up"):
        hmda_source.digest(Source.model_validate({"kind": "hmda", "vintage": {}}))


def reported(path: Path) -> SchemaReport:
    recognised = recognise(path, path.parent / "scratch")
    (path.parent / "out").mkdir()
    converted = convert(recognised, path.parent / "out")
    return report_on(recognised, converted)


def test_the_schema_report_has_one_line_for_each_finding(tmp_path: Path) -> None:
    kept = [name for name in reversed(MODERN.columns) if name != "lei"]
    cells_of = [dict(zip(MODERN.columns, rows_of(MODERN, 2022, 1, each)[0], strict=True)) for each in UNKNOWN]
    rows = [[*[row[name] for name in kept], "x", "1"] for row in [*cells_of, cells_of[0] | {"income": "rich"}]]
    (tmp_path / "a.csv").write_text(text_of(rows, [*kept, "branch", "occupancy"]) + "2022,cut\n")
    report = reported(tmp_path / "a.csv")
    found = [f for f in report.findings if f.kind != "lacking_column"]
    assert [(f.kind, f.severity, f.column, f.code, f.rows, f.policy) for f in found] == [
        ("missing_column", "warning", "lei", None, 0, "stop"),
        ("unknown_column", "warning", "branch", None, 0, "accept"),
        ("unknown_column", "warning", "occupancy", None, 0, "accept"),
        ("other_order", "note", None, None, 0, "accept"),
        ("unread_cells", "error", "loan_purpose_raw", None, 1, "quarantine"),
        ("unknown_code", "warning", "loan_purpose_raw", "7", 1, "quarantine"),
        ("malformed_line", "error", None, None, 1, "quarantine"),
        ("refused_row", "error", "income_usd", None, 1, "quarantine"),
    ]
    told = {f.column: f.text for f in found if f.kind == "unknown_column"}
    assert told["branch"].endswith("it can be named in the spec as it is")
    assert "a canonical column of that name" in told["occupancy"]
    lacks = {f.column for f in report.findings if f.kind == "lacking_column"}
    assert "lender_id" in lacks
    assert "ltv_ratio" not in lacks
    assert (report.layout, report.rows_in, report.rows) == ("data_browser", 5, 3)
    assert report.refused == {"malformed_line": 1, "not_a_number": 1}


def test_the_schema_report_says_what_the_years_before_2018_lack(tmp_path: Path) -> None:
    report = reported(write(tmp_path / "a.csv", "historic_slice", 2010))
    lacks = {f.column for f in report.findings if f.kind == "lacking_column"}
    assert {"debt_to_income_ratio", "ltv_ratio", "applicant_age", "property_value_usd"} <= lacks
    assert lacks.isdisjoint({"action_taken", "income_usd", "derived_race", "loan_purpose"})


def test_the_bundled_spec_reads_and_names_canonical_columns_alone() -> None:
    text = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()
    spec = read_spec(text, "hmda.yaml", {}).spec
    known = set(CANONICAL)
    named = {*spec.features(), spec.decision.column, *(c for p in spec.protected for c in p.columns), *spec.source.keep}
    assert named <= known
