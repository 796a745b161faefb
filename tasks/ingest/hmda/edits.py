"""Edits of the FFIEC that a lender's own submission is held against: syntax and validity of fields that audits read.

Each is a condition on one row, or on the rows of a loan, in SQL over the fields as filed; a blank field is null there.
Those of identifiers and addresses are judged here as well, though no such field leaves the reader: numbers of edits do.
Edits of the sheet's contact are not here. Neither is whether a county or a tract exists, which needs the census file of
the year (V625-2, and a part of V626, V627 and V716). Source: the filing instruction guides of 2018 to 2026.
Scope: which rows fail which edit. What follows: nothing is refused for it but what ``submission`` names; failures are
counted (``tasks.ingest.hmda.conversion``).
"""

# ruff: noqa: S608 what goes into the SQL are names and codes of ours

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from schemas.tables.hmda import STATES
from tasks.ingest.hmda.canonical import FIPS_OF_STATE


@dataclass(frozen=True)
class Edit:
    """One edit."""

    number: str
    """As the FFIEC numbers it, with its part, such as V613-2."""
    words: str
    """What is expected."""
    fails: str
    """SQL of whether a row fails it."""


def judged(rows: str, fields: tuple[str, ...]) -> str:
    """SQL of rows with all fields, with ``failed_edits``: the numbers of the edits that a row fails, joined by commas.

    In one layer the fields are made ready for all conditions, in the next each condition is a column of its own: in one
    expression DuckDB plans them for seconds.
    """
    ready = [f"coalesce({name}, '') AS b_{name}" for name in fields]
    ready += [f"CASE WHEN isfinite({_cast(name)}) THEN {_cast(name)} END AS n_{name}" for name in NUMBERS]
    tests = [f"({edit.fails}) AS edit_{i}" for i, edit in enumerate(EDITS)]
    cases = ", ".join(f"CASE WHEN edit_{i} THEN '{edit.number}' END" for i, edit in enumerate(EDITS))
    columns = ", ".join((*fields, "filing_year", "source_row"))
    made_ready = f"SELECT {columns}, {', '.join(ready)} FROM ({rows})"
    judgements = f"SELECT {columns}, {', '.join(tests)} FROM ({made_ready})"
    return f"SELECT {columns}, nullif(concat_ws(',', {cases}), '') AS failed_edits FROM ({judgements})"


def _cast(name: str) -> str:
    return f"TRY_CAST({name} AS DOUBLE)"


NUMBERS: Final = (
    *("loan_amount", "income", "rate_spread", "total_loan_costs", "total_points_and_fees", "origination_charges"),
    *("discount_points", "lender_credits", "interest_rate", "prepayment_penalty_term", "debt_to_income_filed"),
    *("combined_loan_to_value_ratio", "loan_term", "intro_rate_period", "property_value", "total_units_filed"),
    *("multifamily_units_filed", "applicant_age_filed", "co_applicant_age_filed"),
    *("applicant_credit_score_filed", "co_applicant_credit_score_filed"),
)
"""Fields that are read as numbers; what is none is null there."""
REPEATED: Final = "repeated_rows"
"""Table of ``source_row`` and ``number``: rows that repeat each other."""


def repeated_rows(rows: str, fields: tuple[str, ...]) -> str:
    """SQL of that table over all fields of the rows: equal rows, and originated loans with an identifier in common."""
    row_hash = f"hash({', '.join(fields)})"
    return (
        f"SELECT unnest(places) AS source_row, 'S305' AS number FROM (SELECT list(source_row) AS places FROM ({rows}) "
        f"GROUP BY {row_hash} HAVING count(*) > 1) UNION ALL "
        f"SELECT unnest(places), 'S306' FROM (SELECT list(source_row) AS places FROM ({rows}) "
        "WHERE action_taken = '1' AND uli IS NOT NULL GROUP BY hash(uli) HAVING count(*) > 1)"
    )


# --------------------------------------------------------------------------------------------------------------------
# Conditions in SQL.


def _is(name: str, *codes: str) -> str:
    """Whether a field is one of these codes; an empty code is a blank field."""
    if len(codes) == 1:
        return f"b_{name} = '{codes[0]}'"
    listed = "', '".join(codes)
    return f"list_contains(['{listed}'], b_{name})"


def _not(name: str, *codes: str) -> str:
    return f"NOT ({_is(name, *codes)})"


def _any(names: tuple[str, ...], *codes: str) -> str:
    return f"({' OR '.join(_is(name, *codes) for name in names)})"


def _filled(*names: str) -> str:
    blank = " = '' AND b_".join(names)
    return f"NOT (b_{blank} = '')"


def _number(name: str, least: str = "") -> str:
    """Whether a field is a number, above or at a least one: `> 0`, `>= 0`."""
    return f"coalesce(n_{name} {least}, false)" if least else f"(n_{name} IS NOT NULL)"


