"""One row of each layout, worked out by hand, as the canonical table has it; and what becomes of bad cells."""

import json
from pathlib import Path

import duckdb
import pytest

from schemas.table import Column
from schemas.tables.hmda import DWELLINGS, HMDA_APPLICATIONS, UNIT_FLAGS
from tasks.ingest.hmda.canonical import FIPS_OF_STATE, LABELS, lacking, literal, quoted, select
from tasks.ingest.hmda.layouts import BY_NAME, LAYOUTS, Recognised

NOT_PROVIDED = "Information not provided by applicant in mail, Internet, or telephone application"
MODERN = {"activity_year": "2022", "action_taken": "1"}
CODES = {
    **{"as_of_year": "2013", "respondent_id": "0000013044", "agency_code": "1", "action_taken": "3"},
    **{"state_code": "17", "county_code": "31", "census_tract_number": "29.02", "msamd": "16974"},
}


def canonical(layout, *, columns=None, **cells):
    """The canonical row that a row of a layout becomes; cells that are not given are blank."""
    of = BY_NAME[layout]
    recognised = Recognised(Path("file"), of, ",", "utf-8", tuple(columns or of.columns))
    assert set(cells) <= set(recognised.columns)
    given = {name: literal(cells[name]) if name in cells else "NULL" for name in recognised.columns}
    row = ", ".join(f"{value}::VARCHAR AS {quoted(name)}" for name, value in given.items())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW raw AS SELECT {row}, 1 AS source_row")
        result = connection.execute(select(recognised))
        names = [name for name, *_ in result.description]
        (found,) = result.fetchall()
    assert names == [*(column.name for column in HMDA_APPLICATIONS.columns), "refusal"]
    return dict(zip(names, found, strict=True))


def test_a_row_of_labels():
    row = canonical(
        "historic_slice",
        **{"as_of_year": "2010", "respondent_id": "54-1862878", "agency_abbr": "HUD", "state_abbr": "IL"},
        **{"county_name": "Cook County", "msamd_name": "Chicago - IL", "census_tract_number": "47"},
        **{"action_taken_name": "Application denied by financial institution", "denial_reason_name_1": "Collateral"},
        **{"loan_type_name": "FHA-insured", "loan_purpose_name": "Refinancing", "preapproval_name": "Not applicable"},
        **{"owner_occupancy_name": "Not applicable", "property_type_name": "Manufactured housing"},
        **{"lien_status_name": "Not applicable (purchased loans)", "hoepa_status_name": "Not a HOEPA loan"},
        **{"purchaser_type_name": "Fannie Mae (FNMA)", "loan_amount_000s": "184", "applicant_income_000s": "104"},
        **{"applicant_race_name_1": "White", "co_applicant_race_name_1": "Asian", "rate_spread": "05.54"},
        **{"applicant_ethnicity_name": NOT_PROVIDED, "co_applicant_ethnicity_name": "No co-applicant"},
        **{"applicant_sex_name": "Female", "co_applicant_sex_name": "No co-applicant"},
        **{"minority_population": "28.8199996948242", "tract_to_msamd_income": "228.539993286133"},
    )
    said = {
        **{"activity_year": 2010, "lender_id": "7-54-1862878", "agency_code": "7", "state_code": "IL"},
        **{"county_fips5": None, "county_name": "Cook County", "census_tract": "004700", "tract_fips11": None},
        **{"action_taken": "3", "denial_reason_1": "4", "denial_reason_2": None, "loan_type": "2"},
        **{"loan_purpose": "3", "loan_purpose_raw": "3", "preapproval": None, "preapproval_raw": "3"},
        **{"occupancy": None, "occupancy_raw": "3", "property_type": "2", "lien_status": None, "lien_status_raw": "4"},
        **{"hoepa_status": "2", "purchaser_type": "1", "loan_amount_usd": 184_000.0, "income_usd": 104_000.0},
        **{"applicant_race_1": "5", "co_applicant_race_1": "2", "derived_race": "Joint", "rate_spread": 5.54},
        **{"derived_ethnicity": "Ethnicity Not Available", "derived_sex": "Female"},
        **{"tract_minority_pct": 28.82, "tract_to_msa_income_pct": 228.54, "interest_rate": None},
        **{"applicant_age": None, "debt_to_income_ratio": None, "exempt": None, "unknown_codes": None},
        **{"refusal": None, "msa_md_name": "Chicago - IL"},
    }
    assert {name: row[name] for name in said} == said
    assert row["blank"].split(",") == [
        *("tract_population", "ffiec_median_family_income", "tract_owner_occupied_units", "tract_1_4_family_units"),
    ]


