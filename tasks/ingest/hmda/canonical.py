"""HMDA columns of every era as canonical columns, in SQL."""

# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from schemas.table import Column
from schemas.tables.hmda import HMDA_APPLICATIONS, STATES, UNIT_FLAGS
from schemas.terms import Refusal
from tasks.ingest.hmda import submission
from tasks.ingest.hmda.layouts import Recognised

# --------------------------------------------------------------------------------------------------------------------
# The codes of HMDA by era, as its files hold them: which are known, what their labels are, and which are rolled up.
#
# Scope: facts. How cells are held against them: ``cells``. Source: the filing guides of 2007 to 2025, and the labels as
# the historic files spell them.


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
        f"{person}_{what}"
        for person in ("applicant", "co_applicant")
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


# --------------------------------------------------------------------------------------------------------------------
# One cell of an HMDA file as SQL: its value, and the conditions under which it has none.
#
# In the rows that are selected from, a blank cell is null. Nothing is cast in silence: a cell that gives no value is
# blank, a word of the filing guides, or told of as unknown or unusable. Scope: codes, labels, numbers and fixed digits.
# Which column is read how: ``columns``.


SQL_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT", "int32": "INTEGER", "bool": "BOOLEAN"}
"""Type of a declared column -> type of SQL."""


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def parquet(file: Path) -> str:
    """A Parquet file, or the files in the folders of a directory, as a table of SQL."""
    if not file.is_dir():
        return f"read_parquet({literal(str(file))})"
    return f"read_parquet({listed(map(str, sorted(file.glob('*/*.parquet'))))}, hive_partitioning = false)"


def listed(texts: Iterable[str]) -> str:
    """Texts as a list of SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def enumeration(codes: Iterable[str]) -> str:
    """Codes as a type of SQL: no other value can be held, and Parquet takes it as text with these as dictionary."""
    return f"ENUM ({', '.join(map(literal, codes))})"


def joined(pairs: Iterable[tuple[str, str]]) -> str:
    """SQL of the names with a true condition, joined by commas; null if none is true."""
    named_conditions = list(pairs)
    if not named_conditions:
        return "NULL::VARCHAR"
    names = ", ".join(f"CASE WHEN {condition} THEN {literal(name)} END" for name, condition in named_conditions)
    return f"CASE WHEN {any_of(condition for _, condition in named_conditions)} THEN concat_ws(',', {names}) END"


def any_of(conditions: Iterable[str]) -> str:
    """SQL of whether one of the conditions holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"


@dataclass(frozen=True)
class Cell:
    """How one canonical column is read off a file."""

    column: str
    source: str
    """The file's column."""
    kind: Literal["code", "number"]
    value: str
    """SQL of the value, over the file's columns."""
    words: tuple[str, ...] = ()
    """Codes as filed that say nothing, beside NA."""

    @property
    def filed(self) -> str:
        """Name of the column with the text as filed, next to the column of the value."""
        return quoted(f"{self.column} as filed")

    @property
    def selected(self) -> str:
        """The value and the text as filed, for a list of columns."""
        return f"{self.value} AS {quoted(self.column)}, {quoted(self.source)} AS {self.filed}"

    @property
    def unknown(self) -> str:
        """SQL of whether a code was filed that is not known; NA is none."""
        null = f"{quoted(self.column)} IS NULL AND {self.filed} NOT IN ({_among(NOT_APPLICABLE, *self.words)})"
        return f"{null} AND {_plain(self.filed)} NOT IN ({_among(*self.words)})" if self.words else null

    @property
    def exempt(self) -> str:
        """SQL of whether the number need not be reported."""
        return f"{self.filed} = {literal(EXEMPT)}"

    @property
    def blank(self) -> str:
        """SQL of whether the cell is empty."""
        return f"{self.filed} IS NULL"

    @property
    def absent(self) -> str:
        """SQL of whether the cell has no value: it is blank, or has a word in place of the value."""
        return f"{quoted(self.column)} IS NULL AND coalesce({self.filed} IN ({_among(NOT_APPLICABLE, EXEMPT)}), true)"

    def faulty(self, declared: Column) -> str:
        """SQL of whether the number cannot be used for any of the reasons that ``faults`` distinguishes."""
        low = -_GREATEST if declared.minimum is None else declared.minimum
        high = _GREATEST if declared.maximum is None else declared.maximum
        return f"NOT ({quoted(self.column)} BETWEEN {low!r} AND {high!r})"

    def faults(self, declared: Column) -> dict[Refusal, str]:
        """Reason -> SQL of the condition under which the number cannot be used, the first that holds."""
        return {
            Refusal.NOT_A_NUMBER: f"{self.faulty(declared)} AND TRY_CAST({self.filed} AS DOUBLE) IS NULL",
            Refusal.NOT_FINITE: f"NOT isfinite({quoted(self.column)})",
            Refusal.FAILED_EXPECTATION: self.faulty(declared),
        }


