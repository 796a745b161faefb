"""Tables that a bundled spec was written for: they need no draft."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

import yaml

from flows.cli.options import bundled

_FITTING: Final = 0.9
"""Share of the cells that a spec's lists of codes have to know."""


@dataclass(frozen=True)
class Example:
    """A bundled spec that fits a table."""

    title: str
    path: str
    """As a command names it."""
    header: tuple[str, ...] = ()
    """The names that it gives to the columns of a file without any."""

    def command(self, table: Path) -> str:
        """How it audits the table."""
        return f"evenhand audit {quote(self.path)} --set source.path={quote(str(table))}"


def fitting(counts: Mapping[str, Mapping[str, int]], has_header: bool) -> Example | None:
    """The bundled spec with the columns and codes of a table: column -> text -> rows."""
    examples = [example for path in bundled() if (example := _fits(path, counts, has_header))]
    return examples[0] if examples else None


def _fits(path: Path, counts: Mapping[str, Mapping[str, int]], has_header: bool) -> Example | None:
    raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    source = raw.get("source", {})
    header = tuple(map(str, source.get("header", ())))
    if source.get("kind") != "csv" or (not has_header and len(header) != len(counts)):
        return None
    named = counts if has_header else dict(zip(header, counts.values(), strict=True))
    derived = source.get("derive", {})
    columns = {name: column for name, column in raw["columns"].items() if name not in derived}
    required = [*columns, *source.get("keep", {}), raw["decision"]["column"], *(d["column"] for d in derived.values())]
    if any(name not in named for name in required):
        return None
    # The cells have to hold the codes that the spec lists: both sides of the decision, orders, and what is derived.
    decisions = named[raw["decision"]["column"]]
    for side in ("favourable", "unfavourable"):
        if not any(_text(code) in decisions for code in raw["decision"][side]):
            return None
    listed = [(name, column["order"]) for name, column in columns.items() if column.get("order")]
    listed += [(d["column"], [code for codes in d["values"].values() for code in codes]) for d in derived.values()]
    for name, codes in listed:
        codes_known = {_text(code) for code in codes}
        rows = sum(named[name].values())
        if sum(n for text, n in named[name].items() if text in codes_known) < _FITTING * rows:
            return None
    place = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return Example(raw.get("title") or raw["name"], str(place), header)


def _text(code: object) -> str:
    return str(code).lower() if isinstance(code, bool) else str(code)