def _digits(name: str, pattern: str) -> str:
    """Whether a whole field has this pattern."""
    return f"regexp_full_match(b_{name}, '{pattern}')"


def _one_alone(first: str, second: str) -> str:
    """Whether one of two conditions holds, and the other does not."""
    return f"({first}) <> ({second})"


def _none(name: str) -> str:
    """Whether a field is neither NA nor Exempt."""
    return _not(name, "NA", "Exempt")


def _twice(names: tuple[str, ...]) -> str:
    """Whether two of the fields have the same code."""
    listed = f"[{', '.join(names)}]"
    return f"len(list_distinct({listed})) < list_aggregate({listed}, 'count')"


def _date(name: str) -> str:
    return f"TRY_STRPTIME(CASE WHEN length({name}) = 8 THEN {name} END, '%Y%m%d')"


_YEAR = "coalesce(filing_year, left(action_taken_date, 4), '')"
"""The year of the filing: of the sheet, else of the action."""
_OWN_IDENTIFIER = 22
"""Letters and digits of the longest identifier that is a lender's own, and has no check digits."""


def _remainder(name: str) -> str:
    """An identifier's remainder by 97, letters being 10 to 35: 1 where its check digits are right (12 CFR 1003, C)."""
    value = "CASE WHEN letter <= '9' THEN ord(letter) - 48 ELSE ord(letter) - 87 END"
    values = f"list_transform(string_split(lower(b_{name}), ''), lambda letter: {value})"
    return f"list_reduce({values}, lambda sum, next: (sum * CASE WHEN next > 9 THEN 100 ELSE 10 END + next) % 97)"


def _one_of(number: str, name: str, *codes: str) -> Edit:
    listed = [code for code in codes if code]
    blank = ", or blank" if "" in codes else ""
    expected = f"{name.replace('_', ' ')} is {', '.join(listed[:-1])} or {listed[-1]}{blank}"
    return Edit(number, expected, _not(name, *codes))


# --------------------------------------------------------------------------------------------------------------------
# The edits.


_YES_NO = ("1", "2", "1111")
_ETHNICITIES = ("1", "11", "12", "13", "14", "2")
_RACES = ("1", "2", *(f"2{i}" for i in range(1, 8)), "3", "4", *(f"4{i}" for i in range(1, 5)), "5")
_SCORE_MODELS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "11", "12", "13", "14", "15", "1111")
_REASONS = tuple("123456789")
_AUS = ("1", "2", "3", "4", "5", "7")
_RESULTS = tuple(map(str, range(1, 25)))
_UNITS = _number("multifamily_units_filed")
_LIVING = {  # where these say not applicable, the applicant is a company
    person: f"NOT ({_is(f'{person}_ethnicity_1', '4')} AND {_is(f'{person}_race_1', '7')} "
    f"AND {_is(f'{person}_sex', '4')})"
    for person in ("applicant", "co_applicant")
}
_ALONE = f"({_is('co_applicant_ethnicity_1', '5')} AND {_is('co_applicant_race_1', '8')} AND "
_ALONE += f"{_is('co_applicant_sex', '5')})"
_DENIED, _CLOSED = ("3", "7"), ("4", "5", "6")
_NOT_ORIGINATED = ("2", "3", "4", "5", "7", "8")


def _five(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}_{i}" for i in range(1, 6))


