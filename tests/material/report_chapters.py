"""Finding things in a chapter of the report: sections by anchor, tables by title, what a figure draws."""

SPACE = "\N{NO-BREAK SPACE}"


def sections(section):
    """A section and all below it."""
    return [section, *(deeper for part in section.parts for deeper in sections(part))]


def under(chapter, anchor):
    """The section of that anchor."""
    return next(s for s in sections(chapter) if s.anchor == anchor)


def table(section, start):
    """The one table of a section and those below whose title starts so."""
    found = [t for s in sections(section) for t in s.tables if t.title.startswith(start)]
    assert len(found) == 1, [t.title for s in sections(section) for t in s.tables]
    return found[0]


def drawn(figure):
    """All rows of a figure's panels."""
    return [row for panel in figure.panels for row in drawn_of(panel)]


def drawn_of(panel):
    """The rows of one panel."""
    return panel.spec["datasets"]["rows"]
