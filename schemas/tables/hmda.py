"""The canonical table of HMDA applications: every year and layout in one set of columns, units and codes.

A column that a layout lacks is null in all of its rows. Numbers are in dollars, percent, months or counts. A null
number was not applicable (the file says NA), unless ``exempt`` or ``blank`` names its column. Codes are text; 8888 (not
applicable), 9999 (no co-applicant) and 1111 (exempt) are kept as filed. Source: the filing guides of FFIEC and CFPB for
2007 to 2025.

Scope: the meaning of columns. Conversion of the layouts: ``tasks.ingest.hmda.canonical``.
"""

from schemas.table import Column, Table
from schemas.terms import Refusal

_FIVE = range(1, 6)
EXEMPT_CODE = "1111"
RACES = ("1", "2", "3", "4", "5", "6", "7")
RACES_RAW = (*RACES, *(f"2{i}" for i in range(1, 8)), *(f"4{i}" for i in range(1, 5)))
ETHNICITIES = ("1", "2", "3", "4")
ETHNICITIES_RAW = (*ETHNICITIES, "11", "12", "13", "14")
SEXES = ("1", "2", "3", "4", "6")
AGES = ("<25", "25-34", "35-44", "45-54", "55-64", "65-74", ">74", "8888")
RATIOS = ("<20%", "20%-<30%", "30%-<36%", *map(str, range(36, 50)), "50%-60%", ">60%", "NA", "Exempt")
SCORES = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "11", "12", "13", "14", "15", EXEMPT_CODE)
OBSERVED = ("1", "2", "3")
AUS_RESULTS = (*map(str, range(1, 25)), EXEMPT_CODE)
DERIVED_RACES = (
    *("American Indian or Alaska Native", "Asian", "Black or African American"),
    *("Native Hawaiian or Other Pacific Islander", "White", "2 or more minority races", "Joint"),
    *("Free Form Text Only", "Race Not Available"),
)
DERIVED_ETHNICITIES = (
    *("Hispanic or Latino", "Not Hispanic or Latino", "Joint", "Free Form Text Only", "Ethnicity Not Available"),
)
DERIVED_SEXES = ("Male", "Female", "Joint", "Sex Not Available")
PRODUCTS = tuple(
    f"{kind}:{lien} Lien" for lien in ("First", "Subordinate") for kind in ("Conventional", "FHA", "VA", "FSA/RHS")
)
DWELLINGS = tuple(
    f"{size}:{make}" for make in ("Site-Built", "Manufactured") for size in ("Single Family (1-4 Units)", "Multifamily")
)
_STATES = (
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR "
    "PA RI SC SD TN TX UT VT VA WA WV WI WY AS GU MP PR UM VI FM MH PW"
)
STATES = tuple(_STATES.split())


def _text(name: str, description: str, codes: tuple[str, ...] = ()) -> Column:
    return Column(name, "string", description, nullable=True, codes=codes)


def _number(name: str, description: str, minimum: float | None = None, maximum: float | None = None) -> Column:
    return Column(name, "double", description, True, minimum, maximum)


def _yes_no(name: str, what: str) -> Column:
    return _text(name, f"{what}: 1 yes, 2 no, 1111 exempt", ("1", "2", EXEMPT_CODE))


def _people(prefix: str, extra: str) -> tuple[Column, ...]:
    """Race, ethnicity and sex of the applicant or the co-applicant; ``extra`` is the code of no co-applicant."""
    person, extra_codes = prefix.replace("_", "-"), (extra,) if extra else ()
    none, observed = ((str(int(extra) - 3),), (*OBSERVED, "4")) if extra else ((), OBSERVED)
    return (
        *(
            _text(f"{prefix}_ethnicity_{i}_raw", f"{person}'s ethnicity {i} as filed", ETHNICITIES_RAW + none)
            for i in _FIVE
        ),
        _text(f"{prefix}_ethnicity_1", f"{person}'s first ethnicity, 11 to 14 rolled up to 1", ETHNICITIES + none),
        *(_text(f"{prefix}_race_{i}_raw", f"{person}'s race {i} as filed", RACES_RAW + extra_codes) for i in _FIVE),
        *(
            _text(
                f"{prefix}_race_{i}",
                f"{person}'s race {i}, 21 to 27 rolled up to 2 and 41 to 44 to 4",
                RACES + extra_codes,
            )
            for i in _FIVE
        ),
        _text(
            f"{prefix}_sex", f"{person}'s sex: 1 male, 2 female, 3 not provided, 4 not applicable, 6 both", SEXES + none
        ),
        *(
            _text(f"{prefix}_{what}_observed", f"whether {what} was noted from sight or surname: 1 yes, 2 no", observed)
            for what in ("ethnicity", "race", "sex")
        ),
        _text(f"{prefix}_age", f"{person}'s age band; 8888 not applicable", AGES + (("9999",) if extra else ())),
        _number(f"{prefix}_age_years", f"{person}'s age, of a lender's own submission alone", 0),
        _text(f"{prefix}_age_above_62", f"whether the {person} is 62 or older", ("Yes", "No", "NA")),
        _text(
            f"{prefix}_credit_score_type", f"model of the {person}'s credit score", SCORES + (("10",) if extra else ())
        ),
        _number(f"{prefix}_credit_score", f"{person}'s credit score, of a lender's own submission alone", 0),
    )