def of_application() -> Iterator[Edit]:
    """Edits of the application itself."""
    applied, acted, action = _date("application_date"), _date("action_taken_date"), "action_taken"
    for number in ("S305", "S306"):
        words = "no row stands twice" if number == "S305" else "no originated loan has the identifier of another"
        yield Edit(number, words, f"source_row IN (SELECT source_row FROM {REPEATED} WHERE number = '{number}')")
    yield Edit(
        "V608",
        "the loan's identifier has 1 to 45 letters and digits",
        f"NOT {_digits('uli', '[0-9A-Za-z]{1,45}')}",
    )
    yield Edit(
        "V609",
        "the two check digits of a universal identifier are right",
        f"length(b_uli) > {_OWN_IDENTIFIER} AND CASE WHEN {_digits('uli', '[0-9A-Za-z]{1,45}')} "
        f"THEN {_remainder('uli')} <> 1 ELSE true END",
    )
    yield Edit(
        "V610-1", "the application date is a date, or NA", f"{_not('application_date', 'NA')} AND {applied} IS NULL"
    )
    yield Edit(
        "V610-2",
        "the application date is NA of purchased loans alone",
        _one_alone(_is("application_date", "NA"), _is(action, "6")),
    )
    yield _one_of("V611", "loan_type", *"1234")
    yield _one_of("V612-1", "loan_purpose", "1", "2", "31", "32", "4", "5")
    yield Edit(
        "V612-2", "a preapproval is for a purchase", f"{_is('preapproval', '1')} AND {_not('loan_purpose', '1')}"
    )
    yield _one_of("V613-1", "preapproval", "1", "2")
    yield Edit(
        "V613-2", "actions 7 and 8 are of preapprovals", f"{_is(action, '7', '8')} AND {_not('preapproval', '1')}"
    )
    yield Edit(
        "V613-3",
        "actions 3 to 6 are of no preapproval",
        f"{_is(action, '3', '4', '5', '6')} AND {_not('preapproval', '2')}",
    )
    yield Edit(
        "V613-4",
        "a preapproval has action 1, 2, 7 or 8",
        f"{_is('preapproval', '1')} AND {_not(action, '1', '2', '7', '8')}",
    )
    other = f"{_is('loan_purpose', '2', '4', '31', '32', '5')} OR {_UNITS} OR {_is('reverse_mortgage', '1')} OR {_is('open_end_line_of_credit', '1')}"  # noqa: E501
    yield Edit(
        "V614",
        "no preapproval for another purpose, of multifamily, reverse or open-end loans",
        f"({other}) AND {_not('preapproval', '2')}",
    )
    yield _one_of("V615-1", "construction_method", "1", "2")
    land, home = "manufactured_home_land_property_interest", "manufactured_home_secured_property_type"
    yield Edit(
        "V615-2",
        "land interest 1 to 4 is of manufactured homes",
        f"{_is(land, *'1234')} AND {_not('construction_method', '2')}",
    )
    yield Edit(
        "V615-3",
        "secured property 1 and 2 is of manufactured homes",
        f"{_is(home, '1', '2')} AND {_not('construction_method', '2')}",
    )
    yield _one_of("V616", "occupancy_type", *"123")
    yield Edit("V617", "the loan amount is a number above 0", f"NOT {_number('loan_amount', '> 0')}")
    yield _one_of("V618", action, *"12345678")
    yield Edit("V619-1", "the action date is a date", f"{acted} IS NULL")
    yield Edit(
        "V619-2",
        "the action date is in the year of the filing",
        f"{acted} IS NOT NULL AND left(action_taken_date, 4) <> filing_year",
    )
    yield Edit("V619-3", "the action is not before the application", f"coalesce({acted} < {applied}, false)")
    yield Edit("V623", "the state is two letters, or NA", _not("state_code", *STATES, "NA"))
    yield Edit(
        "V625-1",
        "the tract is eleven digits, or NA",
        f"{_not('census_tract', 'NA')} AND NOT {_digits('census_tract', '[0-9]{11}')}",
    )
    yield Edit(
        "V626",
        "the county is five digits, or NA",
        f"{_not('county_code', 'NA')} AND NOT {_digits('county_code', '[0-9]{5}')}",
    )
    yield Edit(
        "V627",
        "the tract is of the county",
        f"{_not('county_code', 'NA')} AND {_not('census_tract', 'NA')} AND left(b_census_tract, 5) <> b_county_code",
    )

    of_state = " ".join(f"WHEN '{letters}' THEN '{digits}'" for letters, digits in FIPS_OF_STATE.items())
    yield Edit(
        "V716",
        "the county is of the state, from 2020",
        f"{_YEAR} >= '2020' AND {_not('county_code', 'NA')} AND {_not('state_code', 'NA')} "
        f"AND left(b_county_code, 2) <> coalesce(CASE b_state_code {of_state} END, '')",
    )


def of_addresses() -> Iterator[Edit]:
    """Edits of the address and of the loan's originator."""
    address, named = ("street_address", "city", "zip_code"), ("city", "state_code", "zip_code")
    yield Edit("V620", "the street is not blank", _is("street_address", ""))
    yield Edit("V621", "the city is not blank", _is("city", ""))
    yield Edit(
        "V622",
        "beside a street are a city, a state and a ZIP code",
        f"{_none('street_address')} AND {_any(named, 'NA')}",
    )
    yield Edit(
        "V624",
        "the ZIP code is 12345, 12345-1010, NA or Exempt",
        f"{_none('zip_code')} AND NOT {_digits('zip_code', '[0-9]{5}(-[0-9]{4})?')}",
    )
    yield Edit(
        "V709",
        "street, city and ZIP code are exempt together",
        f"{_any(address, 'Exempt')} AND NOT ({' AND '.join(_is(name, 'Exempt') for name in address)})",
    )
    originator = "nmlsr_identifier"
    yield Edit(
        "V695", "the originator's number is not blank, up to 2020", f"{_YEAR} <= '2020' AND {_is(originator, '')}"
    )
    yield Edit(
        "V695-1",
        "the originator's number is whole, NA or Exempt, from 2021",
        f"{_YEAR} >= '2021' AND {_none(originator)} AND NOT {_digits(originator, '[0-9]+')}",
    )
    yield Edit(
        "V695-2", "the originator's number is not 0, from 2021", f"{_YEAR} >= '2021' AND {_digits(originator, '0+')}"
    )
    size = f"({_YEAR} = '2025' AND {_digits(originator, '[0-9]{4,12}')}) OR (length(b_{originator}) <= 7 AND "
    size += f"{_digits(originator, '[0-9]{4,7}')} AND TRY_CAST({originator} AS BIGINT) <= 3000000)"
    yield Edit(
        "V695-3",
        "the originator's number has four to twelve digits in 2025, later four to seven, up to 3,000,000",
        f"{_YEAR} >= '2025' AND {_none(originator)} AND NOT ({size})",
    )


