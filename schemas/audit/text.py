"""Reads and parses the YAML of an audit spec within limits; records the line of every key, and which are marked CHECK.

Bytes, levels and nodes (aliases expanded) are counted before any object is built. Scope: text. What the values mean:
``spec``.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from schemas.errors import Location, SpecError

MOST_BYTES: Final = 1_000_000
MOST_LEVELS: Final = 50
MOST_NODES: Final = 10_000
MOST_DIGITS: Final = 1_000
_LONG_NUMBER: Final = re.compile(rf"[-+]?\d[\w.:+-]{{{MOST_DIGITS},}}$")

_MARK: Final = re.compile(r"\s#\s*CHECK\b:?\s*(?P<why>.*)$")
"""A comment behind a key that says that somebody has still to confirm it."""
UNCONFIRMED: Final = "CHECK"


@dataclass(frozen=True)
class Mark:
    """A key that nobody has confirmed yet."""

    location: Location
    line: int
    why: str

    @property
    def key(self) -> str:
        """The key, dotted."""
        return ".".join(map(str, self.location))


@dataclass(frozen=True)
class Parsed:
    """A YAML document."""

    value: Any
    lines: Mapping[Location, int]
    """Path of keys -> line, from 1."""
    twice: tuple[tuple[str, int], ...] = ()
    """Duplicate keys with their lines. YAML itself silently takes the last one."""
    marks: tuple[Mark, ...] = ()
    """Keys with the word CHECK for their value, or in a comment behind them, from the first line to the last."""


def parse(text: str) -> Parsed:
    """Read a YAML document.

    Raises:
        SpecError: not YAML, or too large, too deep, with a tag, a number without end, or an alias that leads into
            itself.
    """
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        raise SpecError(f"longer than {MOST_BYTES // 1_000_000} MB; an audit spec is a page of keys")
    try:
        _Measured().measure(text)
        loader = yaml.SafeLoader(text)
        try:
            tree = loader.get_single_node()
            value = None if tree is None else loader.construct_document(tree)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"not YAML{_where(error)}") from error
    lines = dict(_lines(tree, ()))
    return Parsed(value, lines, tuple(_twice(tree)), tuple(_marks(text, lines, set(_said(tree)))))


def _where(error: Exception) -> str:
    """Place and kind of a fault, without the lines around it: a server and alerts are told of it, too."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f": {error}"
    mark = error.problem_mark or error.context_mark
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {error.problem or error.context}"


def _marks(text: str, lines: Mapping[Location, int], said: Set[int]) -> Iterator[Mark]:
    """The outermost key of each marked line. A line without a key, such as one of comments alone, marks nothing.

    Args:
        text: the document.
        lines: of its keys.
        said: lines with a key whose value is the word.
    """
    outermost: dict[int, Location] = {}
    for location, line in lines.items():
        if location and (line not in outermost or len(location) < len(outermost[line])):
            outermost[line] = location
    for line, written in enumerate(text.splitlines(), 1):
        found = _MARK.search(written)
        if line in outermost and (found or line in said):
            yield Mark(outermost[line], line, found["why"] if found else written.partition(" #")[2].strip())


def _said(node: yaml.Node | None) -> Iterator[int]:
    """Lines with a key whose value is the word CHECK."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and value.value == UNCONFIRMED:
                yield key.start_mark.line + 1
            yield from _said(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _said(value)


class _Measured:
    """Counts nodes and levels while the parser reads, so that reading stops at the first one too many."""

    def __init__(self) -> None:
        self.open: list[tuple[str | None, int, int]] = []
        """Of each collection that is not closed: its anchor, nodes before it, and the deepest level below it so far."""
        self.anchored: dict[str, tuple[int, int]] = {}
        """By anchor: nodes and levels of what it names."""
        self.nodes = 0

    def measure(self, text: str) -> None:
        """Go through all events.

        Raises:
            SpecError: a limit is passed.
        """
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 0
            if isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent) and event.tag is not None:
                raise SpecError(f"line {line}: tags such as {event.tag} are not read; write the plain value")
            if isinstance(event, yaml.CollectionStartEvent):
                self._add(1, 1, line)
                self.open.append((event.anchor, self.nodes - 1, 1))
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
            elif isinstance(event, yaml.AliasEvent):
                self._add(*self._named(event.anchor or "", line), line)
            elif isinstance(event, yaml.ScalarEvent):
                self._add(1, 0, line)
                if event.implicit[0] and _LONG_NUMBER.match(event.value):
                    raise SpecError(f"line {line}: a number of more than {MOST_DIGITS:,} digits; write a shorter one")
                if event.anchor is not None:
                    self.anchored[event.anchor] = (1, 0)

    def _named(self, anchor: str, line: int) -> tuple[int, int]:
        if any(anchor == name for name, _, _ in self.open):
            raise SpecError(f"line {line}: the alias *{anchor} stands inside what it names, and so has no end")
        return self.anchored.get(anchor, (1, 0))

    def _add(self, nodes: int, levels: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise SpecError(f"line {line}: more than {MOST_NODES:,} values, those that aliases repeat included")
        if len(self.open) + levels > MOST_LEVELS:
            raise SpecError(f"line {line}: more than {MOST_LEVELS} levels deep")
        self._deepen(levels)

    def _deepen(self, levels: int) -> None:
        if self.open:
            anchor, before, deepest = self.open[-1]
            self.open[-1] = anchor, before, max(deepest, 1 + levels)

    def _close(self) -> None:
        anchor, before, deepest = self.open.pop()
        if anchor is not None:
            self.anchored[anchor] = (self.nodes - before, deepest)
        self._deepen(deepest)


def _lines(node: yaml.Node | None, path: Location) -> Iterator[tuple[Location, int]]:
    if node is None:
        return
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                inner = (*path, key.value)
                yield from _lines(value, inner)
                yield inner, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _lines(value, (*path, i))


def _twice(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    yield key.value, key.start_mark.line + 1
                seen.add(key.value)
            yield from _twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _twice(value)


def spec_text(file: Path) -> str:
    """The text of an audit spec: no more of it than a spec may have, so that a device or a data file is soon refused.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is no UTF-8 text.
    """
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1).decode("utf-8-sig", errors="strict")
