"""The text of a drafted spec: every choice as YAML, every guess with its mark, every column with its reason."""

import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from flows.cli.draft.columns import Entry
from flows.cli.draft.decision import written
from flows.cli.draft.drafting import Draft
from flows.cli.draft.questions import Question, questions
from flows.cli.terminal import visible
from schemas.audit.intake import FOLDINGS, RULES
from schemas.audit.source import Source

LIMITS: Final = (
    "{similar_applicants: 0.02, causal_model: 0.05, approval_rates: 0.80, path_to_approval: {difference: 0.05, "
    "ratio: 0.80}, model_reasons: null}"
)
WITHOUT: Final = (
    ("fgce", "no column can change yet; once one can: `fgce: {}`"),
    ("raguel", "no column can change yet; once some can: `raguel: {}`, with `recourse: {weight: ...}` of each"),
    ("cst", "in what order do columns come about? Part the second tier, causes first, then run: `cst: ORDER`"),
    ("gcfn", "no column has the role mediator, which the protected attribute moves; once one has: `gcfn: {}`"),
    ("cec", "no column has the role financial, by which borrowers are comparable; once one has: `cec: {}`"),
)
"""Methods that a draft cannot run: what it lacks is nothing that a table tells."""
TAKEN: Final = "#+ "
"""Begins a line of the draft that the default answer of its question adds."""
_WIDE: Final = 100
"""Columns above which those that are left out are listed by reason."""
_NO_TEXTS: Final = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
"""Words that YAML reads as something else than text."""
_PLAIN: Final = re.compile(r"^[a-z_]+$")
_SOURCE_KEYS: Final = ("member", "sheet", "header", "skip", "foot", "comment", "starts", "encoding", "quote")


def text(draft: Draft, spec: Path | None = None) -> str:
    """The spec of a draft as YAML; ``spec`` is the file that it will lie in."""
    marks = _Marks(questions(draft))
    lines = [
        *_head(draft),
        *_source(draft, spec, marks),
        *_decision(draft, marks),
        *_protected(draft, marks),
        f"missing: exclude{marks.of('missing')}",
        "verdicts:",
        *_verdicts(draft, marks),
        *_columns(draft, marks),
        *_methods(draft),
    ]
    return "\n".join(lines) + "\n"


class _Marks:
    """The comments behind unconfirmed keys."""

    def __init__(self, pending: Sequence[Question]) -> None:
        self._why: dict[str, str] = {}
        for question in pending:
            if question.answered is None:
                for key in question.keys:
                    see = "" if key == question.keys[0] else f"see {question.keys[0]}"
                    self._why.setdefault(key, see or question.text)

    def of(self, key: str, why: str = "") -> str:
        """The comment of a key; empty where nothing is open. ``why`` replaces its text."""
        if key not in self._why:
            return ""
        return f" # CHECK: {_line(why or self._why[key])}"

    def __contains__(self, key: str) -> bool:
        """Whether a key is open."""
        return key in self._why


def _head(draft: Draft) -> Iterator[str]:
    table = draft.table
    sample = f", drafted from a sample of {table.rows:,}" if table.file_rows else ""
    rows = f"{table.file_rows or table.rows + table.repeated:,} rows, {len(table.names):,} columns{sample}"
    yield f"# Drafted by `evenhand init` from {_line(table.path.name)} ({rows})."
    yield "# Confirm or correct each line that is marked CHECK: evenhand init --confirm THIS.yaml [KEY ...] takes what"
    yield "# is there, evenhand init --check THIS.yaml lists what is left. Until then the report says: not confirmed."
    yield "# Every key: docs/audit-spec.md"
    if table.example is not None:
        yield f"# {_line(f'A bundled spec fits: {table.example.command(table.path)}')}"
    name = "".join(ch if ch.isalnum() and ch.isascii() else "-" for ch in table.path.name.split(".")[0])
    name = re.sub("-+", "-", name).strip("-")[:64] or "audit"
    yield f"name: {name if name[0].isalpha() and name.casefold() not in _NO_TEXTS else _quoted(name)}"
    yield f"title: {_quoted(draft.title)}"


