"""A lender's own submission of 110 fields: its fields, its transmittal sheet, and what of them leaves the reader.

Identifiers of loans, addresses, dates, free text and the sheet's contact are read by SQL and by nothing else: the view
that the conversion reads has no such column. Scope: that boundary. Edits of the FFIEC: ``edits``.
"""

# ruff: noqa: S608 what goes into the SQL is a name of ours, or checked digits

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas.errors import DataQualityError
from schemas.terms import Refusal

NAME: Final = "submission_2018"
"""Of the layout."""
_SHEET_FIELDS, _ROW_FIELDS = 15, 110
_LEI = r"[0-9A-Za-z]{20}"
_FIRST_YEAR: Final = 2018


def _five(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}_{i}" for i in range(1, 6))


def _both(what: str) -> tuple[str, str]:
    return f"applicant_{what}", f"co_applicant_{what}"


_RACE_TEXTS = ("race_native_text", "race_asian_text", "race_islander_text")

FIELDS: Final = (
    *("record", "lei", "uli", "application_date", "loan_type", "loan_purpose", "preapproval", "construction_method"),
    *("occupancy_type", "loan_amount", "action_taken", "action_taken_date", "street_address", "city", "state_code"),
    *("zip_code", "county_code", "census_tract"),
    *(*_five("applicant_ethnicity"), "applicant_ethnicity_text"),
    *(*_five("co_applicant_ethnicity"), "co_applicant_ethnicity_text"),
    *_both("ethnicity_observed"),
    *(*_five("applicant_race"), *(f"applicant_{text}" for text in _RACE_TEXTS)),
    *(*_five("co_applicant_race"), *(f"co_applicant_{text}" for text in _RACE_TEXTS)),
    *(*_both("race_observed"), *_both("sex"), *_both("sex_observed"), *_both("age_filed")),
    *("income", "purchaser_type", "rate_spread", "hoepa_status", "lien_status"),
    *_both("credit_score_filed"),
    *("applicant_credit_score_type", "applicant_credit_score_text"),
    *("co_applicant_credit_score_type", "co_applicant_credit_score_text"),
    *("denial_reason_1", "denial_reason_2", "denial_reason_3", "denial_reason_4", "denial_reason_text"),
    *("total_loan_costs", "total_points_and_fees", "origination_charges", "discount_points", "lender_credits"),
    *("interest_rate", "prepayment_penalty_term", "debt_to_income_filed", "combined_loan_to_value_ratio"),
    *("loan_term", "intro_rate_period", "balloon_payment", "interest_only_payment", "negative_amortization"),
    *("other_nonamortizing_features", "property_value", "manufactured_home_secured_property_type"),
    *("manufactured_home_land_property_interest", "total_units_filed", "multifamily_units_filed"),
    *("submission_of_application", "initially_payable_to_institution", "nmlsr_identifier"),
    *(*_five("aus"), "aus_text", *_five("aus_result"), "aus_result_text"),
    *("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose"),
)
"""Fields of a row in their order."""

WITHHELD: Final = frozenset(
    ("record", "uli", "application_date", "action_taken_date", "street_address", "city", "zip_code", "nmlsr_identifier")
) | frozenset(name for name in FIELDS if name.endswith("_text"))
"""Fields that no view shows."""


def ratio_band(number: str) -> str:
    """SQL of the published band of a debt-to-income ratio: the publisher cuts decimals off before it bands."""
    return (
        f"CASE WHEN trunc({number}) < 20 THEN '<20%' WHEN trunc({number}) < 30 THEN '20%-<30%' "
        f"WHEN trunc({number}) < 36 THEN '30%-<36%' WHEN trunc({number}) < 50 "
        f"THEN CAST(CAST(trunc({number}) AS BIGINT) AS VARCHAR) "
        f"WHEN trunc({number}) <= 60 THEN '50%-60%' WHEN isfinite({number}) THEN '>60%' END"
    )


def _number(name: str) -> str:
    return f"TRY_CAST({name} AS DOUBLE)"


def _age_band(name: str) -> str:
    age = _number(name)
    bounds = ((25, "<25"), (35, "25-34"), (45, "35-44"), (55, "45-54"), (65, "55-64"), (75, "65-74"))
    cases = " ".join(f"WHEN {age} < {bound} THEN '{band}'" for bound, band in bounds)
    return f"CASE WHEN {age} IN (8888, 9999) OR {age} IS NULL THEN {name} {cases} ELSE '>74' END"