_GREATEST = sys.float_info.max


def number(column: str, source: str, scale: int = 1, digits: int | None = None) -> Cell:
    """A number, times ``scale``; rounded where the files carry the noise of single precision.

    What is no number and no word becomes NaN, which no range holds: so one comparison finds every fault.
    """
    text = quoted(source)
    value = f"coalesce(TRY_CAST({text} AS DOUBLE), 'NaN'::DOUBLE)" + (f" * {scale}" if scale != 1 else "")
    value = value if digits is None else f"round({value}, {digits})"
    # the words are taken out before the cast: to try a cast that fails costs ten times one that does not
    plain = f"{text} <> {literal(NOT_APPLICABLE)} AND {text} <> {literal(EXEMPT)}"
    return Cell(column, source, "number", f"CASE WHEN {plain} THEN {value} END")


def code(column: str, source: str, known_codes: Iterable[str], words: Iterable[str] = ()) -> Cell:
    """A code as an enumeration, with what spreadsheets and padding make of it taken off: 5.0, 05, blanks around it.

    ``words`` are codes as filed that say nothing: they become null.
    """
    text, codes = quoted(source), enumeration(known_codes)
    for word in words:
        text = f"nullif({text}, {literal(word)})"
    mended = f"CASE WHEN {text} IS NOT NULL THEN TRY_CAST({_plain(text)} AS {codes}) END"
    return Cell(column, source, "code", f"coalesce(TRY_CAST({text} AS {codes}), {mended})", tuple(words))


def _plain(text: str) -> str:
    """SQL of a code without what spreadsheets and padding make of it."""
    as_number = f"TRY_CAST({text} AS DOUBLE)"
    return (
        f"CASE WHEN {as_number} = floor({as_number}) THEN TRY_CAST(TRY_CAST({as_number} AS BIGINT) AS VARCHAR) "
        f"ELSE trim({text}) END"
    )


def _among(*texts: str) -> str:
    return ", ".join(map(literal, texts))


def ratio(column: str, source: str, known_codes: Iterable[str]) -> Cell:
    """A debt-to-income ratio: a published band, with or without blanks in it, or the band of an exact number."""
    cell = code(column, source, known_codes)
    text, codes = f"replace({quoted(source)}, ' ', '')", enumeration(known_codes)
    band = submission.ratio_band(f"TRY_CAST({quoted(source)} AS DOUBLE)")
    exact = f"CASE WHEN TRY_CAST({quoted(source)} AS DOUBLE) IS NOT NULL THEN TRY_CAST({band} AS {codes}) END"
    return Cell(column, source, "code", f"coalesce({cell.value}, TRY_CAST({text} AS {codes}), {exact})")


def label(column: str, source: str, codes: Mapping[str, str]) -> Cell:
    """The code that belongs to a label."""
    cases = " ".join(f"WHEN {literal(name)} THEN {literal(value)}" for name, value in codes.items())
    return Cell(column, source, "code", f"CASE trim({quoted(source)}) {cases} END")


