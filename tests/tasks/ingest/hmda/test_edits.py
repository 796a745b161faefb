"""Edits of the FFIEC: clean rows fail none, each edit fails where it should, and failures are told without values."""

import json
from pathlib import Path

import duckdb
import submissions

from tasks.ingest.hmda.conversion import EDITS_FILE, convert, report_on
from tasks.ingest.hmda.edits import EDITS, REPEATED, judged
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.hmda.submission import FIELDS

BY_SIGHT = {"applicant_race_observed": "1", "applicant_race_1": "21"}
ORIGINATED = {"action_taken": "1", "denial_reason_1": "10"}
DENIED = {"action_taken": "3", "denial_reason_1": "1"}
COMPANY = {"applicant_ethnicity_1": "4", "applicant_race_1": "7", "applicant_sex": "4"}
BROKEN: dict[str, dict[str, str]] = {
    "V608": {"uli": "ULI 5"},
    "V609": {"uli": "ULISECRET0000000000000000000100"},
    "V610-1": {"application_date": "20230231"},
    "V610-2": {"application_date": "NA"},
    "V611": {"loan_type": "5"},
    "V612-1": {"loan_purpose": "3"},
    "V612-2": {"preapproval": "1", "loan_purpose": "2"},
    "V613-2": {"action_taken": "7"},
    "V613-3": {"action_taken": "3", "preapproval": "1"},
    "V614": {"preapproval": "1", "reverse_mortgage": "1"},
    "V615-2": {"manufactured_home_land_property_interest": "2"},
    "V616": {"occupancy_type": ""},
    "V617": {"loan_amount": "0"},
    "V618": {"action_taken": "9"},
    "V619-2": {"action_taken_date": "20220105"},
    "V619-3": {"application_date": "20231231", "action_taken_date": "20230105"},
    "V620": {"street_address": ""},
    "V621": {"city": ""},
    "V622": {"zip_code": "NA"},
    "V624": {"zip_code": "9995"},
    "V709": {"street_address": "Exempt"},
    "V711": {**ORIGINATED, "denial_reason_1": "1111", "denial_reason_text": "told"},
    "V716": {"state_code": "WI"},
    "V695-1": {"nmlsr_identifier": "none"},
    "V695-2": {"nmlsr_identifier": "000"},
    "V623": {"state_code": "ZZ"},
    "V625-1": {"census_tract": "6.1E+10"},
    "V626": {"county_code": "167"},
    "V627": {"county_code": "17031"},
    "V628-3": {"applicant_ethnicity_1": "11", "applicant_ethnicity_2": "11"},
    "V628-4": {"applicant_ethnicity_1": "3", "applicant_ethnicity_2": "1"},
    "V629-2": {"applicant_ethnicity_observed": "1", "applicant_ethnicity_1": "12"},
    "V634": {"co_applicant_ethnicity_1": "2"},
    "V635-1": {"applicant_race_1": ""},
    "V635-2": {"applicant_race_2": "6"},
    "V636-2": BY_SIGHT,
    "V637": {"applicant_race_1": "7"},
    "V641": {"co_applicant_race_observed": "2"},
    "V642-1": {"applicant_sex": "5"},
    "V643": {"applicant_sex_observed": "1", "applicant_sex": "3"},
    "V650": {"co_applicant_sex_observed": "3"},
    "V651-1": {"applicant_age_filed": "34.5"},
    "V651-2": {**COMPANY, "applicant_age_filed": "40"},
    "V654-1": {"income": "55.5"},
    "V655": COMPANY,
    "V656-2": {**DENIED, "purchaser_type": "1"},
    "V657-2": {**DENIED, "rate_spread": "0.5"},
    "V658-2": {**DENIED, "hoepa_status": "2"},
    "V659": {"lien_status": "3"},
    "V660-1": {"applicant_credit_score_filed": "good"},
    "V661-1": {"applicant_credit_score_filed": "8888"},
    "V662": {"applicant_credit_score_text": "Made Up Model"},
    "V663": {"action_taken": "4", "denial_reason_1": "10"},
    "V666-2": {"co_applicant_credit_score_type": "1"},
    "V669-3": {"denial_reason_1": "1", "denial_reason_2": "1"},
    "V670-1": {**DENIED, "denial_reason_1": "10"},
    "V670-2": {**ORIGINATED, "denial_reason_1": "2"},
    "V671": {**DENIED, "denial_reason_1": "9"},
    "V672-2": {"total_loan_costs": "100", "open_end_line_of_credit": "1"},
    "V677-2": {**DENIED, "interest_rate": "5"},
    "V678-5": {"prepayment_penalty_term": "400"},
    "V679-1": {"debt_to_income_filed": "low"},
    "V679-2": {"action_taken": "5", "debt_to_income_filed": "33"},
    "V681-1": {"combined_loan_to_value_ratio": "-1"},
    "V688-2": {"action_taken": "4"},
    "V691": {"total_units_filed": "1.5"},
    "V692-3": {"total_units_filed": "6", "multifamily_units_filed": "7"},
    "V693-2": {"submission_of_application": "3"},
    "V696-3": {"aus_2": "2"},
    "V700-1": {"aus_1": "6", "aus_result_1": "3"},
    "V703": {"aus_result_1": "16"},
    "V706": {"reverse_mortgage": "0"},
    "V714": {"submission_of_application": "1111"},
    "V715": {"balloon_payment": "1111"},
}


