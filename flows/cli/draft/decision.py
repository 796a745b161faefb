"""The decision of a table: which column holds it, and which side each of its values is on.

Scope: names, counted values, and the rows that flags and dates such as `approved_on` mark. No candidate is taken where
two are near, and no side is made up.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flows.cli.draft import vocabulary
from flows.cli.draft.table import Table
from flows.cli.draft.vocabulary import Meaning, Side, plain
from schemas.audit.source import CellRule, Derived

MOST_VALUES: Final = 40
"""Values of a decision; a column with more holds something else."""
_COVERED, _LAST, _AFTER, _MISSING, _LEAD = 60, 10, 40, 50, 20
"""Points: all rows with a side, the last column, a name of what comes after, all cells missing; the lead needed."""
_ACTION_NAMES: Final = (("action", "taken"), ("action",), ("actiontaken",))
_ACTIONS: Final[Mapping[str, Meaning]] = {
    "1": Meaning("favourable"),
    "2": Meaning("favourable", "not taken"),
    "3": Meaning("unfavourable"),
    "4": Meaning("neither"),
    "5": Meaning("neither"),
    "6": Meaning("neither"),
    "7": Meaning("neither", "preapproval"),
    "8": Meaning("neither", "preapproval"),
}
"""Actions of HMDA."""
_GRADES: Final = frozenset("abc")
"""Letters that stand side by side in grades and classes, and not in decisions."""
_GOOD_BAD: Final = frozenset("gb")
"""Letters of a scorecard's sample: good and bad."""
_APPEALS: Final = frozenset(("allowed", "upheld", "sustained"))
"""Words that stand beside `dismissed` where an appeal or a claim is."""
_CODE: Final = re.compile(r"[^\W\d_]{3,5}")
_CERTAINTY_OF_CODES: Final = 0.8
_LIMIT: Final = re.compile(r"(<=|>=|<|>|≤|≥)\s*\$?\d[\d.,]*\s*[km]?", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """Which side the values of a column are on."""

    meanings: Mapping[str, Meaning]
    """Value as it is printed -> its side; values that no word tells have none."""
    why: str = ""
    """How they were told: words, codes, name or limit; empty where nothing tells them."""
    certainty: float = 1.0

    def of(self, side: Side) -> tuple[str, ...]:
        """The values of one side."""
        return tuple(value for value, meaning in self.meanings.items() if meaning.side == side)

    @property
    def has_both(self) -> bool:
        """Whether it has values for and against the applicant."""
        return bool(self.of("favourable") and self.of("unfavourable"))


@dataclass(frozen=True)
class Values:
    """A column as the ranking sees it."""

    name: str
    rows: Mapping[str, int]
    """Value as it is printed -> rows."""
    missing: float
    """Share of the cells without a value."""


@dataclass(frozen=True)
class Candidate:
    """A column that could hold the decision."""

    column: str
    rows: Mapping[str, int]
    reading: Reading
    score: float


def read(name: str, rows: Mapping[str, int]) -> Reading:
    """The side of every value of a column, by its words, its codes or its name."""
    forms = {plain(value): value for value in rows}
    if vocabulary.parts(name)[-2:] in _ACTION_NAMES and {"1", "3"} <= forms.keys() <= _ACTIONS.keys():
        return Reading({forms[code]: meaning for code, meaning in _ACTIONS.items() if code in forms}, "codes")
    yes = [value for form, value in forms.items() if form in vocabulary.answers("yes")]
    no = [value for form, value in forms.items() if form in vocabulary.answers("no")]
    if forms.keys() == {"-1", "0"}:  # as Access writes true and false
        return _by_name(name, [forms["-1"]], [forms["0"]])
    if yes and no and len(yes) + len(no) == len(forms):
        return _by_name(name, yes, no)
    if len(forms) == 2 and all(_LIMIT.fullmatch(form) for form in forms):
        above = {value for form, value in forms.items() if form[0] in ">≥"}
        if len(above) == 1:
            sides = {value: Meaning("favourable" if value in above else "unfavourable") for value in rows}
            return Reading(sides, "limit", 0.6)
    reading = _by_words(rows)
    first = {value: vocabulary.parts(value)[:1] for value in rows if value not in reading.meanings}
    yes = [value for value, word in first.items() if "".join(word) in vocabulary.answers("yes")]
    no = [value for value, word in first.items() if "".join(word) in vocabulary.answers("no")]
    if yes and no and reading.meanings:  # `Y`, `N`, `Y - conditional`, beside `Withdrawn`
        return Reading({**reading.meanings, **_by_name(name, yes, no, are_beside_words=True).meanings}, reading.why)
    if not reading.has_both and vocabulary.decision_rank(name) and all(map(_CODE.fullmatch, forms)):
        sides = {forms[form]: Meaning(side) for form, side in vocabulary.sides_of_codes(forms).items()}
        return Reading(sides, "codes", _CERTAINTY_OF_CODES) if sides else reading
    return reading


def _by_name(name: str, yes: Sequence[str], no: Sequence[str], are_beside_words: bool = False) -> Reading:
    """The sides of yes and no: `bad_flag` is against the applicant, `approved` is for."""
    against, favours = vocabulary.is_named(name, "against"), vocabulary.is_named(name, "for")
    is_decision = vocabulary.decision_rank(name) or len(vocabulary.parts(name)) == 1
    meant = vocabulary.meaning(name) if is_decision else None
    if not against and not favours and meant is not None and meant.note != "stage":  # `TURNED_DOWN`
        against, favours = meant.side == "unfavourable", meant.side == "favourable"
    if against == favours:
        words = are_beside_words or any(len(plain(value)) > 1 and not value.isdigit() for value in (*yes, *no))
        if against or not words or not vocabulary.decision_rank(name) or vocabulary.is_named(name, "after"):
            return Reading({})
    good, bad = (no, yes) if against else (yes, no)
    sides = {**dict.fromkeys(good, Meaning("favourable")), **dict.fromkeys(bad, Meaning("unfavourable"))}
    return Reading(sides, "name")


def _by_words(rows: Mapping[str, int]) -> Reading:
    meanings = {value: meaning for value in rows if (meaning := vocabulary.meaning(value)) is not None}
    if len(pair := [value for value in meanings if plain(value) in _GOOD_BAD]) == 1:  # `B` alone is no bad
        meanings.pop(pair[0])
    letters = [value for value in meanings if len(plain(value)) == 1]
    if len({meanings[value].side for value in letters}) < 2 or {plain(value) for value in rows} >= _GRADES:
        meanings = {value: meaning for value, meaning in meanings.items() if value not in letters}
    dismissed = [value for value in meanings if "dismissed" in vocabulary.parts(value)]
    if dismissed and any(
        _APPEALS & set(vocabulary.parts(value)) for value in meanings
    ):  # of an appeal, not of a charge
        meanings |= dict.fromkeys(dismissed, Meaning("unfavourable"))
    no_answer = [value for value in rows if vocabulary.is_nobody(value)]
    denials = [value for value, meaning in meanings.items() if meaning.side == "unfavourable"]
    if any(plain(value) != "refused" for value in no_answer) and len(denials) > 1:
        # beside "don't know", "refused" is an answer that a person refused
        meanings |= {value: Meaning("neither") for value in denials if plain(value) == "refused"}
    return Reading(meanings, "words" if meanings else "")


def candidates(columns: Iterable[Values], excluded: Collection[str], last: str) -> list[Candidate]:
    """The columns that could hold the decision, the likeliest first.

    Args:
        columns: the columns of the table.
        excluded: names of columns that hold something else, such as protected attributes and numbers of rows.
        last: name of the last column.
    """
    ranked = []
    for column in columns:
        name, named = column.name, vocabulary.decision_rank(column.name)
        if vocabulary.is_named(name, "before"):
            continue
        if name in excluded or not 2 <= len(column.rows) <= MOST_VALUES or vocabulary.protected_kind(name):
            continue
        if not named and any(vocabulary.is_named(name, kind) for kind in ("id", "place", "date", "year")):
            continue
        reading = read(name, column.rows)
        sided = sum(column.rows[value] for value in reading.meanings) / max(1, sum(column.rows.values()))
        points = _COVERED * sided * reading.certainty * reading.has_both + named + _LAST * (name == last)
        points -= _AFTER * vocabulary.is_named(name, "after") + _MISSING * column.missing
        ranked.append(Candidate(name, column.rows, reading, points))
    return sorted(ranked, key=lambda candidate: -candidate.score)


def leading(ranked: Sequence[Candidate]) -> Candidate | None:
    """The candidate that can be drafted: it leads, or it alone has both sides; None where two are near."""
    two_sided = [candidate for candidate in ranked if candidate.reading.has_both and candidate.score > 0]
    if len(two_sided) == 1:
        return two_sided[0]
    if not ranked or ranked[0].score < _LEAD:
        return None
    if len(ranked) == 1 or ranked[0].score - ranked[1].score >= _LEAD:
        return ranked[0]
    return None


# --------------------------------------------------------------------------------------------------------------------
# A decision that lies in several columns: `approved_on` and `declined_on`, or a flag for each outcome.


_TICKS: Final = frozenset(("x", "✓", "✔", "✗", "*", "+"))
_MOST_TWICE, _LEAST_MARKED = 0.05, 0.3
"""Rows with two outcomes, of those with one; rows with one, of all: beyond these, no decision is drafted of them."""
_OTHER: Final = {"favourable": "approved", "unfavourable": "denied"}
"""The words of a side that no column names."""
_NAMES: Final = ("decision", "outcome", "decided")
"""Of the column that is made; the first that the table does not have."""


@dataclass(frozen=True)
class Mark:
    """A column that marks the rows of one outcome, by its name."""

    column: str
    side: Side
    value: str
    """The outcome in the words of the name, such as `approved`."""
    rule: CellRule
    """Which of its cells mark a row."""
    rows: NDArray[np.bool_]
    """``(rows,)`` whether a row is marked."""
    other: CellRule = "absent"
    """Which of its cells say that a row is not marked."""
    besides: Mapping[str, CellRule] = field(default_factory=dict)
    """Further columns with the cells that a marked row has there."""

    def words(self) -> str:
        """The column with its cells and rows."""
        besides = "".join(f", {name} {_cells(rule)}" for name, rule in self.besides.items())
        return f"{self.column} ({_cells(self.rule)}{besides}: {int(self.rows.sum()):,} rows, {self.side})"


def _cells(rule: CellRule) -> str:
    return {"present": "filled in", "absent": "empty"}[rule] if isinstance(rule, str) else ", ".join(rule)


@dataclass(frozen=True)
class Outcomes:
    """The marks that together may be a decision."""

    marks: tuple[Mark, ...]

    @property
    def has_both(self) -> bool:
        """Whether some rows are marked for, and some against the applicant."""
        return {"favourable", "unfavourable"} <= {mark.side for mark in self.marks}

    @property
    def times(self) -> NDArray[np.int64]:
        """``(rows,)`` outcomes of a row."""
        times: NDArray[np.int64] = np.stack([mark.rows for mark in self.marks]).sum(axis=0, dtype=np.int64)
        return times

    @property
    def is_certain(self) -> bool:
        """Whether next to no row has two outcomes, and enough rows have one."""
        single, several = int((self.times == 1).sum()), int((self.times > 1).sum())
        return (
            self.has_both and several <= _MOST_TWICE * (single + several) and single >= _LEAST_MARKED * len(self.times)
        )

    def derived(self) -> Derived:
        """The column that they make; where one alone marks rows, an empty cell is taken for the other side."""
        rows: dict[str, dict[str, CellRule]] = {
            mark.value: {mark.column: mark.rule, **mark.besides} for mark in self.marks
        }
        if not self.has_both:
            (mark,) = self.marks
            rows[_OTHER["unfavourable" if mark.side == "favourable" else "favourable"]] = {mark.column: "absent"}
        return Derived(rows=rows)


def outcomes(table: Table) -> Outcomes | None:
    """Flags and dates that mark the rows of an outcome, one for each side; None where no name does.

    Of several for a side, that comes first which is not known after the decision by its name, then the one that marks
    most rows. Where flags mark one side and rows that are no decision, the remaining rows are the other side.
    """
    of_side: dict[Side, Mark] = {}
    names = [name for name in table.names if name not in table.source.derive]
    marks = [mark for name in names if (mark := _mark(table, name)) is not None]
    for mark in sorted(marks, key=lambda mark: (vocabulary.is_named(mark.column, "after"), -int(mark.rows.sum()))):
        of_side.setdefault(mark.side, mark)
    if not {"favourable", "unfavourable"} & of_side.keys():
        return None
    outcome = Outcomes(tuple(of_side.values()))
    if outcome.has_both and len({mark.value for mark in outcome.marks}) == len(outcome.marks):
        return outcome
    first = next(mark for mark in outcome.marks if mark.side != "neither")
    if first.rule == "present":
        return Outcomes((first,))
    of_value = {mark.value: mark for mark in marks if mark.side == "neither" and _is_apart(mark, first)}
    undecided = list(of_value.values())
    return Outcomes((first, *undecided, _remaining(first, undecided))) if undecided else None


def _is_apart(undecided: Mark, first: Mark) -> bool:
    """Whether next to no row that is marked as no decision is marked for a side: a new customer may be approved."""
    meaning = vocabulary.meaning(undecided.column)
    shared = int((undecided.rows & first.rows).sum())
    is_stage = meaning is not None and meaning.note == "stage"
    return not is_stage and undecided.value != first.value and shared <= _MOST_TWICE * int(undecided.rows.sum())


def _remaining(first: Mark, undecided: Sequence[Mark]) -> Mark:
    """The rows of the other side: those of ``no`` in the flag of one side that no flag marks as no decision."""
    side: Side = "unfavourable" if first.side == "favourable" else "favourable"
    rows = ~np.any([mark.rows for mark in (first, *undecided)], axis=0)
    return Mark(
        first.column, side, _OTHER[side], first.other, rows, besides={mark.column: mark.other for mark in undecided}
    )


def _mark(table: Table, name: str) -> Mark | None:
    column, meaning = table.columns[name], vocabulary.meaning(name)
    if meaning is None or vocabulary.protected_kind(name) or column.absent.all():
        return None
    rule: CellRule = "present"
    other: CellRule = "absent"
    rows = ~column.absent
    if column.form != "date":
        forms = {plain(value): value for value in column.values}
        no = forms.keys() & vocabulary.answers("no")
        yes = [value for form, value in forms.items() if form in vocabulary.answers("yes") | _TICKS]
        alike = len(forms) == 1 and (word := vocabulary.meaning(next(iter(forms)))) and word.side == meaning.side
        if len(yes) + len(no) != len(forms) and not alike:
            return None
        if no:
            rule, rows = tuple(yes), np.isin(column.groups, [list(column.values).index(value) for value in yes])
            other = tuple(forms[form] for form in sorted(no))
    if not rows.any() or rows.all():
        return None
    words = " ".join(word for word in vocabulary.parts(name) if vocabulary.meaning(word) is not None)
    return Mark(name, meaning.side, words or plain(name), rule, rows, other)


def written(derived: Derived) -> str:
    """A derived column as a spec has it, on one line."""
    content = derived.model_dump(mode="json")
    text = json.dumps(content, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(content)


def name_of_made(table: Table) -> str:
    """The name of the column that outcomes make."""
    names = {plain(name) for name in table.names}
    return next((name for name in _NAMES if name not in names), f"{_NAMES[0]}_{len(names)}")
