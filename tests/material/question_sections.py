"""Pages of the questions of runs by hand, and sections as readers meet them: texts, words, charts and cells."""

from collections.abc import Iterator
from typing import Any

from decide_runs import boston
from report_tables import built, material, measures

from schemas.tables.findings import MEASURES
from tasks.reporting.charts.layout import WIDE, Text
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.question_pages.page import question_pages
from tasks.reporting.text import Section, TableView


def sections(section: Section) -> Iterator[Section]:
    """The section and all below it."""
    yield section
    for part in section.parts:
        yield from sections(part)


def charts(section: Section) -> list[Any]:
    """Every chart, in the order of the page."""
    return [figure.chart for part in sections(section) for figure in part.figures]


def tables(section: Section) -> list[TableView]:
    """Every table, in the order of the page."""
    return [table for part in sections(section) for table in part.tables]


def headings(section: Section) -> list[str]:
    """Titles and captions: what the banned words are banned from."""
    found = [part.title for part in sections(section)]
    for part in sections(section):
        found += [text for figure in part.figures for text in (figure.chart.title, figure.caption)]
        found += [table.title for table in part.tables]
    return found


def prose(section: Section) -> list[str]:
    """Every text outside tables and charts."""
    found = headings(section)
    for part in sections(section):
        found += [*part.words, *part.points, *(link.words for link in part.links)]
        found += [text for notice in part.notices for text in (notice.title, notice.text, *notice.points)]
        found += [table.note for table in part.tables]
        found += [listing.text for listing in part.listings if not listing.folded]
    return found


def cells(section: Section) -> list[str]:
    """Every cell of tables that are open."""
    open_tables = [table for table in tables(section) if not table.folded]
    return [text for t in open_tables for text in (*t.header, *(cell.whole for row in t.rows for cell in row))]


def drawn(section: Section) -> list[str]:
    """Every text that a wide drawing shows."""
    return [shape.text for chart in charts(section) for shape in chart.draw(WIDE).shapes if isinstance(shape, Text)]


def words(*texts: str) -> int:
    """Number of words."""
    return sum(len(text.split()) for text in texts)


def everything(section: Section) -> str:
    """All that a reader, a machine or assistive software finds on the page."""
    said = [text for chart in charts(section) for text in chart.description()]
    whole = [cell.whole for table in tables(section) for row in table.rows for cell in row]
    return "\n".join([*prose(section), *cells(section), *drawn(section), *said, *whole])


def pages(run=None, audit=None, **own):
    """The pages of a run, by name."""
    found = material(run, audit, **own)
    return question_pages(found, decide(run_of(found)))


def part(page, name):
    """A part of a page, by its anchor."""
    return next(each for each in page.parts if each.anchor == name)


def table(page):
    """The table by group."""
    return part(page, "groups").tables[0]


def column(page, name):
    """First cell of each row -> its cell in a column."""
    at = table(page).header.index(name)
    return {each[0].text: each[at] for each in table(page).rows}


def measured(method, name, group, value, **more):
    """A row of measures of the model, without an interval that covers."""
    own = {"dataset": "e", "year": 1990, "method": method, "decision_maker": "model", "protected_attribute": "race"}
    own |= {"group": group, "subgroup": 0, "measure": name, "parameters": "{}", "value": value, "n": 64}
    return own | {"state": "information", "reason": "no interval", "note": ""} | more


def with_measures(*rows):
    """Measures of Boston, and these."""
    return built(MEASURES, [*measures(boston()).to_pylist(), *rows])
