"""Columns of a drafted spec: decision, protected attributes and types."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from flows.cli.draft import table as draft_table
from flows.cli.draft.table import Table
from schemas.audit import column
from schemas.audit.hmda import ACTION
from schemas.audit.spec import Protected
from schemas.errors import SpecError, nearest
from schemas.tables.applications import APPLICATIONS
from schemas.tables.counterfactuals import COUNTERFACTUALS
from tasks.preprocessing.algorithm import STOPS, auc

# --------------------------------------------------------------------------------------------------------------------
# The decision of a table: columns that could hold it, ranked, and which values favour the applicant.
#
# A candidate is never taken silently, and a protected attribute never is one.


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
        value_counts = ", ".join(f"{shorten(value, _LONG, placeholder='...')} {rows:,}" for value, rows in first)
        return f"{self.column} ({value_counts}{', ...' if len(self.values) > _SHOWN else ''})"


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
        """Groups of values that are spellings of one value."""
        alike: dict[str, list[str]] = {}
        for value in (*self.favourable, *self.unfavourable):
            alike.setdefault(draft_table.folded(value), []).append(value)
        return [tuple(values) for values in alike.values() if len(values) > 1]


def counts(values: pd.Series) -> dict[str, int]:
    """Value -> rows, the most frequent first."""
    return {str(value): int(rows) for value, rows in values.value_counts().items()}


def candidates(table: Table) -> list[Candidate]:
    """The columns that could hold the decision, the likeliest first."""
    columns = []
    for name in table.names:
        values = counts(table.present(name))
        words = {draft_table.folded(value) for value in values}
        after = draft_table.is_after(name) and not draft_table.says(name, ACTION)
        if not 2 <= len(words) <= MOST_VALUES or draft_table.protected_kind(name) or after:
            continue
        if draft_table.is_identifier(name) or draft_table.is_place(name) or draft_table.is_date(name):
            continue
        name_rank = draft_table.rank(name, draft_table.DECISION)
        score = 0.0 if name_rank is None else _NAMED - name_rank
        score += _HINTED * (name_rank is None and draft_table.rank(name, draft_table.HINT) is not None)
        score += _LAST * (name == table.names[-1])
        score += _TWO if len(words) == 2 else _FEW * (len(words) <= 4)
        score += _SAID * bool(words & {*draft_table.GOOD, *draft_table.BAD})
        score += _FLAG * (words in ({"0", "1"}, {"yes", "no"}, {"y", "n"}, {"true", "false"}))
        columns.append(Candidate(name, values, score - 50 * float(table.absent(name).mean())))
    return sorted(columns, key=lambda candidate: -candidate.score)


def chosen(table: Table, name: str) -> Candidate:
    """The column that a user gave for the decision.

    Raises:
        SpecError: there is no such column, it names a protected attribute, or its values are no decision.
    """
    if name not in table.names:
        raise SpecError(f"--decision {name}: the table has no such column; {nearest(name, table.names)}")
    if draft_table.protected_kind(name):
        best = ", ".join(candidate.column for candidate in candidates(table)[:BEST])
        raise SpecError(f"--decision {name}: that names a protected attribute; expected the decision, such as {best}")
    values = counts(table.present(name))
    number = len({draft_table.folded(value) for value in values})
    if not 2 <= number <= MOST_VALUES:
        value_count = f"{number:,} {'value' if number == 1 else 'values'}"
        raise SpecError(
            f"--decision {name}: {value_count}; expected 2 to {MOST_VALUES}, such as approved and denied: "
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
    other_values = [value for value in decision.values if value not in approvals and value not in denials]
    if not other_values and not denials:
        raise SpecError(f"--favourable {', '.join(favourable)}: that is every value; expected some to be unfavourable")
    unsure: list[str] = []
    if not denials:
        denials = _opposites(decision, approvals, other_values)
        if not denials and len({draft_table.folded(value) for value in other_values}) == 1:
            denials = unsure = [value for value in other_values if not draft_table.is_no_decision(value)]
    if not denials:
        raise SpecError(
            f"--favourable {', '.join(favourable)}: which values of {decision.column} are denials? None of "
            f"{_with_rows(decision, other_values)} is a plain word of denial. "
            f"Give each: --unfavourable {other_values[0]!r}"
        )
    return Sides(tuple(approvals), tuple(denials), "", _to_confirm(decision, approvals, denials, unsure))


def _spellings(decision: Candidate, values: Sequence[str], option: str) -> list[str]:
    """All values of the table that are spellings of some values."""
    folded = {draft_table.folded(value) for value in values}
    spelled = {draft_table.folded(value) for value in decision.values}
    for value in values:
        if draft_table.folded(value) not in spelled:
            raise SpecError(
                f"{option} {value}: no row of {decision.column} has it; {nearest(value, list(decision.values))}"
            )
    return [value for value in decision.values if draft_table.folded(value) in folded]


def _opposites(decision: Candidate, approvals: Sequence[str], values: Sequence[str]) -> list[str]:
    """Values that are plain denials where others are approvals: words of denial, 0 to 1, no to yes, code 3."""
    codes = {draft_table.folded(approval) for approval in approvals}
    if decision.column == ACTION and codes <= {str(code) for code in range(1, 9)}:
        return [value for value in values if draft_table.folded(value) in _ACTIONS[1]]
    pairs = dict(zip((*draft_table.YES, *draft_table.NO), (*draft_table.NO, *draft_table.YES), strict=True))
    denials = {pairs.get(code) for code in codes}
    return [value for value in values if draft_table.is_denial(value) or draft_table.folded(value) in denials]


def _with_rows(decision: Candidate, values: Sequence[str]) -> str:
    return ", ".join(f"{value} ({decision.values[value]:,} rows)" for value in values)


def _to_confirm(decision: Candidate, approvals: Sequence[str], denials: Sequence[str], unsure: Sequence[str]) -> str:
    """The question that the user has to confirm about the denials; empty without one."""
    other_values = [value for value in decision.values if value not in approvals and value not in denials]
    parts = [f"is {', '.join(unsure)} a denial? It is no plain word of one"] if unsure else []
    if other_values:
        refused = _with_rows(decision, other_values)
        parts.append(f"no decisions, their rows are refused: {refused}; add any that is a denial")
    return "; ".join(parts)


def guessed_sides(decision: Candidate) -> Sides | None:
    """The sides of the decision, if words identify them; None otherwise, as in a column of 0 and 1 called `result`."""
    values, name = list(decision.values), decision.column
    if name == ACTION and {"1", "3"} <= set(values):
        return Sides(*_ACTIONS, "by the codes of HMDA; other actions are no decisions, and their rows are refused")
    good = tuple(value for value in values if draft_table.folded(value) in draft_table.GOOD)
    bad = tuple(value for value in values if draft_table.is_denial(value))
    if good and bad:
        return Sides(good, bad, f"by the words; {_SWAP}", _to_confirm(decision, good, bad, ()))
    yes = tuple(value for value in values if draft_table.folded(value) in draft_table.YES)
    no = tuple(value for value in values if draft_table.folded(value) in draft_table.NO)
    against = draft_table.rank(name, draft_table.AGAINST) is not None
    number = len({draft_table.folded(value) for value in values})
    if number != 2 or not (yes and no) or against == (draft_table.rank(name, draft_table.FOR) is not None):
        return None
    why = f"as {name} reads; {_SWAP}"
    return Sides(no, yes, why) if against else Sides(yes, no, why)


# --------------------------------------------------------------------------------------------------------------------
# Protected attributes of a table: which columns name one, their groups, and the reference group of each.


MOST_GROUPS, MOST_ATTRIBUTES = 30, 4
_MOST_MISSING: Final = 0.5


@dataclass(frozen=True)
class Attribute:
    """A protected attribute as it is drafted."""

    column: str
    reference: str
    reported_only: tuple[str, ...]
    """Groups that are no people, and that no rule of the audit knows as such."""
    why: str = ""
    """Why it is thought, of what is a guess; empty where somebody said so."""


def columns(table: Table, decision: str) -> list[str]:
    """The columns that name a protected attribute and have groups, one for each kind of attribute."""
    ranked: list[tuple[bool, bool, int, int]] = []
    for position, name in enumerate(table.names):
        kind = draft_table.protected_kind(name)
        if name == decision or not kind or column.is_observed(name) or draft_table.says(name, "co_applicant"):
            continue
        values = counts(table.present(name))
        groups = [group for group in values if not draft_table.is_nobody(group)]
        if 2 <= len(groups) <= MOST_GROUPS and float(table.absent(name).mean()) <= _MOST_MISSING:
            # Of several columns of a kind: one derived from them, one of words, the one with the shortest name.
            words = any(not group.lstrip("-").isdigit() for group in values)
            ranked.append((not draft_table.says(name, "derived"), not words, len(name), position))
    first: dict[str, str] = {}
    for *_, position in sorted(ranked):
        first.setdefault(draft_table.protected_kind(table.names[position]), table.names[position])
    return [first[kind] for kind in draft_table.kinds() if kind in first][:MOST_ATTRIBUTES]


def possible(table: Table, decision: str) -> list[str]:
    """Columns that could be cut into groups where none names an attribute."""
    fit = [n for n in table.names if n != decision and 2 <= table.present(n).nunique() <= 10]
    return [name for name in fit if not draft_table.is_after(name) and not draft_table.is_outcome(name)]


def attributes(table: Table, names: Sequence[str], references: Sequence[str], are_given: bool) -> list[Attribute]:
    """Attributes with their reference groups.

    Args:
        table: the table.
        names: the columns of the attributes.
        references: the reference groups that a user gave, each of one of the attributes.
        are_given: whether a user gave the columns, too.

    Raises:
        SpecError: a column is not there or has no groups, or no row has a reference group.
    """
    remaining, out = list(references), []
    for name in names:
        groups = _groups(table, name)
        named_reference = next((value for value in remaining if value in groups), None)
        if named_reference is not None:
            remaining.remove(named_reference)
        people = [group for group in groups if not draft_table.is_nobody(group)]
        if named_reference is None and not people:
            raise SpecError(
                f"--protected {name}: no value is a group of people; give --reference VALUE, or another column"
            )
        reference = named_reference or next((group for group in people if not draft_table.is_rest(group)), people[0])
        attribute = Protected(name=name, columns=(name,), reference=reference)
        nobody = tuple(g for g in groups if g != reference and draft_table.is_nobody(g) and attribute.judges(g))
        why = [] if are_given else [f"{name} names a protected attribute"]
        why += [] if named_reference else [f"the reference is the largest group ({groups[reference]:,} rows)"]
        out.append(Attribute(name, reference, nobody, "; ".join(why)))
    if remaining:
        hint = nearest(remaining[0], [group for name in names for group in _groups(table, name)])
        raise SpecError(f"--reference {remaining[0]}: no row of {', '.join(names)} has it; {hint}")
    return out


def _groups(table: Table, name: str) -> dict[str, int]:
    if name not in table.names:
        raise SpecError(f"--protected {name}: the table has no such column; {nearest(name, table.names)}")
    groups = counts(table.present(name))
    if not 2 <= len(groups) <= MOST_GROUPS:
        raise SpecError(
            f"--protected {name}: {len(groups):,} values; expected a column of 2 to {MOST_GROUPS} groups: "
            "give another, or a table in which it is cut into bands"
        )
    return groups


# --------------------------------------------------------------------------------------------------------------------
# Columns of a drafted spec: their types, and why a column is no feature.
#
# Nothing can change until somebody says that it can: a column that is thought free would be advised to applicants.


AFTER: Final = "known after the decision"
DIFFERENCE: Final = 0.5
"""Difference of the shares missing, approved against denied, from which a column counts as filled by the decision."""
_ORDERED_UP_TO = 15
"""Up to this many distinct numbers a column reads as categories when it is a code, and is offered as nominal."""
_CATEGORIES = 50
_COLUMNS_MOST_MISSING = 0.5
_CAUSES = 3
"""Missing features that are named as the cause of rows left out."""
_UNIQUE, _TELLS, _DATES = 0.9, 0.9, 0.95
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?:[ T]\d{1,2}:\d{2}.*)?"
_RESERVED = {column.name for table in (APPLICATIONS, COUNTERFACTUALS) for column in table.columns}


@dataclass(frozen=True)
class Entry:
    """A column's entry: its type, whether it is left out, and why."""

    name: str
    type: str
    why: str
    excluded: bool = False
    order: tuple[str, ...] = ()
    after: bool = False
    """Whether it is left out as known after the decision only."""


