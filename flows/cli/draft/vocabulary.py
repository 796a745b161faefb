"""Words by which columns and values are told apart: decisions, protected attributes, codes, what a decision brings."""

import re
from typing import Final

from schemas import blocks

MISSING: Final = ("", "NA", "N/A", "n/a", "?", "NULL", "null", "NaN", "nan")
"""Texts that mean a missing value in tables of many origins."""

DECISION: Final = (
    *("action_taken", "decision", "approve", "approved", "approval", "denied", "deny", "denial", "accepted"),
    *("rejected", "granted", "admitted", "hired", "recid", "loan_status", "credit_risk", "creditability", "default"),
    *("defaulted", "outcome", "target", "label", "kredit", "charged_off", "repaid", "loan_paid"),
)
"""Names of decisions and outcomes, the surest first: each of their words has to be in the name of the column."""
HINT: Final = ("status", "result", "class", "event", "good", "bad", "paid", "y", "risk", "application")
"""Words that a name of a decision may have, and those of other columns too."""
AGAINST: Final = (
    "denied",
    "deny",
    "denial",
    "default",
    "defaulted",
    "reject",
    "rejected",
    "recid",
    "bad",
    "charged_off",
)
"""Words of a flag of the unfavourable outcome."""
FOR: Final = ("approve", "approved", "approval", "accepted", "granted", "admitted", "hired", "repaid", "paid", "good")
GOOD: Final = ("approved", "approve", "accepted", "accept", "granted", "good", "paid", "fully paid", "originated")
BAD: Final = (
    *("denied", "deny", "denial", "rejected", "reject", "refused", "refuse", "declined", "decline", "turned down"),
    *("not approved", "unapproved", "not accepted", "not granted", "bad", "default", "defaulted", "charged off"),
)
"""Plain words of a decision for and against the applicant; one of many words is one by the verbs below."""
_DENIES: Final = re.compile(r"\b(denied|rejected|refused|declined|turned down)\b")
_NO_DECISION: Final = re.compile(
    r"\b(withdr[ae]wn?|withdrawal|cancel+ed|cancel+ation|incomplete(?:ness)?|purchased|pending|open|expired|abandoned|"
    r"counter[ -]?offer(?:ed)?|in (?:process|progress|review)|under review|submitted|received|suspended|duplicate|test|"
    r"approved but|preapproval|by applicant|by borrower)\b"
)
"""What ends an application, or keeps it open, without a decision of the lender."""
YES, NO = ("1", "yes", "true", "y", "t"), ("0", "no", "false", "n", "f")

_PROTECTED: Final = {
    "race": ("race", "raza", "ethnic_group"),
    "ethnicity": ("ethnicity", "ethnic", "hispanic"),
    "sex": ("sex", "gender", "geschlecht", "sexe", "sexo", "genero", "famges", "personal_status"),
    "marital status": ("marital", "married", "marriage", "familienstand"),
    "origin": ("nationality", "foreign", "gastarb", "citizenship", "national_origin", "immigrant"),
    "religion": ("religion",),
    "disability": ("disability", "disabled"),
    "age": ("age", "alter", "edad", "dob", "birth", "birthdate", "age_cat"),
}
"""What a protected attribute is about, and the words by which a column names it; the first are drafted first."""
_STEMS: Final = {
    "race": re.compile(r"race(?!way)|racial"),
    "ethnicity": re.compile(r"ethni|hispan"),
    "sex": re.compile(r"sex|gender"),
    "marital status": re.compile(r"marital|married"),
    "origin": re.compile(r"nationalit|foreign"),
    "religion": re.compile(r"religi"),
    "age": re.compile(r"age(?:lt|gt|le|ge)?\d+$|agegroup|agecat|ageband"),
}
"""Beginnings of words that name one, as in agelt62 and genderid."""
_AFTER: Final = (
    *("interest_rate", "rate_spread", "apr", "denial_reason", "reason_denied", "reject_reason", "purchaser"),
    *("origination_charge", "origination_charges", "loan_costs", "points_and_fees", "discount_points"),
    *("lender_credits", "hoepa", "funded", "disbursed", "recoveries", "collection", "total_pymnt", "last_pymnt"),
    *("event", "out_prncp", "chargeoff", "adverse_action", "appeal", "denial_code"),
)
"""Words of what exists only after a decision."""
_IDENTIFIER: Final = (
    "id",
    "ids",
    "uuid",
    "guid",
    "key",
    "rowid",
    "index",
    "lei",
    "ssn",
    "account_number",
    "case_number",
)
_PLACE: Final = (
    *("county", "tract", "zip", "zipcode", "postcode", "postal", "msa", "fips", "latitude", "longitude", "lat", "lon"),
    *("address", "street", "city", "state_code", "region_code"),
)
_DATE: Final = ("date", "datetime", "timestamp")
_YEAR: Final = ("activity_year", "as_of_year", "decision_year", "application_year", "year")