def digits(column: str, source: str, length: int) -> Cell:
    """A code of so many digits; lost leading zeros are restored."""
    text = quoted(source)
    padded = f"CASE WHEN length({text}) = {length} THEN {text} ELSE lpad({text}, {length}, '0') END"
    return Cell(column, source, "code", f"CASE WHEN regexp_full_match({text}, '[0-9]{{1,{length}}}') THEN {padded} END")


# --------------------------------------------------------------------------------------------------------------------
# Race, ethnicity and sex of an application, of applicant and co-applicant together, as SQL over the codes as filed.
#
# Files of 2018 and later, and the three-year file of 2017, carry them as published. For the others they are derived by
# the rules of the publisher (CFPB, derived data fields of the public register), which were checked against a file that
# has both.


_MINORITIES = {
    "American Indian or Alaska Native": ("1",),
    "Asian": ("2", *(f"2{i}" for i in range(1, 8))),
    "Black or African American": ("3",),
    "Native Hawaiian or Other Pacific Islander": ("4", *(f"4{i}" for i in range(1, 5))),
}
_WHITE = "5"
_HISPANIC = ("1", "11", "12", "13", "14")
_NOT_HISPANIC = "2"
_BOTH_SEXES = "6"


def race(modern: bool = True, has_text: bool = False) -> str:
    """One race, minority before White; Joint where one of the two is White and the other of a minority.

    Whose first race is blank wrote free text only, which is possible from 2018. A White applicant whose co-applicant
    did so is Joint; before, a blank co-applicant makes nobody Joint. Where a file has columns on free text
    (``has_text``), a blank race without it is not available.
    """
    applicant_codes, other = _said("applicant_race"), _said("co_applicant_race")
    first, other_first = quoted("applicant_race_1_raw"), quoted("co_applicant_race_1_raw")
    free_text = f"{other_first} IS NULL{' AND co_applicant_race_told' if has_text else ''}" if modern else "false"
    minority = [f"list_has_any({applicant_codes}, {listed(codes)})" for codes in _MINORITIES.values()]
    several = " + ".join(f"CAST({has} AS INTEGER)" for has in minority)
    every = [code for codes in _MINORITIES.values() for code in codes]
    other_minority, other_white = f"list_has_any({other}, {listed(every)})", f"list_contains({other}, '{_WHITE}')"
    single = " ".join(f"WHEN {has} THEN {literal(name)}" for has, name in zip(minority, _MINORITIES, strict=True))
    return (
        f"CASE WHEN {first} IS NULL THEN {_blank(modern, 'Race', has_text)} "
        f"WHEN {first} IN ('6', '7') THEN 'Race Not Available' "
        f"WHEN list_has_any({applicant_codes}, {listed(every)}) AND {other_white} THEN 'Joint' "
        f"WHEN {several} > 1 THEN '2 or more minority races' {single} "
        f"WHEN {other_minority} OR {free_text} THEN 'Joint' ELSE 'White' END"
    )


def ethnicity(modern: bool = True, has_text: bool = False) -> str:
    """Joint where both answers were given, by the two or by one of them."""
    applicant_codes, other = _said("applicant_ethnicity"), _said("co_applicant_ethnicity")
    first, hispanic = quoted("applicant_ethnicity_1_raw"), listed(_HISPANIC)
    is_hispanic, is_other_hispanic = (
        f"list_has_any({applicant_codes}, {hispanic})",
        f"list_has_any({other}, {hispanic})",
    )
    not_mine, not_others = (f"list_contains({codes}, '{_NOT_HISPANIC}')" for codes in (applicant_codes, other))
    return (
        f"CASE WHEN {first} IS NULL THEN {_blank(modern, 'Ethnicity', has_text)} "
        f"WHEN {first} IN ('3', '4') THEN 'Ethnicity Not Available' "
        f"WHEN {is_hispanic} AND ({not_mine} OR {not_others}) OR {not_mine} AND {is_other_hispanic} THEN 'Joint' "
        f"WHEN {is_hispanic} THEN 'Hispanic or Latino' WHEN {not_mine} THEN 'Not Hispanic or Latino' "
        "ELSE 'Ethnicity Not Available' END"
    )


