"""Drafts an audit spec from a table, and marks every guess for the user to confirm."""

import json
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, StrictUndefined

from schemas.audit.source import Source
from schemas.errors import SeveralLinesError, SpecError
from tasks.ingest.cells import canonical
from tasks.ingest.regular_file import check_regular
from tasks.ingest.sources import delimited
from tasks.ingest.sources.raw import Raw
from tasks.ingest.sources.text import first_line

_DECISION_WORDS = ("approve", "decision", "action_taken", "denied", "deny", "outcome", "target", "label", "status")
_PROTECTED_WORDS = ("race", "ethnicity", "sex", "gender", "age", "marital", "religion", "nationality", "married")
_GROUPS_UP_TO = 30
_FAVOURABLE_WORDS = ("1", "yes", "true", "approved", "approve", "good", "granted", "y")
_HMDA_ACTIONS = (["1", "2"], ["3"])
"""action_taken: originated and approved but not accepted, against denied; the other actions are no decisions."""
_ORDERED_UP_TO = 15
"""Up to this many distinct numbers a column reads as categories when it is a code, and is offered as nominal."""

_TEMPLATE = """\
# Audit spec drafted from {{ file }} ({{ rows }} rows). Lines with CHECK are guesses: confirm or correct each.
# Run it with: evenhand audit THIS.yaml      Every key: docs/audit-spec.md
name: {{ name }}
title: {{ title }}
year: 2024  # CHECK: the year of the decisions
source: {kind: {{ kind }}, path: {{ path }}, delimiter: {{ delimiter }}{{ multiline }}
#   missing: ['', NA]        texts that mean a missing value
#   exempt: [Exempt]         texts that mean exempt from reporting
#   keep: {column: [value]}  rows with other values are refused, with that reason
row_id: {{ row_id }}  # column that identifies a row; null counts the rows

# CHECK: which value favours the applicant. Swapping the two turns every result around.
decision: {column: {{ decision }}, favourable: {{ favourable }}, unfavourable: {{ unfavourable }}}

protected:  # CHECK: each value is a group unless `groups` joins some; a missing value is a group too
  - name: {{ protected }}
    columns: [{{ protected }}]  # several columns are crossed: [race, sex]
    reference: {{ reference }}  # the group that the others are compared with: here the largest

# type: continuous, ordinal (with its order), binary, nominal     role: feature, excluded, ...
# constraint, how an applicant can change it: free, up, down, immutable
columns:
{% for c in columns %}
  {{ c.name }}: {type: {{ c.type }}{{ c.more }}{{ c.constraint }}}{{ c.note }}
{% endfor %}

model: {kind: logistic_regression}  # none: audit the decisions alone

# Limits are fixed before the run: CHECK that you would defend them; null: none. direct, total and recourse are choices
# of Evenhand. 0.80 of outcome is the four fifths of 29 CFR 1607.4(D), a rule of employment that no regulator of lending
# codified. reasons has no scale. More: docs/verdicts.md
verdicts:
  columns_complete: CHECK  # true: the table holds every column that the lender decided by. CHECK is read as false
  limits: {direct: 0.02, total: 0.05, outcome: 0.80, recourse: {difference: 0.05, ratio: 0.80}, reasons: null}

disclosure: {profile: strict}  # strict: counts up to 7 withheld, others rounded to 5; public: below 5 withheld
seed: 482
"""


_MULTILINE = ", multiline: true}  # CHECK: cells in quotes go over several lines, and none by a stray quote"


def draft(file: Path) -> str:
    """The text of an audit spec for a delimited file.

    Raises:
        SpecError: there is no such file, it has one column, or none that could be a decision or a protected attribute.
        DataQualityError: the file is no table.
    """
    check_regular(file)
    if not file.is_file():
        raise SpecError(f"no file at {str(file)!r}: give a delimited table with a header")
    kind: Literal["csv", "parquet"] = "parquet" if file.suffix == ".parquet" else "csv"
    source = Source(kind=kind, path=str(file))
    if kind == "csv":
        source = source.model_copy(update={"delimiter": max(",|;\t", key=first_line(source, file).count)})
    try:
        raw = _read(source, file.name)
    except SeveralLinesError:  # there is no spec yet in which to allow it
        source = source.model_copy(update={"multiline": True})
        raw = _read(source, file.name)
        if raw.unread or _hold_rows(raw.table, source.delimiter):
            raise
    names = raw.table.column_names
    frame = raw.table.to_pandas().apply(lambda column: column.map(canonical))
    few = [n for n in names if 2 <= frame[n].nunique() <= 10]
    decision = _first(names, _DECISION_WORDS, few, "a decision (two values or a few)")
    others = [n for n in names if n != decision]
    grouping = [n for n in others if 2 <= frame[n].nunique() <= _GROUPS_UP_TO]
    named = [n for word in _PROTECTED_WORDS for n in grouping if word in _words(n)]
    protected = (named or [_first(others, (), grouping, "the groups to compare")])[0]
    favourable, unfavourable = _sides(frame[decision])
    keys = [n for n in others if frame[n].is_unique and n.lower().endswith("id")]
    values: dict[str, Any] = {
        "file": file.name,
        "rows": f"{len(frame):,}",
        "name": "".join(ch if ch.isalnum() and ch.isascii() else "-" for ch in file.name.split(".")[0]).strip("-")
        or "audit",
        "title": _quoted(file.name.split(".")[0]),
        "kind": kind,
        "path": _quoted(str(file)),
        "delimiter": _quoted(source.delimiter),
        "multiline": _MULTILINE if source.multiline else "}",
        "row_id": _quoted(keys[0]) if keys else "null",
        "decision": _quoted(decision),
        "favourable": _listed(favourable),
        "unfavourable": _listed(unfavourable),
        "protected": _quoted(protected),
        "reference": _quoted(frame[protected].mode()[0]),
        "columns": [_column(frame[n], n) for n in others if n not in (protected, *keys[:1])],
    }
    environment = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, autoescape=False)  # noqa: S701 YAML, quoted by _quoted
    return environment.from_string(_TEMPLATE).render(**values)