_NOBODY: Final = re.compile(
    r"not (?:available|provided|applicable|reported|known|given|stated|disclosed|specified)|unknown|missing|free form|"
    r"information not|prefer not|declin(?:e|ed) to|refused|no answer|joint|exempt|^n/?a$|^none$|^\?*$",
    re.IGNORECASE,
)
"""Values of a protected attribute that are no group of people."""
_REST: Final = ("other", "others", "other race")
"""Groups of people that others can hardly be compared with."""


def folded(value: str) -> str:
    """A value without what spellings differ by: case, blanks, a final dot, and the decimals of a whole number."""
    text = " ".join(value.casefold().split()).rstrip(".").rstrip()
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text)


def is_no_decision(value: str) -> bool:
    """Whether a value says that the lender did not decide: withdrawn, incomplete, purchased and the like."""
    return _NO_DECISION.search(folded(value)) is not None


def is_denial(value: str) -> bool:
    """Whether a value is a plain word of denial."""
    text = folded(value)
    return text in BAD or (_DENIES.search(text) is not None and not is_no_decision(value))


def words(name: str) -> list[str]:
    """The words of a column's name: applicantRace-1 is applicant, race, 1."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]


def says(name: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a name, one after the other."""
    whole, part = words(name), phrase.split("_")
    return any(whole[i : i + len(part)] == part for i in range(len(whole)))


def rank(name: str, phrases: tuple[str, ...]) -> int | None:
    """Position of the first phrase that a name says; None without any."""
    return next((i for i, phrase in enumerate(phrases) if says(name, phrase)), None)


def protected_kind(name: str) -> str:
    """What protected attribute a column names; empty where none."""
    named = (kind for kind, phrases in _PROTECTED.items() if rank(name, phrases) is not None)
    joined = (kind for kind, stem in _STEMS.items() if any(stem.match(word) for word in words(name)))
    return next(named, "") or next(joined, "") or (blocks.kind_of(name) if blocks.is_personal(name) else "")


def kinds() -> list[str]:
    """The kinds of protected attributes, those first that are drafted first."""
    return list(_PROTECTED)


def is_after(name: str) -> bool:
    """Whether a column's name says that it is filled by the decision or after it."""
    return blocks.set_by_decision(name) or rank(name, _AFTER) is not None


def is_outcome(name: str) -> bool:
    """Whether a column's name is that of a decision or an outcome."""
    return rank(name, DECISION) is not None


def is_identifier(name: str) -> bool:
    """Whether a column's name is that of an identifier."""
    return rank(name, _IDENTIFIER) is not None


def is_place(name: str) -> bool:
    """Whether a column's name is that of a place, whose numbers are codes."""
    return rank(name, _PLACE) is not None


def is_date(name: str) -> bool:
    """Whether a column's name is that of a day."""
    return rank(name, _DATE) is not None


def is_year(name: str) -> bool:
    """Whether a column's name is that of the year of the decisions."""
    return "_".join(words(name)) in _YEAR


def is_nobody(group: str) -> bool:
    """Whether a value of a protected attribute is no group of people."""
    return bool(_NOBODY.search(group.strip()))


def is_rest(group: str) -> bool:
    """Whether a group is what is left of the others, and so no reference for them."""
    return group.strip().casefold() in _REST
