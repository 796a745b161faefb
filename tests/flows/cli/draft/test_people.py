"""Protected attributes: which columns, which groups, and whom the others are compared with."""

import csv
import json
from datetime import date
from pathlib import Path

import pytest

from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.people import Attribute
from flows.cli.draft.questions import questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.spec_text import text

ROWS = 200


def draft_of(place: Path, approved=lambda i: i % 3 > 0, **columns) -> Draft:
    """The draft of a table with these columns, an amount and a decision."""
    cells = {
        **columns,
        "amount": [1000 + 37 * i % 7919 for i in range(ROWS)],
        "decision": ["approved" if approved(i) else "denied" for i in range(ROWS)],
    }
    path = place / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(cells)
        writer.writerows(zip(*cells.values(), strict=True))
    return drafted(read_file(File(path)))


def only(draft: Draft) -> Attribute:
    [attribute] = draft.attributes
    return attribute


def repeated(*values: str) -> list[str]:
    return [values[i % len(values)] for i in range(ROWS)]


@pytest.mark.parametrize(("name", "form"), [("age", str), ("Age at application", lambda a: f"{a} yrs")])
def test_ages_are_cut_at_40_and_62(name: str, form, tmp_path: Path) -> None:
    ages = [18 + 7 * i % 60 for i in range(ROWS)]
    found = only(draft_of(tmp_path, **{name: [form(age) for age in ages]}))
    assert found.bands == (40, 62)
    assert found.rows == {
        "under 40": sum(a < 40 for a in ages),
        "40 to 61": sum(40 <= a < 62 for a in ages),
        "62 and over": sum(a >= 62 for a in ages),
    }


def test_an_unknown_sex_and_a_code_among_codes_are_missing(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, SEX_CD=["M", "F"] * 96 + ["U"] * 8, RACE_CD=[*"1234"] * 48 + ["9"] * 8)
    found = {attribute.column: attribute for attribute in draft.attributes}
    assert {name: (set(a.rows), a.missing) for name, a in found.items()} == {
        "SEX_CD": ({"M", "F"}, 8),
        "RACE_CD": ({"1", "2", "3", "4"}, 8),
    }


def test_bands_that_are_ready_stay(tmp_path: Path) -> None:
    found = only(draft_of(tmp_path, age=repeated("25-34", "35-44", "45-54")))
    assert (found.bands, set(found.rows)) == ((), {"25-34", "35-44", "45-54"})


def test_the_usual_group_is_the_reference_if_it_has_half_of_the_favourable_decisions(tmp_path: Path) -> None:
    race = ["White"] * 80 + ["Black"] * 120
    assert only(draft_of(tmp_path, race=race)).reference == "White"
    assert only(draft_of(tmp_path, race=["White"] * 40 + ["Black"] * 160)).reference == "Black"
    assert only(draft_of(tmp_path, race=["Other"] * 150 + ["Maori"] * 50)).reference == "Maori"


@pytest.mark.parametrize(
    ("name", "values", "reference"),
    [
        ("Sexe", ("F", "H"), "H"),
        ("sexo", ("M", "H"), "H"),
        ("female", ("1", "0"), "0"),
        ("male", ("0", "1"), "1"),
        ("ethnicity", ("Hispanic or Latino", "Not Hispanic or Latino"), "Not Hispanic or Latino"),
        ("disability", ("Yes", "No"), "No"),
        ("Minorité visible", ("Oui", "Non"), "Non"),
        ("Sexe", ("2 - Femme", "1 - Homme"), "1 - Homme"),
        ("M/V/X", ("V", "M"), "M"),
    ],
)
def test_a_word_tells_the_usual_comparison_group(name: str, values: tuple, reference: str, tmp_path: Path) -> None:
    assert only(draft_of(tmp_path, **{name: repeated(*values)})).reference == reference


def test_spellings_are_one_group_and_near_spellings_are_two(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, race=[*repeated("White", "WHITE ", "Hispanic", "hispanic")[:190], *["Hispanc"] * 10])
    assert {group.casefold() for group in only(draft).rows} == {"white", "hispanic", "hispanc"}


