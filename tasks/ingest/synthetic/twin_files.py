"""Files of the synthetic twin in the published layouts of HMDA."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from schemas.errors import SpecError
from tasks.ingest.hmda.layouts import BY_NAME
from tasks.ingest.synthetic.algorithm.twin import (
    AGES,
    DEBT,
    DEBT_BANDS,
    DENIED,
    NOBODY,
    NOT_ACCEPTED,
    ORIGINATED,
    PREAPPROVAL_DENIED,
    PREAPPROVED,
    PURCHASED,
    PURPOSES,
    RACES,
    RATIO,
    SEXES,
    STATES,
    WHITE,
    Nation,
    Otherwise,
    Twin,
    TwinSettings,
    blocks,
    otherwise,
    usually,
)
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Arrays as columns of text, the form of an HMDA file.


def words(places: "np.ndarray[Any, Any]", vocabulary: Sequence[str]) -> pa.Array:
    """The words at some places ``(n,)`` of a list."""
    return pa.array(vocabulary, pa.string()).take(pa.array(places))


def numbers(values: "np.ndarray[Any, Any]") -> pa.Array:
    """Numbers ``(n,)`` as text that gives back the same numbers."""
    return pc.cast(pa.array(values), pa.string())


def always(text: str, n: int) -> pa.Array:
    """One text in every row."""
    return pa.repeat(pa.scalar(text, pa.string()), n)


def but(column: pa.Array, *exceptions: "tuple[np.ndarray[Any, Any], str]") -> pa.Array:
    """A column with another text where something holds ``(n,)``; a later exception goes over an earlier one."""
    for where, text in exceptions:
        column = pc.if_else(pa.array(where), text, column)
    return column


# --------------------------------------------------------------------------------------------------------------------
# People and places of the twin in the codes of HMDA, as far as both families of layouts share them.


NOTHING = 0
"""Stands for an empty cell."""
_ASIAN, _PACIFIC = RACES.index("Asian"), RACES.index("Pacific Islander")
_ASIANS, _PACIFICS, _HISPANICS = (21, 22, 27), (41, 44), (11, 14)
"""Detailed codes of 2018, given by those whose ``detail`` is 0, 1 or 2."""
_SECOND = 9
"""``detail`` of those who name white as a second race, which nobody does together with a co-applicant."""

DERIVED_RACE = (
    "American Indian or Alaska Native", "Asian", "Black or African American",
    "Native Hawaiian or Other Pacific Islander", "White", "Race Not Available",
)  # fmt: skip
DERIVED_ETHNICITY = ("Hispanic or Latino", "Not Hispanic or Latino", "Ethnicity Not Available")
DERIVED_SEX = ("Male", "Female", "Joint", "Sex Not Available")


@dataclass(frozen=True)
class Codes:
    """Codes of the applicant; those of a co-applicant are the same, or that there is none. All arrays ``(n,)``."""

    race: Ints
    second_race: Ints
    """``NOTHING`` where there is none, as of every co-applicant."""
    ethnicity: Ints
    sex: Ints
    co_race: Ints
    co_ethnicity: Ints
    co_sex: Ints
    unknown: Bools
    """Purchased loans of which the lender was told nothing about people: groups and ages do not apply."""
    alone: Bools
    derived_race: Ints
    """Place in ``DERIVED_RACE``."""
    derived_ethnicity: Ints
    derived_sex: Ints


def codes_of(twin: Twin) -> Codes:
    """Codes by the rules of the twin's year: before 2018 there are no detailed ones."""
    people, alone = twin.people, twin.people.cosex == NOBODY
    unknown = (twin.action == PURCHASED) & (people.detail % 2 == 0)
    detailed_race_people, detailed_race = twin.people, twin.people.race + 1
    for group, details in ((_ASIAN, _ASIANS), (_PACIFIC, _PACIFICS)):
        has_detail = (
            (detailed_race_people.race == group) & (detailed_race_people.detail < len(details)) & twin.settings.modern
        )
        detailed_race = np.where(
            has_detail, np.array(details)[np.minimum(detailed_race_people.detail, len(details) - 1)], detailed_race
        )
    race = _told(detailed_race, people.race_told, unknown, 6)
    ethnicity = _told(_detailed_ethnicity(twin), people.race_told, unknown, 3)
    two = alone & (people.race < WHITE) & (people.detail == _SECOND) & (race < 6)
    second = np.where(two, WHITE + 1, NOTHING)
    sex, cosex = (_told(sex_code + 1, people.sex_told, unknown, 3) for sex_code in (people.sex, people.cosex))
    is_race_known = people.race_told & ~unknown
    joint_sex = np.where(alone | (people.sex == people.cosex), people.sex, len(SEXES))
    return Codes(
        race=race,
        second_race=second,
        ethnicity=ethnicity,
        sex=sex,
        co_race=np.where(alone, 8, race),
        co_ethnicity=np.where(alone, 5, ethnicity),
        co_sex=np.where(alone, 5, cosex),
        unknown=unknown,
        alone=alone,
        derived_race=np.where(is_race_known, people.race, len(RACES)),
        derived_ethnicity=np.where(is_race_known, np.where(people.hispanic, 0, 1), 2),
        derived_sex=np.where(people.sex_told & ~unknown, joint_sex, 3),
    )