def _source(draft: Draft, spec: Path | None, marks: _Marks) -> Iterator[str]:
    source, year = draft.table.source, draft.year
    yield f"year: {year.value}{marks.of('year')}"
    kind_mark = marks.of("source.kind")
    yield "source:"
    yield f"  kind: {source.kind}{kind_mark}"
    yield f"  path: {_quoted(_placed(Path(source.paths[0]), spec))} # from the folder of this spec, else from here"
    if source.kind == "csv":
        mark = source.delimiter
        yield f"  delimiter: {_quoted(mark) if mark.isprintable() else json.dumps(mark)}"
    for key in _SOURCE_KEYS:
        value = getattr(source, key)
        if value != Source.model_fields[key].default or f"source.{key}" in marks:
            yield f"  {key}: {_value(value)}{marks.of(f'source.{key}')}"
    if source.multiline:
        yield f"  multiline: true{marks.of('source.multiline')}"
    if source.missing != Source.model_fields["missing"].default:
        yield f"  missing: {_value(source.missing)}"
    if source.second_file is not None:
        second = source.second_file
        pair = second.key.model_dump()
        by: object = pair if second.key.this != second.key.other else second.key.this
        yield f"  with:{marks.of('source.with')}"
        yield f"    path: {_quoted(_placed(Path(second.path), spec))}"
        yield f"    key: {_value(by)}"
        yield f"    columns: {_value(second.columns)}"
    if source.derive:
        yield "  derive: # columns made of others: a new value for codes, or for the rows of which all rules hold"
        for name, derived in source.derive.items():
            yield f"    {_quoted(name)}: {written(derived)}{marks.of(f'source.derive.{name}')}"
    if year.column:
        yield f"  year_column: {_quoted(year.column)}"
    if year.column and len(year.rows) > 1:
        keep = f"{{minimum: {year.value}-01-01, maximum: {year.value}-12-31}}"
        if draft.table.columns[year.column].form != "date":
            keep = f"['{year.value}']"
        taken = TAKEN if "year" in marks else ""  # the answer may have come before the text
        yield f"  {taken}keep: {{{_quoted(year.column)}: {keep}}} # year: the rows of {year.value} alone"
    yield "  intake: # how cells are read: nothing has to be cleaned before"
    yield f"    rules: {RULES}"
    yield f"    fold: {_value(FOLDINGS)} # spellings that are one value may differ by these"
    yield f"    repeats: {draft.repeats}{marks.of('source.intake.repeats')}"
    recipes = draft.recipes()
    if recipes:
        yield "    columns:"
        for name, recipe in recipes.items():
            values = ", ".join(f"{key}: {_value(value)}" for key, value in recipe.model_dump().items() if value)
            yield f"      {_quoted(name)}: {{{values}}}"
    row_id = "null" if draft.row_id is None else _quoted(draft.row_id)
    yield f"row_id: {row_id}{marks.of('row_id') or ' # column that identifies a row; null counts the rows'}"


def _placed(path: Path, spec: Path | None) -> str:
    """A path from the folder of the spec."""
    if spec is None or path.is_absolute():
        return str(path)
    return os.path.relpath(path, spec.parent)


def _decision(draft: Draft, marks: _Marks) -> Iterator[str]:
    yield "decision:"
    if draft.decision is None:
        yield f"  column: CHECK{marks.of('decision.column').replace('CHECK: ', '')}"
        yield "  favourable: [CHECK] # CHECK: see decision.column"
        yield "  unfavourable: [CHECK] # CHECK: see decision.column"
        return
    yield f"  column: {_quoted(draft.decision.column)}{marks.of('decision.column')}"
    for side in ("favourable", "unfavourable", "neither"):
        values = list(draft.of_side(side))
        key = f"decision.{side}"
        if values:
            yield f"  {side}: {_value(values)}{marks.of(key)}"
        elif side != "neither":
            yield f"  {side}: [CHECK]{marks.of(key) or ' # CHECK: which values?'}"


def _protected(draft: Draft, marks: _Marks) -> Iterator[str]:
    yield "protected: # each value is a group unless `groups` joins some; several columns are crossed: [race, sex]"
    if not draft.attributes:
        yield "  - name: CHECK"
        yield "    columns: [CHECK]"
        yield "    reference: CHECK"
    for i, attribute in enumerate(draft.attributes):
        key = f"protected.{i}"
        name = "age" if attribute.at else attribute.column
        yield f"  - name: {_quoted(name)}{marks.of(key)}"
        yield f"    columns: [{_quoted(attribute.column)}]"
        if attribute.bands:
            yield f"    bands: [{', '.join(f'{band:g}' for band in attribute.bands)}] # ages at which groups begin"
        if attribute.groups:
            groups = ", ".join(f"{_quoted(name)}: {_value(values)}" for name, values in attribute.groups.items())
            yield f"    groups: {{{groups}}}{marks.of(f'{key}.groups')}"
        yield f"    reference: {_quoted(attribute.reference)}{marks.of(f'{key}.reference')}"
        if attribute.reported_only:
            yield f"    reported_only: {_value(attribute.reported_only)}{marks.of(f'{key}.reported_only')}"


def _verdicts(draft: Draft, marks: _Marks) -> Iterator[str]:
    complete = "CHECK" if "verdicts.columns_complete" in marks else "false"
    if draft.choices.settings.get("verdicts.columns_complete") is True and complete == "false":
        complete = "true"
    yield f"  columns_complete: {complete} # true: every column that was decided by is here; CHECK is read as false"
    yield "  # all are choices of Evenhand but 0.80 of approval_rates, which is the four fifths of 29 CFR"
    yield "  # 1607.4(D), a rule of employment that no regulator of lending codified (docs/verdicts.md)"
    yield f"  limits: {LIMITS}{marks.of('verdicts.limits')}"


