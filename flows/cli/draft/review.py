"""What a written spec has left to confirm, by its marks and by the table as it reads now."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import Question, questions, settings_of
from flows.cli.draft.reading import read_source, source_of
from flows.cli.draft.spec_text import confirmed
from flows.cli.draft.table import Column, Table
from flows.cli.draft.vocabulary import plain, protected_kind
from schemas.audit.file import Mark, parse, spec_text
from schemas.audit.intake import FOLDINGS, ColumnRecipe
from schemas.audit.source import Source
from schemas.errors import SpecError
from tasks.ingest.intake.recipe import Reading, cells_of
from tasks.ingest.sources.door import describe
from tasks.ingest.sources.raw import check_regular

_FORM: Final = ("kind", "encoding", "delimiter", "quote", "skip", "foot", "comment", "header")
"""Keys of a source about the form of its file, which may change from year to year."""
_MOST_VALUES: Final = 60
_KINDS: Final = {
    "number": "numbers",
    "date": "dates by the formats of its recipe",
    "age": "dates of birth by the formats of its recipe",
}
"""What cells are that a recipe reads."""
_OWN_WEIGHT: Final = 12
_WEIGHTS: Final = {"decision": 2, "source": 5}
"""Of marks that no question of a draft is about, by the part of the spec; of the others the one above."""
_UNREAD: Final = 0.01
"""Share of a column's cells from which on it is told that they are no numbers."""


@dataclass(frozen=True)
class Review:
    """What is open of a spec, and what is new in its table."""

    questions: tuple[Question, ...]
    changes: tuple[str, ...]
    marks: tuple[Mark, ...]


def review(spec: Path, file: Path | None = None) -> Review:
    """Reads a spec and its table again, or another table by the same spec, such as the one of the next year.

    Raises:
        EvenhandError: the spec is none, has no recipe to hold another table against, or a table cannot be read.
    """
    _, parsed = _parsed(spec)
    raw = parsed.value
    if not isinstance(raw, Mapping) or not isinstance(raw.get("source"), Mapping) or "intake" not in raw["source"]:
        if file is not None:
            raise SpecError(f"{spec} has no recipe (source.intake), by which {file.name} could be checked; draft one")
        return Review(tuple(_of_marks(parsed.marks)), (), parsed.marks)
    source = source_of(dict(raw["source"]), spec.parent)
    if file is None:
        draft = drafted(read_source(source, Path(source.paths[0])), settings_of(raw))
        return Review(tuple(_open(questions(draft), parsed.marks)), tuple(_changes(draft, raw)), parsed.marks)
    forms = [*_forms(source, file)]
    draft = drafted(_of_next_year(source, file), settings_of(raw))
    before = read_source(source, Path(source.paths[0])) if Path(source.paths[0]).is_file() else None
    changes = [*forms, *_changes(draft, raw, before), *_read_otherwise(draft, source)]
    return Review(tuple(_open(questions(draft), parsed.marks)), tuple(changes), parsed.marks)


def _of_next_year(source: Source, file: Path) -> Table:
    """Another table by the source of a spec, with the form that the file itself has where it has another one."""
    described = describe(file, member=source.member, sheet=source.sheet).source
    form = {key: getattr(described, key) for key in _FORM}
    return read_source(source.lying_at((str(file),)).model_copy(update=form), file)


def _forms(source: Source, file: Path) -> Iterator[str]:
    """What of the form of a file differs from what the spec says."""
    described = describe(file, member=source.member, sheet=source.sheet).source
    for key in _FORM:
        now, then = getattr(described, key), getattr(source, key)
        if now != then:
            yield f"source.{key} is {now!r} for this file, and {then!r} in the spec"


def _read_otherwise(draft: Draft, source: Source) -> Iterator[str]:
    """Columns of which this table alone would be read by another recipe than the spec has."""
    recipes = source.intake.columns if source.intake else {}
    for name, recipe in draft.recipes().items():
        written = recipes.get(name)
        if written is None and recipe.read != "text":
            yield f"{name}: would be read as {recipe.read}, and has no recipe in the spec"
        if written is None or written.read == "age":
            continue
        for key in ("read", "decimal", "thousands", "unit", "format", "codes"):
            now, then = getattr(recipe, key), getattr(written, key)
            if now and now != then and not (isinstance(now, tuple) and set(now) <= set(then)):
                yield f"{name}: {key} would be {_shown(now)}, and is {_shown(then)} in the spec"


