"""Text of a drawing: characters that XML allows, widths without a font, lines, and isolation of right-to-left names.

Widths are upper bounds of common sans-serif faces (DejaVu Sans is the widest of them), so that a line that fits here
fits in every browser. Escaping is the template's.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
FIXED = "\N{NO-BREAK SPACE}"
"""Where a line must not break."""
LEFT_TO_RIGHT, RIGHT_TO_LEFT = "\N{LEFT-TO-RIGHT ISOLATE}", "\N{RIGHT-TO-LEFT ISOLATE}"
END_ISOLATE = "\N{POP DIRECTIONAL ISOLATE}"
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e")
_ISOLATES = frozenset("\u2066\u2067\u2068\u2069")
_BOLD = 1.14
"""Bold letters are wider by this."""
_WIDTHS = {
    char: width
    for width, chars in {
        0.32: " ijlIJ'",
        0.35: ",./:;\\|·’",
        0.41: "ft()-[]",
        0.45: "r!",
        0.5: '"*_`–',
        0.56: "csz?",
        0.61: "kvxyFL",
        0.64: "0123456789abdeghnopquEPSTY${}",
        0.7: "ABCKRVXZ",
        0.75: "NU",
        0.79: "DGHOQ&",
        0.84: "w#+<=>^~−×∞",
        0.87: "M",
        1.0: "mW%@…",
    }.items()
    for char in chars
}
"""Character -> width in ems."""


def clean(text: str, *, isolates: bool = False) -> str:
    """Text without characters that XML refuses or that turn the direction of what follows; white space is one space.

    Args:
        text: any text, such as a group's name.
        isolates: whether to keep isolation marks, for titles whose writer isolated the names in them.
    """
    dropped = _OVERRIDES if isolates else _OVERRIDES | _ISOLATES
    words = "".join(_allowed(char) for char in text if char not in dropped).split(" ")
    return " ".join(word for word in words if word.strip(FIXED))


def _allowed(char: str) -> str:
    if char.isspace():
        return char if char == FIXED else " "
    refused = unicodedata.category(char) in ("Cc", "Cs") or ord(char) & 0xFFFE == 0xFFFE
    return "\N{REPLACEMENT CHARACTER}" if refused else char


def isolated(name: str, whole: str = "") -> str:
    """A name whose direction leaves the text around it alone: for text where no ``bdi`` can stand.

    Args:
        name: or a line of it.
        whole: the name of which ``name`` is a line; its direction holds for each line.
    """
    name = clean(name)
    directions = [unicodedata.bidirectional(char) for char in whole or name]
    if not any(each in ("R", "AL", "AN") for each in directions):
        return name
    first = next((each for each in directions if each in ("L", "R", "AL")), "L")
    return f"{LEFT_TO_RIGHT if first == 'L' else RIGHT_TO_LEFT}{name}{END_ISOLATE}"


@lru_cache(maxsize=4096)
def _ems(char: str) -> float:
    """Width of a character in ems."""
    if char in _WIDTHS:
        return _WIDTHS[char]
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return 1.4 if ord(char) > 0xFFFF else 1.0
    base = unicodedata.decomposition(char).split()
    if base and not base[0].startswith("<"):
        return _ems(chr(int(base[0], 16)))
    return {"Hebrew": 0.72, "Devanagari": 0.8}.get(unicodedata.name(char, "").split(" ")[0].title(), 1.1)


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Upper bound of the width of a text.

    Args:
        text: one line.
        size: of the letters, in the unit of the result.
        bold: whether it is drawn bold.
    """
    return sum(_ems(char) for char in text) * size * (_BOLD if bold else 1.0)


def clipped(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """A text that fits into ``room``, with an ellipsis where something is left out."""
    if width(text, size, bold=bold) <= room:
        return text
    kept = ""
    for cluster in _clusters(text):
        if width(kept + cluster + ELLIPSIS, size, bold=bold) > room:
            break
        kept += cluster
    return kept.rstrip() + ELLIPSIS


def lines(text: str, room: float, size: float, *, most: int, bold: bool = False) -> tuple[str, ...]:
    """A text in at most ``most`` lines of width ``room``; the last one ends in an ellipsis where that is too few."""
    found: list[str] = []
    rest = clean(text, isolates=True)
    while rest and len(found) < most - 1:
        line = _first_line(rest, room, size, bold)
        found.append(line)
        rest = rest[len(line) :].lstrip()
    return (*found, clipped(rest, room, size, bold=bold)) if rest else tuple(found)


def _first_line(text: str, room: float, size: float, bold: bool) -> str:
    """As many words as fit, or as many letters of the first word."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}".lstrip()
        if width(longer, size, bold=bold) > room:
            break
        line = longer
    if line:
        return line
    for cluster in _clusters(text):
        if line and width(line + cluster, size, bold=bold) > room:
            break
        line += cluster
    return line


def _clusters(text: str) -> Iterator[str]:
    """Letters with the marks that belong to them, which no line break may part."""
    cluster = ""
    for char in text:
        joined = unicodedata.category(char)[0] == "M" or char == "\u200d" or cluster.endswith("\u200d")
        if cluster and not joined:
            yield cluster
            cluster = ""
        cluster += char
    if cluster:
        yield cluster
