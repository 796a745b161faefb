"""A report as one file, as PDF, its first page as a picture, and the sizes that its files may have."""

import os
import posixpath
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from typing import Literal

from markupsafe import Markup

from schemas.errors import InfrastructureError
from schemas.terms import State
from tasks.reporting.charts.layout import LIGHT, WIDE, Colour, svg
from tasks.reporting.charts.values import lines
from tasks.reporting.first_page.facts import sentences
from tasks.reporting.first_page.result import Decision, forest
from tasks.reporting.plain_words import reading_of

# --------------------------------------------------------------------------------------------------------------------
# Several pages of a report as one file, for e-mail and for PDF: unique ids, links among them, none to other files.


FIRST = "report.html"
QUESTIONS = "pages/"
NOT_JOINED = ("pages/quality.html",)
"""It answers no question of the first page."""
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_REFERENCE = re.compile(r'\s(id|for|headers|href|aria-labelledby|aria-describedby|aria-controls)="([^"]*)"')
_STYLE = """<style>
.page { padding-top: 1rem; }
.page + .page { margin-top: 2rem; }
.page a:not([href]) { display: none; }
@media print {
  .page { padding: 0; }
  .page.long { font-size: 9pt; margin-top: 9mm; }
  .page.decide + .page { break-before: page; margin-top: 0; }
  .long .drawing svg { max-width: 125mm; }
}
</style>"""
"""On paper the pages of questions follow each other, so that 12 sheets hold all of them."""


def single(files: Mapping[str, bytes]) -> bytes:
    """The first page and the pages of questions in one file.

    Args:
        files: path -> content, as ``files.files`` gives them; others than pages of questions are left out.
    """
    question_paths = (path for path in files if path.startswith(QUESTIONS) and path not in NOT_JOINED)
    return joined({path: files[path].decode() for path in (FIRST, *question_paths)}).encode()


def joined(pages: Mapping[str, str]) -> str:
    """Pages in one, the head and the footer being those of the first.

    An id of ``pages/gap.html`` is given the prefix ``gap-``, and its page the id ``gap``. A link to a file that is not
    in here is not shown.
    """
    first = next(iter(pages.values()))
    page_elements = []
    for path, text in pages.items():
        match = re.search(r'<body[^<>]*class="([^"]*)"', text)
        content = _with_prefixed_ids(path, _inner(text, "header") + _inner(text, "main"), pages)
        opening = f'<div class="page {match[1] if match else ""}" id="{name_of(path)}">'
        page_elements.append(f"{opening}\n{content}\n</div>")
    body = "\n".join(page_elements)
    head = _inner(first, "head")
    footer = _with_prefixed_ids(FIRST, _inner(first, "footer"), pages)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}{_STYLE}\n</head>\n<body class="single">\n'
        f'<main id="main" tabindex="-1">\n{body}\n</main>\n<footer>{footer}</footer>\n</body>\n</html>\n'
    )


def name_of(path: str) -> str:
    """The id of a page."""
    return posixpath.splitext(posixpath.basename(path))[0]


def _inner(text: str, tag: str) -> str:
    """What is in the first element of a name that no element of that name is in."""
    match = re.search(rf"<{tag}(?:\s[^<>]*)?>(.*?)</{tag}>", text, re.DOTALL)
    return match[1] if match else ""