def _shown(value: object) -> str:
    return ", ".join(map(repr, value)) or "none" if isinstance(value, tuple) else repr(value) if value else "none"


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
        part = mark.key.partition(".")[0]
        weight = 1 if mark.key == "decision.column" else _WEIGHTS.get(part, _OWN_WEIGHT)
        yield Question(mark.key, (mark.key,), weight, mark.key.partition(".")[0], text, "yes")


def _changes(draft: Draft, raw: Mapping[str, Any], before: Table | None = None) -> Iterator[str]:
    """What the table has now that the spec, and the table before it, do not know."""
    table, decision = draft.table, raw.get("decision") or {}
    listed = {plain(str(v)) for side in ("favourable", "unfavourable", "neither") for v in decision.get(side) or ()}
    if draft.decision is not None and listed - {"check"}:
        for value, rows in draft.decision.rows.items():
            if plain(value) in listed:
                continue
            yield f"{draft.decision.column}: {value} is in no list of the spec ({rows:,} rows)"
    spec_columns = {*(raw.get("columns") or {}), decision.get("column")}
    gone = [str(name) for name in spec_columns if name and name != "CHECK" and name not in table.columns]
    fresh = [name for name in table.names if name not in spec_columns]
    if gone:
        yield f"columns of the spec that the table has no more: {', '.join(_likely(name, fresh) for name in gone[:6])}"
    if fresh:
        yield f"columns that the spec does not name: {', '.join(fresh[:6])}"
    yield from _new_values(draft, raw, before)
    yield from _unread(table, raw, before)


def _likely(name: str, fresh: Sequence[str]) -> str:
    """A column that is gone, with the new one that it is likely called now."""
    alike = [other for other in fresh if plain(other) == plain(name)]
    alike += [other for other in fresh if protected_kind(name) and protected_kind(other) == protected_kind(name)]
    alike += get_close_matches(name, fresh, 1)
    return f"{name} (now {alike[0]}? source.rename: {{'{alike[0]}': '{name}'}})" if alike else name


def _new_values(draft: Draft, raw: Mapping[str, Any], before: Table | None) -> Iterator[str]:
    """Values of groups and categories that neither the spec nor the table before it has."""
    attributes = {p["columns"][0]: p for p in raw.get("protected") or () if len(p.get("columns") or ()) == 1}
    for name, column in draft.table.columns.items():
        if name == draft.decision_column or column.form in ("number", "date") or len(column.values) > _MOST_VALUES:
            continue
        if name not in attributes and name not in draft.features:
            continue
        listed = [str(value) for value in ((raw.get("columns") or {}).get(name) or {}).get("order") or ()]
        groups = (attributes.get(name) or {}).get("groups") or {}
        listed += [str(value) for values in groups.values() for value in values]
        known = {plain(value) for value in listed}
        known |= {plain(value) for value in before.columns[name].values} if before and name in before.columns else set()
        fresh = [f"{value} ({rows:,} rows)" for value, rows in column.values.items() if plain(value) not in known]
        if known and fresh:
            yield f"{name}: new values {', '.join(fresh[:6])}"


def _unread(table: Table, raw: Mapping[str, Any], before: Table | None) -> Iterator[str]:
    """Columns with more cells that the recipe of the spec cannot read."""
    recipes = (raw["source"].get("intake") or {}).get("columns") or {}
    for name, written in recipes.items():
        recipe = ColumnRecipe.model_validate(written)
        if name not in table.columns or recipe.read not in _KINDS:
            continue
        unread, share = unread_cells(table.columns[name], recipe)
        then = unread_cells(before.columns[name], recipe)[1] if before and name in before.columns else 0.0
        if share > max(_UNREAD, then):
            earlier = f", before {then:.1%}" if before else ""
            yield f"{name}: {unread:,} cells ({share:.1%}) are no {_KINDS[recipe.read]}{earlier}"


def unread_cells(column: Column, recipe: ColumnRecipe) -> tuple[int, float]:
    """Cells that a recipe leaves unread, and their share of those that are there."""
    cells = cells_of(Reading(column.name, recipe, FOLDINGS), column.counts)
    rows = Counter(dict.fromkeys(("value", "missing", "unread"), 0))
    for text, cell in cells.items():
        rows[cell.fate] += column.counts[text]
    return rows["unread"], rows["unread"] / max(1, rows["value"] + rows["unread"])


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
