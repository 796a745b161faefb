"""Columns and groups in the reader's words."""

import re

from tasks.reporting.material import Material

_UNIT = re.compile(r"\s*\([^()]*\)$")
"""What a label says last, in brackets: too long for a box."""


def words_for(material: Material, node: str) -> str:
    """A node as it is printed: a column by its label, a protected attribute by its name, whatever its column."""
    s = material.settings
    attributes = {p.columns[0]: p.name for p in reversed(s.protected) if len(p.columns) == 1}
    known = s.columns.get(node)
    return attributes.get(node) or (known.label if known and known.label else node)


def plain_words(material: Material, node: str) -> str:
    """A node without its unit, where the space or the sentence is short."""
    return _UNIT.sub("", words_for(material, node))
