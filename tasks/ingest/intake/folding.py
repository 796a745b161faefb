"""Spellings of one value: what cells may differ by and still mean the same.

Values join where their folded forms are equal, and never because they are similar: near spellings are a question.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.audit.intake import FOLDINGS

_ALIKE: Final = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
"""Apostrophes and dashes that programs put for those of a keyboard."""
_INVISIBLE: Final = dict.fromkeys((0x00AD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF))
_QUOTES: Final = dict(
    zip(
        "\"'`\u201c\u201e\u201a\u00ab\u00bb\u2039\u300c\u300e",
        "\"'`\u201d\u201c\u2018\u00bb\u00ab\u203a\u300d\u300f",
        strict=True,
    )
)
_PLAIN: Final = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
_NEAR_LENGTH, _NEAR_SHARE, _NEAR_MOST = 5, 0.2, 300

_YES_NO: Final = (
    ("y yes true t", "n no false f"),
    ("j ja wahr", "n nein falsch"),
    ("o oui vrai", "n non faux"),
    ("s si sí verdadero", "n no falso"),
    ("s si sì vero", "n no falso"),
    ("s sim verdadeiro", "n não nao falso"),
    ("j ja waar", "n nee onwaar"),
    ("t tak prawda", "n nie fałsz"),
    ("e evet doğru", "h hayır yanlış"),
    ("j ja sant", "n nej falskt"),
    ("j ja sand", "n nej falsk"),
    ("j ja sant", "n nei usant"),
    ("k kyllä", "e ei"),
    ("д да", "н нет"),
    ("a ano", "n ne"),
    ("y ya", "t tidak"),
    ("はい 有 有り あり", "いいえ 無 無し なし"),
    ("是 有", "否 不是 无 没有"),
    ("예 네 유", "아니오 아니요 무"),
)
"""Words for yes and for no, a language a line."""
_SEXES: Final = (
    ("m male man men", "f female woman women w"),
    ("m mann männlich maennlich herr", "w f frau weiblich"),
    ("m h homme masculin", "f femme féminin feminin"),
    ("h hombre varón varon", "m mujer"),
    ("m masculino hombre varón varon", "f femenino mujer"),
    ("m masculino homem", "f feminino mulher"),
    ("h homem", "m mulher"),
    ("m maschio maschile uomo", "f femmina femminile donna"),
    ("u uomo", "d donna"),
    ("m man mannelijk", "v vrouw vrouwelijk"),
    ("m mężczyzna mezczyzna męska", "k kobieta żeńska"),
    ("e erkek bay", "k kadın bayan"),
    ("m man manlig", "k kvinna kvinnlig"),
    ("m mand mann", "k kvinde kvinne"),
    ("m mies", "n nainen"),
    ("м муж мужской мужчина", "ж жен женский женщина"),
    ("m muž", "ž žena"),
    ("l laki-laki pria", "p perempuan wanita"),
    ("男 男性", "女 女性"),
    ("남 남자 남성", "여 여자 여성"),
)
"""Words for men and for women, a usage a line: in Spanish, M may be masculino or mujer."""


class NearPair(NamedTuple):
    """Two values with near spellings: the frequent one, the rare one, and their rows."""

    frequent: str
    frequent_rows: int
    rare: str
    rare_rows: int


def fold(text: str, rules: Collection[str] = FOLDINGS) -> str:
    """The form by which values are compared; folding it again changes nothing."""
    if text.isascii() and text.isprintable() and " " not in text and text[:1] not in _QUOTES and text[-1:] != ".":
        return text.casefold() if "case" in rules else text  # most texts: no rule but that of case changes them
    before = None
    while text != before:
        before = text
        if "unicode" in rules:
            text = unicodedata.normalize("NFKC", text).translate(_ALIKE)
        if "blanks" in rules:
            text = _single_blanks(text)
        if "stop" in rules:
            text = _unquoted(text)
            text = text[:-1] if text.endswith(".") and not text.endswith("..") else text
        if "case" in rules:
            text = text.replace("\u0130", "i").replace("\u0131", "i").casefold().replace("i\u0307", "i")
    return text


def plain_digits(text: str) -> str:
    """The text with letters of one width, and Latin digits in place of others."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in plain)