def of_people() -> Iterator[Edit]:
    """Edits of the people."""
    numbers = {
        "applicant": ("V628", "V629", "V630", "V635", "V636", "V637", "V642", "V643", "V644", "V645", "V651"),
        "co_applicant": ("V631", "V632", "V633", "V638", "V639", "V640", "V646", "V647", "V648", "V649", "V652"),
    }
    for person, of in numbers.items():
        is_other, word = person == "co_applicant", person.replace("_", "-")
        ethnicities, races = _five(f"{person}_ethnicity"), _five(f"{person}_race")
        observed = {what: f"{person}_{what}_observed" for what in ("ethnicity", "race", "sex")}
        sexes = f"{person}_sex"
        texts = _filled(*(f"{person}_race_{kind}_text" for kind in ("native", "asian", "islander")))
        none = ("3", "4", "5") if is_other else ("3", "4")
        free_ethnicity = f"{_is(ethnicities[0], '')} AND {_filled(f'{person}_ethnicity_text')}"
        yield Edit(
            f"{of[0]}-1",
            f"{word}'s ethnicity 1 is a code, or free text tells it",
            f"{_not(ethnicities[0], *_ETHNICITIES, *none)} AND NOT ({free_ethnicity})",
        )
        yield Edit(
            f"{of[0]}-2",
            f"{word}'s ethnicities 2 to 5 are codes of ethnicities, or blank",
            " OR ".join(_not(name, *_ETHNICITIES, "") for name in ethnicities[1:]),
        )
        yield Edit(f"{of[0]}-3", f"each of the {word}'s ethnicities stands once", _twice(ethnicities))
        yield Edit(
            f"{of[0]}-4",
            f"no ethnicity of the {word} beside one that is not given",
            f"{_is(ethnicities[0], *none)} AND {_filled(*ethnicities[1:])}",
        )
        yield _one_of(f"{of[1]}-1", observed["ethnicity"], *"1234"[: 4 if is_other else 3])
        yield Edit(
            f"{of[1]}-2",
            f"{word}'s ethnicity by sight is 1 or 2",
            f"{_is(observed['ethnicity'], '1')} AND ({_not(ethnicities[0], '1', '2')} "
            f"OR {_not(ethnicities[1], '1', '2', '')} OR {_filled(*ethnicities[2:])})",
        )
        yield Edit(
            f"{of[1]}-3",
            f"{word}'s ethnicity that was told is a code, 3, or free text",
            f"{_is(observed['ethnicity'], '2')} AND {_not(ethnicities[0], *_ETHNICITIES, '3')} "
            f"AND NOT ({free_ethnicity})",
        )
        yield Edit(
            of[2],
            f"{word}'s ethnicity 4 was not noted by sight",
            f"{_is(ethnicities[0], '4')} AND {_not(observed['ethnicity'], '3')}",
        )
        nobody = ("6", "7", "8") if is_other else ("6", "7")
        free = f"{_is(races[0], '')} AND {texts}"
        further = " OR ".join(_not(name, *_RACES, "") for name in races[1:])
        yield Edit(
            f"{of[3]}-1",
            f"{word}'s race 1 is a code, or free text tells it",
            f"{_not(races[0], *_RACES, *nobody)} AND NOT ({free})",
        )
        yield Edit(
            f"{of[3]}-2",
            f"{word}'s races 2 to 5 are codes of races, or blank",
            further,
        )
        yield Edit(f"{of[3]}-3", f"each of the {word}'s races stands once", _twice(races))
        yield Edit(
            f"{of[3]}-4",
            f"no race of the {word} beside one that is not given",
            f"{_is(races[0], *nobody)} AND {_filled(*races[1:])}",
        )
        yield _one_of(f"{of[4]}-1", observed["race"], *"1234"[: 4 if is_other else 3])
        by_sight = " OR ".join([_not(races[0], *"12345"), *(_not(name, *"12345", "") for name in races[1:])])
        yield Edit(f"{of[4]}-2", f"{word}'s race by sight is 1 to 5", f"{_is(observed['race'], '1')} AND ({by_sight})")
        yield Edit(
            f"{of[4]}-3",
            f"{word}'s races that were told are codes, 6, or free text",
            f"{_is(observed['race'], '2')} AND ({_not(races[0], *_RACES, '6')} AND NOT ({free}) OR {further})",
        )
        yield Edit(
            of[5], f"{word}'s race 7 was not noted by sight", f"{_is(races[0], '7')} AND {_not(observed['race'], '3')}"
        )
        yield _one_of(f"{of[6]}-1", sexes, *(*"1234", *(("5",) if is_other else ()), "6"))
        yield _one_of(f"{of[6]}-2", observed["sex"], *"1234"[: 4 if is_other else 3])
        yield Edit(
            of[7], f"{word}'s sex by sight is 1 or 2", f"{_is(observed['sex'], '1')} AND {_not(sexes, '1', '2')}"
        )
        yield Edit(
            f"{of[8]}-1",
            f"{word}'s sex that was told is 1, 2, 3 or 6",
            f"{_is(observed['sex'], '2')} AND {_not(sexes, '1', '2', '3', '6')}",
        )
        yield Edit(f"{of[8]}-2", f"{word}'s sex 6 was told", f"{_is(sexes, '6')} AND {_not(observed['sex'], '2', '3')}")
        yield Edit(
            of[9], f"{word}'s sex 4 was not noted by sight", f"{_is(sexes, '4')} AND {_not(observed['sex'], '3')}"
        )
        age = f"{person}_age_filed"
        yield Edit(
            f"{of[10]}-1",
            f"{word}'s age is a whole number above 0",
            f"NOT ({_digits(age, '[0-9]{1,4}')} AND {_number(age, '> 0')})",
        )
        yield Edit(
            f"{of[10]}-2",
            f"{word}'s age is 8888 of a company",
            f"NOT ({_LIVING[person]}) AND {_not('action_taken', '6')} AND {_not(age, '8888')}",
        )
    co, together = "co_applicant", (("V634", "ethnicity", "5"), ("V641", "race", "8"), ("V650", "sex", "5"))
    for number, what, code in together:
        column = f"{co}_{what}" if what == "sex" else f"{co}_{what}_1"
        words = f"no co-applicant in {what} and in how it was noted alike"
        yield Edit(number, words, _one_alone(_is(column, code), _is(f"{co}_{what}_observed", "4")))


