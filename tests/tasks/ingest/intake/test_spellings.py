"""Foldings, spellings that join, and words for missing values."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.audit.intake import FOLDINGS
from tasks.ingest.intake.folding import fold, holds_codes, near_pairs, same_words, spellings
from tasks.ingest.intake.missing import OF_NUMBERS, SURE, is_missing

ALIKE = [
    ("case", "Genehmigt", "GENEHMIGT"),
    ("case", "İPTAL", "iptal"),
    ("case", "ONAYLANDI", "onaylandı"),
    ("blanks", " Loan\u00a0  approved\u3000", "Loan approved"),
    ("blanks", "\ufeffok\u200b", "ok"),
    ("unicode", "Ａｐｐｒｏｖｅｄ", "Approved"),
    ("unicode", "Rechazada\u0301", "Rechazadá"),
    ("unicode", "O’Brien – Sons", "O'Brien - Sons"),
    ("stop", ">50K.", ">50K"),
    ("stop", "«refusé»", "refusé"),
    ("stop", '"denied"', "denied"),
]


@pytest.mark.parametrize(("rule", "first", "second"), ALIKE)
def test_a_rule_joins_two_spellings_and_without_it_they_stay_apart(rule: str, first: str, second: str) -> None:
    assert fold(first) == fold(second)
    others = [other for other in FOLDINGS if other != rule]
    assert fold(first, others) != fold(second, others)


@given(st.text(max_size=30))
@example('".".')
@example("a..")
@example("i\u0307\u0130\u0131")
@example("\u00b4a\u2033")
def test_folding_a_folded_text_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_more_than_one_full_stop_at_the_end_stays() -> None:
    assert fold("etc..") == "etc.."


@given(st.dictionaries(st.text("aA .1’'", max_size=4), st.integers(1, 9), max_size=12))
def test_printed_spellings_are_their_own_and_add_up(counts: dict[str, int]) -> None:
    printed = spellings(counts)
    assert printed.keys() == counts.keys()
    again: dict[str, int] = {}
    for text, spelling in printed.items():
        again[spelling] = again.get(spelling, 0) + counts[text]
    assert spellings(again) == {spelling: spelling for spelling in again}


def test_the_most_frequent_spelling_without_capitals_alone_is_printed_and_of_equals_the_first() -> None:
    assert set(spellings({"ODRZUCONY": 9, "Odrzucony ": 2, "odrzucony": 2}).values()) == {"Odrzucony"}
    assert set(spellings({"odrzucony": 2, "Odrzucony": 3}).values()) == {"Odrzucony"}
    assert set(spellings({"OK": 1, "OK.": 3}).values()) == {"OK."}


def test_no_rules_join_nothing() -> None:
    counts = {"a": 1, "A": 1, "1": 1, "1.0": 1, "y": 1}
    assert spellings(counts, ()) == {text: text for text in counts}


def test_numbers_as_text_join_unless_the_column_holds_codes() -> None:
    assert set(spellings({"1": 5, "1.0": 2, "01": 1}).values()) == {"1"}
    assert spellings({"01": 1, "10": 2, "": 4})["01"] == "01"
    assert len(set(spellings({"007": 1, "7.0": 2, "070": 3}).values())) == 3
    assert holds_codes(["0123", "4567", "n/a"])
    assert not holds_codes(["0123", "456"])
    assert not holds_codes(["0", "1"])


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        ("Y yes TRUE n No", 2),
        ("tak T nie", 2),
        ("S sim N não", 2),
        ("evet E hayır", 2),
        ("Y yes maybe", 3),
        ("M Male F female", 2),
        ("k Kobieta M mężczyzna X", 3),
        ("E erkek K KADIN", 2),
        ("男 男性 女性 女", 2),
        ("남 남성 여", 2),
        ("M Male a b c d", 6),
        ("M mujer H hombre", 2),
        ("M hombre mujer", 3),
        ("M masculino mujer", 2),
    ],
)
def test_words_for_yes_and_for_sexes_join_where_the_column_holds_nothing_else(texts: str, joined: int) -> None:
    assert len(set(spellings(dict.fromkeys(texts.split(), 1)).values())) == joined


def test_letters_alone_are_not_words_of_sexes() -> None:
    assert same_words({"M": 3, "F": 4}) == {}


def test_near_spellings_are_listed_and_stay_apart() -> None:
    counts = {"Hispanic": 200, "Hispanc": 3, "Hipsanic": 2, "Asian": 50, "Aslan": 40, "Non-Binary": 30, "nonbinary": 4}
    pairs = {(pair.frequent, pair.rare) for pair in near_pairs(counts)}
    assert pairs == {("Hispanic", "Hispanc"), ("Hispanic", "Hipsanic"), ("Non-Binary", "nonbinary")}
    assert len(set(spellings(counts).values())) == len(counts)
    assert near_pairs({"español": 90, "espanol": 3})[0].rare_rows == 3
    assert near_pairs({"Zone 11": 90, "Zone 12": 3, "Kane": 80, "Cane": 2}) == []


@pytest.mark.parametrize("text", ["", " \u3000", "N/A", "—", "---", "??", "#DIV/0!", "K. A.", "Non renseigné", "s/d"])
def test_sure_words_are_missing_everywhere(text: str) -> None:
    assert is_missing(text)


@pytest.mark.parametrize(
    "text",
    [
        "não informado",
        "assente",
        "onbekend",
        "BRAK DANYCH",
        "Belirtilmemiş",
        "uppgift saknas",
        "不明",
        "未填写",
        "무응답",
    ],
)
def test_words_of_other_languages_are_missing(text: str) -> None:
    assert is_missing(text)


@pytest.mark.parametrize("text", ["None", "unknown", "DK", "x", "**", "test optional", "yok", "なし", "ninguno"])
def test_words_of_numbers_may_be_values_elsewhere(text: str) -> None:
    assert is_missing(text, of_numbers=True)
    assert not is_missing(text)


def test_further_words_are_compared_folded_and_values_are_no_missing_words() -> None:
    assert is_missing("Ausst. ", further=["ausst"])
    assert not any(is_missing(text, of_numbers=True) for text in ("0", "Other", "36", "ND-1", "sonstige", "男"))
    assert not SURE & OF_NUMBERS