@pytest.mark.parametrize("layout", ["historic_codes", "historic_labels", "ffiec_flat", "nara_fixed"])
def test_a_row_of_codes(layout):
    row = canonical(layout, **CODES, owner_occupancy="2", lien_status="3", purchaser_type="7", loan_purpose="1")
    said = {
        **{"state_code": "IL", "county_fips5": "17031", "census_tract": "002902", "tract_fips11": "17031002902"},
        **{"lender_id": "1-0000013044", "msa_md": "16974", "occupancy": "2", "lien_status": "3"},
        **{"purchaser_type": "7", "loan_purpose": "1", "derived_race": "Race Not Available", "refusal": None},
    }
    assert {name: row[name] for name in said} == said


@pytest.mark.parametrize(
    ("tract", "expected"),
    [
        ("29.02", "002902"),
        ("47", "004700"),
        ("9501", "950100"),
        ("0029.02", "002902"),
        ("NA", None),
        ("9999.99", "999999"),
    ],
)
def test_tracts_are_four_digits_and_two(tract, expected):
    assert canonical("historic_codes", **{**CODES, "census_tract_number": tract})["census_tract"] == expected


@pytest.mark.parametrize(("state", "expected"), [("6", "06037000100"), ("06", "06037000100"), ("72", "72037000100")])
def test_lost_zeros_come_back(state, expected):
    row = canonical(
        "flat_2017", activity_year="2017", action_taken="1", state_code=state, county_code="37", census_tract="1"
    )
    assert row["tract_fips11"] == expected
    assert row["state_code"] == {v: k for k, v in FIPS_OF_STATE.items()}[state.zfill(2)]


def test_two_lenders_with_one_respondent_id():
    ids = {canonical("historic_codes", **{**CODES, "agency_code": agency})["lender_id"] for agency in ("1", "7")}
    assert ids == {"1-0000013044", "7-0000013044"}
    assert canonical("historic_codes", **{**CODES, "agency_code": "8"})["lender_id"] is None


def test_the_flat_file_of_2017_in_thousands():
    given = {"activity_year": "2017", "action_taken": "1", "loan_amount": "180", "income": "99", "occupancy_type": "3"}
    row = canonical("flat_2017_three_year", **given, derived_race="White", applicant_race_1="3")
    assert (row["loan_amount_usd"], row["income_usd"], row["occupancy"]) == (180_000.0, 99_000.0, None)
    assert row["derived_race"] == "White"  # as published, not derived again
    assert canonical("flat_2017", **given, applicant_race_1="3", co_applicant_race_1="8")["derived_race"] == (
        "Black or African American"
    )


