"""The twin in canonical columns: dollars and percent, refinancing as one purpose, whatever the layout of its year.

What a loader makes of a file of the twin, for the columns that an audit may ask for. Missing cells are ``NA``, exempt
ones ``Exempt``. A year before 2018 has neither age, nor home value, nor ratios.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.synthetic.twin import historic, modern
from tasks.ingest.synthetic.twin.algorithm.drawing import Twin
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.ingest.synthetic.twin.codes import DERIVED_ETHNICITY, DERIVED_RACE, DERIVED_SEX, codes_of
from tasks.ingest.synthetic.twin.texts import but, numbers, words
from tasks.numerics.arrays import Ints

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


def columns(twin: Twin) -> Mapping[str, pa.Array]:
    """The columns by name, as text ``(n,)``."""
    made = {**_loan(twin), **_people(twin), **(_since_2018(twin) if twin.settings.modern else {})}
    return {name: made[name] for name in names(twin.settings)}


def _loan(twin: Twin) -> dict[str, pa.Array]:
    settings, said = twin.settings, twin.published
    raw, purposes, lender = _by_family(twin)
    return {
        **{name: raw[name] for name in ("action_taken", "loan_type")},
        "lien_status": but(raw["lien_status"], (pc.equal(raw["lien_status"], _PURCHASED).to_numpy(False), "NA")),
        "activity_year": raw["activity_year" if settings.modern else "as_of_year"],
        "lender_id": words(twin.people.lender, lender),
        "loan_purpose": words(twin.people.purpose, [_REFINANCING.get(code, code) for code in purposes]),
        "loan_purpose_raw": raw["loan_purpose"],
        "loan_amount_usd": numbers(said.loan_amount),
        "income_usd": but(numbers(said.income * 1000), (twin.unreported.income, "NA")),
    }


def _by_family(twin: Twin) -> tuple[Mapping[str, pa.Array], tuple[str, ...], list[str]]:
    """Columns of the raw layout, its codes of purposes, and who each lender is."""
    settings = twin.settings
    if settings.modern:
        return modern.columns(twin), modern.PURPOSE_CODES, modern.lenders(settings.lenders)
    agencies, ids = historic.lenders(settings.year, settings.lenders)
    named = [f"{agency}-{respondent}" for agency, respondent in zip(agencies, ids, strict=True)]
    return historic.columns(twin), historic.PURPOSE_CODES, named


def _people(twin: Twin) -> dict[str, pa.Array]:
    said = codes_of(twin)
    return {
        "applicant_race_1": numbers(_rolled_up(said.race)),
        "applicant_ethnicity_1": numbers(_rolled_up(said.ethnicity)),
        "applicant_sex": numbers(said.sex),
        "derived_race": words(said.derived_race, DERIVED_RACE),
        "derived_ethnicity": words(said.derived_ethnicity, DERIVED_ETHNICITY),
        "derived_sex": words(said.derived_sex, DERIVED_SEX),
    }


def _rolled_up(codes: Ints) -> Ints:
    """Detailed codes as the ones that they detail: 21 to 27 are 2."""
    found: Ints = np.where(codes > 10, codes // 10, codes)
    return found


def _since_2018(twin: Twin) -> dict[str, pa.Array]:
    raw = modern.columns(twin)
    own = {"ltv_ratio": "combined_loan_to_value_ratio", "property_value_usd": "property_value"}
    return {name: raw[own.get(name, name)] for name in _MODERN_ONLY}
