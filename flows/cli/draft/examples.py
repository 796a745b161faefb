"""Tables that need no draft: HMDA, whose layouts are known, and those that a bundled spec was written for."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final

import pandas as pd
import yaml

from flows.cli.draft.dialect import sniffed
from flows.cli.options import bundled
from schemas.audit.hmda import ACTION
from schemas.audit.source import Source
from schemas.errors import DataQualityError, EvenhandError
from tasks.ingest.hmda.files.recognition import Recognised, recognise
from tasks.ingest.year_of_rows import COLUMNS

_FITTING: Final = 0.9
"""Share of the cells that a spec's lists of codes have to know."""
_FIRST_MODERN: Final = 2018


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
            found = recognise(path, Path(scratch))
            year = _year(found)
    except EvenhandError:
        return ""
    if not any(name.startswith(ACTION) for name in found.columns) or not set(COLUMNS) & set(found.columns):
        return ""
    layout = found.layout.name.replace("_", " ")
    spec = next((p for p in bundled() if p.stem == "hmda"), None)
    if spec is None:
        return ""
    command = _words(spec, path, year)
    return f"{path.name} is HMDA, {layout} layout, and needs no draft: use {_shown(spec)}, with\n  {command}"


def _words(spec: Path, path: Path, year: str) -> str:
    """The command that audits a file of HMDA: before 2018 what the year lacks has to be left out."""
    given, said = str(path), year or "YEAR"
    if year and int(year) < _FIRST_MODERN:
        if year not in path.name:
            adding = f"evenhand data add {quote(given)} --kind historic --year {said}"
            return f"{adding}, then evenhand audit {quote(_shown(spec))} --year {said}"
        given = str(path.with_name(path.name.replace(year, "{year}")))
    path_words = f"--set {quote('source.path=' + given)} --set source.vintage=null"
    return f"evenhand audit {quote(_shown(spec))} {path_words} --year {said}"


def _year(found: Recognised) -> str:
    """The year of the first row; empty where no column tells it."""
    if found.layout.stops:
        with found.path.open("rb") as file:
            return file.read(4).decode("ascii", errors="ignore")
    at = next((found.columns.index(name) for name in COLUMNS if name in found.columns), None)
    try:
        records = sniffed(found.path).records
    except DataQualityError:  # Parquet
        return ""
    rows = records[1:] if found.header else records
    value = rows[0][at] if at is not None and rows and at < len(rows[0]) else ""
    return value if value.isdecimal() else ""


def fitting(frame: pd.DataFrame, named: Source | None) -> Example | None:
    """The bundled spec whose columns and codes a table has; ``named`` is None where the table names no column."""
    found = [example for path in bundled() if (example := _fits(path, frame, named is not None))]
    return found[0] if found else None


def _fits(path: Path, frame: pd.DataFrame, has_header: bool) -> Example | None:
    raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    source = raw.get("source", {})
    header = tuple(map(str, source.get("header", ())))
    if source.get("kind") != "csv" or (not has_header and len(header) != frame.shape[1]):
        return None
    named = frame if has_header else frame.set_axis(list(header), axis=1)
    derived = source.get("derive", {})
    columns = {name: column for name, column in raw["columns"].items() if name not in derived}
    wanted = [*columns, *source.get("keep", {}), raw["decision"]["column"], *(d["column"] for d in derived.values())]
    if any(name not in named for name in wanted) or not _codes_fit(raw, columns, derived, named):
        return None
    return Example(raw.get("title") or raw["name"], _shown(path), header)


def _codes_fit(
    raw: Mapping[str, Any], columns: Mapping[str, Any], derived: Mapping[str, Any], frame: pd.DataFrame
) -> bool:
    """Whether the cells hold the codes that the spec lists: both sides of the decision, orders, and what is derived."""
    decision = raw["decision"]
    sides = [frame[decision["column"]].isin([_text(v) for v in decision[s]]) for s in ("favourable", "unfavourable")]
    listed = [(name, column["order"]) for name, column in columns.items() if column.get("order")]
    listed += [(d["column"], [code for codes in d["values"].values() for code in codes]) for d in derived.values()]
    known = (frame[name].isin([_text(code) for code in codes]).mean() for name, codes in listed)
    return all(side.any() for side in sides) and all(share >= _FITTING for share in known)


def _text(code: object) -> str:
    return str(code).lower() if isinstance(code, bool) else str(code)


def _shown(path: Path) -> str:
    """A path as it is given from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