def _told(values: Ints, is_reported: Bools, unknown: Bools, not_provided: int) -> Ints:
    """A missing answer has its code, and the next code means `not applicable`."""
    codes: Ints = np.where(unknown, not_provided + 1, np.where(is_reported, values, not_provided))
    return codes


def _detailed_ethnicity(twin: Twin) -> Ints:
    people = twin.people
    details = np.array(_HISPANICS)[np.minimum(people.detail, len(_HISPANICS) - 1)]
    hispanic = np.where((people.detail < len(_HISPANICS)) & twin.settings.modern, details, 1)
    ethnicity: Ints = np.where(people.hispanic, hispanic, 2)
    return ethnicity


class County(NamedTuple):
    """A county that applications come from; tracts in it are numbered at will."""

    state: str
    fips: str
    """Five digits: state and county."""
    metropolitan: str
    """Number of the metropolitan area or division."""


COUNTIES = (
    County("CA", "06037", "31084"),
    County("FL", "12086", "33124"),
    County("IL", "17031", "16984"),
    County("MT", "30063", "33540"),
    County("NY", "36061", "35614"),
    County("TX", "48201", "26420"),
)
TRACTS = ("0001.00", "0029.02", "0047.00", "0101.01", "0205.03", "0320.00", "1203.00", "2402.00", "5234.01", "9501.00")
"""In every county."""
_TRACT_FACTS: Longs = np.arange(len(COUNTIES) * len(TRACTS))


