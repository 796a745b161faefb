"""The state of a theory of harm from those of its rows, and of an audit from those of its theories."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts.agreement import Disagreement
from tasks.metrics.algorithm.verdicts.judgement import DECIDING, Verdict


class Concluded(NamedTuple):
    """A theory as a whole."""

    state: State
    reason: str


def conclude(rows: Sequence[Verdict], disagreeing: Sequence[Disagreement] = (), why_not: str = "") -> Concluded:
    """A theory's state: a breach of one row, else too little evidence in one, else within.

    Args:
        rows: those of the theory, of judged groups.
        disagreeing: groups of which two methods say what excludes each other.
        why_not: why it has no row of a primary measure, where it has none.
    """
    primary = [row for row in rows if row.case.role == "primary"]
    if not primary:
        return Concluded(State.NOT_RUN, why_not or "no group is judged")
    if all(row.case.limit is None for row in primary):
        measured = any(row.state is State.NO_LIMIT for row in primary)
        return Concluded(State.NO_LIMIT, "no limit is set") if measured else Concluded(State.NOT_RUN, primary[0].reason)
    at_odds = {each.group for each in disagreeing}
    breached = _groups([r for r in rows if r.case.role in DECIDING and r.state is State.BREACH], at_odds)
    if breached:
        return Concluded(State.BREACH, f"beyond the limit: {breached}")
    if disagreeing:
        return Concluded(
            State.INSUFFICIENT_EVIDENCE, f"methods disagree: {'; '.join(each.words for each in disagreeing)}"
        )
    unsettled = _groups([row for row in primary if row.state is not State.WITHIN])
    if unsettled:
        return Concluded(State.INSUFFICIENT_EVIDENCE, f"too little evidence: {unsettled}")
    return Concluded(State.WITHIN, "every judged group lies inside the limit")


def _groups(rows: Sequence[Verdict], without: set[str] | None = None) -> str:
    named = [f"{row.case.group}" for row in rows]
    return ", ".join(dict.fromkeys(name for name in named if name not in (without or ())))


def overall(theories: Mapping[Theory, State], gate: Sequence[Theory], *, named: bool) -> State:
    """The state that decides the exit code.

    Args:
        theories: the state of each.
        gate: theories that count.
        named: whether the spec names them: one that did not run, or has no limit, is then too little evidence.
    """
    counted = [theories.get(theory, State.NOT_RUN) for theory in gate]
    if State.BREACH in counted:
        return State.BREACH
    idle = (State.NOT_RUN, State.NO_LIMIT, State.DESCRIPTIVE)
    if State.INSUFFICIENT_EVIDENCE in counted or (named and any(state in idle for state in counted)):
        return State.INSUFFICIENT_EVIDENCE
    return State.WITHIN if State.WITHIN in counted else State.NOT_RUN
