"""Published layouts of HMDA: names and order of their columns, and the years that they cover.

Names are those of the files after ``normalised``: with underscores, in lower case. What the columns mean, and what
becomes of their codes, is not said here. Columns and positions: FFIEC and CFPB record formats of 2004 to 2025.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Family = Literal["historic", "flat_2017", "modern", "canonical"]


@dataclass(frozen=True)
class Layout:
    """One published form of the loan application register."""

    name: str
    family: Family
    """Whose codes and units the columns hold."""
    years: tuple[int, int]
    """First and last year of activity that was published so."""
    columns: tuple[str, ...]
    """Names in the order of the file."""
    header: bool
    """Whether it was published with a first line that names the columns; some files come otherwise."""
    stops: tuple[int, ...] = ()
    """Of fixed width: the position, from 1, at which each column ends; the next begins after it."""


_SYNONYMS = {  # the header of a lender's Modified LAR says these otherwise
    "applicant_credit_scoring_model": "applicant_credit_score_type",
    "co_applicant_credit_scoring_model": "co_applicant_credit_score_type",
    "other_non_amortizing_features": "other_nonamortizing_features",
}


def normalised(name: str) -> str:
    """A column's name as it stands here: data browser and snapshot differ in hyphens only, but for one."""
    plain = name.strip().lower().replace("-", "_")
    return _SYNONYMS.get(plain, plain)


def _names(text: str) -> list[str]:
    """Names between blanks; ``race:5`` stands for race_1 to race_5."""
    out = []
    for word in text.split():
        stem, colon, count = word.partition(":")
        out += [f"{stem}_{i}" for i in range(1, int(count) + 1)] if colon else [word]
    return out


_PEOPLE = _names("applicant_ethnicity co_applicant_ethnicity applicant_race:5 co_applicant_race:5")

_HISTORIC_TRACT = _names(
    "population minority_population hud_median_family_income tract_to_msamd_income "
    "number_of_owner_occupied_units number_of_1_to_4_family_units"
)

_HISTORIC_CODES = (
    *_names("as_of_year respondent_id agency_code loan_type property_type loan_purpose owner_occupancy"),
    *_names("loan_amount_000s preapproval action_taken msamd state_code county_code census_tract_number"),
    *_PEOPLE,
    *_names("applicant_sex co_applicant_sex applicant_income_000s purchaser_type denial_reason:3"),
    *_names("rate_spread hoepa_status lien_status edit_status sequence_number"),
    *_HISTORIC_TRACT,
    "application_date_indicator",
)

_WITHOUT_LABEL = {
    *_names("as_of_year respondent_id loan_amount_000s census_tract_number applicant_income_000s rate_spread"),
    *("sequence_number", *_HISTORIC_TRACT, "application_date_indicator"),
}


def _labels_of(column: str) -> list[str]:
    """The columns that say a code in words; they stand before it."""
    if column in _WITHOUT_LABEL:
        return []
    stem, _, last = column.rpartition("_")
    if last.isdigit():
        return [f"{stem}_name_{last}"]
    if column in ("agency_code", "state_code"):
        return [f"{stem}_name", f"{stem}_abbr"]
    return [f"{stem if last == 'code' else column}_name"]


_HISTORIC_LABELS = tuple(name for column in _HISTORIC_CODES for name in (*_labels_of(column), column))

_SLICE_NUMBERS = _names(
    "tract_to_msamd_income rate_spread population minority_population number_of_owner_occupied_units "
    "number_of_1_to_4_family_units loan_amount_000s hud_median_family_income applicant_income_000s"
)
_SLICE_TEXTS = {label for column in _HISTORIC_CODES for label in _labels_of(column)} | _WITHOUT_LABEL
_HISTORIC_SLICE = (*_SLICE_NUMBERS, *sorted(_SLICE_TEXTS - set(_SLICE_NUMBERS), reverse=True))

_NARA = (
    *_names("as_of_year respondent_id agency_code loan_type loan_purpose owner_occupancy loan_amount_000s"),
    *_names("action_taken msamd state_code county_code census_tract_number applicant_sex co_applicant_sex"),
    *_names("applicant_income_000s purchaser_type denial_reason:3 edit_status property_type preapproval"),
    *_PEOPLE,
    *_names("rate_spread hoepa_status lien_status sequence_number"),
)
_NARA_WIDER = {  # all others are codes of one character
    **{"as_of_year": 4, "respondent_id": 10, "loan_amount_000s": 5, "msamd": 5, "state_code": 2, "county_code": 3},
    **{"census_tract_number": 7, "applicant_income_000s": 4, "rate_spread": 5, "sequence_number": 7},
}
_NARA_STOPS = tuple(accumulate(_NARA_WIDER.get(name, 1) for name in _NARA))

_TRACT = _names(
    "tract_population tract_minority_population_percent ffiec_msa_md_median_family_income "
    "tract_to_msa_income_percentage tract_owner_occupied_units"
)
_DERIVED = _names("derived_loan_product_type derived_dwelling_category derived_ethnicity derived_race derived_sex")