def spellings(counts: Mapping[str, int], rules: Collection[str] = FOLDINGS) -> dict[str, str]:
    """The printed spelling of each text of a column, in order of first appearance.

    It is the most frequent one that is not all capitals; of equals, the first.
    """
    if not rules:
        return {text: text for text in counts}
    folded = {text: fold(text, rules) for text in counts}
    numbers: dict[str, str] = {}
    if not holds_codes(folded.values()):
        plain = {form: Decimal(form) for form in folded.values() if _PLAIN.fullmatch(form)}
        numbers = {form: format(number.normalize(), "f") if number else "0" for form, number in plain.items()}
    words = same_words(dict.fromkeys(folded.values(), 1), rules)
    groups: dict[str, dict[str, int]] = {}
    for text, form in folded.items():
        variants = groups.setdefault(words.get(form) or numbers.get(form) or form, {})
        # Fit to be printed: without the blanks and quotes around it, its accents composed.
        clean = unicodedata.normalize("NFC", text) if "unicode" in rules else text
        clean = _single_blanks(clean) if "blanks" in rules else clean
        clean = _unquoted(clean) if "stop" in rules else clean
        variants[clean] = variants.get(clean, 0) + counts[text]
    printed = {}
    for form, variants in groups.items():
        candidates = [spelling for spelling in variants if not spelling.isupper()] or list(variants)
        printed[form] = max(candidates, key=variants.__getitem__)
    return {text: printed[words.get(form) or numbers.get(form) or form] for text, form in folded.items()}


def holds_codes(forms: Collection[str]) -> bool:
    """Whether a column holds codes: one begins with a zero, and all that have digits are equally long."""
    present = [form for form in forms if any(letter.isdigit() for letter in form)]
    padded = any(len(form) > 1 and form[0] == "0" and form.isdigit() for form in present)
    return padded and len({len(form) for form in present}) == 1


def same_words(counts: Mapping[str, int], rules: Collection[str] = FOLDINGS) -> dict[str, str]:
    """Folded form -> the word it is another word for: y and yes, M and Male.

    Yes and no join in a column that holds nothing else. Letters and words of sexes join in a column of sexes, which may
    hold up to three other values, where every usage that fits agrees.
    """
    if "case" not in rules:
        return {}
    forms = {form for text in counts if (form := fold(text, rules))}
    for pair in _YES_NO:
        words = _members(pair)
        if forms and forms <= words.keys():
            return {form: words[form] for form in forms}
    sexes = set[str]().union(*(_members(pair) for pair in _SEXES))
    present = forms & sexes
    if len(forms - sexes) > 3 or not any(len(form) > 1 for form in present):
        return {}
    readings = [words for pair in _SEXES if present <= (words := _members(pair)).keys()]
    parts = {
        frozenset(frozenset(form for form in present if words[form] == words[second]) for second in present)
        for words in readings
    }
    if len(parts) != 1:
        return {}
    return {form: readings[0][form] for form in present}


def near_pairs(counts: Mapping[str, int], rules: Collection[str] = FOLDINGS) -> list[NearPair]:
    """Values that look like slips of another one: for a question, as they are never joined.

    They differ by accents, blanks or punctuation, or by one letter in five or more, and the rarer one has at most a
    fifth of the rows of the other.
    """
    joined = spellings(counts, rules)
    rows: dict[str, int] = {}
    for text, count in counts.items():
        rows[joined[text]] = rows.get(joined[text], 0) + count
    frequent = sorted(rows, key=lambda value: -rows[value])[:_NEAR_MOST]
    # Letters and digits of a value without accents.
    bare = {
        value: "".join(letter for letter in unicodedata.normalize("NFD", fold(value)) if letter.isalnum())
        for value in frequent
    }
    pairs = []
    for place, first in enumerate(frequent):
        for second in frequent[place + 1 :]:
            if rows[second] > _NEAR_SHARE * rows[first] or not bare[first]:
                continue
            if bare[first] == bare[second] or _one_letter_apart(bare[first], bare[second]):
                pairs.append(NearPair(first, rows[first], second, rows[second]))
    return pairs


def _single_blanks(text: str) -> str:
    return " ".join(text.translate(_INVISIBLE).split())


def _unquoted(text: str) -> str:
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text


@lru_cache(maxsize=64)
def _members(pair: tuple[str, str]) -> dict[str, str]:
    """Folded word -> the first long word of its side."""
    sides = [[fold(word) for word in side.split()] for side in pair]
    return {word: next((long for long in side if len(long) > 1), side[0]) for side in sides for word in side}


def _one_letter_apart(first: str, second: str) -> bool:
    """Whether one letter too many, too few, wrong or exchanged with the next makes one of the other."""
    if min(len(first), len(second)) < _NEAR_LENGTH or any(letter.isdigit() for letter in first + second):
        return False
    short, long = sorted((first, second), key=len)
    if len(long) - len(short) > 1:
        return False
    place = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[place:] == long[place + 1 :]
    exchanged = short[place + 1 : place + 2] + short[place : place + 1]
    return short[place + 1 :] == long[place + 1 :] or exchanged + short[place + 2 :] == long[place:]
