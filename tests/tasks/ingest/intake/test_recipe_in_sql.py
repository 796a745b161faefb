"""A recipe means the same in SQL and in Python, and reads its own output without a change."""

from random import Random

import duckdb
import pyarrow as pa
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.intake import FOLDINGS, ColumnRecipe, Intake
from schemas.audit.source import Source
from schemas.audit.spec import Decision, Protected
from tasks.ingest.intake import step
from tasks.ingest.intake.recipe import Reading, cells_of
from tasks.ingest.intake.sql import layered, number_sql
from tasks.ingest.sources.raw import Laid
from tasks.ingest.statement import Question

RECIPES = (
    ColumnRecipe(read="number", thousands=(",",), unit="USD", codes=("-999", "0")),
    ColumnRecipe(read="number", decimal=",", thousands=(".", " "), unit="EUR", missing=("1111", "offen")),
    ColumnRecipe(read="number", decimal=",", thousands=("'",), codes=("9",)),
    ColumnRecipe(read="number", unit="%", missing=("-",)),
    ColumnRecipe(read="number", thousands=(".",)),
    ColumnRecipe(read="number", thousands=(",", ".")),
    ColumnRecipe(read="number", decimal=".", thousands=("\u00a0",), unit="months"),
)
DATABASE = duckdb.connect(config={"threads": 1})
AFFIXES = (
    "",
    "$",
    "€",
    " €",
    "USD ",
    " %",
    "%",
    "-",
    "(",
    ")",
    "-$",
    "$-",
    "+",
    ".",
    ",-",
    " mo",
    " k",
    "\u00a0€",
    "CHF",
    "~",
)
ODD = (
    *("", " ", "N/A", "-999", "-999.00", "1111", "offen", "Exempt", "exempt ", "9", "٣", "½", "-0", "(0)"),
    *("007", "00", "1,2,3", "12,34,567", "1e5", "999", "0.0", "0,0", "1234567890123456789", "n/a", "x"),
)
MARKS = (",", ".", " ", "\u00a0", "'", "")
SEEDS = st.integers(0, 2**32)


def generated(seed: int, number: int) -> list[str]:
    """Cells as people write them: digits with marks between texts, and some that are none."""
    r = Random(seed)

    def cell() -> str:
        if r.random() < 0.15:
            return r.choice(ODD)
        digits = f"{r.randrange(10 ** r.randrange(1, 9)):,}".replace(",", r.choice(MARKS))
        fraction = r.choice(("", "", ".", ",")) + str(r.randrange(10 ** r.randrange(1, 5)))
        before, behind = (r.choice(AFFIXES) if r.random() < 0.6 else "" for _ in range(2))
        return before + digits + (fraction if not fraction[0].isdigit() else "") + behind

    return [cell() for _ in range(number)]


def laid(texts: list[str], connection: duckdb.DuckDBPyConnection, name: str = "c") -> Laid:
    connection.register(
        "source_rows", pa.table({"place": range(1, len(texts) + 1), "c0": pa.array(texts, pa.string())})
    )
    return Laid("SELECT * FROM source_rows", (name,))


def question(recipe: ColumnRecipe, name: str = "c") -> Question:
    intake = {"columns": {name: recipe.model_dump()}}
    source = Source.model_validate({"kind": "csv", "path": "x.csv", "intake": intake})
    decision = Decision(column="d", favourable=("yes",), unfavourable=("no",))
    protected = Protected(name="g", columns=("g",), reference="White")
    return Question(source, None, decision, None, (protected,), {})


def read(texts: list[str], recipe: ColumnRecipe) -> tuple[list[str], Laid]:
    """The cells as the step reads them, in order."""
    with DATABASE.cursor() as connection:
        view = step.read(laid(texts, connection), ["c"], question(recipe), connection)
        rows = connection.sql(f"SELECT c0 FROM ({view.rows}) ORDER BY place").fetchall()
        return [cell for (cell,) in rows], view


