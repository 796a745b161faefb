"""Tables that need no draft: HMDA, whose layouts are known, and those that a bundled spec was written for."""

import csv
import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

import yaml

from flows.cli.options import bundled
from schemas.audit.hmda import ACTION
from schemas.errors import EvenhandError
from tasks.ingest.hmda.layouts import Recognised, recognise
from tasks.ingest.sources.raw import COLUMNS

_FITTING: Final = 0.9
"""Share of the cells that a spec's lists of codes have to know."""
_FOREIGN: Final = 0.1
"""Share of columns that no layout knows, up to which a file is one of HMDA."""
_FIRST_MODERN: Final = 2018
_HEAD: Final = 65536


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


def hmda_advice(path: Path) -> str:
    """What to run instead where a file is HMDA; empty where it is not."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            recognised = recognise(path, Path(scratch))
            year = _year(recognised)
    except EvenhandError:
        return ""
    if not any(name.startswith(ACTION) for name in recognised.columns) or not set(COLUMNS) & set(recognised.columns):
        return ""
    if len(recognised.unknown) > _FOREIGN * len(recognised.columns):
        return ""  # a lender's own table, with some names of HMDA
    layout = recognised.layout.name.replace("_", " ")
    spec = next((p for p in bundled() if p.stem == "hmda"), None)
    if spec is None:
        return ""
    # The command that audits the file. Before 2018, columns that the year does not have must be left out.
    path_text, year_text = str(path), year or "YEAR"
    command = f"evenhand audit {quote(_shown(spec))}"
    if year and int(year) < _FIRST_MODERN and year not in path.name:
        adding = f"evenhand data add {quote(path_text)} --kind historic --year {year_text}"
        command = f"{adding}, then {command} --year {year_text}"
    else:
        if year and int(year) < _FIRST_MODERN:
            path_text = str(path.with_name(path.name.replace(year, "{year}")))
        command += f" --set {quote('source.path=' + path_text)} --set source.vintage=null --year {year_text}"
    return f"{path.name} is HMDA, {layout} layout, and needs no draft: use {_shown(spec)}, with\n  {command}"


def _year(recognised: Recognised) -> str:
    """The year of the first row; empty where no column holds it."""
    with recognised.path.open("rb") as file:
        head = file.read(_HEAD).decode("utf-8-sig", errors="replace")
    if recognised.layout.stops:
        return head[:4] if head[:4].isdecimal() else ""
    at = next((recognised.columns.index(name) for name in COLUMNS if name in recognised.columns), None)
    lines = [line for line in head.splitlines() if line][: 1 + recognised.header]
    if at is None or len(lines) <= recognised.header:
        return ""
    mark = max(",|;\t", key=lines[0].count)
    row = next(csv.reader(io.StringIO(lines[-1]), delimiter=mark), [])
    return row[at] if at < len(row) and row[at].isdecimal() else ""


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
        known = {_text(code) for code in codes}
        rows = sum(named[name].values())
        if sum(n for text, n in named[name].items() if text in known) < _FITTING * rows:
            return None
    return Example(raw.get("title") or raw["name"], _shown(path), header)


def _text(code: object) -> str:
    return str(code).lower() if isinstance(code, bool) else str(code)


def _shown(path: Path) -> str:
    """A path as it is given from here."""
    working_directory = Path.cwd()
    return str(path.relative_to(working_directory)) if path.is_relative_to(working_directory) else str(path)
