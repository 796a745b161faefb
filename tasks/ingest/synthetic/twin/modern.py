"""The twin in the 99 columns of 2018 and later: dollars, detailed codes, `NA`, `Exempt` and 1111.

Columns that the causal model knows nothing of (costs, terms, features of the loan) hold what is commonest, or follow
from the action: a rate where there is a loan, `NA` where there is none.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.ingest.synthetic.twin.algorithm.causal import DEBT, RATIO, usually
from tasks.ingest.synthetic.twin.algorithm.drawing import (
    DENIED,
    NOT_ACCEPTED,
    ORIGINATED,
    PREAPPROVAL_DENIED,
    PREAPPROVED,
    PURCHASED,
    Twin,
)
from tasks.ingest.synthetic.twin.algorithm.publishing import DEBT_BANDS
from tasks.ingest.synthetic.twin.algorithm.settings import AGES, PURPOSES
from tasks.ingest.synthetic.twin.codes import (
    DERIVED_ETHNICITY,
    DERIVED_RACE,
    DERIVED_SEX,
    NOTHING,
    Tract,
    by_tract,
    codes_of,
)
from tasks.ingest.synthetic.twin.texts import always, but, numbers, words
from tasks.numerics.arrays import Ints

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


def columns(twin: Twin) -> Columns:
    """All columns of the public LAR by name, as text ``(n,)``; in no particular order."""
    n = len(twin.action)
    fixed = {name: but(always(usual, n), (twin.unreported.exempt, other)) for name, (usual, other) in _CONSTANT.items()}
    return {**fixed, **_loan(twin), **_amounts(twin), **_prices(twin), **_people(twin), **_place(twin)}


def _loan(twin: Twin) -> Columns:
    who, n = twin.people, len(twin.action)
    kinds = [f"{name}:{lien} Lien" for name in NAMES_OF_TYPES for lien in ("First", "Subordinate")]
    asked = np.isin(twin.action, (PREAPPROVAL_DENIED, PREAPPROVED)) | (
        (who.purpose == PURPOSES.index("purchase")) & (who.detail == 0)
    )
    sold = np.isin(twin.action, (ORIGINATED, PURCHASED))
    return {
        "activity_year": always(str(twin.settings.year), n),
        "lei": words(who.lender, lenders(twin.settings.lenders)),
        "action_taken": numbers(twin.action),
        "loan_type": numbers(who.kind + 1),
        "loan_purpose": words(who.purpose, PURPOSE_CODES),
        "lien_status": numbers(1 + who.subordinate.astype(np.int32)),
        "occupancy_type": numbers(who.occupancy + 1),
        "preapproval": words(np.where(asked, 0, 1), ("1", "2")),
        "purchaser_type": words(np.where(sold, who.detail % 5, 0), ("0", "1", "3", "2", "71")),
        "derived_loan_product_type": words(2 * who.kind + who.subordinate, kinds),
        "derived_dwelling_category": always("Single Family (1-4 Units):Site-Built", n),
        "construction_method": always("1", n),
        "total_units": always("1", n),
        **_denial_reasons(twin),
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
    found: Ints = np.where(denied, kind, NOTHING)
    return found


def _denial_reasons(twin: Twin) -> Columns:
    why, n = reasons(twin), len(twin.action)
    first = but(numbers(why), (why == NOTHING, "10"), (twin.unreported.exempt, "1111"))
    return {"denial_reason_1": first, **{f"denial_reason_{i}": always("", n) for i in (2, 3, 4)}}


def _amounts(twin: Twin) -> Columns:
    said, gaps = twin.published, twin.unreported
    exempt = (gaps.exempt, "Exempt")
    dollars = numbers(said.loan_amount.astype(np.float64))
    within = words((said.loan_amount > _LIMIT).astype(np.int32), ("C", "NC"))
    return {
        "loan_amount": dollars,
        "conforming_loan_limit": within,
        "income": but(numbers(said.income), (gaps.income, "NA")),
        "property_value": but(numbers(said.property_value), (gaps.property_value, "NA"), exempt),
        "debt_to_income_ratio": but(words(said.debt_to_income, DEBT_BANDS), (gaps.debt_to_income, "NA"), exempt),
        "combined_loan_to_value_ratio": but(numbers(said.loan_to_value), (gaps.loan_to_value, "NA"), exempt),
    }


def _prices(twin: Twin) -> Columns:
    who, n = twin.people, len(twin.action)
    exempt, none = (twin.unreported.exempt, "Exempt"), (~np.isin(twin.action, (ORIGINATED, NOT_ACCEPTED)), "NA")
    rate = numbers(5.5 + who.detail / 8)
    return {
        "interest_rate": but(rate, none, exempt),
        "rate_spread": but(numbers((who.detail - 2) / 10), none, exempt),
        "total_loan_costs": but(numbers(2_400.5 + 10 * who.lender), none, exempt),
        "origination_charges": but(numbers(395.0 + who.lender), none, exempt),
        "hoepa_status": but(always("2", n), (none[0], "3")),
    }


def _people(twin: Twin) -> Columns:
    who, said, n = twin.people, codes_of(twin), len(twin.action)
    old = _above_62(who.age, who.detail)
    co_old = _above_62(who.coage, who.detail)
    out: dict[str, Any] = {
        "derived_race": words(said.derived_race, DERIVED_RACE),
        "derived_ethnicity": words(said.derived_ethnicity, DERIVED_ETHNICITY),
        "derived_sex": words(said.derived_sex, DERIVED_SEX),
        "applicant_sex": numbers(said.sex),
        "co_applicant_sex": numbers(said.co_sex),
        "applicant_age": but(words(who.age, AGES), (said.unknown, "8888")),
        "co_applicant_age": but(words(np.maximum(who.coage, 0), AGES), (said.unknown, "8888"), (said.alone, "9999")),
        "applicant_age_above_62": but(words(old, ("No", "Yes")), (said.unknown, "NA")),
        "co_applicant_age_above_62": but(words(co_old, ("No", "Yes")), (said.unknown | said.alone, "NA")),
        "co_applicant_credit_score_type": but(always("9", n), (said.alone, "10"), (twin.unreported.exempt, "1111")),
    }
    for person, race, ethnicity in (
        ("applicant", said.race, said.ethnicity),
        ("co_applicant", said.co_race, said.co_ethnicity),
    ):
        nobody = said.alone & (person == "co_applicant")
        seen = but(always("2", n), (said.unknown, "3"), (nobody, "4"))
        out |= {f"{person}_{what}_observed": seen for what in ("race", "ethnicity", "sex")}
        out |= {f"{person}_{what}_{i}": always("", n) for what in ("race", "ethnicity") for i in (2, 3, 4, 5)}
        out |= {f"{person}_race_1": numbers(race), f"{person}_ethnicity_1": numbers(ethnicity)}
    return {**out, "applicant_race_2": but(numbers(said.second_race), (said.second_race == NOTHING, ""))}


def _above_62(age: Ints, detail: Ints) -> Ints:
    """``(n,)`` 1 of those above 62: all from 65 on, and a fifth of those from 55 to 64."""
    sixty_five, fifty_five = AGES.index("65-74"), AGES.index("55-64")
    found: Ints = ((age >= sixty_five) | ((age == fifty_five) & (detail < 2))).astype(np.int32)
    return found


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