def _columns(draft: Draft, marks: _Marks) -> Iterator[str]:
    if not draft.features:
        yield "# No column is left as a feature: an audit compares approval rates alone."
    yield f"columns:{marks.of('columns')}"
    yield "  # immutable: until you say which of them an applicant can change: `free`, `up` or `down`"
    yield "  # type: continuous, ordinal (with its order), binary, nominal. role: feature, or excluded"
    after = [entry.name for entry in draft.entries if entry.reason == "after"]
    for i, part in enumerate(textwrap.wrap(_line(", ".join(after)), 110)):
        yield f"  # {'' if i else 'known after the decision: '}{part}"
    features = [entry for entry in draft.entries if not entry.excluded]
    excluded = [entry for entry in draft.entries if entry.excluded]
    wide = len(draft.entries) > _WIDE
    labels = {name: column.label for name, column in draft.table.columns.items()}
    for entry in features if wide else draft.entries:
        yield _entry(entry, marks, labels)
    by_reason: dict[str, list[Entry]] = {}
    for entry in excluded if wide else ():
        by_reason.setdefault(entry.why, []).append(entry)
    for why, entries in by_reason.items():
        if len(entries) > 1:
            yield f"  # {_line(why)}: {len(entries):,} columns"
        for entry in entries:
            yield _entry(entry, marks, labels, silent=len(entries) > 1)
    yield ""
    yield "model: {kind: logistic_regression} # none: audit the decisions alone"


def _entry(entry: Entry, marks: _Marks, labels: Mapping[str, str], *, silent: bool = False) -> str:
    order = f", order: {_value(entry.order)}" if entry.order else ""
    suffix = ", role: excluded" if entry.excluded else f"{order}, constraint: immutable"
    suffix += f", label: {_quoted(label)}" if (label := labels.get(entry.name, "")) and not entry.excluded else ""
    why = "; ".join(part for part in (entry.why, entry.doubt) if part)
    comment = marks.of(f"columns.{entry.name}", why) or ("" if silent else f" # {_line(why)}")
    return f"  {_quoted(entry.name)}: {{type: {entry.type}{suffix}}}{comment}"


def _methods(draft: Draft) -> Iterator[str]:
    yield ""
    yield "# Methods that do not run on this draft, and why:"
    protected = [attribute.column for attribute in draft.attributes]
    features = [entry.name for entry in draft.entries if not entry.excluded and entry.name not in protected]
    second = _value(features) if len(features) <= _WIDE else "[FEATURES]"
    order = _line(f"{{graph: saturated, causal_order: [{_value(protected)}, {second}]}}")
    for method, why in WITHOUT:
        yield f"#   {method}: {why.replace('ORDER', order)}"
    yield "methods:"
    yield "  adjusted: {}"
    yield "  fgce: null"
    yield ""
    yield "disclosure: {profile: strict} # counts up to 7 withheld, others rounded to 5; public: below 5 withheld"
    yield "seed: 482"


def _line(words: str) -> str:
    """Words of a comment, on one line and without control characters."""
    return visible(" ".join(words.split()))


def _value(value: object) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return value if _PLAIN.match(value) and value not in _RESERVED else _quoted(value)
    if isinstance(value, Iterable):
        return "[" + ", ".join(_quoted(str(item)) if str(item) not in FOLDINGS else str(item) for item in value) + "]"
    return str(value)


_RESERVED: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def _quoted(words: str) -> str:
    """A YAML scalar that reads back as this very text, and works no terminal."""
    if all(ch.isprintable() for ch in words):
        return "'" + words.replace("'", "''") + "'"
    escaped = (f"\\{ch}" if ch in '"\\' else ch if ch.isprintable() else f"\\U{ord(ch):08x}" for ch in words)
    return '"' + "".join(escaped) + '"'


# --------------------------------------------------------------------------------------------------------------------
# Marks of a spec that lies there.


_MARK: Final = re.compile(r"\s#\s*CHECK\b:?\s*(?P<why>.*)$")
_WORD: Final = re.compile(r"^(\s*columns_complete:\s*)CHECK\b")


def confirmed(written: str, lines: Mapping[int, str]) -> str:
    """A spec without the marks of some lines: their defaults are taken.

    Args:
        written: the text of the spec.
        lines: number of each line, from 1, and the key that it holds.
    """
    keys = set(lines.values())
    out = []
    for number, line in enumerate(written.split("\n"), 1):
        changed = line
        if number in lines:
            changed = _WORD.sub(r"\g<1>false", _MARK.sub("", line))
        stripped = line.lstrip()
        if stripped.startswith(TAKEN) and stripped.rpartition("# ")[2].partition(":")[0] in keys:
            changed = line.replace(TAKEN, "", 1)
        out.append(changed)
    return "\n".join(out)