@dataclass(frozen=True)
class Split:
    """The rows of both sides of the decision, and the columns that are taken for something else."""

    favourable: NDArray[np.bool_]
    unfavourable: NDArray[np.bool_]
    attributes: Collection[str]
    row_id: str | None


def drafted_entries(
    table: Table, decision: str, sides: Sides, attributes: Collection[str], row_id: str | None
) -> list[Entry]:
    """An entry for every column but the decision, in the order of the table."""
    values = table.frame[decision]
    split = Split(
        values.isin(sides.favourable).to_numpy(), values.isin(sides.unfavourable).to_numpy(), attributes, row_id
    )
    entries = []
    for name in table.names:
        if name == decision:
            continue
        why = _by_name(name, split) or _by_values(table, name, split) or _by_decision(table, name, split)
        if why:  # the first reason that holds
            entries.append(Entry(name, "nominal", why, excluded=True, after=why.startswith(AFTER)))
            continue
        present, absent = table.present(name), int(table.absent(name).sum())
        unique = sorted(present.unique())
        numbers = pd.to_numeric(present, errors="coerce")
        missing = f", {absent:,} missing" if absent else ""
        if len(unique) == 2:
            entry = Entry(name, "binary", f"2 values{missing}", order=tuple(unique))
        elif numbers.notna().mean() > 0.95 and len(unique) > _ORDERED_UP_TO:
            entry = Entry(name, "continuous", f"{np.nanmin(numbers):g} to {np.nanmax(numbers):g}{missing}")
        else:
            ordered = "; `ordinal` with an order if they have one" if numbers.notna().all() else ""
            entry = Entry(name, "nominal", f"{len(unique):,} values{missing}{ordered}")
        entries.append(entry)
    return entries