@pytest.mark.parametrize("sign", [";", " / ", " and "])
def test_several_answers_are_one_group_and_no_reference(sign: str, tmp_path: Path) -> None:
    found = only(draft_of(tmp_path, race=[*[f"White{sign}Asian"] * 90, *["White"] * 60, *["Asian"] * 50]))
    assert found.rows["several"] == 90
    assert found.groups["several"] == (f"White{sign}Asian",)
    assert found.reference == "White"


def test_who_is_nobody_and_who_are_few_is_reported_and_not_judged(tmp_path: Path) -> None:
    race = ["White"] * 100 + ["Black"] * 75 + ["Declined to answer"] * 20 + ["Samoan"] * 4 + ["N/A"]
    found = only(draft_of(tmp_path, race=race))
    assert set(found.rows) == {"White", "Black", "Samoan"}
    assert (found.nobody, found.small, found.missing) == (("Declined to answer",), ("Samoan",), 1)
    assert set(found.reported_only) == {"Declined to answer", "Samoan"}


def test_four_attributes_are_drafted_and_the_others_named(tmp_path: Path) -> None:
    values = {
        "race": repeated("White", "Black"),
        "sex": ["Male" if i % 4 < 2 else "Female" for i in range(ROWS)],
        "age": [20 + i % 50 for i in range(ROWS)],
        "nationality": ["US" if i % 5 else "MX" for i in range(ROWS)],
        "marital status": ["single" if i % 7 else "married" for i in range(ROWS)],
        "religion": ["A" if i % 6 else "B" for i in range(ROWS)],
    }
    draft = draft_of(tmp_path, **values)
    assert len(draft.attributes) == 4
    assert set(draft.left_people) == set(values) - {a.column for a in draft.attributes}
    assert not set(draft.features) & set(values)


@pytest.mark.parametrize("name", ["vehicle_age", "loan_age_months", "package"])
def test_ages_of_things_are_no_ages_of_people(name: str, tmp_path: Path) -> None:
    draft = draft_of(tmp_path, **{name: [20 + i % 50 for i in range(ROWS)], "sex": repeated("Male", "Female")})
    assert only(draft).column == "sex"
    assert name in draft.features


def days(years: range, form: str) -> list[str]:
    """A day in each row."""
    return [date(years[i % len(years)], 1 + i % 12, 1 + i % 28).strftime(form) for i in range(ROWS)]


def test_dates_of_birth_are_ages_at_the_decision(tmp_path: Path) -> None:
    born, decided = days(range(1940, 2003), "%d/%m/%Y"), days(range(2023, 2024), "%Y-%m-%d")
    draft = draft_of(tmp_path, DOB=born, decision_date=decided, gender=repeated("M", "F"))
    attribute = next(a for a in draft.attributes if a.column == "DOB")
    ages = [2023 - int(b[-4:]) - ((d[5:7], d[8:]) < (b[3:5], b[:2])) for b, d in zip(born, decided, strict=True)]
    assert (attribute.at, attribute.bands) == ("decision_date", (40, 62))
    assert attribute.rows == {
        "under 40": sum(a < 40 for a in ages),
        "40 to 61": sum(40 <= a < 62 for a in ages),
        "62 and over": sum(a >= 62 for a in ages),
    }
    spec, pending = text(draft), questions(draft)
    assert "'DOB': {read: age, format: ['%d/%m/%Y'], at: decision_date}" in spec
    assert "name: 'age'" in spec
    asked = next(question for question in pending if question.key == "protected").text
    assert "DOB is read as the age at decision_date" in asked
    assert f"under 40 {attribute.rows['under 40']}" in asked
    everything = spec + json.dumps([question.as_json() for question in pending])
    assert not [day for day in born if day in everything]


