"""Reasons of failures and of stale years as pages may show them: no cell, count, row, folder or command of a server."""

import re
from typing import Final

from flows.outcome.words.plain import without_cells

_GONE: Final = "\N{HORIZONTAL ELLIPSIS}"
_COUNT = re.compile(r"\b(?!(?:19|20)\d\d\b)\d[\d,.]*\d|\b\d\b")
"""A number that is no year."""
_ROWS = re.compile(r"; rows .*")
"""Ids of rows, which a failed check names at its end."""
_FROM = re.compile(r" ?\((?:from|in|at) [^)]*/[^)]*\)")
"""A bracket that says in which folder something was looked for."""
_PLACE = re.compile(r"(?<![\w.])(?:~|\w[\w+.-]*:/)?/[^\s,;:()'\"]*")
"""A path from the root of a machine, or a URI."""
_COMMAND = re.compile(r"`evenhand|(?<!\w)--\w")


def told(text: str) -> str:
    """A reason as it may be shown; years stay. What it advises to type is left out: a reader of pages has no shell."""
    said = _PLACE.sub(_GONE, _FROM.sub("", _ROWS.sub("", without_cells(text, ()))))
    return _COUNT.sub(_GONE, "; ".join(each for each in said.split("; ") if not _COMMAND.search(each)))