def find_row_id(table: Table, decision: str) -> str | None:
    """The first column that is called an identifier and is one; None without any."""
    named = [name for name in table.names if name != decision and draft_table.is_identifier(name)]
    unique = (name for name in named if table.frame[name].is_unique and not table.absent(name).any())
    return next(unique, None)


def complete(table: Table, decision: str, sides: Sides, column_entries: Collection[Entry]) -> tuple[int, int]:
    """Rows with a decision and every feature, and rows with a decision."""
    decided = table.frame[decision].isin([*sides.favourable, *sides.unfavourable])
    absent = pd.concat([table.absent(e.name) for e in column_entries if not e.excluded] or [~decided], axis=1).any(
        axis=1
    )
    return int((decided & ~absent).sum()), int(decided.sum())


def incomplete_groups(
    table: Table, decision: str, sides: Sides, features: Collection[Entry], attribute: str
) -> Iterator[str]:
    """Sentences on the groups of an attribute that lose half of their decided rows or more to missing features."""
    decided = table.frame[decision].isin([*sides.favourable, *sides.unfavourable]) & ~table.absent(attribute)
    absent = pd.DataFrame({e.name: table.absent(e.name) for e in features if not e.excluded}, index=decided.index)
    for group, rows in absent[decided].groupby(table.frame[attribute][decided]):
        used = int((~rows.any(axis=1)).sum())
        if 2 * used <= len(rows):
            shares = rows.mean().sort_values(ascending=False)
            causes = ", ".join(str(name) for name in shares.index[shares > 0][:_CAUSES])
            yield f"of {group} applicants {used:,} of {len(rows):,} have every feature (missing: {causes})"


