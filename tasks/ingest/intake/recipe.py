"""The recipe of each column of an audit, from its spec, and what it makes of the distinct texts of the column.

Python decides here, on distinct texts. SQL does the same to the rows: ``sql``. Scope: one column.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from schemas.audit.intake import RULES, ColumnRecipe, Folding
from schemas.audit.spec import Decision
from schemas.bounds import canonical
from schemas.errors import Location, SpecError
from schemas.terms import Kind
from tasks.ingest.intake import dates, numbers
from tasks.ingest.intake.codes import ZERO_DATES
from tasks.ingest.intake.folding import fold, spellings
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.units import SINCE_2
from tasks.ingest.statement import Question

Fate = Literal["value", "missing", "unread"]

UNREAD_AGE: Final = "unread"
"""What stands for a date of birth that gives no age, since the date itself is handed on to nobody."""
_AGE: Final = re.compile(r"\d{1,3}", re.ASCII)


@dataclass(frozen=True)
class Reading:
    """How the cells of one column are read."""

    column: str
    recipe: ColumnRecipe
    fold: tuple[Folding, ...]
    words: tuple[str, ...] = ()
    """Values of the spec in the spelling that is printed; of several for one value the first."""
    missing: tuple[str, ...] = ()
    """Words of the spec that mean missing here."""
    exempt: tuple[str, ...] = ()
    """Words of the spec that mean exempt from reporting; they stay, and are no values."""
    rules: int = RULES
    """Version of the rules that the spec was written with."""

    @cached_property
    def further(self) -> tuple[str, ...]:
        """Words that mean missing in this column alone."""
        return (*self.recipe.missing, *self.missing)

    @cached_property
    def exempt_forms(self) -> dict[str, str]:
        """Folded words that mean exempt, each as the spec writes it."""
        return {_form(word, self.fold): word for word in reversed(self.exempt)}

    @cached_property
    def codes(self) -> frozenset[str]:
        """The numbers that mean missing, as canonical decimal text; the spec writes them with a point."""
        point = ColumnRecipe(read="number", decimal=".")
        listed = (*self.recipe.codes, *self.further)
        plain = {number for code in listed if (number := numbers.parse(code.strip(), point)) is not None}
        return frozenset(plain | {f"{number}0" for number in plain if "." in number})


class Cell(NamedTuple):
    """What a text is read as."""

    text: str
    fate: Fate
    rules: tuple[str, ...] = ()
    """Those that took effect."""


# --------------------------------------------------------------------------------------------------------------------
# The columns of an audit that are read by a recipe, each with the values that the spec names.


def readings(question: Question, columns: Sequence[str], partition_columns: Collection[str] = ()) -> dict[str, Reading]:
    """How the columns are read, by their names; the others stay as they are.

    Identifiers, and numbers without a recipe of their own, stay as they are. So does a column that is read for its year
    or its range alone.

    Args:
        question: the parts of the spec about rows.
        columns: of the source.
        partition_columns: those that partitions are cut by; their cells are compared as they are.

    Raises:
        SpecError: two values of the spec that mean different things are the same once they are folded.
    """
    intake = question.source.intake
    if intake is None:
        return {}
    folded = _folded_columns(question)
    out = {}
    for name in columns:
        recipe = intake.columns.get(name)
        column = question.columns.get(name)
        if name in partition_columns:
            continue
        if recipe is None and (name not in folded or (column is not None and column.type is Kind.CONTINUOUS)):
            continue
        missing = (*question.source.missing, *(column.missing if column else ()))
        words = tuple(dict.fromkeys(word for word in _words(question, name) if word not in missing))
        words_of_missing, exempt = tuple(filter(None, missing)), question.source.exempt
        out[name] = Reading(name, recipe or ColumnRecipe(), intake.fold, words, words_of_missing, exempt, intake.rules)
    _check_different(question, intake.fold)
    return out


def respelled(question: Question, columns: Sequence[str], partition_columns: Collection[str] = ()) -> Question:
    """The question with its codes in the spelling that cells of their column have after intake: see ``readings``."""
    read_by = readings(question, columns, partition_columns)
    printed = {name: _Printed(reading) for name, reading in read_by.items() if reading.recipe.read in ("text", "bands")}
    if not printed:
        return question

    def codes(column: str, values: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(printed[column].of(v) if column in printed else v for v in values))

    def decision(label: Decision) -> Decision:
        sides = {side: codes(label.column, getattr(label, side)) for side in ("favourable", "unfavourable", "neither")}
        return label.model_copy(update=sides)

    source = question.source
    keep = {name: rule.model_copy(update={"values": codes(name, rule.values)}) for name, rule in source.keep.items()}
    derive = {name: derived.respelled(codes) for name, derived in source.derive.items()}
    protected = [
        p.model_copy(update={"groups": {group: codes(p.columns[0], values) for group, values in p.groups.items()}})
        for p in question.protected
    ]
    return Question(
        source.model_copy(update={"keep": keep, "derive": derive}),
        question.row_id,
        decision(question.decision),
        None if question.outcome is None else decision(question.outcome),
        tuple(protected),
        question.columns,
    )


class _Printed:
    """The printed spelling of a code of the spec."""

    def __init__(self, reading: Reading) -> None:
        self._fold = reading.fold
        self._by_form: dict[str, str] = {}
        for word in reading.words:
            self._by_form.setdefault(_form(word, reading.fold), word)

    def of(self, code: str) -> str:
        return self._by_form.get(_form(code, self._fold), code)


def _form(word: str, rules: Sequence[Folding]) -> str:
    return fold(canonical(word), rules) if rules else canonical(word)


def _folded_columns(question: Question) -> set[str]:
    """Decisions, protected attributes, categories, and what rows are kept or columns derived by."""
    labels = [label.column for label in (question.decision, question.outcome) if label]
    attributes = [column for p in question.protected if not p.bands for column in p.columns]
    kept_columns = [name for name, rule in question.source.keep.items() if rule.values or rule.present]
    derived = [name for d in question.source.derive.values() for name in d.columns]
    return {*labels, *attributes, *question.columns, *kept_columns, *derived} - {question.row_id}


def _words(question: Question, name: str) -> Iterator[str]:
    """The values that the spec names for a column; what other stages compare or reports print comes first."""
    source, column = question.source, question.columns.get(name)
    recipe = source.intake.columns.get(name) if source.intake else None
    if column:
        yield from column.order
        yield from (code for old, new in column.transitions.items() for code in (old, *new))
    for p in question.protected:
        if name in p.columns:
            printed = [] if p.groups or p.bands else [*p.reference.split(" and "), p.reference, *p.reported_only]
            yield from printed
            yield from (value for values in p.groups.values() for value in values)
    for label in (question.decision, question.outcome):
        if label and label.column == name:
            yield from (*label.favourable, *label.unfavourable, *label.neither)
    yield from recipe.order if recipe else ()
    yield from source.keep[name].values if name in source.keep else ()
    for derived in source.derive.values():
        yield from derived.codes_of(name)


def _check_different(question: Question, rules: Sequence[Folding]) -> None:
    """Values that mean different things have to stay apart once they are folded."""
    lists: list[tuple[Location, Mapping[str, Sequence[str]]]] = []
    for part, label in (("decision", question.decision), ("outcome", question.outcome)):
        if label:
            sides = {side: getattr(label, side) for side in ("favourable", "unfavourable", "neither")}
            lists.append(((part,), sides))
    lists += [(("protected", i, "groups"), p.groups) for i, p in enumerate(question.protected)]
    lists += [(("source", "derive", name, "values"), d.values) for name, d in question.source.derive.items()]
    orders = {name: {code: (code,) for code in column.order} for name, column in question.columns.items()}
    lists += [(("columns", name, "order"), order) for name, order in orders.items()]
    for location, values_of in lists:
        meaning: dict[str, tuple[str, str]] = {}
        for name, values in values_of.items():
            for value in values:
                first, other = meaning.setdefault(_form(value, rules), (name, value))
                if first != name:
                    raise SpecError(
                        f"{other!r} and {value!r} are the same value once they are folded, and mean {first} and "
                        f"{name} here; keep one, or say `intake: {{fold: []}}` if they differ",
                        location,
                    )


# --------------------------------------------------------------------------------------------------------------------
# What the distinct texts of a column are read as.


def cells_of(reading: Reading, counts: Mapping[str, int]) -> dict[str, Cell]:
    """What each text is read as; a date of birth as an ISO date, of which ``age_cell`` makes an age.

    Args:
        reading: of the column.
        counts: texts with their rows, in the order in which they come first in the file.
    """
    match reading.recipe.read:
        case "number":
            return {text: number_cell(reading, text) for text in counts}
        case "date":
            return {text: _date_cell(reading, text) for text in counts}
        case "age":
            return {text: _birth_cell(reading, text) for text in counts}
        case _:
            return _text_cells(reading, counts)


def number_cell(reading: Reading, text: str) -> Cell:
    """A number as its canonical decimal text; what is none stays as it is, and is refused later."""
    trimmed = text.strip()
    if exempt := reading.exempt_forms.get(_form(trimmed, reading.fold)):
        return Cell(exempt, "missing")
    is_unknown = _is_newer(reading, trimmed) or (reading.rules == 1 and bool(numbers.OUT_OF.fullmatch(trimmed)))
    if not is_unknown and is_missing(trimmed, True, reading.further):
        return Cell("", "missing", ("missing_word",) if trimmed else ())
    number = None if is_unknown else numbers.parse_cell(trimmed, reading.recipe)
    if number is None:
        return Cell(trimmed, "unread")
    if number.value in reading.codes:
        return Cell("", "missing", ("code",))
    return Cell(number.value, "value", tuple(sorted(number.rules)))


def _is_newer(reading: Reading, text: str) -> bool:
    """Whether the rules of a spec know no word of a cell yet, so that it stays unread as on the day of the spec."""
    if reading.rules > 1 or text.isdigit() or reading.recipe.unit == "bps":
        return False
    of_numbers, of_dates = SINCE_2
    if not (of_numbers if reading.recipe.read == "number" else of_dates).search(fold(text)):
        return False
    return not is_missing(text, False, reading.further)


def _date_cell(reading: Reading, text: str) -> Cell:
    trimmed = text.strip()
    if _is_newer(reading, trimmed):
        return Cell(trimmed, "unread")
    if is_missing(trimmed, True, reading.further):
        return Cell("", "missing", ("missing_word",) if trimmed else ())
    day = dates.parse(trimmed, reading.recipe.format)
    if trimmed in ZERO_DATES or {trimmed, day} & set(reading.recipe.codes):
        return Cell("", "missing", ("code",))
    return Cell(trimmed, "unread") if day is None else Cell(day, "value", ("date",))


def _birth_cell(reading: Reading, text: str) -> Cell:
    """A date of birth as an ISO date; an age, which is what intake makes of one, stays."""
    trimmed = text.strip()
    if _AGE.fullmatch(trimmed) and int(trimmed) <= dates.OLDEST and trimmed not in ZERO_DATES - {"0"}:
        return Cell(str(int(trimmed)), "value")
    day = None if _is_newer(reading, trimmed) else dates.born(trimmed, reading.recipe.format)
    cell = _date_cell(reading, trimmed) if day is None else Cell(day, "value", ("age",))
    if {trimmed, day} & set(reading.recipe.codes):
        return Cell("", "missing", ("code",))
    return Cell(UNREAD_AGE, "unread") if cell.fate == "unread" else cell


def age_cell(birth: Cell, decided: Cell) -> Cell:
    """The age in whole years of a date of birth at the date of the decision; SQL of the same: ``step``.

    An age stays as it is. Ages that nobody has, and dates that cannot be read, give none.
    """
    if birth.fate != "value" or not birth.rules:
        return birth
    if decided.fate != "value":
        return Cell("", "missing") if decided.fate == "missing" else Cell(UNREAD_AGE, "unread")
    years = dates.age(birth.text, decided.text)
    return Cell(str(years), "value", ("age",)) if 0 <= years <= dates.OLDEST else Cell(UNREAD_AGE, "unread")


def _text_cells(reading: Reading, counts: Mapping[str, int]) -> dict[str, Cell]:
    """Texts that mean the same in one spelling: the spec's, else the most frequent one of the file."""
    recipe, bands = reading.recipe, reading.recipe.read == "bands"
    codes, named = ({_form(word, reading.fold) for word in words} for words in (recipe.codes, reading.words))
    out: dict[str, Cell] = {}
    rows: dict[str, int] = {}  # of the values: what is missing is no reason to read y as another word than yes
    for text, count in counts.items():
        trimmed = canonical(text)
        form = _form(trimmed, reading.fold)
        if form in codes:
            out[text] = Cell("", "missing", ("code",))
        elif form not in named and form in reading.exempt_forms:
            out[text] = Cell(reading.exempt_forms[form], "missing")
        elif form not in named and is_missing(trimmed, bands, reading.further):
            out[text] = Cell("", "missing", ("missing_word",) if trimmed else ())
        else:
            rows[trimmed] = rows.get(trimmed, 0) + count
    words = [canonical(word) for word in reading.words]
    printed = spellings({**rows, **{word: 0 for word in words if word not in rows}}, reading.fold)
    of_spec: dict[str, str] = {}
    for word in reading.words:
        of_spec.setdefault(printed[canonical(word)], word)
    for text in counts:
        if text not in out:
            trimmed = canonical(text)
            spelling = of_spec.get(printed[trimmed], canonical(printed[trimmed]))
            rules = (*(("band",) if bands else ()), *(("fold",) if spelling != trimmed else ()))
            out[text] = Cell(spelling, "value", rules)
    return out
