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
_SWAP: Final = "swapping the two turns every result around"


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
    """Which values of the decision favour the applicant, which are denials, and what is left to confirm.

    A value on neither side is no decision: an audit refuses its rows and reports how many.
    """

    favourable: tuple[str, ...]
    unfavourable: tuple[str, ...]
    why: str = ""
    """Why the sides are so where they are a guess; empty where the user gave them."""
    why_denials: str = ""
    """What there is to confirm about the denials; empty if all are plain words of denial or were given."""

    def spellings(self) -> list[tuple[str, ...]]:
        """Values of several spellings, each of which is read as one value."""
        alike: dict[str, list[str]] = {}
        for value in (*self.favourable, *self.unfavourable):
            alike.setdefault(vocabulary.folded(value), []).append(value)
        return [tuple(values) for values in alike.values() if len(values) > 1]


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
    words = {vocabulary.folded(value) for value in values}
    if not 2 <= len(words) <= MOST_VALUES or vocabulary.protected_kind(name) or after:
        return None
    if vocabulary.is_identifier(name) or vocabulary.is_place(name) or vocabulary.is_date(name):
        return None
    said = vocabulary.rank(name, vocabulary.DECISION)
    score = 0.0 if said is None else _NAMED - said
    score += _HINTED * (said is None and vocabulary.rank(name, vocabulary.HINT) is not None)
    score += _LAST * (name == table.names[-1])
    score += _TWO if len(words) == 2 else _FEW * (len(words) <= 4)
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
    number = len({vocabulary.folded(value) for value in values})
    if not 2 <= number <= MOST_VALUES:
        found = f"{number:,} {'value' if number == 1 else 'values'}"
        raise SpecError(
            f"--decision {name}: {found}; expected 2 to {MOST_VALUES}, such as approved and denied: "
            "give another column, or one that you made of it"
        )
    return Candidate(name, values, 0.0)


def given_sides(decision: Candidate, favourable: Sequence[str], unfavourable: Sequence[str] = ()) -> Sides:
    """The sides by the values that a user gave; every spelling of a value goes with it.

    Without given denials these are the plain words of denial. Of two values the other one is the denial, to be
    confirmed unless it is a plain word. All other values are no decisions until the user says so.

    Raises:
        SpecError: no row has such a value, a value is given twice, or no value can be taken for a denial.
    """
    approvals = _spellings(decision, favourable, "--favourable")
    denials = _spellings(decision, unfavourable, "--unfavourable")
    overlap = [value for value in denials if value in approvals]
    if overlap:
        raise SpecError(f"--unfavourable {', '.join(overlap)}: given as --favourable, too; expected other values")
    others = [value for value in decision.values if value not in approvals and value not in denials]
    if not others and not denials:
        raise SpecError(f"--favourable {', '.join(favourable)}: that is every value; expected some to be unfavourable")
    unsure: list[str] = []
    if not denials:
        denials = [value for value in others if _is_opposite(decision, value, approvals)]
        if not denials and len({vocabulary.folded(value) for value in others}) == 1:
            denials = unsure = [value for value in others if not vocabulary.is_no_decision(value)]
    if not denials:
        raise SpecError(
            f"--favourable {', '.join(favourable)}: which values of {decision.column} are denials? None of "
            f"{_with_rows(decision, others)} is a plain word of denial. Give each: --unfavourable {others[0]!r}"
        )
    return Sides(tuple(approvals), tuple(denials), "", _to_confirm(decision, approvals, denials, unsure))


def _spellings(decision: Candidate, given: Sequence[str], option: str) -> list[str]:
    """All values of the table that are spellings of the given ones."""
    wanted = {vocabulary.folded(value) for value in given}
    spelled = {vocabulary.folded(value) for value in decision.values}
    for value in given:
        if vocabulary.folded(value) not in spelled:
            raise SpecError(
                f"{option} {value}: no row of {decision.column} has it; {nearest(value, list(decision.values))}"
            )
    return [value for value in decision.values if vocabulary.folded(value) in wanted]


def _is_opposite(decision: Candidate, value: str, approvals: Sequence[str]) -> bool:
    """Whether a value is a plain denial where others are approvals: a word of denial, 0 to 1, no to yes, code 3."""
    codes = {vocabulary.folded(approval) for approval in approvals}
    if decision.column == ACTION and codes <= {str(code) for code in range(1, 9)}:
        return vocabulary.folded(value) in _ACTIONS[1]
    opposites = dict(zip((*vocabulary.YES, *vocabulary.NO), (*vocabulary.NO, *vocabulary.YES), strict=True))
    return vocabulary.is_denial(value) or vocabulary.folded(value) in {opposites.get(code) for code in codes}


def _with_rows(decision: Candidate, values: Sequence[str]) -> str:
    return ", ".join(f"{value} ({decision.values[value]:,} rows)" for value in values)


def _to_confirm(decision: Candidate, approvals: Sequence[str], denials: Sequence[str], unsure: Sequence[str]) -> str:
    """What the draft asks to confirm of the denials; empty if nothing."""
    others = [value for value in decision.values if value not in approvals and value not in denials]
    parts = [f"is {', '.join(unsure)} a denial? It is no plain word of one"] if unsure else []
    if others:
        parts.append(f"no decisions, their rows are refused: {_with_rows(decision, others)}; add any that is a denial")
    return "; ".join(parts)


def guessed_sides(decision: Candidate) -> Sides | None:
    """The sides where words tell them; None where they do not, as in a column of 0 and 1 called `result`."""
    values, name = list(decision.values), decision.column
    if name == ACTION and {"1", "3"} <= set(values):
        return Sides(*_ACTIONS, "by the codes of HMDA; other actions are no decisions, and their rows are refused")
    good = tuple(value for value in values if vocabulary.folded(value) in vocabulary.GOOD)
    bad = tuple(value for value in values if vocabulary.is_denial(value))
    if good and bad:
        return Sides(good, bad, f"by the words; {_SWAP}", _to_confirm(decision, good, bad, ()))
    yes = tuple(value for value in values if vocabulary.folded(value) in vocabulary.YES)
    no = tuple(value for value in values if vocabulary.folded(value) in vocabulary.NO)
    against = vocabulary.rank(name, vocabulary.AGAINST) is not None
    number = len({vocabulary.folded(value) for value in values})
    if number != 2 or not (yes and no) or against == (vocabulary.rank(name, vocabulary.FOR) is not None):
        return None
    why = f"as {name} reads; {_SWAP}"
    return Sides(no, yes, why) if against else Sides(yes, no, why)
