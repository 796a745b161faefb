"""Characters that work a terminal or turn what a page shows: found in what people write, and made visible elsewhere."""

import unicodedata
from typing import Final

_CONTROLS: Final = frozenset(chr(code) for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n")
_TURNS: Final = frozenset(map(chr, (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F))))
"""Marks of direction, and those that embed or override it."""
_ISOLATES: Final = frozenset(map(chr, range(0x2066, 0x206A)))
"""Marks that set a text of another direction apart: reports put them around names."""


def _escaped(letters: frozenset[str]) -> dict[int, str]:
    return {
        ord(letter): f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}" for letter in letters
    }


_ALL = _escaped(_CONTROLS | _TURNS | _ISOLATES)
_ON_A_PAGE = _escaped(_CONTROLS | _TURNS)


def visible(text: str) -> str:
    """A text of data, of a spec or of a file's name as it may be shown: control characters are escaped."""
    return text.translate(_ALL)


def on_a_page(text: str) -> str:
    """The same for a text that may hold isolates of ours, which turn nothing around them."""
    return text.translate(_ON_A_PAGE)


def controls(text: str) -> str:
    """The characters of a text that are not allowed in the log, escaped, each once; empty if there are none."""
    wrong = [letter for letter in dict.fromkeys(text) if ord(letter) in _ALL or unicodedata.category(letter) == "Cs"]
    return " ".join(letter.encode("unicode_escape").decode() for letter in wrong)