def of_money() -> Iterator[Edit]:
    """Edits of the money."""
    action, company = "action_taken", " OR ".join(f"NOT ({living})" for living in _LIVING.values())
    yield Edit(
        "V654-1",
        "income is a whole number, or NA",
        f"{_not('income', 'NA')} AND NOT {_digits('income', '-?[0-9]+')}",
    )
    yield Edit("V654-2", "no income of multifamily loans", f"{_UNITS} AND {_not('income', 'NA')}")
    yield Edit("V655", "no income of companies", f"({company}) AND {_not(action, '6')} AND {_not('income', 'NA')}")
    yield _one_of("V656-1", "purchaser_type", *"0123456", "71", "72", "8", "9")
    yield Edit(
        "V656-2",
        "loans that were not made have no purchaser",
        f"{_is(action, *_NOT_ORIGINATED)} AND {_not('purchaser_type', '0')}",
    )
    yield Edit(
        "V657-1",
        "the rate spread is a number, NA or Exempt",
        f"{_none('rate_spread')} AND NOT {_number('rate_spread')}",
    )
    yield Edit(
        "V657-2",
        "no rate spread of actions 3 to 7",
        f"{_is(action, '3', '4', '5', '6', '7')} AND {_none('rate_spread')}",
    )
    yield Edit(
        "V657-3", "no rate spread of reverse mortgages", f"{_is('reverse_mortgage', '1')} AND {_none('rate_spread')}"
    )
    yield _one_of("V658-1", "hoepa_status", *"123")
    yield Edit(
        "V658-2",
        "HOEPA status of loans that were not made is 3",
        f"{_is(action, *_NOT_ORIGINATED)} AND {_not('hoepa_status', '3')}",
    )
    yield _one_of("V659", "lien_status", "1", "2")
    costs = {
        "V672": (
            "total_loan_costs",
            ">= 0",
            ("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose"),
        ),
        "V673": ("total_points_and_fees", ">= 0", ("reverse_mortgage", "business_or_commercial_purpose")),
        "V674": (
            "origination_charges",
            ">= 0",
            ("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose"),
        ),
        "V675": (
            "discount_points",
            "> 0",
            ("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose"),
        ),
        "V676": (
            "lender_credits",
            "> 0",
            ("reverse_mortgage", "open_end_line_of_credit", "business_or_commercial_purpose"),
        ),
    }
    for number, (name, least, loans) in costs.items():
        word, blank = name.replace("_", " "), name in ("discount_points", "lender_credits")
        filed = f"{_none(name)} AND {_filled(name)}" if blank else _none(name)
        actions = (*_NOT_ORIGINATED, "6") if number == "V673" else _NOT_ORIGINATED
        yield Edit(
            f"{number}-1",
            f"{word} are a number {least}, NA or Exempt{', or blank' if blank else ''}",
            f"{filed} AND NOT {_number(name, least)}",
        )
        yield Edit(
            f"{number}-2",
            f"no {word} of reverse, open-end or business loans: NA or Exempt",
            f"{_any(loans, '1')} AND {_none(name)}",
        )
        yield Edit(
            f"{number}-3",
            f"no {word} of loans that were not made: NA or Exempt",
            f"{_is(action, *actions)} AND {_none(name)}",
        )
    yield Edit(
        "V677-1",
        "the interest rate is a number above 0, NA or Exempt",
        f"{_none('interest_rate')} AND NOT {_number('interest_rate', '> 0')}",
    )
    yield Edit(
        "V677-2",
        "no interest rate of actions 3, 4, 5 and 7",
        f"{_is(action, '3', '4', '5', '7')} AND {_none('interest_rate')}",
    )
    penalty = "prepayment_penalty_term"
    yield Edit(
        "V678-1",
        "the prepayment penalty's term is a number above 0, NA or Exempt",
        f"{_none(penalty)} AND NOT {_number(penalty, '> 0')}",
    )
    yield Edit(
        "V678-2",
        "no prepayment penalty of purchased, reverse or business loans",
        f"({_is(action, '6')} OR {_any(('reverse_mortgage', 'business_or_commercial_purpose'), '1')}) "
        f"AND {_none(penalty)}",
    )
    yield Edit(
        "V678-5",
        "the prepayment penalty's term is at most that of the loan",
        f"coalesce(n_{penalty} > n_loan_term, false)",
    )
    ratio, cltv = "debt_to_income_filed", "combined_loan_to_value_ratio"
    yield Edit(
        "V679-1", "the debt-to-income ratio is a number, NA or Exempt", f"{_none(ratio)} AND NOT {_number(ratio)}"
    )
    yield Edit("V679-2", "no debt-to-income ratio of actions 4 to 6", f"{_is(action, *_CLOSED)} AND {_none(ratio)}")
    yield Edit("V679-3", "no debt-to-income ratio of multifamily loans", f"{_UNITS} AND {_none(ratio)}")
    companies = f"NOT ({_LIVING['applicant']}) AND ({_ALONE} OR NOT ({_LIVING['co_applicant']}))"
    yield Edit("V680", "no debt-to-income ratio of companies", f"{companies} AND {_none(ratio)}")
    yield Edit(
        "V681-1",
        "the loan-to-value ratio is a number above 0, NA or Exempt",
        f"{_none(cltv)} AND NOT {_number(cltv, '> 0')}",
    )
    yield Edit("V681-2", "no loan-to-value ratio of actions 4 to 6", f"{_is(action, *_CLOSED)} AND {_none(cltv)}")
    yield Edit(
        "V682-1",
        "the loan's term is a number above 0, NA or Exempt",
        f"{_none('loan_term')} AND NOT {_number('loan_term', '> 0')}",
    )
    yield Edit("V682-2", "no term of reverse mortgages", f"{_is('reverse_mortgage', '1')} AND {_none('loan_term')}")
    yield Edit(
        "V683",
        "the introductory period is a number above 0, NA or Exempt",
        f"{_none('intro_rate_period')} AND NOT {_number('intro_rate_period', '> 0')}",
    )
    yield Edit(
        "V712",
        "loan costs and points and fees are Exempt together",
        _one_alone(_is("total_loan_costs", "Exempt"), _is("total_points_and_fees", "Exempt")),
    )