def _units_band(name: str) -> str:
    units = _number(name)
    bounds = ((25, "5-24"), (50, "25-49"), (100, "50-99"), (150, "100-149"))
    cases = " ".join(f"WHEN {units} < {bound} THEN '{band}'" for bound, band in bounds)
    return f"CASE WHEN {units} < 5 OR {units} IS NULL THEN {name} {cases} ELSE '>149' END"


def _person(person: str) -> dict[str, str]:
    """Columns of the applicant or the co-applicant that are made of fields."""
    age, score = f"{person}_age_filed", f"{person}_credit_score_filed"
    above = f"CASE WHEN {_number(age)} IN (8888, 9999) THEN 'NA' WHEN {_number(age)} >= 62 THEN 'Yes' "
    return {
        f"{person}_age_years": f"CASE WHEN {_number(age)} IN (8888, 9999) THEN 'NA' ELSE {age} END",
        f"{person}_age": _age_band(age),
        f"{person}_age_above_62": f"{above} WHEN {_number(age)} IS NOT NULL THEN 'No' END",
        f"{person}_credit_score": (
            f"CASE WHEN {_number(score)} IN (7777, 8888, 9999) THEN 'NA' WHEN {_number(score)} = 1111 THEN 'Exempt' "
            f"ELSE {score} END"
        ),
        f"{person}_race_told": f"coalesce({', '.join(f'{person}_{text}' for text in _RACE_TEXTS)}) IS NOT NULL",
        f"{person}_ethnicity_told": f"{person}_ethnicity_text IS NOT NULL",
    }


def _month(name: str) -> str:
    date = f"TRY_CAST(TRY_STRPTIME(CASE WHEN length({name}) = 8 THEN {name} END, '%Y%m%d') AS DATE)"
    return f"strftime({date}, '%Y-%m')"


_MADE: Final = {
    "application_month": _month("application_date"),
    "action_month": _month("action_taken_date"),
    **_person("applicant"),
    **_person("co_applicant"),
    "debt_to_income_pct": "debt_to_income_filed",
    "debt_to_income_ratio": (
        f"CASE WHEN {_number('debt_to_income_filed')} IS NULL THEN debt_to_income_filed "
        f"ELSE {ratio_band(_number('debt_to_income_filed'))} END"
    ),
    "total_units": _units_band("total_units_filed"),
    "multifamily_affordable_units": (
        f"CASE WHEN {_number('multifamily_units_filed')} IS NULL THEN multifamily_units_filed ELSE CAST(round(100 * "
        f"{_number('multifamily_units_filed')} / nullif({_number('total_units_filed')}, 0)) AS VARCHAR) END"
    ),
}
"""Column of the view -> SQL over the fields."""

FREE_TEXT: Final = tuple(
    f"{person}_{what}_told" for person in ("applicant", "co_applicant") for what in ("race", "ethnicity")
)
"""Columns of the view: whether free text tells a race or an ethnicity."""
FAULT: Final = "filing_fault"
"""Column of the view: the edit by which a row is no row of the lender; null of a row that is."""
GIVEN: Final = (
    *("activity_year", "failed_edits"),
    *(name for name in FIELDS if name not in WITHHELD and not name.endswith("_filed")),
    *(name for name in _MADE if name not in FREE_TEXT),
)
"""Columns of the view by which canonical columns are made."""


@dataclass(frozen=True)
class Sheet:
    """What is open_fields of a transmittal sheet."""

    lender: str
    """Its name."""
    year: int
    entries: int
    """Rows that the lender counted."""
    lei: str


