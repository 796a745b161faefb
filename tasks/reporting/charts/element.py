"""Charts as HTML: both layouts, description, and the table of the same numbers in a closed ``details``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import jinja2
from markupsafe import Markup

from tasks.reporting.charts.layout.shapes import DARK, FORCED, LIGHT, NARROW, WIDE, Drawing, Sheet, coordinate
from tasks.reporting.charts.lettering import clean

_TEMPLATES = Path(__file__).parents[1] / "pages" / "templates"
_FORMS: Mapping[str, Mapping[str, str]] = {
    "fill": {},
    "hollow": {"stroke-width": "2"},
    "bar": {"stroke-width": "3"},
    "thin": {"stroke-width": "1.5"},
    "dashed": {"stroke-width": "1.5", "stroke-dasharray": "5 3"},
    "dotted": {"stroke-width": "1.5", "stroke-dasharray": "2.5 2"},
    "faint": {"stroke-width": "1"},
}
"""Kinds of path -> attributes beside its colour."""


@dataclass(frozen=True)
class Table:
    """The numbers of a chart; the first cell of a row is its header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without_empty(self) -> "Table":
        """The table without columns in which no row says anything."""
        kept = [i for i in range(len(self.header)) if not i or any(row[i] for row in self.rows)]
        return Table(tuple(self.header[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in self.rows))


class Chart(Protocol):
    """What every kind of chart can do."""

    @property
    def title(self) -> str:
        """What the chart shows, in a phrase."""
        ...

    def description(self) -> Sequence[str]:
        """Sentences that say every number of the chart."""
        ...

    def table(self) -> Table:
        """Every number of the chart."""
        ...

    def draw(self, sheet: Sheet) -> Drawing:
        """The chart in one layout."""
        ...


def element(chart: Chart, prefix: str) -> Markup:
    """A chart as HTML to put into a page; all its text is escaped.

    Args:
        chart: of any kind.
        prefix: of the ids inside, unique in the page: letters, digits and hyphens.

    Returns:
        A ``div`` with two drawings, of which the style sheet (``style``) shows one, and the table.

    Raises:
        ValueError: a prefix that is no id.
    """
    table = chart.table().without_empty()
    layouts = [("wide", chart.draw(WIDE)), ("narrow", chart.draw(NARROW))]
    return _rendered(chart, prefix, "drawing.html.j2", table=table, layouts=layouts)


def svg(chart: Chart, prefix: str) -> Markup:
    """The wide drawing alone, with its title and description; arguments and errors as of ``element``."""
    return _rendered(chart, prefix, "drawing.svg.j2", drawn=chart.draw(WIDE))


def _rendered(chart: Chart, prefix: str, template: str, **content: object) -> Markup:
    if not prefix.replace("-", "").isalnum() or not prefix.isascii() or not prefix[0].isalpha():
        raise ValueError(f"no prefix of an id: {prefix!r}")
    html = (
        _templates()
        .get_template(template)
        .render(
            prefix=prefix,
            title=clean(chart.title, isolates=True),
            description=[clean(sentence, isolates=True) for sentence in chart.description()],
            **content,
        )
    )
    return Markup(html)  # noqa: S704 - the template escapes every text


@cache
def style() -> str:
    """The style sheet of all drawings, once for a page: colours by scheme, and which layout is shown.

    Dark colours follow the ``color-scheme`` of the page: a page that declares none stays light.
    """
    return _templates().get_template("drawing.css.j2").render(light=LIGHT, dark=DARK, forced=FORCED)


def templates(*before: Path) -> jinja2.Environment:
    """The templates of drawings and pages: every text that comes from data is escaped.

    Args:
        before: folders whose templates come before those of the same name here, such as the frame of other pages.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*before, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coordinate"] = coordinate
    environment.filters["clean"] = clean
    environment.globals.update(colours=LIGHT, forms=_FORMS)
    return environment


_templates = cache(templates)