def of_scores() -> Iterator[Edit]:
    """Edits of the scores."""
    action = "action_taken"
    for person, of in {
        "applicant": ("V660", "V661", "V662", "V663", "V668-1"),
        "co_applicant": ("V665", "V666", "V667", "V664", "V668-2"),
    }.items():
        score, model, text = (f"{person}_credit_score_{what}" for what in ("filed", "type", "text"))
        word, is_other = person.replace("_", "-"), person == "co_applicant"
        models = (*_SCORE_MODELS, "10") if is_other else _SCORE_MODELS
        yield Edit(f"{of[0]}-1", f"{word}'s credit score is a number", f"NOT {_digits(score, '[0-9]+')}")
        yield _one_of(f"{of[0]}-2", model, *models)
        yield Edit(
            f"{of[1]}-1",
            f"{word}'s score 8888 and model 9 stand together",
            _one_alone(_is(score, "8888"), _is(model, "9")),
        )
        if is_other:
            yield Edit(
                "V666-2",
                "co-applicant's score 9999 and model 10 stand together",
                _one_alone(_is(score, "9999"), _is(model, "10")),
            )
        yield Edit(of[2], f"{word}'s model 8 is named, and no other", _one_alone(_is(model, "8"), _filled(text)))
        # the guides name 8888 alone; nobody has the score of a co-applicant who is not there
        none = ("8888", "1111", "9999") if is_other else ("8888", "1111")
        no_model = ("9", "1111", "10") if is_other else ("9", "1111")
        yield Edit(
            of[3],
            f"no credit score of the {word} in actions 4 to 6",
            f"{_is(action, *_CLOSED)} AND ({_not(score, *none)} OR {_not(model, *no_model)} OR {_filled(text)})",
        )
        yield Edit(
            of[4],
            f"no credit score where the {word} is a company",
            f"NOT ({_LIVING[person]}) AND {_not(score, '8888', '1111')}",
        )
    exempt = (
        "applicant_credit_score_filed",
        "co_applicant_credit_score_filed",
        "applicant_credit_score_type",
        "co_applicant_credit_score_type",
    )
    yield Edit(
        "V710",
        "credit scores and models are exempt together",
        f"{_any(exempt, '1111')} AND NOT ({' AND '.join(_is(name, '1111') for name in exempt)})",
    )