def sex(modern: bool = True, has_text: bool = False) -> str:  # noqa: ARG001 the same call for every rule
    """Joint where the two differ, or one of them chose both."""
    applicant_sex, other = quoted("applicant_sex"), f"coalesce({quoted('co_applicant_sex')}, '')"
    return (
        f"CASE WHEN {applicant_sex} = '{_BOTH_SEXES}' THEN 'Joint' "
        f"WHEN {applicant_sex} = '1' THEN CASE WHEN {other} IN ('2', '{_BOTH_SEXES}') THEN 'Joint' ELSE 'Male' END "
        f"WHEN {applicant_sex} = '2' THEN CASE WHEN {other} IN ('1', '{_BOTH_SEXES}') THEN 'Joint' ELSE 'Female' END "
        "ELSE 'Sex Not Available' END"
    )


DERIVED = {
    "derived_race": (race, ("applicant_race_1_raw", "co_applicant_race_1_raw")),
    "derived_ethnicity": (ethnicity, ("applicant_ethnicity_1_raw", "co_applicant_ethnicity_1_raw")),
    "derived_sex": (sex, ("applicant_sex", "co_applicant_sex")),
}
"""Canonical column -> its rule, and the columns without which there is none."""


def _blank(modern: bool, what: str, has_text: bool) -> str:
    """What a blank first answer is."""
    none, free_text = literal(f"{what} Not Available"), literal("Free Form Text Only")
    if has_text:
        return f"CASE WHEN applicant_{what.lower()}_told THEN {free_text} ELSE {none} END"
    return free_text if modern else none


def _said(of: str) -> str:
    """All five answers as a list."""
    return "[" + ", ".join(f"CAST({quoted(f'{of}_{i}_raw')} AS VARCHAR)" for i in range(1, 6)) + "]"


# --------------------------------------------------------------------------------------------------------------------
# Location and lender of an application by era: state, county, tract, metropolitan area and lender.
#
# Until 2017 the parts of a place are columns of their own and the tract is a number such as 29.02; from 2018 county and
# tract are written whole. Scope: that difference.


_AREAS = ("derived_msa_md", "msa_md", "msamd")
_TRACTS = ("census_tract_number", "census_tract")
_TEXTS = {  # canonical column -> the files' columns, the first that is there
    "county_name": ("county_name",),
    "msa_md_name": ("msamd_name",),
    "edit_status": ("edit_status", "edit_status_name"),
    "sequence_number": ("sequence_number",),
    "application_date_indicator": ("application_date_indicator",),
    **{name: (name,) for name in ("application_month", "action_month", "failed_edits")},
}
_OF_NUMBER = {spelt: letters for letters, number in FIPS_OF_STATE.items() for spelt in (number, number.lstrip("0"))}


def place_cells(recognised: Recognised) -> Iterator[Cell]:
    """Cells of state, county and tract, over the file's columns."""
    has, modern = set(recognised.given), recognised.layout.family == "modern"
    if "state_code" in has:
        yield code("state_code", "state_code", STATES) if modern else label("state_code", "state_code", _OF_NUMBER)
    elif "state_abbr" in has:
        yield code("state_code", "state_abbr", STATES)
    if modern:
        if "county_code" in has:
            yield digits("county_fips5", "county_code", 5)
        if "census_tract" in has:
            yield digits("tract_fips11", "census_tract", 11)
        return
    if "county_code" in has and "state_code" in has:
        county = digits("county_fips5", "county_code", 3)
        state = digits("state_code", "state_code", 2)
        yield Cell("county_fips5", "county_code", "code", f"({state.value}) || ({county.value})")
    for source in _TRACTS:
        if source in has:
            text = quoted(source)
            plain = f"CASE WHEN {text} <> {literal(NOT_APPLICABLE)} THEN TRY_CAST({text} AS DOUBLE) END"
            tract_code = f"CAST(round(({plain}) * 100) AS BIGINT)"
            value = f"CASE WHEN {plain} >= 0 AND {plain} < 10000 THEN lpad(CAST({tract_code} AS VARCHAR), 6, '0') END"
            tract_in_county = Cell("census_tract", source, "code", value)
            yield tract_in_county
            return