@settings(max_examples=examples(50), deadline=None)
@given(st.sampled_from(RECIPES), SEEDS)
def test_sql_reads_ten_thousand_cells_as_python_does(recipe: ColumnRecipe, seed: int) -> None:
    texts = generated(seed, 400)
    reading = Reading("c", recipe, FOLDINGS, (), ("NA",), ("Exempt",))
    wanted = cells_of(reading, dict.fromkeys(texts, 1))
    cells, view = read(texts, recipe)
    assert cells == [wanted[text].text for text in texts]
    (count,) = view.cells
    fates = [wanted[text].fate for text in texts]
    numbers = [fates.count(fate) for fate in ("value", "missing", "unread")]
    assert [count.cells, count.values, count.missing, count.unread] == [len(texts), *numbers]
    rules = {rule.rule: rule.cells for rule in view.rules}
    assert rules == {rule: n for rule in rules if (n := sum(rule in wanted[text].rules for text in texts))}


def test_sql_takes_the_usual_cells_and_leaves_python_the_others() -> None:
    recipe = ColumnRecipe(read="number", thousands=(",",), unit="USD")
    texts = ["$1,234", "$12", "999", "-5", "$1,234.50", "(7)", "n/a", "007", "2.5e3", "12,34"]
    with DATABASE.cursor() as connection:
        connection.register("t", pa.table({"c0": texts}))
        sql = number_sql(Reading("c", recipe, FOLDINGS), 0, texts)
        query = f"SELECT c0 FROM {layered('t', [sql])} WHERE {sql.in_sql}"
        taken = [text for (text,) in connection.sql(query).fetchall()]
    assert taken == ["$1,234", "$12", "999", "-5", "$1,234.50", "(7)"]


@settings(max_examples=examples(30), deadline=None)
@given(st.sampled_from(RECIPES), SEEDS)
def test_intake_of_its_own_numbers_changes_no_cell(recipe: ColumnRecipe, seed: int) -> None:
    once, _ = read(generated(seed, 300), recipe)
    again, _ = read(once, recipe)
    assert again == once


WORDS = st.sampled_from(
    [
        "White",
        "WHITE ",
        "white.",
        '"White"',
        "Bläck",
        "BLÄCK",
        "N/A",
        "",
        "y",
        "Yes",
        "NO",
        "1",
        "1.0",
        "01",
        "5.",
        "İ",
        "ı",
    ]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=40))
def test_intake_of_its_own_words_changes_no_cell(texts: list[str]) -> None:
    once, _ = read(texts, ColumnRecipe())
    again, _ = read(once, ColumnRecipe())
    assert again == once


@pytest.mark.parametrize(
    ("spelled", "printed"), [(["DENIED", "Denied ", "denied", "denied"], "denied"), (["OK", "ok."], "ok.")]
)
def test_the_most_frequent_spelling_that_is_not_all_capitals_is_printed(spelled: list[str], printed: str) -> None:
    assert {*read(spelled, ColumnRecipe())[0]} == {printed}


def test_a_spec_of_an_older_day_leaves_unread_what_its_rules_do_not_know() -> None:
    number, day = ColumnRecipe(read="number"), ColumnRecipe(read="date", format=["%d %b %Y"])
    newer = {"85/100": number, "12 měs.": number, "24 tháng": number, "缺考": number, "05 Agu 2023": day}
    for text, recipe in newer.items():
        old, new = (cells_of(Reading("c", recipe, FOLDINGS, rules=rules), {text: 1})[text] for rules in (1, 2))
        assert (old.fate, old.text) == ("unread", text)
        assert new.fate != "unread"
    for text in ("$1,234", "12 months", "n/a", "2023"):
        old, new = (cells_of(Reading("c", number, FOLDINGS, rules=rules), {text: 1})[text] for rules in (1, 2))
        assert old == new
    assert (
        cells_of(Reading("c", ColumnRecipe(missing=["缺考"]), FOLDINGS, rules=1), {"缺考": 1})["缺考"].fate == "missing"
    )
    assert Intake.model_validate({}).rules == 1
