"""Numbers as people write them: cells, marks by proof, units, columns, codes for missing."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake import numbers
from tasks.ingest.intake.codes import CODES, codes_among_words, date_sentinels, is_code, sentinels
from tasks.ingest.intake.numbers import guess, is_number, parse, parse_cell

POINT = ColumnRecipe.model_validate({"read": "number", "decimal": ".", "thousands": [",", " ", "'"]})
COMMA = ColumnRecipe.model_validate({"read": "number", "decimal": ",", "thousands": [".", " ", "'"]})
OPEN = ColumnRecipe.model_validate({"read": "number", "thousands": [",", "."]})
PLAIN = ColumnRecipe.model_validate({"read": "number"})

CELLS = [
    ("$102,817", POINT, "102817"),
    ("(1,234.50)", POINT, "-1234.5"),
    ("$(1,234)", POINT, "-1234"),
    ("-$5.10", POINT, "-5.1"),
    ("$-5.10", POINT, "-5.1"),
    ("5.10-", POINT, "-5.1"),
    ("+5", POINT, "5"),
    ("23.8%", POINT, "23.8"),
    ("%23,8", COMMA, "23.8"),
    ("1.2k", POINT, "1200"),
    ("1,25 Mio. €", COMMA, "1250000"),
    ("3.5 bn", POINT, "3500000000"),
    ("14,5/20", COMMA, "14.5"),
    ("85 / 100", POINT, "85"),
    ("T€ 12,5", COMMA, "12500"),
    ("12,5 tys. zł", COMMA, "12500"),
    ("440.500,- €", COMMA, "440500"),
    ("1'234.50", POINT, "1234.5"),
    ("CHF 1’234.–", POINT, "1234"),
    ("Fr. 1'000'000", POINT, "1000000"),
    ("1 234,50 zł", COMMA, "1234.5"),
    ("1\u202f234,50\u00a0€", COMMA, "1234.5"),
    ("1.234,50 TL", COMMA, "1234.5"),
    ("R$ 1.234,50", COMMA, "1234.5"),
    ("45.000 kr", COMMA, "45000"),
    ("￥１，２３４", POINT, "1234"),
    ("1,234円", POINT, "1234"),
    ("120万円", POINT, "1200000"),
    ("1億2000万円", POINT, "120000000"),
    ("3천만원", POINT, "30000000"),
    ("2억 5천만원", POINT, "250000000"),
    ("1,02,817", POINT, "102817"),
    ("₹12,34,567.50", POINT, "1234567.5"),
    ("Rs. 5 lakh", POINT, "500000"),
    ("1 234:-", COMMA, "1234"),
    ("US$ 45,000", POINT, "45000"),
    ("45,000 USD", POINT, "45000"),
    ("$1,200/month", POINT, "1200"),
    ("4,5 % p.a.", COMMA, "4.5"),
    ("36 months", POINT, "36"),
    ("7y", POINT, "7"),
    ("１２３", POINT, "123"),
    ("000055945", POINT, "55945"),
    ("-0.00", POINT, "0"),
    ("'0012", POINT, "12"),
    ("Rs. 1,02,817/-", POINT, "102817"),
    ("2,517% a.m.", COMMA, "2.5170"),
    ("AED ٤٥٬٠٠٠٫٥", POINT, "45000.5"),
    ("٣٤٪", POINT, "34"),
    ("3件", POINT, "3"),
    ("720 pts", POINT, "720"),
    ("€ 3.250 p/m", COMMA, "3250"),
    ("3.250 € brutto", COMMA, "3250"),
    ("35 лет", POINT, "35"),
    ("12 мес.", POINT, "12"),
    (".5", POINT, "0.5"),
    ("6.5E+04", POINT, "65000"),
    ("1e-05", POINT, "0.00001"),
    ("12345678901234567890.123456789", POINT, "12345678901234567890.123456789"),
]


@pytest.mark.parametrize(("cell", "recipe", "value"), CELLS)
def test_a_cell_is_read_exactly(cell: str, recipe: ColumnRecipe, value: str) -> None:
    assert parse(cell, recipe) == value
    assert parse(f" {cell}\u00a0", recipe) == value


NO_NUMBERS = [
    *(
        "",
        "abc",
        "A-12",
        "12-34",
        "1,2345,6",
        "5 apples",
        "K5",
        "D0597",
        "2023-01-02",
        "1 2 3",
        "12,345,6",
        "(5",
        "--5",
    ),
    *(
        "-(5)",
        "1.2.3",
        "<5",
        "25-34",
        "5 k k",
        "$5 €",
        "1e999",
        "٫",
        "1st",
        "½ m",
        "M 12",
        "R12",
        "1,234-5",
        "1,234²",
        "1½",
        "345/20",
        "1" * 90,
    ),
]


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_what_is_no_number_is_none(cell: str) -> None:
    assert parse(cell, POINT) is None


def test_a_mark_means_what_the_recipe_says_unless_the_cell_proves_it() -> None:
    assert [parse("1.234", recipe) for recipe in (POINT, COMMA, OPEN)] == ["1.234", "1234", None]
    assert [parse("1,234", recipe) for recipe in (POINT, COMMA, OPEN, PLAIN)] == ["1234", "1.2340", None, None]
    for cell in ("12,5", "0,125", "1234,567", "1.234,5", "1 234,567"):
        assert {parse(cell, recipe) for recipe in (COMMA, POINT, OPEN, PLAIN)} == {str(parse(cell, COMMA))}
    assert parse("1.234.567", POINT) == parse("1,234,567", COMMA) == "1234567"


CANONICAL = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=3)


@given(CANONICAL, st.sampled_from([POINT, COMMA, OPEN, PLAIN]), st.sampled_from(["{}", "${}", "{} %", "({})", "{}k"]))
def test_reading_what_was_read_changes_nothing(number: Decimal, recipe: ColumnRecipe, shape: str) -> None:
    text = shape.format(f"{number:f}".replace(".", recipe.decimal or "."))
    value = parse(text, recipe)
    assert value is None or parse(value, recipe) == value


@given(st.text("0123456789.,' -()$%k€万", max_size=12), st.sampled_from([POINT, COMMA, OPEN, PLAIN]))
def test_reading_any_text_twice_changes_nothing(text: str, recipe: ColumnRecipe) -> None:
    value = parse(text, recipe)
    assert value is None or parse(value, recipe) == value
    assert value is None or Decimal(value).is_finite()


@given(CANONICAL, st.sampled_from([("{:,.3f}", POINT), ("{:.3f}", POINT), ("{:,.3f} €", POINT)]))
def test_a_formatted_number_is_read_back(number: Decimal, shape: tuple[str, ColumnRecipe]) -> None:
    value = parse(shape[0].format(number), shape[1])
    assert value is not None
    assert Decimal(value) == number


SHAPES = {
    "point": lambda number: f"{number:,.2f}",
    "comma": lambda number: f"{number:,.2f} €".translate({ord(","): ".", ord("."): ","}),
    "blank": lambda number: f"{number:,.2f}".translate({ord(","): "\u202f", ord("."): ","}),
    "apostrophe": lambda number: f"CHF {number:,.2f}".replace(",", "’"),
    "parentheses": lambda number: f"({-number:,.2f})" if number < 0 else f"{number:,.2f}",
    "plain": lambda number: f"{number:.2f}%",
}


@given(st.lists(st.decimals(-(10**7), 10**7, places=2), min_size=1, max_size=20), st.sampled_from(sorted(SHAPES)))
def test_a_column_in_one_shape_is_read_exactly_and_without_a_question(numbers: list[Decimal], shape: str) -> None:
    cells = Counter(SHAPES[shape](number) for number in numbers)
    read = guess({"x": cells})["x"]
    assert read.certain
    assert sum(Decimal(value) * rows for value, rows in read.numbers.items()) == sum(numbers)
    assert all(parse(value, read.recipe) == value for value in read.numbers)


def test_rules_name_what_was_taken_to_read_a_cell() -> None:
    rules = {cell: parse_cell(cell, POINT) for cell in ("5", "$5", "5%", "5k", "(5)", "5 yrs")}
    assert {cell: sorted(parsed.rules) if parsed else None for cell, parsed in rules.items()} == {
        "5": [],
        "$5": ["currency", "number"],
        "5%": ["number", "percent"],
        "5k": ["number", "scale"],
        "(5)": ["number", "sign"],
        "5 yrs": ["number", "unit"],
    }


def _column(*cells: str, rows: int = 30) -> dict[str, int]:
    return dict.fromkeys(cells, rows)


def test_proof_in_the_column_decides() -> None:
    read = guess({"Kaufpreis": _column("1.234", "12.500", "9.999,50"), "Grant": _column("1,234", "7.5")})
    assert read["Kaufpreis"].numbers.keys() == {"1234", "12500", "9999.5"}
    assert read["Grant"].numbers.keys() == {"1234", "7.5"}
    assert read["Kaufpreis"].certain
    assert (read["Kaufpreis"].recipe.decimal, read["Kaufpreis"].recipe.thousands) == (",", (".",))


def test_proof_in_another_column_decides_where_the_column_has_none() -> None:
    without = guess({"Saldo": _column("1.234", "231.125")})["Saldo"]
    assert [reading.total for reading in without.evidence] == ["6970770", "6970.77"]
    assert without.question is not None
    assert "Saldo" in without.question
    point = guess({"Saldo": _column("1.234", "231.125"), "b": _column("0.5", "17.25")})["Saldo"]
    assert (point.certain, set(point.numbers)) == (True, {"1.234", "231.125"})
    comma = guess({"Saldo": _column("1.234", "231.125"), "b": _column("0,5")})["Saldo"]
    assert (comma.certain, set(comma.numbers)) == (True, {"1234", "231125"})


def test_without_proof_amounts_have_thousands_and_rates_have_decimals() -> None:
    read = guess({"income": _column("231.125"), "interest rate": _column("5.125"), "tasa": _column("€5.125")})
    assert [next(iter(column.numbers)) for column in read.values()] == ["231125", "5.125", "5125"]
    assert not any(column.certain for column in read.values())


def test_proof_both_ways_leaves_open_cells_unread() -> None:
    read = guess({"x": _column("1,5", "2.5", "1,234")})["x"]
    assert read.numbers.keys() == {"1.5", "2.5"}
    assert read.unread == {"1,234": 30}
    assert read.question is not None


def test_a_column_is_one_of_numbers_if_95_percent_of_its_cells_are() -> None:
    cells = {str(number): 1 for number in range(95)}
    assert "x" in guess({"x": {**cells, "12-a": 5, "n/a": 50}})
    assert "x" not in guess({"x": {**cells, "12-a": 6}})
    read = guess({"x": {**cells, "12-a": 5, "DK": 2}})["x"]
    assert (read.unread, read.missing, read.certain) == ({"12-a": 5}, {"DK": 2}, False)


def test_a_word_in_a_column_of_numbers_is_proposed_as_missing() -> None:
    numbers = {str(number): 2 for number in range(40)}
    read = guess({"x": {**numbers, "ver anexo": 4}})["x"]
    assert read.recipe.missing == ("ver anexo",)
    assert read.missing == {"ver anexo": 4}
    assert "ver anexo" in str(read.question)
    assert guess({"x": {**numbers, "ver anexo": 5}}) == {}  # fewer than 95 of 100 cells are numbers


def test_unsure_words_on_5_percent_of_rows_are_a_question() -> None:
    many = guess({"x": {**{str(number): 1 for number in range(90)}, "refused": 10}})["x"]
    few = guess({"x": {**{str(number): 1 for number in range(97)}, "refused": 3}})["x"]
    assert (many.certain, few.certain) == (False, True)


@pytest.mark.parametrize(
    ("name", "cells", "unit"),
    [
        ("a", "$5", "USD"),
        ("a", "5 EUR", "EUR"),
        ("a", "5 zł", "PLN"),
        ("a", "5 TL", "TRY"),
        ("a", "R$ 5", "BRL"),
        ("a", "5 kr", "SEK"),
        ("løn", "5 kr", "DKK"),
        ("Lånebeløp", "5 kr", "NOK"),
        ("Årsindkomst (kr.)", "5", "DKK"),
        ("Belopp NOK", "5 kr", "NOK"),
        ("a", "¥5", "JPY"),
        ("贷款金额", "¥5", "CNY"),
        ("a", "5万元", "CNY"),
        ("a", "5만원", "KRW"),
        ("a", "₹5", "INR"),
        ("Income CAD", "$5", "CAD"),
        ("a", "5 %", "%"),
        ("a", "5 Monate", "months"),
        ("term", "36m", "months"),
        ("loan", "36m", None),
        ("a", "5歳", "years"),
        ("Income CHF", "5", "CHF"),
        ("DTI %", "5", "%"),
        ("Plazo (meses)", "5", "months"),
        ("days_employed", "5", "days"),
        ("Year", "5", None),
        ("Tenure_yrs", "5", "years"),
        ("income", "5", None),
    ],
)
def test_units_are_of_the_cells_else_of_the_name(name: str, cells: str, unit: str | None) -> None:
    assert guess({name: {cells: 3}})[name].recipe.unit == unit


def test_several_currencies_are_left_out_with_a_question() -> None:
    read = guess({"x": _column("$5", "€6"), "y": _column("$5", "USD 6")})
    assert read["x"].excluded
    assert "EUR and USD" in str(read["x"].question)
    assert read["y"].recipe.unit == "USD"


def test_a_cell_in_another_currency_than_the_recipe_is_unread() -> None:
    recipe = ColumnRecipe.model_validate({"read": "number", "unit": "USD"})
    assert [parse(cell, recipe) for cell in ("$5", "5", "€5", "5%")] == ["5", "5", None, None]


def test_shares_among_percents_are_a_question() -> None:
    assert not guess({"x": _column("5%", "31%", "0.31")})["x"].certain
    assert guess({"x": _column("5%", "31%", "31")})["x"].certain


@pytest.mark.parametrize(
    ("name", "cells", "number"),
    [
        ("x", "$1 $2", True),
        ("x", "1.5 2.5", True),
        ("income", "00012 00345", True),
        ("x", "00012 00345", False),
        ("zip code", "1 2 3 4 5 6 7 8", False),
        ("country", "1 2 3", None),
        ("x", "1 2 3 4 5 6 7", True),
        ("x", "1 2 3 4 5 6", None),
        ("late payment", "0 1", False),
        ("Anzahl Kinder", "1 2 3", True),
        ("Kreditsumme", "1 2 3", True),
        ("年収", "1 2 3", True),
        ("personType", "1 2 3", False),
        ("income_type", "1 2 3", False),
        ("Altersgruppe", "1 2 3 4 5 6 7 8", False),
    ],
)
def test_numbers_are_told_from_categories(name: str, cells: str, number: bool | None) -> None:
    counts = dict.fromkeys(cells.split(), 10)
    assert is_number(name, guess({name: counts})[name], counts) is number


PLAIN_AND_ODD = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"[0-9]{1,3}([.,][0-9]{3}){0,2}", fullmatch=True),
    st.sampled_from(("", "-", "NA", "unknown", "-0", "007", "5%", "$5", "1e3", "-999", "abc", "1" * 90, "\u0663")),
)


@given(st.dictionaries(PLAIN_AND_ODD, st.integers(1, 9), min_size=1), st.dictionaries(PLAIN_AND_ODD, st.integers(1, 9)))
def test_columns_of_many_texts_are_read_as_those_of_few(first: dict, second: dict) -> None:
    columns = {"income": first, "rate": second}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "_MANY", 10**9)
        one_by_one = guess(columns)
        patch.setattr(numbers, "_MANY", 0)
        together = guess(columns)
    assert together == one_by_one
    for name, column in together.items():
        for part in ("numbers", "values"):
            assert list(getattr(column, part)) == list(getattr(one_by_one[name], part)), "in the order of the column"


@given(st.dictionaries(CANONICAL.map(lambda number: format(number.normalize(), "f")), st.integers(1, 9), min_size=20))
def test_codes_are_apart_by_the_quartiles_of_the_rows(rows: dict) -> None:
    rows = {("0" if Decimal(text) == 0 else text): count for text, count in rows.items()}
    codes = {"-99999999": 3, "9999999999": 4}
    others = {text: count for text, count in rows.items() if Decimal(text) not in CODES}
    every = sorted(Decimal(text) for text, count in others.items() for _ in range(count))
    if len(every) < 20:
        return
    apart = every[int(Decimal("0.75") * len(every))] - every[int(Decimal("0.25") * len(every))]
    found = sentinels({**others, **codes})
    assert ("9999999999" in found) == (Decimal(9999999999) > every[-1] + apart or every[-1] <= 0)
    assert ("-99999999" in found) == (Decimal(-99999999) < every[0] - apart or every[0] >= 0)


def test_codes_are_apart_from_other_numbers_or_of_another_sign() -> None:
    incomes = {str(30_000 + 100 * step): 1 for step in range(200)}
    assert sentinels({**incomes, "-999": 5, "99999999": 4, "0": 9}) == {"-999": 5, "99999999": 4, "0": 9}
    assert sentinels({**incomes, "-999": 2}) == {}
    percents = {str(step): 2 for step in range(0, 96)}
    assert sentinels({**percents, "99": 5, "-1": 3}) == {"-1": 3}
    employed = {str(-step): 1 for step in range(20, 400)}
    assert sentinels({**employed, "365243": 50}) == {"365243": 50}
    assert sentinels({**employed, "99": 3}) == {"99": 3}
    assert sentinels({**{str(step): 1 for step in range(5, 100)}, "0": 9}) == {}
    assert sentinels({"1": 3, "2": 3, "9": 3}) == {}


def test_codes_among_words_and_bands() -> None:
    assert codes_among_words({"White": 50, "Black": 20, "-9": 2, "99": 3, "0": 2}) == {"-9": 2, "99": 3}
    assert codes_among_words({"<25": 50, "25-34": 20, "8888": 2}) == {"8888": 2}
    assert codes_among_words({"1": 50, "2": 20, "9": 2}) == {}
    assert codes_among_words({"1": 50, "02": 20, "3": 9, "9": 2, "09": 1}) == {"9": 2, "09": 1}
    assert codes_among_words({"1": 50, "5": 20, "7": 9, "9": 5}) == {}
    assert codes_among_words({"1,234": 50, "99": 2}) == {}
    assert codes_among_words({"other": 10, "5": 90, "99": 2}) == {}


def test_codes_among_dates() -> None:
    dates = {"2023-01-05": 40, "2023-06-01": 30}
    assert date_sentinels({**dates, "1900-01-01": 3, "9999-12-31": 8, "1970-01-01": 2}) == {
        "1900-01-01": 3,
        "9999-12-31": 8,
    }
    assert date_sentinels({"1969-05-05": 9, "1970-01-01": 4, "1971-01-01": 4}) == {}


def test_a_code_is_compared_as_a_number_or_folded() -> None:
    assert is_code("-999", ["-999.0"])
    assert is_code("Sonstige ", ["sonstige"])
    assert not is_code("-99", ["-999"])