def of_reasons() -> Iterator[Edit]:
    """Edits of the reasons."""
    action, first = "action_taken", "denial_reason_1"
    further = ("denial_reason_2", "denial_reason_3", "denial_reason_4")
    yield _one_of("V669-1", first, *_REASONS, "10", "1111")
    yield Edit(
        "V669-2",
        "denial reasons 2 to 4 are 1 to 9, or blank",
        " OR ".join(_not(name, *_REASONS, "") for name in further),
    )
    yield Edit("V669-3", "each reason of a denial stands once", _twice((first, *further)))
    yield Edit("V669-4", "no reason beside 10 or 1111", f"{_is(first, '10', '1111')} AND {_filled(*further)}")
    yield Edit(
        "V711",
        "no reason and no text of one beside 1111",
        f"{_is(first, '1111')} AND {_filled(*further, 'denial_reason_text')}",
    )
    yield Edit("V670-1", "a denial has a reason", f"{_is(action, *_DENIED)} AND {_not(first, *_REASONS, '1111')}")
    yield Edit("V670-2", "a reason is of a denial", f"{_is(first, *_REASONS)} AND {_not(action, *_DENIED)}")
    yield Edit(
        "V670-3",
        "the reason of other actions is 10 or 1111",
        f"{_is(action, '1', '2', '4', '5', '6', '8')} AND {_not(first, '10', '1111')}",
    )
    yield Edit(
        "V670-4",
        "reason 10 is of an action that is no denial",
        f"{_is(first, '10')} AND {_not(action, '1', '2', '4', '5', '6', '8')}",
    )
    yield Edit(
        "V671",
        "reason 9 is told, and no other",
        _one_alone(_any((first, *further), "9"), _filled("denial_reason_text")),
    )