class Tract(NamedTuple):
    """Published facts of a tract; arrays ``(60,)`` by place, the same in every counterfactual."""

    population: Longs = 1_500 + 97 * _TRACT_FACTS
    minority_percent: Floats = 3.25 + 1.5 * _TRACT_FACTS.astype(np.float64)
    median_family_income: Longs = 58_000 + 4_100 * (_TRACT_FACTS // 10)
    income_percent: Longs = 60 + 3 * (_TRACT_FACTS % 29)
    owner_occupied: Longs = 420 + 31 * _TRACT_FACTS
    family_homes: Longs = 610 + 37 * _TRACT_FACTS
    housing_age: Longs = 10 + _TRACT_FACTS


def by_tract(text: str) -> list[str]:
    """A text for every place, of ``{county}`` and ``{tract}``."""
    return [text.format(county=county, tract=tract) for county in COUNTIES for tract in TRACTS]


# --------------------------------------------------------------------------------------------------------------------
# The twin in the 99 columns of 2018 and later: dollars, detailed codes, `NA`, `Exempt` and 1111.
#
# Columns that the causal model knows nothing of (costs, terms, features of the loan) hold what is commonest, or follow
# from the action: a rate where there is a loan, `NA` where there is none.


Columns = Mapping[str, pa.Array]

PURPOSE_CODES = ("1", "2", "31", "32", "4")
"""Of ``PURPOSES``."""
NAMES_OF_TYPES = ("Conventional", "FHA", "VA", "FSA/RHS")
_LIMIT = 700_000
"""Dollars up to which a loan counts as conforming here, in every county and year."""
_REASONS = {"debt": 1, "ratio": 4, "other": 3}
_CONSTANT = {
    "reverse_mortgage": ("2", "1111"), "open_end_line_of_credit": ("2", "1111"),
    "business_or_commercial_purpose": ("2", "1111"), "total_points_and_fees": ("NA", "Exempt"),
    "lender_credits": ("", "Exempt"), "discount_points": ("", "Exempt"),
    "prepayment_penalty_term": ("NA", "Exempt"), "intro_rate_period": ("NA", "Exempt"),
    "negative_amortization": ("2", "1111"), "interest_only_payment": ("2", "1111"), "balloon_payment": ("2", "1111"),
    "other_nonamortizing_features": ("2", "1111"), "manufactured_home_secured_property_type": ("3", "1111"),
    "manufactured_home_land_property_interest": ("5", "1111"), "multifamily_affordable_units": ("NA", "Exempt"),
    "submission_of_application": ("1", "1111"), "initially_payable_to_institution": ("1", "1111"),
    "aus_1": ("6", "1111"), "aus_2": ("", ""), "aus_3": ("", ""), "aus_4": ("", ""), "aus_5": ("", ""),
    "loan_term": ("360", "Exempt"), "applicant_credit_score_type": ("2", "1111"),
}  # fmt: skip
"""Column -> what it says, and what of an exempt row."""


def modern_columns(twin: Twin) -> Columns:
    """All columns of the public LAR by name, as text ``(n,)``; in no particular order."""
    n = len(twin.action)
    fixed = {name: but(always(usual, n), (twin.unreported.exempt, other)) for name, (usual, other) in _CONSTANT.items()}
    return {**fixed, **_loan(twin), **_amounts(twin), **_prices(twin), **_people(twin), **_place(twin)}


def _loan(twin: Twin) -> Columns:
    people, n = twin.people, len(twin.action)
    kinds = [f"{name}:{lien} Lien" for name in NAMES_OF_TYPES for lien in ("First", "Subordinate")]
    requested = np.isin(twin.action, (PREAPPROVAL_DENIED, PREAPPROVED)) | (
        (people.purpose == PURPOSES.index("purchase")) & (people.detail == 0)
    )
    sold = np.isin(twin.action, (ORIGINATED, PURCHASED))
    why = reasons(twin)
    return {
        "activity_year": always(str(twin.settings.year), n),
        "lei": words(people.lender, lenders(twin.settings.lenders)),
        "action_taken": numbers(twin.action),
        "loan_type": numbers(people.kind + 1),
        "loan_purpose": words(people.purpose, PURPOSE_CODES),
        "lien_status": numbers(1 + people.subordinate.astype(np.int32)),
        "occupancy_type": numbers(people.occupancy + 1),
        "preapproval": words(np.where(requested, 0, 1), ("1", "2")),
        "purchaser_type": words(np.where(sold, people.detail % 5, 0), ("0", "1", "3", "2", "71")),
        "derived_loan_product_type": words(2 * people.kind + people.subordinate, kinds),
        "derived_dwelling_category": always("Single Family (1-4 Units):Site-Built", n),
        "construction_method": always("1", n),
        "total_units": always("1", n),
        "denial_reason_1": but(numbers(why), (why == NOTHING, "10"), (twin.unreported.exempt, "1111")),
        **{f"denial_reason_{i}": always("", n) for i in (2, 3, 4)},
    }


def lenders(count: int) -> list[str]:
    """Twenty letters and digits for each lender, which no lender has."""
    return [f"TWIN{number:016d}" for number in range(count)]


def reasons(twin: Twin) -> Ints:
    """``(n,)`` code of why an application was denied: what weighed most; ``NOTHING`` of all others."""
    away = twin.world.mediators - usually(twin.settings, twin.people.purpose)
    weighed = away * np.array(twin.settings.rule)
    worst = np.minimum(weighed[:, DEBT], weighed[:, RATIO])
    kind = np.where(weighed[:, DEBT] <= weighed[:, RATIO], _REASONS["debt"], _REASONS["ratio"])
    kind = np.where(worst < 0, kind, _REASONS["other"])
    denied = np.isin(twin.action, (DENIED, PREAPPROVAL_DENIED))
    reason_codes: Ints = np.where(denied, kind, NOTHING)
    return reason_codes


def _amounts(twin: Twin) -> Columns:
    published, gaps = twin.published, twin.unreported
    exempt = (gaps.exempt, "Exempt")
    dollars = numbers(published.loan_amount.astype(np.float64))
    within = words((published.loan_amount > _LIMIT).astype(np.int32), ("C", "NC"))
    return {
        "loan_amount": dollars,
        "conforming_loan_limit": within,
        "income": but(numbers(published.income), (gaps.income, "NA")),
        "property_value": but(numbers(published.property_value), (gaps.property_value, "NA"), exempt),
        "debt_to_income_ratio": but(words(published.debt_to_income, DEBT_BANDS), (gaps.debt_to_income, "NA"), exempt),
        "combined_loan_to_value_ratio": but(numbers(published.loan_to_value), (gaps.loan_to_value, "NA"), exempt),
    }


def _prices(twin: Twin) -> Columns:
    people, n = twin.people, len(twin.action)
    exempt, none = (twin.unreported.exempt, "Exempt"), (~np.isin(twin.action, (ORIGINATED, NOT_ACCEPTED)), "NA")
    rate = numbers(5.5 + people.detail / 8)
    return {
        "interest_rate": but(rate, none, exempt),
        "rate_spread": but(numbers((people.detail - 2) / 10), none, exempt),
        "total_loan_costs": but(numbers(2_400.5 + 10 * people.lender), none, exempt),
        "origination_charges": but(numbers(395.0 + people.lender), none, exempt),
        "hoepa_status": but(always("2", n), (none[0], "3")),
    }


def _people(twin: Twin) -> Columns:
    people, codes, n = twin.people, codes_of(twin), len(twin.action)
    old = _above_62(people.age, people.detail)
    co_old = _above_62(people.coage, people.detail)
    out: dict[str, Any] = {
        "derived_race": words(codes.derived_race, DERIVED_RACE),
        "derived_ethnicity": words(codes.derived_ethnicity, DERIVED_ETHNICITY),
        "derived_sex": words(codes.derived_sex, DERIVED_SEX),
        "applicant_sex": numbers(codes.sex),
        "co_applicant_sex": numbers(codes.co_sex),
        "applicant_age": but(words(people.age, AGES), (codes.unknown, "8888")),
        "co_applicant_age": but(
            words(np.maximum(people.coage, 0), AGES), (codes.unknown, "8888"), (codes.alone, "9999")
        ),
        "applicant_age_above_62": but(words(old, ("No", "Yes")), (codes.unknown, "NA")),
        "co_applicant_age_above_62": but(words(co_old, ("No", "Yes")), (codes.unknown | codes.alone, "NA")),
        "co_applicant_credit_score_type": but(always("9", n), (codes.alone, "10"), (twin.unreported.exempt, "1111")),
    }
    for person, race, ethnicity in (
        ("applicant", codes.race, codes.ethnicity),
        ("co_applicant", codes.co_race, codes.co_ethnicity),
    ):
        nobody = codes.alone & (person == "co_applicant")
        observed = but(always("2", n), (codes.unknown, "3"), (nobody, "4"))
        out |= {f"{person}_{what}_observed": observed for what in ("race", "ethnicity", "sex")}
        out |= {f"{person}_{what}_{i}": always("", n) for what in ("race", "ethnicity") for i in (2, 3, 4, 5)}
        out |= {f"{person}_race_1": numbers(race), f"{person}_ethnicity_1": numbers(ethnicity)}
    return {**out, "applicant_race_2": but(numbers(codes.second_race), (codes.second_race == NOTHING, ""))}


def _above_62(age: Ints, detail: Ints) -> Ints:
    """``(n,)`` 1 of those above 62: all from 65 on, and a fifth of those from 55 to 64."""
    sixty_five, fifty_five = AGES.index("65-74"), AGES.index("55-64")
    is_above: Ints = ((age >= sixty_five) | ((age == fifty_five) & (detail < 2))).astype(np.int32)
    return is_above


def _place(twin: Twin) -> Columns:
    at, tract = twin.people.place, Tract()
    return {
        "derived_msa_md": words(at, by_tract("{county.metropolitan}")),
        "state_code": words(at, by_tract("{county.state}")),
        "county_code": words(at, by_tract("{county.fips}")),
        "census_tract": words(at, [text.replace(".", "") for text in by_tract("{county.fips}{tract}")]),
        "tract_population": numbers(tract.population[at]),
        "tract_minority_population_percent": numbers(tract.minority_percent[at]),
        "ffiec_msa_md_median_family_income": numbers(tract.median_family_income[at]),
        "tract_to_msa_income_percentage": numbers(tract.income_percent[at]),
        "tract_owner_occupied_units": numbers(tract.owner_occupied[at]),
        "tract_one_to_four_family_homes": numbers(tract.family_homes[at]),
        "tract_median_age_of_housing_units": numbers(tract.housing_age[at]),
    }


# --------------------------------------------------------------------------------------------------------------------
# The twin in the 45 columns of 2007 to 2017: thousands of dollars, codes without detail, empty cells for gaps.
#
# There is no age, home value or ratio in these years: the lender of the twin knows them all the same, an audit does
# not.


HISTORIC_PURPOSE_CODES = ("1", "2", "3", "3", "2")
"""Of ``PURPOSES``: the other purposes of 2018 were mostly improvements before."""
_OTS, _CFPB = 4, 9
_FIRST_CFPB = 2012


def historic_columns(twin: Twin) -> Columns:
    """All columns of the historic file with codes, by name, as text ``(n,)``."""
    return {**_historic_loan(twin), **_historic_people(twin), **_historic_place(twin)}


def historic_lenders(year: int, count: int) -> tuple[list[str], list[str]]:
    """Agency code and respondent's id of each lender; two may share an id, and never the agency too."""
    agencies = (1, 2, 3, 5, 7, _CFPB if year >= _FIRST_CFPB else _OTS)
    codes = [agencies[number % len(agencies)] for number in range(count)]
    ids = [
        f"{10 + number % 90}-{number // 2:07d}" if code == 7 else f"{number // 2 + 1:010d}"
        for number, code in enumerate(codes)
    ]
    return [str(code) for code in codes], ids


def _historic_loan(twin: Twin) -> Columns:
    people, n, settings = twin.people, len(twin.action), twin.settings
    agency, respondent = historic_lenders(settings.year, settings.lenders)
    bought = people.purpose == PURPOSES.index("purchase")
    requested = np.isin(twin.action, (PREAPPROVAL_DENIED, PREAPPROVED)) | (bought & (people.detail == 0))
    sold = np.isin(twin.action, (ORIGINATED, PURCHASED))
    unsecured = (people.purpose == PURPOSES.index("improvement")) & (people.detail == 1)
    dear = (twin.action == ORIGINATED) & (people.detail == 3)
    why = reasons(twin)
    untold = (why == NOTHING) | (people.detail > 6)
    return {
        "as_of_year": always(str(settings.year), n),
        "respondent_id": words(people.lender, respondent),
        "agency_code": words(people.lender, agency),
        "loan_type": numbers(people.kind + 1),
        "property_type": always("1", n),
        "loan_purpose": words(people.purpose, HISTORIC_PURPOSE_CODES),
        "owner_occupancy": words((people.occupancy > 0).astype(np.int32), ("1", "2")),
        "loan_amount_000s": numbers(twin.published.loan_amount // 1000),
        "preapproval": but(words(np.where(requested, 0, 1), ("1", "2")), (~bought, "3")),
        "action_taken": numbers(twin.action),
        "applicant_income_000s": but(numbers(twin.published.income), (twin.unreported.income, "")),
        "purchaser_type": words(np.where(sold, people.detail % 5, 0), ("0", "1", "3", "2", "7")),
        "denial_reason_1": but(numbers(why), (untold, "")),
        "denial_reason_2": always("", n),
        "denial_reason_3": always("", n),
        "rate_spread": but(always("", n), (dear, "01.87")),
        "hoepa_status": always("2", n),
        "lien_status": but(
            numbers(1 + people.subordinate.astype(np.int32)), (unsecured, "3"), (twin.action == PURCHASED, "4")
        ),
        "edit_status": always("", n),
        "sequence_number": numbers(1 + np.arange(n)),  # of real rows by lender, and here within a block
        "application_date_indicator": words((twin.action == PURCHASED).astype(np.int32), ("0", "2")),
    }


def _historic_people(twin: Twin) -> Columns:
    codes, n = codes_of(twin), len(twin.action)
    out = {"applicant_sex": numbers(codes.sex), "co_applicant_sex": numbers(codes.co_sex)}
    for person, race, ethnicity in (
        ("applicant", codes.race, codes.ethnicity),
        ("co_applicant", codes.co_race, codes.co_ethnicity),
    ):
        out |= {f"{person}_ethnicity": numbers(ethnicity), f"{person}_race_1": numbers(race)}
        out |= {f"{person}_race_{i}": always("", n) for i in (2, 3, 4, 5)}
    return {**out, "applicant_race_2": but(numbers(codes.second_race), (codes.second_race == NOTHING, ""))}


def _historic_place(twin: Twin) -> Columns:
    at, tract = twin.people.place, Tract()
    return {
        "msamd": but(words(at, by_tract("{county.metropolitan}")), (at % len(TRACTS) == len(TRACTS) - 1, "")),
        "state_code": words(at, by_tract("{county.fips:.2}")),
        "county_code": words(at, [fips[2:] for fips in by_tract("{county.fips}")]),
        "census_tract_number": words(at, by_tract("{tract}")),
        "population": numbers(tract.population[at]),
        "minority_population": numbers(tract.minority_percent[at]),
        "hud_median_family_income": numbers(tract.median_family_income[at]),
        "tract_to_msamd_income": numbers(tract.income_percent[at].astype(np.float64)),
        "number_of_owner_occupied_units": numbers(tract.owner_occupied[at]),
        "number_of_1_to_4_family_units": numbers(tract.family_homes[at]),
    }


# --------------------------------------------------------------------------------------------------------------------
# The twin in canonical columns: dollars and percent, refinancing as one purpose, whatever the layout of its year.
#
# What a loader makes of a file of the twin, for the columns that an audit may ask for. Missing cells are ``NA``, exempt
# ones ``Exempt``. A year before 2018 has neither age, nor home value, nor ratios.


_PURCHASED = "4"
"""Lien status of purchased loans until 2017: not applicable."""
_REFINANCING = {"31": "3", "32": "3"}
_MODERN_ONLY = ("applicant_age", "debt_to_income_ratio", "ltv_ratio", "property_value_usd")
_ALWAYS = (
    "activity_year", "lender_id", "action_taken", "loan_type", "loan_purpose", "loan_purpose_raw", "lien_status",
    "loan_amount_usd", "income_usd", "applicant_race_1", "applicant_ethnicity_1", "applicant_sex", "derived_race",
    "derived_ethnicity", "derived_sex",
)  # fmt: skip


def names(settings: TwinSettings) -> list[str]:
    """The columns of the twin's year."""
    return [*_ALWAYS, *(_MODERN_ONLY if settings.modern else ())]


def canonical_columns(twin: Twin) -> Mapping[str, pa.Array]:
    """The columns by name, as text ``(n,)``."""
    settings, published = twin.settings, twin.published
    raw, purposes, lender = _by_family(twin)
    canonical_loan = {
        **{name: raw[name] for name in ("action_taken", "loan_type")},
        "lien_status": but(raw["lien_status"], (pc.equal(raw["lien_status"], _PURCHASED).to_numpy(False), "NA")),
        "activity_year": raw["activity_year" if settings.modern else "as_of_year"],
        "lender_id": words(twin.people.lender, lender),
        "loan_purpose": words(twin.people.purpose, [_REFINANCING.get(code, code) for code in purposes]),
        "loan_purpose_raw": raw["loan_purpose"],
        "loan_amount_usd": numbers(published.loan_amount),
        "income_usd": but(numbers(published.income * 1000), (twin.unreported.income, "NA")),
    }
    codes = codes_of(twin)
    canonical_people = {
        "applicant_race_1": numbers(_rolled_up(codes.race)),
        "applicant_ethnicity_1": numbers(_rolled_up(codes.ethnicity)),
        "applicant_sex": numbers(codes.sex),
        "derived_race": words(codes.derived_race, DERIVED_RACE),
        "derived_ethnicity": words(codes.derived_ethnicity, DERIVED_ETHNICITY),
        "derived_sex": words(codes.derived_sex, DERIVED_SEX),
    }
    raw_columns = {
        **canonical_loan,
        **canonical_people,
        **(_since_2018(twin) if twin.settings.modern else {}),
    }
    return {name: raw_columns[name] for name in names(twin.settings)}


def _by_family(twin: Twin) -> tuple[Mapping[str, pa.Array], tuple[str, ...], list[str]]:
    """Columns of the raw layout, its codes of purposes, and who each lender is."""
    settings = twin.settings
    if settings.modern:
        return modern_columns(twin), PURPOSE_CODES, lenders(settings.lenders)
    agencies, ids = historic_lenders(settings.year, settings.lenders)
    named = [f"{agency}-{respondent}" for agency, respondent in zip(agencies, ids, strict=True)]
    return historic_columns(twin), HISTORIC_PURPOSE_CODES, named


def _rolled_up(codes: Ints) -> Ints:
    """Detailed codes as the ones that they detail: 21 to 27 are 2."""
    rolled_up: Ints = np.where(codes > 10, codes // 10, codes)
    return rolled_up


def _since_2018(twin: Twin) -> dict[str, pa.Array]:
    raw = modern_columns(twin)
    raw_names = {"ltv_ratio": "combined_loan_to_value_ratio", "property_value_usd": "property_value"}
    return {name: raw[raw_names.get(name, name)] for name in _MODERN_ONLY}


# --------------------------------------------------------------------------------------------------------------------
# A synthetic national year in the layout of the public register: states, and lenders with a long tail.
#
# Applicants, loans and decisions are a twin's, without the truth beside them: it is for the time that work takes.


_LAYOUT = BY_NAME["public_lar"]
_MISSING = "NA"


def write_nation(file: Path, rows: int, year: int, seed: int) -> Path:
    """Write a year of so many rows, pipes between its 99 columns, in blocks: memory does not grow with the rows.

    Raises:
        SpecError: there are too few rows for two lenders, or the year is before 2018.
    """
    rng = np.random.default_rng(seed)
    settings = TwinSettings(rows=rows, year=year, discrimination="direct")
    if not settings.modern:
        raise SpecError(f"a national year is drawn in the layout of 2018 and later, and not of {year}")
    try:
        nation = Nation.of(rows, rng)
    except ValueError as error:
        raise SpecError(str(error)) from error
    settings = replace(settings, lenders=len(nation.home))
    schema = pa.schema([(name, pa.string()) for name in _LAYOUT.columns])
    options = pacsv.WriteOptions(delimiter="|", quoting_style="none", quoting_header="none")
    with pacsv.CSVWriter(file, schema, write_options=options) as opened:
        for twin in blocks(settings, rng):
            lender, state = nation.draw(len(twin.action), rng)
            national_twin = replace(twin, people=replace(twin.people, lender=lender))
            columns = {**modern_columns(national_twin), **_nation_place(national_twin, state)}
            opened.write_table(pa.table([columns[name] for name in schema.names], schema=schema))
    return file


def _nation_place(twin: Twin, state: Ints) -> Columns:
    """State, county and tract of each row; a state has one county here."""
    counties = [f"{fips}001" if fips else _MISSING for _, fips, _ in STATES]
    tracts = [text.replace(".", "") for text in TRACTS]
    tract_names = [county if county == _MISSING else county + tract for county in counties for tract in tracts]
    return {
        "state_code": words(state, [code for code, _, _ in STATES]),
        "county_code": words(state, counties),
        "census_tract": words(state * len(tracts) + twin.people.place % len(tracts), tract_names),
    }


# --------------------------------------------------------------------------------------------------------------------
# Table of the true counterfactuals of a twin: each person's amounts and decision in another group.


SCHEMA = pa.schema([
    ("source_row", pa.int64()), ("protected_attribute", pa.string()), ("group", pa.string()),
    ("to_group", pa.string()), ("decided", pa.bool_()), ("approved", pa.bool_()),
    ("counterfactual_approved", pa.bool_()), ("flips", pa.bool_()), ("logit", pa.float64()),
    ("counterfactual_logit", pa.float64()), ("counterfactual_income_usd", pa.int64()),
    ("counterfactual_property_value_usd", pa.int64()), ("counterfactual_loan_amount_usd", pa.int64()),
    ("counterfactual_debt_to_income_ratio", pa.string()), ("counterfactual_ltv_ratio", pa.float64()),
])  # fmt: skip
"""One row for each row of the file and attribute. ``group`` is the person's own, which the file need not tell; of rows
that are not ``decided`` the approvals are what would have been. Amounts are rounded as they would be published."""


def table(twin: Twin, first: int) -> pa.Table:
    """The truth about a block; its first row has the number ``first`` in the file, from 1."""
    return pa.concat_tables([_of(twin, counterfactual, first) for counterfactual in otherwise(twin)])


def _of(twin: Twin, counterfactual: Otherwise, first: int) -> pa.Table:
    n, then, names = len(twin.action), counterfactual.published, pa.array(counterfactual.names)
    columns = {
        "source_row": np.arange(first, first + n),
        "protected_attribute": pa.repeat(counterfactual.attribute, n),
        "group": names.take(pa.array(counterfactual.group)),
        "to_group": names.take(pa.array(counterfactual.to)),
        "decided": twin.decided,
        "approved": twin.world.approved,
        "counterfactual_approved": counterfactual.world.approved,
        "flips": counterfactual.flips,
        "logit": twin.world.logit,
        "counterfactual_logit": counterfactual.world.logit,
        "counterfactual_income_usd": then.income * 1000,
        "counterfactual_property_value_usd": then.property_value,
        "counterfactual_loan_amount_usd": then.loan_amount,
        "counterfactual_debt_to_income_ratio": pa.array(DEBT_BANDS).take(pa.array(then.debt_to_income)),
        "counterfactual_ltv_ratio": then.loan_to_value,
    }
    return pa.table(columns, schema=SCHEMA)


# --------------------------------------------------------------------------------------------------------------------
# Writes the files of a twin block by block: rows in the published layout of the year, and the truth beside them.


class _Form(NamedTuple):
    layout: str
    columns: Callable[[Twin], Columns]
    delimiter: str
    suffix: str


_HISTORIC = _Form("historic_codes", historic_columns, ",", ".csv")
_MODERN = _Form("public_lar", modern_columns, "|", ".txt")


@dataclass(frozen=True)
class Written:
    """What was written, and where."""

    rows: Path
    truth: Path
    count: int


def write(folder: Path, settings: TwinSettings, seed: int) -> Written:
    """Write ``hmda_twin_YEAR_public_lar.txt`` or, before 2018, ``hmda_twin_YEAR_historic_codes.csv``.

    The truth is beside it as Parquet.

    Args:
        folder: Made if it is not there.
        settings: What is drawn.
        seed: The same seed and settings give the same bytes.

    Raises:
        SpecError: A parameter is not what it has to be.
    """
    form = _MODERN if settings.modern else _HISTORIC
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / f"hmda_twin_{settings.year}_{form.layout}{form.suffix}"
    written = Written(rows, rows.with_suffix(".truth.parquet"), settings.rows)
    drafts = replace(written, rows=_draft(written.rows), truth=_draft(written.truth))
    try:
        _write(drafts, form, blocks(settings, np.random.default_rng(seed)))
    except ValueError as error:
        raise SpecError(str(error)) from error
    drafts.rows.replace(written.rows)
    drafts.truth.replace(written.truth)
    return written


def _draft(path: Path) -> Path:
    """Where a file is written before it gets its name, so that a file of that name is a whole one."""
    return path.with_name(f"{path.name}.part")


def _write(to: Written, form: _Form, twins: Iterator[Twin]) -> None:
    names = BY_NAME[form.layout].columns
    options = pacsv.WriteOptions(delimiter=form.delimiter, quoting_style="none", quoting_header="none")
    schema = pa.schema([(name, pa.string()) for name in names])
    first = 1
    with (
        pacsv.CSVWriter(to.rows, schema, write_options=options) as file,
        pq.ParquetWriter(to.truth, SCHEMA) as truth_writer,
    ):
        for twin in twins:
            columns = form.columns(twin)
            file.write_table(pa.table([columns[name] for name in names], schema=schema))
            truth_writer.write_table(table(twin, first))
            first += len(twin.action)


# --------------------------------------------------------------------------------------------------------------------
# The synthetic twin of HMDA as files: rows in published layouts, and the true counterfactuals beside them.
#
# ``codes`` says groups and loans in the codes of HMDA, ``modern`` and ``historic`` are the two families of layouts,
# ``canonical`` is what a loader has to make of either, ``truth`` the counterfactuals, and ``writing`` the files.
#
# Scope: how drawn rows are written down. What is drawn: ``tasks.ingest.synthetic.algorithm.twin``.