def is_submission(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record has a submission's shape: of a sheet or of a row, behind a record type of one letter."""
    return len(records[0]) in (_SHEET_FIELDS, _ROW_FIELDS) and len(records[0][0]) == 1


def begins_one(line: bytes) -> bool:
    """The same of the first line of a file, before it is split."""
    return line.count(b"|") + 1 in (_SHEET_FIELDS, _ROW_FIELDS) and line[1:2] == b"|"


def without_marks(line: str) -> str:
    """A line of a submission without the marks behind its last field; any other line as it is."""
    fields = {"1|": _SHEET_FIELDS, "2|": _ROW_FIELDS}.get(line[:2])
    surplus = 0 if fields is None else line.count("|") + 1 - fields
    if surplus <= 0:
        return line
    body, end = line.rstrip(), line[len(line.rstrip()) :] if line.endswith("\r") else ""
    return body[:-surplus] + end.lstrip(" ") if body.endswith("|" * surplus) else line


def sheet_of(name: str, records: Sequence[Sequence[str]]) -> Sheet | None:
    """The sheet; None of rows without one. No message shows a value.

    Raises:
        DataQualityError: the sheet has no year, number of entries or LEI; no row below it is one of a submission.
    """
    rows = records[1:] if len(records[0]) == _SHEET_FIELDS else records
    if not any(len(row) == _ROW_FIELDS and row[0] == "2" and re.fullmatch(_LEI, row[1]) for row in rows):
        raise DataQualityError(
            f"{name} begins as a lender's submission, and none of its first rows has record type 2, {_ROW_FIELDS} "
            "fields and an LEI: cells lie between pipes, without quotes; export it again as it is submitted"
        )
    if len(records[0]) != _SHEET_FIELDS:
        return None
    if records[0][0] != "1":
        raise DataQualityError(f"{name}: its first line is no transmittal sheet, which has record type 1 (edit S300)")
    sheet = [cell.strip() for cell in records[0]]
    if not re.fullmatch(r"20\d\d", sheet[2]) or int(sheet[2]) < _FIRST_YEAR:
        raise DataQualityError(f"{name}: its transmittal sheet names no calendar year from 2018 (field 3, edit S302)")
    if not re.fullmatch(r"\d{1,9}", sheet[12]):
        raise DataQualityError(f"{name}: its transmittal sheet counts no entries (field 13, edit V606)")
    if not re.fullmatch(_LEI, sheet[14]):
        raise DataQualityError(f"{name}: its transmittal sheet has no LEI of 20 letters and digits (field 15, V600)")
    return Sheet(sheet[1], int(sheet[2]), int(sheet[12]), sheet[14])


def check_entries(name: str, sheet: Sheet | None, rows: int) -> None:
    """Hold the rows that came against the number that the sheet has.

    Raises:
        DataQualityError: it is another.
    """
    if sheet is not None and sheet.entries != rows:
        raise DataQualityError(
            f"{name}: its transmittal sheet counts {sheet.entries:,} entries, and {rows:,} rows came (edit S304): the "
            "file is cut short or the sheet is of another one; export both together"
        )


def year_of(sheet: Sheet | None, records: Sequence[Sequence[str]]) -> set[str]:
    """The years of a submission: that of its sheet, else those of the actions in its first rows."""
    if sheet is not None:
        return {str(sheet.year)}
    at = FIELDS.index("action_taken_date")
    return {row[at][:4] for row in records if len(row) == _ROW_FIELDS and re.fullmatch(r"\d{8}", row[at])}


def filed(rows: str, sheet: Sheet | None) -> str:
    """SQL of all fields as text and of ``filing_year``, over SQL of the fields."""
    year = f"'{sheet.year}'" if sheet else "NULL::VARCHAR"
    return f"SELECT *, {year} AS filing_year FROM ({rows})"


def view(rows: str, sheet: Sheet | None) -> str:
    """SQL of the columns that leave the reader, over SQL of all fields and of ``failed_edits``."""
    dated = "CASE WHEN length(action_taken_date) = 8 THEN left(action_taken_date, 4) END"
    is_own = f"lei = '{sheet.lei}'" if sheet else f"regexp_full_match(lei, '{_LEI}')"
    fault = (
        f"CASE WHEN record IS DISTINCT FROM '2' THEN 'S300' WHEN NOT coalesce({is_own}, false) "
        f"THEN '{'S301' if sheet else 'V600'}' END"
    )
    open_fields = [name for name in FIELDS if name not in WITHHELD and not name.endswith("_filed")]
    expressions = {"activity_year": f"coalesce(filing_year, {dated})", FAULT: fault, **_MADE}
    columns = ", ".join(
        [*open_fields, *(f"{sql} AS {name}" for name, sql in expressions.items()), "failed_edits", "source_row"]
    )
    return f"SELECT {columns} FROM ({rows})"


WITHHELD_VALUE: Final = "(withheld)"
"""In place of what a row holds, in refusals and beside unknown codes."""
REFUSED: Final = Refusal.FAILED_EXPECTATION
"""Reason of a row that is none of the lender's."""


def shown(filed: str) -> str:
    """SQL of a code that no guide lists: longer ones may be a part of an address or of a loan's number."""
    is_code = f"regexp_full_match({filed}, '[0-9]{{1,2}}|1111|7777|8888|9999')"
    return f"CASE WHEN {is_code} THEN {filed} ELSE '{WITHHELD_VALUE}' END"