def of_property() -> Iterator[Edit]:
    """Edits of the property."""
    action = "action_taken"
    for number, name in (
        ("V684", "balloon_payment"),
        ("V685", "interest_only_payment"),
        ("V686", "negative_amortization"),
        ("V687", "other_nonamortizing_features"),
    ):
        yield _one_of(number, name, *_YES_NO)
    yield Edit(
        "V688-1",
        "the property's value is a number above 0, NA or Exempt",
        f"{_none('property_value')} AND NOT {_number('property_value', '> 0')}",
    )
    yield Edit(
        "V688-2",
        "no value of the property in actions 4 and 5",
        f"{_is(action, '4', '5')} AND {_none('property_value')}",
    )
    home, land = "manufactured_home_secured_property_type", "manufactured_home_land_property_interest"
    yield _one_of("V689-1", home, *"123", "1111")
    yield Edit(
        "V689-2",
        "no secured property of other homes",
        f"({_UNITS} OR {_is('construction_method', '1')}) AND {_not(home, '3', '1111')}",
    )
    yield _one_of("V690-1", land, *"12345", "1111")
    yield Edit(
        "V690-2",
        "no land interest of other homes",
        f"({_UNITS} OR {_is('construction_method', '1')}) AND {_not(land, '5', '1111')}",
    )
    units = "total_units_filed"
    yield Edit(
        "V691",
        "the number of units is whole and above 0",
        f"NOT ({_digits(units, '[0-9]+')} AND {_number(units, '> 0')})",
    )
    affordable = "multifamily_units_filed"
    yield Edit(
        "V692-1",
        "affordable units are a number, NA or Exempt",
        f"{_none(affordable)} AND NOT {_digits(affordable, '[0-9]+')}",
    )
    yield Edit("V692-2", "no affordable units of fewer than five", f"{_number(units, '< 5')} AND {_none(affordable)}")
    yield Edit(
        "V692-3",
        "affordable units are at most all",
        f"{_UNITS} AND coalesce(n_{affordable} > n_{units}, false)",
    )
    sent, payable = "submission_of_application", "initially_payable_to_institution"
    yield _one_of("V693-1", sent, *"123", "1111")
    yield Edit(
        "V693-2",
        "submission 3 is of purchased loans alone",
        f"{_not(sent, '1111')} AND ({_one_alone(_is(sent, '3'), _is(action, '6'))})",
    )
    yield _one_of("V694-1", payable, *"123", "1111")
    yield Edit("V694-2", "purchased loans are payable 3", f"{_is(action, '6')} AND {_not(payable, '3', '1111')}")
    yield Edit(
        "V694-3", "originated loans are payable 1 or 2", f"{_is(action, '1')} AND {_not(payable, '1', '2', '1111')}"
    )
    yield Edit(
        "V714", "both parts of the channel are exempt together", _one_alone(_is(sent, "1111"), _is(payable, "1111"))
    )
    features = ("balloon_payment", "interest_only_payment", "negative_amortization", "other_nonamortizing_features")
    yield Edit(
        "V715",
        "the features of the loan are exempt together",
        f"{_any(features, '1111')} AND NOT ({' AND '.join(_is(name, '1111') for name in features)})",
    )
    for number, name in (
        ("V706", "reverse_mortgage"),
        ("V707", "open_end_line_of_credit"),
        ("V708", "business_or_commercial_purpose"),
    ):
        yield _one_of(number, name, *_YES_NO)


def of_systems() -> Iterator[Edit]:
    """Edits of the systems."""
    action, systems, results = "action_taken", _five("aus"), _five("aus_result")
    rest = (*systems[1:], *results[1:])
    yield Edit(
        "V696-1",
        "underwriting systems are codes",
        " OR ".join([_not(systems[0], *_AUS, "6", "1111"), *(_not(name, *_AUS, "") for name in systems[1:])]),
    )
    yield Edit(
        "V696-2",
        "results of underwriting systems are codes",
        " OR ".join([_not(results[0], *_RESULTS, "1111"), *(_not(name, *_RESULTS, "") for name in results[1:])]),
    )
    counts = (" + ".join(f"CAST(b_{name} <> '' AS INTEGER)" for name in names) for names in (systems, results))
    yield Edit("V696-3", "as many results as underwriting systems", " <> ".join(f"({count})" for count in counts))
    further = [
        f"{_is(system, '5')} AND {_not(result, *(code for code in _RESULTS if code != '17'))}"
        for system, result in zip(systems, results, strict=True)
    ]
    yield Edit("V699", "another system has a result", " OR ".join(f"({other})" for other in further))
    yield Edit(
        "V700-1",
        "without a system the result is 17, and nothing beside it",
        f"{_is(systems[0], '6')} AND ({_not(results[0], '17')} OR {_filled(*rest)})",
    )
    yield Edit(
        "V700-2",
        "result 17 is without a system, and nothing beside it",
        f"{_is(results[0], '17')} AND ({_not(systems[0], '6')} OR {_filled(*rest)})",
    )
    pairs = zip(systems[1:], results[1:], strict=True)
    yield Edit(
        "V701",
        "no result without its system",
        " OR ".join(f"({_is(system, '')} AND {_filled(result)})" for system, result in pairs),
    )
    yield Edit("V702", "system 5 is named, and no other", _one_alone(_any(systems, "5"), _filled("aus_text")))
    yield Edit("V703", "result 16 is told, and no other", _one_alone(_any(results, "16"), _filled("aus_result_text")))
    yield Edit(
        "V704",
        "purchased loans have no underwriting system",
        f"{_is(action, '6')} AND ({_not(systems[0], '6', '1111')} OR {_not(results[0], '17', '1111')})",
    )
    yield Edit(
        "V713",
        "systems and results are exempt together",
        f"{_is(systems[0], '1111')} AND ({_not(results[0], '1111')} "
        f"OR {_filled(*rest, 'aus_text', 'aus_result_text')})",
    )


EDITS: Final = (
    *of_application(),
    *of_addresses(),
    *of_people(),
    *of_money(),
    *of_scores(),
    *of_reasons(),
    *of_property(),
    *of_systems(),
)
"""In the order of the fields."""
