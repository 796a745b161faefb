"""How plainly a page reads: its blocks of text, longest sentence, reading ease and banned words.

Reading ease is that of Flesch (1948), 206.8 less 1.015 words a sentence less 84.6 syllables a word: 60 and more is
plain English. Syllables are counted by the hyphenation patterns of pyphen. Numbers are no words there.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

import pyphen

_BLOCKS = frozenset(("h1", "h2", "h3", "p", "li", "td", "th", "dt", "dd", "summary", "figcaption"))
_SILENT = frozenset(("svg", "code", "script", "style"))
_END = re.compile(r"(?<=[.!?:;])\s+(?=\S)")
_WORD = re.compile(r"[^\W_]+(?:['\u2019.,-][^\W_]+)*")
COLUMNS = 3
"""That a question has beside its name: result, limit, how reliable."""


@dataclass(frozen=True)
class Reading:
    """What a page is to read."""

    headings: int
    """Of the first level."""
    longest: int
    """Words of the longest sentence."""
    ease: float
    banned: tuple[str, ...]
    """Words that may not stand there and do."""
    incomplete: int
    """Questions without each of their columns."""


def reading_of(page: bytes) -> Reading:
    """How the text of a page reads; drawings and commands are left out."""
    reader = _Blocks()
    reader.feed(page.decode())
    reader.close()
    texts = [text for tag, text in reader.blocks if text]
    return Reading(
        headings=sum(tag == "h1" for tag, _ in reader.blocks),
        longest=longest_sentence(texts),
        ease=reading_ease(texts),
        banned=banned_in(texts),
        incomplete=sum(len(cells) != COLUMNS or not all(cells) for cells in reader.rows),
    )


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; one that ends with a colon or semicolon ends there."""
    return [part for part in _END.split(text.strip()) if part]


def words_of(text: str) -> list[str]:
    """Words and numbers; signs alone are none."""
    return _WORD.findall(text)


def longest_sentence(texts: Iterable[str]) -> int:
    """Words of the longest sentence."""
    return max((len(words_of(sentence)) for text in texts for sentence in sentences_of(text)), default=0)


def reading_ease(texts: Iterable[str]) -> float:
    """Flesch reading ease of texts, each a sentence or several; 0 without a word."""
    words = [
        [word for word in words_of(sentence) if word[0].isalpha()] for text in texts for sentence in sentences_of(text)
    ]
    of_sentences = [sentence for sentence in words if sentence]
    count = sum(map(len, of_sentences))
    if not count:
        return 0.0
    syllables = sum(_syllables(word) for sentence in of_sentences for word in sentence)
    return 206.835 - 1.015 * count / len(of_sentences) - 84.6 * syllables / count


def _syllables(word: str) -> int:
    return len(_patterns().positions(word.lower())) + 1


@cache
def _patterns() -> pyphen.Pyphen:
    return pyphen.Pyphen(lang="en_US")


@cache
def banned_words() -> tuple[str, ...]:
    """The words that may not stand on the first page, one a line of the file."""
    text = files(__package__).joinpath("banned_words.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


@cache
def _banned() -> re.Pattern[str]:
    alternatives = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in banned_words())
    return re.compile(rf"\b(?:{alternatives})\b|\d[.,]?\d*\.\d\d\d", re.IGNORECASE)


def banned_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The words that may not stand there, as they stand; and numbers with three decimals."""
    return tuple(match[0] for text in texts for match in _banned().finditer(text))


class _Blocks(HTMLParser):
    """The text of every block of a page, and the cells of every question."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._silent = 0
        self._table = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a row of a question, or a part that is not read."""
        attributes = dict(attrs)
        self._silent += tag in _SILENT
        if tag == "table":
            self._table = attributes.get("class") or ""
        if tag == "tr" and self._table == "found" and "tbody" in self._open:
            self.rows.append([])
        if tag in _BLOCKS and not self._silent:
            self.blocks.append((tag, ""))
        if tag in (*_BLOCKS, "tbody"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        if tag in _SILENT and self._silent:
            self._silent -= 1
        if tag == "table":
            self._table = ""
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
            if tag == "td" and self._table == "found" and self.rows:
                self.rows[-1].append(self.blocks[-1][1].strip())

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        if not self._silent and any(tag in _BLOCKS for tag in self._open) and self.blocks:
            tag, text = self.blocks[-1]
            self.blocks[-1] = tag, " ".join(f"{text} {data}".split())
