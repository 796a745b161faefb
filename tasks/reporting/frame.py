"""Pages: a template with its content, as one file that makes no network request and runs no script.

Scope: the frame around content. What stands in it: ``tasks.reporting`` and ``tasks.reporting.evidence_tables``.
Which files there are: ``files``.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from schemas.questions import STATES
from tasks.reporting.charts.layout import element, templates
from tasks.reporting.charts.layout import style as style_of_charts

_TEMPLATES = Path(__file__).parent / "templates"
MOST_LEVEL = 6
"""Headings have no deeper level."""


@dataclass(frozen=True)
class Frame:
    """What all pages of a report show around their content."""

    title: str
    """Of the audit; empty on a page that is the same for every run."""
    run: str = ""
    """Identifier of the run, on every printed sheet but the first; empty as above."""
    links: tuple[tuple[str, str], ...] = ()
    """Path of each file of the report, and its words in the navigation."""
    note: str = ""
    """Last sentence of the footer."""
    restricted: str = ""
    """Why the pages are not to be passed on, at the head of each and of each printed sheet; empty where they may."""
    unmade: str = ""
    """How to make the files that a short report leaves out; empty if it leaves out none."""


def page(template: str, path: str, **content: object) -> bytes:
    """A page with its style inside and a policy that lets nothing else load.

    Args:
        template: name of the file under ``templates``.
        path: of the page below the folder of the run; links are relative to it, and only to pages that there are.
        content: what the template shows, ``frame`` among it; all text of it is escaped.

    Raises:
        jinja2.UndefinedError: the template shows what ``content`` lacks.
    """
    frame = content.get("frame")
    targets = {target for target, _ in frame.links} if isinstance(frame, Frame) else set()
    context = {"path": path, "link": relative_to(path), "targets": targets}
    return _own().get_template(template).render(**content, **context).encode()


def relative_to(path: str) -> Callable[[str], str]:
    """How a page at ``path`` names other files of the report."""
    folder = posixpath.dirname(path) or "."
    return lambda target: posixpath.relpath(target, folder)


def environment(*before: Path) -> jinja2.Environment:
    """The templates of pages with what they call; ``before`` as in ``tasks.reporting.charts.layout.templates``."""
    jinja = templates(*before)
    jinja.filters["css"] = in_style
    jinja.filters["coded"] = coded
    # both style sheets are ours; every text that comes from data goes through autoescape
    style = Markup(style_sheet())  # noqa: S704
    words = {str(key): state.words for key, state in STATES.items()}
    jinja.globals.update(element=element, words=words, style=style, most_level=MOST_LEVEL)
    return jinja


def style_sheet() -> str:
    """The style of pages and of the drawings on them."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8") + style_of_charts()


_own = cache(environment)


def coded(text: str) -> Markup:
    """A text with its parts between backticks as code, as commands do."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one that does not end
        return escape(text)
    return Markup().join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def in_style(text: str) -> Markup:
    """A text as a string of CSS: every letter but plain ones by its number, so that none ends string or sheet."""
    letters = (
        character if character.isascii() and (character.isalnum() or character in " -_.") else f"\\{ord(character):06x}"
        for character in text
    )
    return Markup(f'"{"".join(letters)}"')  # noqa: S704 - nothing of it is left to escape