def place_texts(recognised: Recognised) -> dict[str, str]:
    """Canonical column -> SQL of what is taken as it is, over the file's columns."""
    has, out = set(recognised.given), {}
    for column, sources in _TEXTS.items():
        source_column = next((source for source in sources if source in has), None)
        if source_column:
            out[column] = quoted(source_column)
    if recognised.exact_ratio:
        exact = "TRY_CAST(debt_to_income_ratio AS DOUBLE)"
        out["debt_to_income_pct"] = f"CASE WHEN isfinite({exact}) THEN {exact} END"
    lender = next((name for name in ("lei", "respondent_id") if name in has), None)
    if lender:
        out["lender_id"] = quoted(lender)
    area = next((name for name in _AREAS if name in has), None)
    if area:
        out["msa_md"] = f"CASE WHEN NOT list_contains({listed(NO_AREA)}, {quoted(area)}) THEN {quoted(area)} END"
    return out


def made_of_places(recognised: Recognised) -> dict[str, str]:
    """Canonical column -> SQL over the canonical columns that were read: what is put together from several."""
    if recognised.layout.family == "modern":
        return {"census_tract": "right(tract_fips11, 6)"} if "census_tract" in recognised.given else {}
    out = {}
    if {"county_code", "state_code"} <= set(recognised.given) and any(t in recognised.given for t in _TRACTS):
        out["tract_fips11"] = "county_fips5 || census_tract"
    if "respondent_id" in recognised.given:
        # two lenders of different agencies may have one respondent_id; without the agency nobody can be named
        out["lender_id"] = "CAST(agency_code AS VARCHAR) || '-' || lender_id"
    return out


# --------------------------------------------------------------------------------------------------------------------
# Flags numbers that a lender filed in a wrong unit, by rule. No value is corrected.
#
# Errors of whole lenders are known from the public files of 2018 to 2022: income in dollars instead of thousands or by
# the month, ratios and rates as fractions, amounts in cents, terms of one month, codes in place of amounts. Each rule
# looks at one row, so that a file can be streamed; a flag is a reason to look, and no proof.


_MOST_INCOME = 10_000_000
"""Dollars a year: filed in dollars instead of thousands, an income of 10,000 comes to this."""
_MOST_LOAN = 100_000_000
"""Dollars, of a home of one to four units."""
_MOST_INCOMES = 25
"""A granted first-lien loan to live in is a few yearly incomes; of an income by the month, twelve times as many."""

_GRANTED = "action_taken IN ('1', '2') AND lien_status = '1' AND occupancy = '1'"
_PERSONAL = "coalesce(business_or_commercial_purpose, '2') = '2'"
_SHARE = "loan_amount_usd / nullif(property_value_usd, 0)"

_RULES = {
    "income_not_positive": "income_usd <= 0",
    "income_in_dollars": f"income_usd >= {_MOST_INCOME}",
    "income_by_month": (
        f"income_usd > 0 AND loan_amount_usd > {_MOST_INCOMES} * income_usd AND {_GRANTED} AND {_PERSONAL}"
    ),
    "loan_amount_too_large": (
        f"{_SHARE} >= 10 OR (loan_amount_usd >= {_MOST_LOAN} AND coalesce(property_type, '3') <> '3')"
    ),
    # percent of a loan that is a tenth of the home or more cannot be 2 or less
    "ltv_as_fraction": f"ltv_ratio > 0 AND ltv_ratio <= 2 AND coalesce({_SHARE} >= 0.1, true)",
    "ltv_too_large": "ltv_ratio >= 1000",
    "interest_rate_as_fraction": "interest_rate > 0 AND interest_rate < 0.25",
    "loan_term_one_month": "loan_term = 1",
    "code_as_discount_points": "discount_points IN (1111, 8888, 9999)",
}


