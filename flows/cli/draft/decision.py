"""The decision of a table: which column holds it, and which side each of its values is on.

Scope: names and counted values alone. No candidate is taken where two are near, and no side is made up.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flows.cli.draft import vocabulary
from flows.cli.draft.vocabulary import Meaning, Side, plain

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
    if yes and no and len(yes) + len(no) == len(forms):
        return _by_name(name, yes, no)
    if len(forms) == 2 and all(_LIMIT.fullmatch(form) for form in forms):
        above = {value for form, value in forms.items() if form[0] in ">≥"}
        if len(above) == 1:
            sides = {value: Meaning("favourable" if value in above else "unfavourable") for value in rows}
            return Reading(sides, "limit", 0.6)
    return _by_words(rows)


def _by_name(name: str, yes: Sequence[str], no: Sequence[str]) -> Reading:
    """The sides of yes and no: `bad_flag` is against the applicant, `approved` is for."""
    against = vocabulary.is_named(name, "against")
    if against == vocabulary.is_named(name, "for"):
        words = any(len(plain(value)) > 1 and not value.isdigit() for value in (*yes, *no))
        if against or not words or not vocabulary.decision_rank(name) or vocabulary.is_named(name, "after"):
            return Reading({})
    good, bad = (no, yes) if against else (yes, no)
    sides = {**dict.fromkeys(good, Meaning("favourable")), **dict.fromkeys(bad, Meaning("unfavourable"))}
    return Reading(sides, "name")


def _by_words(rows: Mapping[str, int]) -> Reading:
    meanings = {value: meaning for value in rows if (meaning := vocabulary.meaning(value)) is not None}
    letters = [value for value in meanings if len(plain(value)) == 1]
    if len({meanings[value].side for value in letters}) < 2:
        meanings = {value: meaning for value, meaning in meanings.items() if value not in letters}
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
