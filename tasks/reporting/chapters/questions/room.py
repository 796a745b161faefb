"""How much of many groups a page shows, so that it keeps its number of words.

Words are counted as a browser's ``innerText`` has them: texts, open tables, and the drawings for a wide screen.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tasks.reporting.charts.layout.shapes import WIDE, Text
from tasks.reporting.section import Section

MOST_WORDS = 830
"""Of a section; the page has 900, and the words around charts and tables need the rest."""


class Room(NamedTuple):
    """Rows that charts and the table may have."""

    charts: int
    table: int


ROOMS = (Room(24, 25), Room(16, 25), Room(10, 25), Room(6, 25), Room(6, 18), Room(6, 12), Room(4, 8), Room(2, 4))
"""The first that fits is taken: charts give way before the table."""


def words(section: Section) -> int:
    """Words of a section and its parts."""
    return sum(len(text.split()) for text in _texts(section))


def _texts(section: Section) -> Iterator[str]:
    yield section.title
    yield from (*section.words, *section.points, *(link.words for link in section.links))
    for notice in section.notices:
        yield from (notice.title, notice.text, *notice.points)
    for figure in section.figures:
        yield from (figure.chart.title, figure.caption)
        yield from (shape.text for shape in figure.chart.draw(WIDE).shapes if isinstance(shape, Text))
    for table in section.tables:
        yield table.title
        if not table.folded:
            yield from (*table.header, table.rest, table.note)
            yield from (cell.whole for row in table.rows for cell in row)
    for listing in section.listings:
        yield from (listing.title, "" if listing.folded else listing.text)
    for part in section.parts:
        yield from _texts(part)
