"""Whether methods that answer the same question say the same: direction and state of each, side by side."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts.judgement import Case, Verdict

Whose = tuple[str, str, str]
"""Decision maker, protected attribute and group: groups of two attributes may have one name."""


class Disagreement(NamedTuple):
    """Two methods of which one finds a breach and the other finds it within."""

    whose: Whose
    pair: str


@dataclass(frozen=True)
class Said:
    """What one method says of a group."""

    case: Case
    sign: str
    """``against`` the group, ``for`` it, ``none_seen``, or ``too_few``."""
    state: State


def compared(verdicts: Iterable[Verdict]) -> list[Said]:
    """The rows of theories to which more than one method speaks."""
    return [Said(each.case, _sign(each), each.state) for each in verdicts]


def disagreeing(verdicts: Sequence[Verdict]) -> dict[Theory, list[Disagreement]]:
    """Groups of which one method finds a breach and another finds it within, by theory."""
    of: dict[tuple[Theory, Whose], list[Verdict]] = defaultdict(list)
    for each in verdicts:
        of[each.case.theory, whose(each.case)].append(each)
    found: dict[Theory, list[Disagreement]] = defaultdict(list)
    for (theory, of_group), rows in of.items():
        states = {row.state: row for row in rows}
        if {State.BREACH, State.WITHIN} <= set(states):
            pair = f"{states[State.BREACH].case.measure} breach, {states[State.WITHIN].case.measure} within"
            found[theory].append(Disagreement(of_group, pair))
    return found


def whose(case: Case) -> Whose:
    """Whom a case is about."""
    return case.decision_maker, case.protected_attribute, case.group


def _sign(row: Verdict) -> str:
    """From the whole interval and its side of no effect, never from a point."""
    case = row.case
    if case.evidence is None:
        return "too_few" if case.problem else ("against" if row.state is State.BREACH else "none_seen")
    neutral = 1.0 if case.evidence.logarithmic else 0.0
    low, high = case.evidence.bound(0.025, upper=False), case.evidence.bound(0.025, upper=True)
    if low <= neutral <= high:
        return "none_seen"
    harmful = high < neutral if case.evidence.logarithmic else low > neutral  # ratios are of approvals, and of ease
    return "against" if harmful else "for"
