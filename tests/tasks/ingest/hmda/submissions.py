"""Lenders' own submissions, written for tests: made-up people who keep every edit, and words that a search finds."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tasks.ingest.hmda.submission import FIELDS

LEI = "MADEUPTESTLENDER0001"
SECRETS = {
    "uli": "ULISECRET",
    "street_address": "Zyzzyva Street",
    "city": "Quuxville",
    "zip_code": "99950",
    "nmlsr_identifier": "777123456",
}
"""What every row has of its own, behind a number of the row."""
TEXTS = {
    "applicant_race_native_text": "Tribe-Of-Nobody",
    "applicant_race_asian_text": "Asian-Of-Nobody",
    "applicant_ethnicity_text": "Hispanic-Of-Nobody",
    "denial_reason_text": "Reason-Of-Nobody",
    "aus_text": "System-Of-Nobody",
    "aus_result_text": "Result-Of-Nobody",
    "applicant_credit_score_text": "Model-Of-Nobody",
}
SHEET_SECRETS = ("Contact Nobody", "555-867-5309", "nobody@lender.invalid", "1 Sheet Road", "Sheetville", "98-7654321")
_BLANK = dict.fromkeys(FIELDS, "")
_COMMON = {
    **{
        "record": "2",
        "lei": LEI,
        "loan_type": "1",
        "loan_purpose": "1",
        "preapproval": "2",
        "construction_method": "1",
    },
    **{"occupancy_type": "1", "state_code": "IL", "county_code": "17167", "census_tract": "17167000100"},
    **{"applicant_ethnicity_1": "2", "co_applicant_ethnicity_1": "5", "applicant_race_1": "5"},
    **{"co_applicant_race_1": "8", "applicant_sex": "1", "co_applicant_sex": "5"},
    **{f"applicant_{what}_observed": "2" for what in ("ethnicity", "race", "sex")},
    **{f"co_applicant_{what}_observed": "4" for what in ("ethnicity", "race", "sex")},
    **{"co_applicant_age_filed": "9999", "purchaser_type": "0", "rate_spread": "NA", "hoepa_status": "3"},
    **{"lien_status": "1", "co_applicant_credit_score_filed": "9999", "applicant_credit_score_type": "1"},
    **{"co_applicant_credit_score_type": "10", "denial_reason_1": "10", "intro_rate_period": "NA", "loan_term": "360"},
    **dict.fromkeys(("total_loan_costs", "total_points_and_fees", "origination_charges", "discount_points"), "NA"),
    **dict.fromkeys(("lender_credits", "interest_rate", "prepayment_penalty_term", "multifamily_units_filed"), "NA"),
    **{"manufactured_home_secured_property_type": "3", "manufactured_home_land_property_interest": "5"},
    **{"total_units_filed": "1", "submission_of_application": "1", "initially_payable_to_institution": "1"},
    **{"aus_1": "1", "aus_result_1": "3"},
    **dict.fromkeys(("balloon_payment", "interest_only_payment", "negative_amortization"), "2"),
    **dict.fromkeys(("other_nonamortizing_features", "reverse_mortgage", "open_end_line_of_credit"), "2"),
    "business_or_commercial_purpose": "2",
}
_DENIED = {"action_taken": "3", "denial_reason_1": "3"}
_ORIGINATED = {"action_taken": "1", "interest_rate": "6.5", "rate_spread": "0.4", "hoepa_status": "2"}
_ORIGINATED |= {"total_loan_costs": "2400", "origination_charges": "900", "purchaser_type": "1"}


def rows_of(number: int, year: int = 2023, seed: int = 1, changed: Mapping[str, str] | None = None) -> list[list[str]]:
    """Rows that fail no edit; ``changed`` gives all of them other cells."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(1, number + 1):
        income, amount = int(rng.integers(30, 300)), int(rng.integers(50_000, 600_000))
        cells = {
            **_BLANK,
            **_COMMON,
            **(_ORIGINATED if rng.random() < 0.7 else _DENIED),
            **{name: f"{secret} {i}" for name, secret in SECRETS.items()},
            **{"uli": with_check_digits(f"{SECRETS['uli']}{i:020}"), "zip_code": SECRETS["zip_code"]},
            "nmlsr_identifier": f"{SECRETS['nmlsr_identifier']}{i}",
            "application_date": f"{year}01{1 + i % 28:02}",
            "action_taken_date": f"{year}{2 + i % 11:02}{1 + i % 28:02}",
            "loan_amount": str(amount),
            "income": str(income),
            "applicant_race_1": str(rng.choice(["5", "3", "2"], p=[0.6, 0.3, 0.1])),
            "applicant_sex": str(rng.choice(["1", "2"])),
            "applicant_age_filed": str(int(rng.integers(21, 90))),
            "applicant_credit_score_filed": str(int(rng.integers(560, 820))),
            "debt_to_income_filed": f"{rng.uniform(10, 65):.2f}",
            "combined_loan_to_value_ratio": f"{rng.uniform(40, 97):.2f}",
            "property_value": str(amount + int(rng.integers(10_000, 90_000))),
            **(changed or {}),
        }
        rows.append([cells[name] for name in FIELDS])
    return rows


def with_check_digits(identifier: str) -> str:
    """An identifier with the two digits that make its remainder by 97 one, letters being 10 to 35."""
    digits = "".join(str(int(letter, 36)) for letter in identifier)
    return f"{identifier}{98 - int(digits + '00') % 97:02}"


def sheet_of(number: int, activity_year: int = 2023, **changed: str) -> list[str]:
    """The transmittal sheet over so many rows."""
    contact, phone, mail, street, city, tax = SHEET_SECRETS
    cells = {
        **{
            "record": "1",
            "name": "Made Up Test Lender",
            "year": str(activity_year),
            "quarter": "4",
            "contact": contact,
        },
        **{"phone": phone, "mail": mail, "street": street, "city": city, "state": "IL", "zip": "62701", "agency": "9"},
        **{"entries": str(number), "tax": tax, "lei": LEI},
        **changed,
    }
    return list(cells.values())


def write(path: Path, rows: list[list[str]], sheet: list[str] | None = None) -> Path:
    """A submission: its sheet, and its rows."""
    lines = [*([sheet] if sheet else []), *rows]
    path.write_text("".join("|".join(line) + "\n" for line in lines), encoding="utf-8")
    return path


def changed(row: list[str], **cells: str) -> list[str]:
    """The row with other cells."""
    return [cells.get(name, cell) for name, cell in zip(FIELDS, row, strict=True)]
