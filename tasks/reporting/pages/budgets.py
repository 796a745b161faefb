"""Budgets of the files of a report, and what a file has of each: words, bytes, charts, outside requests, rows, sheets.

Words are those of ``main`` that are shown: what a closed ``details`` holds is not, nor the drawing of a chart that is
laid out for narrow screens. A budget that is None is no limit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from html.parser import HTMLParser

from tasks.reporting.exports.pdf import sheets_of

KB, MB = 1_000, 1_000_000
TOTAL = "all files"
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_SILENT = frozenset({"title", "desc", "style", "script", "template"})
_INLINE = frozenset(("a", "abbr", "b", "bdi", "code", "em", "i", "small", "span", "strong", "sub", "sup", "tspan"))
_LOADING = {
    "img": "src", "script": "src", "iframe": "src", "embed": "src", "source": "src", "object": "data",
    "link": "href", "image": "href", "use": "href", "audio": "src", "video": "src",
}  # fmt: skip
_STYLE_URL = re.compile(r"""url\(\s*['"]?(?!data:|#)|@import""")


@dataclass(frozen=True)
class Size:
    """What a file has of each, or may have at most."""

    words: int | None = None
    bytes: int | None = None
    charts: int | None = None
    requests: int | None = None
    """Things that it loads from outside, and scripts."""
    rows: int | None = None
    """Of the longest table."""
    sheets: int | None = None
    """Of paper."""


@dataclass(frozen=True)
class Budget:
    """The most that files may have."""

    files: str
    """Pattern of their paths."""
    most: Size
    tables: bool = True
    """Whether words in tables count."""
    opened: bool = False
    """Whether words in closed details count."""


SINGLE, PDF = "single.html", "report.pdf"
BUDGETS = (
    Budget("report.html", Size(300, 60 * KB, requests=0)),
    Budget("pages/quality.html", Size(700, 250 * KB, 6, 0), tables=False),
    Budget("pages/*.html", Size(900, 250 * KB, 6, 0)),
    Budget("evidence/*.html", Size(None, 1_500 * KB, 12, 0, 25)),
    Budget("method.html", Size(6_000, 250 * KB, 0, 0), opened=True),
    Budget(SINGLE, Size(None, 700 * KB, requests=0)),
    Budget("report.json", Size(bytes=300 * KB)),
    Budget("measures.xlsx", Size(bytes=1_500 * KB)),
    Budget(PDF, Size(bytes=1 * MB, sheets=12)),
)
"""The first that fits a path is that of the file; a file that none fits has none."""
TOGETHER = Size(bytes=8 * MB, charts=40)
"""Of all files of a report together."""


@dataclass(frozen=True)
class Line:
    """What a file has, and may have."""

    path: str
    has: Size
    most: Size

    @property
    def over(self) -> tuple[str, ...]:
        """Names of what it has too much of."""
        pairs = ((each.name, getattr(self.has, each.name), getattr(self.most, each.name)) for each in fields(Size))
        return tuple(name for name, has, most in pairs if has is not None and most is not None and has > most)


def lines(files: Mapping[str, bytes]) -> Iterator[Line]:
    """A line a file, in their order, then one of all together.

    The joined page and the PDF repeat other files, and are no part of the last line.
    """
    found = [_line(path, content) for path, content in files.items()]
    yield from found
    parts = [line.has for line in found if line.path not in (SINGLE, PDF)]
    whole = Size(bytes=_sum(size.bytes for size in parts), charts=_sum(size.charts for size in parts))
    yield Line(TOTAL, whole, TOGETHER)


def _line(path: str, content: bytes) -> Line:
    budget = next((each for each in BUDGETS if fnmatchcase(path, each.files)), Budget(path, Size()))
    if path.endswith(".html"):
        return Line(path, size_of(content, tables=budget.tables, opened=budget.opened), budget.most)
    sheets = sheets_of(content) if path.endswith(".pdf") else None
    return Line(path, Size(bytes=len(content), sheets=sheets), budget.most)


def _sum(numbers: Iterable[int | None]) -> int:
    return sum(number or 0 for number in numbers)


def size_of(content: bytes, *, tables: bool = True, opened: bool = False) -> Size:
    """What a page has.

    Args:
        content: the page.
        tables: whether words in tables count.
        opened: whether words in closed details count.
    """
    reader = _Reader(tables, opened)
    reader.feed(content.decode())
    reader.close()
    return Size(
        len("".join(reader.text).split()), len(content), reader.charts, reader.requests, max(reader.tables, default=0)
    )


@dataclass(frozen=True)
class _Open:
    """An element that has not ended."""

    tag: str
    shown: bool
    closed: bool = False
    """Whether it is a closed ``details``, of which the summary alone is shown."""


class _Reader(HTMLParser):
    """Counts words of ``main``, charts, things loaded and rows of tables."""

    def __init__(self, tables: bool, opened: bool) -> None:
        super().__init__()
        self.text: list[str] = []
        self.charts = self.requests = 0
        self.tables: list[int] = []
        self._with_tables, self._opened = tables, opened
        self._open: list[_Open] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count what begins here."""
        said = dict(attrs)
        self._count(tag, said)
        if tag in _VOID:
            return
        above = self._open[-1] if self._open else _Open("", True)
        shown = above.shown and not (above.closed and tag != "summary") and not self._hidden(tag, said)
        closed = tag == "details" and "open" not in said and not self._opened
        self._open.append(_Open(tag, shown, closed))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG that is empty."""
        self._count(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        """Close the element, and all in it that was left open."""
        at = next((i for i in range(len(self._open) - 1, -1, -1) if self._open[i].tag == tag), None)
        if at is not None:
            del self._open[at:]
            self._separate(tag)

    def handle_data(self, data: str) -> None:
        """Keep what is shown of ``main``."""
        if self._open and self._open[-1].tag == "style":
            self.requests += len(_STYLE_URL.findall(data))
        above = self._open[-1] if self._open else _Open("", True)
        if above.shown and not above.closed and any(each.tag == "main" for each in self._open):
            self.text.append(data)

    def _hidden(self, tag: str, said: Mapping[str, str | None]) -> bool:
        silent = tag in _SILENT or "hidden" in said or said.get("display") == "none"
        return silent or (tag == "table" and not self._with_tables)

    def _count(self, tag: str, said: Mapping[str, str | None]) -> None:
        self._separate(tag)
        if tag == "svg" and said.get("role") == "img" and said.get("display") != "none":
            self.charts += 1
        if tag == "table":
            self.tables.append(0)
        if tag == "tr" and self.tables and "thead" not in (each.tag for each in self._open):
            self.tables[-1] += 1
        link = said.get(_LOADING.get(tag, ""))
        outside = link is not None and not link.startswith(("#", "data:"))
        self.requests += outside or tag == "script"
        self.requests += len(_STYLE_URL.findall(said.get("style") or ""))

    def _separate(self, tag: str) -> None:
        if tag not in _INLINE:
            self.text.append(" ")