@pytest.mark.parametrize("layout", ["public_lar", "data_browser"])
def test_a_row_of_2022(layout):
    ltv = "combined_loan_to_value_ratio" if layout == "public_lar" else "loan_to_value_ratio"
    row = canonical(
        layout,
        **MODERN,
        **{"lei": "549300GAX7IKJUKCJE72", "state_code": "CA", "county_code": "06001", "census_tract": "06001423700"},
        **{"derived_msa_md": "99999", "loan_amount": "205000.0", "income": "-171", "property_value": "2415000"},
        **{ltv: "23.83000", "interest_rate": "Exempt", "rate_spread": "-0.191", "total_loan_costs": "NA"},
        **{"loan_purpose": "32", "occupancy_type": "3", "purchaser_type": "71", "preapproval": "2", "lien_status": "1"},
        **{"applicant_race_1": "22", "applicant_race_2": "44", "applicant_ethnicity_1": "14", "applicant_age": "8888"},
        **{"co_applicant_age": "9999", "denial_reason_1": "10", "denial_reason_2": "1111", "aus_1": "1111"},
        **{"debt_to_income_ratio": "30%-<36%", "derived_dwelling_category": DWELLINGS[1], "reverse_mortgage": "1111"},
    )
    said = {
        **{"lender_id": "549300GAX7IKJUKCJE72", "tract_fips11": "06001423700", "census_tract": "423700"},
        **{"county_fips5": "06001", "msa_md": None, "loan_amount_usd": 205_000.0, "income_usd": -171_000.0},
        **{"ltv_ratio": 23.83, "interest_rate": None, "exempt": "interest_rate", "rate_spread": -0.191},
        **{"total_loan_costs": None, "loan_purpose": "3", "loan_purpose_raw": "32", "occupancy": "2"},
        **{"occupancy_raw": "3", "purchaser_type": "7", "purchaser_type_raw": "71", "applicant_race_1": "2"},
        **{"applicant_race_1_raw": "22", "applicant_race_2": "4", "applicant_race_2_raw": "44"},
        **{"applicant_ethnicity_1": "1", "applicant_ethnicity_1_raw": "14", "applicant_age": "8888"},
        **{"co_applicant_age": "9999", "denial_reason_1": None, "denial_reason_2": "1111", "aus_1": "1111"},
        **{"debt_to_income_ratio": "30%-<36%", "property_type": "3", "reverse_mortgage": "1111"},
        **{"unit_flag": "income_not_positive", "unknown_codes": None, "refusal": None},
    }
    assert {name: row[name] for name in said} == said
    assert "total_loan_costs" not in row["blank"]  # NA is not applicable, and not the same as nothing at all
    assert "lender_credits" in row["blank"]


@pytest.mark.parametrize("ratio", ["<20%", "36", "49", "50%-60%", ">60%", "NA", "Exempt"])
def test_ratios_stay_bands_and_whole_numbers(ratio):
    assert canonical("public_lar", **MODERN, debt_to_income_ratio=ratio)["debt_to_income_ratio"] == ratio


@pytest.mark.parametrize(("filed", "expected"), [("5.0", "5"), ("05", "5"), (" 5 ", "5"), ("5", "5")])
def test_codes_are_known_through_padding(filed, expected):
    row = canonical("public_lar", **MODERN, applicant_race_1=filed)
    assert (row["applicant_race_1"], row["unknown_codes"]) == (expected, None)


@pytest.mark.parametrize("filed", ["5.5", "99", "5;3", 'a "quoted" one', "-5"])
def test_an_unknown_code_is_null_and_told(filed):
    row = canonical("public_lar", **MODERN, applicant_race_1=filed, lien_status="3", purchaser_type="0")
    assert (row["applicant_race_1"], row["lien_status"], row["purchaser_type"]) == (None, None, "0")
    # 3 was no lien at all until 2017, and is no code since
    assert json.loads(row["unknown_codes"]) == {"lien_status_raw": "3", "applicant_race_1_raw": filed}
    assert row["refusal"] is None


def test_codes_of_the_other_era_are_unknown():
    row = canonical("public_lar", **MODERN, loan_purpose="3", purchaser_type="7")
    assert (row["loan_purpose"], row["purchaser_type"]) == (None, None)
    assert json.loads(row["unknown_codes"]) == {"loan_purpose_raw": "3", "purchaser_type_raw": "7"}


@pytest.mark.parametrize("filed", ["10", "10.0", " 10", "NA"])
def test_a_reason_that_says_not_applicable_is_no_unknown_code(filed):
    row = canonical("public_lar", **MODERN, denial_reason_1=filed)
    assert (row["denial_reason_1"], row["unknown_codes"]) == (None, None)


@pytest.mark.parametrize("layout", [layout.name for layout in LAYOUTS])
def test_a_column_is_lacking_where_it_is_nothing_but_null(layout):
    found = lacking(Recognised(Path("file"), BY_NAME[layout], ",", "utf-8", BY_NAME[layout].columns))
    assert {"reverse_mortgage", "agency_code"} & set(found)
    assert not {"loan_purpose", "income_usd", "activity_year", "exempt", "unit_flag"} & set(found)


@pytest.mark.parametrize("county", ["6001", "06001.5", "123456", "abc"])
def test_a_county_has_five_digits(county):
    row = canonical("public_lar", **MODERN, county_code=county)
    known = county == "6001"
    assert row["county_fips5"] == ("06001" if known else None)
    assert row["unknown_codes"] == (None if known else json.dumps({"county_fips5": county}))