_WHO_AND_WHERE = (
    Column("source_row", "int64", "number of the row in the delivered file, from 1", minimum=1),
    Column("activity_year", "int32", "calendar year of the action", True, 1990, 2100),
    _text("application_month", "year and month of the application, of a lender's own submission alone"),
    _text("action_month", "year and month of the action, of a lender's own submission alone"),
    _text("lender_id", "LEI from 2018; agency and respondent before, joined by a hyphen; no crosswalk between them"),
    _text("agency_code", "regulator until 2017", ("1", "2", "3", "4", "5", "7", "9")),
    _text("state_code", "two letters", STATES),
    _text("county_fips5", "five digits"),
    _text("county_name", "in words, where the layout has no more than that"),
    _text("tract_fips11", "eleven digits, of the census that the year uses"),
    _text("census_tract", "the last six digits of the tract, within its county"),
    _text("msa_md", "metropolitan area; null outside of all"),
    _text("msa_md_name", "in words, where the layout has no more than that"),
)

_APPLICATION = (
    _text("action_taken", "1 originated to 8 preapproval approved; 3 is denied", tuple("12345678")),
    *(
        _text(f"denial_reason_{i}", "1 to 9, 1111 exempt; not applicable is null", (*"123456789", EXEMPT_CODE))
        for i in range(1, 5)
    ),
    _text("loan_type", "1 conventional, 2 FHA, 3 VA, 4 FSA or RHS", tuple("1234")),
    _text("loan_purpose", "1 purchase, 2 improvement, 3 refinancing, 4 other, 5 not applicable", tuple("12345")),
    _text("loan_purpose_raw", "as filed; 31 and 32 are 3", ("1", "2", "3", "31", "32", "4", "5")),
    _text("property_type", "1 one to four units, 2 manufactured, 3 multifamily", tuple("123")),
    _text("occupancy", "1 principal residence, 2 not; not applicable is null", tuple("12")),
    _text("occupancy_raw", "as filed: 3 was not applicable until 2017, and is an investment from 2018", tuple("123")),
    _text("preapproval", "1 requested, 2 not; not applicable is null", tuple("12")),
    _text("preapproval_raw", "as filed; 3 was not applicable until 2017", tuple("123")),
    _text("lien_status", "1 first, 2 subordinate, 3 none; not applicable is null", tuple("123")),
    _text("lien_status_raw", "as filed; 4 was a purchased loan until 2017", tuple("1234")),
    _text("hoepa_status", "1 high-cost, 2 not, 3 not applicable", tuple("123")),
    _text("purchaser_type", "0 not sold to 9 other; 71 and 72 are 7", tuple("0123456789")),
    _text("purchaser_type_raw", "as filed", (*"0123456789", "71", "72")),
    _text("conforming_loan_limit", "C conforming, NC not, U undetermined", ("C", "NC", "U", "NA")),
    _text("derived_loan_product_type", "loan type and lien in words", PRODUCTS),
    _text("derived_dwelling_category", "units and construction in words", DWELLINGS),
    _number("loan_amount_usd", "dollars; as published from 2018 the middle of a band of 10,000", 0),
    _number("income_usd", "dollars a year, filed in thousands; negative values occur"),
    _number("property_value_usd", "dollars; as published the middle of a band of 10,000", 0),
    _text("debt_to_income_ratio", "percent: bands, and whole numbers from 36 to 49", RATIOS),
    _number("debt_to_income_pct", "percent, of files that hold the exact ratio"),
    _number("ltv_ratio", "combined loan-to-value ratio in percent", 0),
)

