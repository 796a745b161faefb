"""Ages at the decision from dates of birth: the same in SQL and in Python, and no date of birth leaves the reader."""

from datetime import date, timedelta
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from audited_tables import ingested, reasons, spec_of, written
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.audit.intake import FOLDINGS, ColumnRecipe
from schemas.audit.source import Source
from schemas.audit.spec import Decision, Protected
from schemas.errors import UnreadCellsError
from tasks.ingest.intake import step
from tasks.ingest.intake.dates import age
from tasks.ingest.intake.recipe import UNREAD_AGE, Reading, age_cell, cells_of
from tasks.ingest.sources.raw import Laid
from tasks.ingest.statement import Question

BIRTH = ColumnRecipe(read="age", format=("%d/%m/%Y", "%Y%m%d", "excel"), at="decided", codes=("1900-01-01",))
DECIDED = ColumnRecipe(read="date", format=("%m/%d/%y", "%b %d, %Y"))
DATABASE = duckdb.connect(config={"threads": 1})
FORMS = ("%d/%m/%Y", "%Y%m%d", "%Y-%m-%d", "%d/%m/%y")
ODD = ("", "N/A", "37", "0", "120", "121", "007", "00000000", "01/01/1900", "31/02/1990", "unknown", "unread", "20000")


def generated(seed: int, rows: int) -> tuple[list[str], list[str]]:
    """Dates of birth and of decisions as people write them, with cells that are none."""
    r = Random(seed)
    first = date(1880, 1, 1)

    def day(forms: tuple[str, ...], years: int, start: date) -> str:
        if r.random() < 0.2:
            return r.choice(ODD)
        return (start + timedelta(days=r.randrange(365 * years))).strftime(r.choice(forms))

    births = [day(FORMS, 150, first) for _ in range(rows)]
    return births, [day(("%m/%d/%y", "%b %d, %Y"), 6, date(2019, 1, 1)) for _ in range(rows)]


def read(births: list[str], decided: list[str]) -> tuple[list[str], Laid]:
    """The ages as the step reads them, in order."""
    intake = {"columns": {"born": BIRTH.model_dump(), "decided": DECIDED.model_dump()}}
    source = Source.model_validate({"kind": "csv", "path": "x.csv", "intake": intake})
    decision = Decision(column="d", favourable=("yes",), unfavourable=("no",))
    protected = Protected(name="age", columns=("born",), bands=(40, 62), reference="40 to 61")
    question = Question(source, None, decision, None, (protected,), {})
    with DATABASE.cursor() as connection:
        table = {"place": range(1, len(births) + 1), "c0": births, "c1": decided}
        connection.register("source_rows", pa.table(table))
        view = step.read(
            Laid("SELECT * FROM source_rows", ("born", "decided")), ["born", "decided"], question, connection
        )
        rows = connection.sql(f"SELECT c0 FROM ({view.rows}) ORDER BY place").fetchall()
        return [cell for (cell,) in rows], view


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 2**32))
def test_sql_reads_ages_as_python_does_and_its_own_ages_unchanged(seed: int) -> None:
    births, decided = generated(seed, 300)
    born, on = (
        cells_of(Reading(name, recipe, FOLDINGS), dict.fromkeys(texts, 1))
        for name, recipe, texts in (("born", BIRTH, births), ("decided", DECIDED, decided))
    )
    wanted = [age_cell(born[b], on[d]) for b, d in zip(births, decided, strict=True)]
    ages, view = read(births, decided)
    assert ages == [cell.text for cell in wanted]
    count = next(count for count in view.cells if count.column == "born")
    fates = [cell.fate for cell in wanted]
    assert (count.cells, count.values, count.missing, count.unread) == (
        len(births), *(fates.count(fate) for fate in ("value", "missing", "unread"))
    )  # fmt: skip
    rules = {rule.rule: rule.cells for rule in view.rules if rule.column == "born"}
    assert rules == {rule: sum(rule in cell.rules for cell in wanted) for rule in rules}
    assert {"age", "code", "missing_word"} <= rules.keys()
    assert all(text in ("", UNREAD_AGE) or 0 <= int(text) <= 120 for text in ages), "and nothing else leaves the reader"
    again, _ = read(ages, decided)
    assert again == ages