def _by_name(name: str, split: Split) -> str:
    """Why a column is no feature, by its name."""
    if name == split.row_id:
        return "identifies the row"
    if name in _RESERVED:
        return "a name that Evenhand uses itself: rename it to use it"
    if name in split.attributes:
        return "protected attribute"
    if kind := draft_table.protected_kind(name):
        return f"names a protected attribute ({kind}); a feature only if the lender may use it"
    if draft_table.is_after(name):
        return f"{AFTER}, by its name"
    return f"{AFTER}: its name is that of a decision or an outcome" if draft_table.is_outcome(name) else ""


def _by_values(table: Table, name: str, split: Split) -> str:
    """Why a column is no feature, by its values and where they are missing."""
    absent, present = table.absent(name).to_numpy(), table.present(name)
    if split.favourable.any() and split.unfavourable.any():
        of_favourable, of_unfavourable = absent[split.favourable].mean(), absent[split.unfavourable].mean()
        if abs(of_favourable - of_unfavourable) >= DIFFERENCE:
            return f"{AFTER}: missing in {of_favourable:.0%} of the favourable, {of_unfavourable:.0%} of the others"
    count = present.nunique()
    if count <= 1:
        return "one value" if count else "no value"
    share = float(absent.mean())
    if share > _COLUMNS_MOST_MISSING:
        return f"missing in {share:.0%} of the rows"
    if draft_table.is_year(name) and present.str.fullmatch(r"(19|20)\d\d").mean() > _DATES:
        return "a year"
    if present.str.fullmatch(_DATE).mean() >= _DATES:
        return "a date"
    if draft_table.is_identifier(name):
        return "an identifier, by its name"
    numbers = pd.to_numeric(present, errors="coerce")
    if count / len(present) > _UNIQUE and len(present) > _CATEGORIES:
        if numbers.isna().mean() > 1 - _UNIQUE:
            return f"text of {count:,} values"
        if (numbers.diff().iloc[1:] == 1).mean() > _UNIQUE:
            return "the number of the row"
    if draft_table.is_place(name):
        return "a place: who lives there tells who somebody is"
    is_text = numbers.notna().mean() <= 0.95
    return f"text of {count:,} values" if is_text and count > _CATEGORIES else ""


