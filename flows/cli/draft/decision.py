"""The decision of a table: columns that could hold it, ranked, and which values favour the applicant.

A candidate is never taken silently, and a protected attribute never is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Final

import pandas as pd

from flows.cli.draft import vocabulary
from flows.cli.draft.table import Table
from schemas.audit.hmda import ACTION
from schemas.errors import SpecError, nearest

MOST_VALUES: Final = 10
"""Values of a decision; a column with more holds something else."""
BEST: Final = 3
"""Candidates that are named."""
_SHOWN, _LONG = 3, 20
"""Values of a candidate that are named, and letters of each."""
_NAMED, _HINTED, _LAST = 100, 30, 25
_TWO, _FEW = 20, 5
_SAID, _FLAG = 30, 10
"""Weights of what speaks for a column: its name, its place, the number of its values, and what they say."""
_ACTIONS: Final = (("1", "2"), ("3",))
"""Of HMDA: originated and approved but not accepted, against denied; other actions are no decisions."""


@dataclass(frozen=True)
class Candidate:
    """A column that could hold the decision."""

    column: str
    values: Mapping[str, int]
    """Value -> rows, the most frequent first."""
    score: float

    def said(self) -> str:
        """Its name and values in words."""
        first = list(self.values.items())[:_SHOWN]
        shown = ", ".join(f"{shorten(value, _LONG, placeholder='...')} {rows:,}" for value, rows in first)
        return f"{self.column} ({shown}{', ...' if len(self.values) > _SHOWN else ''})"


@dataclass(frozen=True)
class Sides:
    """Which values of the decision favour the applicant, and why that is thought."""

    favourable: tuple[str, ...]
    unfavourable: tuple[str, ...]
    why: str = ""
    """Empty where somebody said so."""


def counts(values: pd.Series) -> dict[str, int]:
    """Value -> rows, the most frequent first."""
    return {str(value): int(rows) for value, rows in values.value_counts().items()}


def candidates(table: Table) -> list[Candidate]:
    """The columns that could hold the decision, the likeliest first."""
    found = [each for name in table.names if (each := _candidate(table, name)) is not None]
    return sorted(found, key=lambda each: -each.score)


def _candidate(table: Table, name: str) -> Candidate | None:
    values = counts(table.present(name))
    after = vocabulary.is_after(name) and not vocabulary.says(name, ACTION)
    if not 2 <= len(values) <= MOST_VALUES or vocabulary.protected_kind(name) or after:
        return None
    if vocabulary.is_identifier(name) or vocabulary.is_place(name) or vocabulary.is_date(name):
        return None
    said = vocabulary.rank(name, vocabulary.DECISION)
    score = 0.0 if said is None else _NAMED - said
    score += _HINTED * (said is None and vocabulary.rank(name, vocabulary.HINT) is not None)
    score += _LAST * (name == table.names[-1])
    score += _TWO if len(values) == 2 else _FEW * (len(values) <= 4)
    words = {value.lower() for value in values}
    score += _SAID * bool(words & {*vocabulary.GOOD, *vocabulary.BAD})
    score += _FLAG * (words in ({"0", "1"}, {"yes", "no"}, {"y", "n"}, {"true", "false"}))
    return Candidate(name, values, score - 50 * float(table.absent(name).mean()))


def chosen(table: Table, name: str) -> Candidate:
    """The column that a user gave for the decision.

    Raises:
        SpecError: there is no such column, it names a protected attribute, or its values are no decision.
    """
    if name not in table.names:
        raise SpecError(f"--decision {name}: the table has no such column; {nearest(name, table.names)}")
    if vocabulary.protected_kind(name):
        best = ", ".join(each.column for each in candidates(table)[:BEST])
        raise SpecError(f"--decision {name}: that names a protected attribute; expected the decision, such as {best}")
    values = counts(table.present(name))
    if not 2 <= len(values) <= MOST_VALUES:
        found = f"{len(values):,} {'value' if len(values) == 1 else 'values'}"
        raise SpecError(
            f"--decision {name}: {found}; expected 2 to {MOST_VALUES}, such as approved and denied: "
            "give another column, or one that you made of it"
        )
    return Candidate(name, values, 0.0)


def given_sides(decision: Candidate, favourable: Sequence[str]) -> Sides:
    """The sides as a user gave the favourable values: the others are unfavourable.

    Raises:
        SpecError: no row has such a value, or none is left.
    """
    for value in favourable:
        if value not in decision.values:
            known = nearest(value, list(decision.values))
            raise SpecError(f"--favourable {value}: no row of {decision.column} has it; {known}")
    others = tuple(value for value in decision.values if value not in favourable)
    if not others:
        raise SpecError(f"--favourable {', '.join(favourable)}: that is every value; expected some to be unfavourable")
    return Sides(tuple(favourable), others)


def guessed_sides(decision: Candidate) -> Sides | None:
    """The sides where words tell them; None where they do not, as in a column of 0 and 1 called `result`."""
    values, name = list(decision.values), decision.column
    if name == ACTION and {"1", "3"} <= set(values):
        return Sides(*_ACTIONS, "by the codes of HMDA; other actions are no decisions, and their rows are refused")
    good = tuple(value for value in values if value.lower() in vocabulary.GOOD)
    bad = tuple(value for value in values if value.lower() in vocabulary.BAD)
    if good and bad:
        return Sides(good, bad, "by the words; swapping the two turns every result around")
    yes = tuple(value for value in values if value.lower() in vocabulary.YES)
    no = tuple(value for value in values if value.lower() in vocabulary.NO)
    against = vocabulary.rank(name, vocabulary.AGAINST) is not None
    if len(values) != 2 or not (yes and no) or against == (vocabulary.rank(name, vocabulary.FOR) is not None):
        return None
    why = f"as {name} reads; swapping the two turns every result around"
    return Sides(no, yes, why) if against else Sides(yes, no, why)
