"""What people say of themselves and of a run: names and texts that an entry of the log may hold.

A name is what somebody said. Only a key tells whose entry it is.
"""

import unicodedata

from schemas.errors import SpecError
from tasks.lake import log

MOST_NAME = 100
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that no page shows: controls, marks of direction, separators of lines."""


def name(said: str, option: str = "--as") -> str:
    """A name as it is kept: without blanks around it, and of characters that are seen.

    Raises:
        SpecError: it is empty, too long, or has characters that are not printed.
    """
    kept = said.strip()
    if not kept:
        raise SpecError(f"{option} is empty: give a name, such as {option} 'Ann Lee'")
    if len(kept) > MOST_NAME:
        raise SpecError(f"{option} has {len(kept):,} letters, and at most {MOST_NAME} are kept")
    if any(unicodedata.category(letter) in _UNPRINTED for letter in kept):
        raise SpecError(f"{option} {kept!r} has characters that no page shows; give the name in letters")
    return kept


def text(said: str, option: str) -> str:
    """A text as it is kept.

    Raises:
        SpecError: it is too long.
    """
    if len(said) > log.MOST_TEXT:
        raise SpecError(f"{option} has {len(said):,} letters, and at most {log.MOST_TEXT:,} are kept")
    return said.strip()


def same(one: str, other: str) -> bool:
    """Whether two names are one person's, whatever their capitals, blanks and width of letters."""
    return _plain(one) == _plain(other)


def _plain(said: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", said).casefold().split())
