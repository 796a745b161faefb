"""Race, ethnicity and sex of an application, of applicant and co-applicant together, as SQL over the codes as filed.

Files of 2018 and later, and the three-year file of 2017, carry them as published. For the others they are derived by
the rules of the publisher (CFPB, derived data fields of the public register), which were checked against a file that
has both.
"""

from tasks.ingest.hmda.canonical.cells import listed, literal, quoted

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


def race(modern: bool = True) -> str:
    """One race, minority before White; Joint where one of the two is White and the other of a minority.

    Whose first race is blank wrote free text only, which is possible from 2018. A White applicant whose co-applicant
    did so is Joint; before, a blank co-applicant makes nobody Joint.
    """
    own, other = _said("applicant_race"), _said("co_applicant_race")
    first, other_first = quoted("applicant_race_1_raw"), quoted("co_applicant_race_1_raw")
    free_text = f"{other_first} IS NULL" if modern else "false"
    minority = [f"list_has_any({own}, {listed(codes)})" for codes in _MINORITIES.values()]
    several = " + ".join(f"CAST({has} AS INTEGER)" for has in minority)
    every = [code for codes in _MINORITIES.values() for code in codes]
    other_minority, other_white = f"list_has_any({other}, {listed(every)})", f"list_contains({other}, '{_WHITE}')"
    single = " ".join(f"WHEN {has} THEN {literal(name)}" for has, name in zip(minority, _MINORITIES, strict=True))
    return (
        f"CASE WHEN {first} IS NULL THEN {_blank(modern, 'Race')} WHEN {first} IN ('6', '7') THEN 'Race Not Available' "
        f"WHEN list_has_any({own}, {listed(every)}) AND {other_white} THEN 'Joint' "
        f"WHEN {several} > 1 THEN '2 or more minority races' {single} "
        f"WHEN {other_minority} OR {free_text} THEN 'Joint' ELSE 'White' END"
    )


def ethnicity(modern: bool = True) -> str:
    """Joint where both answers were given, by the two or by one of them."""
    own, other = _said("applicant_ethnicity"), _said("co_applicant_ethnicity")
    first, hispanic = quoted("applicant_ethnicity_1_raw"), listed(_HISPANIC)
    mine, others = f"list_has_any({own}, {hispanic})", f"list_has_any({other}, {hispanic})"
    not_mine, not_others = (f"list_contains({who}, '{_NOT_HISPANIC}')" for who in (own, other))
    return (
        f"CASE WHEN {first} IS NULL THEN {_blank(modern, 'Ethnicity')} "
        f"WHEN {first} IN ('3', '4') THEN 'Ethnicity Not Available' "
        f"WHEN {mine} AND ({not_mine} OR {not_others}) OR {not_mine} AND {others} THEN 'Joint' "
        f"WHEN {mine} THEN 'Hispanic or Latino' WHEN {not_mine} THEN 'Not Hispanic or Latino' "
        "ELSE 'Ethnicity Not Available' END"
    )


def sex(modern: bool = True) -> str:  # noqa: ARG001 the same call for every rule
    """Joint where the two differ, or one of them chose both."""
    own, other = quoted("applicant_sex"), f"coalesce({quoted('co_applicant_sex')}, '')"
    return (
        f"CASE WHEN {own} = '{_BOTH_SEXES}' THEN 'Joint' "
        f"WHEN {own} = '1' THEN CASE WHEN {other} IN ('2', '{_BOTH_SEXES}') THEN 'Joint' ELSE 'Male' END "
        f"WHEN {own} = '2' THEN CASE WHEN {other} IN ('1', '{_BOTH_SEXES}') THEN 'Joint' ELSE 'Female' END "
        "ELSE 'Sex Not Available' END"
    )


DERIVED = {
    "derived_race": (race, ("applicant_race_1_raw", "co_applicant_race_1_raw")),
    "derived_ethnicity": (ethnicity, ("applicant_ethnicity_1_raw", "co_applicant_ethnicity_1_raw")),
    "derived_sex": (sex, ("applicant_sex", "co_applicant_sex")),
}
"""Canonical column -> its rule, and the columns without which there is none."""


def _blank(modern: bool, what: str) -> str:
    return literal("Free Form Text Only" if modern else f"{what} Not Available")


def _said(of: str) -> str:
    """All five answers as a list."""
    return "[" + ", ".join(f"CAST({quoted(f'{of}_{i}_raw')} AS VARCHAR)" for i in range(1, 6)) + "]"
