"""The twin in the 45 columns of 2007 to 2017: thousands of dollars, codes without detail, empty cells for gaps.

There is no age, home value or ratio in these years: the lender of the twin knows them all the same, an audit does not.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tasks.ingest.synthetic.twin.algorithm.drawing import ORIGINATED, PREAPPROVAL_DENIED, PREAPPROVED, PURCHASED, Twin
from tasks.ingest.synthetic.twin.algorithm.settings import PURPOSES
from tasks.ingest.synthetic.twin.codes import NOTHING, TRACTS, Tract, by_tract, codes_of
from tasks.ingest.synthetic.twin.modern import reasons
from tasks.ingest.synthetic.twin.texts import always, but, numbers, words

Columns = Mapping[str, pa.Array]

PURPOSE_CODES = ("1", "2", "3", "3", "2")
"""Of ``PURPOSES``: the other purposes of 2018 were mostly improvements before."""
_OTS, _CFPB = 4, 9
_FIRST_CFPB = 2012


def columns(twin: Twin) -> Columns:
    """All columns of the historic file with codes, by name, as text ``(n,)``."""
    return {**_loan(twin), **_people(twin), **_place(twin)}


def lenders(year: int, count: int) -> tuple[list[str], list[str]]:
    """Agency code and respondent's id of each lender; two may share an id, and never the agency too."""
    agencies = (1, 2, 3, 5, 7, _CFPB if year >= _FIRST_CFPB else _OTS)
    codes = [agencies[number % len(agencies)] for number in range(count)]
    ids = [
        f"{10 + number % 90}-{number // 2:07d}" if code == 7 else f"{number // 2 + 1:010d}"
        for number, code in enumerate(codes)
    ]
    return [str(code) for code in codes], ids


def _loan(twin: Twin) -> Columns:
    who, n, settings = twin.people, len(twin.action), twin.settings
    agency, respondent = lenders(settings.year, settings.lenders)
    bought = who.purpose == PURPOSES.index("purchase")
    asked = np.isin(twin.action, (PREAPPROVAL_DENIED, PREAPPROVED)) | (bought & (who.detail == 0))
    sold = np.isin(twin.action, (ORIGINATED, PURCHASED))
    unsecured = (who.purpose == PURPOSES.index("improvement")) & (who.detail == 1)
    dear = (twin.action == ORIGINATED) & (who.detail == 3)
    why = reasons(twin)
    untold = (why == NOTHING) | (who.detail > 6)
    return {
        "as_of_year": always(str(settings.year), n),
        "respondent_id": words(who.lender, respondent),
        "agency_code": words(who.lender, agency),
        "loan_type": numbers(who.kind + 1),
        "property_type": always("1", n),
        "loan_purpose": words(who.purpose, PURPOSE_CODES),
        "owner_occupancy": words((who.occupancy > 0).astype(np.int32), ("1", "2")),
        "loan_amount_000s": numbers(twin.published.loan_amount // 1000),
        "preapproval": but(words(np.where(asked, 0, 1), ("1", "2")), (~bought, "3")),
        "action_taken": numbers(twin.action),
        "applicant_income_000s": but(numbers(twin.published.income), (twin.unreported.income, "")),
        "purchaser_type": words(np.where(sold, who.detail % 5, 0), ("0", "1", "3", "2", "7")),
        "denial_reason_1": but(numbers(why), (untold, "")),
        "denial_reason_2": always("", n),
        "denial_reason_3": always("", n),
        "rate_spread": but(always("", n), (dear, "01.87")),
        "hoepa_status": always("2", n),
        "lien_status": but(
            numbers(1 + who.subordinate.astype(np.int32)), (unsecured, "3"), (twin.action == PURCHASED, "4")
        ),
        "edit_status": always("", n),
        "sequence_number": numbers(1 + np.arange(n)),  # of real rows by lender, and here within a block
        "application_date_indicator": words((twin.action == PURCHASED).astype(np.int32), ("0", "2")),
    }


def _people(twin: Twin) -> Columns:
    said, n = codes_of(twin), len(twin.action)
    out = {"applicant_sex": numbers(said.sex), "co_applicant_sex": numbers(said.co_sex)}
    for person, race, ethnicity in (
        ("applicant", said.race, said.ethnicity),
        ("co_applicant", said.co_race, said.co_ethnicity),
    ):
        out |= {f"{person}_ethnicity": numbers(ethnicity), f"{person}_race_1": numbers(race)}
        out |= {f"{person}_race_{i}": always("", n) for i in (2, 3, 4, 5)}
    return {**out, "applicant_race_2": but(numbers(said.second_race), (said.second_race == NOTHING, ""))}


def _place(twin: Twin) -> Columns:
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