def unit_flag() -> str:
    """SQL of the flags of a row, joined by commas; null if there are none. Over canonical columns."""
    return joined((name, _RULES[name]) for name in UNIT_FLAGS)


# --------------------------------------------------------------------------------------------------------------------
# Query from the columns of a recognised file to those of the canonical table; DuckDB streams it.
#
# The query has two layers. The inner one reads every cell by itself and hands on beside it what was filed; in the outer
# one codes are rolled up, and what concerns a whole row is told: what is exempt, blank, unknown or flagged, and whether
# the row is refused. Scope: which column comes from where. How a cell is read: ``cells`` and ``places``.


_PEOPLE = {
    f"{person}_{what}_{i}_raw": (f"{person}_{what}_{i}", *([f"{person}_{what}"] if i == 1 else []))
    for person in ("applicant", "co_applicant")
    for what in ("race", "ethnicity")
    for i in range(1, 6)
}
_NAMES: Mapping[str, tuple[str, ...]] = {  # canonical column -> what the files call it, where they do otherwise
    "activity_year": ("activity_year", "as_of_year"),
    "loan_amount_usd": ("loan_amount_000s", "loan_amount"),
    "income_usd": ("applicant_income_000s", "income"),
    "property_value_usd": ("property_value",),
    "ltv_ratio": ("combined_loan_to_value_ratio", "loan_to_value_ratio"),
    "loan_purpose_raw": ("loan_purpose",),
    "occupancy_raw": ("owner_occupancy", "occupancy_type"),
    "preapproval_raw": ("preapproval",),
    "lien_status_raw": ("lien_status",),
    "purchaser_type_raw": ("purchaser_type",),
    **_PEOPLE,
    "tract_population": ("population", "tract_population"),
    "tract_minority_pct": ("minority_population", "tract_minority_population_percent"),
    "ffiec_median_family_income": ("hud_median_family_income", "ffiec_msa_md_median_family_income"),
    "tract_to_msa_income_pct": ("tract_to_msamd_income", "tract_to_msa_income_percentage"),
    "tract_owner_occupied_units": ("number_of_owner_occupied_units", "tract_owner_occupied_units"),
    "tract_1_4_family_units": (
        *("number_of_1_to_4_family_units", "tract_one_to_four_family_units", "tract_one_to_four_family_homes"),
    ),
}
_ROUNDED = {"tract_minority_pct": 2, "tract_to_msa_income_pct": 2}
_NULL = {name: f"NULL::{SQL_TYPES[column.type]}" for name, column in CANONICAL.items()}
_MARKS = {"exempt", "blank", "unknown_codes", "failed_edits", "unit_flag"}
"""Canonical columns that say something of the others."""
_OF_PLACES = {"state_code", "county_fips5", "tract_fips11"}
_MADE = {"occupancy", "preapproval", "lien_status", *ROLLED_UP, *_OF_PLACES}
"""Canonical columns that are not read under their own name."""


def select(recognised: Recognised) -> str:
    """A SELECT of all canonical columns over ``raw``, and of ``refusal``: null, or why the row is no application.

    ``raw`` has the file's columns as text, blank cells as null, and ``source_row``. ``refusal`` is a struct of
    ``reason``, ``column`` and ``detail``. A column that the file does not have is null.
    """
    cells = list(_cells(recognised))
    texts = place_texts(recognised)
    inner = ["source_row", *(cell.selected for cell in cells), *(f"{sql} AS {quoted(c)}" for c, sql in texts.items())]
    inner += [*submission.FREE_TEXT, submission.FAULT] if recognised.restricted else []
    values = _values(recognised, cells, {*texts, "source_row"})
    outer = [f"{values[name]} AS {quoted(name)}" for name in CANONICAL]
    refusal = _refusal(cells, recognised.restricted)
    return f"SELECT {', '.join(outer)}, {refusal} AS refusal FROM (SELECT {', '.join(inner)} FROM raw)"