def _by_decision(table: Table, name: str, split: Split) -> str:
    """Why a column is no feature: by itself it tells the decision."""
    decided = split.favourable | split.unfavourable
    # A column that nearly is the decision: an outcome under another name.
    if table.present(name).nunique() <= _ORDERED_UP_TO and decided.any():
        crosstab = pd.crosstab(table.frame[name].to_numpy()[decided], split.favourable[decided])
        right, blind = crosstab.max(axis=1).sum() / decided.sum(), crosstab.sum().max() / decided.sum()
        share = 1 - (1 - right) / (1 - blind) if blind < 1 else 0.0
        if share > _TELLS:
            return f"{AFTER}, as it seems: by itself it tells {right:.0%} of the decisions"
    # A number that ranks the decisions as well as an audit's check of its columns refuses.
    numbers = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=float)
    counted = decided & np.isfinite(numbers)
    area = auc(numbers[counted], split.favourable[counted])
    return f"{AFTER}, as it seems: by itself it tells the decision with an AUC of {area:.2f}" if area >= STOPS else ""


def find_year(table: Table) -> tuple[int, bool] | None:
    """The year of most rows, by a column that is called so, and whether all rows are of it."""
    for name in table.names:
        if draft_table.is_year(name):
            years = table.present(name)[table.present(name).str.fullmatch(r"(19|20)\d\d")]
            if len(years):
                return int(years.mode()[0]), years.nunique() == 1
    return None


def left_out(of: Collection[Entry]) -> Iterator[str]:
    """Names of the columns that are known after the decision only."""
    return (entry.name for entry in of if entry.after)