def failures(rows: list[list[str]], year: str = "2023") -> list[set[str]]:
    """The edits that each row fails, by the conditions alone."""
    connection = duckdb.connect()
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")
    columns = ", ".join(f"nullif(cells[{i}], '') AS {name}" for i, name in enumerate(FIELDS, start=1))
    connection.execute(f"CREATE TABLE {REPEATED} (source_row BIGINT, number VARCHAR)")
    connection.execute("CREATE TABLE listed (source_row BIGINT, cells VARCHAR[])")
    connection.executemany("INSERT INTO listed VALUES (?, ?)", list(enumerate(rows, start=1)))
    fields = f"SELECT {columns}, '{year}' AS filing_year, source_row FROM listed"
    found = connection.execute(f"SELECT failed_edits FROM ({judged(fields, FIELDS)}) ORDER BY source_row").fetchall()
    return [set(filter(None, (text or "").split(","))) for (text,) in found]


def test_clean_rows_fail_no_edit_and_broken_ones_theirs() -> None:
    clean = submissions.rows_of(40)
    broken = [submissions.changed(clean[0], **cells) for cells in BROKEN.values()]
    found = failures([*clean, *broken])
    assert found[:40] == [set()] * 40
    missed = [number for number, failed in zip(BROKEN, found[40:], strict=True) if number not in failed]
    assert missed == []


def test_check_digits_are_those_of_the_regulation() -> None:
    # the example of 12 CFR part 1003, appendix C: its check digits are 38
    identifiers = {
        "10Bx939c5543TqA1144M999143X38": False,
        "10Bx939c5543TqA1144M999143X83": True,  # two digits exchanged
        "10Bx939c5543TqA1144M999143Y38": True,
        "10Bx939c5543TqA1144M99914": True,
        "OWN-NUMBER": False,  # a lender's own identifier has none
        "A" * 22: False,
        "A" * 46: True,
        "10Bx939c5543TqA1144M999143X3 ": True,
    }
    row = submissions.rows_of(1)[0]
    failed = failures([submissions.changed(row, uli=uli) for uli in identifiers])
    assert ["V609" in edits for edits in failed] == list(identifiers.values())


def test_edits_of_addresses_and_of_originators_follow_the_year() -> None:
    row = submissions.rows_of(1)[0]
    exempt = dict.fromkeys(("street_address", "city", "zip_code"), "Exempt")
    unknown = dict.fromkeys(("street_address", "city", "zip_code"), "NA")
    fine = [exempt, unknown, {"zip_code": "99950-1234"}, {"county_code": "NA", "state_code": "WI"}]
    assert failures([submissions.changed(row, **cells) for cells in fine], "2023") == [set()] * 4
    cells = [{"nmlsr_identifier": number} for number in ("", "12345678", "3000001", "123", "NA")]
    rows = [submissions.changed(row, **cell, action_taken_date="") for cell in cells]

    def of_originator(year: str) -> list[set[str]]:
        return [{edit for edit in edits if edit.startswith("V695")} for edits in failures(rows, year)]

    assert of_originator("2020") == [{"V695"}, set(), set(), set(), set()]
    assert of_originator("2021") == [{"V695-1"}, set(), set(), set(), set()]
    assert of_originator("2025") == [{"V695-1", "V695-3"}, set(), set(), {"V695-3"}, set()]
    assert of_originator("2026") == [{"V695-1", "V695-3"}, {"V695-3"}, {"V695-3"}, {"V695-3"}, set()]
    assert "V716" in failures([submissions.changed(row, state_code="WI")], "2020")[0]
    assert "V716" not in failures([submissions.changed(row, state_code="WI")], "2019")[0]


def test_numbers_of_edits_are_told_once_with_what_is_expected() -> None:
    numbers = [edit.number for edit in EDITS]
    assert len(numbers) == len(set(numbers)) > 150
    assert all(edit.words for edit in EDITS)
    assert set(BROKEN) < set(numbers)


def test_failures_are_counted_by_edit_and_row_and_kept_as_a_suite(tmp_path: Path) -> None:
    rows = submissions.rows_of(30)
    for place in (4, 9):
        rows[place] = submissions.changed(rows[place], loan_type="7")
    rows[20] = submissions.changed(rows[19], lei=submissions.LEI)  # the same row again, with its identifier
    recognised = recognise(submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(30)), tmp_path)
    converted = convert(recognised, tmp_path / "out")
    assert converted.edits["V611"] == (2, (5, 10))
    assert converted.edits["S305"] == (2, (20, 21))
    told = [finding.text for finding in report_on(recognised, converted).findings if finding.kind == "failed_edit"]
    assert "edit V611 fails in 2 rows (5, 10): loan type is 1, 2, 3 or 4" in told
    kept = json.loads((tmp_path / "out" / EDITS_FILE).read_text())
    counts = kept["result"]["results"][0]["result"]["details"]["columns"]
    assert len(counts) == len(EDITS)
    assert counts["V611"] == {"element_count": 30, "unexpected_count": 2}
    assert counts["V617"]["unexpected_count"] == 0