_FLAT_2017 = (
    *_names("activity_year respondent_id agency_code loan_type property_type loan_purpose occupancy_type"),
    *_names("loan_amount preapproval action_taken msa_md state_code county_code census_tract"),
    *_PEOPLE,
    *_names("applicant_sex co_applicant_sex income purchaser_type denial_reason:3"),
    *_names("rate_spread hoepa_status lien_status"),
    *(*_TRACT, "tract_one_to_four_family_units"),
)

_MODERN_PEOPLE = _names(
    "applicant_ethnicity:5 co_applicant_ethnicity:5 applicant_ethnicity_observed co_applicant_ethnicity_observed "
    "applicant_race:5 co_applicant_race:5 applicant_race_observed co_applicant_race_observed "
    "applicant_sex co_applicant_sex applicant_sex_observed co_applicant_sex_observed"
)
_COSTS = _names("total_loan_costs total_points_and_fees origination_charges discount_points lender_credits")
_SCORES = _names("applicant_credit_score_type co_applicant_credit_score_type")
_DWELLING = _names(
    "manufactured_home_secured_property_type manufactured_home_land_property_interest total_units "
    "multifamily_affordable_units"
)

_PUBLIC_LAR = (
    *_names("activity_year lei derived_msa_md state_code county_code census_tract conforming_loan_limit"),
    *_DERIVED,
    *_names("action_taken purchaser_type preapproval loan_type loan_purpose lien_status reverse_mortgage"),
    *_names("open_end_line_of_credit business_or_commercial_purpose loan_amount combined_loan_to_value_ratio"),
    *_names("interest_rate rate_spread hoepa_status"),
    *_COSTS,
    *_names("loan_term prepayment_penalty_term intro_rate_period negative_amortization interest_only_payment"),
    *_names("balloon_payment other_nonamortizing_features property_value construction_method occupancy_type"),
    *(*_DWELLING, "income", "debt_to_income_ratio", *_SCORES, *_MODERN_PEOPLE),
    *_names("applicant_age co_applicant_age applicant_age_above_62 co_applicant_age_above_62"),
    *_names("submission_of_application initially_payable_to_institution aus:5 denial_reason:4"),
    *(*_TRACT, "tract_one_to_four_family_homes", "tract_median_age_of_housing_units"),
)

_MODIFIED_LAR = (
    *_names("activity_year lei loan_type loan_purpose preapproval construction_method occupancy_type"),
    *_names("loan_amount action_taken state_code county_code census_tract"),
    *_MODERN_PEOPLE,
    *_names("applicant_age applicant_age_above_62 co_applicant_age co_applicant_age_above_62 income"),
    *_names("purchaser_type rate_spread hoepa_status lien_status"),
    *_SCORES,
    *_names("denial_reason:4"),
    *_COSTS,
    *_names("interest_rate prepayment_penalty_term debt_to_income_ratio combined_loan_to_value_ratio loan_term"),
    *_names("intro_rate_period balloon_payment interest_only_payment negative_amortization"),
    *("other_nonamortizing_features", "property_value", *_DWELLING),
    *_names("submission_of_application initially_payable_to_institution aus:5"),
    *_names("reverse_mortgage open_end_line_of_credit business_or_commercial_purpose"),
)

_DATA_BROWSER = tuple("loan_to_value_ratio" if c == "combined_loan_to_value_ratio" else c for c in _PUBLIC_LAR)

_NO_LAST = 9999
"""The modern layouts have no last year yet."""

LAYOUTS: tuple[Layout, ...] = (
    Layout("historic_labels", "historic", (2007, 2017), _HISTORIC_LABELS, header=True),
    Layout("historic_codes", "historic", (2007, 2017), _HISTORIC_CODES, header=True),
    Layout("historic_slice", "historic", (2007, 2017), _HISTORIC_SLICE, header=True),
    Layout("nara_fixed", "historic", (2004, 2013), _NARA, header=False, stops=_NARA_STOPS),
    # A file of 2017 with 45 fields is of this layout: the three more than 42 are what it had before.
    Layout("ffiec_flat", "historic", (2014, 2017), _HISTORIC_CODES, header=False),
    Layout("flat_2017", "flat_2017", (2017, 2017), _FLAT_2017, header=False),
    Layout("flat_2017_three_year", "flat_2017", (2017, 2017), (*_FLAT_2017, *_DERIVED), header=False),
    Layout("public_lar", "modern", (2018, _NO_LAST), _PUBLIC_LAR, header=True),
    Layout("data_browser", "modern", (2018, _NO_LAST), _DATA_BROWSER, header=True),
    Layout("modified_lar", "modern", (2018, _NO_LAST), _MODIFIED_LAR, header=True),
)
BY_NAME = {layout.name: layout for layout in LAYOUTS}