_TERMS = (
    _number("interest_rate", "percent"),
    _number("rate_spread", "percentage points; until 2017 only above a threshold, so never compared across 2018"),
    *(
        _number(name, "dollars")
        for name in ("total_loan_costs", "total_points_and_fees", "origination_charges", "discount_points")
    ),
    _number("lender_credits", "dollars; blank is none"),
    _number("loan_term", "months", 0),
    _number("prepayment_penalty_term", "months", 0),
    _number("intro_rate_period", "months", 0),
    _yes_no("reverse_mortgage", "reverse mortgage"),
    _yes_no("open_end_line_of_credit", "line of credit"),
    _yes_no("business_or_commercial_purpose", "business purpose"),
    _yes_no("negative_amortization", "negative amortisation"),
    _yes_no("interest_only_payment", "interest-only payments"),
    _yes_no("balloon_payment", "balloon payment"),
    _yes_no("other_nonamortizing_features", "other non-amortising features"),
    _text("construction_method", "1 site-built, 2 manufactured", ("1", "2")),
    _text("manufactured_home_secured_property_type", "1 home and land to 3 not applicable", (*"123", EXEMPT_CODE)),
    _text("manufactured_home_land_property_interest", "1 ownership to 5 not applicable", (*"12345", EXEMPT_CODE)),
    _text("total_units", "number of units, in bands from 5", (*"1234", "5-24", "25-49", "50-99", "100-149", ">149")),
    _number("multifamily_affordable_units", "percent of the units", 0),
    _text("submission_of_application", "1 to the lender, 2 not, 3 not applicable", (*"123", EXEMPT_CODE)),
    _text("initially_payable_to_institution", "1 to the lender, 2 not, 3 not applicable", (*"123", EXEMPT_CODE)),
    *(_text(f"aus_{i}", f"automated underwriting system {i}", (*"1234567", EXEMPT_CODE)) for i in _FIVE),
    *(
        _text(f"aus_result_{i}", f"recommendation of system {i}, of a lender's own submission alone", AUS_RESULTS)
        for i in _FIVE
    ),
)

_TRACT = (
    _number("tract_population", "persons", 0),
    _number("tract_minority_pct", "percent of the persons", 0, 100),
    _number("ffiec_median_family_income", "dollars, of the metropolitan area", 0),
    _number("tract_to_msa_income_pct", "percent", 0),
    _number("tract_owner_occupied_units", "units", 0),
    _number("tract_1_4_family_units", "units", 0),
    _number("tract_median_age_of_housing_units", "years"),
)

_DERIVED = tuple(
    _text(f"derived_{what}", "of applicant and co-applicant together, as published or by the same rules", codes)
    for what, codes in (("ethnicity", DERIVED_ETHNICITIES), ("race", DERIVED_RACES), ("sex", DERIVED_SEXES))
)

UNIT_FLAGS = (
    *("income_not_positive", "income_in_dollars", "income_by_month", "loan_amount_too_large", "ltv_as_fraction"),
    *("ltv_too_large", "interest_rate_as_fraction", "loan_term_one_month", "code_as_discount_points"),
)

_MARKS = (
    *(_text(name, "as filed until 2017") for name in ("edit_status", "sequence_number", "application_date_indicator")),
    _text("exempt", "numbers that the lender need not report, by column, joined by commas"),
    _text("blank", "numbers that the file has a column for and leaves blank, by column, joined by commas"),
    _text("unknown_codes", "JSON object: column -> value that no filing guide lists; the column itself is null"),
    _text("failed_edits", "edits of the FFIEC that a row of a lender's own submission fails, joined by commas"),
    _text("unit_flag", f"signs of a wrong unit, joined by commas, never mended: {', '.join(UNIT_FLAGS)}"),
)

SUBMITTED = (
    *("application_month", "action_month", "debt_to_income_pct", "failed_edits"),
    *(f"{person}_{what}" for person in ("applicant", "co_applicant") for what in ("age_years", "credit_score")),
    *(f"aus_result_{i}" for i in _FIVE),
)
"""Columns that came with the lenders' own submissions: vintages of earlier releases lack them."""

HMDA_APPLICATIONS = Table(
    "hmda_applications",
    "Applications of one delivered file of HMDA, in the units and codes that all years share; in no order.",
    (
        *_WHO_AND_WHERE,
        *_APPLICATION,
        *_TERMS,
        *_people("applicant", ""),
        *_people("co_applicant", "8"),
        *_DERIVED,
        *_TRACT,
        *_MARKS,
    ),
    key=("source_row",),
    per_application=True,
    restricted=True,
)

HMDA_REFUSALS = Table(
    "hmda_refusals",
    "Rows of the delivered file that are no applications, each with its reason.",
    (
        Column("source_row", "int64", "number of the row in the delivered file, from 1", minimum=1),
        Column("reason", "string", "why", codes=tuple(Refusal)),
        _text("column", "the canonical column to blame"),
        _text("detail", "what stands there"),
    ),
    key=("source_row",),
    restricted=True,
)

HMDA_LENDERS = Table(
    "hmda_lenders",
    "The lenders of one vintage, in the order of their ids: how many rows each has, and a digest of them alone.",
    (
        Column("lender_id", "string", "as in hmda_applications; empty for the rows that name no lender"),
        _text("name", "of the lender, where the delivered file says it; no layout so far does"),
        Column("rows", "int64", "applications", minimum=1),
        *(
            Column(f"action_taken_{code}", "int64", f"applications whose action_taken is {code}", minimum=0)
            for code in "12345678"
        ),
        Column("states", "string", "states of the applications, joined by commas; none where a row has no state"),
        Column("first_row", "int64", "lowest source_row", minimum=1),
        Column("last_row", "int64", "highest source_row", minimum=1),
        Column("rows_sha256", "string", "digest of the applications without source_row, whatever their order"),
    ),
    key=("lender_id",),
)