def _with_prefixed_ids(path: str, text: str, pages: Iterable[str]) -> str:
    """The content of a page with its ids made its own. Text holds no tags: templates escape it."""
    known_pages = frozenset(pages)

    def attribute(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name == "href":
            # A link leads to the joined page, or nowhere where its target is not in there.
            file, _, anchor = value.partition("#")
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            if other not in known_pages:
                return ""
            return f' href="#{name_of(other)}-{anchor}"' if anchor else f' href="#{name_of(other)}"'
        return f' {name}="{" ".join(f"{name_of(path)}-{fragment}" for fragment in value.split())}"'

    return _TAG.sub(lambda tag: _REFERENCE.sub(attribute, tag[0]), text)


# --------------------------------------------------------------------------------------------------------------------
# report.pdf: the first page and the pages of questions as tagged PDF, by WeasyPrint, which the extra ``pdf`` installs.
#
# It reads the joined page and nothing else: no file, no network. Equal pages give equal bytes.


Paper = Literal["a4", "letter"]
LACKING = (
    "no PDF was made: WeasyPrint is not installed, or finds no Pango on this system; "
    "pip install 'evenhand[pdf]', and see https://doc.courtbouillon.org/weasyprint for Pango"
)
MOST_SHEETS = 12
_EPOCH = "SOURCE_DATE_EPOCH"
_SHEET = re.compile(rb"/Type\s*/Page\b")
_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)
_FIRST = """.long tr:nth-child(n+13) {{ display: none; }}
.long table:has(tr:nth-child(13)) caption::after {{ content: " (the first 12 rows; the pages have all)"; }}
.long .drawing svg {{ {drawn} }}"""
SHORTER = (
    "",
    _FIRST.format(drawn="max-width: 90mm !important; max-height: 60mm !important;"),
    _FIRST.format(drawn="display: none !important;"),
)
"""What the style adds until the sheets of a run of many groups are few enough."""


def pdf(files: Mapping[str, bytes], paper: Paper = "a4") -> bytes:
    """The content of report.pdf.

    Args:
        files: path -> content, as ``files.files`` gives them.
        paper: size of its sheets.

    Raises:
        InfrastructureError: WeasyPrint, or what it needs of the system, is not there.
    """
    try:
        from weasyprint import CSS, HTML
        from weasyprint.urls import URLFetcher
    except (ImportError, OSError) as error:  # OSError: no Pango
        raise InfrastructureError(LACKING) from error
    refusing = URLFetcher(allowed_protocols=())  # whatever a page names, a local file too
    page = HTML(string=single(files).decode(), url_fetcher=refusing)
    content = b""
    for style in SHORTER:
        sheet = CSS(string=f"@page {{ size: {paper}; }}\n{style}", url_fetcher=refusing)
        with _fixed_font_time():
            content = page.write_pdf(stylesheets=[sheet], pdf_variant="pdf/ua-1")
        if sheets_of(content) <= MOST_SHEETS:
            break
    return content


@contextmanager
def _fixed_font_time() -> Iterator[None]:
    """Fixes the time that fontTools writes into embedded fonts where HarfBuzz's subsetter is not installed."""
    before = os.environ.get(_EPOCH)
    os.environ[_EPOCH] = before or "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_EPOCH]


def sheets_of(content: bytes) -> int:
    """Number of sheets of a PDF that may have its objects in compressed streams."""
    parts = [_STREAM.sub(b"", content)]
    for match in _STREAM.finditer(content):
        with suppress(zlib.error):
            parts.append(zlib.decompressobj().decompress(match[1]))
    return sum(len(_SHEET.findall(part)) for part in parts)


# --------------------------------------------------------------------------------------------------------------------
# The first page as one drawing, to be shown where a page cannot be: headline, answers, figures, what to do next.


WIDTH, MARGIN = 940, 32
SMALL, TEXT, LARGE = 13.0, 14.5, 23.0
"""Sizes of letters."""
RESULT_AT, AGAINST_AT, RELIABLE_AT, LIST_AT = 228, 568, 748, 640
"""Where the columns begin."""
LEADING, GAP = 19, 12
"""From one line of text to the next, and between a column and the next."""
COLOURS: dict[State, Colour] = {
    State.OUTSIDE: "breach",
    State.INCONCLUSIVE: "few",
    State.UNRELIABLE: "few",
    State.WITHIN: "ok",
}
"""Words of states have them; all other states are grey."""