@pytest.mark.parametrize(
    ("cells", "reason", "column"),
    [
        ({"loan_amount": "12x"}, "not_a_number", "loan_amount_usd"),
        ({"loan_amount": "nan"}, "not_finite", "loan_amount_usd"),
        ({"income": "inf"}, "not_finite", "income_usd"),
        ({"loan_amount": "-5"}, "failed_expectation", "loan_amount_usd"),
        ({"tract_minority_population_percent": "101"}, "failed_expectation", "tract_minority_pct"),
        ({"activity_year": "2022.5"}, "not_a_number", "activity_year"),
        ({"activity_year": "1066"}, "failed_expectation", "activity_year"),
        ({"activity_year": "NA"}, "missing_value", "activity_year"),
    ],
)
def test_what_is_no_number_refuses_its_row(cells, reason, column):
    refusal = canonical("public_lar", **{**MODERN, **cells})["refusal"]
    assert refusal == {"reason": reason, "column": column, "detail": next(iter(cells.values()))}


def test_a_row_needs_its_year_and_its_action():
    assert canonical("public_lar", activity_year="2022")["refusal"]["reason"] == "missing_decision"
    assert canonical("public_lar", action_taken="3")["refusal"]["reason"] == "missing_value"
    few = ("loan_amount", "applicant_race_1")  # a file without these columns is taken as it is
    assert canonical("public_lar", columns=few, loan_amount="5000")["refusal"] is None


@pytest.mark.parametrize(
    ("flag", "cells"),
    [
        ("income_not_positive", {"income": "0"}),
        ("income_in_dollars", {"income": "85000"}),
        ("income_by_month", {"income": "7", "loan_amount": "305000", "lien_status": "1", "occupancy_type": "1"}),
        ("loan_amount_too_large", {"loan_amount": "20500000", "property_value": "255000"}),
        (
            "ltv_as_fraction",
            {"loan_amount": "205000", "property_value": "255000", "combined_loan_to_value_ratio": "0.804"},
        ),
        ("ltv_too_large", {"combined_loan_to_value_ratio": "79474"}),
        ("interest_rate_as_fraction", {"interest_rate": "0.0425"}),
        ("loan_term_one_month", {"loan_term": "1"}),
        ("code_as_discount_points", {"discount_points": "8888"}),
    ],
)
def test_signs_of_a_wrong_unit(flag, cells):
    row = canonical("public_lar", **MODERN, **cells)
    assert (row["unit_flag"], row["refusal"]) == (flag, None)


def test_every_flag_is_tried_and_a_plain_row_has_none():
    tried = next(mark.args[1] for mark in test_signs_of_a_wrong_unit.pytestmark)
    assert [flag for flag, _ in tried] == list(UNIT_FLAGS)
    plain = {"income": "85", "loan_amount": "205000", "property_value": "255000", "interest_rate": "4.25"}
    plain |= {"combined_loan_to_value_ratio": "80.4", "loan_term": "360", "lien_status": "1", "occupancy_type": "1"}
    assert canonical("public_lar", **MODERN, **plain)["unit_flag"] is None


@pytest.mark.parametrize("layout", [layout.name for layout in LAYOUTS])
def test_every_layout_gives_the_table(layout):
    year = "activity_year" if "activity_year" in BY_NAME[layout].columns else "as_of_year"
    assert canonical(layout, **{year: "2017"})["activity_year"] == 2017


def test_every_label_has_a_known_code():
    known: dict[str, Column] = {column.name: column for column in HMDA_APPLICATIONS.columns}
    for labelled, codes in LABELS.items():
        name = labelled.replace("_name", "").replace("agency_abbr", "agency_code").replace("owner_", "")
        column = next(known[n] for n in (f"{name}_raw", f"{name}_1_raw", name) if n in known)
        assert set(codes.values()) <= set(column.codes)


def test_names_that_need_quotes_are_quoted():
    odd = ("activity_year", "action_taken", 'income", 1 AS "x')
    row = canonical("public_lar", columns=odd, activity_year="2022", action_taken="1")
    assert row["income_usd"] is None
