"""Protected attributes of a table: which columns name one, their groups, and the reference group of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flows.cli.draft import vocabulary
from flows.cli.draft.decision import counts
from flows.cli.draft.table import Table
from schemas import blocks
from schemas.audit.spec import Protected
from schemas.errors import SpecError, nearest

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
    named = [name for name in table.names if name != decision and _has_groups(table, name)]
    first: dict[str, str] = {}
    for name in sorted(named, key=lambda name: _preference(table, name)):
        first.setdefault(vocabulary.protected_kind(name), name)
    return [first[kind] for kind in vocabulary.kinds() if kind in first][:MOST_ATTRIBUTES]


def _has_groups(table: Table, name: str) -> bool:
    if not vocabulary.protected_kind(name) or blocks.is_observed(name) or vocabulary.says(name, "co_applicant"):
        return False
    groups = [group for group in counts(table.present(name)) if not vocabulary.is_nobody(group)]
    return 2 <= len(groups) <= MOST_GROUPS and float(table.absent(name).mean()) <= _MOST_MISSING


def _preference(table: Table, name: str) -> tuple[bool, bool, int]:
    """Of several columns of a kind: one derived from them, one of words, the one with the shortest name."""
    words = any(not group.lstrip("-").isdigit() for group in counts(table.present(name)))
    return not vocabulary.says(name, "derived"), not words, len(name)


def possible(table: Table, decision: str) -> list[str]:
    """Columns that could be cut into groups where none names an attribute."""
    fit = [n for n in table.names if n != decision and 2 <= table.present(n).nunique() <= 10]
    return [name for name in fit if not vocabulary.is_after(name) and not vocabulary.is_outcome(name)]


def attributes(table: Table, names: Sequence[str], references: Sequence[str], given: bool) -> list[Attribute]:
    """Attributes with their reference groups.

    Args:
        table: the table.
        names: the columns of the attributes.
        references: the reference groups that a user gave, each of one of the attributes.
        given: whether a user gave the columns, too.

    Raises:
        SpecError: a column is not there or has no groups, or no row has a reference group.
    """
    left, out = list(references), []
    for name in names:
        groups = _groups(table, name)
        said = next((value for value in left if value in groups), None)
        if said is not None:
            left.remove(said)
        out.append(_attribute(name, groups, said, given))
    if left:
        known = nearest(left[0], [group for name in names for group in _groups(table, name)])
        raise SpecError(f"--reference {left[0]}: no row of {', '.join(names)} has it; {known}")
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


def _attribute(name: str, groups: dict[str, int], said: str | None, given: bool) -> Attribute:
    people = [group for group in groups if not vocabulary.is_nobody(group)]
    if said is None and not people:
        raise SpecError(f"--protected {name}: no value is a group of people; give --reference VALUE, or another column")
    reference = said or next((group for group in people if not vocabulary.is_rest(group)), people[0])
    known = Protected(name=name, columns=(name,), reference=reference)
    nobody = tuple(g for g in groups if g != reference and vocabulary.is_nobody(g) and known.judges(g))
    why = [] if given else [f"{name} names a protected attribute"]
    why += [] if said else [f"the reference is the largest group ({groups[reference]:,} rows)"]
    return Attribute(name, reference, nobody, "; ".join(why))
