"""Derived race, ethnicity and sex: the SQL against a reference in plain Python, and against a file that has them."""

import duckdb
import pytest
from conftest import SHARED, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.hmda.canonical import ethnicity, race, sex

TRAVIS = SHARED / "data" / "hmda_lar_2024_travis_cu" / "travis_cu_2024_hmda.csv"
NAMES = {
    "1": "American Indian or Alaska Native",
    "2": "Asian",
    "3": "Black or African American",
    "4": "Native Hawaiian or Other Pacific Islander",
}
RACES = [None, *"1234567", "21", "22", "27", "41", "44"]
ETHNICITIES = [None, *"1234", "11", "14"]


def reference_race(own, other):
    """By the published rules, one after the other."""
    minority = {code[0] for code in own if code and code[0] in NAMES}
    if own[0] is None:
        return "Free Form Text Only"
    if own[0] in ("6", "7"):
        return "Race Not Available"
    if minority and "5" in other:
        return "Joint"
    if len(minority) > 1:
        return "2 or more minority races"
    if minority:
        return NAMES[minority.pop()]
    joint = other[0] is None or any(code and code[0] in NAMES for code in other)
    return "Joint" if joint else "White"


def reference_ethnicity(own, other):
    mine, others = (any(code and code[0] == "1" for code in who) for who in (own, other))
    if own[0] is None:
        return "Free Form Text Only"
    if own[0] in ("3", "4"):
        return "Ethnicity Not Available"
    if (mine and ("2" in own or "2" in other)) or ("2" in own and others):
        return "Joint"
    return "Hispanic or Latino" if mine else "Not Hispanic or Latino"


def reference_sex(own, other):
    if own not in ("1", "2", "6"):
        return "Sex Not Available"
    if own == "6" or other == "6" or {own, other} == {"1", "2"}:
        return "Joint"
    return {"1": "Male", "2": "Female"}[own]


def answers(known, extra):
    """Five answers: the first is one of all codes, the others blank or a group, and none comes twice."""
    first = st.sampled_from([*known, extra])
    more = st.lists(st.sampled_from([c for c in known if c not in (None, "6", "7")]), max_size=4, unique=True)
    return st.tuples(first, more).map(lambda t: [t[0], *(c for c in t[1] if c != t[0]), *[None] * 5][:5])


def sql(rule, cells):
    columns = ", ".join(f"{duckdb.ConstantExpression(value)}::VARCHAR AS {name}" for name, value in cells.items())
    return duckdb.sql(f"SELECT {rule} FROM (SELECT {columns})").fetchall()[0][0]


def people(what, own, other):
    return {
        f"{who}_{what}_{i}_raw": value
        for who, said in (("applicant", own), ("co_applicant", other))
        for i, value in enumerate(said, start=1)
    }


@settings(max_examples=examples(60), deadline=None)
@given(answers(RACES, "5"), answers(RACES, "8"))
def test_race_follows_the_rules(own, other):
    assert sql(race(), people("race", own, other)) == reference_race(own, other)


@settings(max_examples=examples(60), deadline=None)
@given(answers([None, "1", "11", "14", "2"], "3"), answers(ETHNICITIES, "5"))
def test_ethnicity_follows_the_rules(own, other):
    assert sql(ethnicity(), people("ethnicity", own, other)) == reference_ethnicity(own, other)


@pytest.mark.parametrize("own", [None, *"12346"])
@pytest.mark.parametrize("other", [None, *"123456"])
def test_sex_follows_the_rules(own, other):
    assert sql(sex(), {"applicant_sex": own, "co_applicant_sex": other}) == reference_sex(own, other)


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (["5"], ["8"], "White"),
        (["5"], ["5"], "White"),
        (["5"], ["3"], "Joint"),
        (["3"], ["5"], "Joint"),
        (["3"], ["8"], "Black or African American"),
        (["5", "3"], ["8"], "Black or African American"),  # White beside one minority
        (["2", "21", "22"], ["8"], "Asian"),  # detail of one race is one race
        (["21", "44"], ["8"], "2 or more minority races"),
        (["6"], ["5"], "Race Not Available"),
        ([None], ["5"], "Free Form Text Only"),
    ],
)
def test_race_by_hand(own, other, expected):
    padded = [[*said, *[None] * 5][:5] for said in (own, other)]
    assert sql(race(), people("race", *padded)) == reference_race(*padded) == expected


@pytest.mark.parametrize(("modern", "expected"), [(True, "Joint"), (False, "White")])
def test_a_blank_race_of_the_co_applicant_is_free_text_from_2018_only(modern, expected):
    cells = people("race", ["5", None, None, None, None], [None] * 5)
    assert sql(race(modern), cells) == expected


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_all_rows_that_carry_derived_columns_agree():
    columns = {
        f"{who}_{what}_{i}_raw": f"{who.replace('_', '-')}_{what}-{i}"
        for who in ("applicant", "co_applicant")
        for what in ("race", "ethnicity")
        for i in range(1, 6)
    }
    columns |= {"applicant_sex": "applicant_sex", "co_applicant_sex": "co-applicant_sex"}
    cells = ", ".join(f'"{theirs}" AS {ours}' for ours, theirs in columns.items())
    published = "derived_race, derived_ethnicity, derived_sex"
    rows = duckdb.sql(
        f"SELECT {race()}, {ethnicity()}, {sex()}, {published} FROM "
        f"(SELECT {cells}, {published} FROM read_csv('{TRAVIS}', all_varchar = true))"
    ).fetchall()
    assert len(rows) == 1442
    assert [row for row in rows if row[:3] != row[3:]] == []
    assert len({row[0] for row in rows}) == 8
