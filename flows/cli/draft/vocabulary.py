"""Words by which values and columns are recognised: decisions, names of columns, people, in 31 languages.

The words are in `words/`, a file a language. Words that mean a missing value: `tasks.ingest.intake.missing`; of places:
`schemas.blocks`. Texts are compared without case, accents and punctuation, word by word; Chinese, Japanese and Korean
letter by letter.
"""

import csv
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal

from schemas.audit import column
from schemas.blocks import is_place
from tasks.ingest.intake.folding import fold

LANGUAGES: Final = (
    *("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "sv"),
    *("ja", "zh", "ko", "da", "no", "fi", "ru", "cs", "id", "ar"),
    *("hu", "ro", "el", "uk", "vi", "he", "hi", "hr", "bg", "sk", "th"),
)
_INFLECTED: Final = ("es", "pt", "it", "fr", "pl", "cs", "ru", "ro", "uk", "hr", "bg", "sk")
"""Languages that write a word with another ending for another gender or number."""
_ENDING: Final = re.compile(r"(?:[oaei]s|[oaeiyuоаыиеяії]|ый|ий|ая|ое|ые|ого)$")
_SHORTEST_ROOT: Final = 5
_VERB_LAST: Final = ("tr",)
_NOT_DONE: Final = re.compile(r"m[ae](?:di|mis|mistir)$")
"""Of Turkish verbs, which have their negation inside: `görmedi`, `verilmemiştir`; in plain letters."""
_COMPOUNDING: Final = ("de", "nl", "sv", "da", "no", "fi", "hu")
"""Languages that write several words as one: a name may end with a word of the list."""
_SHORTEST_ENDING: Final = 5
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EAST: Final = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of languages that put no blanks between words."""
_PARTS: Final = re.compile(r"(?:[^\W_]|[\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])+")
"""Words, with the vowels of Hindi and Thai that are signs of their own."""
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"})
_VOWEL: Final = re.compile("[aeiouy]")
_TWICE: Final = re.compile(r"(.)\1+")
_SHORTEST_SKELETON: Final = 3
_CUT: Final = re.compile(r"([^\W\d_]{4,})\.")
_OF_CODES: Final = re.compile(r"(?:cde?|codes?|de?sc|descr|txt|type?|grp|group|cat|ind|flg|flag|nm|name|val|kz|kod)$")
_OF_PERSON: Final = re.compile(r"^(?:applicant|applcnt|appl|apl|app|borrower|borr|brw|customer|cust|client|clnt|prim)")
_DIGITS: Final = re.compile(r"(?<=[^\W\d_])(?=\d)")

Side = Literal["favourable", "unfavourable", "neither"]
OPPOSITE: Final[dict[str, Side]] = {"favourable": "unfavourable", "unfavourable": "favourable", "neither": "neither"}
_SIDES: Final[tuple[Side, ...]] = ("favourable", "unfavourable", "neither")


@dataclass(frozen=True)
class Phrase:
    """A phrase of the vocabulary."""

    kind: str
    means: str
    text: str
    """As it is written in the list."""
    language: str
    note: str
    parts: tuple[str, ...]
    stem: bool
    """Whether its last word may go on: `aprobad*`."""
    alone: bool
    """Whether it has to be all of the text: `=cor`."""


@dataclass(frozen=True)
class Meaning:
    """What a value of a decision means, and what there is to ask about it."""

    side: Side
    note: str = ""


def plain(text: str) -> str:
    """A text without case, accents and the ways in which signs are written."""
    decomposed = unicodedata.normalize("NFD", fold(text).translate(_LETTERS))
    return unicodedata.normalize("NFC", "".join(ch for ch in decomposed if not "\u0300" <= ch <= "\u036f"))


@lru_cache(maxsize=65536)
def parts(text: str) -> tuple[str, ...]:
    """The words of a text: `applicantRace-1` is applicant, race, 1, and `N° Solicitud` no, solicitud."""
    return tuple(_PARTS.findall(plain(_CAMEL.sub(" ", text)).replace("n°", "no ")))


@lru_cache(maxsize=1)
def phrases() -> tuple[Phrase, ...]:
    """All phrases of all languages."""
    phrase_list = []
    for language in LANGUAGES:
        text = (files(__package__) / "words" / f"{language}.csv").read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines()):
            written = row["phrase"].lstrip("=").rstrip("*")
            stem, exact_phrases = row["phrase"].endswith("*"), row["phrase"].startswith("=")
            phrase_list.append(
                Phrase(
                    row["kind"], row["means"], row["phrase"], language, row["note"], parts(written), stem, exact_phrases
                )
            )
    return tuple(phrase for phrase in phrase_list if phrase.parts)


class _Index:
    """Phrases of one kind, found by their first word."""

    def __init__(self, kind: str, rooted: bool = False) -> None:
        """``rooted``: without endings, and without phrases that then are those of another meaning."""
        self.exact: dict[tuple[str, ...], list[Phrase]] = {}
        self.by_first: dict[str, list[Phrase]] = {}
        self.stems: dict[str, list[Phrase]] = {}
        self.endings: dict[str, list[Phrase]] = {}
        self.eastern: list[Phrase] = []
        for phrase in _rooted(kind) if rooted else phrases():
            if phrase.kind != kind:
                continue
            self.exact.setdefault(phrase.parts, []).append(phrase)
            if phrase.alone:
                continue
            if _EAST.search(phrase.parts[0]):
                self.eastern.append(phrase)
            elif phrase.stem and len(phrase.parts) == 1:
                self.stems.setdefault(phrase.parts[0][:2], []).append(phrase)
            else:
                self.by_first.setdefault(phrase.parts[0], []).append(phrase)
            if phrase.language in _COMPOUNDING and len(phrase.parts) == 1 and len(phrase.parts[0]) >= _SHORTEST_ENDING:
                self.endings.setdefault(phrase.parts[0], []).append(phrase)

    def whole(self, words: tuple[str, ...]) -> list[Phrase]:
        """Phrases that are the whole text."""
        exact = self.exact.get(words, [])
        if exact or not words:
            return exact
        inside = [phrase for phrase, at in self.inside(words) if at == 0 and len(phrase.parts) == len(words)]
        return [phrase for phrase in inside if not _EAST.search(phrase.parts[0]) or phrase.parts == words]

    def inside(self, words: tuple[str, ...]) -> Iterator[tuple[Phrase, int]]:
        """Phrases in a text, with the place of their first word."""
        for at, word in enumerate(words):
            for phrase in self.by_first.get(word, ()):
                if words[at : at + len(phrase.parts)] == phrase.parts:
                    yield phrase, at
            for phrase in self.stems.get(word[:2], ()):
                if word.startswith(phrase.parts[0]):
                    yield phrase, at
        yield from self.by_first_stems(words)
        joined = "".join(words)
        if self.eastern and _EAST.search(joined):
            for phrase in self.eastern:
                if "".join(phrase.parts) in joined:
                    yield phrase, joined.index("".join(phrase.parts))

    def by_first_stems(self, words: tuple[str, ...]) -> Iterator[tuple[Phrase, int]]:
        """Phrases of several words with a stem as the last one."""
        for at, word in enumerate(words):
            for phrase in self.by_first.get(word, ()):
                last = at + len(phrase.parts) - 1
                if phrase.stem and len(phrase.parts) > 1 and last < len(words):
                    body = words[at:last] == phrase.parts[:-1]
                    if body and words[last].startswith(phrase.parts[-1]):
                        yield phrase, at

    def ending(self, words: tuple[str, ...]) -> Iterator[Phrase]:
        """Phrases with which a word of a compounding language ends."""
        for word in words:
            for start in range(1, len(word) - _SHORTEST_ENDING + 1):
                yield from self.endings.get(word[start:], ())


def _rooted(kind: str) -> Iterator[Phrase]:
    """The phrases of a kind without the endings of their words, those aside that mean one thing and another."""
    of_root: dict[tuple[str, ...], list[Phrase]] = {}
    for phrase in phrases():
        if phrase.kind == kind and phrase.language in _INFLECTED and not phrase.alone:
            of_root.setdefault(roots(phrase.parts), []).append(phrase)
    for root, alike in of_root.items():
        if len({phrase.means for phrase in alike}) == 1 and max(map(len, root)) >= _SHORTEST_ROOT:
            yield replace(alike[0], parts=root)


def roots(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without the endings of gender, case and number: `stornata` and `stornato` are `stornat`."""
    return tuple(_ENDING.sub("", word) if len(word) > _SHORTEST_ROOT else word for word in words)


@lru_cache(maxsize=32)
def _index(kind: str, rooted: bool = False) -> _Index:
    return _Index(kind, rooted)


# --------------------------------------------------------------------------------------------------------------------
# Values of a decision.


@lru_cache(maxsize=65536)
def meaning(value: str) -> Meaning | None:
    """The side of a value of a decision by its words; None if they are unknown.

    The whole phrase counts first, then the longest phrase in it; a negation before that phrase turns it round, and a
    word of waiting before it says that nothing is decided. A denial that comes first is not undone by its reason, such
    as missing documents; one by the applicant is an offer that was not taken.
    """
    words, index = parts(value), _index("decision")
    exact_phrases = index.whole(words)
    if not exact_phrases:  # `CNTR OFFER` is a counter offer
        words = tuple(_unabridged(word) for word in words)
        exact_phrases = index.whole(words)
    if exact_phrases:
        return Meaning(_side(exact_phrases[0]), exact_phrases[0].note)
    matches = list(_matches(words, index))
    if not matches and (sides := _of_short_words(value)):
        return Meaning(next(iter(sides)))
    if not matches:
        cut = tuple(word for text in words for word in _without_prefix(text, index))
        words, matches = cut, list(_matches(cut, index))
    if not matches:
        words = roots(parts(value))
        matches = list(_matches(words, _index("decision", True)))
    if not matches:
        east = _east("waiting", "before") + _east("waiting", "after")
        is_waiting = any(_index("waiting").inside(parts(value))) or value.startswith(east) or value.endswith(east)
        return Meaning("neither", "stage") if is_waiting else None
    phrase, at = max(matches, key=_standing)
    by_applicant = any(_index("by applicant").inside(words))
    heads = [match for match in matches if match[0].means == "unfavourable" and _is_head(match, words)]
    if phrase.means == "neither" and phrase.note != "preapproval" and heads and not by_applicant:
        phrase, at = heads[0]
    if _is_waiting(phrase, at, words):
        return Meaning("neither")
    side = _side(phrase)
    if _is_negated(phrase, at, words):
        return Meaning(OPPOSITE[side])
    if side == "unfavourable" and by_applicant:
        return Meaning("favourable", "not taken")
    return Meaning(side, phrase.note)


def _of_short_words(value: str) -> set[Side]:
    """The side of the words that a value cuts off with a full stop, such as `zurückgez.`; empty where two differ."""
    sides: set[Side] = set()
    for short in _cut(value):
        alike = (p for p in phrases() if p.kind == "decision" and not p.alone and p.parts[0].startswith(short))
        sides |= {_side(phrase) for phrase in alike if len(phrase.parts) == 1}
    return sides if len(sides) == 1 else set()


def sides_of_codes(codes: Iterable[str]) -> dict[str, Side]:
    """The sides of codes that are the first letters of words: `ACC`, `REF`, `ANN`; empty where they may mean others.

    One language has to know every code as the beginning of words of one side, and both sides have to be among them; no
    other language may read them otherwise.
    """
    listed, readings = list(codes), []
    for language in LANGUAGES:
        single = [p for p in phrases() if p.kind == "decision" and p.language == language and len(p.parts) == 1]
        sides = [{_side(p) for p in single if p.parts[0].startswith(code)} for code in listed]
        if all(len(of_code) == 1 for of_code in sides):
            reading = {code: next(iter(of_code)) for code, of_code in zip(listed, sides, strict=True)}
            if {"favourable", "unfavourable"} <= set(reading.values()):
                readings.append(reading)
    return readings[0] if readings and all(reading == readings[0] for reading in readings) else {}


def _cut(text: str) -> tuple[str, ...]:
    """The words of a text that a full stop cuts off."""
    return tuple(_CUT.findall(plain(text) + "." * text.rstrip().endswith(".")))


def _unabridged(word: str) -> str:
    """The English word of a decision that a word without vowels is short for: `dclnd` for declined."""
    return (
        word if len(word) < _SHORTEST_SKELETON or _VOWEL.search(word[1:]) else _skeletons().get(_skeleton(word), word)
    )


@lru_cache(maxsize=1)
def _skeletons() -> Mapping[str, str]:
    """Words of a decision by their consonants; those that several sides share aside."""
    words: dict[str, set[tuple[str, str]]] = {}
    for phrase in phrases():
        if phrase.kind == "decision" and phrase.language == "en" and len(phrase.parts) == 1:
            words.setdefault(_skeleton(phrase.parts[0]), set()).add((phrase.means, phrase.note))
    single = (p for p in phrases() if p.kind == "decision" and p.language == "en" and len(p.parts) == 1)
    written = sorted((phrase.parts[0] for phrase in single if not phrase.alone), key=len)  # the longest is the word
    return {_skeleton(word): word for word in written if len(words[_skeleton(word)]) == 1}


def _skeleton(word: str) -> str:
    """The first letter and the consonants of a word, double ones once."""
    return _TWICE.sub(r"\1", word[:1] + _VOWEL.sub("", word[1:]))


def _matches(words: tuple[str, ...], index: _Index) -> Iterator[tuple[Phrase, int]]:
    """Phrases of a decision in a value; no yes or no among other words, and no abbreviation."""
    apart = _index("yes").exact if len(words) > 1 else {}
    for phrase, at in index.inside(words):
        if len("".join(phrase.parts)) > 2 - 1 * _is_east(phrase) and phrase.parts not in apart:
            yield phrase, at


def _without_prefix(word: str, index: _Index) -> tuple[str, ...]:
    """A word in two where a negation is written together with a word of a decision: `nevyhověl`, `неодобрен`."""
    for negation in _negations("before"):
        tail = word.removeprefix(negation)
        if tail != word and len(tail) >= _SHORTEST_ROOT and any(index.inside((tail,))):
            return negation, tail
    return (word,)


def _is_head(match: tuple[Phrase, int], words: tuple[str, ...]) -> bool:
    """Whether a phrase is the first of a value; the last in a language in which the verb is."""
    phrase, at = match
    return at + len(phrase.parts) == len(words) if phrase.language in _VERB_LAST else not at and not _is_east(phrase)


def _is_waiting(phrase: Phrase, at: int, words: tuple[str, ...]) -> bool:
    """Whether words say that a phrase is yet to come: `pending approval`, `onay bekliyor`, `待核准`, `承認待ち`."""
    if phrase.means == "neither":
        return False
    if _is_east(phrase):
        joined, end = "".join(words), at + len("".join(phrase.parts))
        return joined[:at].endswith(_east("waiting", "before")) or joined[end:].startswith(_east("waiting", "after"))
    end = at + len(phrase.parts)
    for waiting, place in _index("waiting").inside(words):
        last = place + len(waiting.parts)
        if (waiting.means == "before" and place < at) or (
            waiting.means == "after" and (place, last) == (end, len(words))
        ):
            return True
    return False


def _is_negated(phrase: Phrase, at: int, words: tuple[str, ...]) -> bool:
    """Whether a phrase has a negation before or behind it: `nie przyznano`, `uygun değil`, `不予录用`, `承認されず`."""
    if _is_east(phrase):  # no blanks part the words
        joined, end = "".join(words), at + len("".join(phrase.parts))
        return joined[:at].endswith(_east("negation", "before")) or joined[end:].startswith(_east("negation", "after"))
    end = at + len(phrase.parts)
    before, after = words[at - 1] if at else "", words[end] if end < len(words) else ""
    is_not_done = phrase.language in _VERB_LAST and end < len(words) and bool(_NOT_DONE.search(words[-1]))
    return before in _negations("before") or after in _negations("after") or is_not_done


def _standing(match: tuple[Phrase, int]) -> tuple[bool, int, int, int, int]:
    """The weight of a phrase in a value: a stage of a procedure least, then the longer one, then its place.

    English words of a decision come first: `rejected after interview`. In East Asia and in Turkish the last
    one decides.
    """
    phrase, at = match
    length = len("".join(phrase.parts))  # of two stems of a word, such as `recu` and `recusad`, the longer one
    letters = length if _is_east(phrase) else 0
    is_last = _is_east(phrase) or phrase.language in _VERB_LAST
    return phrase.note != "stage", len(phrase.parts), letters, at if is_last else -at, length


def _is_east(phrase: Phrase) -> bool:
    return bool(_EAST.search(phrase.parts[0]))


def _side(phrase: Phrase) -> Side:
    return next(side for side in _SIDES if side == phrase.means)


@lru_cache(maxsize=4)
def _negations(place: str) -> frozenset[str]:
    return frozenset("".join(p.parts) for p in phrases() if p.kind == "negation" and p.means == place)


@lru_cache(maxsize=4)
def _east(kind: str, place: str) -> tuple[str, ...]:
    """Words of a kind directly before or after a phrase, in a text without blanks."""
    texts = ("".join(p.parts) for p in phrases() if p.kind == kind and p.means == place)
    return tuple(text for text in texts if _EAST.search(text))


@lru_cache(maxsize=2)
def answers(means: Literal["yes", "no"]) -> frozenset[str]:
    """Folded words for yes, or for no."""
    return frozenset(" ".join(p.parts) for p in phrases() if p.kind == "yes" and p.means == means)


# --------------------------------------------------------------------------------------------------------------------
# Names of columns.


def is_named(name: str, kind: str) -> bool:
    """Whether a column's name holds a phrase of a kind: decision, after, id, weight, place, date, year, ..."""
    return kind in _kinds(name)


@lru_cache(maxsize=16384)
def _kinds(name: str) -> frozenset[str]:
    words, index = parts(name), _index("name")
    kinds = {phrase.means for phrase in index.whole(words)}
    kinds |= {phrase.means for phrase, _ in index.inside(words)}
    kinds |= {phrase.means for phrase in index.ending(words)}
    kinds |= {"after"} if column.set_by_decision(name) else set()
    kinds -= {"after", "decision", "for", "against"} if "before" in kinds else set()  # `previous_loan_status`
    kinds |= {"id"} if name.rstrip().endswith(("#", "№")) else set()
    return frozenset(kinds | ({"place"} if is_place(name) else set()))


def ends_as_identifier(name: str) -> bool:
    """Whether the last word of a column's name is one for an identifier, such as `loan_key`."""
    last = parts(name)[-1:]
    return any(phrase.means in ("id", "id_if_unique") for phrase in _index("name").whole(last))


@lru_cache(maxsize=16384)
def decision_rank(name: str) -> int:
    """Points of a name as that of a decision: 30 if it is one, 25 of a flag, 20 if it holds one, else 0."""
    if "decision" not in _kinds(name) and not {"for", "against"} & _kinds(name):
        return 0
    if any(phrase.means == "decision" for phrase in _index("name").whole(parts(name))):
        return 30
    if {"for", "against"} & _kinds(name):
        return 25
    return 20 if "decision" in _kinds(name) else 0


@lru_cache(maxsize=16384)
def protected_kind(name: str) -> str:
    """The protected attribute in a column's name: race, sex, age, ...; empty if none."""
    words, index = parts(_DIGITS.sub(" ", name)), _index("protected")
    matched = [*index.whole(parts(name)), *index.whole(words), *(phrase for phrase, _ in index.inside(words))]
    matched += index.ending(words)
    matched = matched or [phrase for word in words for phrase in _glued(word, index)]
    if not matched:  # `Staatsangehörigk.`
        shorts = _cut(name)
        matched = [
            phrase
            for words_of, phrases_of in index.exact.items()
            for phrase in phrases_of
            if len(words_of) == 1 and shorts and words_of[0].startswith(shorts)
        ]
        matched = matched if len({phrase.means for phrase in matched}) == 1 else []
    if not matched:
        return column.kind_of(name) if column.is_personal(name) else ""
    longest = max(len(phrase.parts) for phrase in matched)  # `país de nascimento` is no `nascimento`
    kinds = {phrase.means for phrase in matched if len(phrase.parts) == longest}
    first = next(kind for kind in KINDS if kind in kinds)
    if first == "age" and len(words) > 1 and any(p.means == "thing" for p, _ in _index("not_age").inside(words)):
        return ""
    return first


def _glued(word: str, index: _Index) -> list[Phrase]:
    """Phrases in a word of a core system with a word for codes behind it or for a person before it: `RACEDSC`."""
    if len(word) > _SHORTEST_SKELETON and not _VOWEL.search(word[:-1]):  # `gndr`, `ethncty`
        return [
            phrase
            for words_of, phrases_of in index.exact.items()
            for phrase in phrases_of
            if len(words_of) == 1 and phrase.language == "en" and _skeleton(words_of[0]) == _skeleton(word)
        ]
    head, tail = _OF_PERSON.sub("", word), _OF_CODES.sub("", word)
    bare = {head, tail, _OF_CODES.sub("", head)} - {word}
    return [phrase for text in sorted(bare) if len(text) >= _SHORTEST_SKELETON for phrase in index.whole((text,))]


KINDS: Final = (
    *("race", "ethnicity", "caste", "sex", "age", "origin", "marital status", "religion", "disability", "veteran"),
    *("pregnancy", "orientation", "language"),
)
"""Protected attributes; the first are drafted first."""


# --------------------------------------------------------------------------------------------------------------------
# Values that describe people.


_NUMBERED: Final = re.compile(r"\W*\d{1,3}\W+(?=[^\W\d])")


def _unnumbered(value: str) -> str:
    """A label without the code in front of it: `1 - Male` is Male."""
    return _NUMBERED.sub("", value, count=1) if value[:4].strip("([ #")[:1].isdigit() else value


def _is_word(kind: str, value: str, means: str = "") -> bool:
    return any(phrase.means == means or not means for phrase in _index(kind).whole(parts(_unnumbered(value))))


def is_nobody(group: str) -> bool:
    """Whether a value of a protected attribute is no group of people."""
    words = parts(_unnumbered(group))
    if not words or _is_word("nobody", group):
        return True
    longest = max((len(phrase.parts) for phrase, _ in _index("nobody").inside(words)), default=0)
    return longest > 1 or (longest == 1 and bool(_EAST.search(words[0])) and len("".join(words)) < 8)


def is_rest(group: str) -> bool:
    """Whether a group is what is left of the others, and so no reference for them."""
    return _is_word("rest", group)


def is_usual(kind: str, group: str) -> bool:
    """Whether a group is the usual comparison group of an attribute: white, not Hispanic, not disabled."""
    return _is_word("reference", group, "race" if kind == "caste" else kind)


_LETTER_PAIRS: Final = (
    ("m", "f"),
    ("m", "w"),
    ("h", "f"),
    ("h", "m"),
    ("m", "v"),
    ("m", "k"),
    ("e", "k"),
    ("u", "d"),
    ("l", "p"),
    ("м", "ж"),
    ("ч", "ж"),
    ("α", "γ"),
    ("ז", "נ"),
)
"""Letters for men and women that stand beside each other in a column of sexes."""


def men_and_women(values: Collection[str]) -> tuple[str, str] | None:
    """Which values mean men and women; None if one of them is unknown."""
    by_form = {" ".join(parts(_unnumbered(value))) or plain(value): value for value in values}
    for man, woman in _LETTER_PAIRS:
        if man in by_form and woman in by_form and not any(len(form) > 1 for form in by_form if form in _sexes()):
            return by_form[man], by_form[woman]
    men = [value for form, value in by_form.items() if "male" in _sexes().get(form, ())]
    women = [value for form, value in by_form.items() if _sexes().get(form, ()) == {"female"}]
    men = [value for value in men if len(plain(_unnumbered(value))) > 1] or men
    women = [value for value in women if len(plain(_unnumbered(value))) > 1] or women
    if not men and not women:  # `Male owned`, `Female owned`
        of_word = {
            value: {sex for word in form.split() if len(word) > 1 for sex in _sexes().get(word, ())}  # letters aside
            for form, value in by_form.items()
        }
        men = [value for value, sexes in of_word.items() if sexes == {"male"}]
        women = [value for value, sexes in of_word.items() if sexes == {"female"}]
    return (men[0], women[0]) if len(men) == 1 and len(women) == 1 and men != women else None


@lru_cache(maxsize=1)
def _sexes() -> Mapping[str, set[str]]:
    words: dict[str, set[str]] = {}
    for phrase in phrases():
        if phrase.kind == "sex" and phrase.means != "neither":
            words.setdefault(" ".join(phrase.parts), set()).add(phrase.means)
    return words


def people_kind(values: Iterable[str], *, letters: bool = False) -> str:
    """The protected attribute by values alone: sex, race, caste or origin; empty if none.

    Letters such as M and F are sexes only where the column has no name that says otherwise (``letters``).
    """
    people = [value for value in values if not is_nobody(value)]
    if len(people) < 2:
        return ""
    long = [value for value in people if len(plain(value)) > 1 or _EAST.search(value)]
    if men_and_women(people) and len(people) <= 4 and (len(long) >= 2 or (letters and len(people) <= 3)):
        return "sex"
    for kind in ("race", "caste"):
        words = [value for value in people if _is_word(kind, value)]
        if len(words) >= max(2, len(people) - 2) and any(len(plain(value)) > 1 for value in words):
            return kind
    natives = [value for value in people if _is_word("origin", value, "native")]
    foreigners = [value for value in people if _is_word("origin", value, "foreign")]
    return "origin" if natives and foreigners and len(natives) + len(foreigners) == len(people) else ""


def tells_sector(text: str, sector: str) -> bool:
    """Whether a name or value belongs to a sector: lending, hiring, admissions or justice."""
    return any(phrase.means == sector for phrase, _ in _index("sector").inside(parts(text)))