def picture(decision: Decision, title: str) -> bytes:
    """The content of an SVG that needs no other file; its title is the first statement of the page.

    Args:
        decision: the first page.
        title: of the audit.
    """
    headline_lines = lines(decision.headline.words, WIDTH - 2 * MARGIN, LARGE, most=3, bold=True)
    head = [_text(line, MARGIN, 72 + 30 * i, LARGE, bold=True) for i, line in enumerate(headline_lines)]
    rows, y = _question_rows(decision, 72 + 30 * len(headline_lines) + 14)
    chart = forest(decision.figures)
    advice, end = _advice(decision, y)
    figures = _text(decision.figures.title, MARGIN, y, TEXT, bold=True)
    high = max(y + 40 + chart.draw(WIDE).height, end)
    texts = Markup("\n").join([_text(title, MARGIN, 40, SMALL, "soft"), *head, *rows, figures, *advice])
    markup = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h:.0f}" width="{w}" height="{h:.0f}" role="img">\n'
        '<title>{title}: {said}</title>\n<rect width="{w}" height="{h:.0f}" fill="{paper}"/>\n'
        '<g font-family="Arial, Helvetica, sans-serif">\n{texts}\n</g>\n'
        '<g transform="translate({margin} {at:.0f})">{chart}</g>\n</svg>\n'
    ).format(
        w=WIDTH, h=high, title=title, said=decision.headline.words, paper=LIGHT["paper"],
        texts=texts, margin=MARGIN, at=y + 12, chart=svg(chart, "figures"),
    )  # fmt: skip
    return markup.encode()


def _question_rows(decision: Decision, y: float) -> tuple[list[Markup], float]:
    """One row per question: result, against the limit, how reliable."""
    columns = zip(sentences()["about"]["columns"], (MARGIN, RESULT_AT, AGAINST_AT, RELIABLE_AT), strict=True)
    out = [_text(name, at, y, SMALL, "soft") for name, at in columns]
    y += LEADING + 10
    for row in decision.questions:
        cells: tuple[tuple[str, float, float, Colour, bool], ...] = (
            (row.question, MARGIN, RESULT_AT, "ink", True),
            (row.sentence, RESULT_AT, AGAINST_AT, "ink", False),
            (row.against, AGAINST_AT, RELIABLE_AT, COLOURS.get(row.state, "soft"), True),
            (row.reliable, RELIABLE_AT, WIDTH - MARGIN + GAP, "ink", False),
        )
        most = 0
        for text, at, end, colour, bold in cells:
            cell_lines = lines(text, end - at - GAP, SMALL, most=6, bold=bold)
            out += [_text(line, at, y + LEADING * i, SMALL, colour, bold=bold) for i, line in enumerate(cell_lines)]
            most = max(most, len(cell_lines))
        y += LEADING * most + 10
        line = f'<path d="M{MARGIN} {y - 19:.0f}H{WIDTH - MARGIN}" stroke="{LIGHT["line"]}"/>'
        out.append(Markup(line))  # noqa: S704 - numbers and a colour of ours
        y += 8
    return out, y + 12


def _advice(decision: Decision, y: float) -> tuple[list[Markup], float]:
    """The page's lines of advice, and the height at which they end."""
    out: list[Markup] = []
    for title, advice_lines in (("Do next", decision.next), ("What this cannot show", decision.cannot)):
        out.append(_text(title, LIST_AT, y, TEXT, bold=True))
        for advice in advice_lines:
            for text in lines(advice.words, WIDTH - MARGIN - LIST_AT, SMALL, most=4):
                y += LEADING
                out.append(_text(text, LIST_AT, y, SMALL))
        y += 2 * LEADING
    return out, y


def _text(text: str, x: float, y: float, size: float, colour: Colour = "ink", *, bold: bool = False) -> Markup:
    weight = Markup(' font-weight="600"') if bold else Markup()
    return Markup('<text x="{}" y="{:.0f}" font-size="{:g}" fill="{}"{}>{}</text>').format(
        x, y, size, LIGHT[colour], weight, text
    )