def _read(source: Source, name: str) -> Raw:
    """All columns as text."""
    names = delimited.header(source)
    if len(names) == 1:
        raise SpecError(
            f"{name} has one column, {names[0]!r}: a table has its cells between commas, pipes, semicolons or tabs"
        )
    return delimited.read(source, names)


def _hold_rows(table: pa.Table, delimiter: str) -> bool:
    """Whether a cell of several lines has the delimiters of as many rows, as one between two stray quotes has."""
    long = [pc.filter(column, pc.match_substring_regex(column, r"[\r\n]")).to_pylist() for column in table.columns]
    cells = [name for name in table.column_names if "\n" in name or "\r" in name] + [c for some in long for c in some]
    rest = table.num_columns - 1
    return any(cell.count(delimiter) >= rest * (cell.count("\n") or cell.count("\r")) for cell in cells)


def _sides(values: pd.Series) -> tuple[list[str], list[str]]:
    """A guess at the favourable and the unfavourable values of the decision."""
    if values.name == "action_taken":
        return _HMDA_ACTIONS
    ordered = sorted((v for v in values.unique() if v), key=lambda v: (str(v).lower() not in _FAVOURABLE_WORDS, v))
    if any(word in str(values.name).lower() for word in ("deni", "deny", "default", "reject")):
        ordered = ordered[::-1]  # a flag of the unfavourable outcome
    return ordered[:1], ordered[1:]


def _words(name: str) -> set[str]:
    """The words of a column name: applicant_race-1 is applicant, race and 1."""
    return set(re.split(r"[^a-z]+", name.lower()))


def _first(names: list[str], words: tuple[str, ...], fallback: list[str], what: str) -> str:
    for word in words:
        for name in names:
            if word in name.lower() and name in fallback:
                return name
    if not fallback:
        raise SpecError(f"no column could hold {what}; write the spec by hand from data/audits/boston1990.yaml")
    return fallback[0]


def _column(values: pd.Series, name: str) -> dict[str, str]:
    """A column's entry: its type as guessed, and a note that says what it was guessed from."""
    present = values[~values.isin(["", "NA", "Exempt"])]
    numbers = pd.to_numeric(present, errors="coerce")
    unique = sorted(present.unique())
    absent = len(values) - len(present)
    missing = f", {absent:,} missing" if absent else ""
    entry = {"name": _quoted(name), "more": "", "constraint": ", constraint: free", "type": "nominal"}
    if _words(name) & set(_PROTECTED_WORDS):
        told = "names a protected attribute; a feature only if the lender may use it"
        return entry | {"more": ", role: excluded", "note": f"  # CHECK: {told}"}
    if len(unique) == 2:
        entry |= {"type": "binary", "more": f", order: {_listed(unique)}"}
    elif numbers.notna().mean() > 0.95 and len(unique) > _ORDERED_UP_TO:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        return entry | {"type": "continuous", "note": f"  # CHECK: {low:g} to {high:g}{missing}"}
    elif len(unique) > 50 or len(unique) < 2:
        entry |= {"more": ", role: excluded"}
    return entry | {"note": f"  # CHECK: {len(unique):,} values{missing}"}


def _quoted(text: str) -> str:
    """A YAML scalar that reads back as this very text."""
    if "\n" in text or "\r" in text:
        return json.dumps(text, ensure_ascii=False)
    return "'" + text.replace("'", "''") + "'"


def _listed(values: list[str]) -> str:
    return "[" + ", ".join(_quoted(v) for v in values) + "]"
