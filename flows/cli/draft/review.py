"""What a written spec has left to confirm, by its marks and by the table as it reads now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import Question, questions, settings_of
from flows.cli.draft.reading import read_source, source_of
from flows.cli.draft.spec_text import confirmed
from schemas.audit.file import Mark, parse, spec_text
from schemas.errors import SpecError
from tasks.ingest.sources.raw import check_regular

_OWN_WEIGHT: Final = 12
_UNREAD: Final = 0.01
"""Share of a column's cells from which on it is told that they are no numbers."""


@dataclass(frozen=True)
class Review:
    """What is open of a spec, and what is new in its table."""

    questions: tuple[Question, ...]
    changes: tuple[str, ...]
    marks: tuple[Mark, ...]


def review(spec: Path) -> Review:
    """Reads a spec and its table again.

    Raises:
        EvenhandError: the spec is none, or its table cannot be read.
    """
    _, parsed = _parsed(spec)
    raw = parsed.value
    if not isinstance(raw, Mapping) or not isinstance(raw.get("source"), Mapping) or "intake" not in raw["source"]:
        return Review(tuple(_of_marks(parsed.marks)), (), parsed.marks)
    source = source_of(dict(raw["source"]), spec.parent)
    table = read_source(source, Path(source.paths[0]))
    draft = drafted(table, settings_of(raw))
    return Review(tuple(_open(questions(draft), parsed.marks)), tuple(_changes(draft, raw)), parsed.marks)


def open_questions(spec: Path) -> list[Question]:
    """The unanswered questions of a spec, the worst first."""
    return list(review(spec).questions)


def _parsed(spec: Path) -> tuple[str, Any]:
    check_regular(spec)
    try:
        text = spec_text(spec)
        return text, parse(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{spec}: no spec can be read there; give a file that `evenhand init` wrote") from error
    except SpecError as error:
        raise SpecError(f"{spec}: {error}") from error


def _open(pending: Sequence[Question], marks: Sequence[Mark]) -> Iterator[Question]:
    """The questions with a marked key, each with its marked keys alone, and one for every other mark."""
    remaining = {mark.key: mark for mark in marks}
    for question in pending:
        keys = tuple(key for key in question.keys if key in remaining)
        if keys:
            yield replace(question, keys=keys, answered=None)
        for key in keys:
            del remaining[key]
    yield from _of_marks(tuple(remaining.values()))


def _of_marks(marks: Sequence[Mark]) -> Iterator[Question]:
    for mark in marks:
        text = mark.why or f"Is {mark.key} right?"
        weight = 1 if mark.key == "decision.column" else 2 if mark.key.startswith("decision.") else _OWN_WEIGHT
        yield Question(mark.key, (mark.key,), weight, mark.key.partition(".")[0], text, "yes")


def _changes(draft: Draft, raw: Mapping[str, Any]) -> Iterator[str]:
    """What the table has now that the spec does not know."""
    table, decision = draft.table, raw.get("decision") or {}
    listed = {str(value) for side in ("favourable", "unfavourable", "neither") for value in decision.get(side) or ()}
    if draft.decision is not None and listed - {"CHECK"}:
        for value, rows in draft.undecided.items():
            yield f"{draft.decision.column}: {value} is in no list of the spec ({rows:,} rows)"
    spec_columns = {*(raw.get("columns") or {}), decision.get("column")}
    gone = [str(name) for name in spec_columns if name and name != "CHECK" and name not in table.columns]
    fresh = [name for name in table.names if name not in spec_columns]
    if gone:
        yield f"columns of the spec that the table has no more: {', '.join(gone[:6])}"
    if fresh:
        yield f"columns that the spec does not name: {', '.join(fresh[:6])}"
    for name in draft.features:
        unread = table.columns[name].unread
        if unread > _UNREAD * sum(table.columns[name].counts.values()):
            yield f"{name}: {unread:,} cells are no numbers"


def confirm(spec: Path, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Takes the defaults of a spec, or of some questions and keys, and removes their marks from the file.

    Returns:
        Keys that were confirmed, and keys without a default, which stay.

    Raises:
        SpecError: the spec is none, or has no such question or key open.
    """
    text, parsed = _parsed(spec)
    requested = (
        list(parsed.marks) if not keys else [mark for key in keys for mark in _marks_of(spec, key, parsed.marks)]
    )
    open_values = set(_without_default(parsed.value))
    stay = [mark.key for mark in requested if mark.key in open_values]
    confirmed_lines = {mark.line: mark.key for mark in requested if mark.key not in open_values}
    if confirmed_lines:
        spec.write_text(confirmed(text, confirmed_lines), encoding="utf-8")
    return list(confirmed_lines.values()), stay


def _marks_of(spec: Path, key: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks of a key, of the keys below it, or of a question."""
    matches = [mark for mark in marks if mark.key == key or mark.key.startswith(f"{key}.")]
    if not matches:
        keys = {k for question in review(spec).questions if question.key == key for k in question.keys}
        matches = [mark for mark in marks if mark.key in keys]
    if not matches:
        open_keys = ", ".join(dict.fromkeys(mark.key.partition(".")[0] for mark in marks)) or "nothing"
        raise SpecError(f"--confirm {key}: the spec has no such key open; open are {open_keys}")
    return matches


def _without_default(raw: Any) -> Iterator[str]:
    """Keys with the value CHECK, which have no default."""
    decision = raw.get("decision") or {} if isinstance(raw, Mapping) else {}
    for name in ("column", "favourable", "unfavourable"):
        if decision.get(name) in ("CHECK", ["CHECK"]):
            yield f"decision.{name}"
    for i, attribute in enumerate(raw.get("protected") or () if isinstance(raw, Mapping) else ()):
        if attribute.get("columns") == ["CHECK"]:
            yield f"protected.{i}"
