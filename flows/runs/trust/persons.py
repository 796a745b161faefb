"""What people say of themselves and of a run: names and texts that an entry of the log may hold.

A name is what somebody said. Only a key tells whose entry it is.
"""

import unicodedata

from flows.runs.trust.letters import controls
from schemas.errors import SpecError
from tasks.lake import log

MOST_NAME = 100
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that no page shows: controls, marks of direction, separators of lines."""
_FIELDS = {"--as": "by", "--owner": "owner"}


class FieldError(SpecError):
    """What somebody wrote into one field is refused; the command and a form say so in words of their own."""

    def __init__(self, field: str, message: str, reason: str) -> None:
        """Keep what a form needs.

        Args:
            field: text, owner, due, role, closes or by.
            message: as the command says it, with the option.
            reason: as a form says it after the label of the field.
        """
        super().__init__(message)
        self.field, self.reason = field, reason


def name(said: str, option: str = "--as") -> str:
    """A name as it is kept: without blanks around it, and of characters that are seen.

    Raises:
        FieldError: it is empty, too long, or has characters that are not printed.
    """
    kept, field = said.strip(), _FIELDS.get(option, "by")
    if not kept:
        raise FieldError(field, f"{option} is empty: give a name, such as {option} 'Ann Lee'", "give a name")
    if len(kept) > MOST_NAME:
        why = f"has {len(kept):,} letters, and at most {MOST_NAME} are kept"
        raise FieldError(field, f"{option} {why}", f"the name {why}")
    if any(unicodedata.category(letter) in _UNPRINTED for letter in kept):
        why = f"{kept!r} has characters that no page shows; give the name in letters"
        raise FieldError(field, f"{option} {why}", why)
    return kept


def text(said: str, option: str) -> str:
    """A text as it is kept.

    Raises:
        FieldError: it is too long, or has characters that work a terminal or turn what a page shows.
    """
    kept = said.replace("\r\n", "\n").strip()
    if len(kept) > log.MOST_TEXT:
        why = f"has {len(kept):,} letters, and at most {log.MOST_TEXT:,} are kept"
        raise FieldError("text", f"{option} {why}", f"the text {why}")
    if wrong := controls(kept):
        why = f"has control characters ({wrong}), which are not kept; newlines and tabs are"
        raise FieldError("text", f"{option} {why}", f"the text {why}")
    return kept


def same(one: str, other: str) -> bool:
    """Whether two names are one person's, whatever their capitals, blanks and width of letters."""
    return plain(one) == plain(other)


def plain(said: str) -> str:
    """A name in one form of its capitals, blanks and width of letters."""
    return " ".join(unicodedata.normalize("NFKC", said).casefold().split())