# --------------------------------------------------------------------------------------------------------------------
# Budgets of the files of a report, and what a file has of each: words, bytes, charts, outside requests, rows, sheets.
#
# Words are those of ``main`` that are shown: what a closed ``details`` holds is not, nor the drawing of a chart that is
# laid out for narrow screens. A budget that is None is no limit.


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
    sentence: int | None = None
    """Words of the longest sentence."""
    ease: float | None = None
    """Reading ease; the least, and not the most."""
    banned: int | None = None
    """Words that may not stand there."""
    faults: int | None = None
    """Headings of the first level but one, and questions without their three columns."""


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
    Budget(FIRST, Size(350, 60 * KB, requests=0, sentence=25, ease=60.0, banned=0, faults=0)),
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
class BudgetLine:
    """What a file has, and may have."""

    path: str
    has: Size
    most: Size

    @property
    def over(self) -> tuple[str, ...]:
        """Names of what it has too much of."""
        pairs = (
            (column.name, getattr(self.has, column.name), getattr(self.most, column.name)) for column in fields(Size)
        )
        compared = ((name, has, most) for name, has, most in pairs if has is not None and most is not None)
        return tuple(name for name, has, most in compared if (has < most if name == "ease" else has > most))


def budget_lines(files: Mapping[str, bytes]) -> Iterator[BudgetLine]:
    """A line a file, in their order, then one of all together.

    The joined page and the PDF repeat other files, and are no part of the last line.
    """
    total_bytes = total_charts = 0
    for path, content in files.items():
        budget = next((budget for budget in BUDGETS if fnmatchcase(path, budget.files)), Budget(path, Size()))
        if path.endswith(".html"):
            size = size_of(content, tables=budget.tables, opened=budget.opened)
            if path == FIRST:
                text = reading_of(content)
                faults = (text.headings != 1) + text.incomplete
                size = replace(
                    size, sentence=text.longest, ease=round(text.ease, 1), banned=len(text.banned), faults=faults
                )
        else:
            size = Size(bytes=len(content), sheets=sheets_of(content) if path.endswith(".pdf") else None)
        yield BudgetLine(path, size, budget.most)
        if path not in (SINGLE, PDF):
            total_bytes += len(content)
            total_charts += size.charts or 0
    yield BudgetLine(TOTAL, Size(bytes=total_bytes, charts=total_charts), TOGETHER)


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
    visible: bool
    closed: bool = False
    """Whether it is a closed ``details``, which shows its summary only."""


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
        attributes = dict(attrs)
        self._count(tag, attributes)
        if tag in _VOID:
            return
        above = self._open[-1] if self._open else _Open("", True)
        hidden = tag in _SILENT or "hidden" in attributes or attributes.get("display") == "none"
        hidden = hidden or (tag == "table" and not self._with_tables) or (above.closed and tag != "summary")
        closed = tag == "details" and "open" not in attributes and not self._opened
        self._open.append(_Open(tag, above.visible and not hidden, closed))

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
        if above.visible and not above.closed and any(ancestor.tag == "main" for ancestor in self._open):
            self.text.append(data)

    def _count(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        self._separate(tag)
        if tag == "svg" and attributes.get("role") == "img" and attributes.get("display") != "none":
            self.charts += 1
        if tag == "table":
            self.tables.append(0)
        if tag == "tr" and self.tables and "thead" not in (ancestor.tag for ancestor in self._open):
            self.tables[-1] += 1
        link = attributes.get(_LOADING.get(tag, ""))
        outside = link is not None and not link.startswith(("#", "data:"))
        self.requests += outside or tag == "script"
        self.requests += len(_STYLE_URL.findall(attributes.get("style") or ""))

    def _separate(self, tag: str) -> None:
        if tag not in _INLINE:
            self.text.append(" ")
