"""The codes of HMDA by era, as its files hold them: which are known, what their labels are, and which are rolled up.

Scope: facts. How cells are held against them: ``cells``. Source: the filing guides of 2007 to 2025, and the labels as
the historic files spell them.
"""

from types import MappingProxyType
from typing import Final

from schemas.tables.hmda import HMDA_APPLICATIONS

Codes = tuple[str, ...]
Labels = MappingProxyType[str, str]

NOT_APPLICABLE: Final = "NA"
EXEMPT: Final = "Exempt"

CANONICAL: Final = {column.name: column for column in HMDA_APPLICATIONS.columns}
"""Columns of the canonical table by name. The codes of a column that is rolled up are those after that."""

HISTORIC: Final[dict[str, Codes]] = {
    "loan_purpose_raw": ("1", "2", "3"),
    "hoepa_status": ("1", "2"),
    "preapproval_raw": ("1", "2", "3"),
    "purchaser_type_raw": tuple("0123456789"),
    **{f"denial_reason_{i}": tuple("123456789") for i in (1, 2, 3)},
    "applicant_ethnicity_1_raw": ("1", "2", "3", "4"),
    "co_applicant_ethnicity_1_raw": ("1", "2", "3", "4", "5"),
    **{f"applicant_race_{i}_raw": tuple("1234567") for i in range(1, 6)},
    **{f"co_applicant_race_{i}_raw": tuple("12345678") for i in range(1, 6)},
    "applicant_sex": ("1", "2", "3", "4"),
    "co_applicant_sex": ("1", "2", "3", "4", "5"),
}
"""Codes of the files until 2017, where they are fewer than a canonical column knows."""

MODERN: Final[dict[str, Codes]] = {
    "loan_purpose_raw": ("1", "2", "31", "32", "4", "5"),
    "purchaser_type_raw": (*"0123456", "71", "72", "8", "9"),
    "preapproval_raw": ("1", "2"),
    "lien_status_raw": ("1", "2"),
}
"""Codes of the files from 2018, where they are fewer than a canonical column knows."""

WORDS: Final[dict[str, Codes]] = {f"denial_reason_{i}": ("10",) for i in range(1, 5)}
"""Canonical column -> codes as filed that say no more than that there is nothing to say."""

ROLLED_UP: Final = (
    "loan_purpose",
    "purchaser_type",
    *(
        f"{who}_{what}"
        for who in ("applicant", "co_applicant")
        for what in (*(f"race_{i}" for i in range(1, 6)), "ethnicity_1")
    ),
)
"""Canonical columns whose code is the first digit of that of their column in the file: 31 -> 3, 72 -> 7, 21 -> 2."""

NO_AREA: Final = ("0", "00000", "99999", NOT_APPLICABLE)
"""Metropolitan area: outside of all, or none given."""


def _labels(*labels: str, first: int = 1) -> Labels:
    """Label -> code, of codes that are counted up."""
    return MappingProxyType({label: str(code) for code, label in enumerate(labels, start=first) if label})


_NOT_PROVIDED = "Information not provided by applicant in mail, Internet, or telephone application"
_NONE, _NO_CO = "Not applicable", "No co-applicant"
_RACE = (
    *("American Indian or Alaska Native", "Asian", "Black or African American"),
    *("Native Hawaiian or Other Pacific Islander", "White", _NOT_PROVIDED, _NONE),
)
_ETHNICITY = ("Hispanic or Latino", "Not Hispanic or Latino", _NOT_PROVIDED, _NONE)
_SEX = ("Male", "Female", _NOT_PROVIDED, _NONE)
_REASON = _labels(
    *("Debt-to-income ratio", "Employment history", "Credit history", "Collateral"),
    *("Insufficient cash (downpayment, closing costs)", "Unverifiable information", "Credit application incomplete"),
    *("Mortgage insurance denied", "Other"),
)

LABELS: Final[dict[str, Labels]] = {
    "agency_abbr": MappingProxyType(
        {"OCC": "1", "FRS": "2", "FDIC": "3", "OTS": "4", "NCUA": "5", "HUD": "7", "CFPB": "9"}
    ),
    "action_taken_name": _labels(
        *("Loan originated", "Application approved but not accepted", "Application denied by financial institution"),
        *("Application withdrawn by applicant", "File closed for incompleteness"),
        *("Loan purchased by the institution", "Preapproval request denied by financial institution"),
        "Preapproval request approved but not accepted",
    ),
    "loan_type_name": _labels("Conventional", "FHA-insured", "VA-guaranteed", "FSA/RHS-guaranteed"),
    "property_type_name": _labels(
        "One-to-four family dwelling (other than manufactured housing)", "Manufactured housing", "Multifamily dwelling"
    ),
    "loan_purpose_name": _labels("Home purchase", "Home improvement", "Refinancing"),
    "owner_occupancy_name": _labels(
        "Owner-occupied as a principal dwelling", "Not owner-occupied as a principal dwelling", _NONE
    ),
    "preapproval_name": _labels("Preapproval was requested", "Preapproval was not requested", _NONE),
    "purchaser_type_name": _labels(
        "Loan was not originated or was not sold in calendar year covered by register",
        *("Fannie Mae (FNMA)", "Ginnie Mae (GNMA)", "Freddie Mac (FHLMC)", "Farmer Mac (FAMC)"),
        *("Private securitization", "Commercial bank, savings bank or savings association"),
        "Life insurance company, credit union, mortgage bank, or finance company",
        *("Affiliate institution", "Other type of purchaser"),
        first=0,
    ),
    "hoepa_status_name": _labels("HOEPA loan", "Not a HOEPA loan"),
    "lien_status_name": MappingProxyType(
        {
            "Secured by a first lien": "1",
            "Secured by a subordinate lien": "2",
            "Not secured by a lien": "3",
            **dict.fromkeys(("Not applicable", "Not applicable (purchased loans)"), "4"),
        }
    ),
    "applicant_ethnicity_name": _labels(*_ETHNICITY),
    "co_applicant_ethnicity_name": _labels(*_ETHNICITY, _NO_CO),
    **{f"applicant_race_name_{i}": _labels(*_RACE) for i in range(1, 6)},
    **{f"co_applicant_race_name_{i}": _labels(*_RACE, _NO_CO) for i in range(1, 6)},
    "applicant_sex_name": _labels(*_SEX),
    "co_applicant_sex_name": _labels(*_SEX, _NO_CO),
    **{f"denial_reason_name_{i}": _REASON for i in (1, 2, 3)},
}
"""Column of labels of the historic files -> label -> code."""

_BY_NUMBER = (
    "AL AK - AZ AR CA - CO CT DE DC FL GA - HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH "
    "OK OR PA - RI SC SD TN TX UT VT VA - WA WV WI WY - - - AS - - - FM - GU - MH MP PW - PR - UM - - - VI"
)
FIPS_OF_STATE: Final = {
    letters: f"{number:02d}" for number, letters in enumerate(_BY_NUMBER.split(), start=1) if letters != "-"
}
"""Two letters -> two digits, those of FIPS 5-2."""