@pytest.mark.parametrize(
    ("born", "decided", "years"),
    [
        ("1983-05-12", "2023-05-11", 39),
        ("1983-05-12", "2023-05-12", 40),
        ("2000-02-29", "2023-02-28", 22),
        ("2000-02-29", "2023-03-01", 23),
        ("2023-05-12", "2023-05-11", -1),
    ],
)
def test_a_year_is_full_on_the_birthday(born: str, decided: str, years: int) -> None:
    assert age(born, decided) == years


@pytest.mark.parametrize("cell", ["12/05/83", "12/05/2030", "01/01/1880", "31/02/1990"])
def test_two_digits_of_a_year_and_ages_that_nobody_has_are_unread(cell: str) -> None:
    assert read([cell], ["05/11/23"])[0] == [UNREAD_AGE]


def test_people_born_before_1954_have_an_age_in_serial_numbers_of_excel() -> None:
    assert read(["9133", "19999", "31177"], ["05/11/23"] * 3)[0] == ["98", "68", "38"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"b": {"read": "age", "format": "%d/%m/%y", "at": "d"}, "d": {"read": "date", "format": "%Y"}}, "four digits"),
        ({"b": {"read": "age", "format": "%m/%Y", "at": "d"}, "d": {"read": "date", "format": "%Y"}}, "with a day"),
        ({"b": {"read": "age", "format": "%d/%m/%Y", "at": "d"}}, "is a column with a recipe"),
        ({"b": {"read": "age", "format": "%d/%m/%Y"}}, "needs `format` of the birth, and `at`"),
        ({"b": {"read": "date", "format": "%d/%m/%Y", "at": "d"}}, "`at` belongs to `read: age`"),
    ],
)
def test_a_recipe_that_gives_no_age_in_whole_years_is_refused(columns: dict, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Source.model_validate({"kind": "csv", "path": "x.csv", "intake": {"columns": columns}})


AGES = {
    "source__intake": "{columns: {born: {read: age, format: '%Y-%m-%d', at: decided}, "
    "decided: {read: date, format: '%Y-%m-%d'}}}",
    "protected": "[{name: age, columns: [born], bands: [40, 62], reference: 40 to 61}]",
}
HEADER = "id,decision,race,income,born,decided"


def lines(number: int, bad: int = 0) -> list[str]:
    """Applicants aged 20 to 79 on 15 May 2023, some of whom were born later."""
    out = []
    for i in range(number):
        year = 2040 if i < bad else 2023 - 20 - i % 60
        out.append(f"A{i},{('approved', 'denied')[i % 2]},White,{20_000 + i},{year}-05-{10 + i % 10},2023-05-15")
    return out


def test_an_audit_by_birth_dates_has_bands_of_ages_and_no_date(tmp_path: Path) -> None:
    tables = ingested(spec_of(written(tmp_path, lines(240), HEADER), **AGES))
    groups = [row["group"] for row in tables["memberships"].to_pylist()]
    ages = [int(line.split(",")[4][:4]) for line in lines(240)]
    ages = [2023 - year - (int(line.split(",")[4][-2:]) > 15) for year, line in zip(ages, lines(240), strict=True)]
    assert groups == ["under 40" if a < 40 else "40 to 61" if a < 62 else "62 and over" for a in ages]
    (rule,) = (row for row in tables["intake_rules"].to_pylist() if row["rule"] == "age")
    assert (rule["column"], rule["cells"]) == ("born", 240)
    assert not any("born" in table.column_names for table in tables.values())
    assert not any("-05-1" in str(table.to_pydict()).replace("2023-05-15", "") for table in tables.values())
    assert not reasons(tables)


def test_ages_that_cannot_be_read_stop_the_audit_without_a_date_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(UnreadCellsError, match="10 of the 240 cells of 'born' are no dates of birth") as raised:
        ingested(spec_of(written(tmp_path, lines(240, bad=10), HEADER), **AGES))
    assert not raised.value.examples
    assert "2040" not in str(raised.value)
