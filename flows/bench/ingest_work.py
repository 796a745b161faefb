"""Timed work of ``evenhand bench ingest``, a process each: rows drawn, copied plainly, converted to canonical columns.

Rows are drawn by a hash of seed, row and column, so that the same seed gives the same file whatever the threads. Shares
are roughly those of the public files: half of the cost columns NA, some Exempt, hardly a second race.
"""
# ruff: noqa: S608 what goes into the SQL is written here, or a path that is quoted

import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb

from tasks.ingest.hmda.canonical.cells import literal, quoted
from tasks.ingest.hmda.conversion import convert
from tasks.ingest.hmda.files.layouts import BY_NAME
from tasks.ingest.hmda.files.recognition import recognise
from tasks.proof.work import answer, peak_mb, timed

SEED = 8
FILE = "public_lar.psv"
_COLUMNS = BY_NAME["public_lar"].columns
_TRACTS = 85_000
_LENDERS = 4_000

_YES_NO = {"2": 90, "1111": 6, "1": 4}
_AGES = {"25-34": 20, "35-44": 22, "45-54": 20, "55-64": 17, "65-74": 9, ">74": 3, "<25": 2, "8888": 7}
_NUMBERS: dict[str, tuple[int, int, int, int]] = {  # percent NA, lowest, highest, decimals
    "combined_loan_to_value_ratio": (30, 20, 100, 3),
    "interest_rate": (35, 2, 9, 3),
    "rate_spread": (50, -2, 4, 3),
    "total_loan_costs": (55, 300, 12_000, 2),
    "total_points_and_fees": (98, 300, 12_000, 2),
    "origination_charges": (55, 0, 6_000, 2),
    "discount_points": (55, 10, 6_000, 2),
    "lender_credits": (55, 1, 3_000, 2),
    "income": (15, 20, 320, 0),
}
_CODES: dict[str, dict[str, int]] = {  # value -> percent
    "activity_year": {"2022": 100},
    "conforming_loan_limit": {"C": 90, "NC": 7, "NA": 3},
    "derived_loan_product_type": {"Conventional:First Lien": 70, "FHA:First Lien": 15, "VA:First Lien": 15},
    "derived_dwelling_category": {
        "Single Family (1-4 Units):Site-Built": 95,
        "Single Family (1-4 Units):Manufactured": 4,
        "Multifamily:Site-Built": 1,
    },
    "derived_ethnicity": {
        "Not Hispanic or Latino": 65,
        "Ethnicity Not Available": 17,
        "Hispanic or Latino": 14,
        "Joint": 4,
    },
    "derived_race": {"White": 60, "Race Not Available": 20, "Black or African American": 8, "Asian": 7, "Joint": 5},
    "derived_sex": {"Male": 32, "Female": 22, "Joint": 32, "Sex Not Available": 14},
    "action_taken": {"1": 52, "3": 16, "4": 14, "5": 4, "6": 12, "2": 2},
    "purchaser_type": {"0": 60, "1": 15, "3": 10, "71": 7, "2": 8},
    "preapproval": {"2": 97, "1": 3},
    "loan_type": {"1": 75, "2": 15, "3": 9, "4": 1},
    "loan_purpose": {"1": 40, "31": 20, "32": 20, "2": 10, "4": 8, "5": 2},
    "lien_status": {"1": 80, "2": 20},
    "hoepa_status": {"2": 60, "3": 40},
    "loan_term": {"360": 70, "180": 15, "240": 10, "NA": 5},
    "prepayment_penalty_term": {"NA": 94, "Exempt": 4, "36": 2},
    "intro_rate_period": {"NA": 86, "Exempt": 4, "60": 10},
    "construction_method": {"1": 96, "2": 4},
    "occupancy_type": {"1": 90, "2": 4, "3": 6},
    "manufactured_home_secured_property_type": {"3": 92, "1": 4, "1111": 4},
    "manufactured_home_land_property_interest": {"5": 92, "1": 4, "1111": 4},
    "total_units": {"1": 97, "2": 2, "5-24": 1},
    "multifamily_affordable_units": {"NA": 99, "0": 1},
    "debt_to_income_ratio": {
        **{"NA": 26, "Exempt": 4, "<20%": 5, "20%-<30%": 15, "30%-<36%": 12, "36": 3, "38": 3, "41": 7, "44": 5},
        **{"47": 5, "49": 3, "50%-60%": 7, ">60%": 5},
    },
    "applicant_credit_score_type": {"1": 28, "2": 20, "3": 20, "9": 28, "1111": 4},
    "co_applicant_credit_score_type": {"10": 50, "9": 46, "1111": 4},
    "applicant_ethnicity_1": {"2": 65, "3": 15, "1": 10, "11": 3, "4": 7},
    "applicant_ethnicity_2": {"": 96, "11": 4},
    "co_applicant_ethnicity_1": {"5": 50, "2": 30, "3": 10, "1": 5, "4": 5},
    "applicant_race_1": {"5": 60, "6": 15, "3": 9, "2": 6, "22": 2, "7": 8},
    "applicant_race_2": {"": 95, "21": 2, "5": 3},
    "co_applicant_race_1": {"8": 50, "5": 30, "6": 10, "3": 5, "7": 5},
    "co_applicant_race_2": {"": 97, "5": 3},
    "applicant_sex": {"1": 50, "2": 30, "3": 12, "4": 8},
    "co_applicant_sex": {"5": 50, "2": 25, "1": 10, "3": 7, "4": 8},
    "applicant_age": _AGES,
    "co_applicant_age": {"9999": 50, **{band: share // 2 for band, share in _AGES.items()}, "8888": 5},
    "applicant_age_above_62": {"No": 70, "NA": 15, "Yes": 15},
    "co_applicant_age_above_62": {"NA": 65, "No": 25, "Yes": 10},
    "submission_of_application": {"1": 76, "2": 10, "3": 10, "1111": 4},
    "initially_payable_to_institution": {"1": 81, "3": 15, "1111": 4},
    "aus_1": {"1": 50, "6": 20, "2": 20, "1111": 4, "5": 6},
    "aus_2": {"": 90, "2": 10},
    "denial_reason_1": {"10": 84, "1": 6, "3": 4, "1111": 3, "4": 3},
    "denial_reason_2": {"": 96, "4": 4},
    **{f"applicant_{what}_observed": {"2": 60, "3": 30, "1": 10} for what in ("ethnicity", "race", "sex")},
    **{f"co_applicant_{what}_observed": {"4": 50, "2": 30, "3": 20} for what in ("ethnicity", "race", "sex")},
    **dict.fromkeys(
        (
            *("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose", "negative_amortization"),
            *("interest_only_payment", "balloon_payment", "other_nonamortizing_features"),
        ),
        _YES_NO,
    ),
}


def generate(place: str, rows: str) -> dict[str, Any]:
    """Draw a file of the public register: 99 columns, a header, pipes between them."""
    start = time.perf_counter()
    values = ", ".join(f"{_drawn(name, at)} AS {quoted(name)}" for at, name in enumerate(_COLUMNS))
    drawn = f"(SELECT i, hash(i, {SEED}) % {_TRACTS} AS tract FROM range({int(rows)}) AS r(i))"
    file = Path(place) / FILE
    with duckdb.connect(config={"memory_limit": "1200MB", "temp_directory": place}) as connection:
        connection.execute(
            f"COPY (SELECT {values} FROM {drawn}) TO {literal(str(file))} (FORMAT csv, DELIMITER '|', HEADER true)"
        )
    return {"rows": int(rows), "seconds": time.perf_counter() - start, "file_mb": file.stat().st_size / 1e6}


def plain(place: str) -> dict[str, Any]:
    """DuckDB's own conversion: every column read as it guesses, and written."""
    source, target = Path(place) / FILE, Path(place) / "plain.parquet"

    with timed() as times, duckdb.connect(config={"temp_directory": place}) as connection:
        connection.execute("SET enable_progress_bar = false")
        told = connection.execute(
            f"COPY (SELECT * FROM read_csv({literal(str(source))})) TO {literal(str(target))} (FORMAT parquet)"
        ).fetchone()
    return {"rows": int(told[0]) if told else 0, **times, "peak_mb": peak_mb()}


def canonical(place: str) -> dict[str, Any]:
    """The file recognised, converted and validated."""
    folder = Path(place)
    with timed() as times:
        rows = convert(recognise(folder / FILE, folder / "scratch"), folder / "canonical").rows
    return {"rows": rows, **times, "peak_mb": peak_mb()}


def _drawn(column: str, at: int) -> str:
    """SQL of a column's value in row ``i``, which lies in ``tract``; null is written as a blank cell."""
    percent = f"hash(i, {at}, {SEED}) % 100"
    if column in _CODES:
        tops = accumulate(_CODES[column].values())
        shares = zip(_CODES[column], tops, strict=True)
        return f"CASE {' '.join(f'WHEN {percent} < {top} THEN {_cell(value)}' for value, top in shares)} END"
    if column in _NUMBERS:
        absent, low, high, decimals = _NUMBERS[column]
        share = f"(hash(i, {at}, {SEED + 1}) % 1000003) / 1000003.0"
        value = f"CAST(CAST({low} + {share} * {high - low} AS DECIMAL(12, {decimals})) AS VARCHAR)"
        blank = absent + 3 if column in ("discount_points", "lender_credits") else absent
        words = (
            f"WHEN {percent} < {absent} THEN 'NA' WHEN {percent} < {blank} THEN NULL WHEN {percent} = 99 THEN 'Exempt'"
        )
        return f"CASE {words} ELSE {value} END"
    return _OF_PLACE.get(column, "NULL")


def _cell(value: str) -> str:
    return literal(value) if value else "NULL"


def _tract(low: int, span: int, salt: int) -> str:
    return f"CAST({low} + hash(tract, {salt}) % {span} AS VARCHAR)"


_COUNTY = "lpad(CAST(1001 + (tract // 27) * 17 AS VARCHAR), 5, '0')"
_OF_PLACE = {
    "lei": f"'549300' || upper(left(md5(CAST(hash(i, 5) % {_LENDERS} AS VARCHAR)), 14))",
    "derived_msa_md": "CAST(10000 + tract // 212 * 97 AS VARCHAR)",
    "state_code": "['CA', 'TX', 'FL', 'NY', 'OH', 'WA', 'PA', 'IL'][CAST(1 + tract // 10626 AS BIGINT)]",
    "county_code": _COUNTY,
    "census_tract": f"{_COUNTY} || lpad(CAST(tract % 9973 * 100 AS VARCHAR), 6, '0')",
    "loan_amount": "CAST((hash(i, 6) % 90) * 10000 + 5000 AS VARCHAR) || '.0'",
    "property_value": "CASE hash(i, 7) % 5 WHEN 0 THEN 'NA' ELSE CAST(hash(i, 8) % 120 * 10000 + 55000 AS VARCHAR) END",
    "tract_population": _tract(1000, 8000, 1),
    "tract_minority_population_percent": "CAST((hash(tract, 2) % 10000) / 100.0 AS VARCHAR)",
    "ffiec_msa_md_median_family_income": "CAST(50000 + hash(tract // 212) % 900 * 100 AS VARCHAR)",
    "tract_to_msa_income_percentage": _tract(40, 160, 3),
    "tract_owner_occupied_units": _tract(200, 2000, 4),
    "tract_one_to_four_family_homes": _tract(300, 2500, 5),
    "tract_median_age_of_housing_units": _tract(0, 80, 6),
}


if __name__ == "__main__":
    answer(generate, plain, canonical)