def lacking(recognised: Recognised) -> tuple[str, ...]:
    """Columns of the canonical table that a file of these columns cannot give: they are null in all rows."""
    values = _values(recognised, list(_cells(recognised)), set(place_texts(recognised)) | {"source_row"})
    return tuple(name for name, sql in values.items() if sql == _NULL[name] and name not in _MARKS)


def _cells(recognised: Recognised) -> Iterator[Cell]:
    """How each canonical column that the file can give is read."""
    modern, has = recognised.layout.family == "modern", set(recognised.given)
    yield from place_cells(recognised)
    for column in CANONICAL.values():
        if column.name in _MADE or not (column.codes or column.type != "string"):
            continue
        names = _NAMES.get(column.name, (column.name,))
        source = next((name for name in names if name in has), None)
        if column.type != "string":
            if source and column.name != "source_row":
                scale_column = column.name
                scale = (
                    1000 if scale_column == "income_usd" or (scale_column == "loan_amount_usd" and not modern) else 1
                )
                yield number(column.name, source, scale, _ROUNDED.get(column.name))
        elif column.name == "debt_to_income_ratio" and source and not recognised.restricted:
            yield ratio(column.name, source, column.codes)
        elif source:
            era = MODERN if modern else HISTORIC
            known_codes, words = era.get(column.name, column.codes), WORDS.get(column.name, ())
            yield code(column.name, source, known_codes, words)
        else:
            yield from (label(column.name, s, LABELS[s]) for s in map(_label_of, names) if s in has)


def _label_of(source: str) -> str:
    """The column with the words for a code: applicant_race_1 -> applicant_race_name_1."""
    stem, _, last = source.rpartition("_")
    if source == "agency_code":
        return "agency_abbr"
    return f"{stem}_name_{last}" if last.isdigit() else f"{source}_name"


def _values(recognised: Recognised, cells: list[Cell], other_columns: set[str]) -> dict[str, str]:
    """Canonical column -> SQL over the inner layer; of a column that the file cannot give, null."""
    available = {cell.column for cell in cells} | other_columns
    out = {name: quoted(name) if name in available else null for name, null in _NULL.items()}
    if "activity_year" in available:
        out["activity_year"] = "TRY_CAST(activity_year AS INTEGER)"
    out |= {name: _as_code(name, f"left({_text(name)}, 1)") for name in ROLLED_UP if f"{name}_raw" in available}
    out |= _changed_in_2018(recognised.layout.family == "modern", available)
    for name, (rule, required) in DERIVED.items():
        if name not in available and available.issuperset(required):
            out[name] = rule(recognised.layout.family == "modern", recognised.restricted)
    out |= made_of_places(recognised)
    numbers = [cell for cell in cells if cell.kind == "number"]
    out["exempt"] = joined((cell.column, cell.exempt) for cell in numbers)
    out["blank"] = joined((cell.column, cell.blank) for cell in numbers)
    out["unknown_codes"] = _unknown([cell for cell in cells if cell.kind == "code"], recognised.restricted)
    out["unit_flag"] = unit_flag()
    return out


def _text(column: str) -> str:
    """The code as filed of a column that is made of it, as text."""
    return f"CAST({quoted(f'{column}_raw')} AS VARCHAR)"


def _as_code(column: str, sql: str) -> str:
    return f"TRY_CAST({sql} AS {enumeration(CANONICAL[column].codes)})"