def test_the_order_of_day_and_month_of_a_birth_is_asked_without_a_date(tmp_path: Path) -> None:
    born = [date(1950 + i % 50, 1 + i % 12, 1 + i % 12).strftime("%d/%m/%Y") for i in range(ROWS)]
    draft = draft_of(tmp_path, dob=born, decided=days(range(2023, 2024), "%Y-%m-%d"))
    words = next(question for question in questions(draft) if question.key == "numbers").text
    assert "no cell of the file proves whether the day or the month is first" in words
    assert not [day for day in born if day in words]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"dob": days(range(1940, 2003), "%d/%m/%Y")}, "no column has the date of the decision"),
        (
            {"dob": days(range(1940, 1999), "%m/%d/%y"), "decision_date": days(range(2023, 2024), "%Y-%m-%d")},
            "years have two digits",
        ),
    ],
)
def test_dates_of_birth_that_give_no_age_are_left_out_with_the_reason(columns: dict, why: str, tmp_path: Path) -> None:
    draft = draft_of(tmp_path, **columns, gender=repeated("M", "F"))
    assert [a.column for a in draft.attributes] == ["gender"]
    assert f"dates of birth, of which no age follows: {why}" in text(draft)
    assert f"dob (dates of birth, of which no age follows: {why})" in next(
        question.text for question in questions(draft) if question.key == "protected"
    )


@pytest.mark.parametrize(
    ("name", "reference"),
    [("hispanic_ind", "N"), ("disabled", "N"), ("Race: White", "Y"), ("non_white_race", "N"), ("race_white_flag", "Y")],
)
def test_a_flag_of_a_group_is_compared_with_those_without_it(name: str, reference: str, tmp_path: Path) -> None:
    assert only(draft_of(tmp_path, **{name: repeated("Y", "N")})).reference == reference


def test_flags_of_several_groups_are_drafted_each(tmp_path: Path) -> None:
    races = repeated("white", "black", "white", "asian", "black")
    flags = {f"race_{race}": [str(int(value == race)) for value in races] for race in ("white", "black", "asian")}
    flags["race_white_flag"] = flags["race_white"]
    draft = draft_of(tmp_path, is_female=repeated("1", "0", "0"), **flags)
    references = {attribute.column: attribute.reference for attribute in draft.attributes}
    assert references == {"race_white": "1", "race_black": "0", "race_asian": "0", "is_female": "0"}


def test_a_decision_in_codes_and_in_words_is_drafted_once_in_words(tmp_path: Path) -> None:
    words = {"A": "Approve", "D": "Decline", "W": "Withdrawn"}
    codes = repeated("A", "D", "A", "W")
    cells = {"dec_cd": codes, "dec_desc": [words[code] for code in codes], "sex": repeated("F", "M", "M")}
    path = tmp_path / "coded.csv"
    rows = ["dec_cd,dec_desc,sex", *(",".join(row) for row in zip(*cells.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    draft = drafted(read_file(File(path)))
    assert draft.decision_column == "dec_desc"
    assert {entry.name: entry.reason for entry in draft.entries}["dec_cd"] == "after"
    path.write_text("\n".join([*rows, "D,Approve,F"]) + "\n")  # one row in which they differ
    assert drafted(read_file(File(path))).decision is None


def test_flags_of_one_attribute_are_protected_or_left_out_and_named(tmp_path: Path) -> None:
    flags = {name: [str(int(i % 7 == k)) for i in range(ROWS)] for k, name in enumerate(("asian", "black", "amind"))}
    sexes = {"female": repeated("0", "1"), "male": repeated("1", "0")}
    ages = {"agegte62": repeated("0", "0", "1"), "agelt62": repeated("1", "1", "0"), "hipac": repeated("0", "1", "0")}
    draft = draft_of(tmp_path, **flags, **sexes, **ages)
    assert {"asian", "female", "agelt62"} & {a.column for a in draft.attributes}
    assert draft.features == ["amount"]
    assert {*draft.left_people, *(a.column for a in draft.attributes)} == {*flags, *sexes, *ages}
