"""report.pdf: the first page and the pages of questions as tagged PDF, by WeasyPrint, which the extra ``pdf`` installs.

It reads the joined page and nothing else: no file, no network. Equal pages give equal bytes.
"""

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal

from schemas.errors import InfrastructureError
from tasks.reporting.exports.single import single

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
    for more in SHORTER:
        sheet = CSS(string=f"@page {{ size: {paper}; }}\n{more}", url_fetcher=refusing)
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
    """Sheets of a PDF, whose objects may lie in compressed streams."""
    parts = [_STREAM.sub(b"", content)]
    for found in _STREAM.finditer(content):
        with suppress(zlib.error):
            parts.append(zlib.decompressobj().decompress(found[1]))
    return sum(len(_SHEET.findall(part)) for part in parts)