def _changed_in_2018(modern: bool, available: set[str]) -> dict[str, str]:
    """Columns with codes that changed their meaning in 2018."""
    out = {}
    if "occupancy_raw" in available:  # 2 was any other use; from 2018 it is a second residence and 3 an investment
        text = _text("occupancy")
        out["occupancy"] = f"CASE {text} WHEN '3' THEN '2' ELSE {text} END" if modern else f"nullif({text}, '3')"
    if "preapproval_raw" in available:
        out["preapproval"] = f"nullif({_text('preapproval')}, '3')"
    if "lien_status_raw" in available:
        out["lien_status"] = f"nullif({_text('lien_status')}, '4')"
    if "derived_dwelling_category" in available and "property_type" not in available:
        out["property_type"] = (
            "CASE WHEN starts_with(derived_dwelling_category, 'Multifamily') THEN '3' "
            "WHEN ends_with(derived_dwelling_category, 'Manufactured') THEN '2' "
            "WHEN derived_dwelling_category IS NOT NULL THEN '1' END"
        )
    elif {"construction_method", "total_units"} <= available:
        few = "total_units IN ('1', '2', '3', '4')"
        out["property_type"] = (
            f"CASE WHEN {few} THEN CAST(construction_method AS VARCHAR) WHEN total_units IS NOT NULL THEN '3' END"
        )
    return {column: _as_code(column, sql) for column, sql in out.items()}


def _unknown(codes: list[Cell], restricted: bool) -> str:
    """SQL of a JSON object of the codes that are not known; null where all are."""
    if not codes:
        return "NULL::VARCHAR"
    key = {cell.column: literal(f'"{cell.column}": ') for cell in codes}
    filed = {cell.column: submission.shown(cell.filed) if restricted else cell.filed for cell in codes}
    parts = ", ".join(
        f"CASE WHEN {cell.unknown} THEN {key[cell.column]} || to_json({filed[cell.column]}) END" for cell in codes
    )
    struct_text = "'{' || " + f"concat_ws(', ', {parts})" + " || '}'"
    return f"CASE WHEN {any_of(cell.unknown for cell in codes)} THEN {struct_text} END"


_REQUIRED = {"activity_year": Refusal.MISSING_VALUE, "action_taken": Refusal.MISSING_DECISION}
"""Columns that a file must fill in where it has them."""


def _refusal(cells: list[Cell], restricted: bool) -> str:
    """SQL of the first fault of a row; whether there is any is tested first, since hardly any row has one."""
    faults, any_fault = [], []
    for cell in cells:
        if cell.column in _REQUIRED:
            faults.append((_REQUIRED[cell.column], cell, cell.absent))
            any_fault.append(cell.absent)
        if cell.column == "activity_year":
            faults.append((Refusal.NOT_A_NUMBER, cell, "activity_year <> floor(activity_year)"))
            any_fault.append("activity_year <> floor(activity_year)")
        if cell.kind == "number":
            faults += [(reason, cell, test) for reason, test in cell.faults(CANONICAL[cell.column]).items()]
            any_fault.append(cell.faulty(CANONICAL[cell.column]))
    withheld = literal(submission.WITHHELD_VALUE)
    cases = " ".join(
        f"WHEN {test} THEN {{'reason': {literal(reason)}, 'column': {literal(cell.column)}, "
        f"'detail': {withheld if restricted else cell.filed}}}"
        for reason, cell, test in faults
    )
    if restricted:  # a row of another lender, or of another record type, may have anything in any place
        fault = f"'reason': {literal(submission.REFUSED)}, 'column': 'lender_id', 'detail': {submission.FAULT}"
        cases = f"WHEN {submission.FAULT} IS NOT NULL THEN {{{fault}}} {cases}"
        any_fault.insert(0, f"{submission.FAULT} IS NOT NULL")
    return (
        f"CASE WHEN {any_of(any_fault)} THEN CASE {cases} END END"
        if faults
        else 'NULL::STRUCT(reason VARCHAR, "column" VARCHAR, detail VARCHAR)'
    )
